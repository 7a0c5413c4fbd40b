"""Which tests reach a line, as the plugin wrote it, and the order in which they are run on a mutant."""

import json
from pathlib import Path

import pytest

from tests.mutants.__main__ import DEFAULT, TESTS, Baseline, Run, Turn, files_of
from tests.mutants.reached import Reached
from tests.mutants.sites import Site
from tests.mutants.trees import ROOT

FILE = "src/ptxlab/flow/ranges.py"


def reached(folder: Path, seconds: dict[str, float]) -> Reached:
    """All of these tests reach line 7."""
    (folder / "a.json").write_text(
        json.dumps({"seconds": seconds, "starting": [], "imported": {}, "lines": {FILE: {"7": [*range(len(seconds))]}}})
    )
    return Reached([str(folder / "a.json")])


@pytest.mark.parametrize(
    ("line", "is_last", "expected"),
    [
        (7, False, ["test_ranges.py::a"]),
        (7, True, ["test_symbolic.py::b", "test_symbolic.py::c"]),
        (8, False, ["test_ranges.py::a", "test_ranges.py::d"]),  # no test reaches it
        (8, True, ["test_symbolic.py::b", "test_symbolic.py::c"]),
    ],
)
def test_the_nearest_tests_are_run_first(tmp_path: Path, line: int, is_last: bool, expected: list[str]) -> None:
    seconds = {"symbolic.py::b": 6.5, "symbolic.py::c": 7.0, "ranges.py::a": 5.9}  # those of more than 6 are not first
    known = {f"tests/flow/test_{name}": one for name, one in seconds.items()}
    found = reached(tmp_path, known)
    found.seconds["tests/flow/test_ranges.py::d"] = 1.0
    run = Run(Baseline(found.seconds), found, tmp_path / "out", 0)
    assert run.chosen(Turn(is_last, 0, Site(FILE, line, 0, 1, "x"), 0.0)) == [f"tests/flow/{name}" for name in expected]


def test_lines_that_only_the_first_test_of_a_process_reaches_are_reached_by_none(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(
        json.dumps(
            {
                "seconds": {"a": 1, "b": 1},
                "starting": ["b"],
                "lines": {FILE: {"3": [0], "4": [0, 1]}},
                "imported": {FILE: [2]},
            }
        )
    )
    found = Reached([str(file)])
    assert [found(FILE, line) for line in (3, 4)] == [[], ["a", "b"]]
    assert [found.is_run(FILE, line) for line in (1, 2, 3)] == [False, True, True]
    assert found.seconds == {"a": 1}  # what `b` starts may reach all lines


def test_every_package_has_tests() -> None:
    assert all(files_of(package) and (ROOT / "src/ptxlab" / package).is_dir() for package in TESTS)
    assert set(DEFAULT.split()) <= set(TESTS)
