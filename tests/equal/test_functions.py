"""Which functions of real numbers `equal` recognizes as one: softmax, norms, powers, maxima, roots, choices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ptxlab
from tests.equal.kernels import EXPF, NORM, ONLINE, PLAIN, rows


def test_softmax_in_one_pass_is_softmax_in_three() -> None:
    found = ptxlab.equal(rows(PLAIN), rows(ONLINE))
    assert (found.level, found.elements) == ("same-function", 18)
    assert found.probability < 1e-12


def test_softmax_without_a_maximum_is_the_same_function() -> None:
    assert ptxlab.equal(rows(PLAIN), rows(PLAIN, ("max.f32 %f1, %f1, %f3;", "mov.f32 %f1, 0f00000000;"))).same


@pytest.mark.parametrize(
    "change",
    [
        ("fma.rn.f32 %f2, %f2, %f6, %f7;", "add.f32 %f2, %f2, %f7;"),  # a lost rescale
        ("sub.f32 %f6, %f1, %f5;", "sub.f32 %f6, %f5, %f1;"),  # mixed operands
        ("0f3FB8AA3B", "0f3F317218"),  # ln 2 for log2 e, in one place
        ("sub.f32 %f7, %f3, %f5;", "sub.f32 %f7, %f3, %f1;"),  # the maximum of before
        ("add.u64 %rd3, %rd3, 4;", "add.u64 %rd3, %rd3, 8;"),  # every second element
    ],
)
def test_a_wrong_softmax_is_different(change: tuple[str, str]) -> None:
    x, y = np.ones((2, 6), np.float32), np.zeros((2, 6), np.float32)  # of the second row only what one reads beyond
    a, b = (replace(rows(*given, x=x, y=y), block=1) for given in ((PLAIN,), (ONLINE, change)))
    assert ptxlab.equal(a, b).level == "different"


def reference(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_a_function_of_numpy() -> None:
    found = ptxlab.equal(rows(ONLINE), reference)
    assert (found.level, found.titles) == ("same-function", ("rows", "reference"))
    wrong = ptxlab.equal(rows(ONLINE), lambda x: np.exp(x) / x.sum(-1, keepdims=True))
    assert wrong.level == "different"
    with pytest.raises(ValueError, match="returns `z`, which the kernel does not have"):
        ptxlab.equal(rows(ONLINE), lambda x: {"z": x})


POWER = """
    ld.global.f32 %f4, [%rd3];
    sub.f32 %f4, %f4, %f1;
    mul.f32 %f4, %f4, 0f3FB8AA3B;
    ex2.approx.f32 %f4, %f4;
    div.rn.f32 %f4, %f4, %f2;
"""


def test_the_power_of_a_library() -> None:
    """What nvcc makes of `expf`: a whole part by the bits of a float, and the rest by `ex2`."""
    assert ptxlab.equal(rows(PLAIN), rows(PLAIN, (POWER, EXPF))).level == "same-function"
    wrong = EXPF.replace("0fCB40007F", "0fCB40007E")
    assert not ptxlab.equal(rows(PLAIN), rows(PLAIN, (POWER, wrong))).same


def test_a_step_of_newtons() -> None:
    def normed(x: Any) -> Any:
        return x / np.sqrt((x * x).sum(-1, keepdims=True))

    assert ptxlab.equal(rows(NORM), normed).level == "same-function"
    for change in (("%f2, 0f3F000000", "%f2, 0f3F400000"), ("neg.f32 %f5, %f5;", ""), ("rsqrt.approx", "sqrt.approx")):
        assert ptxlab.equal(rows(NORM, change), normed).level == "different"


def test_a_rounded_constant_is_near() -> None:
    found = ptxlab.equal(rows(PLAIN), rows(PLAIN, ("0f3FB8AA3B", "0f3FB8AA3C"), ("0f3FB8AA3B", "0f3FB8AA3C")))
    assert found.level == "near"
    assert found.error is not None
    assert max(found.error) < 1e-5


@pytest.mark.parametrize(("factor", "level"), [(2.0, "same-function"), (1.0, "same-function"), (3.0, "different")])
def test_the_maximum_of_a_form_that_is_never_negative(factor: float, level: str) -> None:
    """x² + y² - f·x·y is never negative up to f = 2."""
    bits = np.float32(-factor).view(np.uint32)
    form = ("st.global.f32 [%rd2], %f4;", f"ld.global.f32 %f5, [%rd1];\n    mul.f32 %f6, %f4, 0f{bits:08X};\n"
            "    add.f32 %f6, %f6, %f5;\n    mul.f32 %f6, %f6, %f5;\n    fma.rn.f32 %f6, %f4, %f4, %f6;\n"
            "    max.f32 %f6, %f6, 0f00000000;\n    st.global.f32 [%rd2], %f6;")  # fmt: skip
    plain = ("sub.f32 %f4, %f4, %f1;\n    mul.f32 %f4, %f4, 0f3FB8AA3B;\n    ex2.approx.f32 %f4, %f4;\n"
             "    div.rn.f32 %f4, %f4, %f2;\n", "")  # fmt: skip

    def reference(x: Any) -> Any:
        return x * x + x[:, :1] * x[:, :1] - factor * x * x[:, :1]

    assert ptxlab.equal(rows(PLAIN, plain, form), reference).level == level


ROOTS = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry roots(.param .u64 x, .param .u64 y)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<4>;
    .reg .f16 %h<2>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.global.f32 %f1, [%rd1];
    sqrt.rn.f32 %f2, %f1;
    neg.f32 %f2, %f2;
    cvt.rn.relu.f16.f32 %h1, %f2;
    cvt.f32.f16 %f3, %h1;
    mul.f32 %f3, %f3, %f3;
    st.global.f32 [%rd2], %f3;
    ret;
}
"""


