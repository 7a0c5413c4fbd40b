"""Copies by tensor maps of other kinds than tiles: im2col, interleaved and packed elements, gathered rows.

Of what an H200 has (im2col, interleave, tf32), the oracles here are what one did; `python -m tests.gpu.tensor_maps`
asks it. The rest is modelled after the manual.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.device.tensor_maps import TensorMap
from tests.emulate import tensor_boxes
from tests.emulate.tensor_boxes import TILE, Array, load, placed, some, store

run = partial(tensor_boxes.run, target="sm_100a")


def pixels(map: TensorMap, start: Sequence[int], offsets: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Where the pixels of im2col are, in the order of the map without channels."""
    position = list(start)
    for _ in range(map.pixels):
        moved = [at + offset for at, offset in zip(position, [*offsets, 0], strict=True)]
        yield tuple(moved)
        for number in range(len(map.lower)):
            position[number] += map.steps[number + 1]
            if position[number] < map.sizes[number + 1] + map.upper[number]:
                break
            position[number] = map.lower[number]
        else:
            position[-1] += map.steps[-1]


def rows_at(array: Array, positions: Iterator[tuple[int, ...]], first: int, count: int) -> Array:
    """Rows of an array, innermost dimension of the positions first; zeros where they are out of bounds."""
    found = []
    for position in positions:
        row = np.zeros(count, array.dtype)
        if all(0 <= at < size for at, size in zip(reversed(position), array.shape[:-1], strict=True)):
            for number in range(count):
                if 0 <= first + number < array.shape[-1]:
                    row[number] = array[(*reversed(position), first + number)]
        found.append(row)
    return np.array(found)


IMAGES = [
    # shape, channels, pixels, lower, upper, strides, coordinates, offsets: the last two innermost first
    ((3, 9, 16), 16, 20, (-1,), (-1,), (2, 1, 1), (0, 5, 0), (1,)),
    ((4, 6, 7, 32), 16, 30, (-1, -1), (-1, -1), (1, 1, 1, 1), (16, 2, -1, 1), (2, 1)),
    ((4, 6, 7, 32), 32, 25, (0, 0), (-2, -2), (1, 2, 2, 1), (0, 4, 2, 0), (0, 2)),
    ((2, 3, 4, 5, 16), 16, 40, (-1, 0, 0), (0, 0, 1), (1, 1, 1, 2, 1), (0, 2, 1, -1, 0), (3, 0, 1)),
]


@pytest.mark.parametrize(("shape", "channels", "count", "lower", "upper", "steps", "start", "offsets"), IMAGES)
@pytest.mark.parametrize("swizzle", [None, "64B"])
def test_im2col(
    shape: Any, channels: int, count: int, lower: Any, upper: Any, steps: Any, start: Any, offsets: Any,
    swizzle: str | None,
) -> None:  # fmt: skip
    images = some(shape)
    map = ptxlab.im2col_map(images, channels, count, lower=lower, upper=upper, element_strides=steps, swizzle=swizzle)
    tile, found = run(map, load(len(shape), "im2col", len(shape) - 2), start, offsets)
    assert found == []
    wanted = rows_at(images, pixels(map, start[1:], offsets), start[0], channels)
    np.testing.assert_array_equal(tile, placed(wanted, swizzle))


def test_stores_by_im2col() -> None:
    images = some((3, 5, 6, 16))
    before = images.copy()
    map = ptxlab.im2col_map(images, 16, 10, lower=(1, 0), upper=(0, -1))
    source = some((TILE,))
    _, found = run(map, store(4, "im2col_no_offs"), (0, 3, 2, 1), source=source)
    assert found == []
    wanted = before.copy()
    for number, (w, h, n) in enumerate(pixels(map, (3, 2, 1), (0, 0))):
        if n < 3:
            wanted[n, h, w] = source[16 * number : 16 * number + 16]
    np.testing.assert_array_equal(images, wanted)


def test_reductions_by_im2col() -> None:
    images = some((3, 6, 8), np.uint32)
    before = images.copy()
    map = ptxlab.im2col_map(images, 8, 4, lower=(0,), upper=(0,))
    source = some((TILE,))
    _, found = run(map, store(3, "im2col_no_offs", ".add"), (0, 4, 1), source=source)
    assert found == []
    added = source[: 4 * 32].view(np.uint32).reshape(4, 8)
    for number, (w, n) in enumerate([(4, 1), (5, 1), (0, 2), (1, 2)]):
        before[n, w] += added[number]
    np.testing.assert_array_equal(images, before)


def test_interleaved_tiles() -> None:
    # N, C/8, H, W slices of 16 bytes: the innermost dimension of the map counts slices.
    slices = some((2, 3, 5, 6, 16))
    map = TensorMap(
        array=slices, offset=0, type="u16", sizes=(6, 5, 3, 2), strides=(96, 480, 1440), box=(8, 2, 2, 1),
        steps=(1, 1, 1, 1), swizzle=None, l2_promotion=None, fill="zeros", interleave="16B",
    )  # fmt: skip
    tile, found = run(map, load(4, "tile"), (1, 3, 2, 1), rows=16)
    assert found == []
    wanted = np.zeros((2, 8, 16), np.uint8)
    wanted[:, :5] = slices[1, 2, 3:5, 1:]
    np.testing.assert_array_equal(tile, placed(wanted.reshape(16, 16)))


