"""Copies by TMA, and what waits for them and for multiplications: mbarriers, their phases and bytes, fences.

Without roles, thread 0 starts the copies of an iteration after a barrier. With them, a warp of its own does, as soon
as all warps that compute have arrived at the mbarrier of the slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ptxlab.author import Pointer, b8, b64, ptx, s32, u16, u32
from ptxlab.author.emit import emit
from ptxlab.schedule import tree
from ptxlab.schedule.address import Value
from ptxlab.schedule.copies import during, source_of
from ptxlab.schedule.exchange import pushes, write_exchange_barriers
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.results import write_last
from ptxlab.schedule.state import MulticastCopy
from ptxlab.schedule.synchronize import BLOCK
from ptxlab.schedule.tensor_memory import (
    commit,
    free,
    of_first,
    wait,
    write_accumulators,
    write_multiplied,
    write_tensor_memory,
)
from ptxlab.schedule.walk import WARP
from ptxlab.schedule.writing import Writing


def number_of(copy: MulticastCopy) -> Value:
    """The number of this block among those that share a copy."""
    return (ptx.ctaid.x // copy.apart if copy.apart > 1 else ptx.ctaid.x) % copy.blocks


def write_prefetch(w: Writing) -> None:
    """Have the thread that copies read the tensor maps, which the first copies wait for."""
    if w.plan.mapped:
        w.comment("read ahead of the copies", w.state.pipeline.step)
        with ptx.when(w.thread == (w.state.thread_count if w.state.specialized else 0)):
            for name in w.plan.described:
                ptx.prefetch.tensormap(w.values[name].generic)


def write_drain(w: Writing) -> None:
    """Have the thread that copies wait until its slots are empty: a barrier of all threads would wait for stores."""
    w.comment("derived: no block is over while others arrive at its mbarriers", w.state.multicast[-1].step)
    for _ in ptx.range(u32(0), u32(w.state.pipeline.stages), 1):
        w.filling.wait()
        w.filling.advance()


def write_barriers(w: Writing) -> None:
    """Declare and initialize the mbarriers of a ring that TMA fills."""
    if w.plan.mapped:
        _write_ring(w)
    if pushes(w.plan):
        write_exchange_barriers(w)


def write_ready(w: Writing) -> None:
    """Have all threads wait until these are initialized, and those of tensor memory."""
    if w.state.unit == "tcgen05":
        write_tensor_memory(w)
    elif w.plan.mapped and (w.state.specialized or not _synchronizes(w.plan.tree)):
        w.comment("derived: mbarriers are initialized before they are used")
        if not w.state.multicast and not pushes(w.plan):
            ptx.bar.sync(0)
    if (w.state.multicast and w.state.pair == 1) or pushes(w.plan):  # a pair has synchronized with its allocation
        with ptx.when(w.thread == 0):
            ptx.fence.mbarrier_init.release.cluster()
        emit("barrier.cluster.arrive.relaxed", [])  # no memory but that of mbarriers has been written
        emit("barrier.cluster.wait.acquire", [])


def write_end(w: Writing) -> None:
    """What warps that compute do last."""
    write_last(w)
    if w.tensor_memory is not None:
        free(w)
    if w.is_read:
        w.comment("derived: no block is over before all blocks of the cluster have read its part")
        emit("barrier.cluster.wait.acquire", [])


def _write_ring(w: Writing) -> None:
    stages, is_first = w.state.pipeline.stages, w.thread == 0
    w.comment("derived: an mbarrier for each slot of the ring", w.state.pipeline.step)
    if w.state.specialized:
        reads = 1 if w.state.unit == "tcgen05" else w.state.thread_count // WARP
        w.stages = ptx.barrier_pipeline(
            stages, fills=1, reads=reads * w.state.together() // w.state.pair, when=is_first
        )
        return
    w.full = ptx.shared(b64, stages, name="full")
    with ptx.when(is_first):
        for stage in range(stages):
            ptx.mbarrier.init.shared.b64(w.full.at(stage), 1)


def _synchronizes(body: list[tree.Node]) -> bool:
    """Whether all threads wait for each other before the first of them waits at an mbarrier."""
    for node in body:
        if isinstance(node, tree.Loop) and any(isinstance(inner, tree.Arrival) for inner, _ in tree.walk(node.body)):
            return _synchronizes(node.body)
        if isinstance(node, tree.Arrival):
            return False
        if isinstance(node, tree.Barrier) and node.level == BLOCK:
            return True
    return False


@contextmanager
def role(w: Writing, does: str) -> Iterator[None]:
    """The slots as warps go around them that copy, multiply or compute; and sets of accumulators.

    Those that compute have two sides: what is read now, and what was read before. With `tcgen05` they wait for
    accumulators only.
    """
    sets, later = w.sets, w.state.unit == "tcgen05"
    if does == "copy":
        w.filling = w.stages.producer()
        w.ring = w.filling.index, w.filling.index
    elif does == "multiply" or not later:
        w.reading = w.stages.consumer()
        w.read = w.reading if later else w.stages.consumer()
        w.ring = w.reading.index, w.read.index
    if does == "multiply":
        w.summing = sets.producer() if sets is not None else None
    elif does == "compute" and later:
        w.summed = sets.consumer() if sets is not None else None
    yield
    w.ring = None


def write_asynchronous(w: Writing, node: tree.Sync | tree.Transfer | tree.Arrival) -> None:
    """Write a copy by TMA, or a wait."""
    step = w.state.pipeline.step
    match node:
        case tree.Transfer():
            _write_transfer(w, node)
        case tree.Arrival() if w.state.specialized:
            w.comment("until the copies of this iteration have arrived", step)
            w.reading.wait()
        case tree.Arrival():
            w.comment("until the copies of this iteration have arrived", step)
            assert w.ring is not None
            wait(w.full.at(w.ring[0]), w.parity)
        case tree.Sync("vacancy"):
            w.comment("derived: all warps have read the slot before it is filled again")
            w.filling.wait()
        case tree.Sync("release now"):
            w.comment("derived: the slot has been read")
            w.read.release(w.state.together())
            w.reading.advance()
        case tree.Sync("release multiplied"):
            w.comment("derived: when these multiplications are complete, the slot has been read")
            commit(w, w.reading.barrier, w.state.together())
            w.reading.advance()
        case tree.Sync("release before"):
            w.comment("derived: the slot of the iteration before has been read")
            first = 0 if w.pieces is None else w.pieces.first.view(s32)
            with ptx.when(w.addresses.registers[w.state.pipeline.at] > first):
                w.read.release(w.state.together())
            w.reading.advance()
        case tree.Sync("release last"):
            w.comment("derived: the last slot has been read")
            w.read.release(w.state.together())
        case tree.Sync("free" | "complete" | "read" as event):
            write_accumulators(w, event)
        case tree.Sync("multiplied", pending):
            which = "of the iteration before" if pending else "so far"
            w.comment(f"derived: until the multiplications {which} are complete")
            if w.state.unit == "tcgen05":
                write_multiplied(w, pending)
            else:
                ptx.wgmma.wait_group.sync.aligned(pending)
        case tree.Sync("fence waited"):
            w.comment("derived: loads from tensor memory are after this wait")
            ptx.tcgen05.fence__after_thread_sync()
        case tree.Sync("fence"):
            w.comment("derived: what was copied is visible to tensor cores, which read by another proxy")
            emit("fence.proxy.async.shared::cta", [])


def _write_transfer(w: Writing, node: tree.Transfer) -> None:
    fill = node.fills[0]
    boxes = " and ".join(f"{' x '.join(map(str, f.buffer.shape))} of {f.buffer.stage.array}" for f in node.fills)
    w.comment(f"{boxes} by TMA", w.state.pipeline.step)
    places = [[w.addresses.value(one) for one in source_of(w, f, [Linear()] * len(f.buffer.shape))] for f in node.fills]
    if w.state.specialized:
        barrier = w.filling.barrier
        if w.state.pair == 1:
            w.filling.expect(node.bytes)
        else:
            with ptx.when(ptx.cluster_ctarank == 0):
                w.filling.expect(node.bytes * w.state.pair)
            barrier = of_first(barrier)
        for one, place in zip(node.fills, places, strict=True):
            _copy(w, one, place, w.filling.index, barrier)
        w.filling.advance()
        return
    is_first = w.thread == 0
    some = w.addresses.predicate(during(w, fill))
    slot: Value = fill.iteration if fill.iteration is not None or w.ring is None else w.ring[1]
    with ptx.when(is_first if some is None else ptx.and_.pred(is_first, some)):
        barrier = w.full.at(slot)
        ptx.mbarrier.arrive.expect_tx.shared.b64(barrier, node.bytes)
        for one, place in zip(node.fills, places, strict=True):
            _copy(w, one, place, slot, barrier)


def _copy(w: Writing, fill: tree.Fill, place: list[Value], slot: Value, barrier: Pointer) -> None:
    """Copy a box, one panel of it after the other."""
    buffer, size = fill.buffer, tree.BYTES[fill.buffer.element]
    start = w.addresses.memory[w.plan.buffers.index(buffer)]
    target = (
        start + slot * (buffer.size * size)
        if isinstance(slot, int)
        else ptx.mad.lo.u32(slot, buffer.size * size, start)
    )
    rank = f"{len(buffer.shape)}d"
    copy = ptx.cp.async_.bulk.tensor[rank]["shared::cluster"]["global"]["mbarrier::complete_tx::bytes"]
    *outer, last = [s32(one) if isinstance(one, int) else one for one in place]
    mask: list[Value] = []
    for one in (one for one in w.state.multicast if one.array == buffer.stage.array):
        w.comment(f"a part of {buffer.stage.array} for {one.blocks} blocks of the cluster", one.step)
        number = number_of(one)
        first = number * (buffer.shape[-2] // (one.blocks if w.state.pair == 1 else 1))
        outer[-1] = outer[-1] + first.view(s32)
        if w.state.pair == 1:
            everyone: Value = u16(sum(1 << one.apart * n for n in range(one.blocks)))
            if len(w.state.multicast) > 1:  # from the first of these blocks on
                everyone = ptx.shl.b16(everyone, ptx.cluster_ctarank - number * one.apart)
            copy, mask = copy["multicast::cluster"], [everyone]
            target = ptx.mad.lo.u32(first, buffer.columns * size, target)
    copy = copy["cta_group::2"] if w.state.pair > 1 else copy
    hint, policy = w.hint(buffer.stage.array)
    copy = copy[hint.removeprefix(".")] if hint else copy
    for panel in range(buffer.panels):
        column = last + panel * buffer.columns if panel else last
        address = Pointer(b8, "shared", target, offset=panel * (buffer.size // buffer.panels) * size)
        copy(address, (w.values[buffer.stage.array].generic, (column, *reversed(outer))), barrier, *mask, *policy)
