"""Chapter 11: values that are needed twice."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, reads_at_most

WORDS = """
Each thread has four numbers, and writes how far each is from their mean. The numbers are needed twice: for the
mean, and for the differences. This kernel reads them twice.

Read them once, and keep them in registers.
"""
START = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry center(.param .u64 x, .param .u64 y)
{
    .reg .u32 %t;
    .reg .u64 %x, %y;
    .reg .f32 %f<4>, %mean;

    mov.u32 %t, %tid.x;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mad.wide.u32 %x, %t, 16, %x;
    mad.wide.u32 %y, %t, 16, %y;

    ld.global.f32 %mean, [%x];
    ld.global.f32 %f0, [%x+4];
    add.f32 %mean, %mean, %f0;
    ld.global.f32 %f0, [%x+8];
    add.f32 %mean, %mean, %f0;
    ld.global.f32 %f0, [%x+12];
    add.f32 %mean, %mean, %f0;
    mul.f32 %mean, %mean, 0f3e800000;      // a quarter

    ld.global.f32 %f0, [%x];
    sub.f32 %f0, %f0, %mean;
    st.global.f32 [%y], %f0;
    ld.global.f32 %f0, [%x+4];
    sub.f32 %f0, %f0, %mean;
    st.global.f32 [%y+4], %f0;
    ld.global.f32 %f0, [%x+8];
    sub.f32 %f0, %f0, %mean;
    st.global.f32 [%y+8], %f0;
    ld.global.f32 %f0, [%x+12];
    sub.f32 %f0, %f0, %mean;
    st.global.f32 [%y+12], %f0;
    ret;
}
"""
FIRST = START[START.index("    ld.global.f32 %mean") : START.index("    mul.f32")]
SECOND = START[START.index("    ld.global.f32 %f0, [%x];\n    sub") : START.index("    ret;")]
SOLUTION = changed(
    START,
    (FIRST, "    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%x];\n    add.f32 %mean, %f0, %f1;\n"
     "    add.f32 %mean, %mean, %f2;\n    add.f32 %mean, %mean, %f3;\n"),
    (SECOND, "".join(f"    sub.f32 %f{i}, %f{i}, %mean;\n" for i in range(4))
     + "    st.global.v4.f32 [%y], {%f0, %f1, %f2, %f3};\n"),
)  # fmt: skip


def launch(random: np.random.Generator, n: int) -> Case:
    """Multiples of four, whose means are exact."""
    x = (4 * random.integers(-9, 10, (n, 4))).astype(np.float32)
    right = x - x.mean(axis=1, keepdims=True)
    return Case(1, n, {"x": x, "y": np.full((n, 4), np.nan, np.float32)}, expected={"y": right},
                mistakes={"the sum was subtracted, and not the mean": {"y": x - x.sum(axis=1, keepdims=True)},
                          "nothing was subtracted": {"y": x}})  # fmt: skip


EXERCISE = Exercise(
    "keep what is needed twice",
    commented(WORDS, START),
    commented(WORDS, SOLUTION),
    Task("center", launch, ({"n": 32}, {"n": 64})),
    hints=(
        "Four registers, `%f0` to `%f3`, one for each number.",
        "A register that was added is still what it was: `add.f32 %mean, %mean, %f1;` does not change `%f1`.",
        "`ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%x];` loads all four at once.",
    ),
    needs=(reads_at_most(64 * 16, "each number is needed twice, and can be kept in a register"),),
    advice={"wrong-values": "Are the numbers still in their registers when the mean is subtracted?",
            "misaligned-access": "`.v4.f32` needs an address that is a multiple of 16 bytes."},
)  # fmt: skip
