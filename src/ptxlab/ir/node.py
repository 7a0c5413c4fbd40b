"""What all parts of a program share: equality of structure, a readable `repr`, and that edits are noticed.

A part lists in `fields` what it consists of. Source offsets are never among them, so a program that was parsed,
printed and parsed again equals the first one.

Devices keep what they made of a program until it is edited. To find that out for the price of one comparison, every
assignment to a field of a part, and every change of a list in one, makes `latest_edit` another object. For that, a part
copies a list that it is given. An `Immutable` part is never changed in place: an edit puts another one there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeVar

T = TypeVar("T")


class _Edits:
    latest: object = object()


class _Building(threading.local):
    is_active = False


_edits, _building = _Edits(), _Building()


def latest_edit() -> object:
    """An object that is another one after any program of this process was edited."""
    return _edits.latest


def note_edit() -> None:
    if not _building.is_active:
        _edits.latest = object()


@contextmanager
def building() -> Iterator[None]:
    """Let this thread build parts that belong to no program yet: that is not an edit."""
    before, _building.is_active = _building.is_active, True
    try:
        yield
    finally:
        _building.is_active = before


class Parts(list[T]):
    """A list in a part of a program: changing it is an edit."""

    __slots__ = ()


def _noticed(method: Callable[..., object]) -> Callable[..., object]:
    def change(self: Parts[object], *args: object, **named: object) -> object:
        try:
            return method(self, *args, **named)
        finally:
            note_edit()

    return change


CHANGES = ("__delitem__", "__iadd__", "__imul__", "__setitem__", "append", "clear", "extend", "insert", "pop", "remove",
           "reverse", "sort")  # fmt: skip
for _name in CHANGES:
    setattr(Parts, _name, _noticed(getattr(list, _name)))


class Node:
    """A part of a program; two parts are equal when they have one class and equal `fields`.

    Statements and items can be edited in place, so they have no hash; operands, which are shared, have one.
    """

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]] = ()

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, Parts(value) if value.__class__ is list and name in self.fields else value)
        if not _building.is_active and name in self.fields:
            _edits.latest = object()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if self.__class__ is not other.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.fields)

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.fields)
        return f"{self.__class__.__name__}({parts})"


N = TypeVar("N", bound=Node)


def draft(kind: type[N]) -> type[N]:
    """A class to build parts of a kind by, where there are many: assignments in `__init__` are fast, and no edits.

    That `__init__` makes `Parts` of lists, and ends by assigning the kind to `__class__`.
    """
    return type(kind.__name__, (kind,), {"__slots__": (), "__setattr__": object.__setattr__})


class Immutable(Node):
    """An immutable part of a program: one object may be part of several others."""

    __slots__ = ()
    __setattr__ = object.__setattr__  # type: ignore[assignment]

    def __hash__(self) -> int:
        return hash(tuple([getattr(self, name) for name in self.fields]))
