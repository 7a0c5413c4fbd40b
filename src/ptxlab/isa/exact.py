"""The reference machine: semantic functions computed on Python's integers, slowly, one thread after the other.

`evaluate` runs the semantics of a form for one thread, `evaluate_warp` for the lanes of a warp that execute it
together:

>>> from ptxlab.isa.exact import evaluate
>>> from ptxlab.isa.pattern import Pattern
>>> from ptxlab.isa.table import forms
>>> add = next(form for form in forms() if form.syntax == "add.sat.type d, a, b")
>>> one, largest = Pattern.of("s32", 1), Pattern.of("s32", 0x7FFFFFFF)
>>> evaluate(add, add.modifiers({"sat": "sat", "type": "s32"}), {"a": largest, "b": one})
(Pattern(.s32, 0x7fffffff),)

What a semantic function must not do (shift by the width or more, divide by zero, mix widths, use a value in an `if`)
fails an assertion here, so that the tests find it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ptxlab.isa.asynchronous import MatrixChunks
from ptxlab.isa.form import Form, Modifiers
from ptxlab.isa.machine import Value
from ptxlab.isa.operand import Expected, expect
from ptxlab.isa.pattern import Pattern, format_of
from ptxlab.isa.types import Type, type_named
from ptxlab.isa.undefined import Following
from ptxlab.native import bits_float, f32, f64, float_bits
from ptxlab.native import types as native
from ptxlab.native.functions import signature
from ptxlab.numbers import arithmetic
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.isa.machine import Statics

LANES = 32
WORD = 0xFFFFFFFF


@dataclass
class Exact:
    """One thread: the machine that a semantic function runs on. It has no memory of its own."""

    position: int = 0
    """The lane of the warp that the thread is in."""
    active: int = 1
    """The lanes that are here, one bit for each."""
    target: str = "sm_90"
    selections: Mapping[str, str] = field(default_factory=dict)
    minus: frozenset[str] = frozenset()
    carry: Value = field(default_factory=lambda: Pattern.of("pred", 0))
    group: int = 0
    """The number of its warp in the block."""
    memory: Any = b""
    """Shared memory, for what lanes read together."""
    replies: list[tuple[Value, ...]] = field(default_factory=list)
    """The results of this thread's warp collectives, in order; the collective after the last one stops the function."""
    _collectives: int = 0

    @property
    def lane(self) -> Value:
        return Pattern.of("u32", self.position)

    @property
    def warp(self) -> Value:
        return Pattern.of("u32", self.group)

    def active_mask(self) -> Value:
        return Pattern.of("u32", self.active)

    def selection(self, operand: str) -> str | None:
        return self.selections.get(operand)

    def has_minus(self, operand: str) -> bool:
        return operand in self.minus

    def constant(self, type: str, value: int) -> Value:
        return Pattern.of(type, value)

    def select(self, condition: Value, yes: Value, no: Value | int) -> Value:
        condition, yes = _pattern(condition), _pattern(yes)
        no = Pattern.of(yes.type, no) if isinstance(no, int) else _pattern(no)
        assert condition.type.kind == "p", f"{condition.type} is not a predicate"
        assert yes.type.width == no.type.width, f"{yes.type} or {no.type}"
        return yes if condition.bits else Pattern(yes.type, no.bits)

    def cast(self, value: Value, type: str) -> Value:
        assert value.type.kind in "busp", f"{value.type} is not an integer"
        assert type_named(type).kind in "bus", f"{type} is not an integer type"
        return Pattern.of(type, _pattern(value).number)

    def reinterpret(self, value: Value, type: str) -> Value:
        assert value.type.width == type_named(type).width, f"{value.type} as .{type}"
        return Pattern.of(type, _pattern(value).bits)

    def pack(self, parts: Sequence[Value], type: str) -> Value:
        bits = width = 0
        for part in parts:
            bits |= _pattern(part).bits << width
            width += part.type.width
        assert width == type_named(type).width, f"{width} bits as .{type}"
        return Pattern.of(type, bits)

    def unpack(self, value: Value, type: str) -> tuple[Value, ...]:
        width = type_named(type).width
        assert value.type.width % width == 0, f"{value.type} cut into .{type}"
        return tuple(
            Pattern.of(type, _pattern(value).bits >> position) for position in range(0, value.type.width, width)
        )

    def arithmetic(
        self,
        operation: str,
        *operands: Value,
        rounding: str = "rn",
        ftz: bool = False,
        sat: bool = False,
        relu: bool = False,
    ) -> Value:
        type = operands[0].type
        assert all(operand.type is type for operand in operands), f"{operation} of {operands}"
        flags = {name: True for name, given in (("ftz", ftz), ("sat", sat), ("relu", relu)) if given}
        function = getattr(arithmetic, operation)
        bits = [_pattern(operand).bits for operand in operands]
        return Pattern.of(type, function(format_of(type), *bits, rounding, **flags))

    def call(self, function: Callable[..., Any], *arguments: Value | int, type: str) -> Value:
        parameters = signature(function).parameters
        passed = [_argument(given, kind) for given, (_, kind) in zip(arguments, parameters, strict=True)]
        return _returned(function(*passed), type_named(type))

    def collect(
        self,
        function: Callable[..., object],
        members: Value | int,
        inputs: Sequence[Value],
        results: Sequence[str],
        *,
        statics: Statics = (),
        aligned: bool = False,
        reads_shared: bool = False,
        orders: bool = False,
        following: Following | None = None,
    ) -> tuple[Value, ...]:
        if self._collectives < len(self.replies):
            self._collectives += 1
            return self.replies[self._collectives - 1]
        named = members if isinstance(members, int) else _pattern(members).bits
        assert named >> self.position & 1, f"lane {self.position} is not in {named:#x}"
        given = (self.memory, *statics) if reads_shared else tuple(statics)
        raise _CollectiveError(function, named, tuple(map(_pattern, inputs)), tuple(results), given)

    @property
    def wgmma(self) -> Wgmma:
        return Wgmma()


