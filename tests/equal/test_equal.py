"""Two kernels of plain instructions: same bits, same function, near, different with a witness, or refused."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.equal.nodes import Nodes, TooManyError
from tests.equal.kernels import EXPF, FMA, MOVED, NORM, ONLINE, PLAIN, STORE, A, C, X, product, rows

MUL_ADD = "mul.rn.f32 %x, %x, %y;\n    add.rn.f32 %sum, %sum, %x;"


@pytest.mark.parametrize("name", ["shared", "tiled_1d"])
def test_another_tiling_has_the_same_bits(name: str) -> None:
    before = A.copy(), C.copy()
    found = ptxlab.equal(product("naive"), product(name))
    assert (found.level, found.elements, found.outputs) == ("same-bits", 35, ["c"])
    assert found
    assert "all values of a, b, c" in found.holds_for
    assert np.array_equal(A, before[0])
    assert np.array_equal(C, before[1])


def test_a_contraction_is_the_same_function() -> None:
    found = ptxlab.equal(product("naive"), product("naive", (FMA, MUL_ADD)))
    assert found.level == "same-function"
    assert 0 < found.probability < 1e-12
    assert found.witness is not None
    assert [place.instruction.split()[0] for place in found.witness.places if place] == ["fma.rn.f32", "add.rn.f32"]


WRONG = {
    "the last term is lost": (
        ("setp.ne.u32     %more, %k, 0;\n    @%more", "setp.gt.s32     %more, %k, 1;\n    @%more"),
        "b lacks the term a[0, 31]·b[31, 0]",
    ),
    "= for +=": ((FMA, "mul.rn.f32 %sum, %x, %y;"), "b lacks 31 terms: a[0, 0..30]·b[0..30, 0]"),
    "a factor twice": ((FMA, "fma.rn.f32 %sum, %x, %x, %sum;"), "b lacks 32 terms: a[0, 0..31]·b[0..31, 0]"),
    "a wrong sign": ((FMA, "neg.f32 %x, %x;\n    " + FMA), "b lacks 32 terms: a[0, 0..31]·b[0..31, 0]"),
    "a sum that starts at one": (
        ("mov.f32         %sum, 0f00000000;", "mov.f32         %sum, 0f3F800000;"), "b has in addition the term 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_product_is_different(name: str) -> None:
    change, words = WRONG[name]
    found = ptxlab.equal(product("naive"), product("naive", change))
    assert (found.level, found.differing) == ("different", 35)
    assert not found
    assert found.witness is not None
    assert found.witness.element.startswith("c[")
    assert _general(words) in [_general(one) for one in found.witness.words]
    assert found.witness.places[1] is not None
    assert found.witness.values is not None
    assert found.witness.values[0] != found.witness.values[1]
    assert set(found.witness.inputs) == {"a", "b", "c"}


def _general(words: str) -> str:
    """What is said of one element, for any: its row and its column are left out."""
    return re.sub(r"a\[\d+, |, \d+\]", "", words)


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


def test_paths_that_are_assumed() -> None:
    branch = (
        "max.f32 %f1, %f1, %f3;",
        "setp.gt.f32 %p2, %f3, %f1;\n    @!%p2 bra skip;\nskip:\n    max.f32 %f1, %f1, %f3;",
    )
    found = ptxlab.equal(rows(PLAIN), rows(PLAIN, branch), assume_paths=True)
    assert found.level == "same-bits"
    assert "where branches go as they did (b line 25)" in found.holds_for


def test_what_depends_on_values_is_refused() -> None:
    branch = ("max.f32 %f1, %f1, %f3;", "setp.gt.f32 %p2, %f3, %f1;\n    @!%p2 bra skip;\n    mov.f32 %f1, %f3;\nskip:")
    found = ptxlab.equal(rows(PLAIN), rows(PLAIN, branch))
    assert found.level == "refused"
    assert found.refusal is not None
    assert (found.refusal.side, found.refusal.instruction) == (1, "@!%p2 bra skip")
    assert found.refusal.why.startswith("it branches on the value of an input: say `assume_paths`")
    place = ("ld.global.f32 %f4, [%rd3];", "cvt.rzi.u32.f32 %r5, %f1;\n    mad.wide.u32 %rd4, %r5, 0, %rd3;\n"
             "    ld.global.f32 %f4, [%rd4];")  # fmt: skip
    found = ptxlab.equal(rows(PLAIN), rows(PLAIN, place))
    assert found.refusal is not None
    assert found.refusal.why == "its address depends on the value of an input"
    assert "ld.global.f32 %f4, [%rd4]" in str(found)


def test_a_guard_is_a_choice() -> None:
    guarded = ("max.f32 %f1, %f1, %f3;", "setp.gt.f32 %p2, %f3, %f1;\n    @%p2 mov.f32 %f1, %f3;")
    assert ptxlab.equal(rows(PLAIN), rows(PLAIN, guarded)).level == "same-function"
    opposite = ("max.f32 %f1, %f1, %f3;", "setp.lt.f32 %p2, %f3, %f1;\n    @!%p2 mov.f32 %f1, %f3;")
    assert ptxlab.equal(rows(PLAIN), rows(PLAIN, opposite)).level == "same-function"


def test_bits_of_floats() -> None:
    """The sign by an integer operation has a rule; what is done with other bits is decided by numbers."""
    negated = ("sub.f32 %f4, %f4, %f1;", "mov.b32 %r5, %f1;\n    xor.b32 %r5, %r5, 0x80000000;\n    mov.b32 %f5, %r5;\n"
               "    add.f32 %f4, %f4, %f5;")  # fmt: skip
    assert ptxlab.equal(rows(PLAIN), rows(PLAIN, negated)).level == "same-function"
    tricky = ("sub.f32 %f4, %f4, %f1;", "mov.b32 %r5, %f1;\n    add.u32 %r5, %r5, 1;\n    mov.b32 %f5, %r5;\n"
              "    sub.f32 %f4, %f4, %f5;")  # fmt: skip
    found = ptxlab.equal(rows(PLAIN), rows(PLAIN, tricky))
    assert found.level == "different"
    assert found.witness is not None
    assert found.witness.values is not None
    assert ptxlab.equal(rows(PLAIN, tricky), rows(PLAIN, tricky)).level == "same-bits"


def test_the_order_of_atomic_sums_is_open() -> None:
    atomic = ("st.global.f32 [%rd2], %f4;", "red.global.add.f32 [%rd2], %f4;")
    found = ptxlab.equal(rows(PLAIN, atomic), rows(PLAIN, atomic))
    assert found.level == "same-function"
    assert "depend on the order of atomic operations: a line" in found.notes[0]


def test_a_rounded_constant_is_near() -> None:
    found = ptxlab.equal(rows(PLAIN), rows(PLAIN, ("0f3FB8AA3B", "0f3FB8AA3C"), ("0f3FB8AA3B", "0f3FB8AA3C")))
    assert found.level == "near"
    assert found.error is not None
    assert max(found.error) < 1e-5


def test_outputs_and_mistakes() -> None:
    with pytest.raises(ValueError, match="no output `z` that both sides have; there are x, y"):
        ptxlab.equal(rows(PLAIN), rows(ONLINE), outputs=["z"])
    with pytest.raises(TypeError, match="is not a kernel, a launch or a list of launches"):
        ptxlab.equal("a.ptx", rows(PLAIN))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="say `block`"):
        ptxlab.equal(rows(PLAIN).function, rows(PLAIN).function, [X])


SQUARES = """
.version 8.0
.target sm_80
.address_size 64
.func (.param .f32 result) squared(.param .f32 x, .param .f32 y)
{
    .reg .f32 %f<4>;
    ld.param.f32 %f1, [x];
    ld.param.f32 %f2, [y];
    fma.rn.f32 %f3, %f1, %f1, %f2;
    st.param.f32 [result], %f3;
    ret;
}
.visible .entry rows(.param .u64 x, .param .u64 y)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<5>;
    .param .f32 first;
    .param .f32 second;
    .param .f32 found;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.global.f32 %f1, [%rd1];
    ld.global.f32 %f2, [%rd1+4];
    st.param.f32 [first], %f1;
    st.param.f32 [second], %f2;
    call (found), squared, (first, second);
    ld.param.f32 %f3, [found];
    st.param.f32 [first], %f3;
    call (found), squared, (first, second);
    ld.param.f32 %f3, [found];
    st.global.f32 [%rd2], %f3;
    ret;
}
"""


def test_calls_pass_expressions() -> None:
    """Registers of the function have the names of the kernel's."""
    x, y = np.ones(2, np.float32), np.zeros(1, np.float32)
    kernel = ptxlab.parse(SQUARES, name="calls.ptx")["rows"]

    def twice(x: Any) -> Any:
        return ((x[0] * x[0] + x[1]) ** 2 + x[1]).reshape(1)

    assert ptxlab.equal(kernel, twice, [x, y], block=1).level == "same-function"
    assert ptxlab.equal(kernel, lambda x: twice(x) + x[0], [x, y], block=1).level == "different"


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


