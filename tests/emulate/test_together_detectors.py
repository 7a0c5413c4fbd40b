"""With detectors, lanes together find what single threads find: kernels made to mislead them, and their right twins."""

import numpy as np
import pytest

from tests.emulate.kernels import CASES, Case
from tests.emulate.test_together import compare_body
from tests.emulate.together import compare_case, compare_random

# Each has the addresses of its elements of `x` and `y` in %rd1 and %rd2, and its number in %r1; see `test_together`.
SHARED = """
    .shared .b32 s[256];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, s;
    mad.lo.u32 %r4, %r2, 4, %r3;
"""
NEIGHBOR = """
    xor.b32 %r5, %r2, {mask};
    mad.lo.u32 %r5, %r5, 4, %r3;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%rd2], %r6;
    ret;"""
STORE = "st.shared.u32 [%r4], %r1;\n"
BARRIER = "bar.sync 0;\n"
LANES = SHARED + STORE + "{sync}" + NEIGHBOR.format(mask=1)
WARPS = SHARED + STORE + "{sync}" + NEIGHBOR.format(mask=32)
# Lanes of a warp store backwards what the other warp stores, or beside it.
REVERSED = (
    SHARED
    + """
    and.b32 %r5, %r2, 31;
    shl.b32 %r5, %r5, 2;
    sub.u32 %r6, %r3, %r5;
    and.b32 %r7, %r2, 32;
    mad.lo.u32 %r6, %r7, {apart}, %r6;
    st.shared.u32 [%r6+124], %r1;
    ret;"""
)
# Even lanes store 8 bytes, odd ones 4: into these, or elsewhere.
OVERLAP = (
    SHARED
    + """
    cvt.u64.u32 %rd4, %r1;
    and.b32 %r5, %r2, 1;
    setp.eq.u32 %p1, %r5, 0;
    @%p1 st.shared.u64 [%r4], %rd4;
    @!%p1 st.shared.u32 [%r4+{offset}], %r1;
    ret;"""
)
BYTES = (
    SHARED
    + """
    add.u32 %r5, %r3, %r2;
    st.shared.u8 [%r5], %r2;
    setp.eq.u32 %p1, %r2, 9;
    @%p1 st.shared.u32 [%r3+{offset}], %r1;
    ret;"""
)
ATOMIC = SHARED + "{init}\natom.shared.add.u32 %r5, [%r3], 1;\nst.shared.u32 [%r4+{offset}], %r1;\nret;"
# Lane 7 loads from past the end of x, which has 256 elements, or from the next one.
BOUNDS = """
    mov.u32 %r4, %tid.x;
    setp.eq.u32 %p1, %r4, 7;
    @%p1 add.u64 %rd1, %rd1, {far};
    ld.global.u32 %r5, [%rd1];
    st.global.u32 [%rd2], %r5;
    ret;"""
# Lane 5 stores nothing, and lane 4 uses that, or not.
UNWRITTEN = (
    SHARED
    + """
    setp.ne.u32 %p1, %r2, {absent};
    @%p1 st.shared.u32 [%r4], %r1;
    bar.sync 0;
    xor.b32 %r5, %r2, 1;
    mad.lo.u32 %r5, %r5, 4, %r3;
    ld.shared.u32 %r6, [%r5];
    setp.eq.u32 %p2, %r2, {unused};
    selp.u32 %r6, 3, %r6, %p2;
    st.global.u32 [%rd2], %r6;
    ret;"""
)
# Two lanes store to one element of y on different ways of a branch.
DIVERGENT = """
    mov.u32 %r4, %tid.x;
    shr.u32 %r5, %r1, {shift};
    ld.param.u64 %rd4, [y];
    mad.wide.u32 %rd4, %r5, 4, %rd4;
    and.b32 %r6, %r4, 1;
    setp.eq.u32 %p1, %r6, 0;
    @%p1 bra even;
    st.global.u32 [%rd4], 1;
    bra end;
even:
    st.global.u32 [%rd4], 2;
end:
    ret;"""
# Lane 1 stores 1, then 2; lane 0 stores 2: last in the text, and first if threads run one after the other.
SAME_VALUE = (
    SHARED
    + """
    setp.eq.u32 %p1, %r2, 1;
    setp.eq.u32 %p2, %r2, 0;
    @%p1 st.shared.u32 [%r3], 1;
    @%p1 st.shared.u32 [%r3], 2;
    @%p2 st.shared.u32 [%r3+{offset}], 2;
    ret;"""
)
BLOCKS = """
    mov.u32 %r4, %tid.x;
    ld.param.u64 %rd4, [y];
    mov.u32 %r5, %ctaid.x;
    mad.lo.u32 %r4, %r5, {stride}, %r4;
    mad.wide.u32 %rd4, %r4, 4, %rd4;
    st.global.u32 [%rd4], %r1;
    ret;"""
