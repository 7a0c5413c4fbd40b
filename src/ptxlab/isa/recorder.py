"""The recording machine: it runs a semantic function once, without values, and notes what that does.

Operands are placeholders that know their type and name only. What is noted becomes the `Effects` of a form; see
`effects.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cache, partial
from inspect import Signature, signature
from typing import Any

from ptxlab.isa import asynchronous
from ptxlab.isa.async_operation import MBARRIER_BYTES, Action
from ptxlab.isa.machine import AccessKind
from ptxlab.isa.types import Type, type_named
from ptxlab.isa.undefined import Following
from ptxlab.isa.units.multicast_unit import Multicast
from ptxlab.isa.units.texture_unit import Textures
from ptxlab.values import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder:
    """Some value of a type; every operator gives another one."""

    type: Type

    def _same(self, other: object = None) -> Placeholder:
        return self

    def _predicate(self, other: object) -> Placeholder:
        return _PREDICATE

    __add__ = __sub__ = __mul__ = __floordiv__ = __mod__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _same
    __neg__ = __invert__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _predicate  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise AssertionError("a decision on a value is taken by `k.select`, not by `if`")


_PREDICATE = Placeholder(type_named("pred"))


@dataclass(frozen=True, slots=True)
class MemoryOperand:
    """The address operand of that name, or (`is_moved`) somewhere after it."""

    operand: str
    space: str | None
    is_moved: bool = False

    @property
    def value(self) -> Placeholder:
        return Placeholder(type_named("u64"))

    def __add__(self, bytes: Placeholder | int) -> MemoryOperand:
        return MemoryOperand(self.operand, self.space, is_moved=True)


@dataclass(frozen=True, slots=True)
class Access:
    """Memory at an address operand that an instruction reads, writes or (both in one step) updates."""

    operand: str
    kind: str  # "load", "store", "update"
    bytes: int | None  # from the address on; None: not known from the text of the instruction
    space: str | None = None  # None: a generic address
    order: str = "weak"  # as `Machine.load` has it
    is_async: bool = False  # whether it happens later, through the async proxy


@dataclass(frozen=True, slots=True)
class UnitStep:
    """Something done with a unit beside the thread: `unit` is its name in `isa.asynchronous`, `name` the method."""

    unit: str
    name: str


@cache
def step_named(unit: str, name: str) -> UnitStep:
    """A step that a unit has; a `KeyError` for any other, so that a misspelt name is not one that nothing does."""
    if name not in {action.step for action in asynchronous.actions_of(unit)}:
        raise KeyError(f"`{unit}` has no step `{name}`")
    return UnitStep(unit, name)


@dataclass
class EffectRecorder:
    """The machine; what it has noted so far."""

    accesses: list[Access] = field(default_factory=list)
    steps: list[UnitStep] = field(default_factory=list)
    fences: list[str] = field(default_factory=list)
    converges: bool = False
    orders: bool = False
    is_aligned: bool = False
    barrier_scope: str | None = None
    waits: bool = False
    uses_carry: bool = False
    uses_ranks: bool = False
    follows: bool = False
    reduction: asynchronous.Reduction | None = None
    target: str = "sm_120a"  # whose tensor cores have a model for every `mma`

    def note(
        self, location: MemoryOperand, kind: str, bytes: int | None, order: str = "weak", later: bool = False
    ) -> None:
        known = None if location.is_moved else bytes
        self.accesses.append(Access(location.operand, kind, known, location.space, order, later))

    # The units.

    def __post_init__(self) -> None:
        self.mbarrier: asynchronous.Mbarriers[Placeholder, MemoryOperand] = self._unit("mbarrier")
        self.async_copy: asynchronous.AsyncCopies[Placeholder, MemoryOperand] = self._unit("async_copy")
        self.bulk: asynchronous.BulkCopies[Placeholder, MemoryOperand] = self._unit("bulk")
        self.wgmma: asynchronous.WarpgroupMma[Placeholder] = self._unit("wgmma")
        self.tensor_memory: asynchronous.TensorMemory[Placeholder, MemoryOperand] = self._unit("tensor_memory")
        self.stack: asynchronous.Stack[Placeholder] = self._unit("stack")
        self.textures: Textures[Placeholder, MemoryOperand] = self._unit("textures")
        self.multicast: Multicast[MemoryOperand] = self._unit("multicast")

    def _unit(self, name: str) -> Any:
        return _Unit(self, name, asynchronous.UNITS[name])

    # Values.

    @property
    def carry(self) -> Placeholder:
        self.uses_carry = True
        return _PREDICATE

    @carry.setter
    def carry(self, value: Placeholder) -> None:
        self.uses_carry = True

    @property
    def lane(self) -> Placeholder:
        return Placeholder(type_named("u32"))

    @property
    def warp(self) -> Placeholder:
        return Placeholder(type_named("u32"))

    def active_mask(self) -> Placeholder:
        return Placeholder(type_named("u32"))

    def selection(self, operand: str) -> str | None:
        return None

    def has_minus(self, operand: str) -> bool:
        return False

    def constant(self, type: str, value: int) -> Placeholder:
        return Placeholder(type_named(type))

    def select(self, condition: Placeholder, yes: Placeholder, no: Placeholder | int) -> Placeholder:
        return yes

    def cast(self, value: Placeholder, type: str) -> Placeholder:
        return Placeholder(type_named(type))

    reinterpret = cast

    def pack(self, parts: Sequence[Placeholder], type: str) -> Placeholder:
        return Placeholder(type_named(type))

    def unpack(self, value: Placeholder, type: str) -> tuple[Placeholder, ...]:
        return (Placeholder(type_named(type)),) * (value.type.width // type_named(type).width)

    def arithmetic(self, operation: str, *operands: Placeholder, **how: object) -> Placeholder:
        return operands[0]

    def call(self, function: Callable[..., object], *arguments: Placeholder | int, type: str) -> Placeholder:
        return Placeholder(type_named(type))

    def window(self, space: str) -> int:
        return 0

    def is_in(self, space: str, address: Placeholder) -> Placeholder:
        return _PREDICATE

    def address_in(self, address: Placeholder, rank: Placeholder, space: str | None) -> Placeholder:
        self.uses_ranks = True
        return address

    def rank_of(self, address: Placeholder) -> Placeholder:
        self.uses_ranks = True
        return Placeholder(type_named("u32"))

    # Threads together.

    def collect(
        self,
        function: Callable[..., object],
        members: Placeholder | int,
        inputs: Sequence[Placeholder],
        results: Sequence[str],
        *,
        statics: Sequence[object] = (),
        aligned: bool = False,
        reads_shared: bool = False,
        orders: bool = False,
        following: Following | None = None,
    ) -> tuple[Placeholder, ...]:
        self.converges = True
        self.orders |= orders
        self.is_aligned |= aligned
        self.follows |= following is not None
        return tuple(Placeholder(type_named(name)) for name in results)

    def barrier(
        self, number: Placeholder, count: Placeholder | None, *, value: Placeholder | None = None, waits: bool = True
    ) -> Placeholder:
        self.barrier_scope = "block"
        self.waits |= waits
        return Placeholder(type_named("u64"))

    def cluster_barrier(self, *, waits: bool, releases: bool = False) -> None:
        self.barrier_scope = "cluster"
        self.waits |= waits
        self.orders |= releases

    def rest(self) -> None:
        """Nothing that others see."""

    # Memory.

    def load(
        self, address: MemoryOperand, type: str, count: int = 1, *, when: Placeholder | None = None, order: str = "weak"
    ) -> tuple[Placeholder, ...]:
        self.note(address, "load", _bytes(type) * count, order)
        return (Placeholder(type_named(type)),) * count

    def store(
        self,
        address: MemoryOperand,
        values: Sequence[Placeholder],
        *,
        when: Placeholder | None = None,
        order: str = "weak",
    ) -> None:
        self.note(address, "store", sum(value.type.width for value in values) // 8, order)

    def update(
        self,
        address: MemoryOperand,
        type: str,
        change: Callable[[Placeholder], Placeholder],
        order: str,
        *,
        writes: Callable[[Placeholder], Placeholder] | None = None,
        returns: bool = True,
        when: Placeholder | None = None,
    ) -> Placeholder:
        self.note(address, "update", _bytes(type), order)
        return Placeholder(type_named(type))

    def require(self, address: MemoryOperand, bytes: int, kind: AccessKind = "update") -> None:
        pass

    def fill(self, address: MemoryOperand, size: Placeholder) -> None:
        self.note(address, "store", None)

    def fence(self, order: str) -> None:
        self.fences.append(order)

    def fence_proxy(self, space: str | None) -> None:
        spaces = ("shared", "global") if space is None else (space.partition("::")[0],)
        self.fences += [f"proxy.{one}" for one in spaces]

    def wait_for_grids(self) -> None:
        self.fences.append("acquire.gpu")

    def start_dependents(self) -> None: ...

    def set_registers(self, count: int, *, more: bool) -> None: ...


def _bytes(type: str) -> int:
    return type_named(type).width // 8


@cache
def _signature(method: Callable[..., object]) -> Signature:
    return signature(method)


@dataclass(frozen=True)
class _Unit:
    """One of the units: each call of a method is noted as the protocol says."""

    recorder: EffectRecorder
    name: str
    protocol: type

    def __getattr__(self, method: str) -> Callable[..., Placeholder | MemoryOperand | None]:
        return partial(self._call, getattr(self.protocol, method))

    def _call(
        self, method: Callable[..., object], *given: object, **named: object
    ) -> Placeholder | MemoryOperand | None:
        action: Action | None = getattr(method, "action", None)
        if action is None:
            return None
        arguments = _signature(method).bind(self, *given, **named).arguments
        if action.step:
            self.recorder.steps.append(UnitStep(self.name, action.step))
        bytes = action.bytes
        if isinstance(bytes, str):
            bytes = arguments[bytes].type.width // 8
        self.recorder.reduction = arguments.get("reduction") or self.recorder.reduction
        writes = "store" if arguments.get("reduction") is None else "update"
        for operand, kind in ((action.writes, writes), (action.updates, "update"), (action.reads, "load")):
            if operand:
                self.recorder.note(arguments[operand], kind, bytes, later=action.is_later)
        if action.completes:
            self.recorder.note(arguments[action.completes], "update", MBARRIER_BYTES, later=True)
        if action.address:
            return MemoryOperand(arguments[action.address].operand, "global", is_moved=True)
        return Placeholder(type_named(arguments.get(action.result, action.result))) if action.result else None
