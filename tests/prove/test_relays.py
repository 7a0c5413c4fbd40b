"""Groups of warps that take turns with the tiles of one ring: proved for any number; none of their wrong twins is."""

from __future__ import annotations

import numpy as np
import pytest

import ptxlab
from ptxlab.prove.answers.replay import is_ruled_out
from tests.prove.kernels import needs_solver

RELAY = """.version 8.6
.target sm_90
.address_size 64
.visible .entry relay(.param .u64 x, .param .u64 y, .param .u32 count, .param .u32 rounds)
{
    .reg .pred %p<9>, %lanes;
    .reg .b32 %t, %group, %lane, %count, %rounds, %round, %tile, %stage, %parity, %turn, %next, %steps, %r<9>, %sum;
    .reg .b64 %x, %y, %d;
    .shared .align 128 .b8 tiles[256];
    .shared .align 8 .b64 filled[2];
    .shared .align 8 .b64 emptied[2];
    .shared .align 8 .b64 turns[3];
    .shared .align 4 .b32 beside;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %count, [count];
    ld.param.u32 %rounds, [rounds];
    mov.u32 %t, %tid.x;
    shr.u32 %group, %t, 5;
    and.b32 %lane, %t, 31;
    setp.eq.u32 %lanes, %lane, 0;
    setp.eq.u32 %p0, %t, 0;
    @%p0 mbarrier.init.shared.b64 [filled], 1;
    @%p0 mbarrier.init.shared.b64 [filled+8], 1;
    @%p0 mbarrier.init.shared.b64 [emptied], 1;
    @%p0 mbarrier.init.shared.b64 [emptied+8], 1;
    @%p0 mbarrier.init.shared.b64 [turns], 1;
    @%p0 mbarrier.init.shared.b64 [turns+8], 1;
    // a third
    bar.sync 0;
    setp.lt.u32 %p1, %t, READERS;
    @%p1 bra readers;
    setp.ne.u32 %p2, %t, READERS;
    @%p2 bra end;
    mov.u32 %stage, 0;
    mov.u32 %parity, 1;
    mov.u32 %round, 0;
copy_round:
    mov.u32 %tile, 0;
copy_tile:
    mov.u32 %r0, emptied;
    mad.lo.u32 %r0, %stage, 8, %r0;
empty:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r0], %parity;
    @!%p3 bra empty;
    mov.u32 %r1, filled;
    mad.lo.u32 %r1, %stage, 8, %r1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 128;
    mov.u32 %r2, tiles;
    mad.lo.u32 %r2, %stage, 128, %r2;
    mad.wide.u32 %d, %tile, 128, %x;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d], 128, [%r1];
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p4, %stage, 2;
    @%p4 mov.u32 %stage, 0;
    @%p4 xor.b32 %parity, %parity, 1;
    add.u32 %tile, %tile, 1;
    setp.lt.u32 %p5, %tile, %count;
    @%p5 bra copy_tile;
    add.u32 %round, %round, 1;
    setp.lt.u32 %p6, %round, %rounds;
    @%p6 bra copy_round;
    bra.uni end;
readers:
    mul.lo.u32 %r3, %group, %count;
    shr.u32 %r4, %r3, 1;
    mul.lo.u32 %r5, %r4, 2;
    sub.u32 %stage, %r3, %r5;
    and.b32 %parity, %r4, 1;
    setp.eq.u32 %p7, %group, 0;
    selp.u32 %turn, 1, 0, %p7;
    add.u32 %next, %group, 1;
    setp.eq.u32 %p7, %next, GROUPS;
    selp.u32 %next, 0, %next, %p7;
    mul.lo.u32 %steps, %count, OTHERS;
    mov.u32 %round, %group;
    setp.ge.u32 %p8, %round, %rounds;
    @%p8 bra end;
read_round:
    mov.u32 %r6, turns;
    mad.lo.u32 %r6, %group, 8, %r6;
mine:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r6], %turn;
    @!%p3 bra mine;
    mov.u32 %tile, 0;
    mov.u32 %sum, 0;
read_tile:
    mov.u32 %r0, filled;
    mad.lo.u32 %r0, %stage, 8, %r0;
full:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r0], %parity;
    @!%p3 bra full;
read:
    mov.u32 %r2, tiles;
    mad.lo.u32 %r2, %stage, 128, %r2;
    mad.lo.u32 %r2, %lane, 4, %r2;
    ld.shared.u32 %r7, [%r2];
    add.u32 %sum, %sum, %r7;
    bar.warp.sync -1;
    mov.u32 %r1, emptied;
    mad.lo.u32 %r1, %stage, 8, %r1;
    @%lanes mbarrier.arrive.shared.b64 _, [%r1];
    add.u32 %stage, %stage, 1;
    setp.eq.u32 %p4, %stage, 2;
    @%p4 mov.u32 %stage, 0;
    @%p4 xor.b32 %parity, %parity, 1;
    add.u32 %tile, %tile, 1;
    setp.lt.u32 %p5, %tile, %count;
    @%p5 bra read_tile;
    mov.u32 %r8, turns;
    mad.lo.u32 %r8, %next, 8, %r8;
    @%lanes mbarrier.arrive.shared.b64 _, [%r8];
    mad.lo.u32 %r7, %round, 32, %lane;
    mad.wide.u32 %d, %r7, 4, %y;
    st.global.u32 [%d], %sum;
    add.u32 %r3, %stage, %steps;
    shr.u32 %r4, %r3, 1;
    mul.lo.u32 %r5, %r4, 2;
    sub.u32 %stage, %r3, %r5;
    and.b32 %r5, %r4, 1;
    xor.b32 %parity, %parity, %r5;
    xor.b32 %turn, %turn, 1;
    add.u32 %round, %round, GROUPS;
    setp.lt.u32 %p6, %round, %rounds;
    @%p6 bra read_round;
end:
    ret;
}
"""
HAND = "    mov.u32 %r8, turns;\n    mad.lo.u32 %r8, %next, 8, %r8;\n    @%lanes mbarrier.arrive.shared.b64 _, [%r8];\n"
MINE = "mine:\n    mbarrier.try_wait.parity.shared.b64 %p3, [%r6], %turn;\n    @!%p3 bra mine;\n"
SUM, LOAD, NEXT = "    mov.u32 %sum, 0;\n", "    ld.shared.u32 %r7, [%r2];\n", "    add.u32 %tile, %tile, 1;\n"
STEPS, COPIED = "mul.lo.u32 %steps, %count, OTHERS;", "%p6, %round, %rounds;\n    @%p6 bra copy_round;"
WRONG = {
    "no wait for a turn": [(MINE, "")],
    "a wait after the tiles": [(MINE, ""), (HAND, MINE + HAND)],
    "no turn is handed over": [(HAND, "")],
    "a turn that is handed over before the tiles": [(HAND, ""), (SUM, SUM + HAND)],
    "a turn that is handed over in each tile": [(HAND, ""), (LOAD, LOAD + HAND)],
    "a turn that one lane waits for": [("mine:\n", "    @!%lanes bra taken;\nmine:\n"), (SUM, f"taken:\n{SUM}")],
    "the turn of all": [("selp.u32 %turn, 1, 0, %p7;", "mov.u32 %turn, 1;")],
    "the turn of none": [("selp.u32 %turn, 1, 0, %p7;", "mov.u32 %turn, 0;")],
    "its own turn": [("mad.lo.u32 %r8, %next,", "mad.lo.u32 %r8, %group,")],
    "a turn that does not change": [("    xor.b32 %turn, %turn, 1;\n", "")],
    "one tile too many": [(STEPS, "mad.lo.u32 %steps, %count, OTHERS, 1;")],
    "all but one tile": [(STEPS, "sub.u32 %steps, %count, 1;")],
    "no tiles of others": [(STEPS, "mov.u32 %steps, 0;")],
    "tiles as rounds": [(STEPS, "mov.u32 %steps, %rounds;")],
    "a start without those before": [("mul.lo.u32 %r3, %group, %count;", "mov.u32 %r3, 0;")],
    "all rounds of each group": [("mov.u32 %round, %group;", "mov.u32 %round, 0;")],
    "rounds that no group has": [("add.u32 %round, %round, GROUPS;", "add.u32 %round, %round, 4;")],
    "a round that no group has": [(f"setp.lt.u32 {COPIED}", f"setp.le.u32 {COPIED}")],
    "other tiles in one group": [("readers:\n", "readers:\n    add.u32 %count, %count, %group;\n")],
    "other tiles in each round": [(SUM, f"{SUM}    and.b32 %tile, %round, 1;\n")],
    "lanes that still read": [("    bar.warp.sync -1;\n", "")],
    "a read before its wait in one group": [
        ("full:\n", "    setp.ne.u32 %p7, %group, 0;\n    @%p7 ld.shared.u32 %r7, [tiles];\nfull:\n")
    ],
    "no wait in one group": [("full:\n", "    setp.ne.u32 %p7, %group, 0;\n    @%p7 bra read;\nfull:\n")],
    "a write that the next copy does not see": [(LOAD, "    st.shared.u32 [%r2], %sum;\n")],
    "what lanes of the group before still read": [
        (LOAD, f"    ld.shared.u32 %r7, [beside];\n{LOAD}"), (HAND, f"{HAND}    st.shared.u32 [beside], %t;\n")
    ],
}  # fmt: skip
ASSUMED = ["count >= 1", "rounds >= 1", "grid.x == 1", "len(x) == 32 * count", "len(y) == 32 * rounds",
           "count <= 1000", "rounds <= 1000"]  # fmt: skip


