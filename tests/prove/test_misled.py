"""Kernels that were once proved wrongly, each beside one that differs in a word and is right; both are run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import ptxlab
from ptxlab.prove.answers.replay import is_ruled_out
from tests.prove.kernels import needs_solver

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.const .align 4 .b32 of_const[8];
.global .align 4 .b32 of_global[8];
.visible .entry k(.param .u64 x, .param .u32 n, .param .u32 m, .param .f32 f) .maxnreg 128 {
    .reg .pred %p<8>;
    .reg .b32 %r<8>, %t, %n, %m;
    .reg .b64 %d<4>, %x;
    .shared .align 16 .b32 tile[256];
    .shared .align 8 .b64 bar;
    ld.param.u64 %x, [x];
    ld.param.u32 %n, [n];
    ld.param.u32 %m, [m];
    mov.u32 %t, %tid.x;
"""
ALL_LANES = """    st.global.u32 [%x], VALUE;"""
FIRST_TURN = """    setp.ge.u32 %p0, 0, %n;
    @%p0 ret;
    mov.u32 %r1, 0;
turn:
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra skip;
    setp.gt.u32 %p2, %m, LARGEST;
    @%p2 bra skip;
    sub.u32 %r2, %r1, %m;
    setp.lt.u32 %p3, %r2, %n;
    @%p3 bra skip;
    mov.u32 %r3, %ctaid.x;
    st.global.u32 [%x], %r3;
skip:
    bar.sync 0;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p4, %r1, %n;
    @%p4 bra turn;"""
STORED = """    mov.u32 %r1, tile;
    mad.lo.u32 %r2, %t, 4, %r1;
    st.shared.u32 [%r2], %t;
    FENCE
    bar.sync 0;
    setp.ne.u32 %p1, %t, 0;
    @%p1 ret;
    cp.async.bulk.global.shared::cta.bulk_group [%x], [%r1], 256;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;"""
FILLED = """    setp.eq.u32 %p0, %t, 0;
    mov.u32 %r1, COUNT;
    @%p0 mbarrier.init.shared.b64 [bar], %r1;
    bar.sync 0;
    @!%p0 bra wait;
    mov.u32 %r2, SIZE;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], %r2;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%x], %r2, [bar];
wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    @!%p1 bra wait;"""
READ = """    mul.wide.u32 %d1, %t, 4;
    add.u64 %d1, %d1, %x;
    st.global.u32 [%d1], %t;
    setp.eq.u32 %p0, %t, 0;
    @%p0 mbarrier.init.shared.b64 [bar], 1;
    FENCE
    bar.sync 0;
    @!%p0 ret;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%x], 256, [bar];
wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0;
    @!%p1 bra wait;"""
STRONG = """    mov.u64 %d2, 1;
    setp.eq.u32 %p1, %t, 0;
    @%p1 st.relaxed.gpu.global.STORED;
    @!%p1 ld.relaxed.gpu.global.u64 %d1, [%x];"""
NUMBERED = """    mov.u32 %r1, NUMBER;
    bar.sync %r1;"""
COUNTED = """    mov.u32 %r1, COUNT;
    bar.sync 0, %r1;"""
PARTS = """    shr.u32 %r1, %t, 5;
    add.u32 %r1, %r1, NUMBER;
    barrier.sync %r1, 32;"""

QUOTIENT = """    div.s32 %r1, %n, DIVISOR;
    mov.u32 %r2, tile;
    mad.lo.u32 %r2, %r1, 4, %r2;
    ld.shared.u32 %r3, [%r2];"""
REMAINDER = """    rem.s32 %r1, %t, DIVISOR;
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d1, %d1, %x;
    st.global.u32 [%d1], %t;"""

READ_ONLY = """    mul.wide.u32 %d1, %t, 4;
    add.u64 %d1, %d1, %x;
    st.global.u32 [%d1], %t;
    bar.sync 0;
    ld.global.ORDER.u32 %r1, [%d1];"""
UNIFORM = """    setp.eq.u32 %p1, %t, 0;
    @%p1 st.global.u32 [%x], %t;
    bar.sync 0;
    LOAD.global.u32 %r1, [%x];"""
