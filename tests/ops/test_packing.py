"""Copies of operands that TMA can't read: which there are, what is in them, and that they are steps of a call."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.ops import gated_products, products, scaled_products
from ptxlab.ops.calls import Call
from ptxlab.ops.matrices import look
from ptxlab.ops.packing import Packing

FP8 = ml_dtypes.float8_e4m3fn


def whole(*shape: int, type: Any = np.float16) -> Any:
    return (np.arange(np.prod(shape)) % 13 - 6).reshape(shape).astype(type)


@pytest.mark.parametrize(
    "array",
    [
        whole(20, 9),
        whole(9, 300).T,
        whole(40, 18)[::2, ::2],
        whole(20, 9)[::-1],
        whole(3, 5, 16).transpose(1, 0, 2),
        whole(2, 2, 3, 5, 9).transpose(3, 2, 1, 0, 4),
        whole(20, 9, type=np.float32),
        whole(20, 33, type=FP8).T,
    ],
    ids=lambda array: f"{array.dtype} {array.shape} {array.strides}",
)
def test_a_copy_has_the_same_elements_in_rows_that_tma_reads(array: Any) -> None:
    packing = Packing(1)
    found = packing.copied(look(array, "a", ["f16", "f32", "e4m3"]), 0)
    for step in packing.steps:
        step.launch.run(device="cpu")
    columns = array.shape[-1]
    assert found.is_aligned
    assert np.array_equal(found.array[:, :columns], array.reshape(-1, columns))
    assert packing.scratch[0] >= found.array.nbytes
    assert packing.numbers == [1]


def changing(call: Call) -> list[list[tuple[int, int]]]:
    return [list(step.changing) for step in call.steps]


def test_copies_are_the_first_steps_of_a_call_and_the_product_reads_them() -> None:
    def prepare(a: Any, b: Any) -> Call:
        return products._prepare((a, b), (None,), (None, False, False))

    assert changing(prepare(whole(3, 8), whole(8, 16))) == [[(0, 0), (1, 1), (2, 2)]]
    odd = prepare(whole(3, 9), whole(9, 16))
    assert changing(odd) == [[(0, 0), (1, 3)], [(0, 3), (1, 1), (2, 2)]]
    assert [step.uses_workspace for step in odd.steps] == [False, True]
    both = prepare(whole(2, 4, 9).transpose(1, 0, 2), whole(9, 5))
    assert changing(both) == [[(0, 0), (1, 3)], [(0, 1), (1, 4)], [(0, 3), (1, 4), (2, 2)]]
    assert len(both.scratch) == 2


def test_8_bit_floats_and_weights_of_different_layouts_are_copied_too() -> None:
    one = np.ones(1, np.float32)
    scaled = scaled_products.prepare((whole(4, 16, type=FP8), whole(16, 8, type=FP8), one, one), (None,), "bf16")
    assert changing(scaled) == [[(0, 1), (1, 5)], [(0, 0), (1, 5), (12, 2), (13, 3), (2, 4)]]
    gated = gated_products.prepare((whole(4, 16), whole(16, 8), whole(8, 16).T), (None,), "silu")
    assert changing(gated) == [[(0, 2), (1, 4)], [(0, 0), (1, 1), (2, 4), (3, 3)]]
