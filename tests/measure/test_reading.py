"""The kernel that only reads: all pieces are asked for and waited for, also where there are fewer than stages."""

import numpy as np
import pytest

from ptxlab.measure import Launch
from ptxlab.measure.reading import SHARED, read


@pytest.mark.parametrize("bytes", [700_016, 16])
def test_it_is_silent(bytes: int) -> None:
    source = np.zeros(bytes, np.uint8)
    assert Launch(read, 3, 32, [source, bytes], SHARED).run(device="cpu").diagnostics == []
