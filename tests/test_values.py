"""`ptxlab.values.dataclass` beside that of Python."""

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from ptxlab.values import dataclass

V = TypeVar("V")
OPTIONS = [
    {},
    {"frozen": True},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"eq": False},
    {"frozen": True, "eq": False, "slots": True},
    {"repr": False},
    {"frozen": True, "init": False},
]


def classes(make: Any, options: dict[str, Any]) -> list[Any]:
    """Classes as people write them."""

    @make(**options)
    class Point:
        """Two numbers."""

        x: int
        y: int = 2
        name: ClassVar[str] = "point"
        tags: list[int] = field(default_factory=list, compare=False)
        hidden: int = field(default=7, repr=False)

        @property
        def total(self) -> int:
            return self.x + self.y

    @make(**options)
    class Nothing:
        """No field."""

    @make(**options)
    class One(Generic[V]):
        """One field."""

        value: V

    @make(**options)
    class Three(Point):
        """One more."""

        z: int = 3

    return [Point, Nothing, One, Three]


def outcome(action: Any) -> Any:
    try:
        return action()
    except Exception as problem:
        return type(problem), str(problem).replace(".__init__", "")


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_is_the_dataclass_of_python(options: dict[str, Any]) -> None:
    ours, theirs = classes(dataclass, options), classes(dataclasses.dataclass, options)
    given: list[list[tuple[Any, ...]]] = [
        [(1,), (1, 2), (1, 5, [3]), (1, 2, [], 8), (), (1, 2, 3, 4, 5)], [(), (1,)], [(1,), ((),), ([],)],
        [(1,), (1, 2, [], 7, 3), ()],
    ]  # fmt: skip

    def described(cls: Any, other: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
        found: list[Any] = [str(inspect.signature(cls)), cls.__doc__, cls.__match_args__]
        found.append([(one.name, one.type) for one in dataclasses.fields(cls)])
        values = [outcome(lambda given=given: cls(*given)) for given in arguments]
        for value in values:
            if isinstance(value, tuple):
                found.append(value)
                continue
            found += [repr(value) if options.get("repr", True) and options.get("init", True) else None]
            found += [outcome(lambda value=value, one=one: value == one) for one in (*values, other, value)]
            found += [outcome(lambda value=value: hash(value)) if options.get("eq", True) else None]
            for name in cls.__match_args__[:1]:
                found += [outcome(lambda value=value, name=name: setattr(value, name, 9)), getattr(value, name, None)]
                found += [outcome(lambda value=value, name=name: delattr(value, name))]
            found += [outcome(lambda value=value: dataclasses.asdict(dataclasses.replace(value)))]
        return found

    for mine, plain, arguments in zip(ours, theirs, given, strict=True):
        assert described(mine, ours[1], arguments) == described(plain, theirs[1], arguments)


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that is pickled: its class has a name in its module."""

    x: int
    y: tuple[int, ...] = ()


def test_values_are_pickled_and_stay_as_they_are() -> None:
    value = Kept(1, (2, 3))
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        value.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'y'"):
        del value.y


def test_a_class_keeps_the_methods_that_it_defines() -> None:
    @dataclass(frozen=True)
    class Named:
        x: int
        seen: list[int] = field(default_factory=list, init=False)

        def __post_init__(self) -> None:
            self.seen.append(self.x)

        def __repr__(self) -> str:
            return "named"

        def __hash__(self) -> int:
            return 5

    @dataclass
    class Compared:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

    assert (repr(Named(1)), hash(Named(1)), Named(3).seen) == ("named", 5, [3])
    assert Compared(1) == Compared(2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Compared(1))


def test_a_value_that_holds_itself_is_shown() -> None:
    @dataclass
    class Ring:
        next: Any = None

    ring = Ring()
    ring.next = ring
    assert repr(ring).endswith("Ring(next=...)")
