"""Tensor maps on a GPU and on the emulator: some of what `python -m tests.gpu.tensor_maps` compares."""

import pytest

from ptxlab import gpu
from tests.gpu.tensor_maps import compare_copies, compare_encodings, compare_replacements


@pytest.mark.gpu
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
def test_a_driver_encodes_the_same_maps() -> None:
    assert compare_encodings(200, 1, "cuda")[0] == 0
    assert compare_replacements("cuda")[1] == 0


@pytest.mark.gpu
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
def test_a_gpu_copies_the_same_elements() -> None:
    found = compare_copies(40, 1, "cuda")
    assert (sum(found.values()), found["different"]) == (40, 0)
