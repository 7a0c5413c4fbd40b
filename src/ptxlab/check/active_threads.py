"""Which threads of a block can reach an instruction, as far as their position in the block decides it.

A register that is computed from `%tid.x`, `%laneid` and constants alone has a known value in every thread of the block,
and a comparison of such values has a known result. A branch on it sends each thread one way. Whatever else a predicate
depends on (`elect.sync`, memory, parameters), it may be true or false in any thread; combined with `and` and `or` it
stays limited by what is known: `warp == 4 && elected` is false outside warp 4.

Blocks are assumed to be one-dimensional; in a kernel that reads `%tid.y` or `%tid.z`, or that declares a second
dimension, every thread can be anywhere.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from ptxlab import ir
from ptxlab.flow.control import END, Control
from ptxlab.flow.effort import Effort
from ptxlab.isa import Jump, Match, Operation, Type
from ptxlab.isa.special_registers import SpecialKind

from .launch import threads_of

if TYPE_CHECKING:
    from .program import FunctionFacts

MOST_THREADS = 1024
LANES = 32
_DEEPEST = 64  # steps that a value is followed back

Threads = int
"""A set of threads of a block: bit n is thread n."""
Numbers = tuple[int, ...]
"""The value of a register in each thread of the block; only the low bits of the register's width count."""


class Choice(NamedTuple):
    """A predicate: the threads in which it may be true, and those in which it may be false."""

    true: Threads
    false: Threads


