"""What is recognized of a kernel in PTX, and the Python text of it: loops, sums, stores, and the shapes of arrays."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from keyword import iskeyword
from typing import NoReturn

from ptxlab.ir import Function, Module
from ptxlab.ir.mangled import last_part, plain
from ptxlab.ir.origin import at_origin
from ptxlab.ir.statements import Instruction, Label
from ptxlab.report import PtxError, error
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.read import FUNCTIONS
from ptxlab.schedule.symbolic import times

_TAKEN = (*FUNCTIONS, "f32", "grid", "max", "min", "range", "sum")  # names that algorithms use
Dimension = tuple[
    tuple[str, ...], int, list[str], int
]  # its pitch, the loops that are its index, and what is added to it


@dataclass
class Recognized:
    """A kernel, as far as it has been executed on symbols."""

    module: Module
    function: Function
    axes: dict[str, str] = field(default_factory=dict)
    """The names of independent loops, by dimension of the grid."""
    limits: dict[str, Linear] = field(default_factory=dict)
    """What indices of these are compared with."""
    loops: dict[str, Linear] = field(default_factory=dict)
    """Loops that add up, and their extents."""
    sums: list[tuple[str, str]] = field(default_factory=list)
    """Names, and the text of what they are."""
    accesses: list[tuple[str, Linear, Instruction]] = field(default_factory=list)
    """The array and how many elements on, for each load and store."""
    stores: list[tuple[str, Linear, str, Instruction]] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    """Parameters that are numbers."""
    threads: dict[str, int] = field(default_factory=dict)
    """Of a block, by dimension, where the kernel says so."""

    @property
    def name(self) -> str:
        """What the kernel is called, as a name of Python."""
        return _identifier(last_part(plain(self.function.name)))

    @cached_property
    def parameters(self) -> dict[str, str]:
        """The names of parameters in Python."""
        return {p.name: _identifier(p.called or p.name) for p in self.function.parameters}

    @cached_property
    def pointers(self) -> set[str]:
        """The parameters that may be addresses."""
        return {self.parameters[p.name] for p in self.function.parameters if p.type is not None and p.type.bits == 64}

    def refuse(self, where: Instruction | Label | None, message: str, help: str = "") -> NoReturn:
        """Refuse the kernel on a line of it."""
        span = None if where is None else self.module.span(where)
        found = error("not-an-algorithm", message, span, helps=[help] if help else [])
        raise PtxError(at_origin(self.module, [found]))

    def named(self, register: str) -> str:
        """A register as a name of Python that nothing else has."""
        name = _identifier(register.lstrip("%"))
        taken = {*self.parameters.values(), *self.axes.values(), *self.loops}
        return f"{name}_" if name in taken else name

    def size(self, value: Linear) -> str:
        """An extent as text: a number, a parameter, or a sum of these."""
        if any("*" in name for name in value.names):
            self.refuse(None, "an extent that is a product")
        return str(value)

    def number(self, value: Linear, one: Instruction) -> str:
        """An integer that is a size, as a number."""
        names = {factor for name in value.names for factor in name.split("*")}
        if value == Linear() or not names <= {*self.parameters.values()} - self.pointers:
            self.refuse(one, "an index as a number", "write the algorithm in Python")
        return f"({self.size(value)})"

    def _strides(self, array: str, offset: Linear, one: Instruction) -> list[Dimension]:
        """The dimensions of an access, from the outermost."""
        axes = {*self.axes.values(), *self.loops}
        found: dict[tuple[tuple[str, ...], int], list[str]] = {}
        for product, count in offset.terms:
            own = [name for name in product.split("*") if name in axes]
            rest = tuple(name for name in product.split("*") if name not in axes)
            if len(own) != 1 or any(name.startswith("%") for name in rest):
                self.refuse(one, f"an index of `{array}` that is not one loop times a pitch")
            found.setdefault((rest, count), []).append(own[0])
        order = sorted(found.items(), key=lambda item: (len(item[0][0]), item[0][1]), reverse=True)
        if not order or order[-1][0] != ((), 1):
            self.refuse(one, f"rows of `{array}` that are not read one element after the other")
        return [(*key, names, offset.constant if n == len(order) - 1 else 0) for n, (key, names) in enumerate(order)]

    def text(self) -> str:
        """The Python text of the algorithm."""
        shapes: dict[str, list[str]] = {}
        extents = {**self.limits, **self.loops}
        written = [self._strides(array, offset, one) for array, offset, _, one in self.stores]
        for dimensions in written:  # a row of the result is as long as the next one is away
            for outer, inner in pairwise(dimensions):
                if len(inner[2]) == 1 and inner[0] == () and inner[1] == 1:
                    extents.setdefault(inner[2][0], Linear.of(times(*outer[0]) if outer[0] else 1) * outer[1])
        sizes = {axis: self.size(extents[axis]) if axis in extents else axis.upper() for axis in self.axes.values()}
        sizes |= {axis: self.size(limit) for axis, limit in self.loops.items()}
        indices = []
        beyond: dict[str, int] = {}  # how far arrays of one dimension are read beyond the last iteration
        for array, offset, one in self.accesses:
            beyond[array] = max(beyond.get(array, 0), self._strides(array, offset, one)[0][3])
        for array, offset, one in self.accesses:
            dimensions = self._strides(array, offset, one)
            shape, index = [], []
            for n, (_, _, names, constant) in enumerate(dimensions):
                if n:
                    above, pitch = dimensions[n - 1][:2]
                    shape.append(str(pitch) if not above else above[0] if len(above) == 1 and pitch == 1 else "?")
                else:
                    more = f" + {beyond[array]}" if beyond[array] and len(dimensions) == 1 else ""
                    shape.append(sizes[names[0]] + more)
                index.append(" + ".join([*names, *([str(constant)] if constant else [])]))
            if "?" in shape or shapes.setdefault(array, shape) != shape:
                self.refuse(one, f"`{array}` is read with two shapes, or one that is not known")
            indices.append(", ".join(index))
        given = [name for name in self.parameters.values() if name in shapes or name in self.scalars]
        types = {name: f"f32[{', '.join(n if n.isdigit() else repr(n) for n in shapes[name])}]" for name in shapes}
        head = ", ".join(f"{name}: {types.get(name, 'f32')}" for name in given)
        axes = list(dict.fromkeys(name for dimensions in written for _, _, names, _ in dimensions for name in names))
        lines = [f"def {self.name}({head}):"]
        limits = ", ".join(sizes[axis] for axis in axes)
        lines.append(f"    for {', '.join(axes)} in {'grid' if len(axes) > 1 else 'range'}({limits}):")
        lines += [f"        {name} = {text}" for name, text in self.sums]
        for array, offset, value, _ in self.stores:
            place = next(n for n, (a, o, _) in enumerate(self.accesses) if a == array and o == offset)
            lines.append(f"        {array}[{{{place}}}] = {value}")
        return "\n".join(lines).format(*indices) + "\n"


def _identifier(name: str) -> str:
    """A name as one of Python that means nothing else there."""
    found = re.sub(r"\W", "_", name)
    return f"{found}_" if iskeyword(found) or found in _TAKEN else found
