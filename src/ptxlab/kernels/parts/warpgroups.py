"""What kernels with `wgmma` have in common: how a block starts, the MMAs of a K tile, registers that are rounded.

A block has one thread that issues TMA copies, the producer, and warpgroups that multiply, the consumers. Between them
is a ring of stages: `ptx.barrier_pipeline`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptxlab.author import Instruction, Pointer, Scalar, b32, b64, f32, pred, ptx, s8, u32
from ptxlab.kernels.parts.operands import Descriptors

if TYPE_CHECKING:
    from ptxlab.author.pipelines import Side

GROUP = 128  # threads of a warpgroup
AHEAD = 5  # the barrier that `HeadStart` uses; warpgroups have those from 1 on, sums of blocks number 8
NEVER = 0xFFFFFFFF


def group_number() -> u32:
    """The number of this thread's warpgroup, from a lane of its warp: ptxas then knows that it is the same for all.

    Descriptors that depend on it are computed in uniform registers, where `wgmma` needs them, once for a warp.
    """
    number = ptx.tid.x // GROUP
    return ptx.shfl.sync.idx.b32(number.view(b32), 0, 31, -1).view(u32)


def start_block(thread: u32, maps: Sequence[Pointer], blocks: int = 1, waits: bool = True) -> None:
    """What follows the initialization of barriers, in clusters of so many blocks: all threads may use them then.

    What comes before was preparation, and may run while the kernel before is still running; also what comes after, if
    it does not wait here.
    """
    with ptx.when(thread == 0):
        ptx.fence.mbarrier_init.release.cluster()
        for one in maps:
            ptx.prefetch.tensormap(one)
    if blocks > 1:
        ptx.barrier.cluster.arrive.relaxed()  # the fence has made the barriers visible
        ptx.barrier.cluster.wait.acquire()
    else:
        ptx.bar.sync(0)
    ptx.griddepcontrol.launch_dependents()  # the next kernel may prepare itself, too
    if waits:
        ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read


class Turns:
    """Warpgroups that multiply in turns: one starts when the one before has issued its last MMAs.

    Without that, one that is a whole ring of stages ahead would take an old phase of an `mbarrier` for its own.
    """

    def __init__(self, groups: int, when: pred) -> None:
        self.groups, self.barriers = groups, ptx.shared(b64, groups, name="turns")
        for number in range(groups):
            ptx.mbarrier.init.shared.b64(self.barriers.at(number), GROUP // 32, when=when)

    def start(self, own: u32) -> None:
        """What a warpgroup does first; the first one has its turn at once."""
        self.own, self.next = self.barriers.at(own), self.barriers.at((own + 1) % self.groups)
        self.parity = u32(0)
        ptx.mov.u32(1, out=self.parity, when=own == 0)

    def wait(self) -> None:
        """Wait for this warpgroup's turn."""
        with ptx.loop():
            ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(self.own, self.parity))
        ptx.xor.b32(self.parity, 1, out=self.parity)

    def hand_over(self) -> None:
        """It is the next one's turn."""
        with ptx.when(ptx.laneid == 0):
            ptx.mbarrier.arrive.shared.b64(self.next)


class HeadStart:
    """The first warpgroup is so many K tiles ahead of the second one, from its first tile on.

    At the end of a tile, the second one multiplies what is left of it while the first stores, and at the start of the
    next tile the first multiplies alone: without a head start, both would store at the same time.
    """

    def __init__(self, tiles: int, own: u32, share: Any) -> None:
        self.waits = ptx.setp.ne.u32(own, 0)
        due = share.first + ptx.min.u32(share.count - 1, tiles) * share.depth
        self.due = ptx.selp.u32(NEVER, due, self.waits)

    def wait(self) -> None:
        """What the second one does before its first tile."""
        with ptx.when(self.waits):
            ptx.barrier.sync(AHEAD, 2 * GROUP)
            ptx.setp.ne.u32(self.due, self.due, out=self.waits)

    def pass_on(self, start: u32) -> None:
        """What the first one does when it has issued the MMAs of the K tile from `start` on."""
        with ptx.when(start == self.due):
            ptx.barrier.arrive(AHEAD, 2 * GROUP)
            ptx.mov.u32(NEVER, out=self.due)


def multiply(
    product: Instruction, stage: Side, sides: Sequence[Descriptors], accumulators: Sequence[list[Scalar]], adds: pred
) -> None:
    """Issue the MMAs of a K tile as one group: those of each 64 rows.

    `product` is the instruction; `adds` is whether the accumulators have a value, which they have after this.
    """
    left, right = sides
    operands = left.operand, right.operand
    flags = [1, 1, *(int(not one.along_k) for one in operands)]  # factors, and which operands are transposed
    flags = flags[: {1: 0 if operands[0].element is s8 else 2, 2: 4, 4: 2}[operands[0].bytes]]
    rows, columns = (one.stage(stage.index) for one in sides)
    ptx.wgmma.fence.sync.aligned()
    for step in range(0, operands[0].depth, operands[0].depth // 4):
        b = right.at(columns, step)
        for part, values in enumerate(accumulators):
            product(values, left.at(rows, step, part), b, adds, *flags)
        ptx.setp.eq.u64(columns, columns, out=adds)
    ptx.wgmma.commit_group.sync.aligned()


def pack(type: str, low: f32, high: f32) -> Any:
    """Two numbers, rounded to f16 or bf16, in a register."""
    return ptx.cvt.rn[f"{type}x2"].f32(high, low).view(b32)
