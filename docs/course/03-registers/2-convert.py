"""Chapter 3: conversions."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// x has bytes, 0 to 255. y[i] = x[i] / 255 as f32, so that 255 becomes 1.
//
// This kernel takes the bits of an integer for those of a float: `mov` changes no bits. The
// integer 255 has the bits of the float 3.6e-43.

.version 8.0
.target sm_80
.address_size 64

.visible .entry normalize(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p;
    .reg .u32 %i, %a, %b, %n, %byte;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %value;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    ld.param.u32 %n, [n];
    setp.ge.u32 %p, %i, %n;
    @%p ret;

    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    cvt.u64.u32 %offset, %i;           // a byte has an offset of i
    add.u64 %x, %x, %offset;
    ld.global.u8 %byte, [%x];          // 8 bits of memory, zeros above them
    mov.b32 %value, %byte;             // <- bits, not a number
    div.rn.f32 %value, %value, 0f437F0000;   // 255.0

    mul.wide.u32 %offset, %i, 4;
    add.u64 %y, %y, %offset;
    st.global.f32 [%y], %value;
    ret;
}
"""
SOLUTION = changed(
    START, ("mov.b32 %value, %byte;             // <- bits, not a number", "cvt.rn.f32.u32 %value, %byte;")
)


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """All bytes, and more."""
    x = np.concatenate([np.arange(256), random.integers(0, 256, n)])[-n:].astype(np.uint8)
    signed = x.view(np.int8).astype(np.float64)
    return Case(
        -(-n // block),
        block,
        {"x": x, "y": np.full(n, np.nan, np.float32), "n": np.uint32(n)},
        expected={"y": x / 255.0},
        tolerance=2e-7,
        mistakes={
            "all are nearly 0: the bits of the integer are read as a float, and were not converted": {
                "y": x.astype(np.uint32).view(np.float32) / np.float32(255)
            },
            "these are the bytes: they are converted, but not divided by 255": {"y": x.astype(np.float64)},
            "bytes from 128 on became negative: `.s8` and `.s32` read them as signed numbers": {"y": signed / 255},
            "only 0 and 1 are there: the division was one of integers, which drops the fraction": {"y": x // 255},
            "this divides by 256: then 255 does not become 1": {"y": x / 256.0},
        },
    )


EXERCISE = Exercise(
    "integers to floats",
    START,
    SOLUTION,
    Task("normalize", launch, ({"n": 32, "block": 32}, {"n": 300, "block": 128}, {"n": 64, "block": 64})),
    hints=(
        "`cvt` converts a number to another type. Its name has both types, the one of the result first.",
        "An integer may not fit into a float exactly, so the conversion says how to round: `.rn`, to the nearest.",
        "`cvt.rn.f32.u32 %value, %byte;` in place of the `mov`.",
    ),
    advice={
        "illegal-modifier": "A conversion to a float says how it rounds: `cvt.rn.f32.u32`.",
        "operand-type": "The types in the name are those of the operands, destination first: `cvt.rn.f32.u32 %value, "
        "%byte;` for an `.f32` register from a `.u32`.",
        "wrong-values": "Which float should the byte that is named become, before the division and after it?",
    },
)
