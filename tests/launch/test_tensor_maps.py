"""Tensor maps that are made, and those that the driver would not make: each limit from both sides."""

import re

import numpy as np
import pytest

import ptxlab
from ptxlab.isa.units.tensor_map import ELEMENT_TYPES

BYTES = np.zeros((8, 1024), np.uint8)


def test_rows_of_padded_elements_are_of_128() -> None:
    packed = np.zeros((8, 96), np.uint8)
    assert ELEMENT_TYPES["b6x16_p32"].bits == 6
    made = ptxlab.tensor_map(packed, box=(8, 128), type="b6x16_p32")
    assert made.box == (128, 8)
    with pytest.raises(ValueError, match=r"a row of the box has 64 elements of type `\.b6x16_p32`: it must be 128"):
        ptxlab.tensor_map(packed, box=(8, 64), type="b6x16_p32")


@pytest.mark.parametrize(("columns", "interleave", "is_right"), [
    (24, None, True), (20, None, False), (32, "32B", True), (24, "32B", False),
])  # fmt: skip
def test_strides_are_multiples_of_16_bytes_or_interleaved_of_32(
    columns: int, interleave: str | None, is_right: bool
) -> None:
    array = np.zeros((2, 4, columns), np.float16)
    if is_right:
        ptxlab.tensor_map(array, box=(1, 4, 16), interleave=interleave)
        return
    unit = 32 if interleave else 16
    with pytest.raises(ValueError, match=f"it must be a multiple of {unit} below"):
        ptxlab.tensor_map(array, box=(1, 4, 16), interleave=interleave)


def test_a_dimension_may_have_one_element_and_not_none() -> None:
    assert ptxlab.tensor_map(BYTES[:1], box=(1, 16)).sizes == (1024, 1)
    with pytest.raises(ValueError, match=re.escape("dimension 0 of the array has 0 elements")):
        ptxlab.tensor_map(BYTES[:0], box=(1, 16))


def test_both_corners_of_a_bounding_box_are_in_the_map() -> None:
    pixels = np.zeros((2, 8, 8, 16), np.float16)
    corners = [((0, 0), (0, 0)), ((0, 0), (-1, 0)), ((0, 0), (0, -1)), ((-1, 0), (0, 0)), ((0, -1), (0, 0))]
    made = {bytes(ptxlab.im2col_map(pixels, 16, 8, lower=low, upper=high).encode(0)) for low, high in corners}
    assert len(made) == len(corners)
