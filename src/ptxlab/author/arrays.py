"""Arrays: variables of a kernel with extents, `tile[i, j]`."""

from __future__ import annotations

from typing import Any

from ptxlab.author.constants import is_number
from ptxlab.author.elements import element_of, memory_type
from ptxlab.author.emit import emit
from ptxlab.author.lines import assigned_name, refuse
from ptxlab.author.pointers import Pointer, address_class
from ptxlab.author.trace import current
from ptxlab.author.values import Scalar


class Array(Pointer):
    """A variable with extents: `tile[i, j]` takes one index a dimension."""

    def __init__(
        self, element: type[Scalar], space: str, name: str, extents: tuple[int, ...], register: Scalar
    ) -> None:
        super().__init__(element, space, register, name)
        self.extents = extents

    @property
    def address(self) -> Scalar:
        """Where the array starts, in a register."""
        return self._base

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, in each dimension."""
        strides, total = [], 1
        for extent in reversed(self.extents):
            strides.append(total)
            total *= extent
        return tuple(reversed(strides))

    def _element(self, indices: tuple[Any, ...]) -> Pointer:
        if len(indices) != max(len(self.extents), 1):
            refuse("not-an-index", f"`{self.symbol}` takes {max(len(self.extents), 1)} indices, {len(indices)} given")
        for dimension, (index, extent) in enumerate(zip(indices, self.extents, strict=False)):
            if is_number(index) and extent and not 0 <= index < extent:
                which = f"`{self.symbol}`" if len(indices) == 1 else f"dimension {dimension} of `{self.symbol}`"
                count = f"{extent} element{'s' * (extent > 1)}"
                refuse("outside-array", f"index {index} is outside of {which}, which has {count}")
        strides = self.strides or (1,)
        return self._advance([(index, stride * self.size) for index, stride in zip(indices, strides, strict=True)])


def declare(space: str, element: type[Scalar], extents: tuple[int, ...], align: int | None, name: str | None) -> Array:
    """Declare an array in the body that is being written, and take its address."""
    trace = current("an array")
    wanted = name or _name_of_variable() or {"shared": "tile", "local": "stack"}.get(space, space)
    chosen, number = wanted, 1
    while chosen in trace.names or chosen in trace.program.names:
        number += 1
        chosen = f"{wanted}_{number}"
    trace.names.add(chosen)
    size = max(element.type.width // 8, 1)
    count = 1
    for extent in extents:
        count *= extent
    dimensions = f"[{count}]" if extents else ""
    trace.alignments[chosen] = align or size
    trace.write(f".{space} .align {align or size} .{memory_type(element)} {chosen}{dimensions};")
    return array_of(element, space, chosen, extents)


def _name_of_variable() -> str | None:
    """The Python variable that the array is assigned to, if PTX can have a variable of that name too."""
    name = assigned_name()
    return name if name is not None and name.isascii() and name[0] != "_" else None


def array_of(element: type[Scalar], space: str, name: str, extents: tuple[int, ...]) -> Array:
    """An array by its name; its address is taken by one `mov`."""
    cls = address_class(space)
    array = Array(element_of(element), space, name, extents, cls())
    emit(f"mov.{cls.type.name}", [array], out=array.register)
    return array
