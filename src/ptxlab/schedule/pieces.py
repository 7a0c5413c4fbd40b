"""Stream-K: each block has as many iterations along the sum as the others, so that some tiles are of several blocks.

Whole tiles come first, as many for each block, until less than two waves of tiles are left: only these are shared.
Of them, a block goes from the last of its pieces to the first. Where a piece does not reach the end of the sum, it is
the first that the block computes: each warp stores its accumulators in the workspace, and sets a flag of its own. The
block with the end of the sum waits for these flags, resets them, adds in the order of blocks, and stores the tile. It
only waits for blocks with smaller numbers, which have stored before they wait themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ptxlab.author import Pointer, b8, f32, ptx, u32
from ptxlab.author.emit import emit
from ptxlab.schedule.address import Value
from ptxlab.schedule.elements import store_bits
from ptxlab.schedule.exchange import COMBINE, FOUR
from ptxlab.schedule.state import State
from ptxlab.schedule.statements import Reduce
from ptxlab.schedule.synchronize import WARP as WARP_LEVEL
from ptxlab.schedule.walk import WARP
from ptxlab.schedule.writing import Writing


def workspace_of(state: State) -> str:
    """The name of the parameter that the workspace is."""
    return f"{_sum(state).name}_of_blocks"


def workspace_words(state: State, blocks: int) -> int:
    """Words of 32 bits of a workspace, which are zero before a launch and have zero flags after it."""
    return blocks * (_bytes(state) // 4 + state.thread_count // WARP)


def _sum(state: State) -> Reduce:
    return next(one for one in state.algorithm.statements if isinstance(one, Reduce))


def _bytes(state: State) -> int:
    """Bytes of the accumulators of a block, four of each thread side by side."""
    count = prod(state.count(state.part(name)) or 1 for name in state.serial(_sum(state).axes))
    return -(-count // FOUR) * 16 * state.thread_count


class Pieces:
    """The pieces of a block: iterations `first` to `end` of a tile, out of `count` of them."""

    def __init__(self, w: Writing, tiles: Value, block: Value, blocks: Value) -> None:
        self.block, self.blocks = block, blocks
        self.count = w.count(w.state.pipeline.at).view(u32)
        self.whole = ptx.max.u32(tiles // blocks, 1) - 1
        self.before = self.whole * blocks
        total = (tiles - self.before) * self.count
        self.each, self.rest = total // blocks, total % blocks

    def begin(self, block: Value) -> Value:
        """The first iteration of a block, counted through all tiles that are shared."""
        return block * self.each + ptx.min.u32(block, self.rest)

    def __iter__(self) -> Iterator[Value]:
        begin, end, wave = self.begin(self.block), u32(), u32(0)
        emit("mov.u32", [self.begin(self.block + 1)], out=end)
        with ptx.loop():
            is_whole = wave < self.whole
            number = (end - 1) // self.count
            self.tile = number * self.count
            start = ptx.max.u32(begin, self.tile)
            self.first = ptx.selp.u32(0, start - self.tile, is_whole)
            self.end = ptx.selp.u32(self.count, end - self.tile, is_whole)
            yield ptx.selp.u32(wave * self.blocks + self.block, self.before + number, is_whole)
            emit("selp.u32", [end, start, is_whole], out=end)
            emit("add.u32", [wave, 1], out=wave)
            ptx.repeat_when(end > begin)


def fours(w: Writing) -> list[list[Value]]:
    """The accumulators of a thread, four at a time."""
    totals = [value for (name, _), value in w.made.items() if name == _sum(w.state).name]
    return [totals[n : n + FOUR] for n in range(0, len(totals), FOUR)]


class _Slot:
    """What a warp of a block has in the workspace: where its accumulators are, and its flag."""

    def __init__(self, w: Writing, block: Value) -> None:
        start, size, warps = w.values[workspace_of(w.state)].address, _bytes(w.state), w.state.thread_count // WARP
        if w.state.multicast:
            block = block * w.state.together() + ptx.ctaid.x % w.state.together()
        flags = ptx.mad.wide.u32(ptx.nctaid.x, size, start)
        self.flag = Pointer(u32, "global", ptx.mad.wide.u32(block * warps + w.thread // WARP, 4, flags))
        self.own = ptx.mad.wide.u32(w.thread, 16, ptx.mad.wide.u32(block, size, start))
        self.each = 16 * w.state.thread_count

    def at(self, number: int) -> Pointer:
        """Four accumulators of this thread."""
        return Pointer(b8, "global", self.own, offset=self.each * number)


def write_deposit(w: Writing) -> None:
    """Leave the accumulators of a piece to the block with the end of the sum."""
    slot = _Slot(w, w.pieces.block)
    w.comment("this piece for the block that has the last one", w.state.steps.index("stream_k()"))
    for number, four in enumerate(fours(w)):
        store_bits(slot.at(number), [*four, *four[:1] * (FOUR - len(four))], None)
    w.comment("derived: all lanes have stored theirs, before the flag says so")
    w.barrier(WARP_LEVEL)
    with ptx.when(ptx.laneid == 0):
        ptx.st.release.gpu.global_.u32(slot.flag, 1)


def write_collect(w: Writing) -> None:
    """Add the pieces that other blocks have of a tile, from the last to the first."""
    pieces, operation = w.pieces, COMBINE[_sum(w.state).operation]
    w.comment("the pieces of other blocks", w.state.steps.index("stream_k()"))
    other = u32()
    emit("mov.u32", [pieces.block], out=other)
    with ptx.loop():
        emit("sub.u32", [other, 1], out=other)
        slot = _Slot(w, other)
        w.comment("derived: until a warp of that block has stored; its flag is then for the next launch")
        with ptx.when(ptx.laneid == 0):
            with ptx.loop():
                ptx.repeat_when(ptx.ld.acquire.gpu.global_.u32(slot.flag) == 0)
            ptx.st.relaxed.gpu.global_.u32(slot.flag, 0)
        w.barrier(WARP_LEVEL)
        for number, four in enumerate(fours(w)):
            parts = emit("ld.global.v4.f32", [slot.at(number)], out=tuple(f32() for _ in range(FOUR)))
            for total, part in zip(four, parts, strict=False):
                emit(operation, [total, part], out=total)
        ptx.repeat_when(pieces.begin(other) > pieces.tile)
