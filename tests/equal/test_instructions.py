"""What `equal` follows of single instructions: calls, guards, branches, shuffles, atomics, matrices, registers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ptxlab
from tests.equal.kernels import MOVED, PLAIN, STORE, rows


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
