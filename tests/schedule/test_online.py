"""One pass over a maximum and sums relative to it, and attention by it."""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of algorithms
# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest

from ptxlab.report import PtxError
from ptxlab.schedule import Schedule, algorithm, f32, schedule
from tests.schedule.algorithms import attention, causal, weighted
from tests.schedule.removals import missed


@algorithm
def log_sum(x: f32["m", "n"], y: f32["m"]):
    for i in range(m):
        top = max(x[i, j] for j in range(n))
        for j in range(n):
            p = exp(x[i, j] - top)
        y[i] = top + log(sum(p for j in range(n)))


@algorithm
def softmax(x: f32["m", "n"], y: f32["m", "n"]):
    for i in range(m):
        top = max(x[i, j] for j in range(n))
        for j in range(n):
            p = exp(x[i, j] - top)
        total = sum(p for j in range(n))
        for j in range(n):
            y[i, j] = p / total


@algorithm
def cubes(x: f32["m", "n"], y: f32["m"]):
    for i in range(m):
        top = max(x[i, j] for j in range(n))
        for j in range(n):
            p = exp(x[i, j] - top)
        y[i] = sum(p * p for j in range(n))


@algorithm
def both_sums(x: f32["m", "n"], y: f32["m"], z: f32["m"]):
    for i in range(m):
        top = max(x[i, j] for j in range(n))
        for j in range(n):
            p = exp((x[i, j] - top) * 0.5)
        y[i] = sum(p * x[i, j] for j in range(n))
        z[i] = sum(p for j in range(n))


def flash(of=attention, keys: int = 16, rows: int = 128) -> Schedule:
    """A warpgroup for each 64 queries."""
    s = schedule(of).online("j").tile(i=rows)
    s.blocks(*(["g", "i"] if of is attention else ["i"])).tile(i=64).threads()
    s.tile(j=keys).tensorize("wgmma")
    return s.stage("q", "k", in_="shared", swizzle="64B").stage("v", in_="shared", swizzle="32B").vectorize("q", 8)


def by_tma(of=attention, keys: int = 16, rows: int = 128) -> Schedule:
    return flash(of, keys, rows).vectorize("o", 8 if of is attention else 4).pipeline(stages=2, by="tma")


def of_warps(of=attention, keys: int = 16, rows: int = 32, **layout) -> Schedule:
    """A warp for each 16 queries."""
    s = schedule(of, "sm_80").online("j").tile(i=rows)
    s.blocks(*(["g", "i"] if of is attention else ["i"])).tile(i=16).threads()
    s.tile(j=keys).tensorize("mma.sync")
    return s.stage("q", "k", "v", in_="shared", **(layout or {"pad": 8})).vectorize("q", "k", "v", 8)


SCHEDULES = {
    "wgmma": flash,
    "TMA": by_tma,
    "roles": lambda: by_tma().specialize(),
    "mma.sync": of_warps,
    "mma.sync, cp.async": lambda: of_warps(keys=32).vectorize("o", 8).pipeline(stages=2),
}


def test_one_pass_by_the_threads_of_a_block():
    s = schedule(log_sum).online("j").blocks("i").tile(j=64).tile(j=2).threads()
    assert s.check(seeds=1, symbolic=False, m=3, n=200)
    assert str(s).count("loop j.0") == 1


def test_one_pass_is_as_exact_as_two():
    s = schedule(both_sums).online("j").tile(i=2).blocks().threads("i.1")
    x = np.random.default_rng(0).normal(5000, 1, (3, 40)).astype(np.float32)
    y, z = np.zeros((2, 3), np.float32)
    s.launch(x, y, z, device="cpu")
    p = np.exp((np.float64(x) - x.max(1, keepdims=True)) * 0.5)
    np.testing.assert_allclose(z, p.sum(1), rtol=1e-6)
    np.testing.assert_allclose(y, (p * x).sum(1), rtol=1e-6)
    assert s.check(seeds=0, m=2, n=7).verdict.level in ("near", "same-function")


def test_the_plain_kernel_needs_no_size_that_the_schedule_does_not_need():
    s = schedule(weighted, k=3).online("j").blocks("i")
    assert s.check(seeds=0, m=1, n=5).verdict.level == "same-function"
    assert flash().check(seeds=0, h=1, m=1, n=2).verdict.level == "near"
    with pytest.raises(PtxError, match="no plain kernel to compare with: a thread would keep 300 of `s`"):
        flash().check(seeds=0, h=1, m=1, n=300)


