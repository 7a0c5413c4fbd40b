"""Where a breakpoint on a line stops in code that is not optimized, by the rule of cuda-gdb."""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.debug.declarations import Declarations
from ptxlab.debug.lines import Lines


def locations(lines: Lines, declarations: Declarations, instructions: Sequence[int], file: str, line: int) -> list[int]:
    """The instructions of a line to stop before: the first of its first row in each block of C++.

    So a `for` stops once, at its start. A row of the line table is of one line, and what is inlined there has its own.
    The first line of a function is left for the one after its prologue. Nothing of optimized code.
    """
    if not declarations.are_locals_known or not declarations.is_known:
        return []
    found: dict[tuple[str, int | None], int] = {}
    for number in instructions:
        is_own = lines.level(number, file, line) == 0
        if is_own and (_is_first(lines, number) or not _is_same_line(lines, number, number - 1)):
            function = lines.program.instructions[number][0].name
            found.setdefault((function, declarations.innermost(function, number)), number)
    return sorted({_after_prologue(lines, number) for number in found.values()})


def _after_prologue(lines: Lines, instruction: int) -> int:
    """An instruction itself, or the first of the second line of its function, where it is in the first line."""
    start = instruction
    while not _is_first(lines, start):
        if not _is_same_line(lines, start - 1, instruction):
            return instruction
        start -= 1
    program = lines.program.instructions
    later = (at for at in range(start, len(program)) if not _is_same_line(lines, at, instruction))
    found = next(later, instruction)
    return found if program[found][0] is program[instruction][0] else instruction


def _is_same_line(lines: Lines, one: int, other: int) -> bool:
    return lines.sources[one][:1] == lines.sources[other][:1]


def _is_first(lines: Lines, instruction: int) -> bool:
    """Whether an instruction is the first of its function."""
    program = lines.program.instructions
    return not instruction or program[instruction - 1][0] is not program[instruction][0]
