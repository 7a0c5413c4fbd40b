"""Schedules of numbers with scale factors, by `tcgen05`: NVFP4, MXF4 and MXF8."""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of algorithms
# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest

from ptxlab.kernels.nvfp4_gemm import product as by_hand
from ptxlab.report import PtxError
from ptxlab.schedule import Schedule, algorithm, bf16, f16, f32, launching, mxf4, mxf8, nvfp4, schedule
from tests.schedule.removals import missed


@algorithm
def product(a: nvfp4["m", "k"], b: nvfp4["n", "k"], c: f16["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[j, x] for x in range(k))


@algorithm
def gated(a: mxf4["m", "k"], b: mxf4["n", "k"], c: f32["m", "n"], bias: f32["n"]):
    for i, j in grid(m, n):
        c[i, j] = max(sum(a[i, x] * b[j, x] for x in range(k)) + bias[j], 0.0)


@algorithm
def of_eights(b: mxf8["n", "k"], a: mxf8["m", "k"], c: bf16["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(b[j, x] * a[i, x] for x in range(k))


@algorithm
def by_columns(a: nvfp4["k", "m"], b: nvfp4["n", "k"], c: f16["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[x, i] * b[j, x] for x in range(k))


def by_tma(of=product, depth=64, swizzle="32B", rows=128, columns=128) -> Schedule:
    s = schedule(of, "sm_100a").tile(i=rows, j=columns).blocks()
    if rows > 128:
        s.tile(i=128).threads()
    s.tile(x=depth).tensorize("tcgen05").stage("a", "b", in_="shared", swizzle=swizzle)
    return s.vectorize("c", 4).pipeline(stages=2, by="tma")


def persistent(*how, **more) -> Schedule:
    return by_tma(*how, **more).specialize().raster(2).persistent()


SCHEDULES = {
    "TMA": by_tma,
    "roles": lambda: by_tma().specialize(),
    "persistent": persistent,
    "128B": lambda: persistent(product, 256, "128B"),
    "256 columns": lambda: persistent(product, 128, "64B", columns=256),
    "256 rows": lambda: persistent(product, 128, "64B", rows=256),
    "multicast": lambda: persistent().multicast("a", 2),
    "mxf4": lambda: persistent(gated, 128, "64B"),
    "mxf8": lambda: persistent(of_eights, 256, "128B"),
}


@pytest.fixture(autouse=True)
def two_sms(monkeypatch):
    monkeypatch.setattr(launching, "SMS", 2)


def test_it_is_what_the_kernel_by_hand_computes():
    s = persistent()
    a, b, c = s.arguments({"m": 136, "n": 136, "k": 96})
    s.launch(a, b, c, device="cpu")
    expected = np.empty_like(c)
    by_hand(*a, *b, expected).run(device="cpu")
    assert (c == expected).all()
    assert str(s).count(".align 128 ") == 2  # where TMA copies factors to
    assert np.allclose(c, a.numbers @ b.numbers.T, rtol=1e-3, atol=1e-3)


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("sizes", [{"m": 300, "n": 136, "k": 160}, {"m": 5, "n": 264, "k": 32}, {}])
def test_any_size(name, sizes):
    assert SCHEDULES[name]().check(seeds=2, symbolic=False, **sizes)


@pytest.mark.bulk
@pytest.mark.parametrize("name", ["TMA", "roles", "persistent"])
def test_each_wait_and_fence_is_needed(name, monkeypatch):
    monkeypatch.setattr(launching, "SMS", 1)
    count, unfound = missed(SCHEDULES[name](), {"m": 136, "n": 392, "k": 256})
    assert count
    assert not unfound


GIVEN = by_tma().arguments({"m": 8, "n": 8, "k": 64})


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: str(schedule(product)), "`a` is of nvfp4, which `tcgen05` multiplies, after copies by TMA"),
        (lambda: schedule(product).tile(i=64, j=8, x=64).tensorize("wgmma"), "is of nvfp4, which `tcgen05` multiplies"),
        (lambda: by_tma(by_columns), "reads `a` across `x`"),
        (lambda: by_tma(depth=32), "a multiple of 64 iterations of `x`"),
        (lambda: by_tma(gated, 64), "a multiple of 128 iterations of `x`"),
        (lambda: by_tma(columns=64), "a multiple of 128 iterations of `j`"),
        (lambda: by_tma(rows=256, columns=256), "528 columns of tensor memory, which has 512"),
        (lambda: by_tma(swizzle="64B"), "has rows of 64 elements, and 128 are swizzled together"),
        (lambda: schedule(product).stage("a", in_="shared", at="x"), "which `tcgen05` reads"),
        (lambda: by_tma().check(m=8, n=8, k=64), "use `check(symbolic=False)`"),
        (lambda: by_tma().check(symbolic=False, k=33), "k in steps of 32"),
        (lambda: by_tma().launch(GIVEN[0].stored, *GIVEN[1:]), "expected a pair: numbers and scale factors"),
        (lambda: by_tma().launch(([1], [2]), *GIVEN[1:]), "`a`: 'list' object has no attribute 'shape'"),
        (lambda: by_tma().launch((GIVEN[0].stored, GIVEN[0].stored), *GIVEN[1:]), "scale factors of `a` are uint8"),
        (lambda: by_tma().launch(*GIVEN[:2], np.empty((8, 9), np.float16)), "expected (8, 8) for m = 8"),
        (lambda: by_tma().check(symbolic=False, m=0, n=8, k=64), "no elements"),
    ],
)
def test_what_is_refused(step, message):
    with pytest.raises(PtxError) as found:
        step()
    assert message in str(found.value)
    assert "src/ptxlab" not in str(found.value)
    assert "test_scaled.py" in str(found.value)


def test_factors_are_of_matrices_that_are_read():
    with pytest.raises(PtxError, match="nvfp4 is of matrices"):

        @algorithm
        def batched(a: nvfp4["g", "m", "k"], c: f32["m"]):
            for i in range(m):
                c[i] = sum(a[0, i, x] for x in range(k))

    with pytest.raises(PtxError, match="`a` is of nvfp4, which is only read"):

        @algorithm
        def copied(a: nvfp4["m", "k"], c: f32["m", "k"]):
            for i, x in grid(m, k):
                a[i, x] = c[i, x]
