"""What `tcgen05.ld` and `.st` move: the layouts, against those that CUTLASS writes down for one and two repetitions."""

import pytest

from ptxlab.isa.units.tensor_memory import moved

# (thread, bit) to bit, as `copy_traits_sm100.hpp` has it: extents and strides, of the thread, then of its bits.
CUTLASS = {
    ("32x32b", 1): (((32,), (32,)), ((32,), (1,))),
    ("32x32b", 2): (((32,), (64,)), ((64,), (1,))),
    ("16x64b", 1): (((2, 2, 8), (512, 32, 64)), ((32,), (1,))),
    ("16x64b", 2): (((2, 2, 8), (1024, 32, 128)), ((32, 2), (1, 64))),
    ("16x128b", 1): (((4, 8), (32, 128)), ((32, 2), (1, 1024))),
    ("16x128b", 2): (((4, 8), (32, 256)), ((32, 2, 2), (1, 2048, 128))),
    ("16x256b", 1): (((4, 8), (64, 256)), ((64, 2), (1, 2048))),
    ("16x32bx2", 1): (((16, 2), (64, 32)), ((32,), (1,))),
    ("16x32bx2", 2): (((16, 2), (128, 64)), ((64,), (1,))),
}


def offset(number: int, extents: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """What a CuTe layout makes of a number."""
    total = 0
    for extent, stride in zip(extents, strides, strict=True):
        number, index = divmod(number, extent)
        total += index * stride
    return total


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("shape", "repetitions"), CUTLASS)
def test_moved_as_cutlass_does(shape: str, repetitions: int, packed: bool) -> None:
    layout = moved(shape, repetitions, packed=packed)
    ((extents, strides), (bits, bit_strides)) = CUTLASS[shape, repetitions]
    width = layout.columns * layout.bits  # bits of a lane that are moved
    for row, column, (register, lane, bit) in layout.elements():
        at = offset(lane, extents, strides) + offset(register * 32 + bit, bits, bit_strides)
        assert divmod(at, width) == (row, column * layout.bits)


@pytest.mark.parametrize("repetitions", [1, 2, 4, 8, 16, 32, 64, 128])
@pytest.mark.parametrize("shape", ["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"])
def test_every_cell_is_moved_once(shape: str, repetitions: int) -> None:
    positions = moved(shape, repetitions).positions
    assert len(set(positions)) == len(positions)
    assert {position >> 5 & 31 for position in positions} == set(range(32))
