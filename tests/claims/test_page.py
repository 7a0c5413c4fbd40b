"""The page of claims: every verdict is one of four, and how each was tried is something that exists."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs"
PAGE = (DOCS / "claims.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.partition("\n## ")[2].splitlines()
    if line.startswith("| ") and not line.startswith("| claim |")
]
SUBJECTS = {path.stem.removeprefix("test_"): path for path in HERE.glob("test_*.py") if path != Path(__file__)}
SUBJECTS["measured"] = DOCS / "measured.py"  # what `make docs` asserts
TEST = re.compile(rf"`((?:{'|'.join(SUBJECTS)})\.\w+)`")
LINK = re.compile(r"\[[^]]+\]\(([^)]+)\)")
WORDS = re.compile(r"PTX ISA \d+(?:\.\d+)+|arithmetic|not tested: .+")


@cache
def written() -> set[str]:
    """All tests of claims, by their names on the page."""
    return {
        f"{subject}.{name}"
        for subject, path in SUBJECTS.items()
        for name in re.findall(r"^(?:@claim\ndef |def test_)(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def test_there_are_many_claims_with_a_verdict_each() -> None:
    assert {len(row) for row in ROWS} == {4}
    verdicts = Counter(verdict for _, verdict, _, _ in ROWS)
    assert set(verdicts) <= {"true", "wrong", "condition", "untested"}
    assert verdicts.total() - verdicts["untested"] >= 100
    assert len({claim for claim, _, _, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_claim_says_how_it_was_tried(row: list[str]) -> None:
    """By tests, pages and files that exist, or in words."""
    _, verdict, found, tried = row
    known = written()
    for way in tried.split(", "):
        test, link, words = TEST.fullmatch(way), LINK.fullmatch(way), WORDS.fullmatch(way)
        assert test or link or words, way
        assert not test or test[1] in known
        assert not link or (DOCS / link[1]).is_file()
    assert (verdict == "untested") == tried.startswith("not tested: ")
    assert found or verdict == "true"


def test_every_test_of_a_claim_is_on_the_page() -> None:
    assert written() <= {name for _, _, _, tried in ROWS for name in TEST.findall(tried)}
