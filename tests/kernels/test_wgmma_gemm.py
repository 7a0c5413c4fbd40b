"""The product by wgmma with one synchronization left out: the emulator says what is missing, on every run."""

from dataclasses import replace

import numpy as np
import pytest

from ptxlab.kernels.wgmma_gemm import SMALL, product
from tests.kernels.left_out import codes, without

# What is left out, and what is found then.
LOST = {
    "fence.proxy.async": "missing-proxy-fence",
    "wgmma.wait_group.sync.aligned 1": "data-race",
    "wgmma.commit_group": "data-race",
    "cp.async.bulk.wait_group.read": "data-race",
    "barrier.sync.aligned": "data-race",
    "bar.sync 0": "data-race",
    "mbarrier.arrive.shared": "hang",
    "mbarrier.arrive.expect_tx": "hang",
}


def found_without(lost: str | None) -> set[str]:
    """The codes that a run of two blocks, each with two tiles, finds; its answer is right if nothing is lost."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (128, 264)).astype(np.float16) for _ in range(2))
    d = np.empty((128, 128), np.float16)
    launch = replace(product(a, b, d, SMALL), grid=2)
    found = codes(launch if lost is None else without(launch, lost))
    assert lost is not None or np.array_equal(d, a @ b.T)
    return {*found}


def test_nothing_is_found_if_nothing_is_lost() -> None:
    assert found_without(None) == set()


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("lost", LOST)
def test_what_is_lost_is_found(lost: str) -> None:
    assert LOST[lost] in found_without(lost)
