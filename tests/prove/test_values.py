"""Values that threads have in common: loads of one address, stores of one value by several threads; wrong twins."""

from __future__ import annotations

import pytest

import ptxlab
from tests.prove.kernels import kernel, needs_solver

NESTED = """mov.u32 %r1, START; mov.u32 %r2, 0;
A:
INNER
@%p2 bar.sync 0;
mad.lo.u32 %r1, %r1, %r1, 1; and.b32 %r1, %r1, 63;
add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, %n; @%p3 bra A;"""
COUNTED = """mov.u32 %r3, 0;
B:
add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r1; @%p1 bra B;
setp.gt.u32 %p2, %r3, 7;"""
CHANGED = """mov.u32 %r3, %r1; mov.u32 %r4, 0;
B:
mad.lo.u32 %r3, %r3, 3, 1; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 5; @%p1 bra B;
and.b32 %r3, %r3, 4; setp.eq.u32 %p2, %r3, 0;"""
LENGTH = ["len(x) == 64"]
LOAD = "ld.global.u32 %r1, [%x]; setp.gt.u32 %p0, %r1, 5;"
OWN = "mul.wide.u32 %d0, %t, 4; add.u64 %d0, %d0, %x;"
TURNS = "mov.u32 %r2, 0;\nL:\nadd.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %t; @%p1 bra L;\nmul.wide.u32 %d0, %r2, 4;"
PLACE = "mov.u32 %r0, tile; and.b32 %r1, %t, 31; mad.lo.u32 %r1, %r1, 4, %r0; mad.lo.u32 %r2, %t, 4, %r0;"
FIRST = "st.shared.u32 [%r2], %t; bar.sync 0;"
SUM = "".join(f"shfl.sync.bfly.b32 %r4, %r3, {1 << n}, 31, -1; add.u32 %r3, %r3, %r4;\n" for n in range(5))

SHUFFLED = """mov.u32 %r0, tile; shr.u32 %r1, %t, BY; shfl.sync.idx.b32 %r2, %r1, 16, 31, -1;
mad.lo.u32 %r3, %r2, 32, %t; mul.lo.u32 %r4, %r1, 32; sub.u32 %r3, %r3, %r4; mad.lo.u32 %r3, %r3, 4, %r0;
st.shared.u32 [%r3], %t;"""


@needs_solver
@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        (f"{LOAD} @%p0 bar.sync 0;", f"{OWN} {LOAD.replace('[%x]', '[%d0]')} @%p0 bar.sync 0;", "barrier"),
        (f"{LOAD} @%p0 bar.sync 0;",
         f"setp.eq.u32 %p1, %t, 3; @%p1 st.global.u32 [%x], %t; {LOAD} @%p0 bar.sync 0;", "race global"),
        (f"{LOAD} @%p0 bar.sync 0;", f"{LOAD.replace('ld.global', 'ld.volatile.global')} @%p0 bar.sync 0;", "barrier"),
        (f"{TURNS.replace('%r2, %t', '%r2, 9')} add.u64 %d0, %d0, %x; {LOAD.replace('[%x]', '[%d0]')} @%p0 bar.sync 0;",
         f"{TURNS} add.u64 %d0, %d0, %x; {LOAD.replace('[%x]', '[%d0]')} @%p0 bar.sync 0;", "barrier"),
        (f"{PLACE} {FIRST} ld.shared.u32 %r3, [%r1]; bar.sync 0; st.shared.u32 [%r1], %r3;",
         f"{PLACE} {FIRST} ld.shared.u32 %r3, [%r2]; bar.sync 0; st.shared.u32 [%r1], %r3;", "race shared"),
        (f"{PLACE} {FIRST} ld.shared.u32 %r3, [%r1]; bar.sync 0; st.shared.u32 [%r1], %r3;",
         f"{PLACE} {FIRST} ld.shared.u32 %r3, [%r1]; add.u32 %r3, %r3, %t; bar.sync 0; st.shared.u32 [%r1], %r3;",
         "race shared"),
        (f"{PLACE} {FIRST} ld.shared.u32 %r3, [%r1];\n{SUM} bar.sync 0; st.shared.u32 [%r0], %r3;",
         f"{PLACE} {FIRST} ld.shared.u32 %r3, [%r2];\n{SUM} bar.sync 0; st.shared.u32 [%r0], %r3;", "race shared"),
        (f"{PLACE} {FIRST} ld.shared.u32 %r3, [%r0+8]; bar.sync 0; st.shared.u32 [%r0], %r3;",
         f"{PLACE} {FIRST} ld.shared.u32 %r3, [%r2]; and.b32 %r3, %r3, 63; mad.lo.u32 %r3, %r3, 4, %r0; "
         "ld.shared.u32 %r3, [%r3]; bar.sync 0; st.shared.u32 [%r0], %r3;", "race shared"),
        (SHUFFLED.replace("BY", "5"), SHUFFLED.replace("BY", "4"), "race shared"),
        *((NESTED.replace("INNER", inner).replace("START", "%n"), NESTED.replace("INNER", inner).replace("START", "%t"),
           "barrier") for inner in (COUNTED, CHANGED, CHANGED.replace("%r4, 5", "%r4, %n"))),
    ],
)  # fmt: skip
def test_values_in_common(right: str, wrong: str, kind: str) -> None:
    proved = ptxlab.prove(kernel(right), assume=LENGTH, replays=False, timeout=300)
    assert proved.level == "proved", str(proved)
    found = ptxlab.prove(kernel(wrong), assume=LENGTH, replays=False, timeout=300)
    assert kind in {gap.kind for gap in found.gaps}, str(found)


@needs_solver
@pytest.mark.parametrize(
    ("index", "condition"),
    [
        ("mul.lo.u32 %r1, %r0, %n; or.b32 %r2, %r1, %t;", "n % 64 == 0"),
        ("and.b32 %r1, %r0, 7; and.b32 %r3, %r0, -8; or.b32 %r1, %r1, %r3; mad.lo.u32 %r2, %r1, 64, %t;", "n == 64"),
    ],
)  # fmt: skip
def test_sums_by_or(index: str, condition: str) -> None:
    body = f"mov.u32 %r0, %ctaid.x; {index} mul.wide.u32 %d0, %r2, 4; add.u64 %d0, %d0, %x; st.global.u32 [%d0], %t;"
    assume = ["len(x) == grid.x * n", "n >= 64"]
    assert ptxlab.prove(kernel(body), assume=[*assume, condition], replays=False, timeout=300).level == "proved"
    assert ptxlab.prove(kernel(body), assume=[*assume[:1], "n >= 60"], replays=False, timeout=300).level == "not-proved"
