"""`divergent-barrier` where every warp finds the same from what its lanes load: what depends on the lane alone."""

import pytest

from ..lints import findings, kernel

CODE = "divergent-barrier"
LANES = {
    "masked": "and.b32 %r2, %r1, 31;",
    "remainder": "rem.u32 %r2, %r1, 32;",
    "half a warp": "rem.u32 %r2, %r1, 16;",
    "special register": "mov.u32 %r2, %laneid;",
}
OTHERS = {
    "thread": "mov.u32 %r2, %r1;",
    "two warps": "and.b32 %r2, %r1, 63;",
    "lane and warp": "and.b32 %r2, %r1, 31;\n    shr.u32 %r9, %r1, 5;\n    add.u32 %r2, %r2, %r9;",
    "another load in some warps": "and.b32 %r2, %r1, 31;\n    setp.lt.u32 %p3, %r1, 32;\n    @%p3 mov.u32 %r2, 5;",
}
TOGETHER = {
    "sum": "redux.sync.add.u32 %r4, %r3, -1;\n    setp.gt.u32 %p1, %r4, 7;",
    "vote": "setp.gt.u32 %p2, %r3, 7;\n    vote.sync.any.pred %p1, %p2, -1;",
    "butterfly": "shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;\n    setp.gt.u32 %p1, %r4, 7;",
    "prefix sum": (
        "shfl.sync.up.b32 %r4|%p2, %r3, 1, 0, -1;\n    @%p2 add.u32 %r3, %r3, %r4;\n"
        "    shfl.sync.idx.b32 %r4, %r3, 31, 31, -1;\n    setp.gt.u32 %p1, %r4, 7;"
    ),
}


def text(index: str, together: str) -> str:
    """`if (what the warp finds in a table) barrier 0; …; barrier 1`."""
    return kernel(
        f"""
    mov.u32 %r1, %tid.x;
    ld.param.u64 %rd1, [out];
    {index}
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r3, [%rd3];
    {together}
    @%p1 bra end;
    bar.sync 0;
end:
    st.global.u32 [%rd3], %r1;
    bar.sync 1;"""
    )


@pytest.mark.parametrize("together", TOGETHER)
def test_all_warps_find_the_same(together: str) -> None:
    for index in LANES.values():
        assert findings(text(index, TOGETHER[together]), CODE) == []


@pytest.mark.parametrize("index", OTHERS)
def test_warps_that_load_different_elements_are_found(index: str) -> None:
    assert len(findings(text(OTHERS[index], TOGETHER["sum"]), CODE)) == 1


@pytest.mark.parametrize("index", LANES)
def test_lanes_that_differ_are_found(index: str) -> None:
    assert len(findings(text(LANES[index], "setp.gt.u32 %p1, %r3, 7;"), CODE)) == 1


@pytest.mark.parametrize(
    ("comparison", "is_alike"),
    [
        ("lt.u32 %p1, %r1, 32", True),
        ("ge.u32 %p1, %r1, 64", True),
        ("le.u32 %p1, %r1, 31", True),
        ("gt.u32 %p1, %r1, 63", True),
        ("le.u32 %p1, %r1, 32", False),
        ("gt.u32 %p1, %r1, 64", False),
        ("lt.u32 %p1, %r1, 31", False),
        ("ge.u32 %p1, %r1, 33", False),
        ("ge.u32 %p1, %r2, %r1", False),
        ("gt.u32 %p1, %r2, %r1", True),
        ("le.u32 %p1, %r2, %r1", True),
        ("lt.u32 %p1, %r2, %r1", False),
    ],
)
def test_a_threshold_of_an_index_of_the_grid_parts_warps_or_lanes(comparison: str, is_alike: bool) -> None:
    body = f"""
    mov.u32 %r1, %tid.x;
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %ntid.x;
    mad.lo.u32 %r1, %r4, %r5, %r1;
    mov.u32 %r2, 64;
    setp.{comparison};
    @%p1 bra end;
    bar.sync 2, 32;
end:
    bar.sync 1;"""
    assert (findings(kernel(body), CODE) == []) is is_alike
