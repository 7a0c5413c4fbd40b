"""What `operand-type` says of constants in the operands of `mma`."""

import ptxlab
from ptxlab.report import render

KERNEL = """.version 8.0
.target sm_80
.entry k() {
    .reg .b32 %a<4>; .reg .b32 %b<2>; .reg .f32 %d<4>;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1},
        {CONSTANTS};
    ret;
}
"""


def said(constants: str) -> str:
    found = ptxlab.check(ptxlab.parse(KERNEL.replace("CONSTANTS", constants), name="k.ptx"))
    return render([finding for finding in found if finding.code == "operand-type"], format="full")


def test_decimal_constants_alone_have_too_many_bits() -> None:
    reason = "a constant must have 32 bits here, as `0f00000000` has; a decimal one has 64"
    assert reason in said("0.0, 0.0, 0.0, 0.0")
    assert reason in said("0f00000000, 0.0, 0.0, 0.0")
    assert said("0f00000000, 0f00000000, 0f00000000, 0f00000000") == ""
    assert said("0.0, %d1, 0.0, 0.0") == ""
