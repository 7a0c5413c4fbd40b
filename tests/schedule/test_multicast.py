"""Clusters that share copies: what they compute, that each wait is needed, and what is refused."""

# mypy: ignore-errors

from __future__ import annotations

import pytest

from ptxlab.report import PtxError
from ptxlab.schedule import Schedule, launching, schedule
from tests.schedule import test_pair, test_tcgen05
from tests.schedule.algorithms import pointwise
from tests.schedule.removals import missed
from tests.schedule.test_tensor import linear


def by_wgmma(columns: int = 32) -> Schedule:
    s = schedule(linear).tile(i=128, j=columns).blocks().tile(i=64).threads().tile(x=16).tensorize("wgmma")
    return s.stage("a", "b", in_="shared", swizzle="32B").vectorize("c", 2).pipeline(stages=3, by="tma").specialize()


SCHEDULES = {
    "rows": lambda: by_wgmma().raster(2).multicast("a", 2),
    "columns": lambda: by_wgmma().raster(3).multicast("b", 4),
    "persistent": lambda: by_wgmma().raster(2).persistent().multicast("b", 2),
    "both": lambda: by_wgmma().raster(2).multicast("a", 2).multicast("b", 2),
    "both, persistent": lambda: by_wgmma().raster(2).persistent().multicast("b", 2).multicast("a", 2),
    "tcgen05": lambda: test_tcgen05.with_roles().raster(2).multicast("a", 2),
    "tcgen05, persistent": lambda: test_tcgen05.persistent().multicast("b", 2),
}


@pytest.fixture(autouse=True)
def four_sms(monkeypatch):
    monkeypatch.setattr(launching, "SMS", 4)


def test_a_cluster_has_all_of_its_blocks():
    s = SCHEDULES["rows"]()
    launch = s.launch_of(*s.arguments({"m": 128, "n": 96, "k": 16}))
    assert (launch.grid, launch.cluster) == ((4,), (2, 1, 1))
    assert "multicast::cluster" in str(launch.kernel)
    assert s.check(seeds=1, symbolic=False, m=136, n=40, k=56)


def test_weights_that_all_products_share():
    """Blocks beside each other in the last loop that an array does not depend on share it: here not those over `h`."""
    s = schedule(pointwise).tile(i=64, j=32).blocks("h", "i", "j").tile(i=64, j=32).threads().tile(x=16)
    s.tensorize("wgmma").stage("a", swizzle="32B").stage("b", swizzle="64B").pipeline(stages=2, by="tma").specialize()
    s.raster(2).multicast("a", 2)
    launch = s.launch_of(*s.arguments({"m": 70, "n": 72, "k": 24, "g": 3}))
    assert (launch.grid, launch.cluster) == ((3 * 2 * 4,), (2, 1, 1))  # of four columns of tiles, one is beyond


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize(
    "sizes",
    [
        {"m": 300, "n": 72, "k": 88},
        {"m": 256, "n": 64, "k": 64},
        {"m": 100, "n": 21, "k": 33},
        {"m": 9, "n": 8, "k": 0},
    ],
)
def test_any_size(name, sizes):
    assert SCHEDULES[name]().check(seeds=2, symbolic=False, **sizes)


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCHEDULES)
def test_each_wait_is_needed(name):
    count, unfound = missed(SCHEDULES[name](), {"m": 512, "n": 128, "k": 96})
    assert count
    assert not unfound


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: by_wgmma().multicast("a", 2), "tiles have no order"),
        (lambda: by_wgmma().raster(2).multicast("a", 1), "a cluster of 1 blocks, expected 2 to 8"),
        (lambda: by_wgmma().raster(2).multicast("a", 16), "a cluster of 16 blocks, expected 2 to 8"),
        (lambda: by_wgmma().raster(2).multicast("bias", 2), "`bias` is not copied by TMA"),
        (lambda: by_wgmma(24).raster(2).multicast("b", 2), "24 rows of `b` are not 2 times a multiple of 8"),
        (lambda: SCHEDULES["rows"]().multicast("a", 2), "tiles beside each other in `j.0` already"),
        (lambda: SCHEDULES["columns"]().multicast("a", 4), "a cluster of 4 times 4 blocks, expected 2 to 8"),
        (lambda: test_pair.pair().multicast("a", 2), "there is a cluster already"),
        (lambda: schedule(linear).raster(2), "0 loops are run by blocks"),
        (lambda: schedule(linear).multicast("a", 2), "no warp of its own copies"),
    ],
)
def test_what_is_refused(step, message):
    with pytest.raises(PtxError) as found:
        step()
    assert message in str(found.value)
    assert "src/ptxlab" not in str(found.value)
