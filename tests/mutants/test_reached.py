"""Which tests reach a line, as the plugin wrote it, and the order in which they are run on a mutant."""

import json
from pathlib import Path

import pytest

from tests.mutants.__main__ import DEFAULT, ROOT, TESTS, Turn, _reaching, files_of
from tests.mutants.reached import Reached
from tests.mutants.sites import Site

FILE = "src/ptxlab/flow/ranges.py"


def reached(folder: Path, seconds: dict[str, float]) -> Reached:
    """All of these tests reach line 7."""
    (folder / "a.json").write_text(json.dumps({"seconds": seconds, "lines": {FILE: {"7": [*range(len(seconds))]}}}))
    return Reached([str(folder / "a.json")])


@pytest.mark.parametrize(
    ("is_last", "expected"), [(False, ["test_ranges.py::a"]), (True, ["test_symbolic.py::b", "test_symbolic.py::c"])]
)
def test_the_nearest_tests_are_run_first(tmp_path: Path, is_last: bool, expected: list[str]) -> None:
    seconds = {"symbolic.py::b": 6.5, "symbolic.py::c": 7.0, "ranges.py::a": 5.9}  # those of more than 6 are not first
    found = reached(tmp_path, {f"tests/flow/test_{name}": one for name, one in seconds.items()})
    turn = Turn(is_last, 0, Site(FILE, 7, 0, 1, "x"), 0.0)
    assert _reaching(turn, found) == [f"tests/flow/{name}" for name in expected]
    assert _reaching(Turn(is_last, 0, Site(FILE, 8, 0, 1, "x"), 0.0), found) is None


def test_every_package_has_tests() -> None:
    assert all(files_of(package) and (ROOT / "src/ptxlab" / package).is_dir() for package in TESTS)
    assert set(DEFAULT.split()) <= set(TESTS)
