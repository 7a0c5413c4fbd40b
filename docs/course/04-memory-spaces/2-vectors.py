"""Chapter 4: four numbers by one access."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, requests_at_most

START = """\
// y[j] = 3 * x[j]: thread i has the elements 4 * i to 4 * i + 3. n is a multiple of 4.
//
// The kernel is right, and accesses memory eight times where two accesses of 16 bytes suffice:
//
//     ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%x];
//
// Use vectors of four.

.version 8.0
.target sm_80
.address_size 64

.visible .entry triple(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p;
    .reg .u32 %i, %a, %b, %n;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %f<4>;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    shl.b32 %i, %i, 2;                 // my first element
    ld.param.u32 %n, [n];
    setp.ge.u32 %p, %i, %n;
    @%p ret;

    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    add.u64 %y, %y, %offset;
    ld.global.f32 %f0, [%x];
    ld.global.f32 %f1, [%x+4];
    ld.global.f32 %f2, [%x+8];
    ld.global.f32 %f3, [%x+12];
    mul.f32 %f0, %f0, 0f40400000;      // 3.0
    mul.f32 %f1, %f1, 0f40400000;
    mul.f32 %f2, %f2, 0f40400000;
    mul.f32 %f3, %f3, 0f40400000;
    st.global.f32 [%y], %f0;
    st.global.f32 [%y+4], %f1;
    st.global.f32 [%y+8], %f2;
    st.global.f32 [%y+12], %f3;
    ret;
}
"""
SOLUTION = changed(
    START,
    (
        "    ld.global.f32 %f0, [%x];\n    ld.global.f32 %f1, [%x+4];\n    ld.global.f32 %f2, [%x+8];\n"
        "    ld.global.f32 %f3, [%x+12];\n",
        "    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%x];\n",
    ),
    (
        "    st.global.f32 [%y], %f0;\n    st.global.f32 [%y+4], %f1;\n    st.global.f32 [%y+8], %f2;\n"
        "    st.global.f32 [%y+12], %f3;\n",
        "    st.global.v4.f32 [%y], {%f0, %f1, %f2, %f3};\n",
    ),
)
LAST = 256  # elements of the last case, whose accesses are counted


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """A quarter as many threads as elements."""
    x = random.standard_normal(n).astype(np.float32)
    right = np.float32(3) * x
    quads = right.reshape(-1, 4)
    first = np.full((n // 4, 4), np.nan, np.float32)
    first[:, 0] = quads[:, 0]
    return Case(
        -(-n // 4 // block),
        block,
        {"x": x, "y": np.full(n, np.nan, np.float32), "n": np.uint32(n)},
        expected={"y": right},
        mistakes={
            "one of four elements was written: a vector is stored by `.v4` and four registers in braces": {
                "y": first.reshape(-1)
            },
            "the elements of each four are reversed: the first register has the lowest address": {
                "y": quads[:, ::-1].reshape(-1)
            },
            "each four elements are the same: the vector names one register four times": {
                "y": np.repeat(quads[:, 0], 4)
            },
        },
    )


EXERCISE = Exercise(
    "four numbers by one access",
    START,
    SOLUTION,
    Task("triple", launch, ({"n": 128, "block": 32}, {"n": 100, "block": 32}, {"n": LAST, "block": 64})),
    hints=(
        "`.v4` comes before the type, and the four registers are in braces: `{%f0, %f1, %f2, %f3}`.",
        "The store has the address first: `st.global.v4.f32 [%y], {%f0, %f1, %f2, %f3};`",
        "One `ld.global.v4.f32` in place of the four loads, one `st.global.v4.f32` in place of the four stores; the "
        "multiplications stay.",
    ),
    needs=(
        requests_at_most(
            2 * LAST // 128, "a warp of 32 threads has 128 elements, which it loads at once and stores at once"
        ),
    ),
    advice={
        "misaligned-access": "A vector of 16 bytes is at a multiple of 16 bytes: thread i begins at element 4 * i.",
        "out-of-bounds": "The vector has four elements from its address on: add no offset to the address of the first.",
        "operand-type": "The braces have four registers, of the type that is named after `.v4`.",
        "wrong-values": "Register 0 of the vector is the element at the address, register 3 the one 12 bytes further.",
    },
)