REGISTERS = """    setp.ge.u32 %p1, %t, 128;
    @%p1 bra give;
    setmaxnreg.inc.sync.aligned.u32 TAKEN;
    bra given;
give:
    setmaxnreg.dec.sync.aligned.u32 24;
given:"""
TOGETHER = """    setp.ge.u32 %p1, %t, THREADS;
    @%p1 bra given;
    setmaxnreg.dec.sync.aligned.u32 24;
given:"""
FEWER = """    setmaxnreg.dec.sync.aligned.u32 40;
    setmaxnreg.dec.sync.aligned.u32 COUNT;"""
WRITTEN = """    setp.eq.u32 %p0, %t, 0;
    @%p0 mbarrier.init.shared.b64 [bar], 1;
    @%p0 st.shared.u64 [PLACE], 0;
    bar.sync 0;
    @%p0 mbarrier.arrive.shared.b64 _, [bar];"""
ADDED = """    setp.eq.u32 %p0, %t, 0;
    setp.eq.u32 %p1, %t, 32;
    @%p0 mbarrier.init.shared.b64 [bar], 1;
    bar.sync 0;
    @%p0 mbarrier.arrive.shared.b64 _, [bar];
    mov.u64 %d1, 1;
    @%p1 red.relaxed.cluster.shared.add.u64 [PLACE], %d1;"""
INDEXED = """    mov.b64 %d1, n;
    and.b32 %r1, %t, MASK;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d1, %d1, %d2;
    ld.param.u32 %r1, [%d1];"""
GENERIC = """    setp.eq.u32 %p0, %t, 0;
    mov.u64 %d1, of_SPACE;
    cvta.SPACE.u64 %d1, %d1;
    @%p0 st.u32 [%d1], 1;"""
FILLED_PARTLY = """    and.b32 %r1, %t, MOST;
    mov.u32 %r2, tile;
    mad.lo.u32 %r2, %t, 16, %r2;
    cp.async.cg.shared.global [%r2], [%x], 16, %r1;
    cp.async.wait_all;"""
SIGNED = """    ld.param.s32 %r1, [NAME];
    setp.lt.s32 %p1, %r1, 0;
    @%p1 st.global.u32 [%x+256], 0;"""
TAKE = """    setp.ge.u32 %p1, %t, 128;
    @%p1 bra taken;
    setmaxnreg.inc.sync.aligned.u32 160;
taken:
"""
GIVE = """    setp.lt.u32 %p1, %t, 128;
    @%p1 bra given;
    setmaxnreg.dec.sync.aligned.u32 24;
given:
"""


@dataclass(frozen=True)
class Case:
    """A kernel with a word that makes it right, and one with which it is wrong; what a run says then, if it does."""

    body: str
    word: str
    right: str
    wrong: str
    code: str
    block: int = 64
    grid: int = 1

    def text(self, word: str) -> str:
        """The kernel with a word."""
        return KERNEL + self.body.replace(self.word, word) + "\n    ret;\n}\n"


