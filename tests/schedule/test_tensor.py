"""Tensor cores by schedules: what they compute, and that each derived synchronization is needed."""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of algorithms
# mypy: ignore-errors

from __future__ import annotations

import re

import pytest

from ptxlab.report import PtxError
from ptxlab.schedule import Schedule, algorithm, bf16, e4m3, f16, f32, launching, schedule
from tests.estimate.test_estimate import needs_tools
from tests.schedule.algorithms import linear_of_eights, matmul, row_sum
from tests.schedule.removals import missed


@algorithm
def linear(a: bf16["m", "k"], b: bf16["n", "k"], c: bf16["m", "n"], bias: f32["n"]):
    for i, j in grid(m, n):
        c[i, j] = max(sum(a[i, x] * b[j, x] for x in range(k)) + bias[j], 0.0)


@algorithm
def by_columns(a: f16["k", "m"], b: f16["k", "n"], c: f32["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[x, i] * b[x, j] for x in range(k))


@algorithm
def across(a: e4m3["m", "k"], b: e4m3["k", "n"], c: f32["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[x, j] for x in range(k))


def by_mma(of=linear, **how) -> Schedule:
    """Two warps of 16 x 16."""
    s = schedule(of).tile(i=32, j=16).blocks()
    s.tile(i=16).threads()
    s.tile(x=16).tensorize("mma.sync")
    s.stage("a", "b", in_="shared", **(how or {"swizzle": "32B"}))
    return s.vectorize("a", "b", 8).vectorize("c", 2)


def by_columns_of_warps(of, columns: int) -> Schedule:
    """Two warps beside each other."""
    s = schedule(of).tile(i=16, j=2 * columns).blocks().tile(i=16, j=columns).threads().tile(x=16)
    return s.tensorize("mma.sync").stage("a", "b", in_="shared", swizzle="32B")


def by_wgmma(blocks: int = 1, columns: int = 16) -> Schedule:
    """Two warpgroups of 64 rows each."""
    s = schedule(linear).tile(i=128, j=columns).blocks().tile(i=64).threads()
    if blocks > 1:
        s.tile(x=16 * blocks).tile(x=16).cluster()
    else:
        s.tile(x=16)
    s.tensorize("wgmma")
    return s.stage("a", "b", in_="shared", swizzle="32B").vectorize("c", 2)


def by_depth() -> Schedule:
    """Two loops along the sum around each multiplication."""
    return schedule(linear).tile(i=64, j=16).blocks().tile(x=32).tile(x=16).tensorize("wgmma")


def by_tma(*how: int) -> Schedule:
    return by_wgmma(*how).pipeline(stages=3, by="tma")


def with_roles(*how: int) -> Schedule:
    return by_tma(*how).specialize()


def persistent() -> Schedule:
    return with_roles().raster(2).persistent()


@pytest.mark.parametrize(("k", "sizes"), [(36, {"8"}), (34, {"4"}), (33, set())])
def test_rows_that_tensor_maps_are_not_for(k, sizes):
    s = with_roles().check(seeds=1, symbolic=False, m=130, n=20, k=k)
    text = str(s.launch_of(*s.arguments({"m": 130, "n": 20, "k": k})).kernel)
    assert set(re.findall(r"cp\.async\.c.*\], (\d+)", text)) == sizes


def of_one_warpgroup() -> Schedule:
    s = schedule(linear).tile(i=64, j=16).blocks().tile(i=64).threads().tile(x=32).tile(x=16).cluster()
    s.tensorize("wgmma").stage("a", "b", in_="shared", swizzle="32B")
    return s.vectorize("a", "b", 8).vectorize("c", 2).pipeline(stages=3)


def of_eights() -> Schedule:
    s = schedule(linear_of_eights).tile(i=128, j=16).blocks().tile(i=64).threads().tile(x=32).tensorize("wgmma")
    return s.stage("a", "b", in_="shared", swizzle="32B").vectorize("c", 2).pipeline(stages=3, by="tma").specialize()


SCHEDULES = {
    "mma.sync": by_mma,
    "mma.sync, cp.async": lambda: by_mma().pipeline(stages=3),
    "wgmma": by_wgmma,
    "wgmma, cp.async": lambda: by_wgmma().vectorize("a", "b", 8).pipeline(stages=3),
    "wgmma, TMA": by_tma,
    "roles": with_roles,
    "cluster": lambda: with_roles(2, 32),  # what is exchanged is where both operands were
    "one warpgroup": of_one_warpgroup,
}
SIZES = {"m": 128, "n": 16, "k": 224}


def test_what_blocks_exchange_waits_for_no_memory():
    """Blocks of a cluster wait for each other at the start only; then mbarriers say what has arrived."""
    text = str(SCHEDULES["cluster"]())
    assert "st.async" in text
    assert re.findall(r"barrier\.cluster\.\w+\.\w+", text) == [
        "barrier.cluster.arrive.relaxed",
        "barrier.cluster.wait.acquire",
    ]


@pytest.mark.parametrize("name", ["mma.sync, cp.async", "roles"])
def test_products(name):
    assert SCHEDULES[name]().check(seeds=1, symbolic=False, m=72, n=24, k=88)


def test_elements_of_eight_bits():
    assert ".e4m3.e5m2 " in str(of_eights())
    assert of_eights().check(seeds=1, symbolic=False, m=72, n=24, k=80)
    plain = schedule(linear_of_eights).tile(i=8, j=8).blocks().threads("i", "j").tile(x=16).vectorize("a", "b", 16)
    assert plain.check(seeds=1, m=9, n=8, k=32).verdict.level == "same-bits"
    assert plain.check(seeds=1, symbolic=False, m=9, n=8, k=33)


@pytest.mark.bulk
@pytest.mark.parametrize("sizes", [{"m": 64, "n": 16, "k": 96}, {"m": 130, "n": 24, "k": 35}])
def test_elements_of_eight_bits_of_any_size(sizes):
    assert of_eights().check(seeds=2, **sizes)


@needs_tools
def test_products_are_estimated():
    assert by_mma().estimate(m=32, n=16, k=16).seconds > 0  # of operands in registers


def test_a_stage_is_of_one_multiplication():
    s = schedule(linear, k=33).tile(i=64, j=16).blocks().tile(x=32).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="64B")
    assert [one.at for one in s.state.stages] == ["x.0", "x.0"]
    assert s.check(seeds=1, symbolic=False, m=21, n=18)
    twice = schedule(linear).tile(i=32, j=16).blocks().tile(x=32).tile(x=16).tensorize("mma.sync")
    assert twice.stage("a", "b", in_="shared", swizzle="32B").check(seeds=1, symbolic=False, m=40, n=24, k=72)


@pytest.mark.bulk
@pytest.mark.parametrize(
    "sizes", [{"m": 64, "n": 16, "k": 80}, {"m": 72, "n": 24, "k": 40}, {"m": 67, "n": 21, "k": 33}]
)
@pytest.mark.parametrize("name", SCHEDULES)
def test_products_of_any_size(name, sizes):
    assert SCHEDULES[name]().check(seeds=2, symbolic=False, **sizes)


def test_no_thread_waits_at_an_mbarrier_before_it_is_initialized():
    s = schedule(linear).tile(i=64, j=16).blocks().tile(i=64).threads().tile(x=16).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="32B").pipeline(stages=4, by="tma")
    assert s.check(seeds=2, symbolic=False, m=8, n=8, k=32)
    lines = [line.strip() for line in str(s).splitlines()]
    first = next(n for n, line in enumerate(lines) if "try_wait" in line)
    assert "bar.sync 0;" in lines[:first]


SHORT = {
    **SCHEDULES,
    "mma.sync, TMA": lambda: by_mma().pipeline(stages=3, by="tma"),
    "mma.sync, roles": lambda: by_mma().pipeline(stages=3, by="tma").specialize(),
    "wgmma, TMA of 2": lambda: by_wgmma().pipeline(stages=2, by="tma"),
    "cluster, TMA": lambda: by_tma(2, 32),
    "cluster, cp.async": lambda: by_wgmma(2, 32).vectorize("a", "b", 8).pipeline(stages=3),
    "persistent": persistent,
}


@pytest.mark.bulk
@pytest.mark.parametrize("k", [0, 1, 8, 16, 32, 48, 64, 72], ids=lambda k: f"k={k}")
@pytest.mark.parametrize("name", SHORT)
def test_loops_shorter_than_the_pipeline(name, k, monkeypatch):
    monkeypatch.setattr(launching, "SMS", 2)
    assert SHORT[name]().check(seeds=3, symbolic=False, m=72, n=24, k=k)


@pytest.mark.parametrize("columns", [16, 24])
def test_lanes_exchange_what_one_block_of_a_cluster_adds_up(columns):
    s = schedule(linear).tile(i=32, j=columns).blocks().tile(i=32).threads().tile(x=48).tile(x=16).cluster()
    s.tensorize("mma.sync").stage("a", "b", in_="shared", pad=8).vectorize("a", "b", 8).vectorize("c", 4)
    assert s.check(seeds=1, symbolic=False, m=40, n=28, k=50)


@pytest.mark.bulk
@pytest.mark.parametrize("how", [{}, {"pad": 8}, {"swizzle": "32B"}])
def test_operands_are_stored_either_way(how):
    assert by_mma(by_columns, **how).check(seeds=1, symbolic=False, m=40, n=24, k=40)


def test_a_block_computes_tile_after_tile(monkeypatch):
    monkeypatch.setattr(launching, "SMS", 2)
    assert persistent().check(seeds=1, symbolic=False, m=130, n=24, k=64)


def test_swizzled_rows_have_no_bank_conflicts():
    def wasted(**how) -> int:
        """Cycles of shared memory that conflicts cost."""
        s = by_mma(**how)
        found = s.launch_of(*s.arguments({"m": 32, "n": 16, "k": 16})).run(device="cpu", profile=True).counters
        return sum(one.get("wavefronts", 0) - one.get("ideal_wavefronts", 0) for one in found["lines"].values())

    assert wasted(swizzle="32B") == 0
    assert wasted(pad=0) > 0


def test_a_thread_that_waits_for_a_warpgroup_needs_no_barrier():
    s = of_one_warpgroup()
    assert str(s).count("bar.sync 0;") == 1  # copies by others, before they are multiplied
    assert s.check(seeds=2, symbolic=False, m=64, n=16, k=160)
    assert str(by_wgmma(2, 32).vectorize("a", "b", 8).pipeline(stages=3)).count("bar.sync 0;") == 2  # of two warpgroups


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCHEDULES)
def test_each_wait_and_fence_is_needed(name):
    count, unfound = missed(SCHEDULES[name](), SIZES)
    assert count
    assert not unfound


def test_columns_of_a_warp_that_are_not_a_power_of_two():
    """Where they are rows in memory, any number of eights; across rows, multiples of what is swizzled together."""
    assert "mma.sync" in str(by_columns_of_warps(linear, 24))
    assert "mma.sync" in str(by_columns_of_warps(by_columns, 48))


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: schedule(matmul).tile(i=16, j=8, x=16).tensorize("mma.sync"), "is of f32"),
        (lambda: schedule(row_sum).tensorize("mma.sync"), "is not a sum of products"),
        (lambda: schedule(linear).tile(i=16, j=8).tensorize("mma.sync"), "a multiple of 16 iterations of `x`"),
        (lambda: schedule(linear).tile(i=24, j=8, x=16).tensorize("mma.sync"), "a multiple of 16 iterations of `i`"),
        (lambda: schedule(linear, "sm_80").tile(i=64, j=8, x=16).tensorize("wgmma"), "needs the target `sm_90a`"),
        (lambda: schedule(linear).tensorize("dp4a"), "there is no unit 'dp4a'"),
        (lambda: schedule(linear_of_eights).tile(i=16, j=8, x=32).tensorize("mma.sync"), "which `wgmma` multiplies"),
        (lambda: schedule(linear_of_eights).tile(i=64, j=8, x=16).tensorize("wgmma"), "a multiple of 32 iterations"),
        (lambda: schedule(across).tile(i=64, j=8, x=32).tensorize("wgmma"), "reads `b` across `x`"),
        (lambda: schedule(linear).tile(i=64, j=8, x=16).tensorize("wgmma").stage("a", in_="registers"), "from shared"),
        (lambda: by_mma(pad=8).pipeline(stages=2, by="tma"), "where tensor cores read it from swizzled rows"),
        (lambda: by_mma().specialize(), "no copies are by TMA"),
        (lambda: by_tma().persistent(), "no warp of its own copies"),
        (
            lambda: by_depth().stage("a", at="x.0"),
            "a multiplication reads one iteration of `x.1` of `a`, and more is staged",
        ),
        (lambda: persistent().stage("bias", in_="shared", at=""), "the next tile would overwrite it"),
        (lambda: str(schedule(linear).tile(i=64, j=16).blocks().tile(x=16).tensorize("wgmma")), "from shared memory"),
        (lambda: str(by_columns_of_warps(by_columns, 24)), "24 iterations of `j`, and `b` is swizzled by 16"),
        (lambda: schedule(linear).tile(x=32).tile(x=2).cluster(), "a cluster has 2 to 8 blocks"),
        (lambda: schedule(linear).tile(i=32).tile(i=8).cluster(), "`i` is not reduced over"),
    ],
)
def test_what_is_refused(step, message):
    with pytest.raises(PtxError) as found:
        step()
    assert message in str(found.value)
    assert "src/ptxlab" not in str(found.value)
