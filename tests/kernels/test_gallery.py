"""Every variant of every kernel of the gallery, at sizes that reach every edge, against its reference in float64."""

import re
from types import ModuleType

import numpy as np
import pytest

from ptxlab import gpu, kernels
from ptxlab.launch.launches import UnsuitedError
from ptxlab.measure import Host, check
from ptxlab.measure.checking import expect
from ptxlab.measure.data import Device
from ptxlab.measure.entry import Size


def words(size: Size) -> str:
    return "-".join(f"{key}{value}" for key, value in size.items())


FEW = {  # sizes that the emulator runs outside the bulk tier, 2 for others
    "decode_attention": 1, "mma_attention": 1, "nvfp4_group_gemm": 1, "scaled_gemm": 1, "wgmma_attention": 1,
    "wgmma_attention_backward": 1, "wgmma_attention_fp8": 1, "wgmma_grouped_gemm": 1,
}  # fmt: skip
CASES = [
    pytest.param(name, variant, size, id=f"{name}-{variant}-{words(size)}",
                 marks=[pytest.mark.bulk] * (number >= FEW.get(name, 2)))
    for name in kernels.names()
    for variant in kernels.entry(name).variants
    for number, size in enumerate(kernels.entry(name).small)
]  # fmt: skip
ALL = [pytest.param(*case.values, id=case.id) for case in CASES]


def run(name: str, variant: str, size: Size, device: str) -> None:
    entry = kernels.entry(name)
    # Arrays stay where they are on a GPU: a kernel may leave addresses of them in memory, in tensor maps, for the next.
    xp: ModuleType = np if device == "cpu" else pytest.importorskip("torch")
    arrays = entry.arrays(Host(7) if device == "cpu" else Device(xp, 7), **size)
    expected = expect(xp, entry, arrays)
    try:
        launches = entry.launches(variant, arrays)
    except UnsuitedError as reason:
        pytest.skip(str(reason))
    for launch in launches:
        if device == "cuda" and gpu.gpu().architecture_for(launch.module.target) is None:
            pytest.skip(f"{gpu.gpu().name} does not run {launch.module.target}")
        assert launch.run(device=device).diagnostics == []
    check(xp, entry, size, arrays, expected, variant)


@pytest.mark.bulk(one_in=7)
@pytest.mark.parametrize(("name", "variant", "size"), CASES)
def test_it_is_right_and_silent_on_the_emulator(name: str, variant: str, size: Size) -> None:
    run(name, variant, size, "cpu")


@pytest.mark.gpu
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
@pytest.mark.parametrize(("name", "variant", "size"), ALL)
def test_it_is_right_on_a_gpu(name: str, variant: str, size: Size) -> None:
    run(name, variant, size, "cuda")


# READMEs that take seconds, and call as others do, or as tests of their own.
SELDOM = ("wgmma_attention", "wgmma_attention_backward", "wgmma_attention_fp8")


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.bulk] * (name in SELDOM)) for name in kernels.names()]
)
def test_its_readme_runs(name: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", kernels.readme(name), re.MULTILINE | re.DOTALL)
    assert blocks, "a README shows how the kernel is called"
    exec("\n".join(blocks), {})
