"""The page on how to add an instruction lists the places that the instructions on it have, and no others."""

import re
from pathlib import Path

import pytest

import ptxlab

SOURCES = Path(ptxlab.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "add-an-instruction.md").read_text(encoding="utf-8")
ARITHMETIC, LOAD, MMA = (
    re.findall(r"^\| `(\S+\.py)` \| `(\w+)`", table, re.MULTILINE)
    for table in re.findall(r"\| place \| what \|\n\|---\|---\|\n((?:\|.*\n)+)", PAGE)
)
BLOCKS = re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL)
# What only one instruction has, in one of its places or in several.
INDEX = "isa/table.py"  # which lists the first words of all opcodes
OWN = [
    (r"brev", ARITHMETIC),
    (r"tcgen05_ld|TensorMove|access_cells", LOAD),
    (r"wgmma_mma_async|\"read_matrix\"|abi(?:\.| import )wgmma", MMA),
]


def test_how_many_places_there_are() -> None:
    assert (len(ARITHMETIC), len(LOAD), len(MMA)) == (1, 5, 5)


@pytest.mark.parametrize(("file", "name"), [*ARITHMETIC, *LOAD, *MMA])
def test_what_is_in_each_place(file: str, name: str) -> None:
    assert re.search(rf"\b{name}\b", (SOURCES / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("pattern", "places"), OWN)
def test_there_are_no_other_places(pattern: str, places: list[tuple[str, str]]) -> None:
    own = re.compile(rf"(?<!\w)(?:{pattern})(?!\w)")
    files = {
        file.relative_to(SOURCES).as_posix()
        for file in SOURCES.rglob("*.py")
        if own.search(file.read_text(encoding="utf-8"))
    }
    assert files
    assert files <= {INDEX, *(file for file, _ in places)}


def test_the_declarations_are_as_the_page_shows_them() -> None:
    assert len(BLOCKS) == 7
    for file, text in BLOCKS:
        source = (SOURCES / file).read_text(encoding="utf-8").splitlines()
        shown = [line for line in text.splitlines() if re.match(r" *(?:@|def |class )|[A-Z_]+ = ", line)]
        assert shown, text
        assert [line for line in shown if line not in source] == [], file


def test_files_that_the_page_names_are_there() -> None:
    named = set(re.findall(r"`((?:isa|emulate|tests)/[\w/]+\.py)`", PAGE))
    root = SOURCES.parents[1]
    assert [name for name in named if not ((SOURCES / name).exists() or (root / name).exists())] == []
