"""How values differ between threads: alike in the whole block, alike in each warp, or different from lane to lane.

A value is followed back from where it is asked for. What starts as different: `%tid`, `%laneid`, `%lanemask_*`, the
results of `elect.sync` and atomics. What makes alike: shifting or masking the lane away, `vote`, `redux`, `shfl` from
one lane; in the whole block, where it is of what depends on the lane alone and so is the same in every warp. A loop
from `%tid.x` in steps of `%ntid.x` to a multiple of it has as many turns in every thread.
A register that several instructions write also differs if a branch that differs chose among them. Whatever
is not known counts as alike, so that a rule stays silent about it.

Blocks are taken to be one-dimensional, and their size and that of unknown strides to be a multiple of 32.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.ir.effects import registers_in
from ptxlab.isa import Jump, Match, Operation
from ptxlab.isa.effects import Effects
from ptxlab.isa.special_registers import SpecialKind

BLOCK, WARP, LANE = range(3)  # alike in the block, alike in each warp, different from lane to lane
_LANES = 32
_BRANCH = -1  # in place of a register: the question whether a branch is taken

Node = tuple[int, int]  # an instruction and the register that it writes, or _BRANCH


class Uniformity(NamedTuple):
    """What is known of a value; `grain` g > 0 says that lanes differ only by less than g above a multiple of g."""

    level: int
    grain: int = 0
    constant: int | None = None
    repeats: bool = False
    """Whether it depends on the lane alone, so that all warps have the same values."""
    in_blocks: bool = False
    """Whether it is a multiple of `%ntid.x` or, different from lane to lane, `%tid.x` above one."""


ALIKE = Uniformity(BLOCK)
_SPECIAL = {
    SpecialKind.LANE: Uniformity(LANE, _LANES, repeats=True),
    SpecialKind.LANE_MASK: Uniformity(LANE, repeats=True),
    SpecialKind.WARP: Uniformity(WARP),
}


class Divergence:
    """How the branches and guards of one function differ between threads."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._effort = facts.effort
        self._control = facts.control
        self._origins = facts.chains
        self._values: dict[Node, Uniformity | None] = {}
        self._sources: dict[Node, dict[Node, None]] = defaultdict(dict)
        self._users: dict[Node, set[Node]] = defaultdict(set)
        self._pending: list[Node] = []

    def of_guard(self, at: int) -> int:
        """How the decision of instruction `at` differs: whether it runs or, of a branch, where it goes."""
        return self._solve((at, _BRANCH)).level

    def origin(self, at: int) -> int:
        """The position of the instruction from which the decision of instruction `at` got its difference."""
        node: Node = (at, _BRANCH)
        level = self._solve(node).level
        seen = {node}
        while True:
            earlier = [s for s in self._sources[node] if s not in seen and (self._values[s] or ALIKE).level >= level]
            instruction = self._facts.instructions[node[0]]
            if not earlier or any(_special(operand).level >= level for operand in instruction.operands):
                return node[0]
            node = next((s for s in earlier if s[1] != _BRANCH), earlier[0])
            seen.add(node)

    def _solve(self, root: Node) -> Uniformity:
        if root not in self._values:
            self._values[root] = None
            self._pending.append(root)
        while self._pending:
            node = self._pending.pop()
            old = self._values[node]
            new = _join(old, self._evaluate(node))
            if new != old:
                self._values[node] = new
                self._pending.extend(self._users[node])
        return self._values[root] or ALIKE

    def _ask(self, asking: Node, node: Node) -> Uniformity | None:
        self._users[node].add(asking)
        self._sources[asking][node] = None
        if node not in self._values:
            self._values[node] = None
            self._pending.append(node)
        return self._values[node]

    def _register(self, asking: Node, register: int) -> Uniformity | None:
        """The value of a register where the asking instruction reads it."""
        at = asking[0]
        before = self._origins.steps
        writes = self._origins.definitions(at, register)
        self._effort.spend(len(writes) + self._origins.steps - before)
        if not writes:
            return ALIKE
        value: Uniformity | None = None
        for definition in writes:
            value = _join(value, self._ask(asking, (definition, register)))
        for branch in self._choosing(writes, at):
            choice = self._ask(asking, (self._facts.flow.blocks[branch].end - 1, _BRANCH))
            if choice is not None and choice.level > BLOCK and value is not None:
                value = Uniformity(max(choice.level, value.level), repeats=_repeat([choice, value]))
        return value

    def _choosing(self, writes: tuple[int, ...], at: int) -> set[int]:
        """The branches that decide which of several writes is read, or how often the loop around a write ran."""
        here = self._origins.block_of(at)
        found: set[int] = set()
        for definition in writes:
            block = self._origins.block_of(definition)
            if (block == here and len(writes) == 1) or not self._control.branches.get(block):
                continue
            between = self._control.deciding(block) - self._control.deciding(here)
            self._effort.spend(len(between))
            if len(writes) == 1:
                between = frozenset(b for b in between if b in self._control.reachable(block))
            found |= between
        return found

    def _operand(self, asking: Node, operand: ir.Operand) -> Uniformity | None:
        match operand:
            case ir.Register():
                return self._register(asking, operand.index)
            case ir.Immediate():
                return ALIKE if operand.is_float else Uniformity(BLOCK, 0, operand.value, in_blocks=operand.value == 0)
            case ir.SpecialRegister():
                return _special(operand)
            case ir.Negated() | ir.Minus():
                inner = self._operand(asking, operand.operand)
                return inner and Uniformity(inner.level, repeats=inner.repeats)
        value: Uniformity | None = ALIKE
        for register in registers_in(operand):
            value = _highest([value, self._register(asking, register.index)])
        return value

    def _evaluate(self, node: Node) -> Uniformity | None:
        at, register = node
        instruction, match = self._facts.instructions[at], self._facts.matches[at]
        guard = instruction.guard
        value: Uniformity | None = ALIKE
        if register == _BRANCH:
            if instruction.opcode.jump is Jump.INDEXED_BRANCH:
                value = self._operand(node, instruction.operands[0])
        elif match is not None:
            value = self._result(node, instruction, match)
        if guard is not None:
            value = _guarded(value, self._operand(node, guard.register))
        return value

    def _result(self, node: Node, instruction: ir.Instruction, match: Match) -> Uniformity | None:
        effects = match.effects
        if effects.elects:
            return Uniformity(LANE if _is_second(instruction, node[1]) else WARP)
        if is_own(effects):
            return Uniformity(LANE)
        if effects.barrier or effects.uses("mbarrier") or _is_private(effects):
            return ALIKE
        operands = instruction.operands
        values = [self._operand(node, operands[i]) for i, e in enumerate(match.expected) if e.role != "write"]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        highest = _highest(known) or ALIKE
        if effects.uniform:
            return _in_each_warp(known) if values else Uniformity(WARP)
        if effects.computes is Operation.SHUFFLE:
            return _shuffled(instruction, match, node[1], known)
        if effects.accesses and highest.level == WARP:
            return ALIKE  # a table with an entry for each warp often has the same for all of them
        follow = None if effects.computes is None else _ARITHMETIC.get(effects.computes)
        found = (follow and follow(match, known)) or highest
        found = found._replace(repeats=True) if found.level == LANE and _repeat(known) else found
        if effects.computes is None or effects.computes in _KEEPING:
            return found
        return found._replace(
            in_blocks=_counts_in_blocks(effects.computes, known) or self._is_rounded_to_blocks(node[0], match)
        )

    def _is_rounded_to_blocks(self, at: int, match: Match) -> bool:
        """Whether it is `x - x % n` of a multiple `n` of the block's size, as compilers round down to one."""
        instruction = self._facts.instructions[at]
        if match.effects.computes is not Operation.DIFFERENCE or len(instruction.operands) != 3:
            return False
        whole, rest = instruction.operands[1:]
        if not isinstance(whole, ir.Register) or not isinstance(rest, ir.Register):
            return False
        writes = self._origins.definitions(at, rest.index)
        divided = self._facts.matches[writes[0]] if len(writes) == 1 else None
        if divided is None or divided.effects.computes is not Operation.REMAINDER:
            return False
        value, divisor = self._facts.instructions[writes[0]].operands[1:]
        if not isinstance(value, ir.Register) or value.index != whole.index:
            return False
        known = self._operand((writes[0], rest.index), divisor)
        same = self._origins.definitions(at, whole.index) == self._origins.definitions(writes[0], whole.index)
        return same and known is not None and known.level == BLOCK and known.in_blocks


