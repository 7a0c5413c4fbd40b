"""Stream-K: tiles of which several blocks have pieces, that each synchronization is needed, and what is refused."""

# ruff: noqa: F821, UP037 - the names of sizes and loops are those of the algorithms
# mypy: ignore-errors

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from ptxlab.report import PtxError
from ptxlab.schedule import Schedule, algorithm, bf16, choose, f32, launching, schedule
from tests.estimate.test_estimate import needs_tools
from tests.schedule import test_multicast, test_tcgen05
from tests.schedule.removals import changed, not_found
from tests.schedule.test_online import attention
from tests.schedule.test_tensor import by_mma, by_tma, linear, of_eights, with_roles

EVIDENCE = Path(__file__).parents[2] / "evidence"


def by_wgmma(columns: int = 16) -> Schedule:
    """A warpgroup of 64 rows."""
    s = schedule(linear).tile(i=64, j=columns).blocks().tile(x=16).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="32B").vectorize("c", 2)
    return s.pipeline(stages=3, by="tma").specialize().raster(2)


SCHEDULES = {
    "wgmma": lambda: by_wgmma().stream_k(),
    "two warpgroups": lambda: with_roles().raster(2).stream_k(),
    "24 columns": lambda: by_wgmma(24).stream_k(),
    "mma.sync": lambda: by_mma().pipeline(stages=3, by="tma").specialize().raster(1).stream_k(),
    "fp8": lambda: of_eights().raster(2).stream_k(),
    "multicast": lambda: test_multicast.by_wgmma().raster(2).multicast("b", 2).stream_k(),
}


def measured():
    """The times of schedules with and without stream-K on an H200, at sizes whose tiles do not come out even."""
    rows = json.loads((EVIDENCE / "scheduled_tensor_gemm_fresh.json").read_text())["rows"]
    return [
        (
            {name: statistics.median(times) for name, times in row["us"].items() if name != "cuBLAS"},
            {size: row[size] for size in "mnk"},
        )
        for row in rows
        if row["what"] == "uneven"
    ]


def of_an_h200(name: str) -> Schedule:
    """A schedule of `measured` by its name."""
    kind, tile = name.split(", ")
    rows, columns = map(int, tile.split("x"))
    s = schedule(linear).tile(i=rows, j=columns).blocks().tile(i=64).threads().tile(x=64).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="128B").vectorize("c", 8)
    s.pipeline(stages=4 if columns == 256 else 6, by="tma").raster(8).specialize()
    return s.persistent() if kind == "persistent" else s.stream_k()


@pytest.fixture(autouse=True)
def few_sms(monkeypatch):
    monkeypatch.setattr(launching, "SMS", 5)


def test_blocks_share_tiles():
    s = SCHEDULES["wgmma"]()
    assert s.check(seeds=1, symbolic=False, m=72, n=24, k=56)  # 4 tiles of 4 iterations
    launch = s.launch_of(*s.arguments({"m": 60, "n": 12, "k": 56}))
    assert launch.grid == (4,)  # a tile of four blocks
    workspace = launch.args[-1]
    launch.run(device="cpu")
    assert workspace.any()
    assert not workspace[-4 * 4 :].view(np.uint32).any()  # flags are for the next launch
    assert not launch.run(device="cpu").diagnostics


@algorithm
def in_full(a: bf16["m", "k"], b: bf16["n", "k"], c: f32["m", "n"]):
    for i, j in grid(m, n):
        c[i, j] = sum(a[i, x] * b[j, x] for x in range(k))


@pytest.mark.parametrize(("tiles", "whole"), [(4, 0), (9, 0), (10, 5), (13, 5), (17, 10)])
def test_only_the_tiles_of_less_than_two_waves_are_shared(tiles, whole):
    """The others are added up in the order in which one block adds."""
    s = schedule(in_full).tile(i=64, j=16).blocks().tile(x=16).tensorize("wgmma")
    s.stage("a", "b", in_="shared", swizzle="32B").pipeline(stages=3, by="tma").specialize().raster(1)
    a, b, c = s.arguments({"m": 64, "n": 16 * tiles, "k": 16 * 7})
    shared = np.empty_like(c)
    s.copy().persistent().launch(a, b, c, device="cpu")
    s.copy().stream_k().launch(a, b, shared, device="cpu")
    same = [(c[:, n : n + 16] == shared[:, n : n + 16]).all() for n in range(0, 16 * tiles, 16)]
    assert all(same[:whole])
    assert all(same) == (tiles % 5 == 0)


