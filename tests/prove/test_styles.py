"""Pipelines in other styles: a producer warp, two rings, results stored by bulk copies, `cp.async` in three stages."""

from __future__ import annotations

import numpy as np
import pytest

import ptxlab
from tests.prove.kernels import needs_solver

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %p<16>;
    .reg .b32 %t, %lane, %warp, %n, %i, %s, %ph, %s2, %ph2, %own, %r<32>;
    .reg .b64 %x, %y, %d<4>;
    .shared .align 128 .b8 tile[4608];
    .shared .align 128 .b8 other[4096];
    .shared .align 128 .b8 out[512];
    .shared .align 8 .b64 filled[4];
    .shared .align 8 .b64 emptied[4];
    .shared .align 8 .b64 filled2[4];
    .shared .align 8 .b64 emptied2[4];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %n, [n];
    mov.u32 %t, %tid.x;
    and.b32 %lane, %t, 31;
    shr.u32 %warp, %t, 5;
    mov.u32 %i, 0;
    mov.u32 %s, 0;
    mov.u32 %ph, 0;
    mov.u32 %s2, 0;
    mov.u32 %ph2, 0;
    sub.u32 %own, %t, 32;
    setp.eq.u32 %p0, %t, 0;
    setp.eq.u32 %p1, %n, 0;
    setp.eq.u32 %p2, %warp, 0;
    setp.eq.u32 %p3, %lane, 0;
"""
SYNCHRONIZED = "    bar.warp.sync -1;\n"
END = "end:\n    ret;\n}\n"


def initialized(name: str, count: int, stages: int) -> str:
    return "".join(f"    @%p0 mbarrier.init.shared.b64 [{name}+{8 * stage}], {count};\n" for stage in range(stages))


def wait(name: str, stage: str, parity: str) -> str:
    return f"""    mov.u32 %r0, {name};
    mad.lo.u32 %r0, {stage}, 8, %r0;
wait_{name}:
    mbarrier.try_wait.parity.shared.b64 %p9, [%r0], {parity};
    @!%p9 bra wait_{name};
"""


def advance(stage: str, parity: str, stages: int) -> str:
    return f"""    add.u32 {stage}, {stage}, 1;
    setp.eq.u32 %p8, {stage}, {stages};
    @%p8 mov.u32 {stage}, 0;
    @%p8 xor.b32 {parity}, {parity}, 1;
"""


def fill(name: str, buffer: str, stage: str) -> str:
    return f"""    mov.u32 %r1, {name};
    mad.lo.u32 %r1, {stage}, 8, %r1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256;
    mov.u32 %r2, {buffer};
    mad.lo.u32 %r2, {stage}, 256, %r2;
    mul.lo.u32 %r3, %i, 256;
    cvt.u64.u32 %d0, %r3;
    add.u64 %d0, %x, %d0;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 256, [%r1];
"""


def load(buffer: str, stage: str, register: str) -> str:
    return f"""    mov.u32 %r4, {buffer};
    mad.lo.u32 %r4, {stage}, 256, %r4;
    mad.lo.u32 %r4, %own, 4, %r4;
    ld.shared.b32 {register}, [%r4];
"""


def give_back(name: str, stage: str) -> str:
    return f"""    mov.u32 %r8, {name};
    mad.lo.u32 %r8, {stage}, 8, %r8;
    @%p3 mbarrier.arrive.shared.b64 _, [%r8];
"""


def again(label: str) -> str:
    return f"    add.u32 %i, %i, 1;\n    setp.lt.u32 %p5, %i, %n;\n    @%p5 bra {label};\n"


STORE = """    mad.lo.u32 %r7, %i, 64, %own;
    mul.wide.u32 %d1, %r7, 4;
    add.u64 %d1, %y, %d1;
    st.global.b32 [%d1], %r6;
"""
BULK_STORE = """    and.b32 %r9, %i, 1;
    mov.u32 %r10, out;
    mad.lo.u32 %r10, %r9, 256, %r10;
    setp.eq.u32 %p6, %own, 0;
    @%p6 cp.async.bulk.wait_group.read 1;
    barrier.sync.aligned 1, 64;
    mad.lo.u32 %r11, %own, 4, %r10;
    st.shared.b32 [%r11], %r6;
    fence.proxy.async.shared::cta;
    barrier.sync.aligned 1, 64;
    mul.lo.u32 %r12, %i, 256;
    cvt.u64.u32 %d2, %r12;
    add.u64 %d2, %y, %d2;
    @%p6 cp.async.bulk.global.shared::cta.bulk_group [%d2], [%r10], 256;
    @%p6 cp.async.bulk.commit_group;
