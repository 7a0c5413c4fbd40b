"""Tensor memory, where `tcgen05` accumulates: its allocation, what waits for it, and loads from it to registers.

One thread starts multiplications, and a commit has an mbarrier say when they are complete: then their slot of a ring
may be filled again, or the accumulators are read. A thread loads the row of its lane, some columns at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from ptxlab.author import b64, f32, ptx, u16, u32
from ptxlab.author.emit import emit
from ptxlab.schedule.address import Value
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.operands import key_of
from ptxlab.schedule.state import LANES
from ptxlab.schedule.statements import Reduce
from ptxlab.schedule.synchronize import BLOCK
from ptxlab.schedule.walk import WARP
from ptxlab.schedule.writing import Writing

FEWEST_COLUMNS = 32  # that can be allocated; more are powers of two


def write_tensor_memory(w: Writing) -> None:
    """Allocate tensor memory, and initialize the mbarriers at which commits arrive; synchronizes the block."""
    state, is_first = w.state, w.thread == 0
    wanted = max(state.tensor_columns * state.accumulators + sum(state.factor_columns), FEWEST_COLUMNS)
    w.comment("accumulators in tensor memory, and mbarriers for when they are complete", state.tensors[0].step)
    if state.persistent:
        reads = state.thread_count // WARP * state.pair
        w.sets = ptx.barrier_pipeline(state.accumulators, fills=1, reads=reads, when=is_first)
    else:
        w.done, w.turn = ptx.shared(b64, 1, name="done"), u32(0)
        ptx.mbarrier.init.shared.b64(w.done.at(0), 1, when=is_first)
    if w.plan.mapped and not state.specialized:
        w.multiplied = ptx.shared(b64, state.pipeline.stages, name="multiplied")
        with ptx.when(is_first):
            for stage in range(state.pipeline.stages):
                ptx.mbarrier.init.shared.b64(w.multiplied.at(stage), 1)
    w.comment("derived: all threads know the address, and mbarriers are initialized before they are used")
    w.tensor_memory = ptx.tensor_memory(1 << (wanted - 1).bit_length(), when=w.thread < WARP, blocks=state.pair)


def free(w: Writing) -> None:
    """Free tensor memory; multiplications are complete, since warps have read what they wrote."""
    if not w.state.cluster and w.state.pair == 1:  # blocks of a cluster have waited for each other since
        w.comment("derived: all warps have read tensor memory before it is freed")
        w.barrier(BLOCK)
    tmem = w.tensor_memory
    emit(
        f"tcgen05.dealloc.cta_group::{w.state.pair}.sync.aligned.b32",
        [tmem.address, tmem.columns],
        when=w.thread < WARP,
    )


@contextmanager
def issuing(w: Writing) -> Iterator[None]:
    """One thread starts multiplications; where a warp only does that, it is one already."""
    if w.state.specialized:
        yield
        return
    with ptx.when(w.thread == 0):
        yield


def commit_slot(w: Writing) -> None:
    """Have an mbarrier say when a slot that TMA filled has been read."""
    if w.plan.mapped and not w.state.specialized:
        assert w.ring is not None
        commit(w, w.multiplied.at(w.ring[0]))


def commit(w: Writing, barrier: Value, blocks: int = 1) -> None:
    """Arrive at an mbarrier, of all blocks of a cluster, when all multiplications of this thread are complete."""
    arrive = ptx.tcgen05.commit[f"cta_group::{w.state.pair}"]["mbarrier::arrive::one"]["shared::cluster"]
    if blocks == 1:
        arrive.b64(barrier)
    else:
        arrive["multicast::cluster"].b64(barrier, u16(2**blocks - 1))


def wait(barrier: Value, parity: Value) -> None:
    """Wait for a phase of an mbarrier."""
    with ptx.loop():
        ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(barrier, parity))


def write_multiplied(w: Writing, pending: int) -> None:
    """Wait until multiplications are complete."""
    if pending:
        assert w.ring is not None
        wait(w.multiplied.at(w.ring[1]), w.vacant)
    elif w.state.persistent:
        w.summed.wait()
    else:
        if not w.state.specialized:
            with issuing(w):
                commit(w, w.done.at(0))
        wait(w.done.at(0), w.turn)
        emit("xor.b32", [w.turn, 1], out=w.turn)


def write_accumulators(w: Writing, event: str) -> None:
    """Pass a set of accumulators on."""
    if event == "free":
        w.comment("derived: all warps have read these accumulators before they are overwritten")
        w.summing.wait()
        ptx.tcgen05.fence__after_thread_sync()
    elif event == "complete":
        w.comment("derived: when all multiplications of the tile are complete, warps read it")
        commit(w, w.summing.barrier if w.state.persistent else w.done.at(0), w.state.pair)
        if w.state.persistent:
            w.summing.advance()
    else:
        w.comment("derived: this warp has read the accumulators")
        if w.state.pair == 1:
            w.summed.release()
            return
        with ptx.when(ptx.laneid == 0):
            ptx.mbarrier.arrive.release.cluster.shared__cluster.b64(of_first(w.summed.barrier))
        w.summed.advance()


def of_first(barrier: Value) -> Value:
    """The address of the same mbarrier in the first block of the cluster."""
    return ptx.mapa.shared__cluster.u32(barrier, 0)


def write_load(w: Writing, one: Reduce) -> None:
    """Load the columns of a row of the sum that are computed with at once; zeros where nothing was added."""
    tensor = w.state.tensors[0]
    last = w.state.parts[tensor.columns][-1]
    count = w.state.count(last) or 0
    column = _columns(w)
    found = []
    for number in range(count):
        w.addresses.numbers[last.name] = number
        found.append(w.made.setdefault(key_of(w, one), f32()))
    del w.addresses.numbers[last.name]
    w.comment(f"{one.name} from tensor memory", tensor.step)
    extent = w.state.extent(tensor.depth)
    place = w.addresses.value(column)
    is_some = None if extent.is_constant and extent.constant else w.addresses.value(extent) > 0
    if is_some is not None:
        for value in found:
            emit("mov.f32", [0.0], out=value)
    load = ptx.tcgen05.ld.sync.aligned["32x32b"][f"x{count}"].b32
    with ptx.when(is_some) if is_some is not None else nullcontext():
        load(w.tensor_memory.rows(w.thread // WARP % 4, _column(w, w.summed, place)), out=[found])
        ptx.tcgen05.wait__ld.sync.aligned()


def accumulator(w: Writing, column: int) -> Value:
    """The address of a column of the accumulators that are being added to."""
    return w.tensor_memory.at(_column(w, w.summing, column))


def _column(w: Writing, side: Any, column: Value) -> Value:
    """A column of the set of accumulators that a warp is at."""
    if not isinstance(column, int):
        column = column.view(u32)
    return column if w.state.accumulators == 1 else side.index * w.state.tensor_columns + column


def _columns(w: Writing) -> Linear:
    """The column of tensor memory where the tile that a thread is computing starts."""
    tensor = w.state.tensors[0]
    across = 1
    found = Linear()
    for part in w.state.parts[tensor.columns]:
        if part.role in ("serial", "thread") and part is not w.state.parts[tensor.columns][-1]:
            found = found + Linear(((part.name, part.weight),))
    for part in w.state.parts[tensor.columns]:
        across *= (w.state.count(part) or 1) if part.role in ("serial", "thread") else 1
    for part in w.state.parts[tensor.rows][:-1]:
        if part.role in ("serial", "thread"):
            found = found + Linear(((part.name, part.weight // LANES * across),))
    return found
