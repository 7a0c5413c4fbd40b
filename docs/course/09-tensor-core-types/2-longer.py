"""Chapter 9: a sum over more than one instruction has."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, executes, kernel_on_page

WORDS = """
D = A times the transpose of B, for numbers of s8. Rows of A and B have k bytes now, a multiple of 32. The
kernel multiplies the first 32 columns only.

Go along the rows: load, multiply, 32 bytes further. C of an mma is what it adds to: the accumulators stay in
the registers.
"""
START = changed(
    kernel_on_page(__file__),
    (".param .u64 d)", ".param .u64 d, .param .u32 k)"),
    (".reg .u32 %lane, %g, %t;", ".reg .u32 %lane, %g, %t, %k, %i, %lower;\n    .reg .pred %p;"),
    (".reg .u64 %a, %b, %d;", ".reg .u64 %a, %b, %d, %below;"),
    ("    ld.param.u64 %d, [d];\n", "    ld.param.u64 %d, [d];\n    ld.param.u32 %k, [k];\n"),
    ("%a, %g, 32, %a;          // row g of A: 32 bytes", "%a, %g, %k, %a;          // row g of A: k bytes"),
    ("    ld.global.b32 %r0, [%a];\n", "    shl.b32 %lower, %k, 3;\n    cvt.u64.u32 %below, %lower;\n"
     "    add.u64 %below, %a, %below;           // row g + 8\n    ld.global.b32 %r0, [%a];\n"),
    ("[%a+256];          // row g + 8", "[%below];"),
    ("[%a+272]", "[%below+16]"),
    ("%b, %g, 32, %b;          // row g of B is", "%b, %g, %k, %b;          // row g of B is"),
    ("m16n8k16.row.col.f32.f16.f16.f32", "m16n8k32.row.col.s32.s8.s8.s32"),
)  # fmt: skip
LOADS = START[START.index("    ld.global.b32 %r0") : START.index("    mad.wide.u32 %b, %g, %k")]
B_AT = START[START.index("    mad.wide.u32 %b, %g, %k") : START.index("    ld.global.b32 %r4")]
B_LOADS = START[START.index("    ld.global.b32 %r4") : START.index("    mov.b32 %d0, 0;")]
ZEROS = START[START.index("    mov.b32 %d0, 0;") : START.index("    mma.sync")]
MMA = START[START.index("    mma.sync") : START.index("    mad.wide.u32 %d, %g")]
SOLUTION = changed(
    START,
    (LOADS + B_AT + B_LOADS + ZEROS + MMA,
     B_AT + ZEROS + "    mov.u32 %i, 0;\n$next:\n" + LOADS + B_LOADS + MMA.rstrip()
     + "\n    add.u64 %a, %a, 32;\n    add.u64 %below, %below, 32;\n    add.u64 %b, %b, 32;\n    add.u32 %i, %i, 32;\n"
     "    setp.lt.u32 %p, %i, %k;\n    @%p bra $next;\n\n"),
)  # fmt: skip


def launch(random: np.random.Generator, k: int) -> Case:
    """Small whole numbers."""
    a, b = (random.integers(-100, 101, (rows, k)).astype(np.int8) for rows in (16, 8))
    left, right = a.astype(np.int64), b.T.astype(np.int64)
    mistakes = {
        "only the first 32 columns are multiplied": {"d": left[:, :32] @ right[:32]},
        "only the last 32 columns are in D: what was there before is lost. C of the mma is not D": {
            "d": left[:, -32:] @ right[-32:]},
        "the first 32 columns are multiplied each time: do the addresses move?": {
            "d": k // 32 * (left[:, :32] @ right[:32])},
    }  # fmt: skip
    return Case(1, 32, {"a": a, "b": b, "d": np.full((16, 8), -1, np.int32), "k": np.uint32(k)},
                expected={"d": left @ right}, mistakes=mistakes if k > 32 else {})  # fmt: skip


EXERCISE = Exercise(
    "a longer sum",
    commented(WORDS, START),
    commented(WORDS, SOLUTION),
    Task("tile", launch, ({"k": 32}, {"k": 96}, {"k": 256})),
    hints=(
        "A loop around the six loads and the mma; what sets the accumulators to 0 stays before it.",
        "At its end `%a`, `%below` and `%b` move by 32 bytes, and a counter decides whether there is more.",
        "`$next:` before the first load; after the mma `add.u64 %a, %a, 32;` and so on, `add.u32 %i, %i, 32;`, "
        "`setp.lt.u32 %p, %i, %k;`, `@%p bra $next;`",
    ),
    needs=(executes("mma", "the product is to come from the tensor core"),),
    advice={
        "out-of-bounds": "Does the loop end after k / 32 rounds?",
        "wrong-values": "Which columns are in the sum, and how often?",
        "hang": "Does the counter of the loop grow?",
    },
)
