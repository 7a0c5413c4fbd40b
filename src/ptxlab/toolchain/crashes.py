"""What is known to crash a release of ptxas, so that the reader need not bisect a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.ir.shapes import shape_of
from ptxlab.isa import Match
from ptxlab.report import Source, Span
from ptxlab.syntax import read

_COUNT = "ptxas 13.0 crashes on an mbarrier initialized with the constant count 0; the count must be 1 to 1048575"
_DESCRIPTOR = "ptxas 13.0 crashes on a `wgmma` whose matrix descriptor is the constant 0"


def find_cause(source: Source) -> tuple[Span, str] | None:
    """The first instruction that is known to crash ptxas, and what is known of it."""
    module, _ = read(source.text, source.name)
    for function in module.functions:
        for instruction in function.instructions() if function.body is not None else ():
            note = _note(instruction)
            if note is not None and instruction.start is not None and instruction.end is not None:
                return Span(source, instruction.start, instruction.end), note
    return None


def _note(instruction: ir.Instruction) -> str | None:
    opcode = instruction.opcode
    if opcode.jump is not None or not opcode.candidates:
        return None
    match = opcode.match(tuple(shape_of(operand) for operand in instruction.operands))
    if not isinstance(match, Match):
        return None
    zeros = set(_zeros(instruction, match))
    if match.effects.does("mbarrier", "initialize") and "count" in zeros:
        return _COUNT
    if match.effects.does("wgmma", "start") and zeros & {"a_desc", "b_desc"}:
        return _DESCRIPTOR
    return None


def _zeros(instruction: ir.Instruction, match: Match) -> Iterator[str]:
    """The operands, by their names in the syntax line, that are the constant 0."""
    for operand, expected in zip(instruction.operands, match.expected, strict=True):
        if isinstance(operand, ir.Immediate) and operand.value == 0:
            yield expected.name
