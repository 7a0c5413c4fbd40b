"""What the semantics of an instruction are written in: an abstract machine `k` and the values of one thread.

A semantic function runs once for each instruction of a kernel, when that is translated. Its operands are `Value`s: a
tuple of them for a vector, an `AddressValue` for `[a]`, a plain integer where only an immediate is legal, None for an
operand that is left out. A predicate that is written `!p` arrives negated.

A semantic function returns the result, or a tuple of all results that the syntax line names, in its order; those that
an instruction leaves out are dropped. A vector is a tuple of its elements, or one value that is cut into them.

Three machines exist: the emulator's, which writes LLVM IR; `exact`, which computes on Python's integers and is the
reference; and `recorder`, which notes what an instruction does besides computing: its `effects`.

Decisions on modifiers are taken with Python's `if`, decisions on values with `k.select`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from ptxlab.isa.asynchronous import AsyncCopies, BulkCopies, Mbarriers, Stack, TensorMemory, WarpgroupMma
from ptxlab.isa.types import Type
from ptxlab.isa.undefined import Following
from ptxlab.isa.units.multicast_unit import Multicast
from ptxlab.isa.units.texture_unit import Textures

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Statics: TypeAlias = Sequence[int | tuple[int, ...] | DataclassInstance]  # constants of an instruction


class Value(Protocol):
    """Bits in a register, with the type they are read as.

    Arithmetic on integers wraps around; `>>`, `//`, `%` and comparisons follow the sign of the type, `//` and `%` round
    towards zero. Shift counts must be below the width (and may be of any width), divisors not zero, the quotient must
    fit: the semantic function ensures it. Both sides are of one width, and of one sign where that matters; a Python
    integer on the other side takes the type of this one. Predicates know `& | ^ ~` and equality. Floats compare as IEEE
    754 does: a NaN is neither less nor equal; they have no arithmetic operators, since rounding has to be said:
    `k.arithmetic`.
    """

    @property
    def type(self) -> Type: ...
    def __add__(self, other: Value | int) -> Value: ...
    def __sub__(self, other: Value | int) -> Value: ...
    def __mul__(self, other: Value | int) -> Value: ...
    def __floordiv__(self, other: Value | int) -> Value: ...
    def __mod__(self, other: Value | int) -> Value: ...
    def __neg__(self) -> Value: ...
    def __and__(self, other: Value | int) -> Value: ...
    def __or__(self, other: Value | int) -> Value: ...
    def __xor__(self, other: Value | int) -> Value: ...
    def __invert__(self) -> Value: ...
    def __lshift__(self, other: Value | int) -> Value: ...
    def __rshift__(self, other: Value | int) -> Value: ...
    def __lt__(self, other: Value | int) -> Value: ...
    def __le__(self, other: Value | int) -> Value: ...
    def __gt__(self, other: Value | int) -> Value: ...
    def __ge__(self, other: Value | int) -> Value: ...
    def __eq__(self, other: object) -> Value: ...  # type: ignore[override]
    def __ne__(self, other: object) -> Value: ...  # type: ignore[override]


Vector: TypeAlias = tuple[Value, ...]
Operand: TypeAlias = Vector | Value  # registers, in braces or without


def elements(operand: Operand | None) -> Vector:
    """The registers of an operand; none of one that is left out."""
    return operand if isinstance(operand, tuple) else () if operand is None else (operand,)


class AddressValue(Protocol):
    """Where an instruction points, in a state space (None: a generic address)."""

    @property
    def space(self) -> str | None: ...
    @property
    def value(self) -> Value: ...
    def __add__(self, bytes: Value | int) -> AddressValue: ...


AccessKind: TypeAlias = Literal["load", "store", "update"]


class Machine(Protocol):
    """What a semantic function may use, besides the operators of values."""

    carry: Value
    """The carry flag of the thread, `CC.CF`: a predicate."""

    @property
    def mbarrier(self) -> Mbarriers[Value, AddressValue]: ...
    @property
    def async_copy(self) -> AsyncCopies[Value, AddressValue]: ...
    @property
    def bulk(self) -> BulkCopies[Value, AddressValue]: ...
    @property
    def wgmma(self) -> WarpgroupMma[Value]: ...
    @property
    def tensor_memory(self) -> TensorMemory[Value, AddressValue]: ...
    @property
    def stack(self) -> Stack[Value]: ...
    @property
    def textures(self) -> Textures[Value, AddressValue]: ...
    @property
    def multicast(self) -> Multicast[AddressValue]: ...

    def active_mask(self) -> Value:
        """The lanes of the warp that are here right now, one bit (of a u32) for each."""

    def selection(self, operand: str) -> str | None:
        """The part of its register that `operand` chooses: "b0" in `%r1.b0`, None if it chooses none."""

    def has_minus(self, operand: str) -> bool:
        """Whether `operand`, which arrives as it is in its register, has a minus sign before it."""

    def constant(self, type: str, value: int) -> Value:
        """`value`, wrapped to the width of `type`; for a float type it is the pattern."""

    def select(self, condition: Value, yes: Value, no: Value | int) -> Value:
        """`yes` where the predicate holds, else `no`."""

    def cast(self, value: Value, type: str) -> Value:
        """The integer (or predicate) as another integer type: extended by the sign of its own type, or cut."""

    def reinterpret(self, value: Value, type: str) -> Value:
        """The same bits as another type of the same width."""

    def pack(self, parts: Sequence[Value], type: str) -> Value:
        """The bits of `parts` side by side, the first lowest."""

    def unpack(self, value: Value, type: str) -> tuple[Value, ...]:
        """The bits cut into values of `type`, the lowest first."""

    def arithmetic(
        self,
        operation: str,
        *operands: Value,
        rounding: str = "rn",
        ftz: bool = False,
        sat: bool = False,
        relu: bool = False,
    ) -> Value:
        """`add sub mul fma div sqrt` on floats of one type (f16, bf16, f32, f64), rounded once.

        What comes out is what `numbers.arithmetic` computes.
        """

    def call(self, function: Callable[..., object], *arguments: Value | int, type: str) -> Value:
        """The result, as `type`, of a `@native` function on the bits of `arguments`; plain integers are constants.

        An argument that is narrower than the parameter is extended by the sign of its own type.
        """

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
        """Synchronize the lanes in `members`, then run `function(exchange, members, *statics)` once: a warp collective.

        `exchange` is the lane exchange buffer, an array of 32-bit words, word `w` of lane `l` at `exchange[32 * w +
        l]`: first those of `inputs`, then those of `results`, which the function fills in. A value of up to 32 bits
        takes one word, a longer one two or four, the low one first. `members` are those that have not exited. `statics`
        are constants of the instruction; a tuple arrives as an array of 32-bit words, a record (a structure that is a
        dataclass) as a reference to one. With `reads_shared` the bytes of shared memory come before them;
        `k.wgmma.read` has reported to the detectors what the function reads of them. With `orders` it is a memory
        barrier, too. `following` says which results are undefined where inputs are; without it, undefined inputs are
        a mistake.
        """

    # Memory. `order` says how an access is ordered with others: "weak", or semantics and scope such as "acquire.gpu".

    @property
    def lane(self) -> Value:
        """The number of the thread in its warp."""

    @property
    def warp(self) -> Value:
        """The number of the warp in its block."""

    @property
    def target(self) -> str:
        """What the module is compiled for, such as `sm_90a`."""

    def load(
        self,
        address: AddressValue,
        type: str,
        count: int = 1,
        *,
        when: Value | None = None,
        order: str = "weak",
    ) -> tuple[Value, ...]:
        """`count` values of `type`, side by side in memory; zeros, and no access, where `when` does not hold."""

    def store(
        self,
        address: AddressValue,
        values: Sequence[Value],
        *,
        when: Value | None = None,
        order: str = "weak",
    ) -> None:
        """Write `values` side by side to memory, where `when` holds."""

    def update(
        self,
        address: AddressValue,
        type: str,
        change: Callable[[Value], Value],
        order: str,
        *,
        writes: Callable[[Value], Value] | None = None,
        returns: bool = True,
        when: Value | None = None,
    ) -> Value:
        """Replace a value in memory by what `change` makes of it, in one step, and return the old one.

        `writes` says of the old one whether there is a write at all; without `returns` no register gets it, and only
        then there may be `when`: nothing happens where it does not hold.
        """

    def require(self, address: AddressValue, bytes: int, kind: AccessKind = "update") -> None:
        """Stop the thread unless it may do this to all of these bytes and they are aligned.

        It does so in parts afterwards.
        """

    def fence(self, order: str) -> None:
        """Order the accesses of this thread before it with those after it."""

    def fence_proxy(self, space: str | None) -> None:
        """Order what this thread and what asynchronous copies do, to shared or global memory or (None) to both."""

    def wait_for_grids(self) -> None:
        """Wait until the grids that this one depends on are complete."""

    def start_dependents(self) -> None:
        """Let the grids that depend on this one start."""

    def set_registers(self, count: int, *, more: bool) -> None:
        """Change how many registers a thread of the warp owns; for `more`, wait until the block has as many to give."""

    def fill(self, address: AddressValue, size: Value) -> None:
        """Write that many zero bytes to shared memory."""

    def window(self, space: str) -> int:
        """Where the addresses of a state space start among generic ones."""

    def is_in(self, space: str, address: Value) -> Value:
        """Whether a generic address is in a state space."""

    def barrier(self, number: Value, count: Value | None, *, value: Value | None = None, waits: bool = True) -> Value:
        """Arrive at a barrier of the block, and wait until all have; what they brought as `value`, reduced.

        Bit 0 of the result (a u64) is their `or`, bit 1 their `and`, and the bits from 2 on are how many were true.
        """

    def cluster_barrier(self, *, waits: bool, releases: bool = False) -> None:
        """Arrive at the barrier that all blocks of the cluster share, or wait until all have."""

    def address_in(self, address: Value, rank: Value, space: str | None) -> Value:
        """The address in the block of that rank for one in shared memory; both are generic if `space` is None."""

    def rank_of(self, address: Value) -> Value:
        """The rank in the cluster of the block in whose shared memory an address is."""

    def rest(self) -> None:
        """Let other threads run first."""
