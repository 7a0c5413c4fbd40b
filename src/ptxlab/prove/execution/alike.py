"""Which threads of a block store the same value: values are numbered, thread by thread.

Two threads have the same value where the same instruction computes it from the same values; where they load it from
the same address, since a write in between would be a race; and where shuffles exchange operands of a commutative
operation: `x + y`, with `y` the `x` of the lane whose number differs in one bit, is the same in both lanes. What is not
computed in the same turn of the same loop, by instructions that all lanes execute, is taken to differ.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import prod

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.flow.expressions import Linear, linear
from ptxlab.isa import Match
from ptxlab.isa.operation import Operation
from ptxlab.isa.special_registers import SpecialKind
from ptxlab.prove.terms.terms import Loop, Terms, is_certain, is_thread_index, leaves

LANES = 31  # all bits of the number of a lane
WHOLE = (1 << 32) - 1  # all lanes
COMMUTATIVE = frozenset(
    [Operation.SUM, Operation.PRODUCT, Operation.MINIMUM, Operation.MAXIMUM, Operation.AND, Operation.OR, Operation.XOR]
)
_SAME = (SpecialKind.BLOCK, SpecialKind.BLOCK_SIZE)
Values = tuple[Hashable, ...]
"""A value of each thread; equal ones are the same number at run time."""


class Alike:
    """In which bits the numbers of threads may differ that store the same value, as a mask."""

    def __init__(self, facts: Facts, terms: Terms) -> None:
        self.facts, self.terms = facts, terms
        self.count = prod(terms.block)
        self.addresses: dict[int, tuple[Linear, tuple[Loop, ...]]] = {}
        """Where each plain load reads that was noted last, and the loops around it."""
        self._known: dict[tuple[int, int], Values] = {}
        self._numbers: dict[Hashable, int] = {}

    def stored(self, at: int, match: Match) -> int:
        """For what an instruction stores."""
        if self.count % 32:
            return 0
        self._known.clear()  # in another turn of a loop that runs turn by turn, addresses are others
        pairs = zip(self.facts.instructions[at].operands, match.expected, strict=True)
        values = [operand for operand, expected in pairs if expected.kind != "address"]
        parts = [one for value in values for one in (value.elements if isinstance(value, ir.Vector) else (value,))]
        stored = self._together(at, [self._read(at, one) for one in parts])
        found = 0
        for bit in (1 << n for n in range((self.count - 1).bit_length())):
            if self.count % (2 * bit) == 0 and all(stored[t] == stored[t ^ bit] for t in range(self.count)):
                found |= bit
        return found

    def _together(self, key: Hashable, parts: list[Values]) -> Values:
        """One value for those of several operands."""
        return tuple(self._number((key, *row)) for row in zip(*parts, strict=True)) if parts else (key,) * self.count

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _read(self, at: int, operand: ir.Operand) -> Values:
        match operand:
            case ir.Register():
                return self._register(at, operand.index)
            case ir.Immediate():
                return (("immediate", operand.value),) * self.count
            case ir.SpecialRegister() if operand.kind in _SAME:
                return ((operand.name, operand.component),) * self.count
        return self._own(("operand", at, id(operand)))

    def _own(self, key: Hashable) -> Values:
        """A value that differs between threads, as far as is known."""
        return tuple((key, thread) for thread in range(self.count))

    def _register(self, at: int, register: int) -> Values:
        source = self._source(at, register)
        if source is not None:
            key = source, register
            if key not in self._known:
                self._known[key] = self._own(key)  # of what depends on itself
                self._known[key] = self._computed(*key)
            return self._known[key]
        chains = self.facts.chains
        block = chains.block_of(at)
        is_entered = not chains.writes_in(register, self.facts.flow.blocks[block].start, at)
        return self._own(("entered", block, register) if is_entered else ("read", at, register))

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

    def _computed(self, at: int, register: int) -> Values:
        instruction, match = self.facts.instructions[at], self.facts.matches[at]
        own = self._own((at, register))
        if match is None or instruction.guard is not None:
            return own
        e = match.effects
        if e.steps or e.barrier or e.fences or e.carry or e.elects or e.uniform:
            return own  # not of its operands only: `activemask` has none
        writes = self.facts.effects.writes[at]
        is_shuffle = self.facts.operation(at) is Operation.SHUFFLE
        if self.facts.loaded_parameter(at, register) is not None:
            return ((at, register),) * self.count
        if [one.kind for one in e.accesses] == ["load"] and not e.converges:
            return self._loaded(at, writes.index(register)) or own
        if e.accesses or writes[0] != register or ((len(writes) > 1 or e.converges) and not is_shuffle):
            return own  # the second result of a shuffle is whether its lane is there
        if is_shuffle:
            distance = self._distance(at, match)
            given = self._read(at, instruction.operands[1])
            return tuple(given[thread ^ distance] for thread in range(self.count)) if distance else own
        parts = [self._read(at, one) for one in instruction.operands[1:]]
        if self.facts.operation(at) is Operation.COPY and len(parts) == 1:
            return parts[0]  # also as another type: floats are exchanged as bits
        if self.facts.operation(at) in COMMUTATIVE and len(parts) == 2:
            numbers = [(self._number(a), self._number(b)) for a, b in zip(*parts, strict=True)]
            parts = [tuple(min(pair) for pair in numbers), tuple(max(pair) for pair in numbers)]
        return self._together(at, parts)

    def _loaded(self, at: int, position: int) -> Values | None:
        """What a load writes to one of its registers: the same where the address is."""
        if at not in self.addresses:
            return None
        address, loops = self.addresses[at]
        indices = [atom for atom in leaves([address]) if is_thread_index(atom)]

        def place(thread: int) -> Linear:
            places = self.terms.place(thread)
            # Of threads of one block, the rank is the same.
            replaced = {atom: linear(atom.type, places.get(str(atom.detail)[-1], 0)) for atom in indices}
            return self.terms.substitute(address, replaced)

        first = place(0)
        neighbors = [place(1 << n) for n in range((self.count - 1).bit_length())]
        if not is_certain([first], loops) or first not in neighbors:
            return None
        found = [place(thread) for thread in range(self.count)]
        return tuple(self._number((at, position, one)) for one in found) if is_certain(found, loops) else None

    def _distance(self, at: int, match: Match) -> int:
        """The bit in which the numbers of lanes differ that exchange values; 0 if it is not a butterfly of a warp."""
        instruction = self.facts.instructions[at]
        given = [self.facts.symbolic(at, one) for one in instruction.operands[2:]]
        if match.candidate.modifiers.mode != "bfly" or not all(one.is_constant for one in given):
            return 0
        bit, clamp, mask = (one.constant for one in given)
        return bit if clamp == LANES and mask & WHOLE == WHOLE and 0 < bit <= LANES and not bit & (bit - 1) else 0
