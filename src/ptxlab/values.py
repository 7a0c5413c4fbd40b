"""`dataclass`, made in a third of the time: a command that starts makes more than a hundred of these classes.

It behaves as `dataclasses.dataclass` with the options that are here. That one compiles a text for each method that it
adds; here this is done for `__init__` alone, and the others are functions that know the names of the fields. A class
and those that inherit from it are made by the same one of the two.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

Method = Callable[..., Any]
Json = dict[str, Any]  # an object of JSON, as it is read or written


class _Factory:
    """The default, in a signature, of a value that is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _dataclass(
    cls: type[object] | None = None,
    /,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    frozen: bool = False,
    slots: bool = False,
) -> Any:
    """Add the methods of a value to a class, as `dataclasses.dataclass` does."""

    def make(plain: type[object]) -> type[Any]:
        own, said = frozenset(plain.__dict__), plain.__doc__
        made: type[Any] = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(plain)
        made.__doc__ = said
        fields = dataclasses.fields(made)
        methods: dict[str, Method | None] = {}
        if init:
            methods["__init__"] = _init(made, fields, frozen, slots)
        if repr:
            methods["__repr__"] = _repr([field.name for field in fields if field.repr])
        if eq:
            compared = [field.name for field in fields if field.compare]
            methods["__eq__"] = _eq(compared)
            methods["__hash__"] = _hash(compared) if frozen else None
        if frozen:
            methods |= _frozen(made, frozenset(field.name for field in fields))
        if frozen and slots:
            methods |= _state([field.name for field in fields])
        for name, method in methods.items():
            # A class that defines `__eq__` has None for `__hash__` among its own.
            if name in own and (name != "__hash__" or plain.__dict__[name] is not None):
                continue
            setattr(made, name, method)
            if method is not None:
                method.__name__, method.__qualname__ = name, f"{made.__qualname__}.{name}"
        return made

    return make if cls is None else make(cls)


def _init(cls: type[object], fields: Sequence[Field[object]], frozen: bool, slots: bool) -> Method:
    names: dict[str, Any] = {"_put": object.__setattr__, "_FACTORY": _FACTORY}
    parameters, lines, annotations = [], [], {}
    for field in fields:
        name = value = field.name
        given = f"_given_{name}"
        default = ""
        if field.default is not MISSING:
            names[given], default = field.default, f"={given}"
        elif field.default_factory is not MISSING:
            names[given], default = field.default_factory, "=_FACTORY"
            value = f"{given}() if {name} is _FACTORY else {name}"
        if field.init:
            parameters.append(f"{name}{default}")
            annotations[name] = field.type
        elif field.default_factory is not MISSING:
            value = f"{given}()"
        elif field.default is not MISSING and slots:
            value = given
        else:
            continue
        lines.append(f"_put(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(['self', *parameters])}):\n " + "\n ".join(lines or ["pass"]), names)
    made: Method = names["__init__"]
    made.__annotations__, made.__module__ = annotations | {"return": None}, cls.__module__
    return made


def _repr(names: Sequence[str]) -> Method:
    @recursive_repr()
    def show(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return show


def _values(names: Sequence[str]) -> Method:
    """A function that returns the fields of a value as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _eq(names: Sequence[str]) -> Method:
    values = _values(names)

    def compare(self: object, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return compare


def _hash(names: Sequence[str]) -> Method:
    values = _values(names)

    def scatter(self: object) -> int:
        return hash(values(self))

    return scatter


def _frozen(cls: type[Any], names: frozenset[str]) -> dict[str, Method]:
    def refuse(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def keep(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": refuse, "__delattr__": keep}


def _state(names: Sequence[str]) -> dict[str, Method]:
    """What `pickle` calls, which would otherwise assign to fields."""

    def save(self: object) -> list[Any]:
        return [getattr(self, name) for name in names]

    def restore(self: object, state: Sequence[object]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": save, "__setstate__": restore}


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
