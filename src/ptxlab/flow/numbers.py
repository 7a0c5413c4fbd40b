"""The domain of numbers: what is known of an integer, a predicate or an address in each thread of a block.

A `Number` is a constant, a number for each thread where it follows from `%tid.x`, `%laneid` and constants alone, or
a range. It may be relative to a `Base`: the address of a variable, or what a parameter of the kernel holds. A
predicate is a `Choice`: the threads in which it may be true, and those in which it may be false.

Thread n of the block is the one with `%tid.x` n: where a kernel reads `%tid.y` or `%tid.z`, or declares a second
dimension, `%tid.x` is only a range. A register is taken to hold what some instruction has written to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

from ptxlab import ir
from ptxlab.isa.special_registers import SpecialKind
from ptxlab.isa.types import Type

from .effort import Effort
from .engine import Engine, Node
from .ranges import DECISIONS, bounds_of, fold, function_of, wrap
from .steps import Step

if TYPE_CHECKING:
    from .facts import Facts

MOST_THREADS = 1024
LANES = 32
DEEPEST = 64  # columns that wait for each other

Threads = int
"""A set of threads of a block: bit n is thread n."""


class Base(NamedTuple):
    """What an address is relative to: a variable or, with `holds`, what a parameter has at that offset."""

    variable: ir.Variable
    space: str | None
    """The state space that it is an address in; None: a generic address, or not known."""
    holds: int | None = None


class Window(NamedTuple):
    """Where a state space starts among generic addresses."""

    space: str


class Column:
    """The bits of a number in each thread of a block, computed when they are needed."""

    __slots__ = ("_bits", "_depth", "_parts", "_step")

    def __init__(self, step: Step | None, parts: tuple[Column | int, ...], bits: tuple[int, ...] | None = None) -> None:
        self._step, self._parts, self._bits = step, parts, bits
        self._depth: int = 1 + max((part._depth for part in parts if isinstance(part, Column)), default=0)

    @property
    def is_due(self) -> bool:
        """Whether it is to be computed now: it depends on many that are not yet."""
        return self._depth % DEEPEST == 0

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Column) or self._step != other._step or self._parts != other._parts:
            return False
        return self._step is not None or self._bits == other._bits

    def __hash__(self) -> int:
        return hash((self._step, self._parts))

    def bits(self, effort: Effort) -> tuple[int, ...]:
        """One number for each thread."""
        if self._bits is None:
            assert self._step is not None
            compute = function_of(self._step)
            assert compute is not None
            columns = [repeat(part) if isinstance(part, int) else part.bits(effort) for part in self._parts]
            self._bits = tuple(map(compute, *columns))
            effort.spend(len(self._bits) // 8)
        return self._bits


class Number(NamedTuple):
    """An integer from `low` to `high`, modulo the width of its type, and what it is in each thread."""

    low: int
    high: int
    each: Column | None = None
    base: Base | Window | None = None


class Choice(NamedTuple):
    """A predicate: the threads in which it may be true, and those in which it may be false."""

    true: Threads
    false: Threads


Known = Number | Choice


class Numbers(Engine[Known]):
    """The numbers in the registers of one function."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self.count = min(facts.most_threads or MOST_THREADS, MOST_THREADS)
        self.all: Threads = (1 << self.count) - 1
        self.open = Choice(self.all, self.all)
        self._of_bool = Choice(0, self.all), Choice(self.all, 0)

    @cached_property
    def _threads(self) -> Column:
        return Column(None, (), tuple(range(self.count)))

    @cached_property
    def _lanes(self) -> Column:
        return Column(None, (), tuple(thread % LANES for thread in range(self.count)))

    @cached_property
    def is_flat(self) -> bool:
        """Whether blocks are taken to have one dimension."""
        function = self.facts.function
        required, most = function.directive("reqntid"), function.directive("maxntid")
        if required is not None:
            return all(size == 1 for size in required.arguments[1:])
        if most is not None and any(size != 1 for size in most.arguments[1:]):
            return False
        return not any(
            isinstance(operand, ir.SpecialRegister) and operand.kind is SpecialKind.THREAD and operand.component != "x"
            for instruction in self.facts.instructions
            for operand in instruction.operands
        )

    def leaf(self, operand: ir.Operand, type: Type) -> Known:
        """A constant, a special register or the address of a variable."""
        match operand:
            case ir.Immediate():
                if type.kind == "p":
                    return self._of_bool[operand.value != 0]
                if not operand.is_float or operand.kind == type.name:
                    return _constant(operand.value, type)
            case ir.SpecialRegister():
                return self._special(operand, type)
            case ir.VariableReference():
                return Number(operand.offset, operand.offset, base=Base(operand.variable, operand.variable.state_space))
            case ir.Element(base=ir.VariableReference() as named):
                size = named.variable.type.width * named.variable.vector // 8
                start = self.leaf(named, type)
                assert isinstance(start, Number)
                low = start.low + operand.index * size
                return start._replace(low=low, high=low) if operand.register is None else _anywhere(start, type)
        return self.top(type)

    def _special(self, operand: ir.SpecialRegister, type: Type) -> Known:
        match operand.kind, operand.component:
            case (SpecialKind.THREAD, "x") if self.is_flat:
                return Number(0, self.count - 1, self._threads)
            case (SpecialKind.THREAD, "x" | "y" | "z"):
                return Number(0, self.count - 1)
            case (SpecialKind.LANE, _):
                return Number(0, min(self.count, LANES) - 1, self._lanes)
            case (SpecialKind.BLOCK_SIZE, "x" | "y" | "z"):
                return Number(1, self.count)
        return self.top(type)

    def top(self, type: Type) -> Known:
        """Any value of a type."""
        return self.open if type.kind == "p" else Number(0, (1 << type.width) - 1)

    def unknown(self, node: Node, type: Type) -> Known:
        """Nothing is known; what a parameter of a kernel holds is at least the same whenever it is loaded."""
        loaded = None if type.kind == "p" else self.facts.loaded_parameter(*node)
        if loaded is None or loaded.type.width < type.width:
            return self.top(type)
        return Number(0, 0, base=Base(loaded.variable, None, loaded.offset))

    def join(self, one: Known, other: Known) -> Known:
        """Any of two values."""
        if one == other:
            return one
        if isinstance(one, Choice) and isinstance(other, Choice):
            return Choice(one.true | other.true, one.false | other.false)
        assert isinstance(one, Number)
        assert isinstance(other, Number)
        base = one.base if one.base == other.base else None
        if base is not None or one.base is other.base is None:
            return Number(min(one.low, other.low), max(one.high, other.high), None, base)
        return Number(0, (1 << 128) - 1)  # wider than any register: cut where it is read

    def widen(self, old: Known, new: Known, register: Type) -> Known:
        """Any value, of the same base."""
        joined = self.join(old, new)
        if isinstance(joined, Choice) or joined == old:
            return joined
        return _anywhere(joined, register)

    def apply(self, step: Step, parts: list[Known]) -> Known:
        """What a step makes of numbers."""
        operation, type = step.operation, step.type
        if operation == "constant":
            return self._of_bool[step.detail] if type.kind == "p" else _constant(step.detail, type)
        if operation == "window":
            return Number(0, 0, base=Window(step.detail))
        if operation == "select":
            return self._select(parts, type)
        if operation == "cast" and isinstance(parts[0], Choice):
            return self._select([parts[0], Number(1, 1), Number(0, 0)], type)
        choices = [part for part in parts if isinstance(part, Choice)]
        if len(choices) == 2 and operation in LOGIC:
            return LOGIC[operation](*choices)
        numbers = [part for part in parts if isinstance(part, Number)]
        if len(numbers) < len(parts):
            return self.top(type)
        if any(number.base is not None for number in numbers):
            return _relative(step, numbers) or self.top(type)
        exact = self._exact(step, numbers)
        if exact is not None:
            return exact
        if type.kind != "p":
            return Number(*bounds_of(step, numbers))
        decide = DECISIONS.get(operation) if step.of.kind != "f" else None
        found = None if decide is None else decide(step, numbers)
        return self.open if found is None else self._of_bool[found]

    def _exact(self, step: Step, numbers: Sequence[Number]) -> Known | None:
        """The result for each thread, if all parts are constants or known for each thread."""
        if any(number.each is None and number.low != number.high for number in numbers):
            return None
        compute = function_of(step)
        constants = [wrap(number.low, type) for number, type in zip(numbers, step.read_as, strict=True)]
        if numbers[0].each is None and all(number.each is None for number in numbers[1:]):
            found = fold(step, constants)
            if found is None:
                return None
            return self._of_bool[found] if step.type.kind == "p" else _constant(found, step.type)
        if step.operation == "shuffle" and numbers[0].each is not None:
            return self._shuffle(step, numbers)
        if compute is None:
            return None
        parts = tuple(number.each or bits for number, bits in zip(numbers, constants, strict=True))
        column = Column(step, parts)
        if column.is_due:
            column.bits(self.facts.effort)
        if step.type.kind == "p":
            true = int(bytes(column.bits(self.facts.effort))[::-1].translate(_DIGITS), 2)
            return Choice(true, self.all & ~true)
        low, high = bounds_of(step, numbers)
        return Number(low, high) if low == high else Number(low, high, column)

    def _select(self, parts: list[Known], type: Type) -> Known:
        choice, yes, no = parts
        if not isinstance(choice, Choice):
            return self.top(type)
        if not choice.false or not choice.true:
            return yes if choice.true else no
        if isinstance(yes, Choice) and isinstance(no, Choice):
            return Choice(choice.true & yes.true | choice.false & no.true,
                          choice.true & yes.false | choice.false & no.false)  # fmt: skip
        assert isinstance(yes, Number)
        assert isinstance(no, Number)
        if yes == no or choice.true & choice.false or not all(one.each or _is_constant(one) for one in (yes, no)):
            return self.join(yes, no)
        first, second = (self._column(one, type) for one in (yes, no))
        chosen = (a if choice.true >> n & 1 else b for n, (a, b) in enumerate(zip(first, second, strict=True)))
        return Number(min(yes.low, no.low), max(yes.high, no.high), Column(None, (), tuple(chosen)))

    def _column(self, number: Number, type: Type) -> tuple[int, ...]:
        if number.each is None:
            return (wrap(number.low, type),) * self.count
        return number.each.bits(self.facts.effort)

    def _shuffle(self, step: Step, numbers: Sequence[Number]) -> Known | None:
        """What lanes read of each other. A lane that is read from and has exited, or is not there, gives anything."""
        function, statics, _ = step.detail
        if step.type.kind == "p":
            return None
        columns = [self._column(number, step.of) for number in numbers]
        found: list[int] = []
        for start in range(0, self.count, LANES):
            rows = [[*column[start : start + LANES], *[0] * LANES][:LANES] for column in columns]
            exchange = [*rows[0], *rows[1], *rows[2], *[0] * 2 * LANES]
            function(exchange, 0xFFFFFFFF, *statics)
            found += exchange[3 * LANES : 4 * LANES]
        bits = tuple(found[: self.count])
        return Number(min(bits), max(bits), Column(None, (), bits))