"""
BEGIN = "    bar.sync 0;\n    @%p1 bra end;\n"


def of_a_warp() -> str:
    """All lanes of a warp wait, one of them copies: four stages."""
    return "".join([
        HEAD, initialized("filled", 1, 4), initialized("emptied", 2, 4), BEGIN, "    @!%p2 bra readers;\n",
        "    mov.u32 %ph, 1;\ncopies:\n", wait("emptied", "%s", "%ph"), SYNCHRONIZED, "    @!%p3 bra next;\n",
        fill("filled", "tile", "%s"), "next:\n", SYNCHRONIZED, advance("%s", "%ph", 4), again("copies"),
        "    bra.uni end;\nreaders:\n", wait("filled", "%s", "%ph"), load("tile", "%s", "%r6"), STORE, SYNCHRONIZED,
        give_back("emptied", "%s"), advance("%s", "%ph", 4), again("readers"), END,
    ])  # fmt: skip


def of_two_rings() -> str:
    """One loop with two rings, of two and of three stages."""
    return "".join([
        HEAD, initialized("filled", 1, 2), initialized("emptied", 2, 2), initialized("filled2", 1, 3),
        initialized("emptied2", 2, 3), BEGIN, "    @!%p2 bra readers;\n    @!%p3 bra end;\n",
        "    mov.u32 %ph, 1;\n    mov.u32 %ph2, 1;\ncopies:\n", wait("emptied", "%s", "%ph"),
        fill("filled", "tile", "%s"), wait("emptied2", "%s2", "%ph2"), fill("filled2", "other", "%s2"),
        advance("%s", "%ph", 2), advance("%s2", "%ph2", 3), again("copies"), "    bra.uni end;\nreaders:\n",
        wait("filled", "%s", "%ph"), load("tile", "%s", "%r5"), wait("filled2", "%s2", "%ph2"),
        load("other", "%s2", "%r6"), "    add.u32 %r6, %r6, %r5;\n", STORE, SYNCHRONIZED, give_back("emptied", "%s"),
        give_back("emptied2", "%s2"), advance("%s", "%ph", 2), advance("%s2", "%ph2", 3), again("readers"), END,
    ])  # fmt: skip


def with_bulk_stores() -> str:
    """Results leave by bulk copies, from two buffers in turns."""
    return "".join([
        HEAD, initialized("filled", 1, 3), initialized("emptied", 2, 3), BEGIN,
        "    @!%p2 bra readers;\n    @!%p3 bra end;\n    mov.u32 %ph, 1;\ncopies:\n", wait("emptied", "%s", "%ph"),
        fill("filled", "tile", "%s"), advance("%s", "%ph", 3), again("copies"), "    bra.uni end;\nreaders:\n",
        wait("filled", "%s", "%ph"), load("tile", "%s", "%r6"), SYNCHRONIZED, give_back("emptied", "%s"), BULK_STORE,
        advance("%s", "%ph", 3), again("readers"), "    @%p6 cp.async.bulk.wait_group.read 0;\n", END,
    ])  # fmt: skip


def copied(turn: str, guard: str) -> str:
    return f"""    mov.u32 %r2, tile;
    mad.lo.u32 %r2, %s2, 1536, %r2;
    mad.lo.u32 %r2, %t, 16, %r2;
    mad.lo.u32 %r3, {turn}, 96, %t;
    mul.wide.u32 %d0, %r3, 16;
    add.u64 %d0, %x, %d0;
    {guard} cp.async.cg.shared.global [%r2], [%d0], 16;
    cp.async.commit_group;
    add.u32 %s2, %s2, 1;
    setp.eq.u32 %p8, %s2, 3;
    @%p8 mov.u32 %s2, 0;
"""


GROUPS = """    cp.async.wait_group 1;
    bar.sync 0;
"""


def of_groups() -> str:
    """`cp.async` in three stages: the last groups of copies are empty, so none is under way after the loop."""
    return "".join([
        HEAD, "    @%p1 bra end;\n", copied("%i", ""), "    setp.gt.u32 %p4, %n, 1;\n    mov.u32 %r13, 1;\n",
        copied("%r13", "@%p4"), "turns:\n", GROUPS, """    xor.b32 %r14, %t, 64;
    setp.ge.u32 %p7, %r14, 96;
    @%p7 mov.u32 %r14, %t;
    mov.u32 %r4, tile;
    mad.lo.u32 %r4, %s, 1536, %r4;
    mad.lo.u32 %r4, %r14, 16, %r4;
    ld.shared.b32 %r6, [%r4];
    mad.lo.u32 %r7, %i, 96, %t;
    mul.wide.u32 %d1, %r7, 4;
    add.u64 %d1, %y, %d1;
    st.global.b32 [%d1], %r6;
    add.u32 %r15, %i, 2;
    setp.lt.u32 %p4, %r15, %n;
""", copied("%r15", "@%p4"), """    add.u32 %s, %s, 1;
    setp.eq.u32 %p8, %s, 3;
    @%p8 mov.u32 %s, 0;
