"""The page of claims: every verdict is one of four, every test that it names exists, and every test is named."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs"
PAGE = (DOCS / "claims.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| claim |")
]
SUBJECTS = {path.stem.removeprefix("test_"): path for path in HERE.glob("test_*.py") if path != Path(__file__)}
SUBJECTS["measured"] = DOCS / "measured.py"  # what `make docs` asserts
NAMED = [set(re.findall(rf"`((?:{'|'.join(SUBJECTS)})\.\w+)`", found)) for _, _, found in ROWS]


def written() -> set[str]:
    """All tests of claims, by their names on the page."""
    return {
        f"{subject}.{name}"
        for subject, path in SUBJECTS.items()
        for name in re.findall(r"^(?:@claim\ndef |def test_)(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_there_are_many_claims_with_a_verdict_each() -> None:
    verdicts = Counter(verdict for _, verdict, _ in ROWS)
    assert set(verdicts) == {"true", "wrong", "condition", "untested"}
    assert verdicts.total() - verdicts["untested"] >= 60
    assert len({claim for claim, _, _ in ROWS}) == len(ROWS)


def test_every_test_that_is_named_exists_and_every_test_is_named() -> None:
    assert set().union(*NAMED) == written()


def test_a_verdict_without_a_test_says_what_it_rests_on() -> None:
    bare = [
        found for (_, verdict, found), named in zip(ROWS, NAMED, strict=True) if not named and verdict != "untested"
    ]
    assert all(re.search("manual|PTX ISA|own rule|Arithmetic", found) for found in bare)
    assert len(bare) <= 5
