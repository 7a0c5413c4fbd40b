"""The product by wgmma with one synchronisation left out: the emulator says what is missing, on every run."""

import re

import numpy as np
import pytest

import ptxlab
from ptxlab.kernels.wgmma_gemm import SMALL, product
from ptxlab.kernels.wgmma_gemm.kernel import specialize

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
    text = specialize("f16", SMALL).ptx
    if lost is not None:
        text, count = re.subn(rf"\n[^\n]*{re.escape(lost)}[^\n]*;", "\n", text, count=1)
        assert count == 1
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (128, 264)).astype(np.float16) for _ in range(2))
    d = np.empty((128, 128), np.float16)
    launch = product(a, b, d, SMALL)
    module = ptxlab.parse(text)
    result = module[module.entries[0]].launch(2, launch.block, launch.args, shared=launch.shared, on_error="collect")
    if lost is None:
        assert np.array_equal(d, a @ b.T)
    return {found.code for found in result.diagnostics}


def test_nothing_is_found_if_nothing_is_lost() -> None:
    assert found_without(None) == set()


@pytest.mark.parametrize("lost", LOST)
def test_what_is_lost_is_found(lost: str) -> None:
    assert LOST[lost] in found_without(lost)