def is_own(effects: Effects) -> bool:
    """Whether each lane gets a result of its own, whatever the operands: of an atomic, or its part of a matrix."""
    return (
        any(access.kind == "update" or (access.kind == "load" and effects.converges) for access in effects.accesses)
        and not effects.steps
    )


def _is_private(effects: Effects) -> bool:
    """Whether it loads what is not followed through memory: from local memory, or parameters."""
    return any((access.space or "").partition("::")[0] in ("local", "param") for access in effects.accesses)


def _join(a: Uniformity | None, b: Uniformity | None) -> Uniformity | None:
    """A value that is either of two."""
    if a is None or b is None:
        return a if b is None else b
    grain = gcd(a.grain, b.grain) if a.grain and b.grain else 0
    if (a.level, b.level).count(LANE) == 1:
        grain = a.grain or b.grain  # alike in the warp goes with any grain
    constant = a.constant if a.constant == b.constant else None
    in_blocks = a.in_blocks and b.in_blocks and a.level == b.level
    return Uniformity(max(a.level, b.level), grain, constant, _repeat([a, b]), in_blocks)


def _highest(values: Sequence[Uniformity | None]) -> Uniformity | None:
    """What depends on all of these in an unknown way."""
    known = [value.level for value in values if value is not None]
    return Uniformity(max(known, default=BLOCK), repeats=_repeat(values)) if len(known) == len(values) else None


