"""The symbolic domain: what a register holds, as a function of the thread, the parameters and the turns of loops.

`facts.symbolic(at, operand)` is a sum of atoms (`expressions`), and it is exact: in any thread, whenever instruction
`at` runs, the operand has that value, if each atom has the value that it has then. Two threads, two turns of a loop, or
two instructions can be compared by giving the atoms of each their own names: that is what a proof asks a solver.

A read is followed to a write that is on every path to it: since every path to the read goes through the write, what the
atoms of the written expression were then, they are still. Where several writes meet, the register is an atom, `held` at
the first place on all paths from which it has kept its value. At the head of a loop that adds the same number in every
turn, it is its first value and that number for each turn: `first + step * counter`.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.isa.special_registers import SpecialKind as Kind
from ptxlab.isa.types import TYPES, Type, type_named

from .engine import Engine, Node
from .expressions import (
    ADDRESS,
    COUNTER,
    ENTERED,
    HELD,
    PARAMETER,
    SPECIAL,
    WRITTEN,
    Atom,
    Linear,
    bounds_after,
    linear,
)
from .ranges import fold, limits, wrap
from .steps import Step

if TYPE_CHECKING:
    from .facts import Facts

MOST_TERMS = 24
DEEPEST = 48
MOST_BLOCKS = (1 << 31) - 1
WORD, LONG = type_named("u32"), type_named("u64")
# What a thread is given, the same as long as it runs.
FIXED = frozenset([Kind.THREAD, Kind.LANE, Kind.LANE_MASK, Kind.BLOCK, Kind.BLOCK_SIZE])


class Symbolic(Engine[Linear]):
    """The values of one function as expressions."""

    def __init__(self, facts: Facts) -> None:
        super().__init__(facts)
        self._atoms: dict[tuple[object, ...], Atom] = {}
        self._homes: dict[tuple[int, int], int] = {}
        self._closed: dict[Atom, Linear] = {}

    def closed(self, at: int, operand: ir.Operand) -> Linear:
        """What instruction `at` reads of an operand, with closed forms for what loops count."""
        return self.close(self.value(at, operand))

    # Atoms.

    def _atom(
        self, kind: str, detail: object, type: Type, bounds: tuple[int, int] | None = None, key: object = None
    ) -> Linear:
        known = (kind, detail if key is None else key, type)
        if known not in self._atoms:
            self._atoms[known] = Atom(kind, detail, type, *(bounds or ((0, 1) if type.kind == "p" else limits(type))))
        return linear(type, 0, {self._atoms[known]: 1})

    def _operation(self, step: Step, parts: tuple[Linear, ...]) -> Linear:
        detail = repr(step.detail) if step.operation == "arithmetic" else step.detail
        key = (step.operation, step.type, step.of, detail, parts)
        if key not in self._atoms:
            depth = 1 + max((part.depth for part in parts), default=0)
            bounds = bounds_after(step, parts)
            self._atoms[key] = Atom(step.operation, step.detail, step.type, *bounds, step, parts, depth)
        return linear(step.type, 0, {self._atoms[key]: 1})

    def leaf(self, operand: ir.Operand, type: Type) -> Linear:
        """A constant, what a thread is given, or the address of a variable."""
        match operand:
            case ir.Immediate() if not operand.is_float or operand.kind == type.name:
                return linear(type, int(operand.value != 0) if type.kind == "p" else operand.value)
            case ir.SpecialRegister() if operand.kind in FIXED and operand.component in (None, "x", "y", "z"):
                return self._special(operand, type)
            case ir.VariableReference():
                is_small = operand.variable.state_space.partition("::")[0] != "global"
                bounds = (0, (1 << (32 if is_small else 64)) - 1)
                found = self._atom(ADDRESS, operand.variable, LONG, bounds, key=id(operand.variable))
                return found.as_type(type).plus(linear(type, operand.offset))
            case ir.Element(base=ir.VariableReference() as named, register=None):
                size = named.variable.type.width * named.variable.vector // 8
                return self.leaf(named, type).plus(linear(type, operand.index * size))
        return self._atom(HELD, operand, type)

    def _special(self, operand: ir.SpecialRegister, type: Type) -> Linear:
        most = self.facts.most_threads or 1024
        bounds = {
            Kind.THREAD: (0, most - 1),
            Kind.BLOCK_SIZE: (1, most),
            Kind.LANE: (0, 31),
            Kind.BLOCK: (0, MOST_BLOCKS),
        }
        name = operand.name + (f".{operand.component}" if operand.component else "")
        return self._fit(self._atom(SPECIAL, name, WORD, bounds.get(operand.kind)), WORD, type)

    def unknown(self, node: Node, type: Type) -> Linear:
        """A parameter of a kernel, or what an instruction wrote."""
        loaded = self.facts.loaded_parameter(*node)
        if loaded is None or loaded.type.width > type.width or loaded.type.kind == "p":
            return self._atom(WRITTEN, node, type)
        own = loaded.type if loaded.type.kind == "s" else _unsigned(loaded.type)
        place = (loaded.variable, loaded.offset)
        bounds = self.bounds_of_parameter(loaded.variable, loaded.offset, own)
        return self._fit(self._atom(PARAMETER, place, own, bounds, key=(id(loaded.variable), loaded.offset)), own, type)

    def bounds_of_parameter(self, variable: ir.Variable, offset: int, type: Type) -> tuple[int, int] | None:
        """What a parameter is assumed to be between; None: anything."""
        return None

    # What instructions read.

    def read(self, asking: Node, operand: ir.Operand, type: Type) -> Linear | None:
        """What an instruction reads of an operand."""
        is_volatile = isinstance(operand, ir.SpecialRegister) and operand.kind not in FIXED
        if is_volatile or isinstance(operand, (ir.VectorElement, ir.Selection, ir.Minus)):
            return self._atom(WRITTEN, (asking[0], str(operand)), type)
        return super().read(asking, operand, type)

    def register(self, asking: Node, register: ir.Register) -> Linear | None:
        """What an instruction reads in a register: what one write on all paths left there, or an atom."""
        at, chains = asking[0], self.facts.chains
        writes = chains.definitions(at, register.index)
        self.facts.effort.spend(len(writes) + 1)
        if len(writes) == 1 and self._is_certain(writes[0], at):
            return self.ask(asking, (writes[0], register.index))
        return self._atom(HELD, (self._home(at, register.index), register.index), register.type)

    def _is_certain(self, write: int, at: int) -> bool:
        """Whether a write is on every path to an instruction."""
        if self.facts.instructions[write].guard is not None:
            return False
        home, target = self.facts.chains.block_of(write), self.facts.chains.block_of(at)
        return write < at if home == target else self._dominates(home, target)

    @cached_property
    def _above(self) -> dict[int, int]:
        return self.facts.flow.dominators()

    def _dominates(self, block: int, other: int) -> bool:
        while other != block:
            above = self._above.get(other, other)
            self.facts.effort.spend(1)
            if above == other:
                return False
            other = above
        return True

    def _home(self, at: int, register: int) -> int:
        """The first position on all paths to an instruction from which a register has kept its value."""
        blocks, chains = self.facts.flow.blocks, self.facts.chains
        block = chains.block_of(at)
        if chains.writes_in(register, blocks[block].start, at):
            return at  # a write under a guard is before it
        key = (block, register)
        if key not in self._homes:
            number = block
            while (above := self._above.get(number, number)) != number:
                between = self._between(above, number)
                if any(chains.writes_in(register, blocks[one].start, blocks[one].end) for one in (*between, above)):
                    break
                number = above
            self._homes[key] = blocks[number].start
        return self._homes[key]

    def _between(self, above: int, block: int) -> frozenset[int]:
        """The blocks on paths from one that dominates another to that."""
        found: set[int] = set()
        pending = [one for one in self.facts.flow.blocks[block].predecessors if one in self._above]
        while pending:
            number = pending.pop()
            if number != above and number not in found:
                found.add(number)
                pending += [one for one in self.facts.flow.blocks[number].predecessors if one in self._above]
        self.facts.effort.spend(len(found) + 1)
        return frozenset(found)

    # What instructions compute.

    def evaluate(self, node: Node) -> Linear | None:
        """What an instruction writes; an atom, if that is not computed from what this thread reads, or too large."""
        plan = self.plan(node)
        if plan is None or any(step.operation in ("unknown", "shuffle") for step in plan.steps):
            return self.unknown(node, self.type_of(node))
        found = super().evaluate(node)
        if found is not None and (len(found.terms) > MOST_TERMS or found.depth > DEEPEST):
            return self._atom(WRITTEN, node, self.type_of(node))
        return found

    def join(self, one: Linear, other: Linear) -> Linear:
        """Values do not change: what several paths bring is an atom."""
        raise AssertionError("a value is found once")

    def apply(self, step: Step, parts: list[Linear]) -> Linear:
        """What a step makes of expressions."""
        operation, type = step.operation, step.type
        if operation == "constant":
            return linear(type, step.detail)
        if operation == "select":
            condition, *either = parts
            return either[not condition.constant] if condition.is_constant else self._operation(step, tuple(parts))
        given = tuple(self._as(part, own) for part, own in zip(parts, step.read_as, strict=True))
        if given and all(part.is_constant for part in given):
            folded = fold(step, [wrap(part.constant, part.type) for part in given])
            return self._operation(step, given) if folded is None else linear(type, folded)
        is_integer = all(one.kind in "usb" and one.lanes == 1 for one in (type, step.of))
        found = self._linear(step, given) if is_integer else None
        return self._operation(step, given) if found is None else found

    def _as(self, part: Linear, type: Type) -> Linear:
        """A number as one of another type; the count of a shift may have more or fewer bits than what is shifted."""
        own = _unsigned(part.type)
        if type.width <= own.width or part.fits(own):
            return part.as_type(type)
        return self._operation(Step("cast", type, (0,), own), (part,))

    def _linear(self, step: Step, given: tuple[Linear, ...]) -> Linear | None:
        """The result as a sum of the same atoms, if it is one."""
        first, type = given[0] if given else linear(step.type, 0), step.type
        match step.operation:
            case "+":
                return first.plus(given[1])
            case "-":
                return first.plus(given[1], -1)
            case "cast" if type.width <= step.of.width or first.fits(step.of):
                return first.as_type(type)
            case "*" if first.is_constant or given[1].is_constant:
                return given[1].times(first.constant) if first.is_constant else first.times(given[1].constant)
            case "<<" if given[1].is_constant:
                return first.times(1 << wrap(given[1].constant, given[1].type))
            case ">>" | "//" | "%" | "&" if len(given) == 2:
                return self._divided(step, first, given[1])
            case "|" | "^" if not _bits(first) & _bits(given[1]):
                return first.plus(given[1])
            case "part" if step.detail == 0:
                return first.as_type(type)
            case "pack":
                return _packed(step, given)
        return None

    def _divided(self, step: Step, first: Linear, second: Linear) -> Linear | None:
        """A shift to the right, a quotient, a remainder or a mask, by a constant, of what is not negative."""
        if step.operation == "&" and first.is_constant:
            first, second = second, first
        if step.of.kind != "s" and first.type.width == step.of.width and first.bounds[0] < 0:
            first = first._replace(constant=first.constant + (1 << step.of.width))  # the same number, without a sign
        if not second.is_constant or not first.fits(step.of) or first.bounds[0] < 0:
            return None
        is_mask, has_sign = step.operation == "&", step.of.kind == "s" and step.operation in ("//", "%")
        number = second.as_type(step.of).constant if has_sign else wrap(second.constant, step.of)
        keeps_high = is_mask and number >> (step.of.width - 1)
        divisor = (1 << number) if step.operation == ">>" else number + 1 if is_mask else number
        if keeps_high:
            divisor = (1 << step.of.width) - number
        if divisor <= 0 or (is_mask and divisor & (divisor - 1)):
            return None
        parts = first.split(divisor)
        if parts is None:
            return None
        if keeps_high:
            return first.plus(parts[1], -1).as_type(step.type)
        return parts[step.operation in ("%", "&")].as_type(step.type)

    # Closed forms.

    def close(self, value: Linear) -> Linear:
        """An expression in which registers at the heads of loops are replaced by what they are in each turn."""
        found = linear(value.type, value.constant)
        for atom, factor in value.terms:
            if atom not in self._closed:
                self._closed[atom] = linear(atom.type, 0, {atom: 1})  # for what depends on itself
                self._closed[atom] = self._close_atom(atom)
            closed = self._closed[atom]
            if value.type.width > atom.type.width and not closed.fits(atom.type):
                closed = self._operation(Step("cast", value.type, (0,), atom.type), (closed,))
            found = found.plus(closed, factor)
        return found

    def _close_atom(self, atom: Atom) -> Linear:
        unchanged = linear(atom.type, 0, {atom: 1})
        if atom.step is not None:
            parts = [self.close(part) for part in atom.parts]
            return unchanged if tuple(parts) == atom.parts else self.apply(atom.step, parts)
        if atom.kind != HELD or not isinstance(atom.detail, tuple):
            return unchanged
        at, register = atom.detail
        head = self.facts.chains.block_of(at)
        if self.facts.flow.blocks[head].start != at or head not in self._loops:
            return unchanged
        return self._induction(head, register, atom) or unchanged

    def _induction(self, head: int, register: int, atom: Atom) -> Linear | None:
        """The first value of a register and, for each turn of a loop, what the turn adds; None if that differs."""
        blocks, chains, inside = self.facts.flow.blocks, self.facts.chains, self._loops[head]
        latches = [one for one in blocks[head].predecessors if one in inside]
        writes = {write for latch in latches for write in chains.leaving(latch, register)}
        if len(writes) != 1:
            return None
        (write,) = writes
        home = chains.block_of(write)
        if self.facts.instructions[write].guard is not None or not all(self._dominates(home, one) for one in latches):
            return None
        after = self.solve((write, register))
        own = linear(self.type_of((write, register)), 0, {atom: 1})
        if after is None or (atom, 1) not in after.terms:
            return None
        step = self.close(after.plus(own, -1))
        if not all(self._is_invariant(one, inside) for one, _ in step.terms):
            return None
        entries = [one for one in blocks[head].predecessors if one in self._above and one not in inside]
        before = {write for entry in entries for write in chains.leaving(entry, register)}
        first = self._atom(ENTERED, (head, register), own.type)
        if len(before) == 1 and self._is_certain(next(iter(before)), blocks[head].start):
            first = self.close(self.solve((next(iter(before)), register)) or first)
        turns = self._atom(COUNTER, head, LONG).as_type(own.type)
        return first.as_type(own.type).plus(self.apply(Step("*", own.type, (0, 1), own.type), [step, turns]))

    def _is_invariant(self, atom: Atom, inside: frozenset[int]) -> bool:
        """Whether an atom stays the same while a loop runs."""
        block_of, detail = self.facts.chains.block_of, atom.detail
        if atom.step is not None:
            return all(self._is_invariant(one, inside) for part in atom.parts for one, _ in part.terms)
        match atom.kind, detail:
            case ("counter", int(head)) | ("entered", (int(head), _)):
                return head not in inside
            case ("written" | "held", (int(at), _)):
                return block_of(at) not in inside
        return atom.kind in (SPECIAL, PARAMETER, ADDRESS)

    @cached_property
    def _loops(self) -> dict[int, frozenset[int]]:
        """The blocks of each natural loop, by its head."""
        found: dict[int, frozenset[int]] = {}
        for block in self.facts.flow.blocks:
            latches = [one for one in block.predecessors if one in self._above and self._dominates(block.number, one)]
            if latches:
                inside = {block.number}
                for latch in latches:
                    inside |= {latch} | (self._between(block.number, latch) if latch != block.number else set())
                found[block.number] = frozenset(inside)
        return found


def _unsigned(type: Type) -> Type:
    """The type of numbers without a sign of a width; a predicate, and what is wider than numbers are, stay bits."""
    return TYPES.get(f"u{type.width}", type)


def _bits(value: Linear) -> int:
    """The bits of a number that may be set, as a mask: of a sum whose parts have none in common, theirs.

    >>> from ptxlab.flow.expressions import linear
    >>> _bits(linear(WORD, 12))
    12
    """
    whole = (1 << value.type.width) - 1
    found = value.constant & whole
    most, power = found, found & -found
    is_apart = True
    for atom, factor in value.terms:
        part = _bits_of(atom, factor) & whole
        is_apart = is_apart and not found & part
        found, most = found | part, most + part
        power = min((one for one in (power, part & -part) if one), default=0)
    if is_apart or not power:
        return found
    return whole & -power & ((1 << most.bit_length()) - 1 if most <= whole else whole)  # carries go upwards


def _bits_of(atom: Atom, factor: int) -> int:
    """The bits that an atom times a factor may have."""
    power = _power(atom)
    if atom.low < 0 or factor < 0:
        return -(factor & -factor) * power
    bits = ((1 << atom.high.bit_length()) - 1) & -power
    if atom.kind == "&" and len(atom.parts) == 2:
        for part in atom.parts:
            bits &= part.constant & ((1 << part.type.width) - 1) if part.is_constant else bits
    if factor & (factor - 1):
        return -(factor & -factor) & ((1 << (bits * factor).bit_length()) - 1)
    return bits * factor


def _power(atom: Atom) -> int:
    """A power of two that divides an atom: a product has those of its factors, modulo its width."""
    types = [atom.type, *(part.type for part in atom.parts)]
    if atom.kind not in ("*", "cast") or any(one.kind not in "usb" or one.lanes > 1 for one in types):
        return 1
    found = 1
    for part in atom.parts:
        bits = _bits(part)
        found *= bits & -bits if bits else 1
    return min(found, 1 << atom.type.width - 1)


def _packed(step: Step, given: tuple[Linear, ...]) -> Linear | None:
    total, position = linear(step.type, 0), 0
    for part, type in zip(given, step.detail, strict=True):
        low, high = part.bounds
        if low < 0 or high >= 1 << type.width:
            return None
        total, position = total.plus(part.as_type(step.type), 1 << position), position + type.width
    return total