def test_batches() -> None:
    x, y = np.ones((4, 6), np.float32), np.zeros((4, 6), np.float32)

    def launched(text: str) -> Any:
        return lambda batch: rows(text, x=x[:batch], y=y[:batch])

    found = ptxlab.equal(launched(PLAIN), launched(PLAIN), batch=(1, 4))
    assert (found.level, found.elements) == ("same-bits", 6)
    assert ptxlab.equal(launched(PLAIN), launched(ONLINE), batch=(3, 2)).level == "same-function"


def test_the_words_of_a_verdict() -> None:
    found = ptxlab.equal(product("naive"), product("naive", (FMA, MUL_ADD)))
    assert "35 of 35 elements differ as bits: they are rounded otherwise" in str(found)
    assert found.witness is not None
    assert all(place is not None and place.recording is not None for place in found.witness.places)


def test_a_branch_is_the_choice_of_a_function() -> None:
    """What a branch compares is known on its path, and so is the same comparison on the other side."""
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    branch = ("ld.global.f32 %f4, [%rd3];\n setp.lt.f32 %p3, %f4, 0f3F000000;\n @%p3 bra keep;\n"
              "mov.f32 %f4, 0f3F800000;\nkeep:")  # fmt: skip
    kernel = rows(PLAIN, ("div.rn.f32 %f4, %f4, %f2;", branch), x=x, y=np.zeros_like(x))
    right = ptxlab.equal(kernel, lambda x: np.where(x < 0.5, x, 1.0), assume_paths=True)
    assert right.level == "same-function"
    assert "where branches go as they did" in right.holds_for
    assert ptxlab.equal(kernel, lambda x: np.where(x < -0.5, x, 1.0), assume_paths=True).level == "different"
    assert ptxlab.equal(kernel, lambda x: np.where(x < 0.5, x, 1.0)).level == "refused"


