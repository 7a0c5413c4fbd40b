"""Kernels of the gallery with each fence, wait, arrival and commit left out: what is found, and on which line.

`left_out.txt` has for each kernel the lines that are left out, each with what every seed finds then: a code and the
line that it is about, or several of which each seed finds one. `BLESS=1 pytest --bulk` writes it anew.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ptxlab.kernels import nvfp4_dual_gemm, nvfp4_gemm, nvfp4_group_gemm, wgmma_steps
from ptxlab.kernels.nvfp4_gemm.kernel import Shape
from ptxlab.kernels.tcgen05_gemm import STEPS, product
from ptxlab.kernels.tcgen05_gemm.parts import Shape as TileShape
from ptxlab.measure import Host, Launch
from tests.kernels.left_out import LeftOut, lines_left_out

# What is not found, or not on every seed, and why.
NOT_FOUND = {
    "cp.async.bulk.wait_group 0;": "at the end of a kernel: an H200 loses no store of a block that exits at once",
    "cp.async.bulk.commit_group;": "before such a wait",
    "cp.async.bulk.wait_group.read 0; (2)": "at the end of a kernel, too",
    "bar.warp.sync -1;": "before the barrier of a cluster: most schedules have no lane there before the others",
    "bar.sync 0; (2)": "after `wgmma.wait_group`: the model has an MMA complete in all warps of its warpgroup at once",
    "mbarrier.arrive.shared.b64 _, [%r47];": "at the end of a kernel with one tile, whose last stages no copy fills",
}
FILE = Path(__file__).with_name("left_out.txt")
SEEDS = 5
RING = Shape(stages=2)


def multiply(step: str) -> Launch:
    """Four tiles of 128 by 64 for a block, or three of 256 by 128 for a pair."""
    columns, blocks = (264, 2) if step == "pair" else (128, 1)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (rows, 136)).astype(np.float16) for rows in (136, columns))
    return product(a, b, np.empty((136, columns), np.float16), step, TileShape(columns=64, stages=2), blocks)


def multiply_by_wgmma(step: str) -> Launch:
    """A tile of 64 by 16, or four of 64 by 64 for a block; two warpgroups have 128 rows; five K tiles, three stages."""
    is_persistent = step in ("persistent", "ping_pong")
    groups = wgmma_steps.STEPS[step].groups
    shape = wgmma_steps.Shape(64 * groups, 64 if is_persistent else 16, 1 if step == "one_tile" else 3, groups)
    extents = (2 * shape.rows, 2 * shape.columns) if is_persistent else (shape.rows, shape.columns)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (rows, 320)).astype(np.float16) for rows in extents)
    return wgmma_steps.product(a, b, np.empty(extents, np.float16), step, shape, blocks=1)


def grouped(changed: bool) -> Launch:
    """Two groups with two tiles each."""
    given = nvfp4_group_gemm.arrays(Host(1), m="20-30", n=136, k=288)
    return nvfp4_group_gemm.product(**given, shape=RING, blocks=1, changed=changed)


# Each kernel with so many tiles for a block that its accumulators and each stage of its ring are used again.
KERNELS: dict[str, Callable[[], Launch]] = {
    **{step: lambda step=step: multiply(step) for step in STEPS},  # type: ignore[misc]
    "nvfp4_gemm": lambda: nvfp4_gemm.product(**nvfp4_gemm.arrays(Host(1), "nvfp4", 20, 264, 288), shape=RING, blocks=1),
    "nvfp4_dual_gemm": lambda: nvfp4_dual_gemm.product(
        **nvfp4_dual_gemm.arrays(Host(1), 20, 136, 288), shape=Shape(stages=2, products=2, buffers=1), blocks=1
    ),
    "nvfp4_group_gemm": lambda: grouped(changed=False),
    "changed_maps": lambda: grouped(changed=True),
    **{f"wgmma {step}": lambda step=step: multiply_by_wgmma(step) for step in wgmma_steps.STEPS},  # type: ignore[misc]
}


@cache
def expected() -> dict[str, dict[str, list[str]]]:
    """What the file says: by kernel and line, what is found."""
    found: dict[str, dict[str, list[str]]] = {}
    last: list[str] = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            lines = found.setdefault(line[2:], {})
        elif line.startswith("    "):
            last.append(line.strip())
        elif line:
            lines[line] = last = []
    return found


def write(kernel: str, lines: dict[str, list[str]]) -> None:
    """Write what is found in a kernel."""
    everything = {name: expected().get(name, {}) for name in KERNELS} | {kernel: lines}
    parts = []
    for name, known in everything.items():
        parts += [f"# {name}", ""]
        for line, found in known.items():
            parts += [line, *(f"    {one}" for one in found), ""]
    FILE.write_text("\n".join(parts), encoding="utf-8")
    expected.cache_clear()


def find(one: LeftOut, seeds: int = SEEDS) -> list[str]:
    """What to write: a finding that every seed has, or the first of each."""
    runs = [one.run(seed) for seed in range(seeds)]
    always = [finding for finding in runs[0] if all(finding in run for run in runs)]
    return always[:1] or list(dict.fromkeys(run[0] if run else "nothing" for run in runs))


@pytest.mark.bulk
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_line_that_is_left_out_is_found_on_every_seed(kernel: str) -> None:
    left_out = list(lines_left_out(KERNELS[kernel]()))
    if os.environ.get("BLESS"):
        write(kernel, {one.name: find(one) for one in left_out})
        return
    known = expected()[kernel]
    assert [one.name for one in left_out] == list(known)
    for one in left_out:
        for seed in range(SEEDS if "nothing" not in known[one.name] else 0):
            assert set(known[one.name]) & set(one.run(seed)), (one.name, seed)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_not_found_is_known(kernel: str) -> None:
    lost = [line for line, found in expected()[kernel].items() if "nothing" in found]
    assert len(lost) <= len(NOT_FOUND)
    assert [line for line in lost if line.partition(" ")[2] not in NOT_FOUND and line not in NOT_FOUND] == []


@pytest.mark.bulk
@pytest.mark.parametrize("kernel", KERNELS)
def test_they_are_silent_under_many_seeds(kernel: str) -> None:
    launch = KERNELS[kernel]()
    for seed in range(20):
        assert launch.run(device="cpu", seed=seed, on_error="collect").diagnostics == []


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(
    ("kernel", "lost"),
    [
        ("changed_maps", "tensormap.cp_fenceproxy"),
        ("changed_maps", "fence.proxy.tensormap"),
        ("changed_maps", "tcgen05.wait::ld"),
        ("nvfp4_gemm", "tcgen05.commit"),
        ("nvfp4_gemm", "tcgen05.fence::after"),
        ("nvfp4_gemm", "fence.proxy.async"),
        ("pair", "mbarrier.arrive.release"),
    ],
)
def test_some_are_found_on_one_seed(kernel: str, lost: str) -> None:
    """A few of them: all are in the bulk tier."""
    one = next(one for one in lines_left_out(KERNELS[kernel]()) if lost in one.name)
    assert set(expected()[kernel][one.name]) & set(one.run())
