"""What PTX of early versions could do and later ones cannot."""

import numpy as np

import ptxlab

MODULE_LOCAL = """
.version 2.3
.target sm_20
.address_size 64
.local .align 4 .u32 scratch[4];

.func (.reg .u32 result) read_second ()
{
    ld.local.u32 result, [scratch+4];
    ret;
}

.entry k (.param .u64 out)
{
    .reg .u32 %r<4>;
    .reg .u64 %rd<4>;
    mov.u32 %r1, %tid.x;
    st.local.u32 [scratch], 7;
    st.local.u32 [scratch+4], %r1;
    call (%r2), read_second, ();
    ld.param.u64 %rd1, [out];
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r2;
    ret;
}
"""


def test_local_variables_of_a_module_belong_to_each_thread() -> None:
    out = np.zeros(40, np.uint32)
    ptxlab.parse(MODULE_LOCAL)["k"].launch(1, 40, [out])
    assert out.tolist() == list(range(40))


SATURATED = """
.version 6.3
.target sm_70
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 c)
{
    .reg .b64 %rd<2>;
    .reg .f16x2 %x<8>;
    .reg .f32 %c<8>;
    ld.param.u64 %rd0, [a];
    ld.param.u64 %rd1, [c];
    wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}, [%rd0], 16;
    wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, [%rd1], 16;
    wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32.satfinite {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7},
        {%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7}, {%x0, %x1, %x2, %x3, %x4, %x5, %x6, %x7},
        {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7};
    wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, 16;
    ret;
}
"""


def test_matrices_without_infinities() -> None:
    """On GPUs of that time; later ones leave infinities as they are, as measured on an H200."""
    most = np.finfo(np.float32).max
    for gpu, expected in (("V100", (most, -most, 0)), ("H200", (np.inf, -np.inf, np.nan))):
        c = np.arange(256, dtype=np.float32).reshape(16, 16)
        c[0, :4] = np.inf, -np.inf, np.nan, most
        whole = c.copy()
        whole[0, :3] = expected
        a = np.zeros((16, 16), np.float16)
        result = ptxlab.parse(SATURATED)["k"].launch(1, 32, [a, c], device="cpu", gpu=gpu)
        assert result.diagnostics == []
        assert np.array_equal(c, whole, equal_nan=True)
