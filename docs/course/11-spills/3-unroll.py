"""Chapter 11: a loop over an array, written out."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, avoids_space, changed, commented

WORDS = """
Each thread writes its four numbers in the opposite order. It puts them on a stack in local memory, and takes
them from it: both loops count at run time, so that the stack needs addresses.

Write the loops out. Then each number has a register of its own, and nothing needs an address but x and y.
"""
START = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry reverse(.param .u64 x, .param .u64 y)
{
    .local .align 16 .b8 stack[16];
    .reg .pred %p;
    .reg .u32 %t, %i;
    .reg .u64 %x, %y, %top;
    .reg .f32 %f<4>;

    mov.u32 %t, %tid.x;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mad.wide.u32 %x, %t, 16, %x;
    mad.wide.u32 %y, %t, 16, %y;

    mov.u64 %top, stack;
    mov.u32 %i, 0;
$push:
    ld.global.f32 %f0, [%x];
    st.local.f32 [%top], %f0;
    add.u64 %x, %x, 4;
    add.u64 %top, %top, 4;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 4;
    @%p bra $push;

$pop:
    sub.u64 %top, %top, 4;
    ld.local.f32 %f0, [%top];
    st.global.f32 [%y], %f0;
    add.u64 %y, %y, 4;
    sub.u32 %i, %i, 1;
    setp.gt.u32 %p, %i, 0;
    @%p bra $pop;
    ret;
}
"""
SOLUTION = changed(
    START,
    (START[START.index("    mov.u64 %top") : START.index("    ret;")],
     "    ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%x];\n    st.global.v4.f32 [%y], {%f3, %f2, %f1, %f0};\n"),
    ("    .local .align 16 .b8 stack[16];\n", ""),
)  # fmt: skip


def launch(random: np.random.Generator, n: int) -> Case:
    """Numbers, and the same backwards."""
    x = random.standard_normal((n, 4)).astype(np.float32)
    return Case(1, n, {"x": x, "y": np.full((n, 4), np.nan, np.float32)}, expected={"y": x[:, ::-1]},
                mistakes={"the order is the one of x": {"y": x}})  # fmt: skip


EXERCISE = Exercise(
    "write the loop out",
    commented(WORDS, START),
    commented(WORDS, SOLUTION),
    Task("reverse", launch, ({"n": 32}, {"n": 64})),
    hints=(
        "Four loads to `%f0` to `%f3`, then four stores, the last number first.",
        "The offsets of the addresses are constants: `ld.global.f32 %f1, [%x+4];`",
        "Or with two instructions: `ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%x];` and a "
        "`st.global.v4.f32` with the four "
        "in the opposite order.",
    ),
    needs=(avoids_space("local", "with constants for indices, four numbers are four registers"),),
    advice={"out-of-bounds": "A thread has sixteen bytes of x and of y: offsets 0, 4, 8 and 12.",
            "wrong-values": "y has x's last number first."},
)  # fmt: skip