def test_the_square_of_a_root_that_relu_has_made_0() -> None:
    """relu(-√x)² is 0, and (-√x)² is x: real numbers say so, not only floats."""
    x, y = np.full(1, 4, np.float32), np.zeros(1, np.float32)
    wrong = ptxlab.equal(ptxlab.parse(ROOTS, name="roots.ptx")["roots"], lambda x: x, [x, y], block=1)
    assert wrong.level == "different"
    assert wrong.witness is not None
    assert not any("as real numbers the two are the same" in one for one in wrong.witness.words)
    plain = ptxlab.parse(ROOTS.replace(".relu", ""), name="roots.ptx")["roots"]
    assert ptxlab.equal(plain, lambda x: x, [x, y], block=1).level == "same-function"


def test_an_operand_of_a_maximum_counts_once() -> None:
    again = ("max.f32 %f1, %f1, %f3;", "max.f32 %f5, %f3, %f1;\n    max.f32 %f1, %f5, %f1;")
    visible = ("mul.f32 %f4, %f4, 0f3FB8AA3B;\n    ex2.approx.f32 %f4, %f4;\n    div", "div")
    assert ptxlab.equal(rows(PLAIN, visible), rows(PLAIN, again, visible)).same
    lost = ("max.f32 %f1, %f1, %f3;", "max.f32 %f5, %f3, %f1;\n    max.f32 %f1, %f5, %f3;")
    assert ptxlab.equal(rows(PLAIN, visible), rows(PLAIN, lost, visible)).same
    assert not ptxlab.equal(rows(PLAIN, visible), rows(PLAIN, (again[0], "mov.f32 %f1, %f3;"), visible)).same


def test_a_function_that_overflows_is_different() -> None:
    """The shift of a softmax changes no real number; without one, floats are infinite."""
    x = 200 + np.arange(6, dtype=np.float32).reshape(2, 3)
    shifted = rows(PLAIN, x=x, y=np.full_like(x, np.nan))
    plain = rows(PLAIN, ("max.f32 %f1, %f1, %f3;", "mov.f32 %f1, 0f00000000;"), x=x, y=shifted.args[1])
    found = ptxlab.equal(shifted, plain)
    assert found.level == "different"
    assert found.witness is not None
    assert "as real numbers the two are the same" in found.witness.words[0]
    x -= 200
    assert ptxlab.equal(shifted, plain).level == "same-function"


def test_choices_by_numpy() -> None:
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    choice = "ld.global.f32 %f4, [%rd3];\n setp.lt.f32 %p3, %f4, 0f3F000000;\n selp.f32 %f4, %f4, 0f3F800000, %p3;"
    kernel = rows(PLAIN, ("div.rn.f32 %f4, %f4, %f2;", choice), x=x, y=np.zeros_like(x))
    assert ptxlab.equal(kernel, lambda x: np.where(x < 0.5, x, 1.0)).level == "same-function"
    assert ptxlab.equal(kernel, lambda x: np.where(x < 0.25, x, 1.0)).level == "different"
