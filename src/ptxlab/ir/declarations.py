"""Variables, their initial values, and the statement that declares them.

A `Variable` is one declared name in any state space, a register or a parameter as well as a global array. Initial
values are a tree of `InitializerList` with `Immediate`, `SymbolAddress` and `Field` as leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from ptxlab.ir import mangled
from ptxlab.ir.node import Immutable, Node, Parts
from ptxlab.ir.operands import Immediate

if TYPE_CHECKING:
    from ptxlab.ir.statements import Comment
    from ptxlab.isa.types import Type


class SymbolAddress(Immutable):
    """The address of a variable or function in an initializer: `generic(name)+offset`, or a byte of it by `mask`."""

    __slots__ = ("generic", "mask", "name", "offset", "resolved")
    fields = ("name", "offset", "generic", "mask")

    def __init__(
        self, name: str, offset: int = 0, generic: bool = False, mask: int | None = None, resolved: bool = True
    ) -> None:
        self.name = name
        self.offset = offset
        self.generic = generic
        self.mask = mask
        self.resolved = resolved


class MaskedConstant(Immutable):
    """`mask(constant)`: one byte cut out of an integer constant."""

    __slots__ = ("mask", "value")
    fields = ("mask", "value")

    def __init__(self, mask: int, value: Immediate) -> None:
        self.mask = mask
        self.value = value


class Field(Immutable):
    """`name = value` in the initializer of a texture, surface or sampler."""

    __slots__ = ("name", "value")
    fields = ("name", "value")

    def __init__(self, name: str, value: Immediate | str) -> None:
        self.name = name
        self.value = value


class InitializerList(Immutable):
    """`{a, b, ...}`"""

    __slots__ = ("elements",)
    fields = ("elements",)

    def __init__(self, elements: tuple[Initializer, ...]) -> None:
        self.elements = elements


Initializer: TypeAlias = Immediate | SymbolAddress | MaskedConstant | Field | InitializerList


class PointerAttribute(Immutable):
    """`.ptr.global.align 16`: where a kernel parameter points; no state space means a generic address.

    Instead of a state space it may be `texref`, `samplerref` or `surfref`: the parameter is the handle of one.
    """

    __slots__ = ("align", "state_space")
    fields = ("state_space", "align")

    def __init__(self, state_space: str | None = None, align: int | None = None) -> None:
        self.state_space = state_space
        self.align = align


class Attribute(Immutable):
    """An entry of `.attribute(...)`: `.managed`, or `.unified(a, b)` with its integers."""

    __slots__ = ("arguments", "name")
    fields = ("name", "arguments")

    def __init__(self, name: str, arguments: tuple[int, ...] = ()) -> None:
        self.name = name
        self.arguments = arguments


class Variable(Node):
    """One declared name; `start` and `end` are the offsets of the name.

    `count` is the number in `%r<count>`, which declares `%r0` to `%r{count-1}`, and None for a plain name. `dimensions`
    holds the extents of an array, None for one left open; a scalar has no dimensions. State spaces have no dot.
    `bank` is the number of PTX 1.x's `.const[number]`. `comments` are those at a parameter: before it, or trailing it.
    `called` is its name in what the program was compiled from, where that is known.
    """

    __slots__ = (
        "align", "attributes", "bank", "called", "comments", "count", "dimensions", "end", "initializer", "linkage",
        "name", "pointer", "start", "state_space", "type", "vector",
    )  # fmt: skip
    fields = (
        "state_space", "type", "name", "vector", "align", "count", "dimensions", "initializer", "linkage", "attributes",
        "pointer", "bank", "comments",
    )  # fmt: skip

    def __init__(
        self,
        state_space: str,
        type: Type,
        name: str,
        *,
        vector: int = 1,
        align: int | None = None,
        count: int | None = None,
        dimensions: tuple[int | None, ...] = (),
        initializer: Initializer | None = None,
        linkage: str | None = None,
        attributes: tuple[Attribute, ...] = (),
        pointer: PointerAttribute | None = None,
        bank: int | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> None:
        self.state_space = state_space
        self.type = type
        self.name = name
        self.vector = vector
        self.align = align
        self.count = count
        self.dimensions = dimensions
        self.initializer = initializer
        self.linkage = linkage
        self.attributes = attributes
        self.pointer = pointer
        self.bank = bank
        self.comments: list[Comment] = Parts()
        self.called: str | None = None
        self.start = start
        self.end = end
        self.__class__ = Variable

    @property
    def title(self) -> str:
        """The name for people: `param_0` of a parameter that a compiler of C++ named, if its own is not known."""
        return self.called or mangled.title(self.name)

    @property
    def names(self) -> Iterator[str]:
        """Every name this declares: one, or `%r0`, `%r1`, ... of `%r<count>`."""
        if self.count is None:
            return iter((self.name,))
        return (f"{self.name}{number}" for number in range(self.count))

    @property
    def elements(self) -> int | None:
        """How many elements of `type` it holds, the length of a vector included; None where an extent is open."""
        total = self.vector
        for position, extent in enumerate(self.dimensions):
            if not extent:  # to ptxas, `[0]` is `[]`
                if position or not isinstance(self.initializer, InitializerList):
                    return None
                extent = len(self.initializer.elements)
            total *= extent
        return total


class Declaration(Node):
    """A statement or item that declares one variable or several of one type."""

    __slots__ = ("end", "start", "variables")
    fields = ("variables",)

    def __init__(self, variables: list[Variable], start: int | None = None, end: int | None = None) -> None:
        self.variables: list[Variable] = Parts(variables)
        self.start = start
        self.end = end
        self.__class__ = Declaration