def _repeat(values: Sequence[Uniformity | None]) -> bool:
    """Whether a value that depends on these, which differ from lane to lane, is the same in all warps."""
    known = [value for value in values if value is not None]
    return any(value.level == LANE for value in known) and all(v.level == BLOCK or v.repeats for v in known)


def _in_each_warp(values: Sequence[Uniformity]) -> Uniformity:
    """What all lanes of a warp get of values that they have together."""
    return ALIKE if _repeat(values) else Uniformity(min(max(value.level for value in values), WARP))


def _guarded(value: Uniformity | None, guard: Uniformity | None) -> Uniformity | None:
    if value is None or guard is None or guard.level == BLOCK:
        return value
    grain = value.grain if guard.level < LANE else 0
    return Uniformity(max(value.level, guard.level), grain, repeats=_repeat([value, guard]))


def _special(operand: ir.Operand) -> Uniformity:
    if not isinstance(operand, ir.SpecialRegister):
        return ALIKE
    is_first = operand.component in ("x", "r")
    if operand.kind is SpecialKind.THREAD:
        return Uniformity(LANE, _LANES, in_blocks=True) if is_first else Uniformity(WARP)
    if operand.kind is SpecialKind.BLOCK_SIZE:
        return Uniformity(BLOCK, in_blocks=is_first)
    return _SPECIAL.get(operand.kind, ALIKE)


def _is_second(instruction: ir.Instruction, register: int) -> bool:
    pair = instruction.operands[0]
    return isinstance(pair, ir.Pair) and isinstance(pair.second, ir.Register) and pair.second.index == register


def _shuffled(instruction: ir.Instruction, match: Match, register: int, values: list[Uniformity]) -> Uniformity:
    """Of a whole warp, `.idx` with one lane for all gives all lanes one value; exchanges with `.bfly` usually add up
    to one."""
    value, lane, clamp = values[:3]
    mode = match.candidate.modifiers.mode
    if _is_second(instruction, register):
        repeats = lane.level == BLOCK or lane.repeats  # whether the lane is in range
        return Uniformity(lane.level, repeats=lane.repeats) if mode == "idx" else Uniformity(LANE, repeats=repeats)
    whole = clamp.constant is None or clamp.constant & 0x1F00 == 0
    if mode == "bfly" or (mode == "idx" and lane.level < LANE and whole):
        return _in_each_warp([value, lane] if mode == "idx" else [value])
    return Uniformity(value.level, repeats=_repeat([value, lane]))


def _counts_in_blocks(operation: Operation, values: list[Uniformity]) -> bool:
    """Whether a result is a multiple of the block's size, or the index of the thread above one."""
    alike = [value.level == BLOCK for value in values]
    whole = [value.in_blocks for value in values]
    match operation:
        case Operation.SUM:
            return all(whole) and alike.count(False) <= 1
        case Operation.DIFFERENCE:
            return all(whole) and alike[-1]
        case Operation.PRODUCT | Operation.SHORT_PRODUCT:
            return any(whole) and all(alike)
        case Operation.PRODUCT_SUM | Operation.SHORT_PRODUCT_SUM:
            return any(whole[:2]) and all(alike[:2]) and whole[2]
        case Operation.LEFT_SHIFT:
            return whole[0] and all(alike)
    return False


def _kept(match: Match, values: list[Uniformity]) -> Uniformity | None:
    """A copy, a conversion or an address of one value keeps it."""
    return values[0] if len(match.expected) == 2 and not match.expected[0].count else None


def _added(_: Match, values: list[Uniformity]) -> Uniformity | None:
    """The sum keeps the grain if what is added is a multiple of it; what is alike but unknown is taken to be one."""
    if len(values) != 2:
        return None
    first, second = values if values[0].level == LANE else values[::-1]
    if first.level < LANE or second.level == LANE or not first.grain or (second.constant or 0) % first.grain:
        return None
    return Uniformity(LANE, first.grain)


def _multiplied(_: Match, values: list[Uniformity]) -> Uniformity | None:
    first, second = values[:2] if values[0].level == LANE else values[1::-1]
    if first.grain and second.constant is not None and second.constant > 0:
        return Uniformity(first.level, first.grain * second.constant)
    return None


