"""What orders accesses in a proof: barriers, copies, rings, lanes of a warp; each with its wrong twins."""

from __future__ import annotations

import pytest

import ptxlab
from tests.prove.kernels import kernel, needs_solver

SHARED = """
shl.b32 %r1, %t, 2; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1;
st.shared.u32 [%r2], %t;
{barrier}
xor.b32 %r3, %t, 1; shl.b32 %r3, %r3, 2; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3;
ld.shared.u32 %r5, [%r4];
mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %x; st.global.u32 [%d1], %r5;
"""


@needs_solver
def test_a_barrier_orders() -> None:
    right = ptxlab.prove(kernel(SHARED.replace("{barrier}", "bar.sync 0;")), assume=["len(x) == 64", "grid.x == 1"])
    assert right.level == "proved", str(right)
    assert "the block is 64 x 1 x 1" in right.assumptions
    wrong = ptxlab.prove(kernel(SHARED.replace("{barrier}", "")), assume=["len(x) == 64", "grid.x == 1"])
    assert wrong.level == "counterexample", str(wrong)
    assert wrong.counterexample is not None
    assert wrong.counterexample.finding.code == "data-race"


COPY = """
shl.b32 %r1, %t, 2; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1; mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %x;
cp.async.ca.shared.global [%r2], [%d1], 4;
cp.async.commit_group;
{barrier}
xor.b32 %r3, %t, {flip}; shl.b32 %r3, %r3, 2; mov.u32 %r4, tile; add.u32 %r4, %r4, %r3;
ld.shared.u32 %r5, [%r4];
"""
STORE = COPY.replace("cp.async.ca.shared.global [%r2], [%d1], 4;\ncp.async.commit_group;", "st.shared.u32 [%r2], %t;")
MATRIX = """
mov.u32 %r2, tile; and.b32 %r3, %t, 15; shl.b32 %r3, %r3, 4; add.u32 %r4, %r2, %r3;
setp.gt.u32 %p1, %t, 15;
@%p1 bra next;
st.shared.v4.u32 [%r4], {{%t, %t, %t, %t}};
next:
{barrier}
ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r5}}, [%r4];
"""
ORDERS = [
    (COPY, "cp.async.wait_group 0;\nbar.sync 0;", 1, "proved"),
    (COPY, "cp.async.wait_all;\nbar.sync 0;", 1, "proved"),
    (COPY, "cp.async.wait_group 1;\nbar.sync 0;", 1, "not-proved"),
    (COPY, "bar.sync 0;\ncp.async.wait_group 0;", 1, "not-proved"),
    (COPY, "cp.async.wait_group 0;", 1, "not-proved"),
    (COPY, "cp.async.wait_group 0;", 0, "proved"),
    (COPY, "", 0, "not-proved"),
    (STORE, "bar.warp.sync -1;", 1, "proved"),
    (STORE, "bar.warp.sync -1;", 32, "not-proved"),
    (STORE, "mov.b32 %r9, -1;\nbar.warp.sync %r9;", 1, "proved"),
    (STORE, "setp.gt.u32 %p1, %n, 3;\n@%p1 bar.sync 0;", 1, "not-proved"),
    (STORE, "setp.gt.u32 %p1, %t, 3;\nbar.red.popc.u32 %r7, 0, %p1;", 32, "proved"),
    (MATRIX, "bar.sync 0;", 0, "proved"),
    (MATRIX, "", 0, "not-proved"),
]


@needs_solver
@pytest.mark.parametrize(("text", "barrier", "flip", "level"), ORDERS)
def test_what_orders(text: str, barrier: str, flip: int, level: str) -> None:
    found = ptxlab.prove(
        kernel(text.format(barrier=barrier, flip=flip)), assume=["len(x) == 64", "grid.x == 1"], replays=False
    )
    assert found.level == level, str(found)


