"""Pictures of descriptors agree with `wgmma`: shared memory is filled and registers are read by pictures alone."""

import re

import numpy as np
import pytest

import ptxlab
from ptxlab import draw
from ptxlab.isa.descriptor import Descriptor

WGMMA = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16"
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
    {" ".join(f"mov.f32 %d{i}, 0f00000000;" for i in range(8))}
    wgmma.fence.sync.aligned;
    {WGMMA} {{{", ".join(f"%d{i}" for i in range(8))}}}, %q3, %q4, 1, 1, 1, TRANS_A, TRANS_B;
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
# Descriptors of A, 64x16, and of B transposed, 16x16, and their majors.
CASES = {
    "no swizzle": (Descriptor(A, 128, 256), "k", Descriptor(B, 128, 256), "k"),
    "128B": (Descriptor(A, 16, 1024, "128B"), "k", Descriptor(B, 16, 1024, "128B"), "k"),
    "64B and 32B": (Descriptor(A, 16, 512, "64B"), "k", Descriptor(B, 16, 256, "32B"), "k"),
    "MN-major": (Descriptor(A, 2048, 1024, "128B"), "mn", Descriptor(B, 512, 256, "32B"), "mn"),
}


def put(image: np.ndarray, described: Descriptor, matrix: np.ndarray, major: str) -> None:
    """Write a matrix to shared memory, where the picture says."""
    (panel,) = draw.descriptor(described, *matrix.shape, "f16", major).panels
    for row, cells in enumerate(panel.cells):
        for column, cell in enumerate(cells):
            assert cell is not None
            begin = int(cell.text, 16)
            part = matrix[row, column * 8 : column * 8 + 8] if major == "k" else matrix[row * 8 : row * 8 + 8, column]
            image[begin : begin + 16] = np.ascontiguousarray(part).view(np.uint8)


@pytest.mark.parametrize("case", CASES)
def test_a_product_by_the_pictures_is_the_product(case: str) -> None:
    a_descriptor, a_major, b_descriptor, b_major = CASES[case]
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-8, 9, shape).astype(np.float16) for shape in ((64, 16), (16, 16)))
    image, out = np.zeros(BYTES, np.uint8), np.zeros((128, 8), np.float32)
    put(image, a_descriptor, a, a_major)
    put(image, b_descriptor, b.T.copy(), b_major)
    text = PTX.replace("TRANS_A", str(int(a_major == "mn"))).replace("TRANS_B", str(int(b_major == "mn")))
    args = [image, a_descriptor.encode(), b_descriptor.encode(), out]
    ptxlab.parse(text)["multiply"].launch(1, 128, args)
    (panel,) = draw.fragments(WGMMA, operand="d").panels
    d = np.zeros((64, 16), np.float32)
    for row, cells in enumerate(panel.cells):
        for column, cell in enumerate(cells):
            assert cell is not None
            lane, number = map(int, re.fullmatch(r"T(\d+)\.d(\d+)", cell.text).groups())  # type: ignore[union-attr]
            for warp in range(4):
                d[warp * 16 + row, column] = out[warp * 32 + lane, number]
    assert (d == a.astype(np.float64) @ b.astype(np.float64)).all()


@pytest.mark.parametrize(
    ("extent", "options", "wanted"),
    [
        ((8, 60), {}, "16 bytes are 8 elements"),
        ((60, 8), {"major": "mn"}, "16 bytes are 8 elements"),
        ((8, 64), {"type": "b1"}, "whole bytes"),
        ((8, 64), {"major": "row"}, "there are k and mn"),
    ],
)
def test_what_can_not_be_drawn_is_reported(extent: tuple[int, int], options: dict[str, str], wanted: str) -> None:
    with pytest.raises(ValueError, match=wanted):
        draw.descriptor(0, *extent, **options)
