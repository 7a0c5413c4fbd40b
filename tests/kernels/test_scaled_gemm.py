"""The product with scales of blocks: right and silent in each of its ways, and not silent where a line is left out."""

from typing import Any

import numpy as np
import pytest

from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.scaled_gemm import arrays, launch, reference
from ptxlab.kernels.wgmma_gemm.shapes import Shape
from ptxlab.measure import Host, Launch
from tests.kernels.left_out import codes, without

TALL = Shape(2, 16, 2, tall=2)
SHAPES = {
    "two warpgroups, two stripes": TALL,
    "two K tiles at a time": Shape(1, 16, 3, fresh=2),
    "parts of k": Shape(1, 32, 2, split=2, fresh=2),
}


def prepare(shape: Shape) -> tuple[Launch, Any, Any]:
    """The launch by one block or cluster, what it writes, and what is right."""
    given = arrays(Host(3), 140, 24, 400)
    made = launch(
        Formats("e4m3", "e4m3", "bf16"), (given["a"], given["b"], given["d"]), (given["scale_a"], given["scale_b"]),
        shape, blocks=shape.blocks,
    )  # fmt: skip
    return made, given["d"], reference(np, **{name: one.astype(np.float64) for name, one in given.items()})["d"]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_variant_is_right_and_silent(shape: Shape) -> None:
    made, d, expected = prepare(shape)
    assert codes(made) == []
    assert np.linalg.norm(d.astype(np.float64) - expected) < 2e-3 * np.linalg.norm(expected)


@pytest.mark.parametrize(
    ("lost", "number", "code"),
    [
        pytest.param("wgmma.wait_group", 1, "data-race", id="the last wait of a K tile"),
        pytest.param("wgmma.commit_group", 1, "data-race", id="the last group of a K tile"),
        pytest.param("mbarrier.arrive.shared", 0, "hang", id="the release of a stage"),
    ],
)
def test_what_is_lost_is_found(lost: str, number: int, code: str) -> None:
    made, _, _ = prepare(TALL)
    assert code in codes(without(made, lost, number))