RING = """
mov.u32 %r2, tile; shr.u32 %r1, %t, 1; shl.b32 %r1, %r1, 2; add.u32 %r2, %r2, %r1;
and.b32 %r10, %t, 1; setp.eq.u32 %p3, %r10, 0;
mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %x;
@%p3 cp.async.ca.shared.global [%r2], [%d1], 4;
cp.async.commit_group;
mov.u32 %r3, 0;
mov.u32 %r11, tile; xor.b32 %r12, %t, 2; shr.u32 %r12, %r12, 1; shl.b32 %r12, %r12, 2; add.u32 %r11, %r11, %r12;
loop:
add.u32 %r4, %r3, 1;
setp.ge.u32 %p1, %r4, %n;
@%p1 bra last;
and.b32 %r5, %r4, 1; shl.b32 %r5, %r5, 7; add.u32 %r5, %r5, %r2;
mad.lo.u32 %r6, %r4, 64, %t; mul.wide.u32 %d2, %r6, 4; add.u64 %d2, %d2, %x;
@%p3 cp.async.ca.shared.global [%r5], [%d2], 4;
last:
cp.async.commit_group;
cp.async.wait_group 1;
bar.sync 0;
and.b32 %r7, %r3, 1; shl.b32 %r7, %r7, 7; add.u32 %r7, %r7, %r11;
ld.shared.u32 %r8, [%r7];
bar.sync 1;
mov.u32 %r3, %r4;
setp.lt.u32 %p2, %r3, %n;
@%p2 bra loop;
"""


@needs_solver
@pytest.mark.parametrize(
    ("change", "level"),
    [
        (("", ""), "proved"),
        pytest.param(("wait_group 1", "wait_group 2"), "counterexample", marks=pytest.mark.bulk),
        (("bar.sync 0;", ""), "counterexample"),
        (("bar.sync 1;", ""), "counterexample"),
    ],
)
def test_a_ring_of_two_stages(change: tuple[str, str], level: str) -> None:
    found = ptxlab.prove(kernel(RING.replace(*change)), assume=["len(x) == 64 * n", "n > 0", "grid.x == 1"])
    assert found.level == level, str(found)


@needs_solver
def test_blocks_race() -> None:
    """The grid is any: without `grid.x == 1`, blocks write the same elements."""
    found = ptxlab.prove(kernel(SHARED.replace("{barrier}", "bar.sync 0;")), assume="len(x) == 64", replays=False)
    assert found.level == "not-proved"
    assert [gap.kind for gap in found.gaps] == ["race global"]


REDUCTION = """
shl.b32 %r1, %t, 2; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1;
st.shared.u32 [%r2], %t;
mov.u32 %r3, 32;
loop:
bar.sync 0;
setp.ge.u32 %p1, %t, %r3;
@%p1 bra next;
shl.b32 %r4, %r3, 2; add.u32 %r4, %r4, %r2;
ld.shared.u32 %r5, [%r4]; ld.shared.u32 %r6, [%r2]; add.u32 %r6, %r6, %r5; st.shared.u32 [%r2], %r6;
next:
shr.u32 %r3, %r3, 1;
setp.ne.u32 %p2, %r3, 0;
@%p2 bra loop;
"""


@needs_solver
@pytest.mark.parametrize(
    ("change", "level"),
    [
        (("", ""), "proved"),
        pytest.param(("setp.ge.u32 %p1", "setp.gt.u32 %p1"), "not-proved", marks=pytest.mark.bulk),
        (("loop:\nbar.sync 0;", "bar.sync 0;\nloop:"), "not-proved"),
    ],
)
def test_a_reduction_by_halves(change: tuple[str, str], level: str) -> None:
    found = ptxlab.prove(kernel(REDUCTION.replace(*change)), replays=False, timeout=600)
    assert found.level == level, str(found)


