"""The product with scales of blocks: right and silent in each of its ways, and not silent where a line is left out."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import Layout, Shape
from ptxlab.kernels.scaled_gemm import arrays, launch, reference
from ptxlab.kernels.scaled_gemm.choice import CHOICES, Timed, choose
from ptxlab.kernels.scaled_gemm.kernel import specialize
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.measure import Host, Launch
from tests.kernels.left_out import codes, without

from ..tools import needs_ptxas, ptxas_reports

TALL, SMALL, STORED = Shape(2, 16, 2, tall=2), Shape(1, 16, 3, fresh=2, unroll=4), Shape(2, 112, 2)
SHAPES = {
    "two warpgroups, two stripes": (TALL, True),
    "two warpgroups, scales by warps": (TALL, False),
    "two K tiles at a time": (SMALL, False),
    "a warp that stores": (STORED, True),
    "parts of k": (Shape(1, 32, 2, split_k=2, fresh=2), True),
    "two scales in a tile, blocks side by side": (Shape(1, 48, 2, cluster=2, beside=2), True),
}


def prepare(shape: Shape, mapped: bool) -> tuple[Launch, Any, Any]:
    """The launch by one block or cluster, what it writes, and what is right; scales come by TMA or by warps."""
    given = arrays(Host(3), 140, 24, 400) if shape.columns != 48 else arrays(Host(3), 72, 144, 400)
    made = launch(
        Formats("e4m3", "e4m3", "bf16"), (given["a"], given["b"], given["d"]), (given["scale_a"], given["scale_b"]),
        shape, blocks=shape.blocks, mapped=mapped,
    )  # fmt: skip
    return made, given["d"], reference(np, **{name: one.astype(np.float64) for name, one in given.items()})["d"]


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(("shape", "mapped"), [pytest.param(*one, id=name) for name, one in SHAPES.items()])
def test_a_variant_is_right_and_silent(shape: Shape, mapped: bool) -> None:
    made, d, expected = prepare(shape, mapped)
    assert codes(made) == []
    assert np.linalg.norm(d.astype(np.float64) - expected) < 2e-3 * np.linalg.norm(expected)


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(
    ("shape", "mapped", "lost", "number", "code"),
    [
        pytest.param(TALL, True, "wgmma.wait_group", 3, "data-race", id="the last wait of a K tile"),
        pytest.param(TALL, True, "wgmma.commit_group", 1, "data-race", id="the last group of the first K tile"),
        pytest.param(TALL, True, "mbarrier.arrive.shared", 0, "hang", id="the release of a stage"),
        pytest.param(TALL, False, "mbarrier.arrive.shared", 0, "hang", id="scales that are stored"),
        pytest.param(STORED, True, "cp.async.bulk.wait_group.read", 0, "data-race", id="a copy that reads boxes"),
        pytest.param(STORED, True, "barrier.arrive.aligned", 0, "hang", id="boxes that have been read"),
        pytest.param(STORED, True, "fence.proxy.async", 0, "missing-proxy-fence", id="the fence before a copy"),
        pytest.param(SMALL, False, "cp.async.mbarrier.arrive", 0, "hang", id="scales that are copied"),
        pytest.param(SMALL, False, "bar.warp.sync", 0, "unordered-collective", id="lanes that read scales"),
    ],
)
def test_what_is_lost_is_found(shape: Shape, mapped: bool, lost: str, number: int, code: str) -> None:
    made, _, _ = prepare(shape, mapped)
    assert code in codes(without(made, lost, number))


@pytest.mark.parametrize("out_size", [2, 4])
def test_what_is_chosen_fits_into_shared_memory(out_size: int) -> None:
    for m, n, k in product((1, 64, 128, 300, 1000, 4096), (64, 2112, 7168, 32768), (128, 2048, 16384)):
        problem = Problem(m, n, k, size=1, out_size=out_size)
        shape = choose(problem)
        static = shape.stages * (16 + 4 * (shape.rows + 32)) + 256
        dynamic = shape.shared(problem.layout(shape))
        assert shape.occupancy * (-(-static // 1024) * 1024 + dynamic + 1024) <= 233_472


@needs_ptxas
@pytest.mark.parametrize(
    "choice", CHOICES[:5], ids=lambda one: f"{one.shape.rows}x{one.shape.columns}, {one.shape.cluster}"
)
def test_the_variants_of_large_products_do_not_spill(choice: Timed) -> None:
    formats = Formats("e4m3", "e4m3", "bf16")
    layout = Layout(True, True, True, formats.element, formats.out_size)
    assert ptxas_reports(specialize(formats, choice.shape, layout, True).ptx) == []
