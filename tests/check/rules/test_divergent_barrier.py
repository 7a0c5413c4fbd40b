"""Barriers and `.aligned` instructions under branches that depend on the thread."""

import pytest

import ptxlab

from ..lints import findings, kernel, line_of

CODE = "divergent-barrier"
MMA = """mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        {%f1, %f2, %f3, %f4}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f1, %f2, %f3, %f4};"""
FRAGMENTS = "".join(f"    mov.b32 %r{n}, 0;\n" for n in range(10, 16)) + "".join(
    f"    mov.f32 %f{n}, 0f00000000;\n" for n in range(1, 5)
)
TILE = ".shared .align 16 .b8 tile[1024];"
AFTER = """
after:
    ld.shared.u32 %r9, [tile];
    st.shared.u32 [tile+4], %r9;"""

WRONG_BLOCK = {
    "one thread": """
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra after;
    bar.sync 0;""",
    "half a block": """
    mov.u32 %r1, %tid.x;
    setp.gt.u32 %p1, %r1, 127;
    @%p1 bra after;
    bar.sync 0;""",
    "a warp": """
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra after;
    bar.sync 1;""",
    "a guard": """
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 64;
    @%p1 bar.sync 0;""",
    "a bound": """
    ld.param.u32 %r3, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r1, %r2, %r4;
    setp.ge.s32 %p1, %r5, %r3;
    @%p1 bra after;
    bar.sync 0;""",
    "one lane chosen": """
    mov.u32 %r1, %laneid;
    and.b32 %r2, %r1, 3;
    setp.ne.u32 %p1, %r2, 0;
    setp.ne.u32 %p2, %r1, 4;
    and.pred %p3, %p1, %p2;
    @%p3 bra after;
    barrier.sync 0;""",
    "data of the thread": """
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 4;
    ld.param.u64 %rd2, [out];
    add.s64 %rd3, %rd2, %rd1;
    ld.global.u32 %r2, [%rd3];
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra after;
    bar.sync 0;""",
    "ticket": """
    ld.param.u64 %rd2, [out];
    atom.global.add.u32 %r2, [%rd2], 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra after;
    bar.sync 0;""",
    "a choice made earlier": """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, 0;
    setp.ge.u32 %p1, %r1, 48;
    @%p1 bra join;
    mov.u32 %r2, 1;
join:
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra after;
    bar.sync 0;""",
    "an outer branch": """
    ld.param.u32 %r3, [n];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 48;
    @%p1 bra after;
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra after;
    bar.sync 0;""",
    "a loop that runs differently often": """
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r3, [n];
loop:
    bar.sync 0;
    add.u32 %r1, %r1, 256;
    setp.lt.u32 %p1, %r1, %r3;
    @%p1 bra loop;""",
    "a loop in steps of the block to no multiple of it": """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    ld.param.u32 %r3, [n];
    rem.u32 %r4, %r3, %r2;
    add.u32 %r4, %r3, %r4;
loop:
    bar.sync 0;
    add.u32 %r1, %r1, %r2;
    setp.lt.u32 %p1, %r1, %r4;
    @%p1 bra loop;""",
    "a loop to a multiple of the block, in other steps": """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    ld.param.u32 %r3, [n];
    mul.lo.u32 %r4, %r3, %r2;
loop:
    bar.sync 0;
    add.u32 %r1, %r1, %r3;
    setp.lt.u32 %p1, %r1, %r4;
    @%p1 bra loop;""",
    "a multiple of the block, reached by some": """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    ld.param.u32 %r3, [n];
    mul.lo.u32 %r4, %r3, %r2;
loop:
    bar.sync 0;
    add.u32 %r1, %r1, %r2;
    setp.le.u32 %p1, %r1, %r4;
    @%p1 bra loop;""",
    "a reduction": """
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 48;
    @%p1 bra after;
    barrier.red.popc.aligned.u32 %r1, 0, %p1;""",
}


@pytest.mark.parametrize("name", WRONG_BLOCK)
def test_a_barrier_that_not_all_threads_reach_is_found(name: str) -> None:
    text = kernel(WRONG_BLOCK[name] + AFTER, before=TILE)
    (found,) = findings(text, CODE)
    assert "needs all threads of the block, but not all of them get here" in found.message
    barrier = next(word for word in ("bar.sync", "barrier.sync", "barrier.red") if word in text)
    assert found.line == line_of(text, barrier)


