"""Text made fit for a terminal: color, control characters and the columns characters take."""

from __future__ import annotations

import re
from collections.abc import Callable
from unicodedata import category, east_asian_width

TAB = "    "

STYLES = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "help": "1;32",
    "strong": "1",
    "margin": "1;34",
}

Paint = Callable[[str, str], str]


def plain(style: str, text: str) -> str:
    """`text` as it is."""
    return text


def colored(style: str, text: str) -> str:
    """`text` in an ANSI color of `STYLES`."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if text else text


# Control characters, surrogates and directional overrides would let a file rewrite what the reader sees.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


def printable(text: str) -> str:
    """`text` with characters a terminal would act on replaced by visible ones.

    >>> printable("a\\x1b[31m")
    'a␛[31m'
    """
    return _UNPRINTABLE.sub(_picture, text)


def printable_lines(text: str) -> str:
    """The same of several lines: line breaks and tabs stay.

    >>> printable_lines("a\\tb\\n\\x07")
    'a\\tb\\n␇'
    """
    return "".join(part if part in "\n\t" else printable(part) for part in re.split("([\n\t])", text))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def expand(text: str) -> tuple[str, list[int]]:
    """`text` as shown, and the display column of each of its characters and of its end."""
    shown = printable(text.replace("\t", TAB))
    if shown.isascii() and "\t" not in text:
        return shown, list(range(len(text) + 1))
    columns = [0]
    for character in text:
        columns.append(columns[-1] + _width(character))
    return shown, columns


def _width(character: str) -> int:
    if character == "\t":
        return len(TAB)
    if category(character) in ("Mn", "Me"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1
