"""Two blocks that multiply together by `tcgen05`: what they compute, that each wait is needed, and what is refused."""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of algorithms
# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest

from ptxlab.kernels.nvfp4_gemm import product as scaled_by_hand
from ptxlab.kernels.tcgen05_gemm import Shape
from ptxlab.kernels.tcgen05_gemm import product as by_hand
from ptxlab.report import PtxError
from ptxlab.schedule import Schedule, algorithm, bf16, launching, schedule
from tests.schedule import test_scaled, test_tcgen05
from tests.schedule.removals import missed
from tests.schedule.test_tcgen05 import by_columns, linear, linear_of_eights, with_roles


@algorithm
def product(a: bf16["m", "k"], b: bf16["n", "k"], c: bf16["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[j, x] for x in range(k))


def pair(of=linear, depth=16, **more) -> Schedule:
    """A tile of 256 x 32."""
    return with_roles(of, depth, **more).raster(2).pair()


def scaled(*how, **more) -> Schedule:
    """A tile of 256 x 128 of numbers with scale factors."""
    return test_scaled.by_tma(*how, **more).specialize().raster(2).pair()


SCHEDULES = {
    "one tile": pair,
    "persistent": lambda: pair().persistent(),
    "persistent first": lambda: test_tcgen05.persistent().pair(),
    "f8": lambda: pair(linear_of_eights, 32).persistent(),
    "96 columns": lambda: pair(columns=96).persistent(),
}
SCALED = {
    "nvfp4": lambda: scaled().persistent(),
    "mxf4": lambda: scaled(test_scaled.gated, 128, "64B"),
    "mxf8": lambda: scaled(test_scaled.of_eights, 256, "128B").persistent(),
    "256 columns of nvfp4": lambda: scaled(test_scaled.product, 128, "64B", columns=256).persistent(),
}


@pytest.fixture(autouse=True)
def four_sms(monkeypatch):
    monkeypatch.setattr(launching, "SMS", 4)


def test_it_is_what_the_kernel_by_hand_computes():
    s = schedule(product, "sm_100a").tile(i=128, j=64).blocks().tile(x=64).tensorize("tcgen05")
    s.stage("a", "b", in_="shared", swizzle="128B").vectorize("c", 8).pipeline(stages=2, by="tma")
    s.specialize().raster(2).pair().persistent()
    a, b, c = s.arguments({"m": 264, "n": 72, "k": 72})
    expected = np.empty_like(c)
    launch = s.launch_of(a, b, c)
    assert (launch.grid, launch.cluster) == ((4,), (2, 1, 1))
    launch.run(device="cpu")
    by_hand(a, b, expected, "pair", Shape(32, 2), 4).run(device="cpu")
    assert (c == expected).all()
    text = str(launch.kernel)
    assert "cta_group::1" not in text
    assert "multicast::cluster.b64" in text  # of commits; no copy is for both blocks
    assert "bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2" in text


def test_numbers_with_scale_factors_are_what_the_kernel_by_hand_computes():
    s = SCALED["nvfp4"]()
    a, b, c = s.arguments({"m": 264, "n": 136, "k": 96})
    expected = np.empty_like(c)
    s.launch(a, b, c, device="cpu")
    scaled_by_hand(*a, *b, expected, by="pair").run(device="cpu")
    assert (c == expected).all()
    assert "cta_group::1" not in str(s)


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(
    "sizes", [{"m": 300, "n": 72, "k": 88}, {"m": 512, "n": 96, "k": 64}, {"m": 100, "n": 21, "k": 33}, {"k": 0}]
)
def test_any_size(name, sizes):
    assert SCHEDULES[name]().check(seeds=2, symbolic=False, **sizes)


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("sizes", [{"m": 300, "n": 136, "k": 160}, {"m": 5, "n": 264, "k": 32}, {}])
def test_any_size_of_numbers_with_scale_factors(name, sizes):
    assert SCALED[name]().check(seeds=2, symbolic=False, **sizes)


@pytest.mark.bulk
@pytest.mark.parametrize("name", ["one tile", "persistent"])
def test_it_is_the_algorithm_for_all_values(name):
    assert SCHEDULES[name]().check(seeds=0, m=130, n=24, k=40).verdict.level in ("same-function", "near")


@pytest.mark.bulk
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("one tile", {"m": 256, "n": 160, "k": 112}),
        ("persistent", {"m": 256, "n": 160, "k": 112}),
        ("nvfp4", {"m": 256, "n": 640, "k": 448}),
    ],
)
def test_each_wait_is_needed(name, sizes, monkeypatch):
    monkeypatch.setattr(launching, "SMS", 2)  # so that a set of accumulators is used again
    count, unfound = missed({**SCHEDULES, **SCALED}[name](), sizes)
    assert count
    assert not unfound


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: schedule(linear).pair(), "two blocks multiply together by `tcgen05`"),
        (lambda: test_tcgen05.by_tma().pair(), "no warp of its own copies"),
        (lambda: with_roles().pair(), "tiles have no order"),
        (lambda: pair().pair(), "there is a cluster already"),
        (lambda: pair(columns=48), "a block has 128 x 48 of `sum_1`, and one of a pair has 128 rows and up to 256"),
        (lambda: pair(rows=256, columns=64, i=128, j=64), "a block has 256 x 64 of"),
        (lambda: pair(by_columns), "`b` has rows along `j`, of which each block would have a half"),
    ],
)
def test_what_is_refused(step, message):
    with pytest.raises(PtxError) as found:
        step()
    assert message in str(found.value)
    assert "src/ptxlab" not in str(found.value)
