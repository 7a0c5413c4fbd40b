"""Chapter 10: two results a thread."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, kernel_on_page, reads_at_most

WORDS = """
C = A B as on the page, but a block has 16 by 8 threads for its tile of 16 by 16, and a thread has two elements
of C: in rows y and y + 8 of the tile. It copies two numbers of each tile, and then goes over them twice, once
for each of its sums.

Go over them once: a number of B in a register serves both sums.
"""
KERNEL = kernel_on_page(__file__)
LOOP = """\
    mov.u32 %i, 0;
$next{n}:
    ld.shared.f32 %f1, [%a_from];
    ld.shared.f32 %f2, [%b_from];
    fma.rn.f32 %sum{n}, %f1, %f2, %sum{n};
    add.u32 %a_from, %a_from, 4;
    add.u32 %b_from, %b_from, 64;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 16;
    @%p bra $next{n};
"""
AGAIN = """\

    add.u32 %a_from, %a_from, 448;         // from the end of row y to row y + 8
    sub.u32 %b_from, %b_from, 1024;        // to the first number of the column again
"""
COPIES = """\
    ld.global.f32 %f1, [%a];
    ld.global.f32 %f2, [%b];
    st.shared.f32 [%a_place], %f1;
    st.shared.f32 [%b_place], %f2;
    ld.global.f32 %f1, [%a_lower];         // eight rows further
    ld.global.f32 %f2, [%b_lower];
    st.shared.f32 [%a_place+512], %f1;
    st.shared.f32 [%b_place+512], %f2;
"""
INNER = KERNEL[
    KERNEL.index("    mov.u32 %i, 0;\n$next") : KERNEL.index("\n    bar.sync 0;                            // all")
]
COPY = KERNEL[
    KERNEL.index("    ld.global.f32 %f1") : KERNEL.index("    bar.sync 0;                            // both")
]
START = changed(
    KERNEL,
    (".reg .f32 %f1, %f2, %sum;", ".reg .f32 %f1, %f2, %f3, %sum0, %sum1;"),
    (".reg .u64 %a, %b, %c;", ".reg .u64 %a, %b, %c, %a_lower, %b_lower;"),
    ("    mad.lo.u32 %i, %y, 16, %x;\n",
     "    mad.wide.u32 %a_lower, %pitch, 8, %a;\n    mad.wide.u32 %b_lower, %pitch, 8, %b;\n"
     "    mad.lo.u32 %i, %y, 16, %x;\n"),
    ("    mov.f32 %sum, 0f00000000;\n", "    mov.f32 %sum0, 0f00000000;\n    mov.f32 %sum1, 0f00000000;\n"),
    (COPY, COPIES),
    (INNER, LOOP.format(n=0) + AGAIN + LOOP.format(n=1)),
    ("    mad.wide.u32 %b, %pitch, 16, %b;\n",
     "    mad.wide.u32 %b, %pitch, 16, %b;\n    add.u64 %a_lower, %a_lower, 64;\n"
     "    mad.wide.u32 %b_lower, %pitch, 16, %b_lower;\n"),
    ("    st.global.f32 [%c], %sum;\n", "    st.global.f32 [%c], %sum0;\n    mad.wide.u32 %c, %pitch, 8, %c;\n"
     "    st.global.f32 [%c], %sum1;\n"),
)  # fmt: skip
BOTH = """\
    fma.rn.f32 %sum0, %f1, %f2, %sum0;
    ld.shared.f32 %f3, [%a_from+512];
    fma.rn.f32 %sum1, %f3, %f2, %sum1;
"""
SOLUTION = changed(
    START,
    (AGAIN + LOOP.format(n=1), ""),
    ("    fma.rn.f32 %sum0, %f1, %f2, %sum0;\n", BOTH),
)


def launch(random: np.random.Generator, n: int) -> Case:
    """Small whole numbers, whose sums are exact."""
    a, b = (random.integers(-4, 5, (n, n)).astype(np.float32) for _ in range(2))
    right = a.astype(np.float64) @ b.astype(np.float64)
    upper = right.reshape(n // 16, 2, 8, n)[:, [0, 0]].reshape(n, n)
    return Case((n // 16, n // 16), (16, 8), {"a": a, "b": b, "c": np.full((n, n), np.nan, np.float32),
                "n": np.uint32(n)}, expected={"c": right}, mistakes={"rows 8 to 15 of each tile are rows 0 to 7 again: "
                "the "
                "second number of A is in row y + 8": {"c": upper}})  # fmt: skip


EXERCISE = Exercise(
    "two results a thread",
    commented(WORDS, START),
    commented(WORDS, SOLUTION),
    Task("product", launch, ({"n": 16}, {"n": 64})),
    hints=(
        "One loop with three loads from shared memory and two `fma`: one number of B, two of A.",
        "Row y + 8 of A's tile is 512 bytes after row y: `ld.shared.f32 %f3, [%a_from+512];`",
        "Remove the second loop and the two lines before it, and add to the first one "
        "`ld.shared.f32 %f3, [%a_from+512];` and `fma.rn.f32 %sum1, %f3, %f2, %sum1;`",
    ),
    needs=(reads_at_most(64**3 // 2 * 3 * 4, "three loads serve two `fma`", space="shared"),),
    advice={
        "out-of-bounds": "A tile has 1,024 bytes: rows are 64 bytes, and eight rows 512.",
        "data-race": "The barriers stay as they are: one before the loop, one after it.",
        "wrong-values": "Which of the two sums is wrong? Rows y are `%sum0`, rows y + 8 `%sum1`.",
    },
)
