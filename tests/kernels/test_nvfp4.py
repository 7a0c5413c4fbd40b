"""The NVFP4 kernels: what ptxas makes of them, and what is found when one synchronization is left out."""

import re
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import kernels
from ptxlab.kernels import nvfp4_dual_gemm, nvfp4_gemm, nvfp4_group_gemm
from ptxlab.kernels.block_scaled import FORMATS, arrange, numbers
from ptxlab.kernels.nvfp4_gemm.kernel import Shape
from ptxlab.measure import Host, Launch, UnsuitedError
from ptxlab.toolchain import assemble
from tests.kernels.left_out import codes, without
from tests.tools import needs_ptxas

NAMES = [name for name in kernels.names() if name.startswith("nvfp4")]
SHAPES = {"nvfp4_gemm": Shape(stages=2), "nvfp4_dual_gemm": Shape(stages=2, products=2, buffers=1)}
SHAPES["nvfp4_group_gemm"] = SHAPES["nvfp4_gemm"]
# What is left out, and what is found then.
LOST = {
    "mbarrier.arrive.expect_tx": "hang",
    "tcgen05.commit": "hang",
    "mbarrier.arrive.shared": "hang",
    "tcgen05.wait::ld": "data-race",
    "fence.proxy.async": "missing-proxy-fence",
    "cp.async.bulk.wait_group.read": "data-race",
    "barrier.sync.aligned": "data-race",
    "bar.sync 0": "data-race",
    "tcgen05.dealloc": "tensor-memory-leak",
    "mbarrier.init": "bad-barrier",
}


def launches(name: str) -> Launch:
    """Three or four tiles for a block: one of its accumulators is used again, and each stage of the ring."""
    extents: dict[str, Any] = {"m": "130-20", "n": 136} if "group" in name else {"m": 130, "n": 136}
    size = extents | {"k": 768} | ({"format": "nvfp4"} if name == "nvfp4_gemm" else {})
    module = {"nvfp4_gemm": nvfp4_gemm, "nvfp4_dual_gemm": nvfp4_dual_gemm}.get(name, nvfp4_group_gemm)
    found: Launch = module.product(**module.arrays(Host(1), **size), shape=SHAPES[name], blocks=1)
    return found


@pytest.mark.parametrize("lost", LOST)
def test_what_is_lost_is_found(lost: str) -> None:
    assert LOST[lost] in codes(without(launches("nvfp4_gemm"), lost))


@pytest.mark.bulk
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("lost", LOST)
def test_what_is_lost_is_found_on_every_seed(name: str, lost: str) -> None:
    launch = launches(name)
    for seed in range(10):
        assert codes(without(launch, lost), seed) != []


@pytest.mark.bulk
@pytest.mark.parametrize("name", SHAPES)
def test_they_are_silent_under_many_seeds(name: str) -> None:
    launch = launches(name)
    for seed in range(20):
        assert codes(launch, seed) == []


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("name", NAMES)
def test_they_assemble_without_spills(name: str, target: str) -> None:
    entry = kernels.entry(name)
    (launch,) = entry.launches(next(iter(entry.variants)), entry.arrays(Host(1), **entry.small[0]))
    text = ptxlab.format(launch.module).replace(".target sm_100a", f".target {target}")
    found = assemble(re.sub(r"\.version \S+", ".version 8.8", text, count=1))
    assert [one.spill_stores for one in found.resources] == [0]


def test_factors_are_arranged_as_they_are_read() -> None:
    random = np.random.default_rng(0)
    for format in FORMATS.values():
        rows, k = 200, 320
        factors = random.integers(120, 130, (rows, k // format.group)).astype(np.float64)
        stored = np.full((rows, k // 2), 0x22) if format.bits == 4 else np.ones((rows, k))  # ones
        scales = factors if format.factor == "ue4m3" else 2.0 ** (factors - 127)
        assert np.array_equal(numbers(np, format, stored, arrange(factors)), scales.repeat(format.group, axis=1))


def test_what_they_are_not_for() -> None:
    given = nvfp4_gemm.arrays(Host(1), "nvfp4", 16, 8, 64)
    with pytest.raises(UnsuitedError, match="factors of A are float8_e4m3fn"):
        nvfp4_gemm.product(**given | {"a_factors": given["a_factors"][:, :0]})
    with pytest.raises(UnsuitedError, match="A is uint8, 80 numbers a row"):
        nvfp4_gemm.product(**given | {"a": given["a"][:, :16].repeat(4, axis=1)[:, :40]})
    with pytest.raises(UnsuitedError, match="n a multiple of 8"):
        nvfp4_gemm.product(**nvfp4_gemm.arrays(Host(1), "nvfp4", 16, 12, 64))