def test_blocks_are_chosen_by_waves(monkeypatch):
    monkeypatch.undo()  # an H200 has 132 SMs
    few, many = by_wgmma().persistent(), by_wgmma().stream_k()
    assert choose([few, many], m=64, n=16, k=8192) is many
    assert choose([few, many], m=0, n=0, k=0) is few


@pytest.mark.parametrize("row", measured(), ids=lambda row: str(row[1]))
def test_stream_k_is_chosen_where_it_was_faster(row, monkeypatch):
    monkeypatch.undo()
    times, sizes = row
    made = {name: of_an_h200(name) for name in times}
    taken = choose(list(made.values()), **sizes)
    chosen = next(name for name, one in made.items() if one is taken)
    fastest = min(times, key=times.get)
    assert chosen.split(", ")[0] == fastest.split(", ")[0]
    assert times[chosen] <= 1.03 * times[fastest]  # tiles of the same kind may be as fast as each other


def test_which_blocks_share_copies(monkeypatch):
    """Where rows are out of step with sectors, each block copies half of B for two; not for a short sum."""
    monkeypatch.undo()
    s = of_an_h200("persistent, 128x256")
    shared = s.copy().multicast("b", 2)
    assert choose([s, shared], m=831, n=6128, k=1944) is shared
    assert choose([s, shared], m=831, n=6128, k=64) is s


@needs_tools
def test_it_is_estimated():
    assert SCHEDULES["wgmma"]().estimate(m=64, n=16, k=64).seconds > 0  # no block waits for one that is not counted


@pytest.mark.bulk
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("sms", [2, 5, 7, 32])
@pytest.mark.parametrize(
    "sizes",
    [
        {"m": 300, "n": 72, "k": 160},
        {"m": 128, "n": 32, "k": 64},
        {"m": 100, "n": 21, "k": 33},
        {"m": 9, "n": 8, "k": 16},
        {"m": 9, "n": 8, "k": 0},
    ],
)
def test_any_size(name, sms, sizes, monkeypatch):
    monkeypatch.setattr(launching, "SMS", sms)
    assert SCHEDULES[name]().check(seeds=2, symbolic=False, **sizes)


@pytest.mark.bulk
@pytest.mark.parametrize("name", ["wgmma", "mma.sync"])
def test_it_is_the_algorithm_for_all_values(name):
    assert SCHEDULES[name]().check(seeds=0, m=72, n=24, k=40).verdict.level in ("same-function", "near")


@pytest.mark.bulk
@pytest.mark.parametrize("name", ["wgmma", "two warpgroups", "mma.sync", "multicast"])
def test_each_synchronization_is_needed(name, monkeypatch):
    monkeypatch.setattr(launching, "SMS", 9)  # among which the tiles do not come out even
    s = SCHEDULES[name]()
    launch = s.launch_of(*s.arguments({"m": 256, "n": 72, "k": 112}))
    texts = {**changed(str(launch.kernel)), **without_flags(launch)}
    assert sum("bar.warp.sync" in what for what in texts) == 2
    assert sum(" st.release" in what or " ld.acquire" in what for what in texts) == 2
    assert not not_found(launch, [2], texts)


def without_flags(launch) -> dict[str, str]:
    """The PTX with a poll that does not repeat, and without the reset of a flag."""
    lines = str(launch.kernel).splitlines()
    poll = next(n for n, line in enumerate(lines) if "ld.acquire.gpu" in line)
    assert " bra " in lines[poll + 2]
    return {
        "an acquire that is not repeated": "\n".join(lines[: poll + 2] + lines[poll + 3 :]),
        "a flag that stays": "\n".join(line for line in lines if "st.relaxed.gpu" not in line),
    }


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda: by_tma().stream_k(), "no warp of its own copies"),
        (lambda: with_roles().stream_k(), "tiles have no order"),
        (lambda: test_tcgen05.with_roles().raster(2).stream_k(), "blocks add accumulators that are in registers"),
        (lambda: schedule(attention).stream_k(), "no warp of its own copies"),
        (lambda: with_roles(2, 32).raster(2).stream_k(), "blocks of a cluster compute one tile together"),
    ],
)
def test_what_is_refused(step, message):
    with pytest.raises(PtxError) as found:
        step()
    assert message in str(found.value)
    assert "src/ptxlab" not in str(found.value)