class Wgmma:
    """MMAs are complete at once, and nothing is tracked."""

    def read(self, matrix: MatrixChunks[Value]) -> None: ...
    def fence(self) -> None: ...
    def compare(self) -> None: ...
    def commit(self) -> None: ...
    def wait(self, groups: int) -> None: ...


@dataclass
class _CollectiveError(Exception):
    """Stops a semantic function at a warp collective, until the other lanes are there."""

    function: Callable[..., Any]
    members: int
    inputs: tuple[Pattern, ...]
    results: tuple[str, ...]
    statics: tuple[object, ...]


Operands = Mapping[str, Any]
Results = tuple[Any, ...]  # of a `Pattern` each, or a tuple of them for a vector


def evaluate(form: Form, m: Modifiers, operands: Operands, k: Exact | None = None) -> Results:
    """The results of an instruction for one thread, alone in its warp; `k` keeps the carry flag for the next one."""
    k = k or Exact()
    return evaluate_warp(form, m, {k.position: operands}, {k.position: k})[k.position]


def evaluate_warp(
    form: Form, m: Modifiers, operands: Mapping[int, Operands], machines: Mapping[int, Exact] | None = None
) -> dict[int, Results]:
    """The results of an instruction for the lanes that execute it together, each with operands of its own."""
    assert form.semantics is not None, f"{form.syntax} has no semantics yet"
    active = sum(1 << lane for lane in operands)
    machines = machines or {lane: Exact(lane, active) for lane in operands}
    names = form.semantics.__code__.co_varnames[2 : form.semantics.__code__.co_argcount]
    finished: dict[int, Results] = {}
    for k in machines.values():
        k.replies.clear()
    while len(finished) < len(operands):
        stopped: dict[int, _CollectiveError] = {}
        for lane in operands.keys() - finished.keys():
            k, carry = machines[lane], machines[lane].carry
            k._collectives = 0
            try:
                results = form.semantics(k, m, *(operands[lane].get(name) for name in names))
            except _CollectiveError as stop:
                stopped[lane] = stop
                k.carry = carry  # the semantic function runs again from its start
            else:
                finished[lane] = _sorted_out(k, form, m, results)
        for members in {stop.members for stop in stopped.values()}:
            group = {lane: stop for lane, stop in stopped.items() if stop.members == members}
            for lane, reply in _run_collective(group).items():
                machines[lane].replies.append(reply)
    return finished


