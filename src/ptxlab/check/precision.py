"""Which pointers of a kernel lead to numbers of single precision, for arrays of doubles that are passed by mistake."""

from ptxlab import ir
from ptxlab.isa import Match

from .program import Program


def single_precision(module: ir.Module, kernel: ir.Function) -> dict[int, ir.Instruction]:
    """The parameters that point to `.f32` numbers, by their positions, each with an instruction that accesses them."""
    facts = next((one for one in Program(module).functions if one.function is kernel and one.is_sound), None)
    found: dict[int, ir.Instruction] = {}
    for at in [] if facts is None else facts.where(_is_single):
        assert facts is not None
        instruction = facts.instructions[at]
        for operand in instruction.operands:
            base = facts.value(at, operand).provenance if isinstance(operand, ir.Address) else None
            if base is not None and base.holds == 0 and base.variable in kernel.parameters:
                found.setdefault(kernel.parameters.index(base.variable), instruction)
    return found


def _is_single(match: Match) -> bool:
    """Whether an instruction accesses `.f32` numbers in global memory."""
    in_global = any(access.space in (None, "global") for access in match.effects.accesses)
    types = {
        expected.type.name for expected in match.expected if expected.kind == "value" and expected.type is not None
    }
    return in_global and types == {"f32"}
