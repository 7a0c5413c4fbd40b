"""Comments: they are kept, and know whether they trail code."""

from __future__ import annotations

from ptxlab.ir import Comment
from ptxlab.ir.node import draft

_Comment = draft(Comment)


def make_comment(text: str, start: int, end: int, previous: object) -> Comment:
    """The comment at an offset; `previous` is what precedes it in the program."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    trailing = bool(line) and not line.isspace()
    if trailing and isinstance(previous, Comment):
        # Of two comments of one line the second trails the code only where the first leaves room on the line.
        trailing = previous.trailing and previous.text.startswith("/*") and "\n" not in previous.text
    return _Comment(text[start:end].rstrip(), trailing, start, end)
