"""What the head of a PTX text states, read without a parser, so that damaged text has an answer too."""

from __future__ import annotations

import re

from ptxlab.toolchain.tools import Version

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_SKIPPED = re.compile(r'//[^\n]*|/\*(?:.*?\*/)?|"[^"\n]*"', re.DOTALL)
_HEAD = 20_000


def stated_version(text: str) -> Version | None:
    """The `.version` of a module.

    >>> stated_version(".version 8.0 .target sm_90a")
    (8, 0)
    """
    found = re.search(r"\.version\s+(\d+)\.(\d+)", _head(text))
    return (int(found[1]), int(found[2])) if found else None


def stated_target(text: str) -> str | None:
    """The GPU a module's `.target` names; the last one where it names several, as in ptxas.

    >>> stated_target("/* .target sm_10 */ .version 8.0 .target sm_80, sm_90a, debug")
    'sm_90a'
    """
    found = re.findall(r"\.target\s+(?:\w+\s*,\s*)*(sm_\w+)", _head(text))
    return found[-1] if found else None


def _head(text: str) -> str:
    return _COMMENT.sub(" ", text[:_HEAD])


def unterminated_comment(text: str) -> int | None:
    """Where a block comment starts that never ends: ptxas 13.0 and 13.4 run for ever on one.

    >>> unterminated_comment("ret; /* done")
    5
    """
    opening = None
    for part in _SKIPPED.finditer(text):
        opening = part.start() if part[0] == "/*" else opening
    return opening