CASES = {
    "the mask of lanes that are there": Case(
        "    setp.eq.u32 %p1, %t, 3;\n    @%p1 ret;\n    activemask.b32 %r1;\n" + ALL_LANES,
        "VALUE", "5", "%r1", "data-race",
    ),
    "what does not wrap in later turns": Case(FIRST_TURN, "LARGEST", "0", "1", "data-race", grid=2),
    "a fence for global memory": Case(
        STORED, "FENCE", "fence.proxy.async.shared::cta;", "fence.proxy.async.global;", "missing-proxy-fence"
    ),
    "a fence for shared memory": Case(
        READ, "FENCE", "fence.proxy.async.global;", "fence.proxy.async.shared::cta;", "missing-proxy-fence"
    ),
    "a wait for earlier grids": Case(
        STORED, "FENCE", "fence.proxy.async;", "griddepcontrol.wait;", "missing-proxy-fence"
    ),
    "two words are not one": Case(STRONG, "STORED", "u64 [%x], %d2", "v2.u32 [%x], {%t, %t}", "data-race"),
    "a barrier that there is not": Case(NUMBERED, "NUMBER", "15", "16", "bad-barrier"),
    "a barrier for parts of warps": Case(COUNTED, "COUNT", "32", "48", "bad-barrier"),
    "a barrier of a part that there is not": Case(PARTS, "NUMBER", "14", "15", "bad-barrier"),
    "an mbarrier for no arrival": Case(
        "    setp.eq.u32 %p0, %t, 0;\n    mov.u32 %r1, COUNT;\n    @%p0 mbarrier.init.shared.b64 [bar], %r1;\n"
        "    bar.sync 0;\n    @%p0 mbarrier.arrive.shared.b64 _, [bar];",
        "COUNT", "1", "0", "bad-barrier",
    ),
    "a quotient below 0": Case(QUOTIENT, "DIVISOR", "8", "-5", "out-of-bounds"),
    "a remainder of a number below 0": Case(REMAINDER, "DIVISOR", "64", "-8", "data-race"),
    "memory that does not change": Case(READ_ONLY, "ORDER", "relaxed.gpu", "nc", "data-race"),
    "memory that does not change, for a warp": Case(UNIFORM, "LOAD", "ld", "ldu", "data-race"),
    "registers that no warp gives": Case(REGISTERS, "TAKEN", "160", "240", "hang", 256),
    "registers that are given too late": Case(
        "WHEN", "WHEN", f"{GIVE}{TAKE}    bar.sync 0;", f"{TAKE}    bar.sync 0;\n{GIVE}", "hang", 256,
    ),
    "registers of a part of a warpgroup": Case(TOGETHER, "THREADS", "128", "32", "divergent-setmaxnreg", 128),
    "registers that were given before": Case(FEWER, "COUNT", "24", "64", "", 128),
    "bytes of an mbarrier": Case(WRITTEN, "PLACE", "tile", "bar", "overwritten-mbarrier"),
    "an atomic operation on an mbarrier": Case(ADDED, "PLACE", "tile", "bar", "overwritten-mbarrier"),
    "parameters by an index": Case(INDEXED, "MASK", "0", "63", "out-of-bounds"),
    "memory that is only read": Case(GENERIC, "SPACE", "global", "const", "read-only-write"),
    "a copy of more bytes than there are": Case(FILLED_PARTLY, "MOST", "15", "31", "bad-copy-size"),
    "a float that is not an integer": Case(SIGNED, "NAME", "m", "f", "out-of-bounds"),
    "a copy of half a line": Case(FILLED.replace("COUNT", "1"), "SIZE", "256", "24", "misaligned-access"),
}  # fmt: skip


@needs_solver
@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("name", CASES)
def test_misled(name: str) -> None:
    case = CASES[name]
    for word in (case.right, case.wrong):
        block = int(word) if case.word == "COUNT" and case.body is COUNTED else case.block
        kernel = ptxlab.parse(case.text(word), "k.ptx")["k"]
        assume = ["len(x) == 64", "n < 64", *(["grid.x == 1"] if case.grid == 1 else [])]
        found = ptxlab.prove(kernel, block=block, assume=assume, replays=False)
        args = [np.zeros(64, np.uint32), 5, 1, -1.0]
        ran = kernel.launch(case.grid, block, args, device="cpu", on_error="collect").diagnostics
        codes = {one.code for one in ran if is_ruled_out(one)}
        assert codes == ({case.code} - {""} if word == case.wrong else set())
        assert found.level == ("proved" if word == case.right else "not-proved"), str(found)


@needs_solver
def test_not_emulated() -> None:
    """What an instruction does that no run shows is not known to a proof either."""
    text = KERNEL.replace("8.6", "9.1").replace("sm_90a", "sm_100a")
    for copy, level in (("cp", "proved"), ("multimem.cp", "not-proved")):
        store = f"""    setp.ne.u32 %p1, %t, 0;
    @%p1 ret;
    {copy}.async.bulk.global.shared::cta.bulk_group [%x], [tile], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;"""
        kernel = ptxlab.parse(f"{text}{store}\n    ret;\n}}\n")["k"]
        assert ptxlab.prove(kernel, block=32, assume=["len(x) == 16", "grid.x == 1"], replays=False).level == level


@needs_solver
def test_no_such_launch() -> None:
    """Of a program that is wrong, and of blocks that no GPU takes, nothing is said to be proved."""
    kernel = ptxlab.parse(KERNEL + "    ret;\n}\n")["k"]
    with pytest.raises(ptxlab.KernelError, match="at most 1024 are possible"):
        ptxlab.prove(kernel, block=2048)
    wrong = ptxlab.parse(KERNEL + "    add.u32 %r1, %r2, %d1;\n    ret;\n}\n")["k"]
    with pytest.raises(ptxlab.PtxError):
        ptxlab.prove(wrong, block=32)
