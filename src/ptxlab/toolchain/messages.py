"""What ptxas writes, as values: one `Message` for each, with the lines that continue it.

The formats are `ptxas FILE, line 7; error   : TEXT`, `ptxas warning : TEXT` and `ptxas info    : (C7508) TEXT`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

Level = Literal["error", "warning", "info"]

_FIRST_LINE = re.compile(
    r"ptxas(?:\.exe)? (?:(?P<file>.*?), line (?P<line>\d+); )?(?P<level>error|fatal|warning|info) *: "
    r"(?:\((?P<number>C\d+)\) )?(?P<text>.*)"
)
_LINE_IN_TEXT = re.compile(r"\b(?:around|at|in|on) line ([1-9]\d*)\b")
_CLOSING = "Ptx assembly aborted due to errors"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of ptxas; `number` is its own code, such as C7508, which few messages have."""

    level: Level
    text: str
    line: int | None = None
    number: str | None = None
    file: str | None = None


def read_messages(output: str) -> list[Message]:
    """The messages of a run, in order.

    >>> [(m.level, m.line, m.text) for m in read_messages("ptxas a.ptx, line 3; error   : Unknown symbol 'x'")]
    [('error', 3, "Unknown symbol 'x'")]
    """
    found: list[Message] = []
    for line in output.splitlines():
        match = _FIRST_LINE.fullmatch(line)
        if match:
            found.append(_message(match))
        elif found:
            found[-1] = replace(found[-1], text=f"{found[-1].text}\n{line}")
        elif line.strip():
            found.append(Message("error", line.strip()))
    if any(message.level == "error" and message.text != _CLOSING for message in found):
        found = [message for message in found if message.text != _CLOSING]
    return found


def _message(match: re.Match[str]) -> Message:
    level = match["level"]
    text = match["text"].strip()
    line = int(match["line"]) if match["line"] else None
    in_text = _LINE_IN_TEXT.search(text)
    if line is None and in_text:
        line = int(in_text[1])
    as_level: Level = "error" if level == "fatal" else level  # type: ignore[assignment]
    return Message(as_level, text, line, match["number"], match["file"])
