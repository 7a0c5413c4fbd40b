"""Where a value comes from, when that is a parameter: the number that was given."""

import numpy as np
import pytest

import ptxlab

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out, .param .{type} a)
{{
    .reg .{type} %a;
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    ld.param.{type} %a, [a];
    st.global.{type} [%out], %a;
    ret;
}}
"""


@pytest.mark.parametrize(("type", "dtype", "number"), [("f32", "f4", 2.5), ("f64", "f8", 0.1), ("s32", "i4", -3)])
def test_the_number_that_was_given(type: str, dtype: str, number: float) -> None:
    kernel = ptxlab.parse(KERNEL.format(type=type))["k"]
    trace = kernel.launch(1, 1, [np.zeros(1, dtype), number], device="cpu", record=ptxlab.Record()).trace
    assert trace is not None
    origin = trace.origin(trace.address("out", 0), size=np.dtype(dtype).itemsize)
    assert f"parameter `a` = {number}  as it was given" in str(origin)