STALE = (
    "st.global.u32 [%rd2], %r1;\nbar.sync 0;\nld.global{nc}.u32 %r4, [%rd2];\nst.global.u32 [%rd2+{far}], %r4;\nret;"
)
# Half of the threads exit before the barrier that would order what they stored.
EXITED = (
    SHARED
    + STORE
    + """
    {before}
    setp.ge.u32 %p1, %r2, 32;
    @%p1 exit;
    bar.sync 0;
    ld.shared.u32 %r6, [%r4+128];
    st.global.u32 [%rd2], %r6;
    ret;"""
)
# A tile is read by all and replaced in a loop: a barrier before, and one after.
TILES = (
    SHARED
    + """
    mov.u32 %r7, 0;
    mov.u32 %r8, 0;
tile:
    st.shared.u32 [%r4], %r7;
    bar.sync 0;
    xor.b32 %r5, %r2, 33;
    mad.lo.u32 %r5, %r5, 4, %r3;
    ld.shared.u32 %r6, [%r5];
    add.u32 %r8, %r8, %r6;
    {sync}
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p1, %r7, 3;
    @%p1 bra tile;
    st.global.u32 [%rd2], %r8;
    ret;"""
)
SCATTER = """
    ld.global.u32 %r4, [%rd1];
    and.b32 %r4, %r4, {mask};
    add.u32 %r4, %r4, {base};
    ld.param.u64 %rd4, [y];
    mad.wide.u32 %rd4, %r4, 4, %rd4;
    st.global.u32 [%rd4], %r1;
    ret;"""
ONE_LANE = """
    mov.u32 %r4, %tid.x;
    setp.{condition}.u32 %p1, %r4, 3;
    mov.u32 %r5, %ctaid.x;
    ld.param.u64 %rd4, [y];
    mad.wide.u32 %rd4, %r5, 4, %rd4;
    @%p1 st.global.u32 [%rd4], %r1;
    ret;"""
# The upper half of the threads load what the lower half replace, and only some of them do anything with it.
DEAD = """
    mov.u32 %r4, %tid.x;
    and.b32 %r5, %r4, 31;
    mov.u32 %r7, %ctaid.x;
    mad.lo.u32 %r5, %r7, 128, %r5;
    ld.param.u64 %rd4, [y];
    mad.wide.u32 %rd4, %r5, 4, %rd4;
    ld.global.u32 %r6, [%rd4];
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r4, {used};
    @!%p1 bra end;
    setp.lt.u32 %p2, %r4, 32;
    @%p2 st.global.u32 [%rd4], %r6;
    @!%p2 st.global.u32 [%rd4+256], %r6;
end:
    ret;"""
# Elements of y are replaced one after the other, after a load of the same element or of one that is `far` bytes on.
IN_PLACE = """
    ld.global.u32 %r4, [%rd2+{far}];
    {sync}
    add.u32 %r4, %r4, 3;
    st.global.u32 [%rd2], %r4;
    ld.global.u32 %r5, [%rd2];
    st.global.u32 [%rd2], %r5;
    ret;"""
# The first warp of a block loads what the second replaces, or what it replaces itself.
SHIFTED = """
    mov.u32 %r5, %tid.x;
    setp.lt.u32 %p1, %r5, 32;
    @%p1 ld.global.u32 %r4, [%rd2+{far}];
    st.global.u32 [%rd2], %r5;
    ret;"""
PAIRS = """
    ld.param.u64 %rd4, [y];
    mad.wide.u32 %rd4, %r1, {bytes}, %rd4;
    ld.global.v2.u32 {{%r4, %r5}}, [%rd4];
    ld.global.v2.u32 {{%r4, %r6}}, [%rd4];
    st.global.v2.u32 [%rd4], {{%r6, %r4}};
    ret;"""
# Stores from the second word of a page on, so that lanes are on both sides of its end; then one that is a store again.
ACROSS = """
    ld.param.u64 %rd4, [y];
    mad.wide.u32 %rd4, %r1, 4, %rd4;
    st.global.u32 [%rd4+4], %r1;
    bar.sync 0;
    setp.eq.u32 %p1, %r1, {lane};
    @%p1 st.global.u32 [%rd4+{far}], %r1;
    ret;"""