def results_of(form: Form, m: Modifiers) -> list[Expected]:
    """The operands that an instruction writes, in the order of the syntax line."""
    named = [one for first in expect(form, m) for one in (first, first.second) if one is not None]
    return [one for one in named if one.role != "read"]


def _sorted_out(k: Exact, form: Form, m: Modifiers, returned: Any) -> Results:
    """What a semantic function returned, as one value for each result of the syntax line."""
    wanted = results_of(form, m)
    results = (returned,) if len(wanted) == 1 else returned or ()
    assert len(results) == len(wanted), f"{form.syntax}: {len(results)} results"
    return tuple(_fitted(k, one, result) for one, result in zip(wanted, results, strict=True))


def _fitted(k: Exact, wanted: Expected, result: Any) -> Value | tuple[Value, ...]:
    """A result in its own type, cut into elements if it is a vector."""
    assert wanted.type is not None
    if wanted.count and not isinstance(result, tuple):
        return k.unpack(result, wanted.type.name)
    if wanted.count:
        assert len(result) == wanted.count, f"{wanted.name}: {len(result)} elements"
        return tuple(k.reinterpret(part, wanted.type.name) for part in result)
    return k.reinterpret(result, wanted.type.name)


def _run_collective(stopped: Mapping[int, _CollectiveError]) -> dict[int, tuple[Pattern, ...]]:
    """The results of a warp collective, by lane."""
    first = next(iter(stopped.values()))
    sizes = [_words(value.type) for value in first.inputs]
    result_types = [type_named(name) for name in first.results]
    exchange = [0] * (LANES * (sum(sizes) + sum(map(_words, result_types))))
    for lane, stop in stopped.items():
        word = 0
        for value in stop.inputs:
            bits = value.bits
            for _ in range(_words(value.type)):
                exchange[LANES * word + lane] = bits & WORD
                bits >>= 32
                word += 1
    first.function(exchange, sum(1 << lane for lane in stopped), *first.statics)
    replies = {}
    for lane in stopped:
        word = sum(sizes)
        reply = []
        for type in result_types:
            words = [exchange[LANES * (word + index) + lane] for index in range(_words(type))]
            assert all(0 <= one <= WORD for one in words), f"{first.function.__name__} leaves {words}"
            reply.append(Pattern(type, sum(one << 32 * index for index, one in enumerate(words))))
            word += len(words)
        replies[lane] = tuple(reply)
    return replies


def _words(type: Type) -> int:
    """How many 32-bit words of the lane exchange buffer a value takes."""
    return (type.width + 31) // 32


def _pattern(value: Value) -> Pattern:
    assert isinstance(value, Pattern)
    return value


def _argument(given: Value | int, type: native.Type) -> int | float | bool:
    """An argument as the Python form of a native function wants it."""
    if isinstance(given, int):
        return given
    value = _pattern(given)
    if isinstance(type, native.Integer):
        assert value.type.width <= type.bits, f"{value.type} as {type}"
        return type(value.number if value.type.kind == "s" else value.bits)
    if isinstance(type, native.Float):
        assert value.type.width == type.bits, f"{value.type} as {type}"
        return bits_float(f32 if type.bits == 32 else f64, value.bits)
    assert isinstance(type, native.Boolean), f"{value.type} as {type}"
    assert value.type.width == 1, f"{value.type} as {type}"
    return bool(value.bits)


def _returned(result: int | float | bool, type: Type) -> Pattern:
    """The result of a native function."""
    if isinstance(result, float):
        result = float_bits(f32 if type.width == 32 else f64, result)
    return Pattern.of(type, int(result))
