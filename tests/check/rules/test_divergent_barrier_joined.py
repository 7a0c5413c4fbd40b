"""`divergent-barrier` where a compiler has joined two conditions: lanes of a warp arrive by different paths."""

from ..lints import findings, kernel

CODE = "divergent-barrier"
LOAD = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [tile];"


def joined(last: int) -> str:
    """`if (thread == 0) …; if (thread <= last) load; …; if (thread <= last) load;`, as nvcc writes it.

    Thread 0 jumps to the first load, as `thread <= last` is known there; a predicate keeps the answer for the second.
    """
    return kernel(
        f"""
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra others;
    st.shared.u32 [tile], %r1;
    bra.uni first;
others:
    setp.gt.u32 %p1, %r1, {last};
    mov.pred %p2, 0;
    @%p1 bra after;
first:
    {LOAD}
    mov.pred %p2, -1;
after:
    bar.sync 0;
    not.pred %p1, %p2;
    @%p1 bra end;
    {LOAD}
end:""",
        before=".shared .align 16 .b8 tile[1024];",
    )


def test_a_whole_warp_that_arrives_by_different_paths_is_fine() -> None:
    assert findings(joined(last=31), CODE) == []


def test_half_a_warp_that_arrives_by_different_paths_is_found() -> None:
    found = findings(joined(last=47), CODE)
    assert [one.message.split("`")[1] for one in found] == ["ldmatrix", "ldmatrix"]
