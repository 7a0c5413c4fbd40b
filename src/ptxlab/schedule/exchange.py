"""Sums that the blocks of a cluster share: each block adds up a share of them, and stores what it has of the result.

Where there are mbarriers, each block writes the shares of the others to their memory. Elsewhere all blocks
write their part to their own; after a barrier of the cluster, a block reads its share of what the others wrote. Where
the result is not only stored, or shares do not come out even, each block adds up all of it.
"""

from __future__ import annotations

from math import prod

from ptxlab.author import Pointer, b8, b64, f32, ptx, u32
from ptxlab.author.emit import emit
from ptxlab.schedule.address import Below, Value
from ptxlab.schedule.elements import shared_address, store_bits, synchronize_cluster
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.operands import each, key_of
from ptxlab.schedule.statements import Reduce, Store
from ptxlab.schedule.synchronize import BLOCK
from ptxlab.schedule.tensor_memory import wait
from ptxlab.schedule.tree import Leaf, Plan, walk
from ptxlab.schedule.walk import WARP
from ptxlab.schedule.writing import Writing

COMBINE = {"add": "add.rn.f32", "max": "max.f32", "min": "min.f32"}
FOUR = 4  # numbers of one access


def _loops(plan: Plan, one: Reduce) -> list[str]:
    """The loops that a thread has numbers of, those last in which vectors that are stored have neighbours.

    Where results are stored in boxes, columns are first: a share is some columns of all rows.
    """
    part = plan.state.part
    last = _stored_along(plan) if not plan.state.results else {plan.state.tensors[0].rows}
    return sorted(plan.state.serial(one.axes), key=lambda name: (part(name).axis in last, -part(name).weight))


def _stored_along(plan: Plan) -> set[str]:
    """The axes along which vectors are stored."""
    stores = [s for s in plan.state.algorithm.statements if isinstance(s, Store) and s.array in plan.state.vectors]
    return {axis for one in stores for axis in plan.axes_of(one.index[-1])}


def shared(plan: Plan) -> tuple[Reduce, int] | None:
    """The sum whose shares blocks have, and how many numbers a share is."""
    state = plan.state
    sums = [one for one in state.algorithm.statements if isinstance(one, Reduce)]
    if not state.cluster or len(sums) != 1:
        return None
    loops, along = _loops(plan, sums[0]), _stored_along(plan)
    at_once = _exchanges(plan)[0][0].loops
    if not {*loops} <= plan.unrolled & {*at_once} or len(along) > 1:
        return None
    counts = {name: state.count(state.part(name)) or 1 for name in loops}
    row = prod(count for name, count in counts.items() if state.part(name).axis in along)
    together = max([1, *(state.vectors.get(name, 1) for name in state.algorithm.outputs)])
    share, rest = divmod(prod(counts.values()), state.cluster_blocks)
    if state.results:
        return None if counts[state.serial([state.tensors[0].columns])[-2]] % state.cluster_blocks else (sums[0], share)
    return None if rest or share % max(FOUR, together) or row % together else (sums[0], share)


def _exchanges(plan: Plan) -> list[tuple[Leaf, bool]]:
    """Those of a kernel, and whether each is in a loop."""
    nodes = ((node, bool(path)) for node, path in walk(plan.tree) if isinstance(node, Leaf))
    return [(node, is_inside) for node, is_inside in nodes if node.kind == "exchange"]


def is_owned(w: Writing, name: str) -> bool:
    """Whether a part is run by the blocks of a cluster, each of which stores a share."""
    return name == w.state.cluster and shared(w.plan) is not None


def own_share(w: Writing) -> list[Below]:
    """The conditions that a block has the share with the number that is being stored."""
    found = shared(w.plan)
    if found is None:
        return []
    one, share = found
    number = 0
    for name in _loops(w.plan, one):
        number = number * (w.state.count(w.state.part(name)) or 1) + w.addresses.numbers[name]
    rank = Linear.of(w.state.cluster) - number // share
    return [Below(rank, Linear.of(1)), Below(rank)]


def pushes(plan: Plan) -> bool:
    """Whether blocks write shares to each other's memory: mbarriers are initialized in all of them before that."""
    return bool(plan.mapped) and shared(plan) is not None and not _exchanges(plan)[0][1]