MUTANTS = [
    (SHARED, ("st.shared.u32 [%r2], %t;", "st.shared.u32 [%r2+4], %t;")),
    (SHARED, ("st.shared.u32 [%r2], %t;", "st.shared.u16 [%r2+1], %t;")),
    (SHARED, ("shl.b32 %r1, %t, 2;", "shl.b32 %r1, %t, 1;")),
    (SHARED, ("shl.b32 %r1, %t, 2;", "shr.u32 %r1, %t, 1; shl.b32 %r1, %r1, 2;")),
    (SHARED, ("mul.wide.u32 %d1, %t, 4;", "mul.wide.u32 %d1, %t, 8;")),
    (SHARED, ("mul.wide.u32 %d1, %t, 4;", "and.b32 %t, %t, 62; mul.wide.u32 %d1, %t, 4;")),
    (SHARED, ("{barrier}", "setp.ne.u32 %p1, %t, 0;\n@%p1 bra next;\n{barrier}\nnext:")),
    (REDUCTION, ("mov.u32 %r3, 32;", "mov.u32 %r3, 64;")),
    (REDUCTION, ("mov.u32 %r3, 32;", "mov.u32 %r3, 33;")),
    (REDUCTION, ("@%p1 bra next;", "")),
    (REDUCTION, ("shl.b32 %r4, %r3, 2;", "shl.b32 %r4, %r3, 1;")),
]


@needs_solver
@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(("text", "change"), MUTANTS)
def test_no_mutant_is_proved(text: str, change: tuple[str, str]) -> None:
    assert change[0] in text
    changed = text.replace(*change).replace("{barrier}", "bar.sync 0;")
    found = ptxlab.prove(kernel(changed), assume=["len(x) == 64", "grid.x == 1"], replays=False)
    assert found.level == "not-proved", str(found)


BUTTERFLY = """mov.u32 %r10, 1; mov.u32 %r11, 31; mov.u32 %r12, -1; mad.wide.u32 %d1, %t, 4, %x;
ld.global.u32 %r1, [%d1];
shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
add.u32 %r1, %r1, %r2;
shfl.sync.bfly.b32 %r3, %r1, 8, 31, -1;
add.u32 %r1, %r3, %r1;
shfl.sync.bfly.b32 %r4, %r1, 4, 31, -1;
max.u32 %r1, %r1, %r4;
shfl.sync.bfly.b32 %r5, %r1, 2, 31, -1;
add.u32 %r1, %r1, %r5;
shfl.sync.bfly.b32 %r6, %r1, 1, 31, -1;
add.u32 %r7, %r1, %r6;
mov.u32 %r8, tile;
shr.u32 %r9, %t, 5;
mad.lo.u32 %r8, %r9, 4, %r8;
st.shared.u32 [%r8], %r7;
"""
BUTTERFLIES = [
    (("", ""), "proved"),
    (("%r3, %r1, 8, 31", "%r3, %r1, 8, 30"), "counterexample"),
    (("add.u32 %r1, %r1, %r5", "sub.u32 %r1, %r1, %r5"), "counterexample"),
    (("bfly.b32 %r6, %r1, 1", "bfly.b32 %r6, %r1, 2"), "counterexample"),
    (("bfly.b32 %r5, %r1, 2", "down.b32 %r5, %r1, 2"), "counterexample"),
    (("add.u32 %r7, %r1, %r6;", "add.u32 %r7, %r1, %r6; add.u32 %r7, %r7, %t;"), "counterexample"),
    (("shfl.sync.bfly.b32 %r5, %r1,", "shfl.sync.bfly.b32 %r5, %r2,"), "counterexample"),
    (("shr.u32 %r9, %t, 5;", "shr.u32 %r9, %t, 6;"), "counterexample"),
    (
        (
            "%r6, %r1, 1, 31, -1;\nadd.u32 %r7, %r1",
            "%r6|%p1, %r1, %r10, %r11, %r12;\nmov.b32 %r13, %r1;\nmov.b32 %r6, %r6;\nadd.u32 %r7, %r13",
        ),
        "proved",
    ),  # as nvcc writes it
    (("%r6, %r1, 1, 31, -1;", "%r6|%p1, %r1, %r10, %r10, %r12;"), "counterexample"),
]


