"""Where something is in the text of an instruction."""

import re

from ptxlab import ir
from ptxlab.report import Span

from .program import Program


def span_of_name(program: Program, instruction: ir.Instruction, name: str) -> Span | None:
    """Where a name is in an instruction."""
    whole = program.module.span(instruction)
    if whole is None:
        return None
    found = re.search(rf"(?<![\w$%]){re.escape(name)}(?![\w$])", whole.source.text[whole.start : whole.end])
    return Span(whole.source, whole.start + found.start(), whole.start + found.end()) if found else whole
