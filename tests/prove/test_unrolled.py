"""Loops over a thread's share of a grid as compilers unroll them: turns that are too many, then four at a time."""

import numpy as np
import pytest

import ptxlab
from tests.prove.kernels import kernel, needs_solver

# r1: the element; r2: the stride; r3: strides to the end; r4: turns before the rest is a multiple of 4.
START = """mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 64, %t; mov.u32 %r2, %nctaid.x; mul.lo.u32 %r2, %r2, 64;
setp.ge.s32 %p1, %r1, %n; @%p1 ret;
add.s32 %r5, %r2, %n; add.s32 %r6, %r1, %r2; not.b32 %r6, %r6; add.s32 %r5, %r5, %r6;
div.u32 %r3, %r5, %r2; add.s32 %r4, %r3, 1; and.b32 %r4, %r4, 3; setp.eq.s32 %p2, %r4, 0; @%p2 bra four;
"""
STORE = "mul.wide.s32 %d1, %r1, 4; add.s64 %d1, %d1, %x; st.global.u32 [%d1], %t; add.s32 %r1, %r1, %r2;\n"
ONE = f"one: {STORE} add.s32 %r4, %r4, -1; setp.ne.s32 %p3, %r4, 0; @%p3 bra one;\n"
FOUR = f"four: setp.lt.u32 %p4, %r3, 3; @%p4 ret;\nagain: {4 * STORE} setp.lt.s32 %p5, %r1, %n; @%p5 bra again;"
ASSUMED = ["n <= len(x)", "n + grid.x * 64 < 2147483648"]


@needs_solver
@pytest.mark.slow
def test_an_unrolled_loop_over_a_share() -> None:
    found = ptxlab.prove(kernel(START + ONE + FOUR), [np.zeros(1000, np.uint32), 1000], grid=3)
    assert found.level == "proved", str(found)
    assert "n + grid.x * 64 <= 2147483647 (from the example launch)" in found.assumptions


# By two turns: r3 as above; one turn comes first if it is even.
BY_TWO = (
    START.partition("add.s32 %r4")[0]
    + f"""and.b32 %r4, %r3, 1; setp.eq.s32 %p2, %r4, 1; @%p2 bra two;
{STORE} two: setp.gt.u32 %p4, %r2, %r5; @%p4 ret;
again: {2 * STORE} setp.lt.s32 %p5, %r1, %n; @%p5 bra again;"""
)


@needs_solver
@pytest.mark.bulk
@pytest.mark.slow
@pytest.mark.parametrize("is_right", [True, False])
def test_two_turns_at_a_time(is_right: bool) -> None:
    text = BY_TWO if is_right else BY_TWO.replace("%r4, 1; @%p2", "%r4, 0; @%p2")
    found = ptxlab.prove(kernel(text), assume=ASSUMED, replays=False, timeout=60)
    assert found.level == ("proved" if is_right else "not-proved"), str(found)


@needs_solver
@pytest.mark.bulk
@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    {"rest": ("and.b32 %r4, %r4, 3", "and.b32 %r4, %r4, 1"), "entry": ("%r3, 3; @%p4", "%r3, 2; @%p4"),
     "count": ("add.s32 %r4, %r3, 1", "mov.u32 %r4, %r3"), "distance": ("not.b32 %r6", "neg.s32 %r6"),
     "start": ("mad.lo.u32 %r1, %r1, 64", "mad.lo.u32 %r1, %r1, 32")}.values(),
)  # fmt: skip
def test_a_wrong_one(change: tuple[str, str]) -> None:
    text = START + ONE + FOUR
    assert change[0] in text
    found = ptxlab.prove(kernel(text.replace(*change)), assume=ASSUMED, replays=False, timeout=60)
    assert found.level == "not-proved", str(found)


