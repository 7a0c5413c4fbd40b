"""What `check` warns of is shown beside the findings of a launch, and with a result that has none."""

import numpy as np
import pytest

import ptxlab

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %out;
    .shared .b32 tile;
    ld.param.u64 %out, [out];
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 0;
    @%p bra after;
    st.shared.u32 [tile], 7;
    bar.sync 0;
after:
    ld.shared.u32 %r2, [tile];
    mad.wide.u32 %out, %r1, 4, %out;
    st.global.u32 [%out], %r2;
    ret;
}
"""


def test_an_error_shows_the_warning_that_says_why() -> None:
    with pytest.raises(ptxlab.KernelError) as raised:
        ptxlab.parse(KERNEL)["k"].launch(grid=1, block=32, args=[np.zeros(32, "u4")], device="cpu")
    assert [found.code for found in raised.value.diagnostics] == ["data-race"]
    assert [found.code for found in raised.value.warnings] == ["divergent-barrier"]
    assert str(raised.value).index("error[data-race]") < str(raised.value).index("warning[divergent-barrier]")


def test_a_result_has_the_warnings() -> None:
    result = ptxlab.parse(KERNEL)["k"].launch(grid=1, block=1, args=[np.zeros(1, "u4")], device="cpu")
    assert result.diagnostics == []
    assert [found.code for found in result.warnings] == ["divergent-barrier"]
    assert "no errors or warnings in the run, 1 warning of `ptxlab.check`" in repr(result)
    assert "divergent-barrier" in result._repr_html_()


def test_a_wrong_argument_has_nothing_to_do_with_them() -> None:
    with pytest.raises(ptxlab.KernelError) as raised:
        ptxlab.parse(KERNEL)["k"].launch(grid=1, block=1, args=[], device="cpu")
    assert raised.value.warnings == []


ANOTHER = """
.visible .entry right(.param .u64 out)
{
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    st.global.u32 [%out], 7;
    ret;
}
"""


def test_those_about_another_kernel_are_left_out() -> None:
    module = ptxlab.parse(KERNEL + ANOTHER)
    result = module["right"].launch(1, 1, [np.zeros(1, "u4")], device="cpu", on_error="strict")
    assert result.warnings == []
    with pytest.raises(ptxlab.PtxError, match="divergent-barrier"):
        module["k"].launch(1, 1, [np.zeros(1, "u4")], device="cpu", on_error="strict")


def test_those_about_a_function_that_it_calls_are_not() -> None:
    called = KERNEL.replace(".visible .entry k(.param .u64 out)", ".func k(.param .b64 out)")
    caller = """
.visible .entry calls(.param .u64 out)
{
    .reg .b64 %out;
    .param .b64 given;
    ld.param.u64 %out, [out];
    st.param.b64 [given], %out;
    call k, (given);
    ret;
}
"""
    result = ptxlab.parse(called + caller)["calls"].launch(1, 1, [np.zeros(1, "u4")], device="cpu")
    assert [found.code for found in result.warnings] == ["divergent-barrier"]