SHUFFLED = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry shuffled(.param .u64 x, .param .u64 y)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<3>;
    .reg .f32 %f<4>;
    .reg .pred %p<2>;
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mad.wide.u32 %rd1, %r1, 4, %rd1;
    mad.wide.u32 %rd2, %r1, 4, %rd2;
    ld.global.f32 %f1, [%rd1];
    setp.gt.u32 %p1, %r1, 15;
    @%p1 bra both;
    mov.f32 %f3, %f1;
both:
    shfl.sync.down.b32 %f2|%p1, %f1, 1, 31, -1;
    @%p1 add.f32 %f1, %f1, %f2;
    st.global.f32 [%rd2], %f1;
    ret;
}
"""


def _shuffled(*change: str) -> Any:
    module = ptxlab.parse(SHUFFLED.replace(*change) if change else SHUFFLED, name="shuffled.ptx")  # type: ignore[arg-type]
    return module["shuffled"]


def test_the_predicate_of_a_shuffle_is_as_it_was() -> None:
    """Also for the lanes that come to it later."""
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    sums = ptxlab.equal(_shuffled(), lambda x: np.concatenate([x[:-1] + x[1:], x[-1:]]), [x, y], block=32)
    assert sums.level == "same-function"
    assert not ptxlab.equal(_shuffled(), lambda x: x + np.roll(x, -1), [x, y], block=32)


def test_a_register_that_nothing_has_written_is_unknown() -> None:
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    zero = _shuffled(
        "st.global.f32 [%rd2], %f1;", "mov.f32 %f3, 0f00000000;\n add.f32 %f1, %f1, %f3;\n st.global.f32 [%rd2], %f1;"
    )
    none = _shuffled("st.global.f32 [%rd2], %f1;", ".reg .f32 %g;\n add.f32 %f1, %f1, %g;\n st.global.f32 [%rd2], %f1;")
    assert ptxlab.equal(_shuffled(), zero, [x, y], block=32).level == "same-function"
    found = ptxlab.equal(_shuffled(), none, [x, y], block=32)
    assert found.level == "different"
    assert found.witness is not None
    assert found.witness.words == ["b has in addition the term what nothing has written"]


def test_a_counter_that_nothing_has_set_is_noted() -> None:
    found = ptxlab.equal(
        rows(PLAIN), rows(PLAIN, ("mov.u32 %r4, 0;\n    mov.u64 %rd3, %rd1;\nlargest", "mov.u64 %rd3, %rd1;\nlargest"))
    )
    assert found.same
    assert "b line 25: `%r4` is read before it is written when the loop begins" in found.notes


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


def test_an_atomic_sum_whose_old_value_nothing_reads() -> None:
    x, y = np.arange(32, dtype=np.float32), np.zeros(1, np.float32)
    at = ("mad.wide.u32 %rd2, %r1, 4, %rd2;", "")
    atomic = ("st.global.f32 [%rd2], %f1;", "atom.global.add.f32 %f3, [%rd2], %f1;")
    text = SHUFFLED.replace(*at).replace(*atomic)
    kernel = ptxlab.parse(text, name="sum.ptx")["shuffled"]
    total = ptxlab.equal(kernel, lambda x, y: y + (2 * x).sum() - x[0], [x, y], block=32)
    assert total.level == "same-function"
    read = ptxlab.parse(text.replace("ret;", "st.global.f32 [%rd1], %f3;\n ret;"), name="sum.ptx")["shuffled"]
    refused = ptxlab.equal(read, kernel, [x, y], block=32)
    assert refused.refusal is not None
    assert refused.refusal.why == "what it reads depends on the order of threads"


def test_fragments_of_wmma() -> None:
    """Loads and stores of matrices by rows and by columns."""
    registers = ", ".join(f"%r{n}" for n in range(8)), ", ".join(f"%r{n}" for n in range(8, 16))
    sums = ", ".join(f"%f{n}" for n in range(8))

    def kernel(a: str, b: str, d: str) -> Any:
        text = f"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry product(.param .u64 a, .param .u64 b, .param .u64 c)
{{
    .reg .b64 %rd<4>;
    .reg .b32 %r<17>;
    .reg .f32 %f<8>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    mov.u32 %r16, 18;
    wmma.load.a.sync.aligned.{a}.m16n16k16.global.f16 {{{registers[0]}}}, [%rd1], %r16;
    wmma.load.b.sync.aligned.{b}.m16n16k16.global.f16 {{{registers[1]}}}, [%rd2], %r16;
    wmma.load.c.sync.aligned.{d}.m16n16k16.global.f32 {{{sums}}}, [%rd3];
    wmma.mma.sync.aligned.{a}.{b}.m16n16k16.f32.f32 {{{sums}}}, {{{registers[0]}}}, {{{registers[1]}}}, {{{sums}}};
    wmma.store.d.sync.aligned.{d}.m16n16k16.global.f32 [%rd3], {{{sums}}};
    ret;
}}"""
        return ptxlab.parse(text, name="product.ptx")["product"]

    a, b = (np.random.default_rng(n).standard_normal((16, 18)).astype(np.float16) for n in (1, 2))
    c = np.ones((16, 16), np.float32)

    def product(a: Any, b: Any, c: Any) -> Any:
        return {"c": c + a[:, :16] @ b[:, :16]}

    def turned(a: Any, b: Any, c: Any) -> Any:
        return {"c": c + (a[:, :16].T @ b[:, :16].T).T}

    assert ptxlab.equal(kernel("row", "row", "row"), product, [a, b, c], block=32).level == "same-function"
    assert ptxlab.equal(kernel("col", "col", "col"), turned, [a, b, c], block=32).level == "same-function"
    assert ptxlab.equal(kernel("col", "row", "row"), product, [a, b, c], block=32).level == "different"


