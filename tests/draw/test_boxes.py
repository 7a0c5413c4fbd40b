"""Pictures of boxes and of im2col agree with TMA copies: shared memory after a copy is what the picture says."""

import re
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab import draw
from ptxlab.cli.group import ptxlab as command
from ptxlab.device.tensor_maps import TensorMap

BYTES = 2048
PTX = """
.version 8.7
.target TARGET
.address_size 64
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 numbers, .param .u64 out)
{
    .shared .align 1024 .b8 box[BYTES];
    .shared .align 8 .b64 done;
    .reg .b32 %r<20>; .reg .b64 %q<4>; .reg .b16 %h<4>; .reg .pred %p<3>;
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 4; mov.u32 %r2, box; add.u32 %r3, %r2, %r1; mov.b32 %r4, 0xa5a5a5a5;
    st.shared.v4.b32 [%r3], {%r4, %r4, %r4, %r4};
    setp.ne.u32 %p1, %r0, 0;
    @!%p1 mbarrier.init.shared.b64 [done], 1;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    ld.param.u64 %q1, [numbers];
    ld.global.s32 %r10, [%q1]; ld.global.s32 %r11, [%q1+4]; ld.global.s32 %r12, [%q1+8]; ld.global.s32 %r13, [%q1+12];
    ld.global.s32 %r14, [%q1+16]; ld.global.b32 %r15, [%q1+32];
    ld.global.u16 %h0, [%q1+20]; ld.global.u16 %h1, [%q1+24]; ld.global.u16 %h2, [%q1+28];
    @%p1 bra wait;
    mbarrier.arrive.expect_tx.shared.b64 _, [done], %r15;
    mov.b64 %q2, map; cvta.param.u64 %q2, %q2;
    cp.async.bulk.tensor.RANKd.shared::cluster.global.MODE.mbarrier::complete_tx::bytes
        [%r2], [%q2, {COORDINATES}], [done]OFFSETS;
wait:
    mbarrier.try_wait.parity.shared.b64 %p2, [done], 0;
    @!%p2 bra wait;
    ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3];
    ld.param.u64 %q3, [out]; mad.wide.u32 %q3, %r0, 16, %q3;
    st.global.v4.b32 [%q3], {%r4, %r5, %r6, %r7};
    ret;
}
""".replace("BYTES", str(BYTES))


