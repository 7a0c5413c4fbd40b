"""Chapter 3: a loop by a predicate and a branch."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// y[i] is the greatest common divisor of a[i] and b[i], by Euclid's algorithm:
//
//     while (b != 0) { t = a % b;  a = b;  b = t; }
//
// A loop is a label, a predicate and a branch. Write it between the loads and the store; `rem.u32`
// is the remainder, `bra` the branch, and `@%p` or `@!%p` guards it. b may be 0 from the start.

.version 8.0
.target sm_80
.address_size 64

.visible .entry gcd(.param .u64 a, .param .u64 b, .param .u64 y, .param .u32 n)
{
    .reg .pred %p;
    .reg .u32 %i, %n, %a, %b, %t;
    .reg .u64 %pa, %pb, %py, %offset;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    ld.param.u32 %n, [n];
    setp.ge.u32 %p, %i, %n;
    @%p ret;

    ld.param.u64 %pa, [a];
    ld.param.u64 %pb, [b];
    ld.param.u64 %py, [y];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %pa, %pa, %offset;
    add.u64 %pb, %pb, %offset;
    add.u64 %py, %py, %offset;
    ld.global.u32 %a, [%pa];
    ld.global.u32 %b, [%pb];

    // <- the loop

    st.global.u32 [%py], %a;
    ret;
}
"""
SOLUTION = changed(
    START,
    (
        "    // <- the loop\n",
        """\
$next:
    setp.eq.u32 %p, %b, 0;
    @%p bra $done;
    rem.u32 %t, %a, %b;
    mov.u32 %a, %b;
    mov.u32 %b, %t;
    bra $next;
$done:
""",
    ),
)


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """Pairs with a common divisor, some with a zero."""
    factor = random.integers(1, 50, n)
    a, b = ((factor * random.integers(1, 200, n)).astype(np.uint32) for _ in "ab")
    b[::7] = 0
    once = np.where(b == 0, a, b)
    return Case(
        -(-n // block),
        block,
        {"a": a, "b": b, "y": np.full(n, 0xFFFFFFFF, np.uint32), "n": np.uint32(n)},
        expected={"y": np.gcd(a, b)},
        mistakes={
            "y has the numbers of a: the loop is missing, or leaves before its first iteration": {"y": a},
            "each thread made one iteration: the branch back to the label is missing, or is never taken": {"y": once},
            "all are 0: what is stored is the remainder at the end; the divisor is in the other number": {"y": a * 0},
        },
    )


EXERCISE = Exercise(
    "a loop",
    START,
    SOLUTION,
    Task("gcd", launch, ({"n": 32, "block": 32}, {"n": 200, "block": 64}, {"n": 1, "block": 32})),
    hints=(
        "A `while` loop has its test first: a label, `setp`, a guarded branch to a second label after the loop, the "
        "body, and a branch back.",
        "A label is a name and a colon: `$next:`. `@%p bra $done;` jumps where the predicate is true, `bra $next;` "
        "always.",
        "The body: `rem.u32 %t, %a, %b;` `mov.u32 %a, %b;` `mov.u32 %b, %t;`",
    ),
    advice={
        "hang": "The loop never ends: does the predicate change in it? b becomes 0 at some point; after the `rem`, a "
        "takes b, and b takes t.",
        "timeout": "The loop never ends: is the predicate set again in each iteration, and does b change?",
        "unknown-name": "A label is declared once, as `$done:`, and every `bra` names one.",
        "wrong-values": "Follow one pair by hand: 12 and 8 give 8 and 4, then 4 and 0, so 4.",
        "divided-by-zero": "b may be 0 from the start, so the test comes before the first `rem`.",
    },
)
