"""Where values come from that calls have passed."""

import re

import numpy as np
import pytest

import ptxlab

IN_MEMORY = """.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 r) twice(.param .b32 x) {
    .reg .b32 %a<3>;
    ld.param.b32 %a1, [x];
    add.u32 %a2, %a1, %a1;
    st.param.b32 [r], %a2;
    ret;
}
.visible .entry k(.param .u64 c) {
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [c];
    ld.global.u32 %r2, [%rd1];
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r2; call (q), twice, (p); ld.param.b32 %r3, [q]; }
    { .param .b32 p; .param .b32 q; st.param.b32 [p], %r3; call (q), twice, (p); ld.param.b32 %r4, [q]; }
    st.global.u32 [%rd1+4], %r4;
    ret;
}
"""
IN_REGISTERS = """.version 8.0
.target sm_80
.address_size 64
.func (.reg .b32 r) twice(.reg .b32 x) {
    add.u32 r, x, x;
    ret;
}
.visible .entry k(.param .u64 c) {
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [c];
    ld.global.u32 %r2, [%rd1];
    call (%r3), twice, (%r2);
    call (%r4), twice, (%r3);
    st.global.u32 [%rd1+4], %r4;
    ret;
}
"""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (IN_MEMORY, [6, 7, 8, 14, 15, 16, 17]),
        (IN_REGISTERS, [5, 11, 12, 13, 14]),
        (IN_MEMORY.replace("%a2;\n    ret;", "%a2;"), [6, 7, 8, 13, 14, 15, 16]),
        (IN_REGISTERS.replace("x, x;\n    ret;", "x, x;"), [5, 10, 11, 12, 13]),
    ],
    ids=["in memory", "in registers", "in memory, without ret", "in registers, without ret"],
)
def test_results_lead_through_the_function_to_its_arguments(text: str, lines: list[int]) -> None:
    kernel = ptxlab.parse(text, name="k.ptx")["k"]
    trace = kernel.launch(1, 1, [np.array([3, 0], np.uint32)], record=ptxlab.Record()).trace
    assert trace is not None
    origin = trace.origin(trace.address("c", 1))
    assert (origin.value, origin.inputs()) == ((12).to_bytes(4, "little"), {"c": ["c[0]"]})
    assert sorted(set(lines) - origin.lines) == []
    assert "not recorded" not in str(origin)
    assert re.search(r"(%a2|  r) of thread 0 = 12 ", str(origin))  # of the second call
