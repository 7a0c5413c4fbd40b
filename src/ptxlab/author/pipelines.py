"""Pipelines: stages of shared memory that are filled while others are read.

`copy_pipeline` counts groups of `cp.async`, and all threads of the block synchronize once a stage. `barrier_pipeline`
has two `mbarrier`s a stage, one for when it is filled and one for when it has been read, so that threads which fill and
threads which read go their own ways. Both only write the waits and count the stages; copies are the kernel's own.
"""

from __future__ import annotations

from ptxlab.author import control
from ptxlab.author.arrays import Array, declare
from ptxlab.author.emit import emit
from ptxlab.author.lines import refuse
from ptxlab.author.pointers import Pointer
from ptxlab.author.trace import current
from ptxlab.author.values import Scalar, b64, u32


class Ring:
    """The number of a stage in a register: after the last one comes the first. `parity` then changes, if it is kept."""

    def __init__(self, stages: int, first: int = 0, parity: int | None = None) -> None:
        self.stages = stages
        self.index = u32(first)
        self.parity = None if parity is None else u32(parity)

    def advance(self, steps: Scalar | None = None) -> None:
        """Go to the next stage: an `add`, a `setp`, and what happens after the last one; or several stages on."""
        if steps is not None:
            self._advance_by(steps)
            return
        self.index += 1
        over = self.index == self.stages
        emit("mov.u32", [0], out=self.index, when=over)
        if self.parity is not None:
            emit("xor.b32", [self.parity, 1], out=self.parity, when=over)

    def _advance_by(self, steps: Scalar) -> None:
        """Each turn around the ring changes the parity."""
        moved = self.index + steps
        turns = moved // self.stages
        emit("sub.u32", [moved, turns * self.stages], out=self.index)
        if self.parity is not None:
            emit("xor.b32", [self.parity, turns & 1], out=self.parity)


class CopyPipeline:
    """Stages that `cp.async` fills, all but one ahead of the one that is read."""

    def __init__(self, stages: int) -> None:
        self.stages = stages
        self.filling = Ring(stages, stages - 1)
        self.reading = Ring(stages)

    @property
    def ahead(self) -> range:
        """The stages that are filled before the loop."""
        return range(self.stages - 1)

    def commit(self) -> None:
        """Make one group of the copies since the last one, none included; a stage is one group."""
        emit("cp.async.commit_group", [])

    def wait(self, barrier: int = 0) -> None:
        """Wait until the stage to read is filled, by all threads; then the one read before may be filled."""
        emit("cp.async.wait_group", [self.stages - 2])
        emit("bar.sync", [barrier])

    def advance(self) -> None:
        """Advance to the next stage, with filling and with reading."""
        self.filling.advance()
        self.reading.advance()


def copy_pipeline(stages: int) -> CopyPipeline:
    """Stages that are filled by groups of `cp.async` and read by the whole block."""
    if stages < 2:
        refuse(
            "illegal-declaration", f"{stages} stages are not a pipeline", helps=["one is read while another is filled"]
        )
    return CopyPipeline(stages)


class Side:
    """One side of a pipeline: it waits for one `mbarrier` of a stage and arrives at the other."""

    def __init__(self, awaited: Array, signalled: Array, parity: int) -> None:
        self._awaited = awaited
        self._signalled = signalled
        self._ring = Ring(awaited.extents[0], parity=parity)

    @property
    def index(self) -> u32:
        """The stage."""
        return self._ring.index

    @property
    def barrier(self) -> Pointer:
        """The `mbarrier` that the other side waits for: what copies and `expect_tx` are given."""
        return self._signalled.at(self.index)

    def wait(self, unless: Scalar | None = None) -> None:
        """Wait until the other side is done with the stage: a loop around a `try_wait`, before sm_90 a `test_wait`.

        `unless` is what `test` of this stage said: if it was done then, nothing is asked again.
        """
        if unless is not None:
            with control.when(~unless):
                self.wait()
            return
        barrier = self._awaited.at(self.index)
        test = "try_wait" if current().program.chip.number >= 90 else "test_wait"
        with control.loop():
            done = emit(f"mbarrier.{test}.parity.shared.b64", [barrier, self._ring.parity])
            control.repeat_when(~done)

    def test(self, out: Scalar | None = None) -> Scalar:
        """Whether the other side is done with the stage by now: a `test_wait`, which does not wait."""
        barrier = self._awaited.at(self.index)
        found: Scalar = emit("mbarrier.test_wait.parity.shared.b64", [barrier, self._ring.parity], out=out)
        return found

    def arrive(self) -> None:
        """Arrive: this thread is done with the stage."""
        emit("mbarrier.arrive.shared.b64", [self.barrier])

    def expect(self, bytes: int) -> None:
        """Arrive, and let the stage be full only when so many bytes were copied to it: what TMA copies need."""
        emit("mbarrier.arrive.expect_tx.shared.b64", [self.barrier, bytes])

    def release(self, blocks: int = 1) -> None:
        """A warp is done with the stage: one lane arrives, in each block of a cluster of so many; then advance."""
        lane = emit("mov.u32", ["%laneid"], out=u32.fresh(current("`release`")))
        if blocks == 1:
            with control.when(lane == 0):
                self.arrive()
        else:
            with control.when(lane < blocks):
                there = emit("mapa.shared::cluster.u32", [self.barrier, lane])
                emit("mbarrier.arrive.shared::cluster.b64", [there])
        self.advance()

    def advance(self, steps: Scalar | None = None) -> None:
        """Advance to the next stage, or by a number of stages in a register: past those that other threads read."""
        self._ring.advance(steps)


class BarrierPipeline:
    """Stages with an `mbarrier` for when one is filled, and one for when it has been read."""

    def __init__(self, filled: Array, emptied: Array) -> None:
        self.filled = filled
        self.emptied = emptied

    def producer(self) -> Side:
        """The side that fills; all stages are empty at first."""
        return Side(self.emptied, self.filled, parity=1)

    def consumer(self) -> Side:
        """The side that reads."""
        return Side(self.filled, self.emptied, parity=0)


def barrier_pipeline(stages: int, *, fills: int, reads: int, when: Scalar) -> BarrierPipeline:
    """Stages that are full after `fills` arrivals and empty after `reads`; the thread of `when` makes the barriers.

    The block must synchronize after that: `ptx.bar.sync(0)`.
    """
    if stages < 1:
        refuse("illegal-declaration", f"{stages} stages are not a pipeline")
    filled, emptied = (declare("shared", b64, (stages,), 8, name) for name in ("filled", "emptied"))
    with control.when(when):  # not each by itself: ptxas makes a branch and a fence of each then
        for stage in range(stages):
            emit("mbarrier.init.shared.b64", [filled.at(stage), fills])
            emit("mbarrier.init.shared.b64", [emptied.at(stage), reads])
    return BarrierPipeline(filled, emptied)
