"""The findings that a change introduced: those of a file that were not there before.

The file is checked as the commit has it, too, so that a finding on a line that was not touched is reported where the
change caused it: a barrier that was removed, a declaration, a target. A finding is known from before by its code, its
message and the text of its line: one that moved is not new.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from ptxlab.cli.compiling import CUDA
from ptxlab.cli.revision import Revision
from ptxlab.report import Diagnostic

ALIKE = 0.5  # of its lines are those of a file that is gone: it was renamed
_NUMBER = re.compile(r"\bline \d+|\blines [\d, and]*\d")

Check = Callable[[Path], Sequence[Diagnostic]]


def introduced(file: Path, found: Sequence[Diagnostic], revision: Revision, check: Check) -> list[Diagnostic]:
    """Those of the findings in a file that it did not have in the revision; `check` finds those of a path."""
    name = revision.name_of(file)
    if not found or name is None:
        return list(found)
    after = file.read_bytes()
    before = revision.read(name)
    if before is None:
        name = _name_before(after, file.suffix, revision)
        before = None if name is None else revision.read(name)
    if name is None or before is None:
        return list(found)
    written = revision.write_with_headers(name) if file.suffix == CUDA else revision.write(name)
    was_there = Counter(map(_mark, check(written)))
    changed = _changed_lines(before, after)
    new = []
    # What is on a line that did not change was there first: a copy of it is what is new.
    for one in sorted(found, key=lambda one: one.line in changed):
        if was_there[_mark(one)]:
            was_there[_mark(one)] -= 1
        else:
            new.append(one)
    return [one for one in found if any(one is other for other in new)]


def _mark(found: Diagnostic) -> tuple[str, str, str]:
    """What two findings are compared by: not by where they are."""
    line = "" if found.line is None else found.labels[0].span.source.line(found.line)
    return found.code, _NUMBER.sub("line", found.message), " ".join(line.split())


def _changed_lines(before: bytes, after: bytes) -> set[int]:
    """Lines of the new text that the old one does not have, counted from 1."""
    matcher = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    edits = [edit for edit in matcher.get_opcodes() if edit[0] in ("insert", "replace")]
    return {line + 1 for _, _, _, start, end in edits for line in range(start, end)}


def _name_before(text: bytes, suffix: str, revision: Revision) -> str | None:
    """What a file was called that has another name now: the one that is gone and has most of its lines."""
    lines = Counter(text.splitlines())
    best, name = 0.0, None
    for gone in revision.gone(suffix):
        others = Counter((revision.read(gone) or b"").splitlines())
        share = (lines & others).total() / max(lines.total(), others.total(), 1)
        if share >= ALIKE and share > best:
            best, name = share, gone
    return name
