"""After an error: where the next statement begins."""

from __future__ import annotations

import re

from ptxlab.syntax.errors import ParseError

_STATEMENT = r"@|\.[a-z]|[a-z][\w.]*+(?::[\w:.]*+)?+(?:\s*+;|[ \t]++[%$\w\[{(])|[\w$%]++\s*+:|\}"
_BEGINS = re.compile(_STATEMENT, re.ASCII)
_NEXT = re.compile(rf"\{{[^{{}};\n]*+\}}|;|[{{}}]|\n[ \t]*+(?={_STATEMENT})", re.ASCII)


def next_statement(text: str, statement: int, fault: ParseError) -> int:
    """Where to continue after an error in the statement that starts at an offset.

    It is the position of the error itself where a statement seems to start there, as it does when the one before it
    lacks its `;`. Otherwise it is after the next `;`, before the next brace, or on the next line that looks like one.
    """
    at = fault.start
    if at > statement and not text[text.rfind("\n", 0, at) + 1 : at].strip() and _BEGINS.match(text, at):
        return at
    if at == statement and text[at] != ";":
        at = fault.end
    while (match := _NEXT.search(text, at)) is not None:
        at = match.end()
        sign = match[0]
        if sign[0] == "{" and len(sign) > 1:  # a vector, not a block
            continue
        return match.start() if sign in "{}" else at
    return len(text)