# Each has a finding.
WRONG = {
    "lanes": LANES.format(sync=""),
    "warps": WARPS.format(sync=""),
    "backwards": REVERSED.format(apart=0),
    "overlap": OVERLAP.format(offset=0),
    "bytes": BYTES.format(offset=12),
    "atomic": ATOMIC.format(init="", offset=0),
    "bounds": BOUNDS.format(far=4096),
    "alignment": BOUNDS.format(far=2),
    "unwritten": UNWRITTEN.format(absent=5, unused=99),
    "divergent": DIVERGENT.format(shift=1),
    "one value in another order": SAME_VALUE.format(offset=0),
    "blocks": BLOCKS.format(stride=32),
    "stale": STALE.format(nc=".nc", far=0),
    "exited": EXITED.format(before=""),
    "tiles": TILES.format(sync=""),
    "scatter": SCATTER.format(mask=15, base=0),
    "several lanes": ONE_LANE.format(condition="le"),
    "dead loads": DEAD.format(used=40),
    "in place": IN_PLACE.format(far=4, sync=""),
    "in place between warps": IN_PLACE.format(far=128, sync=""),
    "in place between blocks": IN_PLACE.format(far=256, sync=BARRIER),
    "shifted": SHIFTED.format(far=128),
    "blocks by one element": BLOCKS.format(stride=63),
    "pairs": PAIRS.format(bytes=0),
    "across": ACROSS.format(lane=63, far=8),
}
# Nothing is wrong, and lanes stay together.
RIGHT = {
    "lanes": LANES.format(sync=BARRIER),
    "warps": WARPS.format(sync=BARRIER),
    "backwards": REVERSED.format(apart=4),
    "overlap": OVERLAP.format(offset=256),
    "bytes": BYTES.format(offset=256),
    "bounds": BOUNDS.format(far=4),
    "unwritten": UNWRITTEN.format(absent=99, unused=98),
    "divergent": DIVERGENT.format(shift=0),
    "one value in another order": SAME_VALUE.format(offset=4),
    "blocks": BLOCKS.format(stride=64),
    "stale": STALE.format(nc="", far=0),
    "exited": EXITED.format(before=BARRIER),
    "tiles": TILES.format(sync=BARRIER),
    "scatter": SCATTER.format(mask=0, base="%r1"),
    "one lane": ONE_LANE.format(condition="eq"),
    "dead loads": DEAD.format(used=32),
    "in place": IN_PLACE.format(far=0, sync=""),
    "shifted": SHIFTED.format(far=0),
    "in place after a barrier": IN_PLACE.format(far=0, sync=BARRIER),
    "pairs": PAIRS.format(bytes=8),
    "across": ACROSS.format(lane=63, far=0),
}
# Nothing is wrong, and yet lanes together cannot be sure of it.
UNSURE = {
    "an undefined value that is discarded": UNWRITTEN.format(absent=5, unused=4),
    "the same value by all lanes": "ld.param.u64 %rd4, [y];\nst.global.u32 [%rd4], 5;\nret;",
}


def run(body: str) -> tuple[int, int]:
    """How many findings there are and how many instructions lanes execute together; the same both ways."""
    x = np.random.default_rng(1).integers(0, 1000, 256, np.uint32)
    found = compare_body(body, [x, np.zeros(512, np.uint32)], 64, 4, detectors=True)
    assert found.differs == ""
    return found.found, found.together


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("body", WRONG.values(), ids=WRONG)
def test_wrong_kernels(body: str) -> None:
    found, together = run(body)
    assert found > 0
    assert together == 0


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_their_right_twins(body: str) -> None:
    found, together = run(body)
    assert found == 0
    assert together > 0


@pytest.mark.parametrize("body", UNSURE.values(), ids=UNSURE)
def test_what_only_threads_know_to_be_right(body: str) -> None:
    assert run(body) == (0, 0)


@pytest.mark.bulk(one_in=64)
@pytest.mark.parametrize("seed", range(64))
def test_random_programs(seed: int) -> None:
    assert compare_random(seed, detectors=True).differs == ""


@pytest.mark.bulk(one_in=180)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_kernels_that_people_write(case: Case) -> None:
    assert compare_case(case, detectors=True).differs == ""