RIGHT_BLOCK = {
    "out of the branch": """
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra next;
    st.shared.u32 [tile], %r1;
next:
    bar.sync 0;""",
    "the block decides": """
    ld.param.u32 %r3, [n];
    mov.u32 %r1, %ctaid.x;
    setp.ge.u32 %p1, %r1, %r3;
    @%p1 bra after;
    bar.sync 0;""",
    "surplus threads leave": """
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r3, [n];
    setp.ge.u32 %p1, %r1, %r3;
    @%p1 ret;
    bar.sync 0;""",
    "surplus threads leave after some work": """
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r3, [n];
    setp.lt.u32 %p1, %r1, %r3;
    @%p1 bra stay;
    st.shared.u32 [tile+8], %r1;
    ret;
stay:
    bar.sync 0;""",
    "a count": """
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 128;
    @%p1 bra after;
    bar.sync 1, 128;""",
    "both ways, warp by warp": """
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 128;
    @%p1 bra other;
    bar.sync 0;
    bra after;
other:
    bar.sync 0;""",
    "the same trips": """
    mov.u32 %r1, 0;
    ld.param.u32 %r3, [n];
loop:
    bar.sync 0;
    add.u32 %r1, %r1, 256;
    setp.lt.u32 %p1, %r1, %r3;
    @%p1 bra loop;""",
    "steps of the block to a multiple of it": """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    ld.param.u32 %r3, [n];
    add.u32 %r3, %r3, %r2;
    add.u32 %r3, %r3, -1;
    rem.u32 %r4, %r3, %r2;
    sub.u32 %r4, %r3, %r4;
    setp.ge.u32 %p1, %r1, %r4;
    @%p1 bra after;
loop:
    bar.sync 0;
    add.u32 %r1, %r1, %r2;
    setp.lt.u32 %p1, %r1, %r4;
    @%p1 bra loop;""",
    "steps of four blocks to four times as many": """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ntid.x;
    ld.param.u32 %r3, [n];
    mul.lo.u32 %r4, %r3, %r2;
    shl.b32 %r4, %r4, 2;
    mad.lo.u32 %r1, %r3, %r2, %r1;
loop:
    bar.sync 0;
    mad.lo.u32 %r1, %r2, 4, %r1;
    setp.gt.u32 %p1, %r4, %r1;
    @%p1 bra loop;""",
    "a predicate used again": """
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r3, [n];
    setp.ge.u32 %p1, %r1, 48;
    @%p1 bra join;
    st.shared.u32 [tile], %r1;
join:
    setp.eq.u32 %p1, %r3, 0;
    @%p1 bra after;
    bar.sync 0;""",
    "decided by a barrier": """
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 48;
    bar.red.or.pred %p2, 0, %p1;
    @%p2 bra after;
    bar.sync 0;""",
    "an assertion on the path of one thread": """
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r3, [n];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra join;
    setp.ne.u32 %p2, %r3, 0;
    @%p2 bra fine;
    trap;
fine:
    st.shared.u32 [tile], %r1;
join:
    bar.sync 0;""",
    "an assertion": """
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r3, [n];
    setp.lt.u32 %p1, %r1, %r3;
    @%p1 bra fine;
    trap;
fine:
    bar.sync 0;""",
}


@pytest.mark.parametrize("name", RIGHT_BLOCK)
def test_a_barrier_that_all_threads_reach_is_fine(name: str) -> None:
    assert findings(kernel(RIGHT_BLOCK[name] + AFTER, before=TILE), CODE) == []


def test_one_warp_is_the_whole_block() -> None:
    body = WRONG_BLOCK["a warp"] + AFTER
    assert findings(kernel(body, before=TILE, directives=".maxntid 32, 1, 1"), CODE) == []
    assert len(findings(kernel(body, before=TILE, directives=".maxntid 64, 1, 1"), CODE)) == 1


