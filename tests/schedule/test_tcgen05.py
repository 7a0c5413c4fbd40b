"""Schedules for `tcgen05`: what they compute, and that each derived synchronization is needed."""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of algorithms
# mypy: ignore-errors

from __future__ import annotations

import pytest

from ptxlab.report import PtxError
from ptxlab.schedule import Schedule, algorithm, bf16, launching, schedule
from tests.schedule.algorithms import linear_of_eights
from tests.schedule.removals import missed
from tests.schedule.test_tensor import by_columns, linear


@algorithm
def batched(a: bf16["g", "m", "k"], b: bf16["g", "n", "k"], c: bf16["g", "m", "n"]):
    for h, i, j in grid(g, m, n):
        c[h, i, j] = sum(a[h, i, x] * b[h, j, x] for x in range(k))


def product(of=linear, depth=16, *, rows=128, columns=32, **warpgroups) -> Schedule:
    """A tile of 128 x 32, without bank conflicts."""
    s = schedule(of, "sm_100a").tile(i=rows, j=columns).blocks("i", "j")
    if warpgroups:
        s.tile(**warpgroups).threads()
    return s.tile(x=depth).tensorize("tcgen05").stage("a", "b", in_="shared", swizzle="32B")


def by_tma(*how, **more) -> Schedule:
    return product(*how, **more).pipeline(stages=3, by="tma")


def with_roles(*how, **more) -> Schedule:
    return by_tma(*how, **more).specialize()


def persistent(*how, **more) -> Schedule:
    return with_roles(*how, **more).raster(2).persistent()


def split() -> Schedule:
    s = schedule(linear, "sm_100a").tile(i=128, j=32).blocks().tile(x=32).tile(x=16).cluster().tensorize("tcgen05")
    return s.stage("a", "b", in_="shared", swizzle="32B").pipeline(stages=2, by="tma").specialize()


def wide(columns: int, swizzle: str) -> Schedule:
    """Columns of several panels."""
    s = schedule(by_columns, "sm_100a").tile(i=128, j=columns).blocks().tile(x=64).tensorize("tcgen05")
    return s.stage("a", "b", in_="shared", swizzle=swizzle)


SCHEDULES = {
    "plain": product,
    "cp.async": lambda: product().vectorize("a", "b", 8).pipeline(stages=3),
    "TMA": by_tma,
    "TMA of 2": lambda: product().pipeline(stages=2, by="tma"),
    "roles": with_roles,
    "persistent": persistent,
    "split": split,
    "warpgroups": lambda: persistent(rows=256, columns=64, i=128, j=32),
}


@pytest.fixture(autouse=True)
def two_sms(monkeypatch):
    monkeypatch.setattr(launching, "SMS", 2)


@pytest.mark.parametrize("make", [product, persistent])
def test_products(make):
    assert make().vectorize("c", 8).check(seeds=1, symbolic=False, m=136, n=40, k=56)


def test_accumulators_are_not_overwritten_before_they_are_read():
    s = schedule(batched, "sm_100a").tile(i=128, j=16).blocks("i", "j").tile(x=16).tensorize("tcgen05")
    s.stage("a", "b", in_="shared", swizzle="32B")
    assert str(s).count("tcgen05.fence::after_thread_sync") == 2
    assert s.check(seeds=1, symbolic=False, g=2, m=20, n=16, k=16)


@pytest.mark.bulk
@pytest.mark.parametrize("k", [0, 1, 8, 16, 32, 48, 56, 72], ids=lambda k: f"k={k}")
@pytest.mark.parametrize("name", SCHEDULES)
def test_sums_of_any_length(name, k):
    assert SCHEDULES[name]().check(seeds=2, symbolic=False, m=136, n=40, k=k)


@pytest.mark.bulk
@pytest.mark.parametrize("make", [product, by_tma, persistent])
@pytest.mark.parametrize("sizes", [{"m": 136, "n": 48, "k": 40}, {"m": 67, "n": 21, "k": 33}])
@pytest.mark.parametrize(("of", "depth"), [(by_columns, 16), (linear_of_eights, 32)])
def test_types_and_layouts(make, of, depth, sizes):
    assert make(of, depth).check(seeds=1, symbolic=False, **sizes)


@pytest.mark.bulk
def test_columns_of_several_panels():
    assert (
        wide(128, "128B").pipeline(stages=2, by="tma").specialize().check(seeds=1, symbolic=False, m=136, n=136, k=72)
    )
    assert wide(320, "64B").check(seeds=1, symbolic=False, m=136, n=336, k=72)


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCHEDULES)
def test_it_is_the_algorithm_for_all_values(name):
    assert SCHEDULES[name]().check(seeds=0, m=130, n=24, k=40).verdict.level in ("same-function", "near")


@pytest.mark.bulk
@pytest.mark.parametrize("name", [*SCHEDULES, "batched"])
def test_each_wait_and_fence_is_needed(name, monkeypatch):
    monkeypatch.setattr(launching, "SMS", 1)  # so that a set of accumulators is used again
    s, sizes = SCHEDULES.get(name, lambda: product(batched))(), {"m": 256, "n": 160, "k": 80}
    count, unfound = missed(s, sizes if name != "batched" else {"g": 2, "m": 128, "n": 32, "k": 48})
    assert count
    assert not unfound


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: schedule(linear).tile(i=128, j=32, x=16).tensorize("tcgen05"), "`tcgen05` needs the target `sm_100a`"),
        (lambda: schedule(linear, "sm_100a").tile(i=128, j=32, x=16).tensorize("wgmma"), "needs the target `sm_90a`"),
        (lambda: product(rows=64), "a warpgroup multiplies a multiple of 128 iterations of `i` at a time"),
        (lambda: product(columns=24), "a multiple of 16 iterations of `j`"),
        (lambda: product(columns=528), "528 columns for a warpgroup, and `tcgen05` has 512 at most"),
        (lambda: product(rows=512, columns=256), "1024 columns of tensor memory, which has 512"),
        (
            lambda: schedule(linear, "sm_100a").tile(i=128, x=16).tile(j=32).tensorize("tcgen05"),
            "for each iteration of",
        ),
        (lambda: by_tma(columns=272), "272 rows of `b` are staged, and TMA copies 256 at most"),
        (lambda: by_tma(batched), "copies by TMA run ahead of one loop, and `h.0` runs around `x.0`"),
        (lambda: str(wide(320, "128B")), "multiplies 160 of 320 columns at a time, and `b` has panels of 64"),
    ],
)
def test_what_is_refused(step, message):
    with pytest.raises(PtxError) as found:
        step()
    assert message in str(found.value)
    assert "src/ptxlab" not in str(found.value)
