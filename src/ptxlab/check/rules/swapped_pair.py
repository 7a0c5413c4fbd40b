"""Two values are packed into one register in one order and used in the other.

`cvt.rn.f16x2.f32 d, a, b` puts `a` into the upper half and `b` into the lower one, as all conversions to a packed pair
do; `mov.b32 {low, high}, d` and memory have the lower half first. Neighbours in memory, `a` before `b`, that are packed
as `d, a, b` and stored come out as `b` before `a`: a result with every pair swapped.

Give the value that belongs into the lower half, the later operand, last: `cvt.rn.f16x2.f32 d, high, low`.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 from, .param .u64 to) {
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    ld.global.v2.f32 {%f1, %f2}, [%rd1];
    cvt.rn.f16x2.f32 %r1, %f1, %f2;
    st.global.b32 [%rd2], %r1;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k(.param .u64 from, .param .u64 to) {
    .reg .b64 %rd<3>;
    .reg .f32 %f<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    ld.global.v2.f32 {%f1, %f2}, [%rd1];
    cvt.rn.f16x2.f32 %r1, %f2, %f1;
    st.global.b32 [%rd2], %r1;
    ret;
}
```
"""

from collections.abc import Iterator
from typing import NamedTuple

from ptxlab import ir
from ptxlab.isa import Operation, Type
from ptxlab.report import Diagnostic, Label, warning

from ..program import FunctionFacts, Program

DEEPEST = 8  # steps between a load and the conversion that are followed
MOST_CARRIERS = 16
ELEMENTWISE = frozenset((
    Operation.COPY, Operation.CONVERSION, Operation.PACKING, Operation.SUM, Operation.DIFFERENCE, Operation.PRODUCT,
    Operation.PRODUCT_SUM, Operation.QUOTIENT, Operation.NEGATION, Operation.MAGNITUDE, Operation.MINIMUM,
    Operation.MAXIMUM, Operation.FUNCTION,
))  # fmt: skip
SAME = 0


class ByteRange(NamedTuple):
    """Bytes of memory: `offset` bytes from a base that only equal keys share."""

    key: object
    offset: int
    size: int


class Half(NamedTuple):
    """A register that holds the lower or upper half, perhaps converted back, and the instruction that wrote it."""

    at: int
    register: int


def check(program: Program) -> Iterator[Diagnostic]:
    for facts in program.sound_functions:
        packings = facts.where(lambda match: match.effects.computes is Operation.PACKING)
        pairs = [at for at in packings if _is_pair(facts.instructions[at])]
        if pairs:
            follow = _Follow(facts)
            for at in pairs:
                yield from follow.check(program, at)


def _is_pair(instruction: ir.Instruction) -> bool:
    """Whether two registers are packed: the operands are d, a, b and perhaps more."""
    return all(isinstance(operand, ir.Register) for operand in instruction.operands[:3])


