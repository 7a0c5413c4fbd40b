"""What threads do: events, and the paths of a thread through its instructions.

A path is run without knowing what its reads return: values are expressions over reads, and each branch that depends on
one is followed both ways, with a constraint on what the reads must have returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import add, and_, eq, ge, gt, le, lt, mul, ne, or_, sub, xor

from ptxlab.litmus.program import (
    GENERIC,
    Atomic,
    Barrier,
    Branch,
    ClusterBarrier,
    Compute,
    Fence,
    Instruction,
    Label,
    Load,
    Move,
    Operand,
    Position,
    ProxyFence,
    Store,
    Thread,
    Variable,
)

COMPARE: dict[str, Callable[[int, int], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _divide(a: int, b: int) -> int:
    return 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


COMPUTE: dict[str, Callable[[int, int], int]] = {
    "add": add, "sub": sub, "mul": mul, "div": _divide, "and": and_, "or": or_, "xor": xor, "min": min, "max": max,
    "at least": lambda a, b: int(a >= b),
}  # fmt: skip


@dataclass(frozen=True)
class Read:
    """The value that the event of this number, in its thread, reads."""

    event: int


@dataclass(frozen=True)
class Computed:
    """The value of an operation."""

    operation: str
    left: Value
    right: Value


Value = int | Read | Computed


@dataclass(frozen=True)
class Constraint:
    """A comparison that must hold for a thread to be on its path, and the number of events that come before it."""

    comparison: str
    left: Value
    right: Value
    before: int


@dataclass(frozen=True)
class Event:
    """An operation of a thread (PTX ISA 8.4); the writes of initial values have no thread."""

    thread: int
    position: Position | None
    text: str
    reads: bool = False
    writes: bool = False
    atomic: bool = False
    reduces: bool = False
    fence: bool = False
    order: str = "weak"
    scope: str | None = None
    variable: Variable | None = None
    proxy: str = GENERIC
    proxy_fence: str | None = None
    barrier: tuple[object, ...] | None = None
    arrives: bool = False
    waits: bool = False
    count: Value | None = None
    value: Value = 0

    @property
    def memory(self) -> bool:
        """Whether it is a memory operation."""
        return self.reads or self.writes

    @property
    def strong(self) -> bool:
        """Whether it is a strong operation: a fence, or a memory operation that is not weak."""
        return self.fence or (self.memory and self.order != "weak")

    @property
    def releases(self) -> bool:
        """Whether it has release semantics."""
        return self.order in ("release", "acq_rel", "sc")

    @property
    def acquires(self) -> bool:
        """Whether it has acquire semantics; a reduction never has (PTX ISA 8.8)."""
        return self.order in ("acquire", "acq_rel", "sc") and not self.reduces


@dataclass(frozen=True)
class Path:
    """A way of a thread through its instructions: events, constraints, final values of registers."""

    events: tuple[Event, ...]
    constraints: tuple[Constraint, ...]
    registers: dict[str, Value]


@dataclass
class _State:
    at: int
    registers: dict[str, Value]
    events: list[Event] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    jumps: dict[int, int] = field(default_factory=dict)

    def copy(self) -> _State:
        return _State(self.at, dict(self.registers), list(self.events), list(self.constraints), dict(self.jumps))


class Paths:
    """The paths of a thread, with at most `bound` backward jumps of each branch; `cut` if some were left out."""

    def __init__(self, number: int, thread: Thread, variables: dict[str, Variable], bound: int) -> None:
        self._number, self._thread, self._variables, self._bound = number, thread, variables, bound
        self._labels = {one.name: at for at, one in enumerate(thread.instructions) if isinstance(one, Label)}
        self.cut = False

    def __iter__(self) -> Iterator[Path]:
        states = [_State(0, {name: self._thread.initial.get(name, 0) for name in self._thread.registers})]
        while states:
            state = states.pop()
            if state.at == len(self._thread.instructions):
                yield Path(tuple(state.events), tuple(state.constraints), state.registers)
            else:
                one = self._thread.instructions[state.at]
                state.at += 1
                states.extend(self._step(state, one))

    def _step(self, state: _State, one: Instruction) -> Iterator[_State]:
        match one:
            case Branch():
                yield from self._branch(state, one)
                return
            case Atomic(operation="cas"):
                yield from self._compare_and_swap(state, one)
                return
            case Load():
                self._load(state, one)
            case Store():
                value = self._value(state, one.value)
                self._access(state, one, writes=True, value=value)
            case Atomic():
                self._atomic(state, one)
            case Fence():
                state.events.append(self._event(one, fence=True, order=one.order, scope=one.scope))
            case ProxyFence():
                state.events.append(self._event(one, proxy_fence=one.proxy))
            case Barrier():
                self._barrier(state, one)
            case ClusterBarrier():
                here = self._thread.position.at("cluster")
                syncs = one.order != "relaxed"
                kinds = {"waits": True} if one.waits else {"arrives": True}
                barrier = ("cluster", *here)
                order = "acq_rel" if syncs else "relaxed"
                state.events.append(self._event(one, barrier=barrier, order=order, **kinds))
            case Move():
                state.registers[one.register] = self._value(state, one.operand)
            case Compute():
                left, right = (self._value(state, operand) for operand in one.operands)
                state.registers[one.register] = compute(one.operation, left, right)
        yield state

    def _event(self, one: Instruction, **how: object) -> Event:
        return Event(self._number, self._thread.position, one.span.text, **how)  # type: ignore[arg-type]

    def _access(self, state: _State, one: Load | Store | Atomic, **how: object) -> Read:
        """Append a memory operation; what it reads."""
        variable = self._variables[one.variable]
        about = {"order": one.order, "scope": one.scope, "variable": variable, "proxy": one.proxy}
        state.events.append(self._event(one, **about, **how))
        return Read(len(state.events) - 1)

    def _load(self, state: _State, one: Load) -> None:
        value: Value = self._access(state, one, reads=True)
        expected = self._variables[one.variable].expected
        if expected is not None:  # of an mbarrier: whether its phase has completed
            value = compute("at least", value, expected)
        state.registers[one.register] = value

    def _atomic(self, state: _State, one: Atomic) -> None:
        operand = self._value(state, one.operands[0])
        old = Read(len(state.events))
        new = operand if one.operation == "exch" else compute(one.operation, old, operand)
        reduces = one.register is None
        self._access(state, one, reads=True, writes=True, atomic=True, reduces=reduces, value=new)
        if one.register is not None:
            state.registers[one.register] = old

    def _compare_and_swap(self, state: _State, one: Atomic) -> Iterator[_State]:
        """It writes if it finds what it compares with; else it is a read (PTX ISA 8.4: "if they result in a write")."""
        expected, new = (self._value(state, operand) for operand in one.operands)
        assert one.register is not None
        for succeeds in (True, False):
            after = state.copy()
            at = len(after.events)
            old = self._access(after, one, reads=True, writes=succeeds, atomic=True, value=new if succeeds else 0)
            # Whether it writes depends on what it reads: the constraint comes before its own event.
            after.constraints.append(Constraint("==" if succeeds else "!=", old, expected, at))
            after.registers[one.register] = old
            yield after

    def _barrier(self, state: _State, one: Barrier) -> None:
        number = self._value(state, one.number)
        count = None if one.count is None else self._value(state, one.count)
        barrier = ("cta", *self._thread.position.at("cta"), number)
        waits = not one.arrives_only
        state.events.append(self._event(one, barrier=barrier, arrives=True, waits=waits, count=count, order="acq_rel"))

    def _branch(self, state: _State, one: Branch) -> Iterator[_State]:
        target = self._labels[one.label]
        if one.comparison is None:
            yield from self._jump(state, target)
            return
        left, right = (self._value(state, operand) for operand in one.operands)
        if isinstance(left, int) and isinstance(right, int):
            yield from self._jump(state, target) if COMPARE[one.comparison](left, right) else iter([state])
            return
        before = len(state.events)
        stays = state.copy()
        stays.constraints.append(Constraint(OPPOSITE[one.comparison], left, right, before))
        yield stays
        state.constraints.append(Constraint(one.comparison, left, right, before))
        yield from self._jump(state, target)

    def _jump(self, state: _State, target: int) -> Iterator[_State]:
        at = state.at - 1
        if target <= at:
            state.jumps[at] = state.jumps.get(at, 0) + 1
            if state.jumps[at] > self._bound:
                self.cut = True
                return
        state.at = target
        yield state

    def _value(self, state: _State, operand: Operand) -> Value:
        return operand if isinstance(operand, int) else state.registers.get(operand, 0)


def compute(operation: str, left: Value, right: Value) -> Value:
    """An operation of two values, done now if both are known."""
    if isinstance(left, int) and isinstance(right, int):
        return COMPUTE[operation](left, right)
    return Computed(operation, left, right)


def reads_of(value: Value) -> Iterator[int]:
    """The reads that a value depends on."""
    match value:
        case Read():
            yield value.event
        case Computed():
            yield from reads_of(value.left)
            yield from reads_of(value.right)
