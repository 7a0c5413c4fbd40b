"""Naive kernels in PTX as algorithms: they compute the same, or are refused on their line."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np
import pytest

import ptxlab
from ptxlab.report import PtxError
from ptxlab.schedule import from_cuda, from_ptx, schedule
from ptxlab.toolchain.tools import can_find

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
PRODUCT = (
    HEAD
    + """.visible .entry product(.param .u64 A, .param .u64 B, .param .u64 C, .param .f32 alpha,
    .param .u32 M, .param .u32 N, .param .u32 K) {
    .reg .u32 %r<9>; .reg .s32 %i; .reg .pred %p<4>; .reg .f32 %f<5>; .reg .u64 %rd<9>;
    ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u64 %rd3, [C]; ld.param.f32 %f4, [alpha];
    ld.param.u32 %r6, [M]; ld.param.u32 %r7, [N]; ld.param.u32 %r8, [K];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    mov.u32 %r1, %ctaid.y; mov.u32 %r2, %ntid.y; mov.u32 %r3, %tid.y;
    mad.lo.u32 %r5, %r1, %r2, %r3;
    setp.ge.u32 %p1, %r4, %r7; setp.ge.u32 %p2, %r5, %r6; or.pred %p1, %p1, %p2;
    @%p1 bra end;
    mov.f32 %f1, 0.0; mov.s32 %i, 0;
    mul.lo.u32 %r1, %r5, %r8; mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd1, %rd4;
again:
    ld.global.f32 %f2, [%rd4];
    mad.lo.u32 %r2, %i, %r7, %r4; mul.wide.u32 %rd5, %r2, 4; add.u64 %rd5, %rd2, %rd5;
    ld.global.f32 %f3, [%rd5];
    fma.rn.f32 %f1, %f2, %f3, %f1;
    add.u64 %rd4, %rd4, 4;
    add.s32 %i, %i, 1;
    setp.lt.s32 %p3, %i, %r8;
    @%p3 bra again;
    mul.f32 %f1, %f1, %f4;
    mad.lo.u32 %r1, %r5, %r7, %r4; mul.wide.u32 %rd6, %r1, 4; add.u64 %rd6, %rd3, %rd6;
    st.global.f32 [%rd6], %f1;
end:
    ret;
}
"""
)


def test_a_product_is_recognized_and_scheduled():
    found = from_ptx(PRODUCT)
    assert found.text.splitlines()[1:] == [
        "    for r5, r4 in grid(M, N):",
        "        f1_of_i = sum(A[r5, i] * B[i, r4] for i in range(K))",
        "        C[r5, r4] = (f1_of_i * alpha)",
    ]
    chance = np.random.default_rng(0)
    a, b = chance.standard_normal((9, 7), np.float32), chance.standard_normal((7, 11), np.float32)
    c, d = np.zeros((9, 11), np.float32), np.zeros((9, 11), np.float32)
    ptxlab.parse(PRODUCT)["product"].launch((3, 3), (4, 4), [a, b, c, 1.5, 9, 11, 7])
    s = schedule(found).tile(r5=4, r4=4).blocks().threads("r5", "r4").tile(i=4).stage("A", "B", in_="shared")
    s.launch(a, b, d, 1.5)
    assert np.allclose(c, d, atol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("fma.rn.f32 %f1, %f2, %f3, %f1;", "fma.rn.f32 %f1, %f2, %f1, %f3;", "`%f1` is not a sum"),
        ("add.s32 %i, %i, 1;", "add.s32 %i, %i, 2;", "a counter that grows by one"),
        ("ld.global.f32 %f2, [%rd4];", "mul.f32 %f2, %f3, %f3;", "`%f3` is from the iteration before"),
        ("ld.global.f32 %f2, [%rd4];", "mul.f32 %f2, %f1, %f1;", "`%f1` is read while it is added up"),
        ("mul.f32 %f1, %f1, %f4;", "mul.f32 %f1, %f2, %f4;", "`%f2` depends on a loop"),
        ("mul.f32 %f1, %f1, %f4;", "sin.approx.f32 %f1, %f1;", "`sin.approx.f32` is not part of what is recognized"),
        ("add.u64 %rd4, %rd4, 4;", "st.global.f32 [%rd4], %f2; add.u64 %rd4, %rd4, 4;", "a store in a loop"),
        ("st.global.f32 [%rd6], %f1;", "@%p2 st.global.f32 [%rd6], %f1;", "a store that some threads skip"),
        ("mul.f32 %f1, %f1, %f4;", "add.sat.f32 %f1, %f1, %f4;", "`add.sat.f32` is not part of what is recognized"),
        ("fma.rn.f32 %f1, %f2, %f3, %f1;", "fma.rn.sat.f32 %f1, %f2, %f3, %f1;", "`fma.rn.sat.f32` is not part of"),
        ("mul.lo.u32 %r1, %r5, %r8;", "mul.hi.u32 %r1, %r5, %r8;", "`mul.hi.u32` is not part of what is recognized"),
        ("mul.lo.u32 %r1, %r5, %r8;", "shl.b32 %r1, %r5, %r8;", "a shift by a number that is not known"),
        ("setp.ge.u32 %p1, %r4, %r7;", "setp.lt.u32 %p1, %r4, %r7;", "threads leave where `r4` is not beyond a limit"),
        ("setp.ge.u32 %p1, %r4, %r7;", "setp.ge.u32 %p1, %r3, %r7;", "threads leave by `%tid.y`"),
        ("mul.f32 %f1, %f1, %f4;", "@%p2 bra after; neg.f32 %f1, %f1; after:", "not around one loop"),
    ],
)
def test_what_is_not_recognized_is_refused_on_its_line(old, new, message):
    assert old in PRODUCT
    text = PRODUCT.replace(old, new)
    with pytest.raises(PtxError) as found:
        from_ptx(text)
    assert message in str(found.value)
    assert "kernel.ptx:" in str(found.value)
    assert "src/ptxlab" not in str(found.value)


ELEMENTS = (
    HEAD
    + """.visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n) {
    .reg .u32 %r<3>; .reg .pred %q; .reg .f32 %f; .reg .u64 %rd<6>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %q, %r2, %r1;
    @%q bra DONE;
    mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd1, %rd3; add.u64 %rd5, %rd2, %rd3;
    ld.global.f32 %f, [%rd4]; add.f32 %f, %f, %f; st.global.f32 [%rd5], %f;
DONE:
    ret;
}
"""
)


def test_one_block_and_the_name_of_a_file(tmp_path):
    assert from_ptx(ELEMENTS).text.splitlines()[1:] == ["    for r2 in range(n):", "        y[r2] = (x[r2] + x[r2])"]
    file = tmp_path / "mine.ptx"
    file.write_text(ELEMENTS.replace("setp.ge", "setp.lt"))
    with pytest.raises(PtxError) as found:
        from_ptx(file)
    assert "mine.ptx:9:" in str(found.value)
    assert "= help: `setp.ge`" in str(found.value)


def test_the_size_of_blocks_may_be_a_number():
    text = ELEMENTS.replace("mov.u32 %r2, %tid.x;", "mad.lo.u32 %r2, %ctaid.x, 64, %tid.x;")
    assert from_ptx(text).text.splitlines()[1] == "    for r2 in range(n):"


ROWS = """__global__ void means(const float* in, float* out, int m, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < m) {
        float sum = 0.0f;
        for (int j = 0; j < n; j++) sum += in[i * n + j];
        out[i] = sum / n;
    }
}
"""


@pytest.mark.skipif(not can_find("nvrtc"), reason="NVRTC is not installed")
def test_a_kernel_in_cuda():
    found = from_cuda(ROWS)
    assert found.text.splitlines()[0] == "def means(in_: f32['m', 'n'], out: f32['m']):"
    x, y = np.random.default_rng(0).standard_normal((9, 7), np.float32), np.zeros(9, np.float32)
    schedule(found).launch(x, y)
    assert np.allclose(y, x.mean(1), atol=1e-6)
    for old, new, expected in (
        ("int j = 0; j < n", "int j = 2; j < n", x[:, 2:].mean(1) * 5 / 7),
        ("sum += in[i * n + j]", "sum = fmaxf(sum, in[i * n + j])", np.maximum(x.max(1), 0) / 7),
        ("sum += in[i * n + j]", "sum -= in[i * n + j]", -x.mean(1)),
        ("out[i] = sum / n", "out[i] = sum + sum + in[i + 1]", 2 * x.sum(1) + x.ravel()[1:10]),
    ):
        assert old in ROWS
        if "in[i + 1]" in new:  # a row and a number of it: two shapes
            with pytest.raises(PtxError, match="two shapes"):
                from_cuda(ROWS.replace(old, new))
            continue
        schedule(from_cuda(ROWS.replace(old, new))).launch(x, y)
        assert np.allclose(y, expected, atol=1e-5)
    with pytest.raises(PtxError) as refused:
        from_cuda(ROWS.replace("sum += in[", "sum *= in["), name="mine.cu")
    assert "`%f" in str(refused.value)
    assert "mine.cu:5:" in str(refused.value)
    assert "for (int j = 0; j < n; j++) sum *= in[i * n + j];" in str(refused.value)
    assert "_Pragma" not in str(refused.value)