class _Follow:
    """Values of one function, followed back to where they were loaded and on to where they are used."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._chains = facts.chains

    def check(self, program: Program, at: int) -> Iterator[Diagnostic]:
        """The diagnostic for one conversion, if its pair is used in the other order."""
        packed, first, second = (
            o.index for o in self._facts.instructions[at].operands[:3] if isinstance(o, ir.Register)
        )
        halves = self._halves(at, packed)
        mixed = self._mixed(at, first, second, halves)
        if mixed is not None:
            yield self._explain(program, at, mixed, "the lower half, `{b}`, meets `{a}` again here")
            return
        order = self._order(at, first, at, second, 0)
        if not order:
            return
        for use, stored in self._stores(at, packed, halves):
            if stored == order:
                label = "stores the lower half, `{b}`, first" if stored > 0 else "stores the upper half, `{a}`, first"
                yield self._explain(program, at, use, label, self._load(at, first))
                return

    # Back to memory.

    def _order(self, at: int, first: int, then: int, second: int, depth: int) -> int | None:
        """1 if the first value is computed from memory just as the second is from the bytes after it, -1 the reverse.

        0: both are one value. None: neither is known.
        """
        one, other = self._chains.definition(at, first), self._chains.definition(then, second)
        if one is None or other is None or depth > DEEPEST:
            return None
        if first == second and one == other:
            return SAME
        here, there = self._byte_range(one, first), self._byte_range(other, second)
        if here is not None and there is not None:
            if here.key != there.key or here.size != there.size or abs(here.offset - there.offset) != here.size:
                return None
            return 1 if here.offset < there.offset else -1
        return self._order_of_sources(one, other, depth)

    def _order_of_sources(self, one: int, other: int, depth: int) -> int | None:
        left, right = self._facts.instructions[one], self._facts.instructions[other]
        if (
            left.guard != right.guard
            or left.opcode is not right.opcode
            or self._facts.operation(one) not in ELEMENTWISE
            or one == other
        ):
            return None
        if len(left.operands) != len(right.operands) or not isinstance(left.operands[0], ir.Register):
            return None
        found = SAME
        for a, b in zip(left.operands[1:], right.operands[1:], strict=True):
            if isinstance(a, ir.Register) and isinstance(b, ir.Register):
                order = self._order(one, a.index, other, b.index, depth + 1)
            else:
                order = SAME if a == b and not isinstance(a, ir.Vector) else None
            if order is None or (order and found and order != found):
                return None
            found = found or order
        return found

    def _byte_range(self, at: int, register: int) -> ByteRange | None:
        """The memory that instruction `at` loads a register from, or takes it out of a register that was loaded."""
        instruction = self._facts.instructions[at]
        if self._only(at, "load"):
            address = instruction.operands[1]
            return self._element(at, 0, address, register) if isinstance(address, ir.Address) else None
        if self._facts.operation(at) is Operation.COPY and isinstance(instruction.operands[0], ir.Vector):
            source = instruction.operands[1]
            parts = instruction.operands[0].elements
            index = _index(parts, register)
            if isinstance(source, ir.Register) and index is not None:
                before = self._chains.definition(at, source.index)
                whole = None if before is None else self._byte_range(before, source.index)
                size = source.type.width // 8 // len(parts)
                if whole is not None and whole.size == size * len(parts):
                    return ByteRange(whole.key, whole.offset + index * size, size)
        return None

    def _element(self, at: int, position: int, address: ir.Address, register: int) -> ByteRange | None:
        """Where one register of the data of a load or store, the operand at that position, is in memory."""
        operand = self._facts.instructions[at].operands[position]
        type = self._type(at, position)
        elements = operand.elements if isinstance(operand, ir.Vector) else (operand,)
        index = _index(elements, register)
        key = self._key(at, address)
        if type is None or index is None or key is None:
            return None
        size = type.width // 8
        return ByteRange(key, address.offset + index * size, size)

    def _key(self, at: int, address: ir.Address) -> object:
        base = address.base
        if isinstance(base, ir.VariableReference):
            return ("variable", id(base.variable), base.offset)
        if isinstance(base, ir.Register):
            written = self._chains.definition(at, base.index)
            return None if written is None else ("register", base.index, written)
        return None

    def _load(self, at: int, register: int) -> int | None:
        """The load that a value starts with."""
        for _ in range(DEEPEST):
            found = self._chains.definition(at, register)
            if found is None or self._only(found, "load"):
                return found
            sources = [o.index for o in self._facts.instructions[found].operands[1:] if isinstance(o, ir.Register)]
            if not sources:
                return None
            at, register = found, sources[0]
        return None

    # On to the uses.

    def _halves(self, at: int, packed: int) -> tuple[list[Half], list[Half]]:
        """The registers that the lower and the upper half of a pair are taken out to, as they are or converted back."""
        low: list[Half] = []
        high: list[Half] = []
        for use in self._chains.uses(at, packed):
            instruction = self._facts.instructions[use]
            result, operation = instruction.operands[0], self._facts.operation(use)
            if operation is Operation.COPY and isinstance(result, ir.Vector) and len(result.elements) == 2:
                for found, part in zip((low, high), result.elements, strict=True):
                    if isinstance(part, ir.Register):
                        found.append(Half(use, part.index))
            elif isinstance(result, ir.Register):
                is_half = (
                    operation is Operation.CONVERSION and self._is_integer(use, 0, 16) and self._is_integer(use, 1, 32)
                )
                if is_half or (operation is Operation.LEFT_SHIFT and _is_constant(instruction, 16)):
                    low.append(Half(use, result.index))
                elif operation is Operation.AND and _is_constant(instruction, 0xFFFF0000):
                    high.append(Half(use, result.index))
        return self._converted(low), self._converted(high)

    def _converted(self, halves: list[Half]) -> list[Half]:
        found = list(halves)
        for half in halves:
            for use in self._chains.uses(half.at, half.register):
                result, operation, type = (
                    self._facts.instructions[use].operands[0],
                    self._facts.operation(use),
                    self._type(use, 0),
                )
                back = operation is Operation.CONVERSION and type is not None and type.name == "f32"
                if isinstance(result, ir.Register) and (back or operation is Operation.COPY):
                    found.append(Half(use, result.index))
        return found

    def _mixed(self, at: int, first: int, second: int, halves: tuple[list[Half], list[Half]]) -> int | None:
        """The difference or comparison of a half with the value that went into the other one, if both are mixed up."""
        low, high = halves
        before = self._chains.definition(at, first), self._chains.definition(at, second)
        if None in before or first == second:
            return None
        crossed = self._meets(low, first, before[0]), self._meets(high, second, before[1])
        straight = self._meets(high, first, before[0]), self._meets(low, second, before[1])
        return crossed[0] if None not in crossed and straight == (None, None) else None

    def _meets(self, halves: list[Half], register: int, written: int | None) -> int | None:
        for half in halves:
            for use in self._chains.uses(half.at, half.register):
                if (
                    self._facts.operation(use) in (Operation.DIFFERENCE, Operation.COMPARISON)
                    and register in self._facts.effects.reads[use]
                    and self._chains.definition(use, register) == written
                ):
                    return use
        return None

    def _stores(self, at: int, packed: int, halves: tuple[list[Half], list[Half]]) -> Iterator[tuple[int, int]]:
        """Stores of the pair: 1 if its lower half comes first in memory, as it should, -1 if the upper one does."""
        for carrier in self._carriers(at, packed):
            for use in self._chains.uses(carrier.at, carrier.register):
                bytes = self._stored(use, carrier.register)
                if bytes is not None and bytes.size * 8 == self._width(carrier.at):
                    yield use, 1
        low = [(use, bytes) for half in halves[0] for use, bytes in self._stored_all(half)]
        high = [(use, bytes) for half in halves[1] for use, bytes in self._stored_all(half)]
        for use, here in low:
            for _, there in high:
                if here.key == there.key and here.size == there.size and abs(here.offset - there.offset) == here.size:
                    yield use, 1 if here.offset < there.offset else -1

    def _carriers(self, at: int, packed: int) -> list[Half]:
        """The registers that hold the pair in its order: its own, wider ones made of it, and sums of pairs."""
        found = [Half(at, packed)]
        for carrier in found:
            for use in self._chains.uses(carrier.at, carrier.register):
                result, *sources = self._facts.instructions[use].operands
                operation, type = self._facts.operation(use), self._type(use, 1)
                is_wider = operation is Operation.COPY and any(isinstance(source, ir.Vector) for source in sources)
                is_pair = operation in ELEMENTWISE and type is not None and type.lanes == 2
                if isinstance(result, ir.Register) and (is_wider or is_pair) and len(found) < MOST_CARRIERS:
                    found.append(Half(use, result.index))
        return found

    def _stored_all(self, half: Half) -> Iterator[tuple[int, ByteRange]]:
        for use in self._chains.uses(half.at, half.register):
            bytes = self._stored(use, half.register)
            if bytes is not None:
                yield use, bytes

    def _stored(self, at: int, register: int) -> ByteRange | None:
        address = self._facts.instructions[at].operands[0] if self._only(at, "store") else None
        return self._element(at, 1, address, register) if isinstance(address, ir.Address) else None

    def _width(self, at: int) -> int:
        type = self._type(at, 0)
        return 0 if type is None else type.width

    # What instructions do.

    def _only(self, at: int, kind: str) -> bool:
        """Whether an instruction loads or stores for its thread alone, and does nothing else."""
        match = self._facts.matches[at]
        if match is None or match.effects.steps or match.effects.converges:
            return False
        return [access.kind for access in match.effects.accesses] == [kind]

    def _type(self, at: int, position: int) -> Type | None:
        """The type of an operand."""
        match = self._facts.matches[at]
        return None if match is None else match.expected[position].type

    def _is_integer(self, at: int, position: int, width: int) -> bool:
        type = self._type(at, position)
        return type is not None and type.kind in "us" and type.width == width

    def _explain(self, program: Program, at: int, use: int, label: str, load: int | None = None) -> Diagnostic:
        instruction = self._facts.instructions[at]
        d, a, b = (o.name for o in instruction.operands[:3] if isinstance(o, ir.Register))
        span = program.module.span(self._facts.instructions[use])
        others = [Label(span, label.format(a=a, b=b))] if span else []
        if load is not None and (loaded := program.module.span(self._facts.instructions[load])):
            others.append(Label(loaded, f"`{a}` and `{b}` come from here"))
        return warning(
            "swapped-pair",
            f"`{a}` and `{b}` are packed in one order and used in the other",
            program.module.span(instruction),
            f"`{a}` becomes the upper half of `{d}`, `{b}` the lower",
            others=others,
            helps=[f"if they should not be swapped, write `{instruction.opcode.text} {d}, {b}, {a}`"],
        )


def _index(elements: tuple[ir.Operand, ...], register: int) -> int | None:
    found = [i for i, part in enumerate(elements) if isinstance(part, ir.Register) and part.index == register]
    return found[0] if len(found) == 1 else None


def _is_constant(instruction: ir.Instruction, value: int) -> bool:
    operand = instruction.operands[2]
    return isinstance(operand, ir.Immediate) and operand.value & 0xFFFFFFFF == value
