"""Variables of a kernel: arrays in shared, local, global and constant memory."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from ptxlab.author.arrays import Array, array_of, declare
from ptxlab.author.constants import fits, float_bits, is_number, print_float, print_integer
from ptxlab.author.elements import element_of, memory_type
from ptxlab.author.lines import refuse
from ptxlab.author.operand import describe
from ptxlab.author.trace import current
from ptxlab.author.values import Scalar


def shared(element: type[Scalar], *extents: int, align: int | None = None, name: str | None = None) -> Array:
    """An array in the shared memory of the block."""
    return declare("shared", element_of(element), _checked(extents), align, name)


def local(element: type[Scalar], *extents: int, align: int | None = None, name: str | None = None) -> Array:
    """An array of each thread's own."""
    return declare("local", element_of(element), _checked(extents), align, name)


def dynamic_shared(element: type[Scalar], *extents: int, align: int = 16) -> Array:
    """The shared memory whose size the launch says; all of these start at the same address.

    Extents beside the first say how an index of several numbers counts: `dynamic_shared(f32, 0, 33)[i, j]`.
    """
    trace = current("`ptx.dynamic_shared`")
    program, name = trace.program, "dynamic_shared_memory"
    declaration = f"\n.extern .shared .align {{}} .b8 {name}[];"
    if align > program.dynamic_alignment:
        if program.dynamic_alignment:
            program.items.remove(declaration.format(program.dynamic_alignment))
        program.names.add(name)
        program.items.insert(0, declaration.format(align))
        program.dynamic_alignment = align
    trace.alignments[name] = program.dynamic_alignment
    return array_of(element, "shared", name, extents)


def constant(
    element: type[Scalar], values: Iterable[object] | int, *, align: int | None = None, name: str = "constants"
) -> Array:
    """A table in constant memory, with its values; or with so many zeros, until the host sets it."""
    count, listed = (None, values) if isinstance(values, Iterable) else (values, None)
    return _module_variable("const", element, count, listed, align, name)


def global_(
    element: type[Scalar],
    count: int | None = None,
    values: Iterable[object] | None = None,
    *,
    align: int | None = None,
    name: str = "global_array",
) -> Array:
    """An array in global memory that belongs to the module and outlives a launch; zeros, or these values."""
    return _module_variable("global", element, count, values, align, name)


def _module_variable(
    space: str, element: type[Scalar], count: int | None, values: Iterable[object] | None, align: int | None, name: str
) -> Array:
    program = current("a variable").program
    chosen = program.unique(name)
    listed = None if values is None else list(values)
    extent = len(listed) if listed is not None else _checked((count,))[0] if count else 0
    if not extent:
        refuse("illegal-declaration", f"`{chosen}` has no elements", helps=["give a count, or values"])
    element_of(element)
    initial = "" if listed is None else f" = {{{', '.join(_initial(value, element) for value in listed)}}}"
    size = max(element.type.width // 8, 1)
    program.items.append(f"\n.{space} .align {align or size} .{memory_type(element)} {chosen}[{extent}]{initial};")
    return array_of(element, space, chosen, (extent,))


def _initial(value: Any, element: type[Scalar]) -> str:
    type = element.type
    if not is_number(value) or (type.kind != "f" and not hasattr(value, "__index__")):
        refuse("type-clash", f"a value of a table of `{type.name}` is {describe(value)}")
    if type.kind != "f":
        if not fits(operator.index(value), type):
            refuse("immediate-range", f"{value} does not fit into `{type.name}`")
        return print_integer(operator.index(value))
    if type.name in ("f32", "f64"):
        return print_float(float(value), type)
    return print_integer(float_bits(float(value), type.name))


def _checked(extents: tuple[int, ...]) -> tuple[int, ...]:
    for extent in extents:
        if not (is_number(extent) and hasattr(extent, "__index__") and extent > 0):
            refuse(
                "illegal-declaration",
                f"an extent of the array is {describe(extent)}, expected a positive Python integer",
                helps=["Python knows the size of an array; of `ptx.dynamic_shared(f32)`, the launch does"],
            )
    return tuple(operator.index(extent) for extent in extents)
