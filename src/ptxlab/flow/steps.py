"""The semantics of an instruction as a list of steps on values, which any domain can run.

A semantic function runs once on a machine that notes each operator as a step. An analysis of values then needs to know
about twenty operations on bits instead of all instructions: `mad.wide.s32`, `bfe`, `shf` and `prmt` are made of casts,
shifts, products and choices. Whatever is not computed from operands (memory, other lanes, clocks) is `unknown`.

>>> from ptxlab.isa import opcode
>>> mad = opcode("mad.wide.u32").match(("u64", "u32", "u32", "u64"))
>>> for step in steps_of(mad, ()).steps:
...     print(step.operation, step.type, step.parts)
operand .u32 ()
operand .u32 ()
operand .u64 ()
cast .u64 (0,)
cast .u64 (1,)
* .u64 (3, 4)
+ .u64 (5, 2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, NamedTuple

from ptxlab.isa import Match, Operation
from ptxlab.isa.effects import placeholder
from ptxlab.isa.exact import results_of
from ptxlab.isa.operand import Expected
from ptxlab.isa.recorder import EffectRecorder, Placeholder
from ptxlab.isa.types import Type, type_named
from ptxlab.isa.undefined import Following
from ptxlab.values import dataclass

PREDICATE = type_named("pred")


class Step(NamedTuple):
    """One operation on the results of earlier steps, its `parts`.

    Besides the operators `+ - * // % & | ^ << >> < <= ==` (as `machine.Value` has them) there are `operand`,
    `constant`, `select`, `cast` (an integer as another type), `pack` and `part` (at `detail` bits), `call` of a native
    function, `arithmetic` on floats, `shuffle` of the lanes of a warp, `window` (where a state space starts among
    generic addresses), `peer` (an address in the block of a rank) and `unknown`.
    """

    operation: str
    type: Type
    parts: tuple[int, ...] = ()
    of: Type = PREDICATE
    """The type that the parts are read as, if it is one type."""
    detail: Any = None
    """The name of an operand, a constant, the types that are packed, the function of a call and its arguments."""

    @property
    def read_as(self) -> Sequence[Type]:
        """The types that the parts are read as."""
        if self.operation == "pack":
            return list(self.detail)
        if self.operation == "call":
            return [one for one in self.detail[1] if isinstance(one, Type)]
        return (self.of,) * len(self.parts)


@dataclass(frozen=True)
class Steps:
    """What an instruction computes: `results` has the step of each result, by the name of the operand and its element.

    A result that is not there is not computed from operands.
    """

    steps: tuple[Step, ...]
    results: dict[tuple[str, int], Noted]


@dataclass(frozen=True, slots=True, eq=False)
class Noted:
    """The result of a step, read as a type."""

    machine: _Machine
    at: int
    type: Type

    def _with(self, operation: str, other: object, *, swaps: bool = False, compares: bool = False) -> Noted:
        beside = self.machine.noted(other, self.type)
        parts = (beside.at, self.at) if swaps else (self.at, beside.at)
        return self.machine.add(Step(operation, PREDICATE if compares else self.type, parts, self.type))

    def __add__(self, other: object) -> Noted:
        return self._with("+", other)

    def __sub__(self, other: object) -> Noted:
        return self._with("-", other)

    def __mul__(self, other: object) -> Noted:
        return self._with("*", other)

    def __floordiv__(self, other: object) -> Noted:
        return self._with("//", other)

    def __mod__(self, other: object) -> Noted:
        return self._with("%", other)

    def __and__(self, other: object) -> Noted:
        return self._with("&", other)

    def __or__(self, other: object) -> Noted:
        return self._with("|", other)

    def __xor__(self, other: object) -> Noted:
        return self._with("^", other)

    def __neg__(self) -> Noted:
        return self.machine.noted(0, self.type) - self

    def __invert__(self) -> Noted:
        return self ^ -1

    def __lshift__(self, other: object) -> Noted:
        return self.machine.add(Step("<<", self.type, (self.at, self.machine.noted(other, self.type).at), self.type))

    def __rshift__(self, other: object) -> Noted:
        return self.machine.add(Step(">>", self.type, (self.at, self.machine.noted(other, self.type).at), self.type))

    def __lt__(self, other: object) -> Noted:
        return self._with("<", other, compares=True)

    def __le__(self, other: object) -> Noted:
        return self._with("<=", other, compares=True)

    def __gt__(self, other: object) -> Noted:
        return self._with("<", other, swaps=True, compares=True)

    def __ge__(self, other: object) -> Noted:
        return self._with("<=", other, swaps=True, compares=True)

    def __eq__(self, other: object) -> Noted:  # type: ignore[override]
        return self._with("==", other, compares=True)

    def __ne__(self, other: object) -> Noted:  # type: ignore[override]
        return ~(self == other)

    def __bool__(self) -> bool:
        raise AssertionError("a decision on a value is taken by `k.select`, not by `if`")


class _SelectedError(Exception):
    """A video instruction asks for what is not in its form: the bytes that an operand chooses, its sign."""


@dataclass
class _Machine(EffectRecorder):
    """Notes what is computed; what the recorder knows nothing of is `unknown`."""

    computed: list[Step] = field(default_factory=list)

    def add(self, step: Step) -> Noted:
        self.computed.append(step)
        return Noted(self, len(self.computed) - 1, step.type)

    def noted(self, value: Any, type: Type) -> Noted:
        """A value beside another of a type, which a plain integer takes."""
        if isinstance(value, Noted):
            return value
        if isinstance(value, int):
            return self.constant(type.name, value)
        return self.add(Step("unknown", value.type))

    def constant(self, type: str, value: int) -> Noted:  # type: ignore[override]
        kind = type_named(type)
        return self.add(Step("constant", kind, detail=value & ((1 << kind.width) - 1)))

    def selection(self, operand: str) -> str | None:
        raise _SelectedError

    def has_minus(self, operand: str) -> bool:
        raise _SelectedError

    def select(self, condition: object, yes: object, no: object) -> Noted:  # type: ignore[override]
        first = self.noted(yes, PREDICATE)
        parts = (self.noted(condition, PREDICATE).at, first.at, self.noted(no, first.type).at)
        return self.add(Step("select", first.type, parts, first.type))

    def cast(self, value: object, type: str) -> Noted:  # type: ignore[override]
        given = self.noted(value, PREDICATE)
        return self.add(Step("cast", type_named(type), (given.at,), given.type))

    def reinterpret(self, value: object, type: str) -> Noted:  # type: ignore[override]
        return Noted(self, self.noted(value, PREDICATE).at, type_named(type))

    def pack(self, parts: Sequence[object], type: str) -> Noted:  # type: ignore[override]
        given = [self.noted(part, PREDICATE) for part in parts]
        types = tuple(part.type for part in given)
        return self.add(Step("pack", type_named(type), tuple(part.at for part in given), given[0].type, types))

    def unpack(self, value: object, type: str) -> tuple[Noted, ...]:  # type: ignore[override]
        given, kind = self.noted(value, PREDICATE), type_named(type)
        return tuple(
            self.add(Step("part", kind, (given.at,), given.type, bit))
            for bit in range(0, given.type.width, kind.width)
        )  # fmt: skip

    def arithmetic(self, operation: str, *operands: object, **how: object) -> Noted:  # type: ignore[override]
        given = [self.noted(operand, PREDICATE) for operand in operands]
        parts = tuple(one.at for one in given)
        return self.add(Step("arithmetic", given[0].type, parts, given[0].type, (operation, how)))

    def call(self, function: Callable[..., object], *arguments: object, type: str) -> Noted:  # type: ignore[override]
        given = [one if isinstance(one, int) else self.noted(one, PREDICATE) for one in arguments]
        parts = tuple(one.at for one in given if isinstance(one, Noted))
        how = tuple(one if isinstance(one, int) else one.type for one in given)
        return self.add(Step("call", type_named(type), parts, detail=(function, how)))

    def window(self, space: str) -> Any:
        return self.add(Step("window", type_named("u64"), detail=space))

    def address_in(self, address: object, rank: object, space: str | None) -> Noted:  # type: ignore[override]
        given, number = self.noted(address, PREDICATE), self.noted(rank, type_named("u32"))
        return self.add(Step("peer", given.type, (given.at, number.at), given.type))

    def collect(
        self,
        function: Callable[..., object],
        members: object,
        inputs: Sequence[object],
        results: Sequence[str],
        *,
        following: Following | None = None,
        **how: object,
    ) -> tuple[Any, ...]:
        if following is None or len(results) != 2 or following.function is not function:
            return tuple(Placeholder(type_named(name)) for name in results)
        parts = tuple(self.noted(one, PREDICATE).at for one in inputs)
        return tuple(
            self.add(Step("shuffle", type_named(name), parts, type_named("b32"), (function, how["statics"], number)))
            for number, name in enumerate(results)
        )


_KNOWN: dict[tuple[int, tuple[int, ...]], tuple[Match, Steps | None]] = {}


def steps_of(match: Match, immediates: tuple[int, ...]) -> Steps | None:
    """The steps of a form; `immediates` are the operands that can only be constants. None: it has no such steps."""
    key = (id(match), immediates)
    if key not in _KNOWN:
        _KNOWN[key] = match, _run(match, immediates)
    return _KNOWN[key][1]


def _run(match: Match, immediates: tuple[int, ...]) -> Steps | None:
    form, m = match.form, match.candidate.modifiers
    effects = match.effects
    if form.semantics is None or effects.accesses or effects.steps or effects.barrier:
        return None
    if effects.converges and effects.computes is not Operation.SHUFFLE:
        return None
    machine, numbers = _Machine(), iter(immediates)
    given: dict[str, Any] = {}
    for expected in match.expected:
        if expected.role == "write":
            continue
        given[expected.name] = next(numbers) if expected.kind == "immediate" else _operand(machine, expected)
    names = form.semantics.__code__.co_varnames[2 : form.semantics.__code__.co_argcount]
    try:
        returned = form.semantics(machine, m, *(given.get(name) for name in names))
    except _SelectedError:
        return None
    wanted = results_of(form, m)
    results = (returned,) if len(wanted) == 1 else returned or ()
    found: dict[tuple[str, int], Noted] = {}
    for one, result in zip(wanted, results, strict=True):
        assert one.type is not None
        parts = machine.unpack(result, one.type.name) if one.count and not isinstance(result, tuple) else result
        for number, part in enumerate(parts if isinstance(parts, tuple) else (parts,)):
            if isinstance(part, Noted):
                found[one.name, number] = part
    return Steps(tuple(machine.computed), found)


def _operand(machine: _Machine, expected: Expected) -> Any:
    """The steps that read an operand, one for each element of a vector."""
    type = expected.type
    if expected.kind != "value" or type is None:
        return placeholder(expected)
    read = [machine.add(Step("operand", type, detail=(expected.name, n))) for n in range(expected.count or 1)]
    return tuple(read) if expected.count else read[0]