WRONG_WARP = {
    "half a warp": "setp.ge.u32 %p1, %r1, 16;",
    "up to a lane": "setp.gt.u32 %p1, %r1, 32;",
    "one lane": "and.b32 %r2, %r1, 31;\n    setp.ne.u32 %p1, %r2, 0;",
    "a bound": "ld.param.u32 %r3, [n];\n    setp.ge.u32 %p1, %r1, %r3;",
    "half warps": "shr.u32 %r2, %r1, 4;\n    setp.eq.u32 %p1, %r2, 1;",
    "shifted": "add.u32 %r2, %r1, 16;\n    shr.u32 %r2, %r2, 5;\n    setp.eq.u32 %p1, %r2, 1;",
    "the lane's neighbour": "shfl.sync.down.b32 %r2, %r1, 1, 31, -1;\n    setp.eq.u32 %p1, %r2, 1;",
}
RIGHT_WARP = {
    "half a block": "setp.ge.u32 %p1, %r1, 64;",
    "half a block as nvcc writes it": "setp.gt.u32 %p1, %r1, 63;",
    "turned round": "mov.u32 %r2, 64;\n    setp.le.u32 %p1, %r2, %r1;",
    "a warp": "shr.u32 %r2, %r1, 5;\n    setp.eq.u32 %p1, %r2, 1;",
    "a signed division": (
        "shr.s32 %r2, %r1, 31;\n    shr.u32 %r3, %r2, 27;\n    add.s32 %r4, %r1, %r3;\n"
        "    shr.s32 %r5, %r4, 5;\n    setp.eq.s32 %p1, %r5, 1;"
    ),
    "masked": "and.b32 %r2, %r1, 96;\n    setp.eq.u32 %p1, %r2, 32;",
    "bytes": "shl.b32 %r2, %r1, 4;\n    setp.lt.u32 %p1, %r2, 1024;",
    "a warp of the grid": (
        "mov.u32 %r2, %ctaid.x;\n    mov.u32 %r3, %ntid.x;\n    mad.lo.s32 %r4, %r2, %r3, %r1;\n"
        "    shr.u32 %r5, %r4, 5;\n    ld.param.u32 %r6, [n];\n    setp.ge.u32 %p1, %r5, %r6;"
    ),
    "lane 0 broadcasts": "shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\n    setp.eq.u32 %p1, %r2, 64;",
    "a vote": "setp.eq.u32 %p2, %r1, 3;\n    vote.sync.any.pred %p1, %p2, -1;",
    "a row of a block": "mov.u32 %r2, %tid.y;\n    setp.eq.u32 %p1, %r2, 0;",
}
ALIGNED = {
    "mma": MMA,
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [tile];",
    "bar": "bar.sync 1, 64;",
}


def under_a_branch(condition: str, instructions: str) -> str:
    """A kernel that skips the instructions where `%p1` holds, which the condition computes from `%tid.x` in `%r1`."""
    start = f"\n{FRAGMENTS}    mov.u32 %r1, %tid.x;\n    {condition}\n"
    return kernel(f"{start}    @%p1 bra after;\n    {instructions}\nafter:", before=TILE)


@pytest.mark.parametrize("aligned", ALIGNED)
@pytest.mark.parametrize("name", WRONG_WARP)
def test_an_aligned_instruction_that_a_part_of_the_warp_reaches_is_found(name: str, aligned: str) -> None:
    text = under_a_branch(WRONG_WARP[name], ALIGNED[aligned])
    (found,) = findings(text, CODE)
    written = {"mma": "mma", "ldmatrix": "ldmatrix", "bar": "bar.sync"}[aligned]
    assert found.message == f"`{written}` needs all threads of the warp, but not all of them get here"
    assert found.line == line_of(text, ALIGNED[aligned])
    place, branch, origin = found.labels
    assert place.text == "some threads of the warp miss it"
    assert branch.text == "lanes of a warp take different paths here"
    assert text[branch.span.start : branch.span.end] == "@%p1"
    assert origin.text == "`%tid.x` differs from lane to lane"


@pytest.mark.parametrize("aligned", ALIGNED)
@pytest.mark.parametrize("name", RIGHT_WARP)
def test_an_aligned_instruction_that_whole_warps_reach_is_fine(name: str, aligned: str) -> None:
    assert findings(under_a_branch(RIGHT_WARP[name], ALIGNED[aligned]), CODE) == []


def test_lanes_that_leave_early_are_missed_by_mma_though_not_by_a_barrier() -> None:
    text = under_a_branch("setp.ge.u32 %p1, %r1, 40;\n    @%p1 exit;\n    bar.sync 0;", MMA)
    text = text.replace("    @%p1 bra after;\n", "")
    (found,) = findings(text, CODE)
    assert found.line == line_of(text, "mma.sync")


def test_a_guard_of_its_own_is_where_threads_part() -> None:
    (found,) = findings(kernel(WRONG_BLOCK["a guard"] + AFTER, before=TILE), CODE)
    assert [label.text for label in found.labels] == ["warps decide differently", "`%tid.x` differs from warp to warp"]


