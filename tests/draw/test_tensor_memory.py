"""Pictures of tensor memory and of descriptors agree with `tcgen05.mma`: memory is filled and read by them alone."""

import re

import numpy as np
import pytest

from ptxlab import draw
from ptxlab.isa.units.descriptor import Descriptor
from ptxlab.isa.units.instruction_descriptor import PAIR, STATIONARY, InstructionDescriptor
from tests.draw import filling

BYTES = 32768
B = 16384
OPERANDS = "[%r13], %rd10, %rd11, %r10"


def product(
    instruction: str, said: InstructionDescriptor, a: Descriptor, b: Descriptor, *, lane: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """D by the pictures alone, and what it should be."""
    rng = np.random.default_rng(5)
    left = rng.integers(-3, 4, (said.rows, said.depth)).astype(np.float64)
    right = rng.integers(-3, 4, (said.columns, said.depth)).astype(np.float64)
    blocks = 2 if said.form == PAIR else 1
    picture = draw.tensor_memory(instruction, said.encode(), d=lane << 16)
    shared, cells = np.zeros((blocks, BYTES), np.uint8), np.zeros((blocks, 128, 96), np.uint32)
    for described, matrix, type, turned in (
        (a, left, said.atype, said.transpose_a),
        (b, right, said.btype, said.transpose_b),
    ):
        major = "mn" if turned else "k"
        parts = np.split(matrix, blocks)
        rows, columns = parts[0].shape
        panel = draw.descriptor(described, rows, columns, type, major, target="sm_100a", kind=said.kind).panels[0]
        for block in range(blocks):
            filling.put(shared[block], panel, parts[block], type, major)
    addresses, operands = {"d": lane << 16}, f"{OPERANDS}, %p2"
    if said.is_scaled:
        left, right = scaled(picture, said, left, right, cells)
        names = overviews_columns(picture)
        addresses |= {"scale_a": names["SFA"], "scale_b": names["SFB"]}
        operands = f"{OPERANDS}, [%r11], [%r12], %p2"
    done = filling.multiply(f"{instruction} {operands}", shared, cells, a.encode_for_tcgen05(), b.encode_for_tcgen05(),
                            said.encode(), target="sm_103a" if said.long else "sm_100a", **addresses)  # fmt: skip
    d = np.full((said.rows, said.columns), np.nan, np.float32)
    for block, panel in enumerate(filling.overviews(picture.panels)):
        filling.take(panel, done[block].view(np.float32), d)
    return d, left @ right.T


def overviews_columns(picture: draw.Picture) -> dict[str, int]:
    """The first column of each operand."""
    panel = filling.overviews(picture.panels)[0]
    names = [cell.text.split()[0] for cell in panel.cells[0] if cell is not None]
    return {name: filling.spans(columns)[0].start for name, columns in zip(names, panel.column_names, strict=True)}


def scaled(
    picture: draw.Picture, said: InstructionDescriptor, left: np.ndarray, right: np.ndarray, cells: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fill tensor memory with scale factors, and multiply A and B by them."""
    rng = np.random.default_rng(6)
    count = int(re.search(r"scale_vec::(\d)X", picture.title)[1])  # type: ignore[index]
    count = count * 3 // 2 if said.long else count
    depth = said.depth // count
    powers = [rng.integers(-1, 2, (len(matrix), count)) for matrix in (left, right)]
    bits = [power + 127 if said.scale == "ue8m0" else power + 7 << 3 for power in powers]
    for panel in picture.panels:
        if panel.title.startswith("SF"):
            of_b, block = panel.title.startswith("SFB"), int("of CTA 1" in panel.title)
            for there in cells if of_b else cells[block : block + 1]:
                filling.scale(panel, there, bits[of_b], depth)
    return tuple(
        matrix * np.repeat(2.0**power, depth, axis=1) for matrix, power in zip((left, right), powers, strict=True)
    )  # type: ignore[return-value]


NONE = Descriptor(0, 128, 256), Descriptor(B, 128, 256)
SWIZZLED = Descriptor(0, 16, 1024, "128B"), Descriptor(B, 16, 512, "64B")
ALONG_MN = Descriptor(0, 2048, 1024, "128B"), Descriptor(B, 512, 256, "32B")
COARSE = Descriptor(0, 1024, 512, "128B/32B"), Descriptor(B, 1024, 512, "128B/32B")
F16, ONE, TWO = "kind::f16", "tcgen05.mma.cta_group::1", "tcgen05.mma.cta_group::2"
MMA = f"{ONE}.{F16}"
CASES = {
    "no swizzle": (f"{ONE}.{F16}", InstructionDescriptor("f16", 128, 32, "f16", "bf16"), NONE),
    "64 rows, 128B and 64B": (f"{ONE}.{F16}", InstructionDescriptor("f16", 64, 16, "f16", "f16"), SWIZZLED),
    "MN-major": (
        f"{ONE}.{F16}",
        InstructionDescriptor("f16", 128, 32, "f16", "f16", transpose_a=True, transpose_b=True),
        ALONG_MN,
    ),
    "MN-major without swizzle": (
        f"{ONE}.{F16}",
        InstructionDescriptor("f16", 64, 16, "bf16", "f16", transpose_a=True),
        (Descriptor(0, 1024, 128), NONE[1]),
    ),
    "tf32": (f"{ONE}.kind::tf32", InstructionDescriptor("tf32", 64, 16, "tf32", "tf32"), SWIZZLED),
    "tf32, MN-major": (
        f"{ONE}.kind::tf32",
        InstructionDescriptor("tf32", 64, 32, "tf32", "tf32", transpose_a=True, transpose_b=True),
        COARSE,
    ),
    "gaps between fp4": (f"{ONE}.kind::f8f6f4", InstructionDescriptor("f8f6f4", 64, 16, "e4m3", "e2m1"), SWIZZLED),
    "rows by 32": (
        "tcgen05.mma.ws.cta_group::1.kind::f16",
        InstructionDescriptor("f16", 32, 64, "f16", "f16", form=STATIONARY),
        NONE,
    ),
    "packed fp4": (
        f"{ONE}.kind::mxf4.block_scale.scale_vec::2X",
        InstructionDescriptor("mxf4", 128, 16, "e2m1", "e2m1", a_id=2),
        SWIZZLED,
    ),
    "nvfp4": (
        f"{ONE}.kind::mxf4nvf4.block_scale.scale_vec::4X",
        InstructionDescriptor("mxf4nvf4", 128, 40, "e2m1", "e2m1", scale="ue4m3"),
        SWIZZLED,
    ),
    "nvfp4 with a K of 96": (
        f"{ONE}.kind::mxf4nvf4.block_scale.scale_vec::4X",
        InstructionDescriptor("mxf4nvf4", 128, 40, "e2m1", "e2m1", scale="ue4m3", long=True, a_id=2),
        SWIZZLED,
    ),
    "fp8 with scale factors": (
        f"{ONE}.kind::mxf8f6f4.block_scale.scale_vec::1X",
        InstructionDescriptor("mxf8f6f4", 128, 16, "e4m3", "e2m1", a_id=3, b_id=1),
        SWIZZLED,
    ),
    "pair of 256 rows": (f"{TWO}.{F16}", InstructionDescriptor("f16", 256, 32, "f16", "f16", form=PAIR), SWIZZLED),
    "pair of 128 rows with scale factors": (
        f"{TWO}.kind::mxf8f6f4.block_scale.scale_vec::1X",
        InstructionDescriptor("mxf8f6f4", 128, 64, "e4m3", "e4m3", form=PAIR),
        SWIZZLED,
    ),
}


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("case", CASES)
def test_a_product_by_the_pictures_is_the_product(case: str) -> None:
    instruction, said, descriptors = CASES[case]
    d, expected = product(instruction, said, *descriptors)
    assert np.array_equal(d, expected)


def test_64_rows_may_start_at_lane_16() -> None:
    d, expected = product(f"{ONE}.{F16}", InstructionDescriptor("f16", 64, 16, "f16", "f16"), *SWIZZLED, lane=16)
    assert np.array_equal(d, expected)


def test_a_in_tensor_memory() -> None:
    said = InstructionDescriptor("f16", 64, 16, "f16", "f16")
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-3, 4, (rows, 16)).astype(np.float16) for rows in (64, 16))
    picture = draw.tensor_memory(MMA, said.encode(), a=24)
    (panel,) = picture.panels
    shared, cells = np.zeros((1, BYTES), np.uint8), np.zeros((1, 128, 96), np.uint32)
    filling.put(shared[0], draw.descriptor(SWIZZLED[1], 16, 16, target="sm_100a").panels[0], b, "f16", "k")
    for name, row in zip(panel.row_names, panel.cells, strict=True):
        for columns, cell in zip(panel.column_names, row, strict=True):
            if cell is not None and cell.text.startswith("A "):
                (lanes,), (there,) = filling.spans(name.partition("lanes")[2]), filling.spans(columns)
                rows, along = filling.spans(cell.text[2:])
                words = np.ascontiguousarray(a[rows.start : rows.stop, along.start : along.stop]).view(np.uint32)
                cells[0, lanes.start : lanes.stop, there.start : there.stop] = words
    done = filling.multiply(f"{MMA} [%r13], [%r14], %rd11, %r10, %p2", shared, cells, 0,
                            SWIZZLED[1].encode_for_tcgen05(), said.encode(), a_cells=24)  # fmt: skip
    d = np.full((64, 16), np.nan, np.float32)
    filling.take(panel, done[0].view(np.float32), d)
    assert np.array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.parametrize(
    ("kind", "rows"), [("f16", 128), ("f16", 64), ("tf32", 128), ("f8f6f4", 64)], ids=lambda value: str(value)
)
def test_a_sparse_product_by_the_pictures_is_the_product(kind: str, rows: int) -> None:
    """Metadata are written where the picture says: four bits for each chunk, of which half is stored."""
    type = {"f16": "f16", "tf32": "tf32", "f8f6f4": "e4m3"}[kind]
    said = InstructionDescriptor(kind, rows, 16, type, type, selector=0)
    rng = np.random.default_rng(8)
    chunk = 2 if kind == "tf32" else 4
    chunks = said.depth // chunk
    stored = rng.integers(-3, 4, (rows, said.depth // 2)).astype(np.float32)
    b = rng.integers(-3, 4, (16, said.depth)).astype(np.float32)
    choices = [(0,), (1,)] if kind == "tf32" else [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    chosen = rng.integers(0, len(choices), (rows, chunks))
    a, metadata = np.zeros((rows, said.depth), np.float32), np.zeros((rows, chunks), np.uint32)
    for row, at in np.ndindex(rows, chunks):
        kept = choices[chosen[row, at]]
        for number, place in enumerate(kept):
            a[row, at * chunk + place] = stored[row, at * len(kept) + number]
        metadata[row, at] = (0b0100, 0b1110)[kept[0]] if kind == "tf32" else kept[0] | kept[1] << 2
    instruction = f"tcgen05.mma.sp.cta_group::1.kind::{kind}"
    picture = draw.tensor_memory(instruction, said.encode())
    shared, cells = np.zeros((1, BYTES), np.uint8), np.zeros((1, 128, 96), np.uint32)
    for described, matrix in ((SWIZZLED[0], stored), (SWIZZLED[1], b)):
        panel = draw.descriptor(described, len(matrix), matrix.shape[1], type, target="sm_100a", kind=kind).panels[0]
        filling.put(shared[0], panel, matrix, type, "k")
    filling.choose(picture.panels[1], cells[0], metadata, chunk)
    there = overviews_columns(picture)["E"]
    done = filling.multiply(f"{instruction} [%r13], %rd10, %rd11, [%r16], %r10, %p2", shared, cells,
                            *(one.encode_for_tcgen05() for one in SWIZZLED), said.encode(), metadata=there)  # fmt: skip
    d = np.full((rows, 16), np.nan, np.float32)
    filling.take(picture.panels[0], done[0].view(np.float32), d)
    assert np.array_equal(d, a @ b.T)


@pytest.mark.parametrize(
    ("instruction", "shape", "addresses", "wanted"),
    [
        ("add.u32", "128x64", {}, "`add.u32` is not an MMA in tensor memory"),
        ("", "128x64", {}, "`` is not an MMA in tensor memory"),
        ("tcgen05.mma", "128x64", {}, "is not an MMA in tensor memory with all its modifiers"),
        (MMA, "128", {}, "`128` is neither rows and columns"),
        (MMA, "100x64", {}, "a block alone multiplies 64 or 128 rows"),
        (MMA, "128x60", {}, "columns come in eights"),
        (MMA, 0x8100080, {}, "this kind does not have the type of D"),
        (MMA, 1 << 32, {}, "is not an instruction descriptor"),
        (MMA, "128x64", {"d": 480}, "D reaches beyond the 512 columns"),
        (MMA, "128x64", {"a": 60}, "D has columns 0 to 63, and A from 60 on"),
    ],
)
def test_what_can_not_be_drawn_is_reported(
    instruction: str, shape: str | int, addresses: dict[str, int], wanted: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(wanted)):
        draw.tensor_memory(instruction, shape, **addresses)
