"""Our own litmus tests: the model says what each says of itself, and the emulator does nothing that the model forbids.

The quantifier of a test is its verdict: `exists` is allowed, `~exists` forbidden. The last word of its description says
whether some execution has a data race.
"""

from pathlib import Path

import pytest

from ptxlab.litmus import Litmus, load
from ptxlab.litmus.executions import judge
from ptxlab.litmus.placements import placements, why_not
from ptxlab.litmus.report import Report
from ptxlab.litmus.run import emulate, run_on_gpu
from ptxlab.litmus.verdict import verdict
from tests.litmus.placements import examine

OURS = sorted(Path(__file__).parent.glob("*.litmus"))
TESTS = {path.stem: load(path) for path in OURS}


def described_as_racy(test: Litmus) -> bool:
    word = test.source.line(2).rstrip('"').split()[-1]
    assert word in ("racy", "race-free")
    return word == "racy"


def test_there_are_enough() -> None:
    assert len(TESTS) >= 60
    assert all(name == test.name for name, test in TESTS.items())


@pytest.mark.parametrize("name", TESTS)
def test_the_model_agrees_with_the_test(name: str) -> None:
    found = verdict(TESTS[name], judge(TESTS[name]))
    assert found.holds
    assert found.racy == described_as_racy(TESTS[name])


@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize("number", [number for number, test in enumerate(TESTS.values()) if why_not(test) is None])
def test_the_emulator_agrees_with_the_model(number: int) -> None:
    """In two placements here, in all of them in `bulk`."""
    test = [*TESTS.values()][number]
    ways = placements(test)
    chosen = dict.fromkeys((ways[0], ways[number % len(ways)]))
    runs = [(placement, emulate(test, placement, range(5))) for placement in chosen]
    assert list(Report(test, judge(test), runs).problems()) == []


@pytest.mark.bulk
@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_the_emulator_agrees_in_every_placement(path: Path) -> None:
    """Of tests of others, `python -m tests.litmus.placements FOLDER` says the same."""
    found = examine(path, seeds=10, timeout=20)
    assert found.problems == ()
    assert found.kinds["race-free, reported"] == 0


@pytest.mark.parametrize("name", [name for name, test in TESTS.items() if why_not(test) is None][::6])
def test_the_kernels_of_a_gpu_do_the_same(name: str) -> None:
    """With the accesses and the waiting before a test, too, a few instances of it end in states that are allowed."""
    test = TESTS[name]
    judgement = judge(test)
    for placement in [one for one in placements(test) if not one.gpus][-1:]:
        seen = run_on_gpu(test, placement, 1, device="cpu", instances=3, detectors=False)
        assert not seen.endless
        assert {*seen.finals} <= {*judgement.finals}
