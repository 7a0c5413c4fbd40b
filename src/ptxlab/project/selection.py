"""Which findings are wanted, by their codes: `select` starts anew, `ignore` takes away.

A word is a code, or a pattern of codes such as `missing-*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from ptxlab.report.diagnostic import current_code
from ptxlab.report.nearest import nearest
from ptxlab.values import dataclass

_SPECIAL = frozenset("*?[")
MACHINE = ("missing-tool", "no-gpu")  # what is wrong is this machine, not the file
MISUSE = ("bad-argument", "bad-launch", "no-estimate", *MACHINE)  # nothing was checked, because of how it was asked


@dataclass(frozen=True, slots=True)
class Selection:
    """One place that says which codes are wanted: the configuration, or the command line."""

    select: tuple[str, ...] | None = None
    """Only these; None: all that were wanted before."""
    ignore: tuple[str, ...] = ()


def is_selected(code: str, selections: Iterable[Selection]) -> bool:
    """Whether a code is wanted by places that are applied one after the other.

    >>> is_selected("data-race", [Selection(ignore=("data-race",)), Selection(select=("data-*",))])
    True
    """
    wanted = True
    for one in selections:
        wanted = wanted if one.select is None else is_among(code, one.select)
        wanted = wanted and not is_among(code, one.ignore)
    return wanted


def is_always_shown(code: str) -> bool:
    """Whether a finding says why something was not checked: an unreadable file, a launch that can't be made."""
    from ptxlab.syntax.pages import PAGES

    return code in MISUSE or code in PAGES


def is_among(code: str, words: Iterable[str]) -> bool:
    """Whether one of the words is the code, or a pattern of it."""
    return any(fnmatchcase(code, current_code(word)) for word in words)


def wrong_word(words: Sequence[str], *, is_ignored: bool) -> str | None:
    """What is wrong with the first word that means no code, or one that can't be ignored; None where all are right."""
    from ptxlab.explain import page_of, pages

    for word in words:
        if is_ignored and is_always_shown(word):
            return f"`{word}` can't be ignored: it says why something was not checked"
        if _SPECIAL & {*word}:
            if not any(fnmatchcase(code, word) for code in pages()):
                return f"no code is like `{word}`"
        elif page_of(word) is None:
            close = nearest(word, pages())
            return f"there is no code `{word}`" + (f"; did you mean `{close}`?" if close else "")
    return None
