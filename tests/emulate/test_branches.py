"""Branches whose targets are unusual."""

import numpy as np
import pytest

import ptxlab

TO_THE_END = """
.version 8.0
.target sm_80
.address_size 64
.entry k (.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    mov.u32 %r2, 10;
ways: .branchtargets END, FIRST, END, SECOND;
    brx.idx %r1, ways;
FIRST:
    st.global.u32 [%rd3], 1;
    bra END;
SECOND:
    st.global.u32 [%rd3], 2;
END:
}
"""


def test_a_label_after_the_last_instruction_is_a_target_like_others() -> None:
    out = np.zeros(4, np.uint32)
    ptxlab.parse(TO_THE_END)["k"].launch(1, 4, [out])
    assert out.tolist() == [0, 1, 0, 2]


def test_an_index_beyond_the_list_is_found() -> None:
    with pytest.raises(ptxlab.KernelError, match="bad-branch"):
        ptxlab.parse(TO_THE_END)["k"].launch(1, 5, [np.zeros(5, np.uint32)])