def test_several_rows_of_a_thread_share_a_pass():
    s = schedule(log_sum).online("j").tile(i=8).blocks().tile(i=4).threads().reorder("j.0", "i.2")
    assert s.check(seeds=1, symbolic=False, m=13, n=20)


@pytest.mark.parametrize("of", [log_sum, both_sums])
def test_blocks_of_a_cluster_share_a_pass(of):
    """They agree on the maximum in each iteration, and add up what is relative to it once."""
    s = schedule(of).online("j").blocks("i").tile(j=128).tile(j=64).cluster().threads("j.2")
    assert s.check(seeds=1, symbolic=False, m=2, n=300)
    assert str(s).count("barrier.cluster.wait") == 2 + (2 if of is log_sum else 3)


@pytest.mark.bulk
@pytest.mark.parametrize("unit", ["wgmma", "mma.sync"])
def test_blocks_of_a_cluster_share_the_keys(unit):
    rows = {"wgmma": 64, "mma.sync": 16}[unit]
    s = schedule(attention).online("j").tile(i=2 * rows).blocks("g", "i").tile(i=rows).threads()
    s.tile(j=32).tile(j=16).cluster().tensorize(unit)
    s.stage("q", "k", in_="shared", swizzle="64B").stage("v", in_="shared", swizzle="32B").vectorize("q", 8)
    assert s.check(seeds=1, symbolic=False, h=1, m=70, n=75)


def test_attention():
    assert by_tma(keys=32, rows=64).specialize().check(seeds=1, symbolic=False, h=1, m=70, n=75)


def test_attention_on_ampere():
    s = of_warps().vectorize("o", 4).pipeline(stages=3)
    assert s.check(seeds=1, symbolic=False, h=1, m=40, n=53)


@pytest.mark.bulk
@pytest.mark.parametrize("rows", [16, 64])
@pytest.mark.parametrize("keys", [16, 48])
def test_tiles_of_warps(rows, keys):
    assert of_warps(causal, keys, rows).pipeline(stages=2).check(seeds=1, symbolic=False, m=75)


@pytest.mark.bulk
@pytest.mark.parametrize("sizes", [{"h": 2, "m": 64, "n": 32}, {"h": 1, "m": 67, "n": 1}, {"h": 1, "m": 130, "n": 90}])
@pytest.mark.parametrize("name", SCHEDULES)
def test_attention_of_any_size(name, sizes):
    assert SCHEDULES[name]().check(seeds=2, symbolic=False, **sizes)


def test_tiles_in_which_all_is_masked_come_first():
    assert by_tma(causal, 32, 64).specialize().check(seeds=1, symbolic=False, m=100)


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCHEDULES)
def test_each_wait_and_fence_is_needed(name):
    count, unfound = missed(SCHEDULES[name](), {"h": 1, "m": 128, "n": 80})
    assert count
    assert not unfound


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: schedule(softmax).online("j"), "a sum over `j` is not known in the loop over it"),
        (lambda: schedule(cubes).online("j"), "is not linear in `p`"),
        (lambda: schedule(log_sum).online("i"), "`i` is not reduced over"),
        (lambda: schedule(log_sum).online("j").online("j"), "one pass already"),
        (lambda: schedule(attention).online("x"), "no number is an exponential relative to a maximum over `x`"),
        (lambda: flash(keys=24), "tensor cores add up 16 iterations of `j` at a time in `sum_1`, and a tile has 24"),
        (lambda: of_warps(keys=40), "tensor cores add up 16 iterations of `j` at a time"),
        (lambda: schedule(attention).blocks("g"), "is kept in a register for each iteration of `j.0`"),
    ],
)
def test_what_is_refused(step, message):
    with pytest.raises(PtxError) as found:
        step()
    assert message in str(found.value)
    assert "src/ptxlab" not in str(found.value)


def test_a_number_of_a_loop_is_not_read_outside_of_it():
    with pytest.raises(PtxError, match="`t` is a number for each `j`"):

        @algorithm
        def wrong(x: f32["m", "n"], y: f32["m"]):
            for i in range(m):
                for j in range(n):
                    t = x[i, j]
                y[i] = t
