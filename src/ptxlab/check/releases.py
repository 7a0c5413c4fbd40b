"""What depends on the release of ptxas: the instructions of a program that releases judge otherwise."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ptxlab import ir
from ptxlab.ir.shapes import shape_of
from ptxlab.isa.releases import NEWER, TOLERATED, ReleaseChange, Use, named
from ptxlab.report import Diagnostic

from .program import FunctionFacts, Program

Found = tuple[ReleaseChange, ir.Instruction]


def tolerated(program: Program) -> Iterator[Found]:
    """The instructions that ptxas 13.0 accepts, though the manual does not have them."""
    for facts in program.functions:
        known: dict[int, bool] = {}  # by match: whether instructions like it are worth a closer look
        for instruction, match in zip(facts.instructions, facts.matches, strict=True):
            if match is None or known.get(id(match)) is False:
                continue
            rows = named(TOLERATED, instruction.opcode.text)
            if not rows:
                continue
            shapes = tuple(map(shape_of, instruction.operands))
            use = Use(instruction.opcode.text, match.expected, shapes, program.version, program.target, True, True)
            known[id(match)] = any(row.holds(use) for row in rows)
            if known[id(match)]:
                use = replace(use, reads_kernel_parameter=_reads_parameter(facts, instruction),
                              repeats_result=_repeats_result(instruction))  # fmt: skip
                yield from ((row, instruction) for row in rows if row.holds(use))


def _newer(program: Program) -> Iterator[Found]:
    """The instructions that ptxas 13.4 accepts, though they have no form in the table."""
    for failure in (one for found in program.failures.values() for one in found):
        instruction = failure.instruction
        shapes = tuple(map(shape_of, instruction.operands))
        use = Use(instruction.opcode.text, (), shapes, program.version, program.target)
        yield from ((row, instruction) for row in named(NEWER, instruction.opcode.text) if row.holds(use))


def _reads_parameter(facts: FunctionFacts, instruction: ir.Instruction) -> bool:
    """Whether an address is, or may be, that of a parameter of a kernel."""
    if facts.function.kind != "entry":
        return False
    bases = [operand.base for operand in instruction.operands if isinstance(operand, ir.Address)]
    names = {parameter.name for parameter in facts.function.parameters}
    return any(isinstance(base, ir.Register) or getattr(base, "name", None) in names for base in bases)


def _repeats_result(instruction: ir.Instruction) -> bool:
    result = instruction.operands[0] if instruction.operands else None
    return isinstance(result, ir.Vector) and len(set(result.elements)) < len(result.elements)


def by_release(program: Program, found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The findings, as the release that is followed judges: what ptxas 13.4 accepts is then no error.

    Of one instruction that is refused, nothing else is said.
    """
    newer = [(row, span) for row, instruction in _newer(program) if (span := program.module.span(instruction))]
    refused = [one.labels[0].span for one in found if one.code == "refused-spelling" and one.labels]
    if not newer and not refused:
        return list(found)
    kept = []
    for one in found:
        place = one.labels[0].span.start if one.labels else -1
        is_other = one.level == "warning" and one.code != "refused-spelling"
        if is_other and any(span.start <= place < span.end for span in refused):
            continue
        is_error = one.level == "error"
        row = next((row for row, span in newer if is_error and span.start <= place < span.end), None)
        if row is None:
            kept.append(one)
        elif program.ptxas != "13.4":
            kept.append(replace(one, notes=(*one.notes, f"ptxas 13.4 accepts it: {row.text}")))
    return kept
