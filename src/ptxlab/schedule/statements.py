"""What is computed, without how: arrays, loops, and statements with expressions.

Loops are axes by name; a statement has those around it. `Let` and `Reduce` make a number for each iteration of these,
`Store` writes one to an array. All iterations are independent but for the sums, maxima and minima of `Reduce`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from ptxlab.author.lines import refuse_line
from ptxlab.schedule.linear import Linear


class Gathered(str):
    """An element of an array of whole numbers, as a name in a sum: `ids[i]` in `x[ids[i], j]`."""

    load: Load

    @staticmethod
    def of(load: Load) -> Gathered:
        """The name of an element."""
        made = Gathered(f"{load.array}[{', '.join(map(str, load.index))}]")
        made.load = load
        return made


def gathered(*sums: Linear) -> tuple[Load, ...]:
    """The elements of arrays that are in sums."""
    return tuple(name.load for one in sums for name, _ in one.terms if isinstance(name, Gathered))


class Expression:
    """A number that is computed in f32."""

    @property
    def parts(self) -> tuple[Expression, ...]:
        """What it is computed from."""
        return ()


@dataclass(frozen=True)
class Number(Expression):
    """A constant."""

    value: float


@dataclass(frozen=True)
class Index(Expression):
    """A loop variable, a size, an element of an array of whole numbers, or a sum of these, as a number."""

    value: Linear

    @property
    def parts(self) -> tuple[Expression, ...]:
        """The elements in it."""
        return gathered(self.value)


@dataclass(frozen=True)
class Name(Expression):
    """The number that a `Let` or a `Reduce` made, or a parameter."""

    name: str


@dataclass(frozen=True)
class Load(Expression):
    """An element of an array; `is_inside` where its indices are in bounds for all iterations."""

    array: str
    index: tuple[Linear, ...]
    is_inside: bool = True

    @property
    def parts(self) -> tuple[Load, ...]:
        """The elements that are its indices."""
        return gathered(*self.index)

    @property
    def names(self) -> frozenset[str]:
        """All that it depends on."""
        found = {name for one in self.index for name in one.names}
        return frozenset(found.union(*(one.names for one in self.parts)))


@dataclass(frozen=True)
class Applied(Expression):
    """A function of one to three numbers: see `emit.py` for those that there are."""

    name: str
    operands: tuple[Expression, ...]

    @property
    def parts(self) -> tuple[Expression, ...]:
        """Its operands."""
        return self.operands


@dataclass(frozen=True)
class Statement:
    """A statement with the axes of the loops around it, from the outermost, and its line."""

    axes: tuple[str, ...]
    value: Expression
    line: int


@dataclass(frozen=True)
class Let(Statement):
    """A name for a number."""

    name: str


@dataclass(frozen=True)
class Reduce(Statement):
    """The sum, maximum or minimum of a value over further axes, where a condition holds."""

    name: str
    over: tuple[str, ...]
    operation: str
    condition: Expression | None = None


@dataclass(frozen=True)
class Store(Statement):
    """A value for an element of an array, where a condition holds."""

    array: str
    index: tuple[Linear, ...]
    condition: Expression | None = None


@dataclass(frozen=True)
class Array:
    """A parameter that is an array: its elements and its extents."""

    name: str
    element: str
    extents: tuple[Linear, ...]


@dataclass(frozen=True, eq=False)
class Algorithm:
    """A Python function that was read as an algorithm."""

    name: str
    parameters: tuple[str, ...]
    arrays: Mapping[str, Array]
    sizes: tuple[str, ...]
    """The names of extents, in the order in which they appear."""
    axes: Mapping[str, Linear]
    """Their extents."""
    statements: tuple[Statement, ...]
    function: Callable[..., Any]
    text: str = ""
    """The Python text, where it was made from a kernel."""

    @property
    def reduced(self) -> frozenset[str]:
        """The axes that some statement reduces over."""
        return frozenset(axis for one in self.statements if isinstance(one, Reduce) for axis in one.over)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The arrays that are written."""
        return tuple(dict.fromkeys(one.array for one in self.statements if isinstance(one, Store)))

    def refuse(self, code: str, message: str, line: int, label: str = "", helps: tuple[str, ...] = ()) -> NoReturn:
        """Raise an error that shows a line of the algorithm."""
        refuse_line(code, message, self.function.__code__.co_filename, line, label, helps)


def walk(*roots: Expression | None) -> Iterator[Expression]:
    """Expressions and all that they are made of."""
    for root in roots:
        if root is not None:
            yield root
            yield from walk(*root.parts)


def loads(statement: Statement) -> list[Load]:
    """What a statement reads."""
    condition = getattr(statement, "condition", None)
    return [one for one in walk(statement.value, condition) if isinstance(one, Load)]


def names(statement: Statement) -> frozenset[str]:
    """The numbers that a statement reads."""
    condition = getattr(statement, "condition", None)
    return frozenset(one.name for one in walk(statement.value, condition) if isinstance(one, Name))
