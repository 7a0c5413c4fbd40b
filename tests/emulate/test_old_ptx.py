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
