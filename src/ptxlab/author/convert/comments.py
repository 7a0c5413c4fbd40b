"""Comments of PTX as comments of Python, without what compilers remark on their own work."""

from __future__ import annotations

import re

from ptxlab import ir

TRAILING = "\2"  # between a line of code and the comment after it, until it is known whether both fit in one line

_REMARK = re.compile(
    r"(?:(?:begin|end) )?inline asm|\.globl\s.*|-- (?:Begin|End) function.*|%bb\.\d+:.*|[Cc]allseq .*"
    r"|(?:\S+ has been )?demoted(?: variable)?|@\S+"
)


def comment_lines(comment: ir.Comment) -> list[str]:
    """The lines of a comment, as Python writes them."""
    lines = [
        " ".join("".join(c if c.isprintable() else " " for c in line).strip(" */").split())
        for line in comment.text.split("\n")
    ]
    return [f"# {line}" for line in lines if line and not _REMARK.fullmatch(line)]


def trailing_comment(comment: ir.Comment) -> str:
    """What follows a line of code for a trailing comment."""
    lines = comment_lines(comment)
    return f"{TRAILING}# {' '.join(line[2:] for line in lines)}" if lines else ""
