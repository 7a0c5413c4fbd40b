"""Chapter 2: load, compute, store."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// y[i] = 2 * x[i], a thread for each i below n.
//
// The guard is there: threads beyond the end return. What is missing is at the end: compute the
// addresses of x[i] and y[i], load, double, store. An f32 has 4 bytes.

.version 8.0
.target sm_80
.address_size 64

.visible .entry double(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %beyond;
    .reg .u32 %i, %a, %b, %n;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %value;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;

    ld.param.u32 %n, [n];
    setp.ge.u32 %beyond, %i, %n;
    @%beyond ret;

    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    // <- here

    ret;
}
"""
SOLUTION = changed(
    START,
    (
        "    // <- here\n",
        """\
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    add.u64 %y, %y, %offset;
    ld.global.f32 %value, [%x];
    add.f32 %value, %value, %value;
    st.global.f32 [%y], %value;
""",
    ),
)


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """Blocks that cover n."""
    x = random.standard_normal(n).astype(np.float32)
    empty = np.full(n, np.nan, np.float32)
    return Case(
        -(-n // block),
        block,
        {"x": x, "y": empty, "n": np.uint32(n)},
        expected={"y": 2.0 * x},
        mistakes={
            "y has the numbers of x: they are copied, and not doubled": {"y": x},
            "y has the squares: multiply by 2, or add a number to itself": {"y": (x * x).astype(np.float64)},
            "y has the half of each number": {"y": x / 2.0},
            "nothing is stored: `st.global.f32 [address], value;` writes memory, and the address comes first": {
                "y": empty
            },
        },
    )


EXERCISE = Exercise(
    "double every number",
    START,
    SOLUTION,
    Task("double", launch, ({"n": 64, "block": 32}, {"n": 100, "block": 64}, {"n": 1000, "block": 256})),
    hints=(
        "Five or six instructions: the offset of element i in bytes, two additions to make addresses of it, "
        "`ld.global`, "
        "an arithmetic instruction, `st.global`.",
        "`mul.wide.u32 %offset, %i, 4;` multiplies two numbers of 32 bits and gives 64. Add it to `%x` and to `%y` by "
        "`add.u64`.",
        "`ld.global.f32 %value, [%x];` then `add.f32 %value, %value, %value;` then `st.global.f32 [%y], %value;`",
    ),
    advice={
        "out-of-bounds": "The address is not one of an element. Is the offset `i * 4` bytes, and is it added once? "
        "Below "
        "n all elements exist, so the index is not the mistake.",
        "misaligned-access": "An f32 is at a multiple of 4 bytes: the offset is i times 4, not i.",
        "data-race": "Two threads access the same element, and one of them writes. Thread i writes y[i] alone: do the "
        "addresses depend on `%i`?",
        "wrong-values": "Element i is 4 * i bytes after the first. Which element do you load, and where do you store?",
        "changed-input": "`st.global` writes to its first operand, in brackets: the address in y.",
    },
)
