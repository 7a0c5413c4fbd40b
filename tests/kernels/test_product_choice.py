"""Which variant a product gets: by what it is estimated to take, as judged by times on an H200, or by the tables."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from ptxlab.kernels.parts.choices import restored
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm.candidates import BESIDE, SHARED, SMS, Problem, estimate, shapes
from ptxlab.kernels.wgmma_gemm.choice import choose, tuned
from ptxlab.kernels.wgmma_gemm.correction import LIKELY, ranked

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "fit_products.py"


@pytest.fixture(scope="module")
def program() -> dict[str, Any]:
    """The program that fits the costs."""
    return runpy.run_path(str(PROGRAM))


@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize(
    ("type", "of_fastest", "worse", "of_cublas"),
    [
        ("bf16", 0.975, 0.92, 1.03),
        ("e4m3", 0.97, 0.92, 1.04),
        ("gated", 0.965, 0.9, 1.6),
        ("gated_e4m3", 0.96, 0.9, 1.6),
    ],
)
def test_nearly_the_fastest_variants_of_sizes_that_were_not_learned_from_are_found(
    program: dict[str, Any], type: str, of_fastest: float, worse: float, of_cublas: float
) -> None:
    held_out = program["HELD_OUT"]
    sizes = program["read"](program["EVIDENCE"])[held_out - 1 :: held_out]
    own = [one for one in sizes if one.type == type]
    assert len(own) > 20
    found = program["judge"](own)
    assert found["of fastest"] > of_fastest
    assert found["of fastest, 5th percentile"] > worse
    assert found["of cuBLAS"] > of_cublas
    assert found["of fastest"] > program["judge"](own, corrected=False)["of fastest"]


@pytest.mark.parametrize(
    "problem", [Problem(8, 64, 64), Problem(976, 904, 3888, False, False), Problem(4096, 4096, 4096)]
)
def test_variants_fit_and_the_first_of_them_is_chosen(problem: Problem) -> None:
    found = list(shapes(problem))
    assert len(set(found)) == len(found) > 50
    for shape in found:
        assert shape.occupancy * (shape.shared(problem.layout(shape)) + BESIDE) <= SHARED + BESIDE
        assert shape.split_k == 1 or problem.steps >= 2 * shape.split_k
    order = ranked(problem)
    assert len(order) == len(set(order)) == min(len(found), LIKELY)
    assert set(order) <= set(found)
    if problem not in tuned():
        assert choose(problem) == order[0]


def test_what_costs_more_is_estimated_to_take_longer() -> None:
    whole, odd = Problem(4096, 4096, 4096), Problem(4096, 4096, 4104)
    tile, pair = Shape(stages=4, buffers=2), Shape(stages=4, buffers=2, cluster=2)
    assert estimate(odd, tile) > 1.1 * estimate(whole, tile)  # rows are not multiples of 32 bytes
    assert estimate(odd, pair) < estimate(odd, tile)
    one_wave, two = Problem(128 * SMS, 256, 4096), Problem(128 * SMS + 1, 256, 4096)
    assert estimate(two, tile) > 1.4 * estimate(one_wave, tile)
    few = Problem(128, 256, 16384)
    assert estimate(few, Shape(stages=4, split_k=8, clustered=False)) < estimate(few, tile) / 2


def test_a_table_of_an_earlier_version_names_fields_otherwise() -> None:
    kept = {"alternate": True, "split": 2, "swapped": True, "together": 16, "keep": ["", "evict_first"]}
    expected = Shape(pingpong=True, split_k=2, swap_ab=True, raster=16, keep=("", "evict_first"))
    assert restored(Shape(), kept) == expected
    assert restored(Shape(), {"unknown": 1}) == Shape()