def relay(groups: int, *changes: tuple[str, str]) -> ptxlab.ir.Function:
    """The kernel for so many groups, with parts of its text replaced."""
    text = RELAY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    third = "@%p0 mbarrier.init.shared.b64 [turns+16], 1;" if groups > 2 else ""
    for name, value in (("// a third", third), ("READERS", 32 * groups), ("GROUPS", groups), ("OTHERS", groups - 1)):
        text = text.replace(name, str(value))
    return ptxlab.parse(text, "relay.ptx")["relay"]


def runs(kernel: ptxlab.ir.Function, groups: int) -> set[str]:
    """What goes wrong in runs of a kernel."""
    found = set()
    for count, rounds in ((1, 3), (3, 5), (2, 2), (1, 8)):
        for seed in range(3):
            args = [np.zeros(32 * count, np.uint32), np.zeros(32 * rounds, np.uint32), count, rounds]
            ran = kernel.launch(1, 32 * groups + 32, args, device="cpu", on_error="collect", seed=seed).diagnostics
            found |= {one.code for one in ran if is_ruled_out(one)}
    return found


@needs_solver
@pytest.mark.bulk
@pytest.mark.parametrize("groups", [2, 3])
def test_groups_that_take_turns(groups: int) -> None:
    found = ptxlab.prove(relay(groups), block=32 * groups + 32, assume=ASSUMED, replays=False)
    assert found.level == "proved", str(found)


@needs_solver
@pytest.mark.bulk(one_in=30)
@pytest.mark.parametrize("name", WRONG)
def test_groups_that_do_not(name: str) -> None:
    found = ptxlab.prove(relay(2, *WRONG[name]), block=96, assume=ASSUMED, replays=False)
    assert found.level == "not-proved", str(found)


@pytest.mark.bulk
@pytest.mark.parametrize("name", [None, *WRONG])
def test_what_runs_say(name: str | None) -> None:
    """Each wrong kernel goes wrong in a run, and the right one does not."""
    changes = WRONG[name] if name is not None else []
    assert bool(runs(relay(2, *changes), 2)) == (name is not None)