def _multiplied_and_added(match: Match, values: list[Uniformity]) -> Uniformity | None:
    product = _multiplied(match, values) or _highest(values[:2])
    return _added(match, [product, values[2]]) if product else None


def _shifted_left(_: Match, values: list[Uniformity]) -> Uniformity | None:
    value, count = values
    if value.grain and count.constant is not None and 0 <= count.constant < 32:
        return Uniformity(value.level, value.grain << count.constant)
    return None


def _shifted_right(_: Match, values: list[Uniformity]) -> Uniformity | None:
    value, count = values
    if value.grain and count.constant is not None and count.constant >= 0:
        return _divided_by(value, 1 << min(count.constant, 64))
    return None


def _divided(_: Match, values: list[Uniformity]) -> Uniformity | None:
    value, divisor = values
    if value.grain and divisor.constant is not None and divisor.constant > 0:
        return _divided_by(value, divisor.constant)
    return None


def _divided_by(value: Uniformity, divisor: int) -> Uniformity | None:
    if divisor % value.grain == 0:
        return Uniformity(min(value.level, WARP))
    return Uniformity(value.level, value.grain // divisor) if value.grain % divisor == 0 else None


def _remainder(_: Match, values: list[Uniformity]) -> Uniformity | None:
    value, divisor = values
    if not value.grain or divisor.constant is None or divisor.constant <= 0:
        return None
    if value.grain % divisor.constant == 0:
        return Uniformity(value.level, repeats=True)
    return Uniformity(value.level, value.grain) if divisor.constant % value.grain == 0 else None


def _masked(_: Match, values: list[Uniformity]) -> Uniformity | None:
    """`and` with a constant that has no bit below the grain leaves what is alike."""
    if len(values) != 2:
        return None
    value, mask = values if values[0].grain else values[::-1]
    if not _is_power(value.grain) or mask.constant is None:
        return None
    if mask.constant & (value.grain - 1) == 0:
        return Uniformity(min(value.level, WARP))
    return Uniformity(value.level, value.grain, repeats=0 < mask.constant < value.grain)


def _with_bits(_: Match, values: list[Uniformity]) -> Uniformity | None:
    """`or` and `xor` with a constant stay within the grain."""
    value, other = values if values[0].grain else values[::-1]
    if not _is_power(value.grain) or other.level == LANE:
        return None
    return Uniformity(value.level, value.grain)


def _is_power(grain: int) -> bool:
    return grain > 0 and grain & (grain - 1) == 0


def _compared(match: Match, values: list[Uniformity]) -> Uniformity | None:
    """A threshold that is a multiple of the grain does not part the lanes of a warp."""
    value, other = values[:2]
    compared = match.expected[1].type
    if value.level == other.level == LANE and compared is not None and compared.kind != "f":
        return ALIKE  # often both are one index of the thread with something added, as loops over pointers compare
    below, upto = ("lt", "ge", "lo", "hs"), ("le", "gt", "ls", "hi")
    if (
        value.in_blocks
        and other.in_blocks
        and match.candidate.modifiers.cmp in (upto if value.level == BLOCK else below)
    ):
        return _highest(values[2:]) or ALIKE
    if not value.grain:
        value, other, below, upto = other, value, upto, below
    threshold = other.constant
    if not value.grain or threshold is None:
        return None
    comparison = match.candidate.modifiers.cmp
    parts = None
    if comparison in below:
        parts = threshold % value.grain
    elif comparison in upto:
        parts = (threshold + 1) % value.grain
    if parts != 0:
        return None
    rest = _highest(values[2:]) or ALIKE
    return Uniformity(max(min(value.level, WARP), rest.level))


_KEEPING = frozenset((Operation.COPY, Operation.CONVERSION, Operation.ADDRESS))
_ARITHMETIC = {
    Operation.COPY: _kept,
    Operation.CONVERSION: _kept,
    Operation.ADDRESS: _kept,
    Operation.SUM: _added,
    Operation.DIFFERENCE: _added,
    Operation.PRODUCT: _multiplied,
    Operation.SHORT_PRODUCT: _multiplied,
    Operation.PRODUCT_SUM: _multiplied_and_added,
    Operation.SHORT_PRODUCT_SUM: _multiplied_and_added,
    Operation.LEFT_SHIFT: _shifted_left,
    Operation.RIGHT_SHIFT: _shifted_right,
    Operation.QUOTIENT: _divided,
    Operation.REMAINDER: _remainder,
    Operation.AND: _masked,
    Operation.OR: _with_bits,
    Operation.XOR: _with_bits,
    Operation.COMPARISON: _compared,
}
