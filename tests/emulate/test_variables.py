"""Variables of a module that functions declare: each has memory of its own, which outlives a launch."""

import numpy as np

import ptxlab
from tests.emulate.launching import HEAD, REGISTERS

COUNTS = (
    "\n.visible .entry {name}(.param .u64 out)\n{{\n"
    + REGISTERS
    + """    .global .u32 x{declared};
    ld.param.u64 %rd1, [out];
    ld.global.u32 %r1, [x{last}];
    add.u32 %r1, %r1, 1;
    st.global.u32 [x{last}], %r1;
    st.global.u32 [%rd1], %r1;
    ret;
}}
"""
)


def test_variables_of_one_name_are_their_functions_own() -> None:
    small = COUNTS.format(name="small", declared=" = 5", last="")
    large = COUNTS.format(name="large", declared="[100000]", last="+399996")
    outer = COUNTS.format(name="outer", declared="", last="").replace("    .global .u32 x;\n", "")
    module = ptxlab.parse(f"{HEAD}.global .u32 x = 70;\n{small}{large}{outer}")
    out = np.zeros(1, np.uint32)
    seen = []
    for name in ("small", "small", "large", "large", "outer", "outer", "small"):
        module[name].launch(1, 1, [out])
        seen.append(out.item())
    assert seen == [6, 7, 1, 2, 71, 72, 8]
