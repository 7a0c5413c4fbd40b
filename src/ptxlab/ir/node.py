"""What all parts of a program share: equality of structure, and a readable `repr`.

A part lists in `fields` what it consists of. Source offsets are never among them, so a program that was parsed,
printed and parsed again equals the first one.
"""

from __future__ import annotations

from typing import ClassVar


class Node:
    """A part of a program; two parts are equal when they have one class and equal `fields`.

    Statements and items can be edited in place, so they have no hash; operands, which are shared, have one.
    """

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if self.__class__ is not other.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.fields)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.fields)
        return f"{self.__class__.__name__}({parts})"


class Value(Node):
    """An immutable part of a program: one object may be used in many places."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(tuple([getattr(self, name) for name in self.fields]))
