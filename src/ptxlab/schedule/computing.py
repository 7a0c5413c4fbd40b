"""Statements: sums and other numbers in registers, stores, and reductions that threads share.

A lane has two of every eight columns of what tensor cores compute. Two or four lanes exchange what they have of as many
groups of eight: each then has four or eight columns of one of these, which is one vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ptxlab.author import b32, f32, s32, u32
from ptxlab.author.emit import emit
from ptxlab.schedule.address import Below, Value
from ptxlab.schedule.elements import as_words, shared_address, store_bits, store_numbers
from ptxlab.schedule.exchange import COMBINE, is_owned, own_share, write_exchange
from ptxlab.schedule.expressions import is_zero, register
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.online import start_online, write_factor, write_rescale, write_weight
from ptxlab.schedule.operands import each, expression, holding, key_of, masks_together
from ptxlab.schedule.reference import NEUTRAL
from ptxlab.schedule.statements import Let, Load, Reduce, Store
from ptxlab.schedule.tensor import is_first_multiplied, write_multiply
from ptxlab.schedule.tensor_memory import write_load
from ptxlab.schedule.tree import Leaf
from ptxlab.schedule.walk import WARP, combination
from ptxlab.schedule.writing import Writing

EIGHT = 8  # columns of which four lanes have two each
Group = list[tuple[str, tuple[Linear, ...]]]  # elements of an array


def write_leaf(w: Writing, leaf: Leaf) -> None:
    """Write one thing that a thread does."""
    one = leaf.statement
    w.at(one)
    w.loaded = {}
    if isinstance(one, Store):
        _store(w, one)
    elif isinstance(one, Let):
        is_weight = w.state.online is not None and w.state.online.weight == one.name
        w.made[key_of(w, one)] = write_weight(w) if is_weight else expression(w, one.value)
    elif isinstance(one, Reduce):
        whole = {"multiply": write_multiply, "exchange": write_exchange, "combine": _combine, "gather": _combine}
        if leaf.kind in whole:
            whole[leaf.kind](w, leaf, one)
            return
        own = {"init": _init, "update": _update, "factor": write_factor, "rescale": write_rescale, "load": write_load}
        own[leaf.kind](w, one)


def _init(w: Writing, one: Reduce) -> None:
    key = key_of(w, one)
    if w.state.online is not None and one.name == w.state.online.top:
        start_online(w, one)
    if is_first_multiplied(w, one.name):
        w.made.setdefault(key, f32())
    elif key in w.made:
        emit("mov.f32", [NEUTRAL[one.operation]], out=w.made[key])
    else:
        w.made[key] = f32(NEUTRAL[one.operation])


def _update(w: Writing, one: Reduce) -> None:
    total = w.made[key_of(w, one)]
    limits = [] if _is_neutral(w, one) else w.addresses.outside(one.over)
    when = holding(w, limits, one.condition)
    value = one.value
    if one.operation == "add" and getattr(value, "name", "") == "mul" and hasattr(value, "operands"):
        left, right = (expression(w, part) for part in value.operands)
        emit("fma.rn.f32", [register(left), register(right), total], out=total, when=when)
        return
    emit(COMBINE[one.operation], [total, expression(w, value)], out=total, when=when)


def _is_neutral(w: Writing, one: Reduce) -> bool:
    """Whether what is masked adds zero, because all that it reads is masked to zero."""
    if one.operation != "add":
        return False
    return all(
        w.plan.is_exact(axis) or is_zero(one.value, lambda load, axis=axis: _is_masked(w, load, axis))  # type: ignore[misc]
        for axis in one.over
    )


def _is_masked(w: Writing, load: Load, axis: str) -> bool:
    """Whether a load is zero where an axis is out of bounds: an index is that axis, and as long as the array."""
    if load.array not in w.held and load.array not in w.kept:
        return any(axis in w.plan.axes_of(index) for index in load.index)
    extents = w.plan.extents(load.array)
    return any(i == Linear.of(axis) and e == w.state.extent(axis) for i, e in zip(load.index, extents, strict=True))


def _store(w: Writing, one: Store) -> None:
    index = tuple(w.plan.index(part).replaced(w.addresses.numbers) for part in one.index)
    limits = [Below(b.value.replaced(w.addresses.numbers), b.limit) for b in w.addresses.outside(one.axes)]
    # Where several threads or blocks have the same number, the first of them stores it.
    runs = (*w.state.blocks, *w.state.threads, *([w.state.cluster] if w.state.cluster else []))
    shared = {other for name, other in w.state.aliases.items() if w.state.part(name).axis in one.axes}
    others = [n for n in runs if w.state.part(n).axis not in one.axes and n not in shared]
    w.first = [*own_share(w), *(Below(Linear.of(name), Linear.of(1)) for name in others if not is_owned(w, name))]
    limits += w.first
    value = expression(w, one.value)
    if one.array in w.results:
        w.results[one.array][frozenset(w.addresses.numbers.items())] = value
        return
    if w.collected is not None and one.condition is None and one.array in w.state.vectors:
        w.collected[one.array, index] = one, value, limits
        group, lanes = next(_groups(w, one, index))
        if all(key in w.collected for key in group):
            _store_group(w, group, lanes)
        return
    when = holding(w, limits, one.condition)
    element = w.algorithm.arrays[one.array].element
    store_numbers(w.addresses.element(one.array, index), element, [value], when, w.hint(one.array))


def flush(w: Writing) -> None:
    """Store what was collected and lacks some of its neighbours, with as many as there are."""
    while w.collected:
        (_, index), (one, _, _) = next(iter(w.collected.items()))
        found = ((g, lanes) for g, lanes in _groups(w, one, index) if all(key in w.collected for key in g))
        _store_group(w, *next(found))
    w.collected = None


def _groups(w: Writing, one: Store, index: tuple[Linear, ...]) -> Iterator[tuple[Group, int]]:
    """The elements that may be stored together with one, the most first, and how many lanes exchange them before."""
    lanes = lanes_of(w, one)
    while lanes > 1:  # what they have after the exchange is aligned, and masked together
        spread = moved(w, index, lanes) - index[-1].constant % EIGHT - f"spread.{lanes}"
        if _is_stored_aligned(w, one, spread, 2 * lanes):
            yield group_of(w, one, index, lanes), lanes
        lanes //= 2
    for width in w.state.widths(one.array):
        first = index[-1] - index[-1].constant % width
        if _is_stored_aligned(w, one, first, width):
            yield [(one.array, (*index[:-1], first + place)) for place in range(width)], 1
    yield [(one.array, index)], 1


def _store_group(w: Writing, group: Group, lanes: int) -> None:
    assert w.collected is not None
    array, index = group[0]
    _, _, limits = w.collected[group[0]]
    element, hint = w.algorithm.arrays[array].element, w.hint(array)
    values = [register(w.collected.pop(key)[1]) for key in group]
    if lanes == 1:
        store_numbers(w.addresses.element(array, index), element, values, w.addresses.predicate(limits), hint)
        return
    words = [as_words(element, values[n : n + 2]) for n in range(0, len(values), 2)]
    column = moved(w, index, lanes)
    conditions = limited(limits, index, column)
    place = w.addresses.element(array, (*index[:-1], column))
    store_bits(place, exchange(w, lanes, words), w.addresses.predicate(conditions), 0, hint)


def _is_stored_aligned(w: Writing, one: Store, first: Linear, width: int) -> bool:
    pitch = w.plan.extents(one.array)[-1]
    return (
        pitch.is_multiple(width, w.plan.multiples)
        and first.is_multiple(width, w.plan.multiples)
        and masks_together(w, one.index, width)
    )


def lanes_of(w: Writing, one: Store) -> int:
    """How many lanes exchange what a store is given; one where none do."""
    width = w.state.vectors.get(one.array, 1)
    if (
        width <= 2
        or one.condition is not None
        or not any(t.lane and one.index[-1] == Linear.of(t.columns) for t in w.state.tensors)
    ):
        return 1
    return width // 2


def write_spread(w: Writing) -> None:
    """The first column that a lane has after an exchange, from that of the tile on."""
    for lanes in (2, 4):
        if any(t.lane for t in w.state.tensors) and any(
            2 * lanes <= w.state.vectors.get(a, 1) for a in w.algorithm.outputs
        ):
            lane = w.thread % 4
            w.addresses.registers[_name(lanes)] = (lane // lanes * (2 * lanes) + lane % lanes * EIGHT).view(s32)
            for bit in (1, 2)[: lanes // 2]:
                w.odd[bit] = emit("setp.ne.u32", [w.thread & bit, 0])


def _name(lanes: int) -> str:
    return f"spread.{lanes}"


def group_of(w: Writing, one: Store, index: tuple[Linear, ...], lanes: int) -> list[tuple[str, tuple[Linear, ...]]]:
    """The elements of a lane that are exchanged together with one."""
    start = index[-1] - index[-1].constant % (EIGHT * lanes)
    return [(one.array, (*index[:-1], start + (EIGHT * group + pair))) for group in range(lanes) for pair in range(2)]


def exchange(w: Writing, lanes: int, words: list[list[Value]]) -> list[Value]:
    """Give each lane one group, in place of a part of each: `words` has the registers of each group."""
    words = [list(one) for one in words]
    distance = 1
    while distance < lanes:
        odd = w.odd[distance]
        for low in range(lanes):
            if low & distance:
                continue
            for place in range(len(words[low])):
                first, second = words[low][place], words[low | distance][place]
                sent = emit("selp.b32", [first, second, odd], out=b32())
                received = emit("shfl.sync.bfly.b32", [sent, distance, 31, -1], out=b32())
                words[low][place] = emit("selp.b32", [received, first, odd], out=b32())
                words[low | distance][place] = emit("selp.b32", [second, received, odd], out=b32())
        distance *= 2
    return [word for one in words for word in one]


def moved(w: Writing, index: tuple[Linear, ...], lanes: int) -> Linear:
    """The column of the first element that a lane has after an exchange; `index` is that of the first group."""
    lane = next(t.lane for t in w.state.tensors if t.lane in index[-1].names)
    return index[-1] - Linear(((lane, 2),)) + _name(lanes)


def limited(limits: list[Below], index: tuple[Linear, ...], column: Linear) -> list[Below]:
    """The conditions for another column."""
    return [Below(column, limit.limit) if limit.value == index[-1] else limit for limit in limits]


def _combine(w: Writing, leaf: Leaf, one: Reduce) -> None:
    """Combine a reduction among threads: by shuffles in a warp, by shared memory among warps."""
    how = combination(w.state, one)
    name = f"{one.name}_of_threads"
    part = next(n for n in w.state.threads if w.state.part(n).axis in one.over)
    w.comment(f"{one.name} of all threads that share it", w.state.part(part).step)
    threads = w.state.thread_count
    for number in each(w, leaf.loops):
        total = w.made[key_of(w, one)]
        if leaf.kind == "combine":
            for distance in how.shuffles:
                other = emit("shfl.sync.bfly.b32", [total, distance, WARP - 1, w.warp_mask], out=f32())
                emit(COMBINE[one.operation], [total, other], out=total)
            if how.scratch:
                address = emit("mad.lo.u32", [w.thread, 4, w.scratch[name]], out=u32())
                store_bits(shared_address(address, 4 * threads * number), [total], None)
        elif how.scratch:
            first = w.thread
            for apart, count in how.scratch:
                digit = (w.thread // apart) % count
                first = first - digit * apart
            address = emit("mad.lo.u32", [first, 4, w.scratch[name]], out=u32())
            offsets = [
                sum(n * apart for n, (apart, _) in zip(ns, how.scratch, strict=True))
                for ns in product(*(range(c) for _, c in how.scratch))
            ]
            for place, offset in enumerate(sorted(offsets)):
                source = shared_address(address, 4 * (offset + threads * number))
                value = emit("ld.shared.f32", [source], out=f32() if place else total)
                if place:
                    emit(COMBINE[one.operation], [total, value], out=total)
