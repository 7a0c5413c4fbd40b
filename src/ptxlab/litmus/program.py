"""A litmus test as values: threads and where they run, variables, instructions, and the condition on the final state.

`reader` makes it of a text, `executions` enumerates what it may do, `kernel` makes a PTX kernel of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ptxlab.report import Source, Span

SCOPES = ("cta", "cluster", "gpu", "sys")  # from narrow to wide
GENERIC = "generic"
Operand = int | str  # a constant, or the name of a register


@dataclass(frozen=True)
class Position:
    """Where a thread runs: its CTA, the cluster and the GPU that this is on."""

    cta: int
    cluster: int
    gpu: int

    def at(self, scope: str) -> tuple[int, ...]:
        """What two threads have in common if they are in one another's `scope`."""
        parts = {
            "cta": (self.gpu, self.cluster, self.cta),
            "cluster": (self.gpu, self.cluster),
            "gpu": (self.gpu,),
            "sys": (),
        }
        return parts[scope]


@dataclass(frozen=True)
class Variable:
    """A name for a memory location.

    Names of one `location` are aliases; those of one `address` are one virtual address, accessed by different proxies.
    An mbarrier counts arrivals, and its phase completes with the one numbered `expected`.
    """

    name: str
    location: str
    address: str
    initial: int = 0
    expected: int | None = None


@dataclass(frozen=True)
class Instruction:
    """What all instructions have: the span of their text."""

    span: Span = field(repr=False, compare=False)


@dataclass(frozen=True)
class Load(Instruction):
    """`ld.order.scope register, variable`, through a proxy; of an mbarrier, `mbarrier.test_wait`."""

    register: str
    variable: str
    order: str
    scope: str | None
    proxy: str = GENERIC


@dataclass(frozen=True)
class Store(Instruction):
    """`st.order.scope variable, value`, through a proxy."""

    variable: str
    value: Operand
    order: str
    scope: str | None
    proxy: str = GENERIC


@dataclass(frozen=True)
class Atomic(Instruction):
    """`atom.order.scope.operation register, variable, operands`; `red` has no register.

    The arrival at an mbarrier is one: it adds 1 to the arrivals.
    """

    register: str | None
    variable: str
    operation: str
    operands: tuple[Operand, ...]
    order: str
    scope: str
    proxy: str = GENERIC


@dataclass(frozen=True)
class Fence(Instruction):
    """`fence.order.scope`."""

    order: str
    scope: str


@dataclass(frozen=True)
class ProxyFence(Instruction):
    """`fence.proxy.proxy`, of `alias` too."""

    proxy: str


@dataclass(frozen=True)
class Barrier(Instruction):
    """`barrier.cta.sync` or `.arrive`; without a count, for the threads of the CTA that name this barrier."""

    arrives_only: bool
    number: Operand
    count: Operand | None = None


@dataclass(frozen=True)
class ClusterBarrier(Instruction):
    """`barrier.cluster.arrive` with its order, or `.wait`."""

    waits: bool
    order: str = "acq_rel"


@dataclass(frozen=True)
class Move(Instruction):
    """`mov register, operand`"""

    register: str
    operand: Operand


@dataclass(frozen=True)
class Compute(Instruction):
    """`operation register, left, right`"""

    register: str
    operation: str
    operands: tuple[Operand, ...]


@dataclass(frozen=True)
class Branch(Instruction):
    """A jump to a label, if the comparison of the operands holds; always, without one."""

    label: str
    comparison: str | None = None
    operands: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class Label(Instruction):
    """A label to jump to."""

    name: str


@dataclass(frozen=True)
class Thread:
    """One column of a test; registers have a value before it starts, 0 unless the test says another."""

    name: str
    position: Position
    instructions: tuple[Instruction, ...]
    initial: dict[str, int]

    @property
    def registers(self) -> list[str]:
        """All registers that it writes or that have a value from the start, in order."""
        found = dict.fromkeys(self.initial)
        for one in self.instructions:
            if isinstance(one, (Load, Move, Compute, Atomic)) and one.register is not None:
                found[one.register] = None
        return list(found)


@dataclass(frozen=True)
class Condition:
    """A comparison or a combination of conditions: `==`, `!=`, ...; `and`, `or`, `not`; `true`.

    The parts of a comparison are constants, `(thread, register)` or names of variables.
    """

    operation: str
    parts: tuple[Condition | int | str | tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Litmus:
    """A litmus test; `quantifier` is `exists`, `~exists` or `forall`, and `filter` leaves final states out."""

    name: str
    source: Source = field(repr=False)
    variables: dict[str, Variable]
    threads: tuple[Thread, ...]
    quantifier: str
    condition: Condition
    filter: Condition | None = None

    @property
    def locations(self) -> list[str]:
        """The memory locations, each by the name that it was declared by."""
        return list(dict.fromkeys(variable.location for variable in self.variables.values()))
