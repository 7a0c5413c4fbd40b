"""The recording machine: it runs a semantic function once, without values, and notes what that does.

Operands are placeholders that know their type and name only. What is noted becomes the `Effects` of a form; see
`effects.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptxlab.isa import asynchronous
from ptxlab.isa.asynchronous import MatrixChunks, MatrixCopy, Mma, Reduction
from ptxlab.isa.types import Type, type_named

MBARRIER_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Placeholder:
    """Some value of a type; every operator gives another one."""

    type: Type

    def _same(self, other: Any = None) -> Placeholder:
        return self

    def _predicate(self, other: Any) -> Placeholder:
        return _PREDICATE

    __add__ = __sub__ = __mul__ = __floordiv__ = __mod__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = _same
    __neg__ = __invert__ = _same
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _predicate  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise AssertionError("a decision on a value is taken by `k.select`, not by `if`")


_PREDICATE = Placeholder(type_named("pred"))


@dataclass(frozen=True, slots=True)
class Location:
    """The address operand of that name, or (`is_moved`) somewhere after it."""

    operand: str
    space: str | None
    is_moved: bool = False

    @property
    def value(self) -> Placeholder:
        return Placeholder(type_named("u64"))

    def __add__(self, bytes: Placeholder | int) -> Location:
        return Location(self.operand, self.space, is_moved=True)


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
class Step:
    """Something done with a unit beside the thread: `unit` is its name in `isa.asynchronous`, `name` the method."""

    unit: str
    name: str


@dataclass
class Recorder:
    """The machine; what it has noted so far."""

    accesses: list[Access] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    fences: list[str] = field(default_factory=list)
    converges: bool = False
    is_aligned: bool = False
    barrier_scope: str | None = None
    waits: bool = False
    uses_carry: bool = False
    target: str = "sm_120a"  # whose tensor cores have a model for every `mma`

    def note(self, location: Location, kind: str, bytes: int | None, order: str = "weak", later: bool = False) -> None:
        known = None if location.is_moved else bytes
        self.accesses.append(Access(location.operand, kind, known, location.space, order, later))

    # The units.

    def __post_init__(self) -> None:
        self.mbarrier: asynchronous.Mbarriers[Placeholder, Location] = Mbarriers(self, "mbarrier")
        self.async_copy: asynchronous.AsyncCopies[Placeholder, Location] = AsyncCopies(self, "async_copy")
        self.bulk: asynchronous.BulkCopies[Placeholder, Location] = BulkCopies(self, "bulk")
        self.wgmma: asynchronous.WarpgroupMma[Placeholder] = WarpgroupMma(self, "wgmma")
        self.tensor_memory: asynchronous.TensorMemory[Placeholder, Location] = TensorMemory(self, "tensor_memory")
        self.stack: asynchronous.Stack[Placeholder] = Stack(self, "stack")

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

    def arithmetic(self, operation: str, *operands: Placeholder, **how: Any) -> Placeholder:
        return operands[0]

    def call(self, function: Callable[..., Any], *arguments: Placeholder | int, type: str) -> Placeholder:
        return Placeholder(type_named(type))

    def window(self, space: str) -> int:
        return 0

    def is_in(self, space: str, address: Placeholder) -> Placeholder:
        return _PREDICATE

    def address_in(self, address: Placeholder, rank: Placeholder, space: str | None) -> Placeholder:
        return address

    def rank_of(self, address: Placeholder) -> Placeholder:
        return Placeholder(type_named("u32"))

    # Threads together.

    def collect(
        self,
        function: Callable[..., Any],
        members: Placeholder | int,
        inputs: Sequence[Placeholder],
        results: Sequence[str],
        *,
        statics: Sequence[Any] = (),
        aligned: bool = False,
        reads_shared: bool = False,
        orders: bool = False,
    ) -> tuple[Placeholder, ...]:
        self.converges = True
        self.is_aligned |= aligned
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

    def rest(self) -> None:
        """Nothing that others see."""

    # Memory.

    def load(
        self, address: Location, type: str, count: int = 1, *, when: Placeholder | None = None, order: str = "weak"
    ) -> tuple[Placeholder, ...]:
        self.note(address, "load", _bytes(type) * count, order)
        return (Placeholder(type_named(type)),) * count

    def store(
        self, address: Location, values: Sequence[Placeholder], *, when: Placeholder | None = None, order: str = "weak"
    ) -> None:
        self.note(address, "store", sum(value.type.width for value in values) // 8, order)

    def update(
        self,
        address: Location,
        type: str,
        change: Callable[[Placeholder], Placeholder],
        order: str,
        *,
        writes: Callable[[Placeholder], Placeholder] | None = None,
        returns: bool = True,
    ) -> Placeholder:
        self.note(address, "update", _bytes(type), order)
        return Placeholder(type_named(type))

    def fill(self, address: Location, size: Placeholder) -> None:
        self.note(address, "store", None)

    def fence(self, order: str) -> None:
        self.fences.append(order)

    def fence_proxy(self, space: str | None) -> None:
        self.fences.append("proxy" if space is None else f"proxy.{space}")


def _bytes(type: str) -> int:
    return type_named(type).width // 8


@dataclass(frozen=True)
class _Unit:
    """One of the units: each call of a method is a step."""

    recorder: Recorder
    name: str

    def step(self, name: str) -> None:
        self.recorder.steps.append(Step(self.name, name))

    def touch(self, location: Location, kind: str, bytes: int | None, *, later: bool = True) -> None:
        self.recorder.note(location, kind, bytes, later=later)

    def complete_on(self, barrier: Location) -> None:
        """Something completes on an mbarrier later."""
        self.touch(barrier, "update", MBARRIER_BYTES)


class Mbarriers(_Unit):
    def _touch(self, name: str, barrier: Location, kind: str) -> None:
        self.step(name)
        self.touch(barrier, kind, MBARRIER_BYTES, later=False)

    def initialize(self, barrier: Location, count: Placeholder, layout: int) -> None:
        self._touch("initialize", barrier, "store")

    def invalidate(self, barrier: Location) -> None:
        self._touch("invalidate", barrier, "store")

    def layout(self, barrier: Location) -> Placeholder:
        self._touch("layout", barrier, "load")
        return Placeholder(type_named("u32"))

    def expect(self, barrier: Location, bytes: Placeholder, order: int = 0) -> None:
        self._touch("expect", barrier, "update")

    def complete(self, barrier: Location, bytes: Placeholder, order: int) -> None:
        self._touch("complete", barrier, "update")

    def arrive(self, barrier: Location, count: Placeholder | int, order: int) -> Placeholder:
        self._touch("arrive", barrier, "update")
        return Placeholder(type_named("u64"))

    def drop(self, barrier: Location, count: Placeholder | int, order: int) -> Placeholder:
        self._touch("drop", barrier, "update")
        return Placeholder(type_named("u64"))

    def test(self, barrier: Location, parity: Placeholder, order: int) -> Placeholder:
        self._touch("test", barrier, "load")
        return _PREDICATE

    def wait(self, barrier: Location, parity: Placeholder, order: int) -> Placeholder:
        self._touch("wait", barrier, "load")
        return _PREDICATE


class AsyncCopies(_Unit):
    def start(self, destination: Location, source: Location, size: int, source_size: Placeholder) -> None:
        self.step("start")
        self.touch(destination, "store", None)
        self.touch(source, "load", None)

    def commit(self) -> None:
        self.step("commit")

    def wait(self, groups: int) -> None:
        self.step("wait")

    def arrive(self, barrier: Location, noinc: bool) -> None:
        self.step("arrive")
        self.complete_on(barrier)


class BulkCopies(_Unit):
    def _copy(self, destination: Location, source: Location, barrier: Location | None, reduction: Any) -> None:
        self.step("start")
        self.touch(destination, "store" if reduction is None else "update", None)
        self.touch(source, "load", None)
        if barrier is not None:
            self.complete_on(barrier)

    def load(
        self, destination: Location, source: Location, size: Placeholder, barrier: Location, blocks: Any, ignored: Any
    ) -> None:
        self._copy(destination, source, barrier, None)

    def store(
        self, destination: Location, source: Location, size: Placeholder, mask: Any, reduction: Reduction | None
    ) -> None:
        self._copy(destination, source, None, reduction)

    def exchange(
        self, destination: Location, source: Location, size: Placeholder, barrier: Location, reduction: Reduction | None
    ) -> None:
        self._copy(destination, source, barrier, reduction)

    def put(self, destination: Location, value: Placeholder, barrier: Location, reduction: Reduction | None) -> None:
        self.step("put")
        self.touch(destination, "store" if reduction is None else "update", value.type.width // 8)
        self.complete_on(barrier)

    def load_tensor(
        self, destination: Location, map: Location, coordinates: Any, barrier: Location, blocks: Any
    ) -> None:
        self._copy(destination, map, barrier, None)

    def store_tensor(self, map: Location, coordinates: Any, source: Location, reduction: Reduction | None) -> None:
        self._copy(map, source, None, reduction)

    def prefetch(self, source: Location, size: Placeholder) -> None:
        self.step("prefetch")

    def prefetch_tensor(self, map: Location, coordinates: Any) -> None:
        self.step("prefetch")

    def cancel(self, destination: Location, barrier: Location, multicast: bool) -> None:
        self.step("cancel")
        self.touch(destination, "store", 16)
        self.complete_on(barrier)

    def commit(self) -> None:
        self.step("commit")

    def wait(self, groups: int, reads: bool) -> None:
        self.step("wait")


class WarpgroupMma(_Unit):
    def read(self, matrix: MatrixChunks[Placeholder]) -> None:
        self.step("start")

    def fence(self) -> None:
        self.step("fence")

    def compare(self) -> None:
        """Nothing that others see."""

    def commit(self) -> None:
        self.step("commit")

    def wait(self, groups: int) -> None:
        self.step("wait")


class TensorMemory(_Unit):
    def address(self, taddr: Location) -> Placeholder:
        return Placeholder(type_named("u32"))

    def allocate(self, columns: Placeholder) -> Placeholder:
        self.step("allocate")
        return Placeholder(type_named("u32"))

    def free(self, address: Placeholder, columns: Placeholder) -> None:
        self.step("free")

    def relinquish(self) -> None:
        self.step("relinquish")

    def route(self, address: Placeholder) -> Placeholder:
        return address

    def start_load(self, address: Placeholder, is_uniform: Placeholder, lanes: int, columns: int, split: int) -> None:
        self.step("load")

    def start_store(self, address: Placeholder, is_uniform: Placeholder, lanes: int, columns: int, split: int) -> None:
        self.step("store")

    def read(self, word: Placeholder) -> Placeholder:
        return word

    def write(self, word: Placeholder, value: Placeholder, mask: int) -> None:
        """Part of a store."""

    def multiply(self, mma: Mma[Placeholder, Location]) -> None:
        self.step("multiply")

    def copy(self, copy: MatrixCopy[Placeholder, Location]) -> None:
        self.step("copy")

    def commit(self, barrier: Location, blocks: Placeholder | None = None) -> None:
        self.step("commit")
        self.complete_on(barrier)

    def wait(self, stores: bool) -> None:
        self.step("wait")

    def fence(self, after: bool) -> None:
        self.step("fence_after" if after else "fence_before")


class Stack(_Unit):
    def save(self, type: str) -> Placeholder:
        return Placeholder(type_named(type))

    def restore(self, pointer: Placeholder) -> None:
        self.step("restore")

    def allocate(self, size: Placeholder, alignment: int, type: str) -> Placeholder:
        self.step("allocate")
        return Placeholder(type_named(type))