def test_one_branch_is_one_finding() -> None:
    (found,) = findings(under_a_branch("setp.ge.u32 %p1, %r1, 40;", f"{MMA}\n    {MMA}\n    {MMA}"), CODE)
    assert found.notes == ("the same holds for 2 more instructions under this branch",)


def test_what_lanes_got_from_the_instruction_itself_is_shown_once() -> None:
    loop = f"again:\n    {ALIGNED['ldmatrix']}\n    setp.eq.u32 %p1, %r9, 0;\n    @%p1 bra again;"
    (found,) = findings(kernel(loop, before=TILE), CODE)
    shown = [label.text for label in found.labels]
    assert shown == ["some threads of the warp miss it", "lanes of a warp take different paths here"]


def test_elect_chooses_one_lane() -> None:
    body = """
    elect.sync %r1|%p1, -1;
    @!%p1 bra after;
    wgmma.fence.sync.aligned;
after:"""
    text = kernel(body, target="sm_90a")
    (found,) = findings(text, CODE)
    assert found.line == line_of(text, "wgmma.fence")
    assert found.message == "`wgmma.fence` needs all threads of the warp, but not all of them get here"
    assert found.labels[2].text == "true in one lane of the warp only"


def test_cluster_barriers_need_every_thread() -> None:
    body = """
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra after;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
after:
    st.shared.u32 [tile], %r1;"""
    text = kernel(body, target="sm_90", before=TILE)
    (found,) = findings(text, CODE)
    assert found.line == line_of(text, "barrier.cluster.arrive")
    assert findings(text.replace("    @%p1 bra after;\n", ""), CODE) == []


def test_warps_that_exit_are_not_missed_by_a_cluster_barrier() -> None:
    body = """
    mov.u32 %r1, %tid.x;
    setp.gt.u32 %p1, %r1, 127;
    @%p1 bra after;
    barrier.cluster.arrive.aligned;
    barrier.cluster.wait.aligned;
after:
    st.shared.u32 [tile], %r1;"""
    text = kernel(body, target="sm_90", before=TILE)
    assert findings(text, CODE) == []
    again = "\n    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;"
    (found,) = findings(kernel(body + again, target="sm_90", before=TILE), CODE)
    assert found.line == line_of(text, "barrier.cluster.arrive")


def test_every_aligned_instruction_needs_its_warp() -> None:
    body = """
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    ld.param.u64 %rd1, [out];
    @%p1 bra after;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd1], [tile], 128;
after:"""
    text = kernel(body, target="sm_90a", before=".shared .align 128 .b8 tile[128];")
    (found,) = findings(text, CODE)
    assert found.line == line_of(text, "tensormap.cp_fenceproxy")


@pytest.mark.parametrize(
    "loaded",
    ["ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [tile];",
     "wmma.load.c.sync.aligned.row.m16n16k16.shared.s32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [tile];"],
)  # fmt: skip
def test_each_lane_has_its_own_part_of_a_matrix(loaded: str) -> None:
    body = f"""
    {loaded}
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra after;
    bar.sync 0;
after:
    st.shared.u32 [tile], 0;"""
    text = kernel(body, before=".shared .align 16 .b8 tile[1024];")
    (found,) = findings(text, CODE)
    assert found.line == line_of(text, "bar.sync")
    assert (found.labels[-1].span.text, found.labels[-1].text) == (loaded, "each lane gets a result of its own")


@pytest.mark.parametrize(("threads", "count"), [(64, 0), (96, 1)])
def test_the_header_says_which_threads_there_are(threads: int, count: int) -> None:
    text = under_a_branch("setp.ge.u32 %p1, %r1, 70;", MMA)
    text = text.replace(".param .u32 n)", f".param .u32 n) .maxntid {threads}, 1, 1")
    assert len(findings(text, CODE)) == count


def test_a_loop_over_addresses_of_the_thread_is_silent() -> None:
    """Begin and end differ from thread to thread, the number of rounds does not."""
    text = """\
.version 8.0
.target sm_80
.entry k(.param .u64 a, .param .u32 n) {
    .reg .b64 %rd<4>;
    .reg .u32 %r<4>;
    .reg .pred %p;
    ld.param.u64 %rd1, [a];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd1, %rd1, %rd2;
    mul.wide.u32 %rd3, %r1, 4;
    add.u64 %rd3, %rd1, %rd3;
again:
    bar.sync 0;
    add.u64 %rd1, %rd1, 128;
    setp.lt.u64 %p, %rd1, %rd3;
    @%p bra again;
    ret;
}
"""
    assert ptxlab.check(ptxlab.parse(text)) == []
