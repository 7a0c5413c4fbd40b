"""The optimization steps that are written in Python: other tilings, and what shared memory costs."""

from typing import Any

import numpy as np
import pytest

from ptxlab.author import Kernel
from ptxlab.kernels.sgemm import authored
from ptxlab.kernels.sgemm.authored import PIPELINED, double_buffered, vectorised, warp_tiles
from ptxlab.kernels.sgemm.blocks import Tiling
from ptxlab.toolchain import assemble

from ..tools import needs_ptxas


def matrices(m: int, n: int, k: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(m + n + k)
    a, b = (random.integers(-8, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    return a, b, np.full((m, n), np.nan, np.float32)


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(
    "tiling",
    [
        Tiling(m=64, n=64, k=8, stages=2),
        Tiling(m=128, n=64, k=8, thread_n=16, stages=4),
        Tiling(m=128, n=64, k=8, thread_m=16, stages=3, group=1),
    ],
    ids=str,
)
def test_other_tilings(tiling: Tiling) -> None:
    a, b, c = matrices(130, 132, 40)
    assert double_buffered(a, b, c, tiling).run(device="cpu").diagnostics == []
    assert np.array_equal(c, a @ b)


def wavefronts(launch: Any) -> tuple[int, int]:
    requests = launch.run(device="cpu", profile=True).counters["requests"]
    return requests["wavefronts"], requests["ideal_wavefronts"]


def test_what_warp_tiling_is_for() -> None:
    a, b, c = matrices(128, 128, 16)
    taken, ideal = wavefronts(vectorised(a, b, c))
    assert taken > ideal
    taken, ideal = wavefronts(warp_tiles(a, b, c))
    assert taken == ideal


def test_copies_that_run_ahead_meet_in_no_bank() -> None:
    taken, ideal = wavefronts(double_buffered(*matrices(64, 256, 32)))
    assert taken == ideal


@needs_ptxas
def test_the_fastest_is_assembled_without_spilling() -> None:
    a, b, c = (np.empty((1024, 1024), np.float32) for _ in range(3))
    kernel = double_buffered(a, b, c).kernel
    assert isinstance(kernel, Kernel)
    (resources,) = assemble(kernel.ptx, "sm_90").resources
    assert resources.spill_stores == 0
    assert resources.registers * PIPELINED.threads * PIPELINED.resident <= 65536


def test_the_block_s_tile_is_covered_once() -> None:
    a, b, c = matrices(300, 600, 16)
    assert authored.blocks(300, 600, PIPELINED) == 5 * 3
    assert double_buffered(a, b, c).run(device="cpu").diagnostics == []
    assert np.array_equal(c, a @ b)
