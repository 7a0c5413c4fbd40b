"""Results that go through shared memory, and instructions whose rows are columns of a result."""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of algorithms
# mypy: ignore-errors

from __future__ import annotations

import pytest

from ptxlab.report import PtxError
from ptxlab.schedule import Schedule, algorithm, f16, f32, launching, schedule
from ptxlab.toolchain import assemble
from tests.estimate.test_estimate import needs_tools
from tests.schedule.removals import missed
from tests.schedule.test_tensor import linear


@algorithm
def batched(a: f16["g", "m", "k"], b: f16["n", "k"], c: f16["g", "m", "n"], y: f32["g", "m", "n"], bias: f32["n"]):
    for h, i, j in grid(g, m, n):
        t = sum(a[h, i, x] * b[j, x] for x in range(k))
        c[h, i, j] = t + bias[j]
        y[h, i, j] = t


@pytest.fixture(autouse=True)
def few_sms(monkeypatch):
    monkeypatch.setattr(launching, "SMS", 2)


def by_rows(i: int = 64, j: int = 32, blocks: int = 1, roles: bool = True, **stage) -> Schedule:
    return stored(schedule(linear).tile(i=i, j=j).blocks().tile(i=64).threads(), "i", blocks, roles, **stage)


def by_columns(i: int = 16, j: int = 128, blocks: int = 1, each: int = 64, **stage) -> Schedule:
    s = schedule(linear).tile(i=i, j=j).blocks().tile(j=each).threads()
    return stored(s, "j", blocks, swizzle="128B", **stage)


def stored(s: Schedule, rows: str, blocks: int = 1, roles: bool = True, **stage) -> Schedule:
    if blocks > 1:
        s.tile(x=16 * blocks).tile(x=16).cluster()
    else:
        s.tile(x=16)
    s.tensorize("wgmma", rows=rows).stage("a", "b", in_="shared", swizzle="32B").stage("c", in_="shared", **stage)
    s.pipeline(stages=3, by="tma").raster(2)
    return s.specialize() if roles else s


SCHEDULES = {
    "tile after tile": lambda: by_rows(swizzle="64B").persistent(),
    "box after box": lambda: by_rows(i=128, swizzle="32B", slots=1).persistent(),
    "no roles": lambda: by_rows(j=24, roles=False),
    "by columns": lambda: by_columns().persistent(),
    "shares": lambda: by_rows(blocks=2, swizzle="32B"),
    "shares by columns": lambda: by_columns(blocks=2),
}


@pytest.mark.parametrize("name", ["box after box", "by columns", "shares by columns"])
def test_results(name):
    text = str(SCHEDULES[name]().check(seeds=1, symbolic=False, m=136, n=136, k=72))
    assert "stmatrix" in text
    assert "st.global" not in text


@pytest.mark.bulk
@pytest.mark.parametrize(
    "sizes", [{"m": 64, "n": 32, "k": 32}, {"m": 130, "n": 200, "k": 40}, {"m": 8, "n": 8, "k": 0}]
)
@pytest.mark.parametrize("name", SCHEDULES)
def test_results_of_any_size(name, sizes):
    assert SCHEDULES[name]().check(seeds=2, symbolic=False, **sizes)


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCHEDULES)
def test_each_wait_and_fence_is_needed(name, monkeypatch):
    monkeypatch.setattr(launching, "SMS", 1)
    count, unfound = missed(SCHEDULES[name](), {"m": 149, "n": 160, "k": 128})
    assert count
    assert not unfound


def test_several_results_of_several_matrices():
    """One of 16 bits goes through shared memory, one of 32 is stored by threads."""
    s = schedule(batched).tile(i=24, j=64).blocks("h", "i", "j").tile(x=16).tensorize("wgmma", rows="j")
    s.stage("a", "b", in_="shared", swizzle="32B").stage("c", in_="shared", swizzle="128B").evict_first("c")
    s.pipeline(stages=2, by="tma").raster(2).specialize().persistent()
    assert s.check(seeds=1, symbolic=False, g=2, m=30, n=72, k=24)


def test_rows_that_no_tensor_map_is_for():
    """Operands are still copied by TMA."""
    s = by_columns().check(seeds=1, symbolic=False, m=20, n=133, k=24)
    text = str(s.launch_of(*s.arguments({"m": 20, "n": 133, "k": 24})).kernel)
    assert "stmatrix" not in text
    assert "cp.async.bulk.tensor" in text


@pytest.mark.parametrize("unit", ["mma.sync", "tcgen05"])
def test_columns_are_rows_of_other_instructions(unit):
    s = schedule(linear, "sm_100a" if unit == "tcgen05" else "sm_90a").tile(i=16, j=128).blocks().tile(j=128).threads()
    s.tile(x=16).tensorize(unit, rows="j").stage("a", "b", in_="shared", swizzle="32B")
    assert s.check(seeds=1, symbolic=False, m=20, n=136, k=40)


@needs_tools
def test_ptxas_does_not_serialize_multiplications():
    """What is left of 32 columns is exchanged by fewer lanes, or stored in pairs (C7514)."""
    s = schedule(linear).tile(i=64, j=56).blocks().tile(i=64).threads().tile(x=64).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="128B").vectorize("c", 8)
    kernel = s.pipeline(stages=4, by="tma").raster(8).specialize().persistent().kernel(m=1, n=8, k=8)
    assert not any("serialized" in one.message for one in assemble(str(kernel)).diagnostics)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: schedule(linear).stage("c", in_="shared"), "`c` is written"),
        (lambda: by_rows().stage("c", in_="shared"), "`c` is staged already"),
        (lambda: by_rows(pad=8), "`c` is written, from boxes in shared memory"),
        (lambda: by_rows(j=24, swizzle="32B"), "`c` has 24 columns of a multiplication, and 16 are swizzled together"),
        (lambda: by_rows(swizzle="32B", slots=3), "`c` is stored in 2 boxes by a warpgroup, not a multiple of 3"),
        (lambda: by_rows(slots=-1), "`slots` is -1"),
        (lambda: by_rows(j=24, blocks=2), "`c` has columns of which 2 blocks do not have a share each"),
        (lambda: schedule(linear).tile(i=16, j=8, x=16).tensorize("mma.sync", rows="x"), "not over 'x'"),
        (lambda: schedule(batched).tile(i=64, j=8, x=16).tensorize("wgmma").stage("y"), "does not have elements of 16"),
        (
            lambda: schedule(linear).tile(i=16, j=64).blocks().tile(x=16).tensorize("wgmma", rows="j").stage("c"),
            "`c` is transposed, and 64 of its columns are swizzled together",
        ),
        (
            lambda: schedule(linear).tile(i=16, j=16).blocks().tile(x=16).tensorize("mma.sync").stage("c"),
            "`c` goes through shared memory where `wgmma` has computed it",
        ),
    ],
)
def test_what_is_refused(step, message):
    with pytest.raises(PtxError) as found:
        step()
    assert message in str(found.value)
    assert "src/ptxlab" not in str(found.value)