def copied(
    map: TensorMap, mode: str, coordinates: list[int], offsets: list[int], bytes: int, device: str = "auto"
) -> np.ndarray:
    """Shared memory after a copy; coordinates and offsets are as in PTX."""
    registers = ", ".join(f"%r{10 + number}" for number in range(len(coordinates)))
    halves = ", ".join(f"%h{number}" for number in range(len(offsets)))
    text = PTX.replace("RANK", str(len(map.sizes))).replace("MODE", mode).replace("COORDINATES", registers)
    text = text.replace("OFFSETS", f", {{{halves}}}" if offsets else "")
    text = text.replace("TARGET", "sm_90" if mode in ("tile", "im2col") else "sm_100a")
    numbers = np.zeros(9, np.int32)
    numbers[: len(coordinates)], numbers[5 : 5 + len(offsets)], numbers[8] = coordinates, offsets, bytes
    out = np.zeros(BYTES, np.uint8)
    device = device if mode in ("tile", "im2col") else "cpu"
    ptxlab.parse(text)["copy"].launch(1, BYTES // 16, [map, numbers, out], device=device)
    return out


def predicted(
    picture: draw.Picture, tensor: np.ndarray, pixels: dict[str, tuple[int, ...]] | None = None
) -> np.ndarray:
    """Shared memory as the picture says; its cells name elements of the tensor, or channels of pixels."""
    memory = np.full(BYTES, 0xA5, np.uint8)
    panel = picture.panels[-1]
    for line, cells in zip(panel.row_names, panel.cells, strict=True):
        for offset, cell in zip(panel.column_names, cells, strict=True):
            if cell is not None:
                start = int(line) + int(offset)
                memory[start : start + 16] = bytes_of(cell.text, tensor, pixels)
    return memory


def bytes_of(text: str, tensor: np.ndarray, pixels: dict[str, tuple[int, ...]] | None) -> np.ndarray:
    """The 16 bytes that a cell names."""
    found = np.zeros(16, np.uint8)
    if text == "zeros":
        return found
    *outer, part = text.rstrip("*").split(",")
    place = pixels[outer[0]] if pixels is not None else tuple(map(int, outer))
    first, _, last = part.partition("-")
    row = np.ascontiguousarray(tensor[place][int(first) : int(last) + 1 if last else None]).view(np.uint8)[:16]
    found[: len(row)] = row
    return np.roll(found, 8) if text.endswith("*") else found


def numbered(*shape: int) -> np.ndarray:
    return np.arange(1, 1 + np.prod(shape), dtype=np.uint16).reshape(shape)


TILES: dict[str, tuple[tuple[int, ...], dict[str, Any], tuple[int, ...]]] = {
    "no swizzle": ((20, 24), {"box": (6, 16)}, (4, 8)),
    "32B": ((20, 24), {"box": (8, 16), "swizzle": "32B"}, (0, 0)),
    "64B, out of bounds": ((20, 40), {"box": (8, 32), "swizzle": "64B"}, (-2, 16)),
    "128B": ((9, 64), {"box": (12, 64), "swizzle": "128B"}, (1, 0)),
    "128B, every other row": ((16, 64), {"box": (8, 48), "swizzle": "128B", "element_strides": (2, 1)}, (1, 8)),
    "three dimensions": ((3, 5, 16), {"box": (2, 4, 16), "swizzle": "32B"}, (1, 2, 0)),
}


@pytest.mark.parametrize("case", TILES)
def test_a_box_is_where_the_picture_says(case: str) -> None:
    shape, how, at = TILES[case]
    tensor = numbered(*shape)
    map = ptxlab.tensor_map(tensor, type="u16", **how)
    expected = predicted(draw.box(map, at), tensor)
    assert np.array_equal(copied(map, "tile", list(reversed(at)), [], map.box_bytes), expected)


@pytest.mark.parametrize("pixels", [0, 9])
def test_interleaved_elements(pixels: int) -> None:
    """Slices of 16 bytes: the innermost dimension of the map counts them."""
    slices = numbered(2, 3, 5, 6, 8)
    how: dict[str, Any] = {"box": (8, 2, 1, 1)}
    if pixels:
        how = {"box": (8,), "pixels": pixels, "lower": (-1, 0), "upper": (0, -1)}
    map = TensorMap(
        array=slices, offset=0, type="u16", sizes=(6, 5, 3, 2), strides=(96, 480, 1440), steps=(1, 1, 1, 1),
        swizzle=None, l2_promotion=None, fill="zeros", interleave="16B", **how,
    )  # fmt: skip
    if pixels:
        picture = draw.im2col(map, (0, 2, 3, 4), (0, 1))
        found = copied(map, "im2col", [4, 3, 2, 0], [1, 0], pixels * 16)
        assert np.array_equal(found, predicted(picture, slices, pixels_of(picture)))
    else:
        found = copied(map, "tile", [1, 3, 2, 1], [], 16 * 16)
        assert np.array_equal(found, predicted(draw.box(map, (1, 2, 3, 1)), slices))


@pytest.mark.parametrize("swizzle", ["96B", "128B_ATOM_32B", "128B_ATOM_64B", "128B_ATOM_32B_FLIP_8B"])
def test_a_swizzle_of_blackwell(swizzle: str) -> None:
    tensor = numbered(16, 48)
    map = ptxlab.tensor_map(tensor, box=(8, 48), swizzle=swizzle, type="u16")
    found = copied(map, "tile", [0, 4], [], map.box_bytes, device="cpu")
    assert np.array_equal(found, predicted(draw.box(map, (4, 0)), tensor))


def test_four_rows_are_gathered() -> None:
    tensor = numbered(20, 64)
    map = ptxlab.tensor_map(tensor, box=(1, 64), swizzle="128B", type="u16")
    picture = draw.box(map, (0, 0), rows=(7, 3, 19, 20))
    found = copied(map, "tile::gather4", [0, 7, 3, 19, 20], [], 512)
    assert np.array_equal(found, predicted(picture, tensor))


def pixels_of(picture: draw.Picture) -> dict[str, tuple[int, ...]]:
    """Where each pixel of a copy is, by its number, as the images say: in the order of the array."""
    found = {}
    for panel in picture.panels[:-1]:
        outer = tuple(map(int, re.findall(r"[ncd] (-?\d+)", panel.title.partition(":")[0])))
        for h, cells in zip(panel.row_names, panel.cells, strict=True):
            for w, cell in zip(panel.column_names, cells, strict=True):
                for number in re.findall(r"\d+", cell.text) if cell is not None else ():
                    found[number] = (*outer, *([int(h[2:])] if h else []), int(w[2:]))
    return found


# Images, their map, and the first pixel, offsets and mode of the copy.
IMAGES: dict[str, tuple[tuple[int, ...], dict[str, Any], tuple[int, ...], tuple[int, ...], str]] = {
    "3x3": ((2, 4, 5, 16), {"lower": (-1, -1), "upper": (-1, -1), "pixels": 24, "swizzle": "32B"},
            (0, -1, -1, 0), (1, 2), "im2col"),
    "every other pixel": ((2, 6, 7, 8), {"lower": (0, 1), "upper": (0, -1), "pixels": 9,
                          "element_strides": (1, 2, 2, 1)}, (0, 2, 3, 0), (0, 0), "im2col"),
    "along a line": ((3, 9, 8), {"lower": (-2,), "upper": (-1,), "pixels": 15}, (1, 4, 0), (2,), "im2col"),
    "with depth": ((2, 2, 3, 3, 8), {"lower": (-1, 0, 0), "upper": (0, 0, -1), "pixels": 14},
                   (0, 0, 1, 1, 0), (1, 0, 1), "im2col"),
    "w": ((2, 3, 6, 64), {"lower": (0, 0), "upper": (0, 0), "pixels": 8, "swizzle": "128B"},
          (0, 1, 2, 0), (3, 1), "im2col::w"),
}  # fmt: skip


@pytest.mark.parametrize("case", IMAGES)
def test_pixels_are_those_of_the_picture(case: str) -> None:
    shape, how, at, offsets, mode = IMAGES[case]
    tensor = numbered(*shape)
    map = ptxlab.im2col_map(tensor, shape[-1], type="u16", **how)
    picture = draw.im2col(map, at, offsets, mode=mode)
    in_ptx = list(reversed(offsets)) if mode == "im2col" else list(offsets)
    rows = how["pixels"] + (offsets[0] if mode == "im2col::w" else 0)
    found = copied(map, mode, list(reversed(at)), in_ptx, rows * shape[-1] * 2)
    assert np.array_equal(found, predicted(picture, tensor, pixels_of(picture)))


def test_the_command_line() -> None:
    shown = CliRunner().invoke(
        command, ["draw", "box", "4x32", "--tensor", "10x60", "--at", "8,32", "--swizzle", "64B"]
    )
    tensor = np.zeros((10, 64), np.float16)[:, :60]
    assert shown.output == f"{draw.box(ptxlab.tensor_map(tensor, (4, 32), swizzle='64B'), (8, 32))}\n"
    words = "draw im2col 2x4x5x16 --pixels 24 --lower=-1,-1 --upper=-1,-1 --offsets 1,0"
    images = ptxlab.im2col_map(np.zeros((2, 4, 5, 16), np.float16), 16, 24, lower=(-1, -1), upper=(-1, -1))
    assert CliRunner().invoke(command, words.split()).output == f"{draw.im2col(images, None, (1, 0))}\n"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("box 8x", "`8x` is not like 8x64"),
        ("box 8x63", "a row of the box has 63 elements of type `.f16`, 126 bytes: it must be a multiple of 16"),
        ("box 8x64 --at 3", "the tensor has 2 dimensions"),
        ("box 8x64 --at 0,3", "a box that starts at byte 6 of a tensor row, not a multiple of 16"),
        ("box 0x64", "at least one element"),
        ("box 8x64 --type f17", "type 'f17': expected one of u8"),
        ("box 8x63 --type e2m1", "is not a number of bytes"),
        ("box 8x64 --swizzle 16B", "swizzle='16B'"),
        ("box 2x64 --rows 1,2,3,4", "by a map with a box of one row"),
        ("im2col 5x6 --pixels 4", "images have 3 to 5 dimensions"),
        ("im2col 1x5x6x8 --pixels 4 --at 0,9,9,0", "pixels that start out of the bounding box"),
        ("im2col 1x5x6x8 --pixels 4 --offsets=-1,0", "there are 2 of 16 bits"),
        ("im2col 1x5x6x8 --pixels 4 --mode im2col::w", "without a swizzle"),
    ],
)
def test_what_can_not_be_drawn_is_reported(words: str, wanted: str) -> None:
    shown = CliRunner().invoke(command, ["draw", *words.split()])
    assert shown.exit_code == 2
    assert wanted in shown.output


def test_maps_for_tiles_and_for_im2col() -> None:
    with pytest.raises(ValueError, match=re.escape("`draw.box` draws it")):
        draw.im2col(ptxlab.tensor_map(np.zeros((4, 8), np.float16), (4, 8)))
    images = ptxlab.im2col_map(np.zeros((2, 4, 5, 16), np.float16), 16, 4, lower=(0, 0), upper=(0, 0))
    with pytest.raises(ValueError, match=re.escape("`draw.im2col` draws it")):
        draw.box(images)
    with pytest.raises(ValueError, match="mode 'tile'"):
        draw.im2col(images, mode="tile")
