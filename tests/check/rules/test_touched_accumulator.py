"""Registers of a running `wgmma.mma_async` that are touched before it is waited for."""

import pytest

from ..lints import findings, line_of
from ..wgmma_kernels import (
    AGAIN,
    COMMIT,
    FENCE,
    LOAD,
    LOAD_A,
    LOOP,
    MULTIPLY,
    MULTIPLY_A,
    OTHER,
    STORE,
    STORE_OTHER,
    WAIT_0,
    WAIT_1,
    ZERO,
    wgmma_kernel,
)

CODE = "touched-accumulator"
ADD = "    add.f32 %f5, %f1, %f2;\n"
HALF = "    wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd2, %rd3, 1, 1, 1, 0, 0;\n"
BEGIN = ZERO + FENCE + MULTIPLY + COMMIT

WRONG = {
    "no wait": ((BEGIN, STORE), STORE, "`%f1` is read"),
    "no group and no wait": ((ZERO, FENCE, MULTIPLY, STORE), STORE, "`%f1` is read"),
    "before the wait": ((BEGIN, ADD, WAIT_0, STORE), ADD, "`%f1` is read"),
    "written before the wait": ((BEGIN, LOAD, WAIT_0, STORE), LOAD, "`%f1` is written"),
    "a wait that leaves it pending": ((BEGIN, WAIT_1, STORE), STORE, "`%f1` is read"),
    "the wrong one of two": ((BEGIN, OTHER, COMMIT, WAIT_1, STORE_OTHER, WAIT_0, STORE), STORE_OTHER, "`%f11` is read"),
    "a new A": ((LOAD_A, ZERO, FENCE, MULTIPLY_A, COMMIT, LOAD_A.replace("64", "80"), WAIT_0, STORE),
                LOAD_A.replace("64", "80"), "`%r1` is written"),
    "an old A": ((LOAD_A, ZERO, FENCE, MULTIPLY_A, COMMIT, "    st.global.b32 [%rd1+80], %r3;\n", WAIT_0, STORE),
                 "    st.global.b32 [%rd1+80]", "`%r3` is read"),
    "on one path": ((BEGIN, "    setp.eq.u32 %p2, %r20, 0;\n    @%p2 bra skip;\n", WAIT_0, "skip:\n", STORE),
                   STORE, "`%f1` is read"),
    "at the next turn of a loop": ((ZERO, LOOP, LOAD, FENCE, MULTIPLY, COMMIT, AGAIN, WAIT_0, STORE),
                                   LOAD, "`%f1` is written"),
    "as the A of another": ((LOAD, LOAD_A, FENCE, HALF, MULTIPLY_A, COMMIT, WAIT_0, STORE),
                            MULTIPLY_A, "`%r1` is read"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_register_touched_while_the_product_runs_is_found(name: str) -> None:
    parts, place, what = WRONG[name]
    text = wgmma_kernel(*parts)
    (found,) = findings(text, CODE)
    assert found.message == f"{what} while `wgmma.mma_async` may still use it"
    assert found.line == line_of(text, place)
    assert found.labels[1].text.startswith("this MMA may still be in flight")


RIGHT = {
    "waited for": (BEGIN, WAIT_0, STORE),
    "a chain in the same accumulators": (ZERO, FENCE, MULTIPLY, MULTIPLY, MULTIPLY, COMMIT, WAIT_0, STORE),
    "chains over groups": (BEGIN, MULTIPLY, COMMIT, WAIT_1, MULTIPLY, COMMIT, WAIT_0, STORE),
    "the first of two groups": (BEGIN, OTHER, COMMIT, WAIT_1, STORE, WAIT_0, STORE_OTHER),
    "a loop that keeps one group running": (ZERO, LOOP, FENCE, MULTIPLY, COMMIT, WAIT_1, AGAIN, WAIT_0, STORE),
    "other registers": (LOAD_A, BEGIN, "    add.u32 %r5, %r1, %r2;\n", WAIT_0, STORE),
    "two that read one A": (ZERO, LOAD_A, FENCE, MULTIPLY_A, MULTIPLY_A.replace("%f", "%f1"), COMMIT, WAIT_0, STORE),
}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_waited_for_is_fine(name: str) -> None:
    text = wgmma_kernel(*RIGHT[name])
    if name == "two that read one A":
        zero = "".join(f"    mov.f32 %f1{n}, 0f00000000;\n" for n in range(1, 5))
        text = text.replace(FENCE, zero + FENCE)
    assert findings(text, CODE) == []


def test_the_wait_that_is_too_weak_is_shown() -> None:
    text = wgmma_kernel(BEGIN, WAIT_1, STORE)
    (found,) = findings(text, CODE)
    assert [label.text for label in found.labels] == [
        "an arbitrary value",
        "this MMA may still be in flight, and writes it",
        "leaves the 1 group closed last unfinished",
    ]
    assert found.helps[0].text == "wait with `wgmma.wait_group.sync.aligned 0;`"