# One thread of all reads `n` elements: four at a time, and then those that are too many.
LAST = """mov.u32 %r1, %ctaid.x; or.b32 %r1, %r1, %t; setp.ne.s32 %p1, %r1, 0; @%p1 ret;
setp.lt.s32 %p1, %n, 1; @%p1 ret; add.s32 %r2, %n, -1; and.b32 %r3, %n, 3; mov.b32 %r4, 0;
setp.lt.u32 %p2, %r2, 3; @%p2 bra rest; sub.s32 %r5, %n, %r3; mov.b64 %d1, %x;
four: st.global.u32 [%d1], %r4; st.global.u32 [%d1+4], %r4; st.global.u32 [%d1+8], %r4; st.global.u32 [%d1+12], %r4;
add.s32 %r4, %r4, 4; add.s64 %d1, %d1, 16; add.s32 %r5, %r5, -4; setp.ne.s32 %p3, %r5, 0; @%p3 bra four;
rest: setp.eq.s32 %p4, %r3, 0; @%p4 ret; mul.wide.s32 %d2, %r4, 4; add.s64 %d2, %x, %d2;
one: st.global.u32 [%d2], %r3; add.s64 %d2, %d2, 4; add.s32 %r3, %r3, -1; setp.ne.s32 %p5, %r3, 0; @%p5 bra one;"""
MASKED = ("sub.s32 %r5, %n, %r3;", "and.b32 %r5, %n, 2147483644;")  # as newer compilers have it
LAST_WRONG = [("%n, 3; mov", "%n, 7; mov"), ("%r2, 3; @%p2", "%r2, 2; @%p2"), ("%r2, %n, -1", "%r2, %n, 1"),
              ("add.s32 %r4, %r4, 4", "add.s32 %r4, %r4, 5"), ("or.b32", "and.b32"), ("%n, %r3;", "%n, 1;"),
              ("setp.eq.s32 %p4, %r3, 0; @%p4 ret;", "")]  # fmt: skip


@needs_solver
@pytest.mark.parametrize("change", [("", ""), pytest.param(MASKED, marks=pytest.mark.bulk)])
def test_turns_that_are_too_many_come_last(change: tuple[str, str]) -> None:
    found = ptxlab.prove(kernel(LAST.replace(*change)), assume="n <= len(x)", replays=False, timeout=60)
    assert found.level == "proved", str(found)


@needs_solver
@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize("change", LAST_WRONG)
def test_wrong_turns_come_last(change: tuple[str, str]) -> None:
    assert change[0] in LAST
    found = ptxlab.prove(kernel(LAST.replace(*change)), assume="n <= len(x)", replays=False, timeout=60)
    assert found.level == "not-proved", str(found)


# A warp for each row, whose columns are at `n` places in turns of four strides: `n` almost 2^31 makes them wrap around.
ROWS = """ld.param.u32 %r14, [rows]; ld.param.u32 %r13, [pitch]; mov.u32 %r1, %ctaid.x; shl.b32 %r1, %r1, 1;
shr.u32 %r2, %t, 5; add.s32 %r1, %r1, %r2; and.b32 %r2, %t, 31; setp.ge.s32 %p1, %r1, %r14; @%p1 ret;
setp.ge.s32 %p1, %r2, %n; @%p1 ret; not.b32 %r3, %r2; add.s32 %r3, %r3, %n; shr.u32 %r4, %r3, 5; add.s32 %r4, %r4, 1;
and.b32 %r4, %r4, 3; mov.u32 %r5, %r2; setp.eq.s32 %p2, %r4, 0; @%p2 bra main;
mad.lo.s32 %r6, %r13, %r1, %r2; mul.wide.s32 %d1, %r6, 4; add.s64 %d1, %x, %d1;
one: ld.global.u32 %r7, [%d1]; add.s32 %r5, %r5, 32; add.s64 %d1, %d1, 128; add.s32 %r4, %r4, -1;
setp.ne.s32 %p3, %r4, 0; @%p3 bra one;
main: setp.lt.u32 %p4, %r3, 96; @%p4 ret; mad.lo.s32 %r6, %r13, %r1, %r5;
mul.wide.s32 %d1, %r6, 4; add.s64 %d1, %x, %d1;
four: ld.global.u32 %r7, [%d1];
ld.global.u32 %r7, [%d1+128]; ld.global.u32 %r7, [%d1+256]; ld.global.u32 %r7, [%d1+384];
add.s64 %d1, %d1, 512; add.s32 %r5, %r5, 128; setp.lt.s32 %p5, %r5, %n; @%p5 bra four;"""


@needs_solver
@pytest.mark.parametrize(("room", "level"), [(0, "not-proved"), pytest.param(2048, "proved", marks=pytest.mark.bulk)])
def test_what_does_not_wrap_within_one_limit_may_within_another(room: int, level: str) -> None:
    """The number of a warp is tried as a limit of turns: what does not wrap in two turns is not known of others."""
    parameters = ".param .u64 x, .param .u32 n, .param .u32 rows, .param .u32 pitch"
    assume = ["len(x) == rows * pitch", "n <= pitch", f"n + {room} <= 2147483647"]
    found = ptxlab.prove(kernel(ROWS, parameters), assume=assume, replays=False, timeout=60)
    assert found.level == level, str(found)
