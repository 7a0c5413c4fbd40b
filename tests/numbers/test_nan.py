"""What becomes of a NaN's payload; the patterns are those an H200 returns."""

import pytest

from ptxlab.numbers import BF16, F16, F32, F64, Format
from ptxlab.numbers.nan import converted_nan


@pytest.mark.parametrize(
    ("source", "destination", "bits", "result"),
    [
        (F64, F32, 0xFFF8_0000_0000_0005, 0xFFC0_0000),
        (F64, F32, 0x7FF0_0000_0000_0001, 0x7FC0_0000),
        (F64, F16, 0xFFFF_FFFF_FFFF_FFFF, 0xFFFF),
        (F64, BF16, 0x7FF8_0000_0000_0005, 0x7FC0),
        (F32, F64, 0x7F92_158C, 0x7FFA_42B1_8000_0000),
        (F16, F64, 0xFC01, 0xFFF8_0400_0000_0000),
        (F16, F32, 0xFC01, 0x7FFF_FFFF),
        (F32, F16, 0xFFC0_0005, 0x7FFF),
        (F32, BF16, 0xFFC0_0005, 0x7FFF),
        (BF16, F32, 0xFF81, 0xFF81_0000),
    ],
)
def test_converted_nans(source: Format, destination: Format, bits: int, result: int) -> None:
    assert converted_nan(source, destination, bits) == result