def test_interleaved_images() -> None:
    slices = some((2, 3, 5, 6, 32))
    map = TensorMap(
        array=slices, offset=0, type="u16", sizes=(6, 5, 3, 2), strides=(192, 960, 2880), box=(16,), steps=(1, 1, 1, 1),
        swizzle="32B", l2_promotion=None, fill="zeros", interleave="32B", pixels=9, lower=(-1, 0), upper=(0, -1),
    )  # fmt: skip
    tile, found = run(map, load(4, "im2col", 2), (4, 3, 2, 0), (1, 0))
    assert found == []
    positions = [(5, 3, 0), (6, 3, 0), *((w, 0, 1) for w in range(7))]
    wanted = np.array([slices[n, 2, h, w] if w < 6 else np.zeros(32, np.uint8) for w, h, n in positions])
    np.testing.assert_array_equal(tile, placed(wanted, "32B"))


def test_gathered_and_scattered_rows() -> None:
    array = some((20, 64))
    map = ptxlab.tensor_map(array, (1, 32), swizzle="32B")
    tile, found = run(map, load(2, "tile::gather4"), (16, 3, 19, 0, 20), rows=4)
    assert found == []
    wanted = np.array([*array[[3, 19, 0], 16:48], np.zeros(32, np.uint8)])
    np.testing.assert_array_equal(tile, placed(wanted, "32B"))
    before, source = array.copy(), some((TILE,))
    _, found = run(ptxlab.tensor_map(array, (1, 32)), store(2, "tile::scatter4"), (16, 7, 1, 25, 2), source=source)
    assert found == []
    before[7, 16:48], before[1, 16:48], before[2, 16:48] = source[:32], source[32:64], source[96:128]
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize(("type", "bits", "unit"), [("b4x16", 4, 16), ("b4x16_p64", 4, 8), ("b6x16_p32", 6, 12)])
def test_packed_elements(type: str, bits: int, unit: int) -> None:
    array = some((6, 256 * bits // 8))
    map = ptxlab.tensor_map(array, (4, 128), type=type, swizzle="128B")
    assert (map.sizes, map.box_bytes) == ((256, 6), 4 * 16 * bits)
    tile, found = run(map, load(2, "tile"), (128, 3))
    assert found == []
    wanted = np.full((4, 128 * bits // 8 // unit, 16), 0xEE, np.uint8)
    wanted[:, :, :unit] = 0
    wanted[:3, :, :unit] = array[3:, 16 * bits :].reshape(3, -1, unit)
    np.testing.assert_array_equal(tile, placed(wanted.reshape(4, -1), "128B"))


def test_elements_of_6_bits_are_packed_by_stores() -> None:
    array = np.zeros((2, 96), np.uint8)
    source = some((TILE,))
    _, found = run(ptxlab.tensor_map(array, (2, 128), type="b6x16_p32"), store(2, "tile"), (0, 0), source=source)
    assert found == []
    elements = source[:256].reshape(2, 128) & 63
    bits = (elements[:, :, None] >> np.arange(6) & 1).reshape(2, -1)
    np.testing.assert_array_equal(array, np.packbits(bits, axis=1, bitorder="little"))


@pytest.mark.parametrize(
    ("swizzle", "bits", "shift"), [("128B_ATOM_32B", 3, 5), ("128B_ATOM_64B", 1, 6), ("96B", 1, 4)]
)
def test_swizzles_of_blackwell(swizzle: str, bits: int, shift: int) -> None:
    array = some((32, 128))
    width = 96 if swizzle == "96B" else 128
    tile, found = run(ptxlab.tensor_map(array, (16, width), swizzle=swizzle), load(2, "tile"), (0, 4))
    assert found == []
    wanted = placed(array[4:20, :width], swizzle, moved=lambda offset: offset ^ (offset >> 7 & bits) << shift)
    np.testing.assert_array_equal(tile, wanted)


def test_a_swizzle_that_flips_8_bytes() -> None:
    array = some((16, 128))
    map = ptxlab.tensor_map(array, (8, 128), swizzle="128B_ATOM_32B_FLIP_8B")
    tile, found = run(map, load(2, "tile"), (0, 0))
    assert found == []
    wanted = placed(array[:8], "128B", moved=lambda offset: offset ^ (offset >> 7 & 3) << 5)
    halves = wanted[:1024].reshape(8, 8, 2, 8)
    halves[1::2] = halves[1::2, :, ::-1].copy()
    np.testing.assert_array_equal(tile, wanted)
    (problem,) = run(map, store(2, "tile"), (0, 0))[1]
    assert problem.code == "bad-tensor-map"


def test_pixels_along_w() -> None:
    images = some((4, 2, 7, 32))
    map = ptxlab.im2col_map(images, 32, 12, lower=(0, 0), upper=(0, -1), swizzle="32B")
    tile, found = run(map, load(4, "im2col::w", 2), (0, 3, 1, 1), (2, 1), rows=14)
    assert found == []
    along = [(w, n) for n in range(1, 4) for w in range(3 if n == 1 else 0, 6)][:12]
    positions = [*along, (along[-1][0] + 1, along[-1][1]), (along[-1][0] + 2, along[-1][1])]
    wanted = rows_at(images, iter([(w + 1, 1, n) for w, n in positions]), 0, 32)
    np.testing.assert_array_equal(tile, placed(wanted, "32B"))


def test_pixels_along_w_with_halos_in_between() -> None:
    images = some((1, 2, 140, 32))
    map = ptxlab.im2col_map(images, 32, 1, lower=(0, 0), upper=(0, -2), swizzle="32B")
    tile, found = run(map, load(4, "im2col::w::128", 2), (0, 4, 1, 0), (2, 0), rows=136)
    assert found == []
    positions = [(4 + 32 * group + at, 1, 0) for group in range(4) for at in range(34)]
    np.testing.assert_array_equal(tile, placed(rows_at(images, iter(positions), 0, 32), "32B"))


def test_halos_that_there_are_not() -> None:
    map = ptxlab.im2col_map(some((1, 40, 32)), 32, 1, lower=(0,), upper=(0,), swizzle="32B")
    (found,) = run(map, load(3, "im2col::w::128", 2), (0, 0, 0), (32, 0))[1]
    assert found.message == "a copy of pixels along W with halo 32: it is at most 31"
    (found,) = run(map, load(3, "im2col::w::128", 2), (0, 0, 0), (31, 32))[1]
    assert found.message == "a copy of pixels along W with offset 32: it is at most 31"


def test_elements_of_tf32_are_rounded() -> None:
    array = np.array([[0x3F801000, 0x3F803000, 0x3F801001, 0xFFC00001, 0x7F800000, 0x80001001, 0, 1]], np.uint32)
    map = ptxlab.tensor_map(array.view(np.float32), (1, 8), type="tf32")
    tile, found = run(map, load(2, "tile"), (0, 0))
    assert found == []
    wanted = [0x3F800000, 0x3F804000, 0x3F802000, 0x7FFFE000, 0x7F800000, 0x80002000, 0, 0]
    assert tile[:32].view(np.uint32).tolist() == wanted


def test_stores_write_whole_pieces_of_16_bytes() -> None:
    memory = np.zeros((3, 64), np.uint8)
    map = ptxlab.tensor_map(memory[:, :20], (2, 32))
    _, found = run(map, store(2, "tile"), (0, 1), source=np.full(TILE, 7, np.uint8))
    assert found == []
    assert (memory[1:] == 7).sum(axis=1).tolist() == [32, 32]


@pytest.mark.parametrize(
    ("work", "start", "code", "message"),
    [
        (load(3, "tile"), (0, 0, 0), "bad-tensor-map", "a tensor map for im2col, for a copy of a tile"),
        (load(3, "im2col", 1), (0, 3, 0), "out-of-bounds", "pixels that start out of the bounding box of their tensor "
         "map: at 3 in dimension 1"),
        (load(3, "im2col::w", 2), (0, 0, 0), "bad-tensor-map", "`.im2col::w` with a tensor map without a swizzle, or "
         "with one that flips 8 bytes"),
        (store(3, "im2col_no_offs"), (0, 0, 0), "bad-tensor-map", "a store by a tensor map whose bounding box is "
         "larger than the image in dimension 1"),
    ],
)  # fmt: skip
def test_images_that_do_not_fit_their_copy(work: str, start: Any, code: str, message: str) -> None:
    map = ptxlab.im2col_map(some((2, 4, 16)), 16, 4, lower=(-1,), upper=(-1,))
    (found,) = run(map, work, start)[1]
    assert (found.code, found.message) == (code, message)


def test_tiles_that_do_not_fit_their_copy() -> None:
    map = ptxlab.tensor_map(some((8, 64)), (2, 16))
    (found,) = run(map, load(2, "tile::gather4"), (0, 0, 1, 2, 3))[1]
    assert found.message == "a tensor map with a box of 2 rows, for a copy of 4 single rows"
    (found,) = run(ptxlab.tensor_map(some((4, 4, 16)), (1, 1, 16)), load(3, "im2col", 1), (0, 0, 0))[1]
    assert found.message == "a tensor map for tiles, for a copy by im2col"
    (found,) = run(ptxlab.tensor_map(some((4, 128)), (1, 128), type="b4x16_p64"), load(2, "tile"), (64, 0))[1]
    assert found.message == "a box that starts at element 64 of a tensor row, not a multiple of 128"
