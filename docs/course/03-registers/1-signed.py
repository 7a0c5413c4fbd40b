"""Chapter 3: the type is in the instruction, not in the register."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// y[i] is x[i], but at least lo and at most hi. Numbers are signed: s32.
//
// Predicates choose between values: `selp d, a, b, p` is d = p ? a : b. The kernel is right as
// long as no number is negative, and wrong otherwise. Why?

.version 8.0
.target sm_80
.address_size 64

.visible .entry clamp(.param .u64 x, .param .u64 y, .param .s32 lo, .param .s32 hi, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %i, %a, %b, %n, %value, %lo, %hi;
    .reg .b64 %x, %y, %offset;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    ld.param.u32 %n, [n];
    setp.ge.u32 %p, %i, %n;
    @%p ret;

    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.b32 %lo, [lo];
    ld.param.b32 %hi, [hi];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    add.u64 %y, %y, %offset;
    ld.global.b32 %value, [%x];

    setp.lt.u32 %p, %value, %lo;
    selp.b32 %value, %lo, %value, %p;
    setp.gt.u32 %p, %value, %hi;
    selp.b32 %value, %hi, %value, %p;

    st.global.b32 [%y], %value;
    ret;
}
"""
SOLUTION = changed(START, ("setp.lt.u32", "setp.lt.s32"), ("setp.gt.u32", "setp.gt.s32"))


def launch(random: np.random.Generator, n: int, block: int, lo: int, hi: int) -> Case:
    """Numbers on both sides of 0."""
    x = random.integers(-100, 100, n).astype(np.int32)
    unsigned, bits = x.astype(np.uint32), np.array([lo, hi]).astype(np.int32).view(np.uint32)
    after_first = np.where(unsigned < bits[0], bits[0], unsigned)
    before_first = np.where(x < lo, lo, x).astype(np.int32).view(np.uint32)
    return Case(
        -(-n // block),
        block,
        {"x": x, "y": np.full(n, -0x55555555, np.int32), "lo": np.int32(lo), "hi": np.int32(hi), "n": np.uint32(n)},
        expected={"y": np.clip(x, lo, hi)},
        mistakes={
            "these are the values of two comparisons of unsigned numbers, for which -1 is 4294967295 and so larger "
            "than "
            "any hi": {"y": np.where(after_first > bits[1], bits[1], after_first).view(np.int32)},
            "the comparison with lo is right; the one with hi is of unsigned numbers still": {
                "y": np.where(before_first > bits[1], bits[1], before_first).view(np.int32)
            },
            "the comparison with hi is right; the one with lo is of unsigned numbers still": {
                "y": np.minimum(after_first.view(np.int32), hi)
            },
            "numbers below lo stay as they are": {"y": np.minimum(x, hi)},
            "numbers above hi stay as they are": {"y": np.maximum(x, lo)},
        },
    )


EXERCISE = Exercise(
    "signed and unsigned",
    START,
    SOLUTION,
    Task("clamp", launch, ({"n": 32, "block": 32, "lo": -10, "hi": 10}, {"n": 500, "block": 128, "lo": -90, "hi": -5},
                           {"n": 70, "block": 64, "lo": 3, "hi": 60})),
    hints=(
        "A register of type `.b32` is 32 bits, whatever they are. The instruction says how they are to be read.",
        "As unsigned numbers, the bits of -1 are 4294967295. Which instructions of this kernel read bits as unsigned "
        "numbers, and where does it matter?",
        "`setp.lt.s32` and `setp.gt.s32` compare signed numbers. The guard may stay: i and n are not negative.",
    ),
    advice={
        "wrong-values": "Take the first wrong number, and follow it through both comparisons.",
        "out-of-bounds": "The guard compares i and n, which are below n for threads that have an element.",
    },
)  # fmt: skip
