"""Matrices that an instruction holds in the registers of a warp: which lane has which element.

`@holds` names, below the forms of an instruction, the function that says so for given modifiers. Pictures of fragments
are drawn from it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from .form import Modifiers
from .units.layouts import FragmentLayouts, Layout

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class Held:
    """An operand that is a matrix, or several: what it is, and where its elements are."""

    operand: str
    title: str
    layout: Layout
    is_transposed: bool = False  # a row of `layout` is a column of the matrix
    owners: Layout | None = None  # which lane has the address of each row of each matrix, if any


def holds(matrices: Callable[[Modifiers], Iterator[Held]]) -> Callable[[F], F]:
    """Say, below the forms of an instruction, which matrices it holds in registers."""

    def note(function: F) -> F:
        function.holds = matrices  # type: ignore[attr-defined]
        return function

    return note


def held_by_mma(
    found: FragmentLayouts, atype: str, btype: str, ctype: str, dtype: str, *, sparse: bool = False, remark: str = ""
) -> Iterator[Held]:
    """The four matrices of a multiplication by a warp."""
    stored = ", of which half is stored" if sparse else ""
    b = found.b.transposed if found.b.copies == 1 else found.b
    yield Held("a", f"A, {extent(found.a)} {atype}{stored}{remark}", found.a)
    yield Held("b", f"B, {extent(b)} {btype}{remark}", found.b, is_transposed=True)
    yield Held("c", f"C, {extent(found.c)} {ctype}{remark}", found.c)
    yield Held("d", f"D, {extent(found.d)} {dtype}{remark}", found.d)


def extent(layout: Layout) -> str:
    """`16x8`, or `4 matrices of 8x8`"""
    several = f"{layout.copies} matrices of " if layout.copies > 1 else ""
    return f"{several}{layout.rows}x{layout.columns}"
