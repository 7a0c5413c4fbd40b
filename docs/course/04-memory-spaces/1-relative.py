"""Chapter 4: addresses are 64 bits."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// y[i] = x[i + shift[i]], where shift has signed numbers: some point back. All of them lead to an
// element of x.
//
// An address has 64 bits and the index 32. This kernel widens a negative index as if it were a
// large positive one.

.version 8.0
.target sm_80
.address_size 64

.visible .entry relative(.param .u64 x, .param .u64 shift, .param .u64 y, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %i, %a, %b, %n, %value;
    .reg .b64 %x, %y, %shift, %offset, %moved;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    ld.param.u32 %n, [n];
    setp.ge.u32 %p, %i, %n;
    @%p ret;

    ld.param.u64 %x, [x];
    ld.param.u64 %shift, [shift];
    ld.param.u64 %y, [y];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %shift, %shift, %offset;
    ld.global.b32 %a, [%shift];

    add.u64 %x, %x, %offset;           // &x[i]
    mul.wide.u32 %moved, %a, 4;
    add.u64 %x, %x, %moved;            // &x[i + shift[i]]
    ld.global.b32 %value, [%x];

    add.u64 %y, %y, %offset;
    st.global.b32 [%y], %value;
    ret;
}
"""
SOLUTION = changed(START, ("mul.wide.u32 %moved", "mul.wide.s32 %moved"))


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """Any element of x, from anywhere."""
    index = random.permutation(n)
    x = random.integers(0, 1 << 30, n).astype(np.uint32)
    shift = (index - np.arange(n)).astype(np.int32)
    return Case(
        -(-n // block),
        block,
        {"x": x, "shift": shift, "y": np.full(n, 0xFFFFFFFF, np.uint32), "n": np.uint32(n)},
        expected={"y": x[index]},
        mistakes={
            "these are the elements x[i]: the shift is not added to the address": {"y": x},
            "these are the elements x[|shift[i]|]: the shift is from element i, not from the first": {
                "y": x[np.abs(shift)]
            },
        },
    )


EXERCISE = Exercise(
    "an index that may be negative",
    START,
    SOLUTION,
    Task("relative", launch, ({"n": 32, "block": 32}, {"n": 100, "block": 64}, {"n": 1, "block": 32})),
    hints=(
        "The finding names the address of the access. How far is it from the array, compared with 4 * 2^32 bytes?",
        "-1 has 32 ones. Widened as an unsigned number it becomes 4294967295, widened as a signed one 64 ones: -1.",
        "`mul.wide.s32 %moved, %a, 4;`",
    ),
    advice={
        "out-of-bounds": "All shifts lead to an element, so an address is computed wrongly. What becomes of the "
        "shift -1 "
        "when it is widened to 64 bits?",
        "misaligned-access": "Elements have 4 bytes: an index is multiplied by 4 before it is added to an address.",
        "wrong-values": "The address of the element is x + 4 * (i + shift[i]).",
    },
)
