"""The product by tcgen05, step by step, with one synchronization left out: the emulator says what is missing."""

import numpy as np
import pytest

from ptxlab.kernels.tcgen05_gemm import STEPS, product
from ptxlab.kernels.tcgen05_gemm.parts import Shape
from tests.kernels.left_out import codes, without

SHAPE = Shape(columns=64, stages=2)
# What is left out of the persistent kernel, and what is found then.
LOST = {
    "mbarrier.arrive.expect_tx": "hang",
    "tcgen05.commit": "hang",
    "mbarrier.arrive.shared": "hang",
    "tcgen05.wait::ld": "data-race",
    "fence.proxy.async": "missing-proxy-fence",
    "cp.async.bulk.wait_group.read": "data-race",
    "cp.async.bulk.commit_group": "data-race",
    "barrier.sync.aligned": "data-race",
    "bar.sync 0": "data-race",
    "tcgen05.dealloc": "tensor-memory-leak",
    "mbarrier.init": "bad-barrier",
}


def run(step: str, lost: str | None = None, number: int = 0, seed: int = 0) -> list[str]:
    """What a run finds in which one synchronization is left out; the answer is right if none is."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (rows, 264)).astype(np.float16) for rows in (136, 200))
    d = np.empty((136, 200), np.float16)
    launch = product(a, b, d, step, SHAPE, blocks=2)
    found = codes(launch if lost is None else without(launch, lost, number), seed)
    assert lost is not None or np.array_equal(d, a @ b.T)
    return found


@pytest.mark.bulk
@pytest.mark.parametrize("step", STEPS)
def test_every_step_is_silent_under_many_seeds(step: str) -> None:
    for seed in range(20):
        assert run(step, seed=seed) == []


@pytest.mark.bulk  # `test_nvfp4.py` asks the same of a kernel with the same roles
@pytest.mark.parametrize("lost", LOST)
def test_what_is_lost_is_found(lost: str) -> None:
    assert run("persistent", lost) == [LOST[lost]]


def test_the_epilogue_needs_its_fence() -> None:
    assert run("persistent", "tcgen05.fence::after_thread_sync", number=3) == ["missing-tensor-fence"]
