"""Tensor maps of all kinds: im2col, interleaved and packed elements, gathered rows; and maps that kernels make.

Of what an H200 has (im2col, interleave, tf32), the oracles here are what one did; `python -m tests.gpu.tensor_maps`
asks it. The rest is modelled after the manual.
"""

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.report import Diagnostic

TILE = 16384
Array = np.ndarray[Any, Any]


def kernel(work: str, target: str = "sm_100a") -> str:
    """Shared memory from `source`, then `work`, then shared memory to `out`; `%c…` and `%h…` from `where`."""
    return f""".version 8.8
.target {target}
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u64 source, .param .u64 where,
    .param .u32 bytes)
{{
    .reg .pred %p<4>;
    .reg .b16 %h<3>;
    .reg .b32 %r<8>, %c<5>;
    .reg .b64 %rd<8>;
    .shared .align 1024 .b8 tile[{TILE}];
    .shared .align 8 .b64 full;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd2, [source];
    ld.param.u64 %rd3, [where];
    ld.param.u32 %r1, [bytes];
    mov.b64 %rd4, map;
    cvta.param.u64 %rd4, %rd4;
    {" ".join(f"ld.global.b32 %c{at}, [%rd3+{4 * at}];" for at in range(5))}
    {" ".join(f"ld.global.b16 %h{at}, [%rd3+{20 + 4 * at}];" for at in range(3))}
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, tile;
    setp.ne.u32 %p1, %r2, 0;
    @!%p1 mbarrier.init.shared::cta.b64 [full], 1;
    mov.u32 %r4, %r2;
fill:
    mad.wide.u32 %rd5, %r4, 4, %rd2;
    ld.global.u32 %r5, [%rd5];
    mad.lo.u32 %r6, %r4, 4, %r3;
    st.shared.u32 [%r6], %r5;
    add.u32 %r4, %r4, 128;
    setp.lt.u32 %p2, %r4, {TILE // 4};
    @%p2 bra fill;
    fence.proxy.async;
    bar.sync 0;
{work}
    mov.u32 %r4, %r2;
copy:
    mad.lo.u32 %r6, %r4, 4, %r3;
    ld.shared.u32 %r5, [%r6];
    mad.wide.u32 %rd5, %r4, 4, %rd1;
    st.global.u32 [%rd5], %r5;
    add.u32 %r4, %r4, 128;
    setp.lt.u32 %p2, %r4, {TILE // 4};
    @%p2 bra copy;
    ret;
}}
"""


def load(rank: int, mode: str, offsets: int = 0) -> str:
    count = 5 if "gather" in mode else rank
    rest = f", {{{', '.join(f'%h{at}' for at in range(offsets))}}}" if offsets else ""
    return f"""    @!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], %r1;
    @!%p1 cp.async.bulk.tensor.{rank}d.shared::cta.global.{mode}.mbarrier::complete_tx::bytes
        [tile], [%rd4, {{{", ".join(f"%c{at}" for at in range(count))}}}], [full]{rest};
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [full], 0;
    @!%p3 bra wait;
"""


def store(rank: int, mode: str, reduction: str = "") -> str:
    count = 5 if "scatter" in mode else rank
    opcode = "cp.reduce.async" if reduction else "cp.async"
    return f"""    @!%p1 {opcode}.bulk.tensor.{rank}d.global.shared::cta{reduction}.{mode}.bulk_group
        [%rd4, {{{", ".join(f"%c{at}" for at in range(count))}}}], [tile];
    @!%p1 cp.async.bulk.commit_group;
    @!%p1 cp.async.bulk.wait_group 0;
    bar.sync 0;
"""


