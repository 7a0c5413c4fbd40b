"""Which registers each instruction reads and writes, as numbers (`Register.index`), for rules that follow values.

Operands are shared between instructions and so are matches, so both questions are asked of the table once per operand
and once per form with its modifiers.
"""

from collections.abc import Iterator, Sequence

from ptxlab import ir
from ptxlab.isa import Jump, Match

Registers = tuple[int, ...]


class RegisterEffects:
    """What the instructions of a function do to its registers; `reads[i]` and `writes[i]` belong to instruction i."""

    __slots__ = ("reads", "writes")

    def __init__(self, instructions: Sequence[ir.Instruction], matches: Sequence[Match | None]) -> None:
        self.reads: list[Registers] = []
        self.writes: list[Registers] = []
        inside: dict[int, Registers] = {}
        plans: dict[int, _Plan] = {}
        for instruction, match in zip(instructions, matches, strict=True):
            operands = instruction.operands
            if match is None:
                read_at, written_at, scale = _call_plan(instruction)
            else:
                plan = plans.get(id(match))
                if plan is None:
                    plan = plans[id(match)] = _plan(match)
                read_at, written_at, scale = plan
            if scale is not None and _is_zero(operands[scale]):
                read_at = read_at[1:]  # an MMA that does not add to `d`
            guard = instruction.guard
            reads: Registers = (
                (guard.register.index,) if guard is not None and guard.register.__class__ is ir.Register else ()
            )
            for at in read_at:
                operand = operands[at]
                found = inside.get(id(operand))
                if found is None:
                    found = inside[id(operand)] = _indices(operand)
                reads += found
            writes: Registers = ()
            for at in written_at:
                operand = operands[at]
                found = inside.get(id(operand))
                if found is None:
                    found = inside[id(operand)] = _indices(operand)
                writes += found
            self.reads.append(reads)
            self.writes.append(writes)


def _indices(operand: ir.Operand) -> Registers:
    if operand.__class__ is ir.Register:  # as most are
        return (operand.index,)
    return () if operand.__class__ in _WITHOUT else tuple([register.index for register in registers_in(operand)])


_WITHOUT = frozenset((ir.Immediate, ir.SpecialRegister, ir.VariableReference, ir.LabelReference))

# The positions of the operands that are read, of those that are written, and of what says whether `d` is read.
_Plan = tuple[tuple[int, ...], tuple[int, ...], int | None]


def _plan(match: Match) -> _Plan:
    expected = list(enumerate(match.expected))
    reads = tuple(at for at, e in expected if e.role != "write")
    writes = tuple(at for at, e in expected if e.role != "read")
    adds = any(e.role == "update" for e in match.expected)  # `d` of `wgmma`; `tcgen05.mma` has an address for it
    return reads, writes, next((at for at, e in expected if adds and e.name == "scale_d"), None)


def reads_sum(instruction: ir.Instruction, match: Match) -> bool:
    """Whether an instruction reads the operand that it updates: an MMA that does not add to `d` only writes it."""
    scale = _plan(match)[2]
    return scale is None or not _is_zero(instruction.operands[scale])


def _is_zero(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Immediate) and operand.value == 0


def _call_plan(instruction: ir.Instruction) -> _Plan:
    """A call writes its results and reads the rest; what is not legal may write its first operand."""
    if instruction.opcode.jump is not Jump.CALL:
        return (), (0,) if instruction.operands else (), None
    has_results = len(instruction.operands) > 1 and isinstance(instruction.operands[0], ir.Arguments)
    return tuple(range(int(has_results), len(instruction.operands))), (0,) if has_results else (), None


def registers_in(operand: ir.Operand) -> Iterator[ir.Register]:
    """The registers that an operand is made of, from left to right."""
    match operand:
        case ir.Register():
            yield operand
        case ir.Vector() | ir.Arguments():
            for part in operand.elements:
                yield from registers_in(part)
        case ir.Address():
            for part in (operand.base, *operand.arguments):
                yield from registers_in(part)
        case ir.Element() if operand.register is not None:
            yield from registers_in(operand.register)
        case ir.Pair():
            yield from registers_in(operand.first)
            yield from registers_in(operand.second)
        case ir.Sum():
            yield from registers_in(operand.base)
        case ir.Negated() | ir.Minus():
            yield from registers_in(operand.operand)
        case ir.VectorElement() | ir.Selection():
            yield from registers_in(operand.register)
