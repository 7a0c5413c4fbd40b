"""Pictures of descriptors agree with `wgmma`: shared memory is filled and registers are read by pictures alone."""

import re
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab import draw, gpu
from ptxlab.isa.units.descriptor import Descriptor
from tests.draw import filling

WGMMA = {
    "f16": "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16",
    "tf32": "wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32",
    "e4m3": "wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3",
}
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")]),
]
DEPTHS = {"f16": 16, "tf32": 8, "e4m3": 32}
BYTES = 16384
PTX = f"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry multiply(.param .u64 image, .param .u64 a, .param .u64 b, .param .u64 out)
{{
    .shared .align 1024 .b8 room[{BYTES}];
    .reg .pred %p; .reg .b32 %r<12>; .reg .b64 %q<6>; .reg .f32 %d<8>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %q1, [image];
    mov.u32 %r2, room;
    shl.b32 %r3, %r1, 4;
again:
    cvt.u64.u32 %q2, %r3;
    add.u64 %q2, %q2, %q1;
    ld.global.v4.b32 {{%r4, %r5, %r6, %r7}}, [%q2];
    add.u32 %r8, %r2, %r3;
    st.shared.v4.b32 [%r8], {{%r4, %r5, %r6, %r7}};
    add.u32 %r3, %r3, 2048;
    setp.lt.u32 %p, %r3, {BYTES};
    @%p bra again;
    fence.proxy.async;
    bar.sync 0;
    ld.param.u64 %q3, [a];
    ld.param.u64 %q4, [b];
    shr.u32 %r9, %r2, 4;  // a GPU keeps the first bytes of shared memory for itself
    cvt.u64.u32 %q5, %r9;
    add.u64 %q3, %q3, %q5;
    add.u64 %q4, %q4, %q5;
    {" ".join(f"mov.f32 %d{i}, 0f00000000;" for i in range(8))}
    wgmma.fence.sync.aligned;
    INSTRUCTION {{{", ".join(f"%d{i}" for i in range(8))}}}, %q3, %q4, 1, 1, 1TRANSPOSED;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ld.param.u64 %q5, [out];
    mad.wide.u32 %q5, %r1, 32, %q5;
    {" ".join(f"st.global.f32 [%q5+{4 * i}], %d{i};" for i in range(8))}
    ret;
}}
"""
A = 1024
B = 9216
# Descriptors of A, 64 rows, and of B transposed, 16 rows, and their majors.
CASES = {
    "no swizzle": (Descriptor(A, 128, 256), "k", Descriptor(B, 128, 256), "k"),
    "128B": (Descriptor(A, 16, 1024, "128B"), "k", Descriptor(B, 16, 1024, "128B"), "k"),
    "64B and 32B": (Descriptor(A, 16, 512, "64B"), "k", Descriptor(B, 16, 256, "32B"), "k"),
    "MN-major": (Descriptor(A, 2048, 1024, "128B"), "mn", Descriptor(B, 512, 256, "32B"), "mn"),
}


def put(image: np.ndarray, described: Descriptor, matrix: np.ndarray, type: str, major: str) -> None:
    """Write a matrix to shared memory, where the picture says."""
    rows, columns = matrix.shape
    filling.put(image, draw.descriptor(described, rows, columns, type, major).panels[0], matrix, type, major)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("case", "type"), [*((case, "f16") for case in CASES), ("128B", "tf32"), ("64B and 32B", "e4m3")]
)
def test_a_product_by_the_pictures_is_the_product(case: str, type: str, device: str) -> None:
    a_descriptor, a_major, b_descriptor, b_major = CASES[case]
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((64, DEPTHS[type]), (DEPTHS[type], 16)))
    image, out = np.zeros(BYTES, np.uint8), np.zeros((128, 8), np.float32)
    put(image, a_descriptor, a, type, a_major)
    put(image, b_descriptor, b.T.copy(), type, b_major)
    turned = f", {int(a_major == 'mn')}, {int(b_major == 'mn')}" if type == "f16" else ""
    text = PTX.replace("INSTRUCTION", WGMMA[type]).replace("TRANSPOSED", turned)
    args = [image, a_descriptor.encode(), b_descriptor.encode(), out]
    ptxlab.parse(text)["multiply"].launch(1, 128, args, device=device)
    (panel,) = draw.fragments(WGMMA[type], operand="d").panels
    d = np.zeros((64, 16), np.float32)
    for row, cells in enumerate(panel.cells):
        for column, cell in enumerate(cells):
            assert cell is not None
            lane, number = map(int, re.fullmatch(r"T(\d+)\.d(\d+)", cell.text).groups())  # type: ignore[union-attr]
            for warp in range(4):
                d[warp * 16 + row, column] = out[warp * 32 + lane, number]
    assert (d == a.astype(np.float64) @ b.astype(np.float64)).all()


@pytest.mark.parametrize("case", CASES)
def test_both_panels_say_the_same(case: str) -> None:
    described, major, *_ = CASES[case]
    matrix, memory = draw.descriptor(described, 64, 16, "f16", major).panels
    found = {}
    for name, cells in zip(memory.row_names, memory.cells, strict=True):
        for offset, cell in zip(memory.column_names, cells, strict=True):
            if cell is not None:
                found[tuple(map(int, cell.text.split(",")))] = int(name, 16) + int(offset), cell.color
    along = (1, 8) if major == "k" else (8, 1)
    said = {}
    for row, cells in enumerate(matrix.cells):
        for column, cell in enumerate(cells):
            assert cell is not None
            said[row * along[0], column * along[1]] = int(cell.text, 16), cell.color
    assert found == said


@pytest.mark.parametrize("case", CASES)
def test_lbo_and_sbo_are_as_far_as_is_marked(case: str) -> None:
    described, major, *_ = CASES[case]
    marked = set()
    for panel in draw.descriptor(described, 128, 32, "f16", major).panels:
        is_memory = panel.title.startswith("shared")
        firsts = [row[0].text for row in panel.cells if row[0] is not None]
        starts = [int(name, 16) for name in (panel.row_names if is_memory else firsts)]
        for mark in panel.row_marks:
            marked.add(mark.text)
            assert starts[mark.last] - starts[mark.first] == int(mark.text.split()[1])
        for mark in panel.column_marks:
            marked.add(mark.text)
            first, last = (int(panel.cells[0][at].text, 16) for at in (mark.first, mark.last))  # type: ignore[union-attr]
            assert last - first == int(mark.text.split()[1])
    assert f"SBO {described.stride}" in marked
    assert (f"LBO {described.leading}" in marked) == (case in ("no swizzle", "MN-major"))


def test_32_byte_atoms_have_core_matrices_of_four_lines() -> None:
    bits = Descriptor(A, 1024, 512, "128B/32B").encode_for_tcgen05()
    panel = draw.descriptor(bits, 32, 8, "tf32", "mn").panels[0]
    assert panel.column_marks == [draw.Mark("SBO 512", 0, 4)]
    assert panel.rules == (0, 4)


def test_bit_46_says_whose_descriptor_it_is() -> None:
    bits = Descriptor(A, 16, 1024, "64B").encode_for_tcgen05()
    picture = draw.descriptor(bits, 8, 16)
    assert picture.title == f"tcgen05 descriptor {bits:#018x}: start 0x400, leading 16, stride 1024 bytes, 64B swizzle"
    assert draw.descriptor(bits, 8, 16, target="sm_90a").title.startswith("wgmma")


def test_e2m1_is_packed_or_has_gaps() -> None:
    bits = Descriptor(A, 16, 1024, "128B").encode_for_tcgen05()
    packed = draw.descriptor(bits, 8, 256, "e2m1").panels[0]
    assert "32 in 16 bytes" in packed.title
    assert packed.column_names[-1] == "224-255"
    apart = draw.descriptor(bits, 8, 128, "e2m1", kind="mxf8f6f4").panels[0]
    assert "16 in 16 bytes" in apart.title
    assert apart.column_names[-1] == "112-127"


@pytest.mark.parametrize(
    ("extent", "options", "wanted"),
    [
        ((8, 60), {}, "16 bytes are 8 elements"),
        ((60, 8), {"major": "mn"}, "16 bytes are 8 elements"),
        ((8, 64), {"type": "f64"}, "type 'f64': `wgmma` has f16"),
        ((8, 64), {"type": "e2m1"}, "it is one of `tcgen05`, of target sm_100a"),
        ((8, 64), {"type": "b1", "target": "sm_100a"}, "`tcgen05.mma` does not have it"),
        ((8, 64), {"type": "f16", "target": "sm_100a", "kind": "i8"}, "type 'f16' of kind 'i8': kind f16 of"),
        ((8, 64), {"target": "sm_80"}, "expected one of sm_90a and sm_100a"),
        ((8, 64), {"major": "row"}, "expected one of k and mn"),
    ],
)
def test_what_can_not_be_drawn_is_reported(extent: tuple[int, int], options: dict[str, Any], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        draw.descriptor(0, *extent, **options)