class Presence:
    """The threads that can reach the basic blocks of one function."""

    def __init__(self, facts: FunctionFacts, control: Control, effort: Effort) -> None:
        self._facts = facts
        self._control = control
        self._effort = effort
        self.count = min(threads_of(facts.function) or MOST_THREADS, MOST_THREADS)
        self.all: Threads = (1 << self.count) - 1
        self._open = Choice(self.all, self.all)
        self._is_flat = facts.function.kind == "entry" and _is_flat(facts)
        self._numbers: dict[tuple[int, int], Numbers | None] = {}
        self._choices: dict[tuple[int, int], Choice] = {}
        self._has_merged = False  # a predicate to which different paths bring different values
        self._reached: dict[int, Threads] = {}
        self._edges: dict[tuple[int, int], Threads] = {}
        self._reached, self._edges = self._spread()
        if self._has_merged:
            self._choices.clear()  # now it is known by which path a thread can bring a value
            self._reached, self._edges = self._spread()

    def of_block(self, block: int) -> Threads:
        """The threads that can reach a block."""
        return self._reached.get(block, 0)

    def of_edge(self, branch: int, successor: int) -> Threads:
        """The threads that can go from a block to one of its successors."""
        return self._edges.get((branch, successor), 0)

    def of_guard(self, at: int) -> Choice:
        """The threads at an instruction for which its guard may hold, and those for which it may not."""
        guard = self._facts.instructions[at].guard
        here = self.of_block(self._facts.chains.block_of(at))
        chosen = self._guard(at, guard)
        return Choice(chosen.true & here, chosen.false & here)

    def warps(self, threads: Threads) -> frozenset[int]:
        """The warps that have at least one of these threads."""
        return frozenset(warp for warp in range(-(-self.count // LANES)) if threads >> warp * LANES & 0xFFFFFFFF)

    def lanes_of(self, warps: frozenset[int]) -> Threads:
        """All threads of these warps."""
        return self.all & sum(0xFFFFFFFF << warp * LANES for warp in warps)

    def _spread(self) -> tuple[dict[int, Threads], dict[tuple[int, int], Threads]]:
        """Follow all threads from the entry along the branches that they can take: those of each block and edge."""
        edges: dict[tuple[int, int], Threads] = {}
        if not self._is_flat:
            for number, after in self._control.successors.items():
                edges.update({(number, successor): self.all for successor in after})
            return dict.fromkeys(self._control.successors, self.all), edges
        reached: dict[int, Threads] = {}
        arrived = {0: self.all}
        while arrived:
            number, threads = arrived.popitem()
            known = reached.get(number, 0)
            if number == END or threads | known == known:
                continue
            reached[number] = known | threads
            after = self._control.successors[number]
            self._effort.spend(1 + len(after))
            for successor in after:
                going = reached[number] & self._going(number, successor)
                edges[number, successor] = going
                arrived[successor] = arrived.get(successor, 0) | going
        return reached, edges

    def _going(self, number: int, successor: int) -> Threads:
        """The threads that the end of a block can send to a successor."""
        at = self._facts.flow.blocks[number].end - 1
        instruction = self._facts.instructions[at]
        if instruction.guard is None or instruction.opcode.jump is Jump.INDEXED_BRANCH:
            return self.all
        chosen = self._guard(at, instruction.guard)
        falls = number + 1 < len(self._facts.flow.blocks) and successor == number + 1
        leaves = instruction.opcode.jump is not Jump.BRANCH
        jumps = successor == END if leaves else successor in self._facts.flow.targets.get(at, ())
        return (chosen.true if jumps else 0) | (chosen.false if falls or not jumps else 0)

    def _guard(self, at: int, guard: ir.Guard | None) -> Choice:
        if guard is None:
            return Choice(self.all, 0)
        choice = self._choice(at, guard.register, 0)
        return Choice(choice.false, choice.true) if guard.negated else choice

    def _choice(self, at: int, operand: ir.Operand, depth: int) -> Choice:
        """A predicate where instruction `at` reads it."""
        if isinstance(operand, ir.Negated):
            choice = self._choice(at, operand.operand, depth)
            return Choice(choice.false, choice.true)
        if isinstance(operand, ir.Immediate) and not operand.is_float:
            return Choice(self.all, 0) if operand.value else Choice(0, self.all)
        if not isinstance(operand, ir.Register) or depth > _DEEPEST:
            return self._open
        true = false = 0
        writes = self._definitions(at, operand)
        for definition in writes:
            choice = self._defined_choice(definition, operand.index, depth + 1)
            bringing = self._bringing(definition, at, operand.index) if len(writes) > 1 else self.all
            true, false = true | choice.true & bringing, false | choice.false & bringing
        here = self._reached.get(self._facts.chains.block_of(at), 0) if self._edges else self.all
        return Choice(true, false) if here & (true | false) == here else self._open

    def _bringing(self, definition: int, at: int, register: int) -> Threads:
        """The threads that can bring what one instruction writes to a register to another that reads it."""
        if not self._edges:
            self._has_merged = True
            return self.all
        values, instructions = self._facts.chains, self._facts.instructions
        home, target = values.block_of(definition), values.block_of(at)
        if home == target and definition < at:
            return self.of_block(home)
        writes = [write for write in values.writes[register] if instructions[write].guard is None]
        first = {values.block_of(write): write for write in reversed(writes)}
        found, seen = 0, dict[int, Threads]()
        pending = [(home, self.of_block(home))]
        while pending:
            number, threads = pending.pop()
            for successor in self._control.successors.get(number, ()):  # a block that is not reached has none
                self._effort.spend(1)
                going = threads & self.of_edge(number, successor)
                if successor == END or not going & ~seen.get(successor, 0):
                    continue
                seen[successor] = seen.get(successor, 0) | going
                if successor == target and first.get(target, at) >= at:
                    found |= going
                if successor not in first:
                    pending.append((successor, going))
        return found

    def _definitions(self, at: int, register: ir.Register) -> tuple[int, ...]:
        before = self._facts.chains.steps
        writes = self._facts.chains.definitions(at, register.index)
        self._effort.spend(len(writes) + 1 + self._facts.chains.steps - before)
        return writes

    def _defined_choice(self, at: int, register: int, depth: int) -> Choice:
        key = (at, register)
        if key not in self._choices:
            self._choices[key] = self._open  # for a loop that comes back here
            self._choices[key] = self._combine(at, register, depth)
        return self._choices[key]

    def _combine(self, at: int, register: int, depth: int) -> Choice:
        """What an instruction writes to a predicate."""
        instruction = self._facts.instructions[at]
        target, *sources = instruction.operands
        if not isinstance(target, ir.Register) or target.index != register:
            return self._open
        match = self._facts.matches[at]
        operation = None if match is None else match.effects.computes
        if match is not None and operation is Operation.COMPARISON and len(sources) == 2:
            return self._compare(at, match, sources, depth)
        combine = None if operation is None else _LOGIC.get(operation)
        if combine is None:
            return self._open
        return combine(*(self._choice(at, source, depth) for source in sources))

    def _compare(self, at: int, match: Match, sources: Sequence[ir.Operand], depth: int) -> Choice:
        comparison, type = match.candidate.modifiers.cmp, match.expected[1].type
        compare = _COMPARISONS.get(comparison)
        a = self._number(at, sources[0], depth)
        b = None if a is None else self._number(at, sources[1], depth)
        if compare is None or not _is_integer(type) or a is None or b is None:
            return self._open
        # `lo` to `hs` are comparisons without sign; the others follow the type.
        is_signed = type.kind == "s" and comparison not in ("lo", "ls", "hi", "hs")
        self._effort.spend(len(a) // 8)
        holds = bytes(map(compare, _read(a, type, is_signed), _read(b, type, is_signed)))
        true = int(holds[::-1].translate(_DIGITS), 2)
        return Choice(true, self.all & ~true)

    def _number(self, at: int, operand: ir.Operand, depth: int) -> Numbers | None:
        """An integer where instruction `at` reads it; None if it does not follow from the position of the thread."""
        match operand:
            case ir.Immediate() if not operand.is_float:
                return (operand.value,) * self.count
            case ir.SpecialRegister(kind=SpecialKind.THREAD, component="x"):
                return tuple(range(self.count))
            case ir.SpecialRegister(kind=SpecialKind.LANE):
                return tuple(thread % LANES for thread in range(self.count))
            case ir.Register() if depth <= _DEEPEST:
                writes = self._definitions(at, operand)
                if len(writes) == 1 and self._facts.instructions[writes[0]].guard is None:
                    return self._defined_number(writes[0], operand.index, depth + 1)
        return None

    def _defined_number(self, at: int, register: int, depth: int) -> Numbers | None:
        key = (at, register)
        if key not in self._numbers:
            self._numbers[key] = None  # for a loop that comes back here
            self._numbers[key] = self._compute(at, register, depth)
        return self._numbers[key]

    def _compute(self, at: int, register: int, depth: int) -> Numbers | None:
        """What an instruction writes to an integer register."""
        target, *sources = self._facts.instructions[at].operands
        match = self._facts.matches[at]
        if match is None or match.effects.computes is None:
            return None
        if match.effects.computes is Operation.SHUFFLE:
            return self._shuffle(at, match, target, register, sources, depth)
        compute = _ARITHMETIC.get(match.effects.computes)
        types = [expected.type for expected in match.expected]
        integers = [type for type in types if _is_integer(type)]
        m = match.candidate.modifiers
        if compute is None or len(integers) < len(types) or m.sat or m.relu:
            return None
        if not isinstance(target, ir.Register) or target.index != register:
            return None
        numbers = [self._number(at, source, depth) for source in sources]
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers) or not known:
            return None
        self._effort.spend(self.count // 8)
        result, *read = [(type, type.kind == "s") for type in integers]
        columns = [_read(number, *how) for number, how in zip(known, read, strict=True)]
        computed = [number for number in map(compute, *columns) if number is not None]
        # A register that is wider than the result has its sign, too.
        return tuple(_read(computed, *result)) if len(computed) == self.count else None

    def _shuffle(
        self, at: int, match: Match, target: ir.Operand, register: int, sources: Sequence[ir.Operand], depth: int
    ) -> Numbers | None:
        """The value of one lane of the warp, if all lanes read the same one."""
        first = target.first if isinstance(target, ir.Pair) else target
        lane, clamp = (source.value if isinstance(source, ir.Immediate) else None for source in sources[1:3])
        if match.candidate.modifiers.mode != "idx" or lane is None or clamp != LANES - 1:
            return None
        numbers = self._number(at, sources[0], depth)
        if numbers is None or not isinstance(first, ir.Register) or first.index != register:
            return None
        chosen = (thread // LANES * LANES + lane % LANES for thread in range(self.count))
        return tuple(numbers[lane] if lane < self.count else 0 for lane in chosen)


def _is_integer(type: Type | None) -> TypeGuard[Type]:
    return type is not None and type.kind in "usb" and type.lanes == 1


def _is_flat(facts: FunctionFacts) -> bool:
    directive = facts.function.directive("reqntid") or facts.function.directive("maxntid")
    if directive is not None and any(size != 1 for size in directive.arguments[1:]):
        return False
    return not any(
        isinstance(operand, ir.SpecialRegister) and operand.kind is SpecialKind.THREAD and operand.component != "x"
        for instruction in facts.instructions
        for operand in instruction.operands
    )


_DIGITS = bytes.maketrans(b"\0\1", b"01")


def _read(values: Sequence[int], type: Type, is_signed: bool) -> Sequence[int]:
    """The low bits of each value as a number."""
    sign = 1 << type.width - 1 if is_signed else 0
    mask = (1 << type.width) - 1
    if values and -sign <= min(values) and max(values) <= mask - sign:
        return values
    return [(value & mask ^ sign) - sign for value in values]


def _and(a: Choice, b: Choice) -> Choice:
    return Choice(a.true & b.true, a.false | b.false)


def _or(a: Choice, b: Choice) -> Choice:
    return Choice(a.true | b.true, a.false & b.false)


def _xor(a: Choice, b: Choice) -> Choice:
    return Choice((a.true & b.false) | (a.false & b.true), (a.true & b.true) | (a.false & b.false))


_LOGIC: dict[Operation, Callable[..., Choice]] = {
    Operation.COPY: lambda a: a,
    Operation.NOT: lambda a: Choice(a.false, a.true),
    Operation.AND: _and,
    Operation.OR: _or,
    Operation.XOR: _xor,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lo": operator.lt,
    "le": operator.le,
    "ls": operator.le,
    "gt": operator.gt,
    "hi": operator.gt,
    "ge": operator.ge,
    "hs": operator.ge,
}
_ARITHMETIC: dict[Operation, Callable[..., int | None]] = {
    Operation.COPY: lambda a: a,
    Operation.CONVERSION: lambda a: a,
    Operation.SUM: operator.add,
    Operation.DIFFERENCE: operator.sub,
    Operation.PRODUCT: operator.mul,
    Operation.PRODUCT_SUM: lambda a, b, c: a * b + c,
    Operation.LEFT_SHIFT: lambda a, b: a << b if b < 64 else 0,
    Operation.RIGHT_SHIFT: operator.rshift,
    Operation.QUOTIENT: lambda a, b: a // b if a >= 0 and b > 0 else None,
    Operation.REMAINDER: lambda a, b: a % b if a >= 0 and b > 0 else None,
    Operation.AND: operator.and_,
    Operation.OR: operator.or_,
    Operation.XOR: operator.xor,
    Operation.NOT: operator.invert,
    Operation.MINIMUM: min,
    Operation.MAXIMUM: max,
}
