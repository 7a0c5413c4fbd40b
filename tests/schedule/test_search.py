"""Searches: which combinations are tried, by what, in which processes, and what is shown of them."""

# mypy: ignore-errors

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from ptxlab import gpu
from ptxlab.report import PtxError
from ptxlab.schedule import free, schedule
from ptxlab.schedule.search import candidates, measured
from tests.estimate.test_estimate import needs_tools
from tests.schedule.algorithms import linear_of_fours, matmul
from tests.schedule.test_schedule import pipelined

SIZES = {"m": 64, "n": 48, "k": 16}


def open_tiles():
    """Two numbers that are free."""
    size = free(16, 24, 32)
    return schedule(matmul).tile(i=size, j=size).blocks().tile(i=free(2, 5)).threads("i.1")


def threads(one, sizes) -> float:
    """A judge that another process can import."""
    return sizes["m"] / one.state.thread_count


def test_all_combinations_are_tried():
    said = []
    found = open_tiles().search(by=threads, progress=said.append, **SIZES)
    assert [one.values for one in found.tried] == [(a, b) for a in (16, 24, 32) for b in (2, 5)]
    assert found.best.history() == ["tile(i=32, j=32)", "blocks()", "tile(i=2)", 'threads("i.1")']
    assert found.tried[1].problem == "`i.1` has 16 iterations, not a multiple of 5"
    assert "not a multiple" in str(found)
    assert len(said) == 6
    assert said[0] == "1 of 6, at best 16, 2: 8000000.00 us"
    assert said[-1] == "6 of 6, at best 32, 2: 4000000.00 us"


def test_another_process_judges():
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        found = open_tiles().search(by=threads, executor=pool, **SIZES)
    assert found == open_tiles().search(by=threads, **SIZES)


def test_a_schedule_can_be_pickled():
    s = pipelined()
    other = pickle.loads(pickle.dumps(s))
    assert other.history() == s.history()
    assert str(other) == str(s)
    assert pickle.loads(pickle.dumps(open_tiles())).steps[0].options[0][1].options == (16, 24, 32)


def test_a_plot_shows_the_best_so_far(tmp_path):
    pytest.importorskip("matplotlib")
    found = open_tiles().search(by=threads, **SIZES)
    found.plot(tmp_path / "search.svg")
    assert "<svg" in (tmp_path / "search.svg").read_text()
    found.__class__(()).plot(tmp_path / "none.svg")


@needs_tools
@pytest.mark.slow
def test_what_is_measured_is_checked_first():
    s = schedule(matmul).tile(i=free(16, 32), j=16).blocks().threads("i", "j")
    found = measured(s, list(candidates(s)), SIZES, lambda _: None)
    assert all(one.seconds for one in found.tried)
    first, second = candidates(s)
    first.schedule.launch_of = lambda a, b, c: second.schedule.launch_of(a, b * 2, c)
    made = measured(s, [first, second], SIZES, lambda _: None)
    assert made.best is second.schedule
    assert "is wrong" in made.tried[0].problem


@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
def test_a_gpu_measures():
    found = open_tiles().search(by="gpu", **SIZES)
    assert found.fastest is not None


@pytest.mark.skipif(gpu.absence() is None, reason="there is a GPU")
def test_a_gpu_is_needed_to_measure():
    with pytest.raises(PtxError, match="a search on a GPU, and there is no GPU"):
        open_tiles().search(by="gpu", **SIZES)


def test_scale_factors_have_no_plain_kernel():
    with pytest.raises(PtxError, match=r"use `by=\"estimate\"`"):
        measured(schedule(linear_of_fours, "sm_100a"), [], {"m": 8, "n": 8, "k": 64}, print)
