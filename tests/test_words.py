"""The word list finds the words it should, and only those."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def words() -> ModuleType:
    spec = importlib.util.spec_from_file_location("words", DOCS / "words.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a.md", "A tool t" + "ells where it s" + "tands.\n", ["t" + "ells", "s" + "tands"]),
        ("a.py", "lane_m" + "ail = LaneM" + "ail()\n", ["m" + "ail", "M" + "ail"]),
        ("a.py", "# what i" + "s\n    # no multiple of 16\n", ["i" + "s # no"]),
        ("a.py", "def test_it_i" + "s_no_race(): ...\n", ["i" + "s_no"]),
        (
            "a.md",
            "There is no barrier, and it is no longer there; x is None. Understand standards, harms, email.\n",
            [],
        ),
        ("a.py", "name.strip()\n", []),
        ("src/ptxlab/measure/record.py", 'given["a' + 'rms"]\n', []),
    ],
)
def test_words_are_found_in_text_and_in_names(words: ModuleType, path: str, text: str, found: list[str]) -> None:
    assert sorted(use.text for use in words.search(path, text)) == sorted(found)


def test_every_exemption_is_used(words: ModuleType) -> None:
    unused, names = [], words.tracked()
    for allowed in words.ALLOWED:
        texts = ((words.ROOT / name).read_text("utf-8") for name in names if words.fnmatch(name, allowed.path))
        if not any(re.search(allowed.text, text) for text in texts):
            unused.append(allowed)
    assert unused == []
