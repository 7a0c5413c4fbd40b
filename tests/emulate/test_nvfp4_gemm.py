"""An NVFP4 GEMM with a ring of stages: TMA, `tcgen05.cp`, MMAs with scale factors; of one block and of two."""

import numpy as np
import pytest

import ptxlab
from tests.emulate.nvfp4_gemm import multiply


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("pair", [False, True])
def test_a_ring_of_stages(pair: bool, seed: int) -> None:
    out, expected, result = multiply(pair=pair, stages=2, depth=768, seed=seed)
    assert not result.diagnostics, ptxlab.report.render(result.diagnostics)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(
    ("without", "code"),
    [
        ("warpx4 [%r3]", "uninitialized-read"),  # the factors of the second half of the columns of B
        ("and.b32 %full, %full", "hang"),  # the second block signals its own mbarrier
        ("bra WD", "data-race"),
    ],
)
def test_what_is_missing_is_found(without: str, code: str) -> None:
    *_, result = multiply(pair=True, stages=2, depth=256, without=without, seed=1)
    assert code in {diagnostic.code for diagnostic in result.diagnostics}