def run(
    map: TensorMap, work: str, coordinates: Sequence[int], offsets: Sequence[int] = (), *, rows: int = 0,
    source: Array | None = None,
) -> tuple[Array, list[Diagnostic]]:  # fmt: skip
    """What is in shared memory afterwards, and what is wrong; `rows` if the map does not say how many there are."""
    out = np.zeros(TILE, np.uint8)
    given = np.full(TILE, 0xEE, np.uint8) if source is None else source
    where = np.array([*coordinates, *[0] * (5 - len(coordinates)), *offsets, *[0] * (3 - len(offsets))], np.int32)
    bytes = rows * map.box[0] * map.bits // 8 if rows else map.box_bytes
    result = ptxlab.parse(kernel(work), name="k.ptx")["k"].launch(
        1, 128, [map, out, given, where, bytes], device="cpu", timeout=30, on_error="collect"
    )
    return out, result.diagnostics


def pixels(map: TensorMap, start: Sequence[int], offsets: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Where the pixels of im2col are, in the order of the map without channels."""
    position = list(start)
    for _ in range(map.pixels):
        moved = [place + offset for place, offset in zip(position, [*offsets, 0], strict=True)]
        yield tuple(moved)
        for number in range(len(map.lower)):
            position[number] += map.steps[number + 1]
            if position[number] < map.sizes[number + 1] + map.upper[number]:
                break
            position[number] = map.lower[number]
        else:
            position[-1] += map.steps[-1]


def rows_at(array: Array, places: Iterator[tuple[int, ...]], first: int, count: int) -> Array:
    """Rows of an array, innermost dimension of the places first; zeros where they are out of bounds."""
    found = []
    for place in places:
        row = np.zeros(count, array.dtype)
        if all(0 <= at < size for at, size in zip(reversed(place), array.shape[:-1], strict=True)):
            for number in range(count):
                if 0 <= first + number < array.shape[-1]:
                    row[number] = array[(*reversed(place), first + number)]
        found.append(row)
    return np.array(found)


def laid_out(rows: Array, swizzle: str | None = None, *, place: Callable[[int], int] | None = None) -> Array:
    """Shared memory with rows in it, each of them where the swizzle puts it."""
    tile = np.full(TILE, 0xEE, np.uint8)
    data = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
    span = int(swizzle[: swizzle.index("B")]) if swizzle else data.shape[1]
    bits = {None: 0, "32B": 1, "64B": 3, "128B": 7}.get(swizzle, 0)
    for number, row in enumerate(data):
        for at in range(0, len(row), 16):
            offset = number * span + at
            offset = place(offset) if place else offset ^ (offset >> 7 & bits) << 4
            tile[offset : offset + 16] = row[at : at + 16]
    return tile


def some(shape: Sequence[int], type: Any = np.uint8) -> Array:
    count = int(np.prod(shape)) * np.dtype(type).itemsize
    return np.random.default_rng(7).integers(1, 120, count, dtype=np.uint8).view(type).reshape(shape)


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
    np.testing.assert_array_equal(tile, laid_out(wanted, swizzle))


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
    np.testing.assert_array_equal(tile, laid_out(wanted.reshape(16, 16)))


def test_interleaved_images() -> None:
    slices = some((2, 3, 5, 6, 32))
    map = TensorMap(
        array=slices, offset=0, type="u16", sizes=(6, 5, 3, 2), strides=(192, 960, 2880), box=(16,), steps=(1, 1, 1, 1),
        swizzle="32B", l2_promotion=None, fill="zeros", interleave="32B", pixels=9, lower=(-1, 0), upper=(0, -1),
    )  # fmt: skip
    tile, found = run(map, load(4, "im2col", 2), (4, 3, 2, 0), (1, 0))
    assert found == []
    places = [(5, 3, 0), (6, 3, 0), *((w, 0, 1) for w in range(7))]
    wanted = np.array([slices[n, 2, h, w] if w < 6 else np.zeros(32, np.uint8) for w, h, n in places])
    np.testing.assert_array_equal(tile, laid_out(wanted, "32B"))


def test_gathered_and_scattered_rows() -> None:
    array = some((20, 64))
    map = ptxlab.tensor_map(array, (1, 32), swizzle="32B")
    tile, found = run(map, load(2, "tile::gather4"), (16, 3, 19, 0, 20), rows=4)
    assert found == []
    wanted = np.array([*array[[3, 19, 0], 16:48], np.zeros(32, np.uint8)])
    np.testing.assert_array_equal(tile, laid_out(wanted, "32B"))
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
    np.testing.assert_array_equal(tile, laid_out(wanted.reshape(4, -1), "128B"))


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
    wanted = laid_out(array[4:20, :width], swizzle, place=lambda offset: offset ^ (offset >> 7 & bits) << shift)
    np.testing.assert_array_equal(tile, wanted)


def test_a_swizzle_that_flips_8_bytes() -> None:
    array = some((16, 128))
    map = ptxlab.tensor_map(array, (8, 128), swizzle="128B_ATOM_32B_FLIP_8B")
    tile, found = run(map, load(2, "tile"), (0, 0))
    assert found == []
    wanted = laid_out(array[:8], "128B", place=lambda offset: offset ^ (offset >> 7 & 3) << 5)
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
    places = [*along, (along[-1][0] + 1, along[-1][1]), (along[-1][0] + 2, along[-1][1])]
    wanted = rows_at(images, iter([(w + 1, 1, n) for w, n in places]), 0, 32)
    np.testing.assert_array_equal(tile, laid_out(wanted, "32B"))


def test_pixels_along_w_with_halos_in_between() -> None:
    images = some((1, 2, 140, 32))
    map = ptxlab.im2col_map(images, 32, 1, lower=(0, 0), upper=(0, -2), swizzle="32B")
    tile, found = run(map, load(4, "im2col::w::128", 2), (0, 4, 1, 0), (2, 0), rows=136)
    assert found == []
    places = [(4 + 32 * group + at, 1, 0) for group in range(4) for at in range(34)]
    np.testing.assert_array_equal(tile, laid_out(rows_at(images, iter(places), 0, 32), "32B"))


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


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"channels": 0}, "channels=0: there are 1 to 256"),
        ({"pixels": 1025}, "pixels=1025: there are 1 to 1024"),
        ({"lower": (-129, 0)}, "lower[0] is -129: there are -128 to 127"),
        ({"lower": (6, 0)}, "no pixel is between lower[0]=6 and upper[0]=0: the image has 6"),
        ({"lower": (0,)}, "lower has 1 dimensions, the array has 2"),
        ({"channels": 24}, "a row of the box has 24 bytes: it must be a multiple of 16"),
        ({"interleave": "8B"}, "interleave='8B': there are None, '16B', '32B'"),
        ({"type": "f8"}, "type='f8': there are 'u8', 'u16', 'u32', 's32', 'u64', 's64', 'f16', 'f32', 'f32.ftz', "
         "'f64', 'bf16', 'tf32', 'tf32.ftz', 'b4x16', 'b4x16_p64', 'b6x16_p32'"),
    ],
)  # fmt: skip
def test_images_that_there_are_not(how: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"channels": 16, "pixels": 8, "lower": (0, 0), "upper": (0, 0)} | how
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared
        ptxlab.im2col_map(some((2, 6, 6, 32)), **given)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("array", "how", "message"),
    [
        (some((4, 100)), {"box": (1, 128), "type": "b4x16_p64"}, "a row of the array has 200 elements of type "
         "`.b4x16_p64`: it must be a multiple of 128"),
        (some((4, 96)), {"box": (1, 64), "type": "b6x16_p32"}, "a row of the box has 64 elements of type `.b6x16_p32`: "
         "it must be 128"),
        (some((4, 64)), {"box": (1, 16), "interleave": "16B"}, "interleave='16B' needs 3 dimensions or more, the array "
         "has 2"),
    ],
)  # fmt: skip
def test_packed_elements_that_there_are_not(array: Array, how: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is compared
        ptxlab.tensor_map(array, **how)
    assert str(raised.value) == message


FIELDS = """
    .reg .b64 %rd<5>; .reg .b32 %r<3>;
    ld.param.u64 %rd1, [map];
    ld.param.u64 %rd2, [tensor];
    mov.u64 %rd3, 512;
    mov.u64 %rd4, 0x123450000;
    mov.u32 %r1, 64;
    mov.u32 %r2, 7;
    tensormap.replace.tile.global_address.SPACE.b1024.b64 [%rd1], %rd2;
    tensormap.replace.tile.rank.SPACE.b1024.b32 [%rd1], 2;
    tensormap.replace.tile.global_stride.SPACE.b1024.b64 [%rd1], 0, %rd3;
    tensormap.replace.tile.global_stride.SPACE.b1024.b64 [%rd1], 1, %rd4;
    tensormap.replace.tile.global_dim.SPACE.b1024.b32 [%rd1], 0, 256;
    tensormap.replace.tile.global_dim.SPACE.b1024.b32 [%rd1], 1, 1000;
    tensormap.replace.tile.global_dim.SPACE.b1024.b32 [%rd1], 2, 3;
    tensormap.replace.tile.box_dim.SPACE.b1024.b32 [%rd1], 0, %r1;
    tensormap.replace.tile.box_dim.SPACE.b1024.b32 [%rd1], 1, 16;
    tensormap.replace.tile.box_dim.SPACE.b1024.b32 [%rd1], 2, 1;
    tensormap.replace.tile.element_stride.SPACE.b1024.b32 [%rd1], 0, 1;
    tensormap.replace.tile.element_stride.SPACE.b1024.b32 [%rd1], 1, %r2;
    tensormap.replace.tile.element_stride.SPACE.b1024.b32 [%rd1], 2, 1;
    tensormap.replace.tile.elemtype.SPACE.b1024.b32 [%rd1], 10;
    tensormap.replace.tile.interleave_layout.SPACE.b1024.b32 [%rd1], 0;
    tensormap.replace.tile.swizzle_mode.SPACE.b1024.b32 [%rd1], 3;
    tensormap.replace.tile.swizzle_atomicity.SPACE.b1024.b32 [%rd1], 1;
    tensormap.replace.tile.fill_mode.SPACE.b1024.b32 [%rd1], 1;
"""


@pytest.mark.parametrize("space", ["global", ""])
def test_a_map_made_by_a_kernel_is_that_of_the_driver(space: str) -> None:
    text = ".version 8.8\n.target sm_100a\n.address_size 64\n.entry k(.param .u64 map, .param .u64 tensor) {"
    made = np.zeros(128, np.uint8)
    fields = FIELDS.replace(".SPACE", f".{space}" if space else "")
    ptxlab.parse(f"{text}{fields} ret; }}")["k"].launch(1, 1, [made, 0x7000_0000], device="cpu")
    wanted = TensorMap(
        array=None, offset=0, type="bf16", sizes=(256, 1000, 3), strides=(512, 0x123450000), box=(64, 16, 1),
        steps=(1, 7, 1), swizzle="128B_ATOM_32B", l2_promotion=None, fill="nan",
    ).encode(0x7000_0000)  # fmt: skip
    # The driver notes the bytes of a box and the alignment of its swizzle as well, which copies do not read.
    assert struct.unpack("<16I", made[:64]) == struct.unpack_from("<16I", wanted)
    assert not made[64:].any()


def test_maps_are_encoded_as_a_driver_does() -> None:
    evidence = json.loads((Path(__file__).parents[2] / "evidence" / "tensor_maps.json").read_text(encoding="utf-8"))
    assert evidence["maps"]["different"] == evidence["replacements"]["different"] == 0
    assert evidence["copies"]["different"] == 0
    for fields, address, encoded in evidence["encodings"]:
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        assert TensorMap(array=None, offset=0, **given).encode(address).hex() == encoded
