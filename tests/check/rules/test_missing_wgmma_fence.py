"""Products whose registers were written with no fence since."""

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
    PRODUCT,
    STORE,
    STORE_OTHER,
    WAIT_0,
    ZERO,
    wgmma_kernel,
)

CODE = "missing-wgmma-fence"
END = COMMIT + WAIT_0 + STORE
SKIP = "    setp.eq.u32 %p2, %r20, 0;\n    @%p2 bra skip;\n"

WRONG = {
    "loaded": ((LOAD, MULTIPLY, END), "`%f1`"),
    "set to zero": ((ZERO, MULTIPLY, END), "`%f1`"),
    "the fence too early": ((FENCE, LOAD, MULTIPLY, END), "`%f1`"),
    "A after the fence": ((ZERO, FENCE, LOAD_A, MULTIPLY_A, END), "`%r1`"),
    "the second group": ((ZERO, FENCE, MULTIPLY, END, ZERO, MULTIPLY.replace("f16 {", "f16  {"), END), "`%f1`"),
    "A of the next turn": ((ZERO, FENCE, LOOP, LOAD_A, MULTIPLY_A, COMMIT, WAIT_0, AGAIN, STORE), "`%r1`"),
    "a fence on one path only": ((LOAD, SKIP, FENCE, "skip:\n", MULTIPLY, END), "`%f1`"),
    "an accumulator changed between turns": (
        (LOAD, FENCE, LOOP, MULTIPLY, COMMIT, WAIT_0, "    mul.f32 %f3, %f3, %f3;\n", AGAIN, STORE), "`%f3`"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_product_of_registers_written_without_a_fence_is_found(name: str) -> None:
    parts, register = WRONG[name]
    text = wgmma_kernel(*parts)
    (found,) = findings(text, CODE)
    assert found.message == f"`wgmma.mma_async` uses {register}, written before with no `wgmma.fence` in between"
    assert found.line == line_of(text, f"{PRODUCT}  " if name == "the second group" else PRODUCT)
    assert found.labels[1].text == f"{register} is written here"
    assert found.helps[0].text == "put `wgmma.fence.sync.aligned;` before the first `wgmma.mma_async` of the group"


def test_a_product_of_registers_read_without_a_fence_is_found() -> None:
    text = wgmma_kernel(LOAD, FENCE, MULTIPLY, COMMIT, WAIT_0, STORE, MULTIPLY.replace("f16 {", "f16  {"), END)
    (found,) = findings(text, CODE)
    assert found.message == "`wgmma.mma_async` uses `%f1`, read before with no `wgmma.fence` in between"
    assert found.line == line_of(text, f"{PRODUCT}  ")
    assert [label.text for label in found.labels] == ["may write `%f1` too early", "`%f1` is read here"]


HALVES = "    wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%r1, %r2, %r3, %r4}, %rd2, %rd3, 0, 1, 1, 0, 0;\n"
OTHER_KINDS = {
    "another shape": (
        MULTIPLY,
        MULTIPLY.replace("k16.f32.f16.f16", "k32.f32.e4m3.e4m3").replace(", 0, 0;", ";"),
        "%f1",
    ),
    "as A": (HALVES, MULTIPLY_A, "%r1"),
}


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_accumulators_of_another_kind_of_product_need_a_fence(name: str) -> None:
    one, other, register = OTHER_KINDS[name]
    start = (LOAD, FENCE, one, COMMIT, WAIT_0)
    text = wgmma_kernel(*start, other, END)
    (found,) = findings(text, CODE)
    assert found.message == (
        f"`wgmma.mma_async` uses `{register}` of an MMA of another kind with no `wgmma.fence` in between"
    )
    assert found.line == line_of(text, other.strip())
    assert found.labels[1].text == "only accumulators of MMAs of one shape need no fence"
    assert findings(wgmma_kernel(*start, FENCE, other, END), CODE) == []


def test_the_first_product_needs_a_fence_in_any_case() -> None:
    text = wgmma_kernel(OTHER, COMMIT, WAIT_0, STORE_OTHER)
    (found,) = findings(text, CODE)
    assert found.message == "`wgmma.mma_async` with no `wgmma.fence` before it"
    assert found.line == line_of(text, PRODUCT)


RIGHT = {
    "fenced": (LOAD, FENCE, MULTIPLY, END),
    "one fence for many": (LOAD, LOAD_A, FENCE, MULTIPLY, MULTIPLY_A, OTHER, END, STORE_OTHER),
    "the next group continues": (LOAD, FENCE, MULTIPLY, COMMIT, WAIT_0, MULTIPLY, END),
    "the next group continues after a store": (LOAD, FENCE, MULTIPLY, COMMIT, WAIT_0, STORE, FENCE, MULTIPLY, END),
    "a loop": (ZERO, LOOP, LOAD_A, FENCE, MULTIPLY_A, COMMIT, WAIT_0, AGAIN, STORE),
    "a fence on both ways": (LOAD, SKIP, FENCE, "    bra go;\nskip:\n", FENCE, "go:\n", MULTIPLY, END),
    "other registers": (LOAD, FENCE, LOAD_A, MULTIPLY, END),
    "copies that a compiler moved": (FENCE, ZERO, MULTIPLY, END),
}


@pytest.mark.parametrize("name", RIGHT)
def test_an_mma_after_a_fence_is_fine(name: str) -> None:
    assert findings(wgmma_kernel(*RIGHT[name]), CODE) == []