@pytest.mark.parametrize(("change", "lines"), [
    (("[%rd1];", "[%rd1+4];"), (14, 14)),
    (("%f1;\n    ret", "0f3F800000;\n    ret"), (14, 14)),
    ((STORE, ""), (14, None)),
])  # fmt: skip
def test_a_difference_without_an_operation_is_at_the_store(
    change: tuple[str, str], lines: tuple[int | None, ...]
) -> None:
    arrays = [np.arange(1, 3, dtype=np.float32), np.zeros(1, np.float32)]
    sides = [ptxlab.parse(text, name="move.ptx")["move"] for text in (MOVED, MOVED.replace(*change))]
    found = ptxlab.equal(sides[0], sides[1], arrays, block=1)
    assert found.level == "different"
    assert found.witness is not None
    assert tuple(place and place.line for place in found.witness.places) == lines


@pytest.mark.parametrize(("one", "other", "values"), [
    ("setp.gt.f32 %p, %f1, 0f00000000; selp.b32 %r1, 1, 0, %p;",
     "setp.ge.f32 %p, %f1, 0f00000000; selp.b32 %r1, 1, 0, %p;", (0, 1)),
    ("cvt.rzi.s32.f32 %r1, %f1;", "cvt.rni.s32.f32 %r1, %f1;", None),
])  # fmt: skip
def test_integers_that_are_written_are_compared_as_integers(
    one: str, other: str, values: tuple[float, float] | None
) -> None:
    arrays = [np.full(2, 2.75, np.float32), np.zeros(1, np.int32)]
    sides = [ptxlab.parse(MOVED.replace(STORE, f"{text} st.global.b32 [%rd2], %r1;"), name="move.ptx")["move"]
             for text in (one, other)]  # fmt: skip
    assert ptxlab.equal(sides[0], sides[0], arrays, block=1).level == "same-bits"
    found = ptxlab.equal(sides[0], sides[1], arrays, block=1)
    assert found.level == "different"
    assert found.witness is not None
    assert found.witness.values is not None
    assert all(value == int(value) for value in found.witness.values)
    assert values is None or found.witness.values == values


def test_what_takes_too_long_is_refused() -> None:
    found = ptxlab.equal(product("naive"), product("shared"), timeout=30)
    assert found.level == "same-bits"
    nodes = Nodes(1e-9)
    with pytest.raises(TooManyError, match="more than 1e-09 seconds"):
        nodes.set_origin(None)


def test_arguments_of_calls_have_sizes_of_their_own() -> None:
    call = """
    {{ .param .b32 p0; st.param.f32 [p0], %f1; call.uni narrow, (p0); }}
    {{ .param .b64 p0; st.param.b64 [p0], %rd1; call.uni wide, (p0); }}
    {0}"""
    functions = """
.func narrow(.param .b32 x) { ret; }
.func wide(.param .b64 x) { ret; }
.visible .entry"""
    text = MOVED.replace(".visible .entry", functions).replace(STORE, call.format(STORE))
    kernel = ptxlab.parse(text, name="move.ptx")["move"]
    arrays = [np.ones(1, np.float32), np.zeros(1, np.float32)]
    assert ptxlab.equal(kernel, ptxlab.parse(MOVED, name="move.ptx")["move"], arrays, block=1).level == "same-bits"
