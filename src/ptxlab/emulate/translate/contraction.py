"""Products and sums of a function that become one instruction, which rounds once.

`ProductSums` finds what PTX lets a compiler contract. `contract` replaces the sums that were chosen by instructions on
the factors and the addend, each at its own position, so that everything that counts instructions stays as it was. The
product is still computed for whatever else reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from ptxlab import ir
from ptxlab.check.program import FunctionFacts
from ptxlab.ir.effects import registers_in
from ptxlab.ir.node import building
from ptxlab.ir.shapes import match_of
from ptxlab.isa import Match, type_named
from ptxlab.isa.contraction import (
    Contraction,
    agree,
    contracted,
    folded,
    is_product,
    is_quotient,
    is_sum,
    keeping,
    negates,
    passes_on,
)
from ptxlab.values import dataclass

MOST_COPIES = 8  # between a product and its sum
MOST_STEPS = 1_000_000  # blocks that are searched for where values come from


@dataclass(frozen=True)
class ProductSum:
    """A sum, by its position among the instructions of its function, and the product that is one of its operands."""

    sum: int
    product: int
    operand: int
    is_negated: bool = False

    @property
    def choice(self) -> tuple[int, int]:
        """What has to be known of it: the sum, and which operand."""
        return self.sum, self.operand


class ProductSums:
    """What may be contracted in a function."""

    def __init__(self, function: ir.Function) -> None:
        self.instructions = list(function.instructions())
        self.matches = [match_of(instruction) for instruction in self.instructions]
        self._facts = FunctionFacts(function, self.instructions, self.matches)

    @cached_property
    def all(self) -> dict[tuple[int, int], ProductSum]:
        """All of them, by their choices: a sum of two products has two."""
        products = [m is not None and is_product(m) for m in self.matches]
        if not any(products):
            return {}
        found = {}
        for at, match in enumerate(self.matches):
            if match is not None and is_sum(match):
                for operand in (0, 1):
                    pair = self._pair(at, operand, products)
                    if pair is not None:
                        found[pair.choice] = pair
        return found

    def first_of_each(self) -> list[ProductSum]:
        """One pair for each sum, that of its first operand if both are products, as ptxas prefers."""
        chosen: dict[int, ProductSum] = {}
        for pair in self.all.values():
            chosen.setdefault(pair.sum, pair)
        return list(chosen.values())

    def is_only_summed(self, product: int) -> bool:
        """Whether all that reads a product are sums of its block that it can be contracted with: then ptxas does it."""
        block_of = self._facts.chains.block_of
        sums = {pair.sum for pair in self.all.values() if pair.product == product}
        return self._only_reaches(product, {at for at in sums if block_of(at) == block_of(product)})

    def _only_reaches(self, at: int, sums: set[int], copies: int = MOST_COPIES) -> bool:
        """Whether all that needs a result, directly or by copies, are these sums."""
        values = self._facts.chains
        reads = {use for register in self._facts.effects.writes[at] for use in values.uses(at, register)}
        return all(use in sums or self._passes_to(use, sums, copies) for use in reads if use in self._needed)

    def _passes_to(self, at: int, sums: set[int], copies: int) -> bool:
        """Whether it is a copy, to a register that nothing else writes, that only these sums need."""
        if not copies or not self._is_copy(at):
            return False
        is_only = all(self._facts.chains.only_write(register) == at for register in self._facts.effects.writes[at])
        return is_only and self._only_reaches(at, sums, copies - 1)

    @cached_property
    def _needed(self) -> set[int]:
        """The instructions that do more than compute, and those whose results they read: the others are removed."""
        effects, writers = self._facts.effects, self._facts.chains.writes
        pending = [at for at, match in enumerate(self.matches) if match is None or match.form.computes is None]
        found = set(pending)
        while pending:
            for register in effects.reads[pending.pop()]:
                for writer in writers.get(register, ()):
                    if writer not in found:
                        found.add(writer)
                        pending.append(writer)
        return found

    def is_half(self, at: int) -> bool:
        """Whether an instruction computes one number of 16 bits."""
        match = self.matches[at]
        type = None if match is None else match.expected[0].type
        return type is not None and type.width == 16

    def is_stable(self, pair: ProductSum, operand: ir.Operand) -> bool:
        """Whether a factor is at the sum what it was at the product."""
        if not isinstance(operand, ir.Register):
            return isinstance(operand, ir.Immediate)
        values = self._facts.chains
        if values.only_write(operand.index) is not None or not values.writes.get(operand.index):
            return True
        if values.block_of(pair.product) != values.block_of(pair.sum):
            return False
        return not any(pair.product <= write < pair.sum for write in values.writes[operand.index])

    def constant_quotients(self) -> list[int]:
        """Approximate divisions by a constant, written out or moved to a register."""
        quotients = [at for at, match in enumerate(self.matches) if match is not None and is_quotient(match)]
        return [at for at in quotients if self._is_constant(at, self.instructions[at].operands[2])]

    def _is_constant(self, at: int, read: ir.Operand) -> bool:
        for _ in range(MOST_COPIES):
            if isinstance(read, ir.Immediate):
                return True
            written = self._written_by(at, read)
            match = None if written is None else self.matches[written]
            if written is None or match is None or not passes_on(match) or negates(match):
                return False
            at, read = written, self.instructions[written].operands[1]
        return False

    def _pair(self, at: int, operand: int, products: Sequence[bool]) -> ProductSum | None:
        """The product that an operand of a sum is, perhaps after copies."""
        total = self.matches[at]
        instruction = self.instructions[at]
        read, position, is_negated = instruction.operands[operand + 1], at, False
        others = instruction.operands[2 - operand]
        if read is others:  # twice the product is exact
            return None
        for _ in range(MOST_COPIES):
            written = self._written_by(position, read)
            match = None if written is None else self.matches[written]
            if written is None or match is None or total is None:
                return None
            if products[written]:
                return ProductSum(at, written, operand, is_negated) if agree(match, total) else None
            if not self._is_copy(written):
                return None
            is_negated ^= negates(match)
            position, read = written, self.instructions[written].operands[1]
        return None

    def _is_copy(self, at: int) -> bool:
        match, operands = self.matches[at], self.instructions[at].operands
        if match is None or not passes_on(match):
            return False
        first, second = operands[0], operands[-1]
        if not isinstance(first, ir.Register) or not isinstance(second, ir.Register):
            return False
        return first.type.width == second.type.width and first.vector == second.vector == 1

    def _written_by(self, at: int, read: ir.Operand) -> int | None:
        """The one instruction, always executed, that wrote what is read."""
        if not isinstance(read, ir.Register) or read.vector != 1:
            return None
        values = self._facts.chains
        if values.steps > MOST_STEPS:
            return None
        writes = values.definitions(at, read.index)
        if len(writes) != 1 or self.instructions[writes[0]].guard is not None:
            return None
        return writes[0]


def contract(
    pairs: ProductSums, chosen: Mapping[int, int], folds: Sequence[int] = ()
) -> tuple[list[ir.Instruction], list[Match | None]]:
    """The instructions of a function and their forms, with the sums in `chosen` contracted by that operand.

    Of the quotients in `folds`, the reciprocals are those that a compiler computes.
    """
    instructions, matches = list(pairs.instructions), list(pairs.matches)
    for at in folds:
        match = matches[at]
        assert match is not None
        matches[at] = folded(match)
    fresh = 1 + max((register.index for register in _registers(instructions)), default=-1)
    kept: dict[int, tuple[ir.Register, ir.Register]] = {}
    for at, operand in chosen.items():
        pair = pairs.all[at, operand]
        factors = pairs.instructions[pair.product].operands[1:]
        if not all(pairs.is_stable(pair, factor) for factor in factors):
            if pair.product not in kept:
                kept[pair.product] = _keep(pair.product, instructions, matches, fresh)
                fresh += 2
            factors = kept[pair.product]
        product, total = pairs.matches[pair.product], pairs.matches[at]
        assert product is not None
        assert total is not None
        instruction = pairs.instructions[at]
        addend = instruction.operands[2 - operand]
        matches[at] = contracted(Contraction(product, total, operand, pair.is_negated, pair.product in folds))
        instructions[at] = _changed(instruction, (instruction.operands[0], *factors, addend))
    return instructions, matches


def _keep(
    at: int, instructions: list[ir.Instruction], matches: list[Match | None], fresh: int
) -> tuple[ir.Register, ir.Register]:
    """Have a product keep its factors, in two new registers."""
    match, instruction = matches[at], instructions[at]
    assert match is not None
    assert match.expected[0].type is not None
    type = type_named(f"b{match.expected[0].type.width}")
    first, second = (ir.Register(f"%kept{fresh + number}", type, index=fresh + number) for number in (0, 1))
    result, *factors = instruction.operands
    matches[at] = keeping(match)
    instructions[at] = _changed(instruction, (result, first, second, *factors))
    return first, second


def _changed(instruction: ir.Instruction, operands: tuple[ir.Operand, ...]) -> ir.Instruction:
    with building():
        return ir.Instruction(instruction.guard, instruction.opcode, operands, instruction.start, instruction.end)


def _registers(instructions: Sequence[ir.Instruction]) -> list[ir.Register]:
    found = [register for i in instructions for operand in i.operands for register in registers_in(operand)]
    guards = [i.guard.register for i in instructions if i.guard is not None]
    return found + [register for register in guards if isinstance(register, ir.Register)]
