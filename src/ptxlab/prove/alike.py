"""Values that lanes of a warp have in common: after a butterfly of shuffles, all of them.

`x + y` where `y` is `x` of the lane whose number differs in one bit is the same in both lanes: the sum of the same two
values. So lanes whose numbers differ in such bits only store one value, which is not a race. What is not computed in
the same turn of the same loop, by instructions that all lanes execute, is taken to differ.
"""

from __future__ import annotations

from math import prod

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.isa import Match
from ptxlab.isa.operation import Operation
from ptxlab.isa.special_registers import SpecialKind

from .terms import Terms

LANES = 31  # all bits of the number of a lane
WHOLE = (1 << 32) - 1  # all lanes
COMMUTATIVE = frozenset(
    [Operation.SUM, Operation.PRODUCT, Operation.MINIMUM, Operation.MAXIMUM, Operation.AND, Operation.OR, Operation.XOR]
)
_SAME = (SpecialKind.BLOCK, SpecialKind.BLOCK_SIZE)


class Alike:
    """In which bits the numbers of lanes may differ that hold the same value, as a mask."""

    def __init__(self, facts: Facts, terms: Terms) -> None:
        self.facts, self.terms = facts, terms
        self._known: dict[int, int] = {}

    def stored(self, at: int, match: Match) -> int:
        """For what an instruction stores."""
        if prod(self.terms.block) % 32:
            return 0
        pairs = zip(self.facts.instructions[at].operands, match.expected, strict=True)
        values = [operand for operand, expected in pairs if expected.kind != "address"]
        found = LANES
        for value in values:
            for one in value.elements if isinstance(value, ir.Vector) else (value,):
                found &= self._read(at, one)
        return found

    def _read(self, at: int, operand: ir.Operand) -> int:
        if isinstance(operand, ir.Register):
            source = self._source(at, operand.index)
            return 0 if source is None else self._result(source)
        if isinstance(operand, ir.SpecialRegister):
            return LANES if operand.kind in _SAME else 0
        return LANES if isinstance(operand, ir.Immediate) else 0

    def _source(self, at: int, register: int) -> int | None:
        """The one instruction that writes what another reads, in the same turn of the same loop."""
        found = self.facts.chains.definitions(at, register)
        if len(found) != 1:
            return None
        block, here = self.facts.chains.block_of(found[0]), self.facts.chains.block_of(at)
        is_before = found[0] < at if block == here else self.terms.dominates(block, here)
        return found[0] if is_before and self._loop(block) == self._loop(here) else None

    def _loop(self, block: int) -> int | None:
        """The head of the innermost loop that a block is in."""
        around = [(len(inside), head) for head, inside in self.terms.loops.items() if block in inside]
        return min(around)[1] if around else None

    def _result(self, at: int) -> int:
        if at not in self._known:
            self._known[at] = 0  # of what depends on itself
            self._known[at] = self._computed(at)
        return self._known[at]

    def _computed(self, at: int) -> int:
        instruction, match = self.facts.instructions[at], self.facts.matches[at]
        if match is None or instruction.guard is not None or len(self.facts.effects.writes[at]) != 1:
            return 0
        e = match.effects
        if self.facts.operation(at) is Operation.SHUFFLE:
            return self._read(at, instruction.operands[1]) if self._distance(at, match) else 0
        if e.accesses or e.steps or e.barrier or e.converges or e.fences or e.carry or e.elects:
            return 0
        sources = instruction.operands[1:]
        found = LANES
        for one in sources:
            found &= self._read(at, one)
        if self.facts.operation(at) in COMMUTATIVE and len(sources) == 2:
            found |= self._exchanged(at, sources[0], sources[1]) | self._exchanged(at, sources[1], sources[0])
        return found

    def _exchanged(self, at: int, own: ir.Operand, other: ir.Operand) -> int:
        """What two lanes have in common that each compute from a value and that of the other lane."""
        if not isinstance(own, ir.Register) or not isinstance(other, ir.Register):
            return 0
        shuffle = self._source(at, other.index)
        match = None if shuffle is None else self.facts.matches[shuffle]
        distance = 0 if shuffle is None or match is None else self._distance(shuffle, match)
        if shuffle is None or not distance:
            return 0
        given = self.facts.instructions[shuffle].operands[1]
        if not isinstance(given, ir.Register) or given.index != own.index:
            return 0
        source, chains = self._source(at, own.index), self.facts.chains
        is_near = chains.block_of(shuffle) == chains.block_of(at) and not chains.writes_in(own.index, shuffle + 1, at)
        if not is_near and (source is None or self._source(shuffle, own.index) != source):
            return 0
        return distance | (0 if source is None else self._result(source))

    def _distance(self, at: int, match: Match) -> int:
        """The bit in which the numbers of lanes differ that exchange values; 0 if it is not a butterfly of a warp."""
        instruction = self.facts.instructions[at]
        if self.facts.operation(at) is not Operation.SHUFFLE or instruction.guard is not None:
            return 0
        numbers = [one.value for one in instruction.operands[2:] if isinstance(one, ir.Immediate)]
        if match.candidate.modifiers.mode != "bfly" or len(numbers) != 3:
            return 0
        bit, clamp, mask = numbers
        return bit if clamp == LANES and mask & WHOLE == WHOLE and 0 < bit <= LANES and not bit & (bit - 1) else 0
