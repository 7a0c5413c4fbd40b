"""Lanes at volatile accesses: in step with seed 0, free with others."""

from pathlib import Path

import numpy as np
import pytest

import ptxlab

CASES = Path(__file__).parents[1] / "cases" / "order"
SUMS = {
    "lockstep_reduction": 1, "lockstep_global": 1, "lockstep_loop": 1, "lockstep_generic": 1, "lockstep_branches": 32,
}  # fmt: skip


def sums(name: str, seed: int) -> list[int]:
    out = np.zeros(SUMS[name], np.uint32)
    ptxlab.load(CASES / f"{name}.ptx")["k"].launch(1, 32, [out], seed=seed)
    return list(out)


@pytest.mark.parametrize("name", SUMS)
def test_lanes_run_in_step_with_seed_0(name: str) -> None:
    assert sums(name, 0) == [32] * SUMS[name]


def test_other_seeds_are_free() -> None:
    assert {tuple(sums("lockstep_reduction", seed)) for seed in range(1, 6)} != {(32,)}


@pytest.mark.parametrize("name", ["lockstep_reduction", "lockstep_global"])
def test_no_seed_is_wrong_and_silent(name: str) -> None:
    """Also where a lane runs through all of its accesses before others begin with theirs."""
    kernel = ptxlab.load(CASES / f"{name}.ptx")["k"]
    for seed in range(12):
        out = np.zeros(1, np.uint32)
        found = kernel.launch(1, 32, [out], seed=seed, on_error="collect").diagnostics
        assert out[0] == 32 or [one.code for one in found] == ["lockstep-dependence"], seed
