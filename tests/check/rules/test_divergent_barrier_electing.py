"""`divergent-barrier` where one warp elects a lane and the others take another branch."""

import pytest

from ..lints import findings, kernel, line_of

CODE = "divergent-barrier"
TILE = ".shared .align 16 .b8 tile[1024];"


# `if (warp == 4 && elect()) ... else if (CONDITION) { collective }`: the collective is under both branches.
ELECTING = """
    mov.u32 %r1, %tid.x;
    {warp}
    setp.ne.u32 %p1, %r2, 4;
    @%p1 bra else;
    elect.sync _|%p2, -1;
    @!%p2 bra else;
    st.shared.u32 [tile], %r1;
    bra after;
else:
    {condition}
    @%p3 bra after;
    {collective}
after:"""
# The same, with one branch on both conditions.
ELECTING_AT_ONCE = """
    mov.u32 %r1, %tid.x;
    {warp}
    setp.eq.u32 %p1, %r2, 4;
    elect.sync _|%p2, -1;
    and.pred %p4, %p1, %p2;
    @%p4 bra elected;
    {condition}
    @%p3 bra after;
    {collective}
    bra after;
elected:
    st.shared.u32 [tile], %r1;
after:"""
WARP = {
    "shifted": "shr.u32 %r2, %r1, 5;",
    "of lane 0": "shr.u32 %r3, %r1, 5;\n    shfl.sync.idx.b32 %r2|%p5, %r3, 0, 31, -1;",
    "divided": "div.u32 %r2, %r1, 32;",
}
WITHOUT_WARP_4 = {
    "the first four": "setp.gt.u32 %p3, %r1, 127;",
    "signed": "setp.ge.s32 %p3, %r1, 128;",
    "one warp": "setp.ne.u32 %p3, %r2, 1;",
    "two conditions": "setp.gt.u32 %p6, %r1, 127;\n    setp.eq.u32 %p7, %r2, 0;\n    or.pred %p3, %p6, %p7;",
    "its quarter": "and.b32 %r4, %r1, 480;\n    add.u32 %r4, %r4, -64;\n    setp.ne.u32 %p3, %r4, 0;",
}
WITH_WARP_4 = {
    "the first five": "setp.gt.u32 %p3, %r1, 159;",
    "all but one": "setp.eq.u32 %p3, %r2, 1;",
    "of each four": "and.b32 %r4, %r2, 3;\n    setp.ne.u32 %p3, %r4, 0;",
    "by a parameter": "ld.param.u32 %r4, [n];\n    setp.ge.u32 %p3, %r2, %r4;",
}


def electing(text: str, warp: str, condition: str, collective: str) -> str:
    body = text.format(warp=WARP[warp], condition=condition, collective=collective)
    return kernel(body, target="sm_90a", before=TILE)


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("collective", ["wgmma.fence.sync.aligned;", "bar.sync 1, 128;"])
@pytest.mark.parametrize("warp", WARP)
@pytest.mark.parametrize("name", WITHOUT_WARP_4)
@pytest.mark.parametrize("form", [ELECTING, ELECTING_AT_ONCE])
def test_an_electing_warp_that_never_gets_there_is_not_missed(form: str, name: str, warp: str, collective: str) -> None:
    assert findings(electing(form, warp, WITHOUT_WARP_4[name], collective), CODE) == []


@pytest.mark.parametrize("warp", WARP)
@pytest.mark.parametrize("name", WITH_WARP_4)
@pytest.mark.parametrize("form", [ELECTING, ELECTING_AT_ONCE])
def test_an_electing_warp_that_gets_there_is_missed(form: str, name: str, warp: str) -> None:
    text = electing(form, warp, WITH_WARP_4[name], "wgmma.fence.sync.aligned;")
    (found,) = findings(text, CODE)
    assert found.line == line_of(text, "wgmma.fence")


def test_rows_of_a_block_may_be_in_any_warp() -> None:
    """With `%tid.y`, thread 4 * 32 of the block can have any `%tid.x`."""
    text = electing(ELECTING, "shifted", WITHOUT_WARP_4["the first four"], "wgmma.fence.sync.aligned;")
    (found,) = findings(text.replace("mov.u32 %r1, %tid.x;", "mov.u32 %r9, %tid.y;\n    mov.u32 %r1, %tid.x;"), CODE)
    assert "needs all threads of the warp" in found.message
