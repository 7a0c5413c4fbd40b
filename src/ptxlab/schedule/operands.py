"""What statements read: elements of global memory, of shared memory, or in registers, and numbers that they made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from ptxlab.author.emit import emit
from ptxlab.schedule.address import READ, Below, Value
from ptxlab.schedule.copies import starts_inside
from ptxlab.schedule.elements import load_numbers
from ptxlab.schedule.expressions import write_expression
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.statements import Expression, Let, Load, Reduce
from ptxlab.schedule.tree import Buffer, Keep, reads
from ptxlab.schedule.writing import Writing


def write_keep(w: Writing, keep: Keep) -> None:
    """Load what a thread reads in this iteration to registers, neighbours at once where they are aligned."""
    array, addresses = keep.stage.array, w.addresses
    w.at(keep.leaves[0].statement)
    w.comment(f"{array} to registers", keep.stage.step)
    wanted: dict[tuple[Linear, ...], Load] = {}
    for load in (load for leaf in keep.leaves for load in reads(leaf) if load.array == array):
        box = [w.plan.index(one) for one in load.index]
        own = {name for one in (*box, *map(w.plan.index, map(Linear.of, load.names))) for name in one.names}
        inner = sorted(own & w.plan.unrolled - addresses.numbers.keys())
        for numbers in product(*(range(w.state.count(w.state.part(name)) or 1) for name in inner)):
            chosen = dict(zip(inner, numbers, strict=True))
            wanted.setdefault(tuple(addresses.resolved(one, chosen) for one in box), load)
    found: dict[tuple[Linear, ...], Value] = {}
    contiguous = -1
    if array in w.held:
        contiguous = w.held[array][0].strides.index(1)
    for index in sorted(wanted, key=lambda one: [(part.terms, part.constant) for part in one]):
        if index in found:
            continue
        group = [index]
        for width in w.state.widths(array):
            several = [
                (*index[: contiguous % len(index)], index[contiguous] + place, *index[contiguous % len(index) + 1 :])
                for place in range(width)
            ]
            if all(one in wanted and one not in found for one in several) and _is_aligned(w, array, index, width):
                group = several
                break
        outs = [w.outs[array][one] for one in group] if array in w.outs else None
        values = load_elements(w, array, index, len(group), _bounds(w, wanted[index], index), outs)
        found.update(zip(group, values, strict=True))
    w.kept[array] = found


def _is_aligned(w: Writing, array: str, index: Sequence[Linear], width: int) -> bool:
    """Whether so many elements from this one on are at an aligned address, and masked together."""
    if array in w.held:
        return position(w, w.held[array][0], index).is_multiple(width, {})
    if not w.plan.extents(array)[-1].is_multiple(width, w.plan.multiples):
        return False
    return index[-1].is_multiple(width, w.plan.multiples)


def masks_together(w: Writing, index: Sequence[Linear], width: int) -> bool:
    """Whether the limits of the axes in an index are multiples of the width, where they are masked."""
    return all(
        w.plan.is_exact(axis) or w.state.extent(axis).is_multiple(width, w.plan.multiples)
        for axis in w.plan.axes_of(index[-1])
    )


def load_elements(
    w: Writing,
    array: str,
    index: Sequence[Linear],
    width: int,
    limits: Sequence[Below],
    outs: list[Value] | None = None,
) -> list[Value]:
    """Elements from a buffer, or from global memory where they are in bounds, as f32."""
    element = w.algorithm.arrays[array].element
    if array in w.held:
        buffer, number = w.held[array]
        source = w.addresses.shared(number, position(w, buffer, index), READ if buffer.slots > 1 else "")
        return load_numbers(source, "shared", element, width, None, outs)
    source = w.addresses.element(array, index)
    return load_numbers(source, "global", element, width, w.addresses.predicate(limits), None, w.hint(array))


def position(w: Writing, buffer: Buffer, index: Sequence[Linear]) -> Linear:
    """Where in a buffer an element is."""
    found = Linear()
    for one, origin, stride in zip(index, buffer.origin, buffer.strides, strict=True):
        found = found + (w.addresses.resolved(one) - w.addresses.resolved(origin)) * stride
    return found


def _bounds(w: Writing, load: Load, index: Sequence[Linear]) -> list[Below]:
    """The conditions that an element is one of the array, where that is not so for all iterations."""
    found = []
    for one, extent, at in zip(load.index, w.plan.extents(load.array), index, strict=True):
        if not load.is_inside or not all(w.plan.is_exact(axis) for axis in w.plan.axes_of(one)):
            found += [Below(at, extent), *([] if starts_inside(at) else [Below(at)])]
    return found


def element(w: Writing, load: Load) -> Value:
    """An element that a statement reads, once where it reads it twice."""
    index = tuple(w.addresses.resolved(w.plan.index(one)) for one in load.index)
    if load.array in w.kept:
        return w.kept[load.array][index]
    if load not in w.loaded:
        limits = _bounds(w, load, index) if not load.is_inside else []
        if load.array in w.algorithm.outputs:  # only the thread that writes an element reads it
            limits += w.first
        axes = {axis for one in load.index for axis in w.plan.axes_of(one)}
        w.loaded[load] = load_elements(w, load.array, index, 1, [*limits, *w.addresses.outside(axes)])[0]
    return w.loaded[load]


def key_of(w: Writing, one: Let | Reduce) -> tuple[str, tuple[int, ...]]:
    """The register of a number, for the iterations of unrolled loops that are being written."""
    names = [name for name in w.state.serial(one.axes) if name in w.plan.unrolled]
    return one.name, tuple(w.addresses.numbers[name] for name in names)


def statement_of(w: Writing, name: str) -> Let | Reduce:
    """The statement that makes a number."""
    return next(s for s in w.algorithm.statements if isinstance(s, (Let, Reduce)) and s.name == name)


def expression(w: Writing, value: Expression) -> Value:
    """A register, a predicate, or a Python number."""
    return write_expression(value, w.addresses, partial(number, w), partial(element, w))


def each(w: Writing, loops: Sequence[str]) -> Iterator[int]:
    """Number the iterations of unrolled loops that are not being written, as if they were."""
    inner = [loop for loop in loops if loop not in w.addresses.numbers and loop in w.plan.unrolled]
    counts = [range(w.state.count(w.state.part(loop)) or 1) for loop in inner]
    for number, numbers in enumerate(product(*counts)):
        w.addresses.numbers.update(zip(inner, numbers, strict=True))
        yield number
        for loop in inner:
            del w.addresses.numbers[loop]


def holding(w: Writing, limits: Sequence[Below], condition: Expression | None) -> Value | None:
    """The predicate that all limits and a condition hold; None where there are none."""
    when = w.addresses.predicate(limits)
    if condition is None:
        return when
    holds = expression(w, condition)
    return holds if when is None else emit("and.pred", [when, holds])


def number(w: Writing, name: str) -> Value:
    """A parameter, or what a statement has made."""
    return w.values[name] if name in w.values else w.made[key_of(w, statement_of(w, name))]