def write_exchange_barriers(w: Writing) -> None:
    """The mbarriers that say when the memory of all blocks is free, and when what others wrote is there."""
    w.comment("derived: mbarriers for what blocks of the cluster exchange", w.state.part(w.state.cluster).step)
    free, summed = (ptx.shared(b64, 1, name=name).at(0) for name in ("free", "summed"))
    w.exchange = free, summed
    with ptx.when(w.thread == 0):
        ptx.mbarrier.init.shared.b64(free, w.state.thread_count // WARP * w.state.cluster_blocks)
        ptx.mbarrier.init.shared.b64(summed, 1)


def write_exchange(w: Writing, leaf: Leaf, one: Reduce) -> None:
    """Combine a reduction among the blocks of a cluster, in the order of blocks."""
    found = shared(w.plan)
    wanted = _loops(w.plan, one) if found else leaf.loops
    totals = [w.made[key_of(w, one)] for _ in each(w, wanted)]
    fours = [totals[n : n + FOUR] for n in range(0, len(totals), FOUR)]
    w.comment(f"{one.name} of all blocks of the cluster", w.state.part(w.state.cluster).step)
    thread = w.thread if w.state.thread_count > 1 else u32(0)
    own = emit("mad.lo.u32", [thread, 16, w.scratch[f"{one.name}_of_blocks"]], out=u32())
    if pushes(w.plan):
        _push(w, own, fours, COMBINE[one.operation])
    else:
        _pull(w, leaf, own, fours, COMBINE[one.operation])


def _push(w: Writing, own: Value, fours: list[list[Value]], operation: str) -> None:
    """Each block writes to the others what they add up."""
    (free, summed), blocks, apart = w.exchange, w.state.cluster_blocks, 16 * w.state.thread_count
    rank, share = w.addresses.registers[w.state.cluster].view(u32), len(fours) // blocks
    with ptx.when(w.thread == 0):
        ptx.mbarrier.arrive.expect_tx.shared.b64(summed, (blocks - 1) * share * apart)
    if w.plan.reuses_memory:
        w.comment("derived: all blocks of the cluster have read what was staged in this memory")
        with ptx.when(ptx.laneid < blocks):
            ptx.mbarrier.arrive.shared__cluster.b64(ptx.mapa.shared__cluster.u32(free.address, ptx.laneid))
        wait(free, 0)
    there = ptx.mad.lo.u32(rank, share * apart, own)
    for block in range(blocks):
        with ptx.when(rank != block):
            place, signal = (emit("mapa.shared::cluster.u32", [at, block], out=u32()) for at in (there, summed.address))
            for number, four in enumerate(fours[share * block : share * (block + 1)]):
                target = Pointer(b8, "shared::cluster", place, offset=apart * number)
                emit("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32", [target, tuple(four), signal])
    w.comment("derived: all blocks of the cluster have written their part")
    wait(summed, 0)
    for block in range(blocks):
        with ptx.when(rank == block):
            others = [Pointer(b8, "shared", own, offset=apart * share * other) for other in range(blocks)]
            _add(others, apart, list(enumerate(fours[share * block : share * (block + 1)])), block, operation)


def _pull(w: Writing, leaf: Leaf, own: Value, fours: list[list[Value]], operation: str) -> None:
    """Each block writes to its own memory, and reads that of the others."""
    blocks, apart, found = w.state.cluster_blocks, 16 * w.state.thread_count, shared(w.plan)
    if w.plan.reuses_memory and w.state.thread_count > 1 and not w.state.waits_for_all:
        w.comment("derived: all threads have read what was staged in this memory")
        w.barrier(BLOCK)
    for number, four in enumerate(fours):
        store_bits(shared_address(own, apart * number), [*four, *four[:1] * (FOUR - len(four))], None)
    w.comment("derived: all blocks of the cluster have written their part")
    synchronize_cluster(".aligned")
    places = [emit("mapa.shared::cluster.u32", [own, rank], out=u32()) for rank in range(blocks)]
    others = [Pointer(b8, "shared::cluster", place) for place in places]
    if found is None:
        _add(others, apart, list(enumerate(fours)), None, operation)
    else:
        share = found[1] // FOUR
        rank = w.addresses.registers[w.state.cluster]
        for block in range(blocks):
            with ptx.when(rank == block):
                numbered = list(enumerate(fours))[share * block : share * (block + 1)]
                _add(others, apart, numbered, block, operation)
    known = _exchanges(w.plan)
    here = next(number for number, (node, _) in enumerate(known) if node is leaf)
    is_inside, later = known[here][1], [inside for _, inside in known[here + 1 :]]
    if not is_inside and not later:
        w.comment("derived: this thread has read it; no block is over before all have")
        emit("barrier.cluster.arrive.release.aligned", [])
        w.is_read = True
    elif is_inside or all(later):  # otherwise the next one waits for that
        w.comment("derived: all blocks of the cluster have read it, before it is overwritten")
        synchronize_cluster(".aligned")


def _add(
    others: list[Pointer], each: int, fours: list[tuple[int, list[Value]]], own: int | None, operation: str
) -> None:
    """Add up numbers of all blocks; those of this block are in registers already."""
    for number, four in fours:
        parts = []
        for rank, other in enumerate(others):
            outs = tuple(f32() for _ in range(FOUR))
            parts.append(four if rank == own else emit(f"ld.{other.space}.v4.f32", [other + each * number], out=outs))
        for place, total in enumerate(four):
            sum = parts[0][place]
            for part in parts[1:-1]:
                sum = emit(operation, [sum, part[place]])
            emit(operation, [sum, parts[-1][place]], out=total)