@needs_solver
@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize(("change", "level"), BUTTERFLIES)
def test_lanes_that_store_one_value(change: tuple[str, str], level: str) -> None:
    """After a butterfly of shuffles all lanes of a warp have one value, and may store it to one address."""
    assert change[0] in BUTTERFLY
    found = ptxlab.prove(kernel(BUTTERFLY.replace(*change)), assume=["len(x) == 64", "grid.x == 1"])
    assert found.level == level, str(found)


STAGES = """mov.u32 %r1, -1; mov.u32 %r2, 0; and.b32 %r5, %t, 31; setp.lt.u32 %p3, %t, 32; mov.u32 %r6, tile;
mad.lo.u32 %r6, %r5, 4, %r6;
loop:
add.s32 %r3, %r1, 1; setp.gt.s32 %p1, %r3, 1; selp.b32 %r1, 0, %r3, %p1;
mad.lo.s32 %r4, %r1, 128, %r6;
@%p3 st.shared.u32 [%r4], %t;
add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, %n;
@%p2 bra loop;
"""


@needs_solver
@pytest.mark.parametrize(("last", "is_proved"), [(1, True), (2, False)])
def test_a_stage_that_starts_before_the_first(last: int, is_proved: bool) -> None:
    """As compilers have it: -1, 0, 1, 0, 1. With three stages the third is after the end of the array."""
    found = ptxlab.prove(kernel(STAGES.replace("%r3, 1; selp", f"%r3, {last}; selp")), replays=False)
    assert (found.level == "proved") is is_proved, str(found)


COPIED = """mad.wide.u32 %d1, %t, 4, %x;
mov.u32 %r1, tile;
mad.lo.u32 %r1, %t, 4, %r1;
cp.async.ca.shared.global [%r1], [%d1], 4;
"""


@needs_solver
@pytest.mark.parametrize(("wait", "level"), [("cp.async.wait_all;", "proved"), ("", "not-proved")])
def test_a_copy_under_way_when_the_kernel_ends(wait: str, level: str) -> None:
    found = ptxlab.prove(kernel(COPIED + wait), assume="len(x) == 64", replays=False)
    assert found.level == level, str(found)


@needs_solver
@pytest.mark.parametrize(("bytes", "level"), [(4, "proved"), (8, "not-proved")])
def test_bytes_of_a_copy_by_two_choices(bytes: int, level: str) -> None:
    """As Triton copies rows: none where the row or the column is not there."""
    read = (
        f"setp.lt.u32 %p1, %t, %n; setp.lt.u32 %p2, %t, 60; selp.b32 %r2, {bytes}, 0, %p1; selp.b32 %r2, %r2, 0, %p2;"
    )
    copy = read + COPIED.replace("], 4;", "], 4, %r2;") + "cp.async.wait_all;"
    found = ptxlab.prove(kernel(copy), assume="n <= len(x)", replays=False)
    assert found.level == level, str(found)


ONLY_FIRST = """
shl.b32 %r1, %t, 2; mov.u32 %r2, tile; add.u32 %r2, %r2, %r1; mul.wide.u32 %d1, %t, 4; add.u64 %d1, %d1, %x;
setp.gt.u32 %p4, %n, 1;
@%p4 cp.async.ca.shared.global [%r2], [%d1], 4;
cp.async.commit_group;
mov.u32 %r3, 0;
outer: setp.ne.u32 %p1, %r3, 0; @%p1 bra skip;
mov.u32 %r4, 0;
inner: add.u32 %r4, %r4, 1; setp.le.u32 %p2, %r4, %r3; @%p2 bra inner;
skip: add.u32 %r3, %r3, 1; setp.lt.u32 %p3, %r3, %n; @%p3 bra outer;
"""


@needs_solver
def test_a_loop_that_was_left_in_an_earlier_turn() -> None:
    """What held where the inner loop was left says nothing of the turn in which the outer one is."""
    found = ptxlab.prove(kernel(ONLY_FIRST), assume=["len(x) == 64", "grid.x == 1"], replays=False)
    assert [gap.kind for gap in found.gaps] == ["exit"], str(found)