""", again("turns"), END])  # fmt: skip


def elected() -> str:
    """The lane that copies, and the one that gives a stage back, are elected."""
    return of_a_warp().replace(SECOND, ELECT + SECOND).replace("    mov.u32 %r8", ELECT + "    mov.u32 %r8")


ELECT = "    elect.sync _|%p3, -1;\n"
SECOND = SYNCHRONIZED + "    @!%p3 bra next;\n"
ROWS = (64, 64)
WIDE = (384, 96)
BARRIER = "    barrier.sync.aligned 1, 64;\n"
KERNELS = [
    (of_a_warp(), ROWS, True, None),
    (of_a_warp().replace("    mov.u32 %ph, 1;\n", ""), ROWS, False, "hang"),
    (of_a_warp().replace(SECOND, "    @!%p3 bra next;\n"), ROWS, False, None),  # other lanes may miss their phase
    (of_a_warp().replace(SYNCHRONIZED + "    mov.u32 %r8", "    mov.u32 %r8"), ROWS, False, "data-race"),
    (of_a_warp().replace("b64 _, [%r1], 256", "b64 _, [%r1], 128"), ROWS, False, "hang"),
    (of_a_warp().replace("%s, 256, %r2", "%s, 128, %r2"), ROWS, False, "data-race"),
    (elected(), ROWS, True, None),
    (
        elected().replace("    @!%p2 bra readers", "    setp.lt.u32 %p2, %warp, 2;\n    @!%p2 bra readers"),
        ROWS,
        False,
        None,
    ),
    (elected().replace("_|%p3, -1", "_|%p3, 3"), ROWS, False, "bad-membermask"),
    (of_two_rings(), ROWS, True, None),
    (of_two_rings().replace("%r8, emptied2", "%r8, emptied"), ROWS, False, "hang"),
    (of_two_rings().replace(wait("filled2", "%s2", "%ph2"), ""), ROWS, False, "data-race"),
    (of_two_rings().replace("    mov.u32 %ph2, 1;\n", ""), ROWS, False, "hang"),
    (of_two_rings().replace("%s2, 3;", "%s2, 2;", 1), ROWS, False, "hang"),  # in the producer only
    (with_bulk_stores(), ROWS, True, None),
    (with_bulk_stores().replace("    @%p6 cp.async.bulk.wait_group.read 1;\n", ""), ROWS, False, "data-race"),
    (with_bulk_stores().replace("wait_group.read 1", "wait_group.read 2"), ROWS, False, "data-race"),
    (with_bulk_stores().replace("    fence.proxy.async.shared::cta;\n", ""), ROWS, False, "missing-proxy-fence"),
    (with_bulk_stores().replace(BARRIER + "    mad", "    mad"), ROWS, False, "data-race"),
    (with_bulk_stores().replace(BARRIER + "    mul", "    mul"), ROWS, False, "data-race"),
    (with_bulk_stores().replace("%r9, %i, 1", "%r9, %i, 0"), ROWS, False, "data-race"),
    (with_bulk_stores().replace("    @%p6 cp.async.bulk.wait_group.read 0;\n", ""), ROWS, False, None),
    (of_groups(), WIDE, True, None),
    (of_groups().replace("wait_group 1", "wait_group 2"), WIDE, False, "data-race"),
    (of_groups().replace(GROUPS, "    cp.async.wait_group 1;\n"), WIDE, False, "data-race"),
    (of_groups().replace(GROUPS, "".join(reversed(GROUPS.splitlines(keepends=True)))), WIDE, False, "data-race"),
    (of_groups().replace("%s2, 3;", "%s2, 2;"), WIDE, False, "data-race"),
    (of_groups().replace("@%p4 cp", "cp").replace("%r15, 96", "0, 96").replace("%r13, 96", "0, 96"), WIDE, False, None),
]


@needs_solver
@pytest.mark.bulk(one_in=9)
@pytest.mark.parametrize(("text", "extents", "is_right", "code"), KERNELS)
def test_pipelines_in_other_styles(text: str, extents: tuple[int, int], is_right: bool, code: str | None) -> None:
    assert is_right or text not in [right for right, _, one, _ in KERNELS if one]
    kernel = ptxlab.parse(text, "style.ptx")["kernel"]
    read, written = extents
    assume = [f"len(x) == {read} * n", f"len(y) == {written} * n", "grid.x == 1", "n <= 1048576"]
    found = ptxlab.prove(kernel, block=96, assume=assume, replays=False, timeout=600)
    assert (found.level == "proved") == is_right, str(found)
    codes = set()
    for n in (1, 2, 7):
        for seed in range(2):
            args = [np.zeros(read * n, np.uint32), np.zeros(written * n, np.uint32), n]
            ran = kernel.launch(1, 96, args, device="cpu", on_error="collect", timeout=60, seed=seed)
            codes |= {one.code for one in ran.diagnostics}
    assert codes == set() if is_right else code is None or code in codes