class Addresses(Numbers):
    """The variables that addresses are in, at any distance: only what can be such an address is followed."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._found: dict[tuple[int, tuple[int, ...]], Base | None] = {}

    @cached_property
    def _registers(self) -> frozenset[int]:
        return self.facts.chains.derived(self.facts.taking_addresses)

    def variable(self, at: int, register: ir.Register) -> Base | None:
        """The variable that instruction `at` reads an address of in a register."""
        if register.index not in self._registers:
            return None
        key = (register.index, self.facts.chains.definitions(at, register.index))
        if key not in self._found:
            known = self.value(at, register)
            self._found[key] = known.base if isinstance(known, Number) and isinstance(known.base, Base) else None
        return self._found[key]

    def register(self, asking: Node, register: ir.Register) -> Known | None:
        """What an instruction reads in a register; anything, if it cannot be an address."""
        is_one = register.index in self._registers
        return super().register(asking, register) if is_one else self.top(register.type)

    def origin(self, at: int, register: ir.Register, variable: ir.Variable) -> int | None:
        """The instruction that takes the address of a variable which instruction `at` reads in a register."""
        pending = [(write, register.index) for write in self.facts.chains.definitions(at, register.index)]
        seen = set(pending)
        for node in pending:
            operands = self.facts.instructions[node[0]].operands
            if any(named.variable is variable for named in map(named_by, operands) if named is not None):
                return node[0]
            fresh = [source for source in self.sources[node] if source not in seen]
            seen.update(fresh)
            pending += fresh
        return None


def named_by(operand: ir.Operand) -> ir.VariableReference | None:
    """The variable whose address an operand is, as a value."""
    base = operand.base if isinstance(operand, (ir.Sum, ir.Element)) else operand
    return base if isinstance(base, ir.VariableReference) else None


def _constant(value: int, type: Type) -> Number:
    number = wrap(value, type)
    if number >> (type.width - 1) and type.kind != "p":
        number -= 1 << type.width  # -1 is between 0 and -2, and no large number
    return Number(number, number)


def _is_constant(number: Number) -> bool:
    return number.low == number.high and number.base is None


def _anywhere(number: Number, type: Type) -> Number:
    return Number(0, (1 << type.width) - 1, None, number.base)


def _relative(step: Step, numbers: Sequence[Number]) -> Number | None:
    """What a step makes of addresses."""
    first = numbers[0]
    match step.operation:
        case "cast" if step.type.width >= 32 <= step.of.width:
            return first
        case "peer" if isinstance(first.base, Base):
            return first._replace(base=first.base._replace(space=PEER))
        case "+" if isinstance(numbers[1].base, Window):
            return _moved(first, None)
        case "-" if isinstance(numbers[1].base, Window):
            return _moved(first, numbers[1].base.space)
        case "+" | "-" if step.type.width >= 32:
            second = numbers[1]
            bases = [one.base for one in numbers if one.base is not None]
            if len(bases) == 2 or (step.operation == "-" and first.base is None):
                return None
            low, high = bounds_of(step, (first, second))
            around = (low + (1 << (step.type.width - 1))) >> step.type.width << step.type.width  # a distance has a sign
            return Number(low - around, high - around, None, bases[0])
    return None


PEER = "shared::cluster"  # where the address of another block's variable is


def _moved(address: Number, space: str | None) -> Number | None:
    return address._replace(base=address.base._replace(space=space)) if isinstance(address.base, Base) else None


_DIGITS = bytes.maketrans(b"\0\1", b"01")
LOGIC: dict[str, Callable[[Choice, Choice], Choice]] = {
    "&": lambda a, b: Choice(a.true & b.true, a.false | b.false),
    "|": lambda a, b: Choice(a.true | b.true, a.false & b.false),
    "^": lambda a, b: Choice(a.true & b.false | a.false & b.true, a.true & b.true | a.false & b.false),
    "==": lambda a, b: Choice(a.true & b.true | a.false & b.false, a.true & b.false | a.false & b.true),
}
