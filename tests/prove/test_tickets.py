"""Order by results of atomic additions: the block that comes last, unique places, queues; and wrong twins."""

from __future__ import annotations

import numpy as np
import pytest

import ptxlab
from ptxlab.prove import ContractError
from tests.prove.kernels import kernel, needs_solver

PARAMETERS = ".param .u64 x, .param .u32 n, .param .u64 part, .param .u64 count, .param .u64 other, .param .u64 out"
READ = "ld.param.u64 %d1, [part]; ld.param.u64 %d2, [count]; ld.param.u64 %d3, [other]; ld.param.u64 %d4, [out];\n"
# Each block leaves a number; the last one adds them. tile[0]: whether it is that.
STORE = "mov.u32 %r1, %ctaid.x; mul.wide.u32 %d5, %r1, 4; add.u64 %d5, %d1, %d5; st.global.u32 [%d5], %r1;\n"
LAST = f"""{READ} mov.u32 %r2, %nctaid.x; add.u32 %r3, %r2, -1; setp.ne.u32 %p1, %t, 0; @%p1 bra both;
{STORE} fence.acq_rel.gpu;
atom.relaxed.gpu.global.inc.u32 %r4, [%d2], %r3;
fence.acq_rel.gpu;
setp.eq.u32 %p2, %r4, %r3; selp.b32 %r5, 1, 0, %p2; st.shared.u32 [tile], %r5;
both: bar.sync 0; ld.shared.u32 %r6, [tile]; setp.eq.s32 %p3, %r6, 0; @%p3 ret;
mov.u32 %r7, %t; mov.b32 %r8, 0;
again: setp.ge.u32 %p4, %r7, %r2; @%p4 bra over;
mul.wide.u32 %d5, %r7, 4; add.u64 %d5, %d1, %d5; ld.global.u32 %r9, [%d5]; add.u32 %r8, %r8, %r9;
add.u32 %r7, %r7, 64; bra again;
over: mul.wide.u32 %d5, %t, 4; add.u64 %d5, %d4, %d5; st.global.u32 [%d5], %r8;
@%p1 ret; mov.b32 %r9, 0;
"""
RESET = "st.global.u32 [%d2], %r9;"
# A thread that does not draw stores: fences of all threads are before the barrier that the draw is after.
FENCED = [(f"setp.ne.u32 %p1, %t, 0; @%p1 bra both;\n{STORE} fence.acq_rel.gpu;\n",
           f"setp.eq.u32 %p6, %t, 5; {STORE.replace('st.', '@%p6 st.')} fence.sc.gpu; bar.sync 0;\n"
           "setp.ne.u32 %p1, %t, 0; @%p1 bra both;\n"),
          ("fence.acq_rel.gpu;\nsetp", "setp"), ("both: bar.sync 0;", "both: bar.sync 0; membar.gl;")]  # fmt: skip
ADD = ("inc.u32 %r4, [%d2], %r3", "add.u32 %r4, [%d2], 1")
RIGHT = {
    "inc": [],
    "add": [ADD],
    "add and reset": [ADD, ("over:", f"over: @!%p1 {RESET}")],
    "in steps of two": [("inc.u32 %r4, [%d2], %r3", "add.u32 %r4, [%d2], 2"), ("%r4, %r3;", "%r4, %r10;"),
                        ("setp.ne.u32 %p1", "shl.b32 %r10, %r3, 1; setp.ne.u32 %p1")],
    "release and acquire": [("fence.acq_rel.gpu;", ""), ("relaxed", "acq_rel")],
    "at least": [("setp.eq.u32 %p2", "setp.ge.u32 %p2")],
    "a limit above": [("inc.u32 %r4, [%d2], %r3", "inc.u32 %r4, [%d2], %r2")],
    "fences of all threads": FENCED,
    "one fence before a barrier": [*FENCED, ("both: bar.sync 0; membar.gl;", "both: membar.gl; bar.sync 0;")],
}  # fmt: skip
WRONG = {
    "nothing is released": [("fence.acq_rel.gpu;\natom", "atom")],
    "nothing is acquired": [("fence.acq_rel.gpu;\nsetp", "setp")],
    "released to the block": [("fence.acq_rel.gpu;\natom", "fence.acq_rel.cta;\natom")],
    "acquired only": [("fence.acq_rel.gpu;", ""), ("relaxed", "acquire")],
    "atomic for the block": [("relaxed.gpu", "relaxed.cta")],
    "the last but one": [("add.u32 %r3, %r2, -1;", "add.u32 %r3, %r2, -2;"), ADD],
    "any block": [("setp.eq.u32 %p2", "setp.le.u32 %p2")],
    "a limit too low": [("%r4, [%d2], %r3", "%r4, [%d2], %r10"), ("%r4, %r3;", "%r4, %r10;"),
                        ("setp.ne.u32 %p1", "add.u32 %r10, %r2, -2; setp.ne.u32 %p1")],
    "drawn before it is stored": [(STORE, ""), ("fence.acq_rel.gpu;\nsetp", f"{STORE} fence.acq_rel.gpu;\nsetp")],
    "another counter is waited for": [(STORE, f"atom.acq_rel.gpu.global.add.u32 %r4, [%d3], 1; {STORE}"), ADD,
                                      ("add.u32 %r4, [%d2]", "add.u32 %r5, [%d2]")],
    "released at another counter": [
        ("fence.acq_rel.gpu;\natom", "atom.acq_rel.gpu.global.add.u32 %r5, [%d3], 1;\natom")],
    "acquired at another counter": [
        ("fence.acq_rel.gpu;\nsetp", "atom.acq_rel.gpu.global.add.u32 %r5, [%d3], 1;\nsetp")],
    "read as memory that does not change": [("ld.global.u32 %r9", "ld.global.nc.u32 %r9")],
    "no barrier": [("bar.sync 0;", "")],
    "fences of all threads that release only": [*FENCED, ("fence.sc", "fence.acq_rel")],
    "fences of all threads that acquire only": [*FENCED, ("membar.gl", "fence.acq_rel.gpu")],
    "fences of all threads for the block": [*FENCED, ("membar.gl", "membar.cta")],
    "no barrier after the first fence": [*FENCED, ("fence.sc.gpu; bar.sync 0;", "fence.sc.gpu;")],
    "fences of all threads after the draw": [*FENCED, ("fence.sc.gpu; bar.sync 0;", "bar.sync 0;"),
                                             ("both:", "both: fence.sc.gpu;")],
    "reset by each": [ADD, ("both: bar.sync 0;", f"mov.b32 %r9, 0; {RESET} both: bar.sync 0;")],
    "reset by one that is not the last": [ADD, ("both: bar.sync 0;",
        f"setp.ne.u32 %p5, %r4, 1; mov.b32 %r9, 0; @!%p5 {RESET} both: bar.sync 0;")],
    "set to 0 by an atomic operation": [("fence.acq_rel.gpu;\natom", "fence.acq_rel.gpu; mov.b32 %r9, 0; "
        "setp.eq.u32 %p5, %r1, 0; @%p5 atom.relaxed.gpu.global.exch.b32 %r10, [%d2], %r9;\natom"), ADD],
    "some blocks do not draw": [("atom", "setp.ne.u32 %p5, %r1, 0; mov.u32 %r4, 0;\n@%p5 atom"), ADD,
                                ("add.u32 %r3, %r2, -1;", "add.u32 %r3, %r2, -2;")],
    "drawn twice": [("atom.relaxed.gpu.global.inc.u32 %r4", "red.relaxed.gpu.global.add.u32 [%d2], 1;\n"
                     "atom.relaxed.gpu.global.add.u32 %r4"), ("[%d2], %r3", "[%d2], 1")],
}  # fmt: skip
LENGTHS = ["grid.x <= len(part)", "len(count) == 1", "len(other) == 1", "64 <= len(out)"]


def changed(text: str, changes: list[tuple[str, str]]) -> str:
    """A text with some changes."""
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text


def last(changes: list[tuple[str, str]]) -> object:
    """The kernel whose last block adds all numbers, with changes."""
    return kernel(changed(LAST, changes), PARAMETERS)


@needs_solver
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.bulk(one_in=4)] if name != "inc" else [])
                                  for name in RIGHT])  # fmt: skip
def test_the_last_block(name: str) -> None:
    args = [np.zeros(1, np.uint32), 1, np.zeros(4, np.uint32), *(np.zeros(1, np.uint32) for _ in range(2))]
    found = ptxlab.prove(last(RIGHT[name]), [*args, np.zeros(64, np.uint32)], grid=4, assume=LENGTHS[:1])
    assert found.level == "proved", str(found)
    assert "count[0] == 0 (from the example launch)" in found.assumptions


@needs_solver
@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_order(name: str) -> None:
    assume = [*LENGTHS, "count[0] == 0", *(["other[0] == 0"] if name.startswith("another") else [])]
    found = ptxlab.prove(last(WRONG[name]), assume=assume, replays=False, timeout=60)
    assert found.level == "not-proved", name


@needs_solver
def test_the_counter_starts_from_a_known_number() -> None:
    assert ptxlab.prove(last([]), assume=[*LENGTHS, "count[0] == 0"], replays=False)
    for assume in ([], ["count[0] == 1"]):
        assert ptxlab.prove(last([]), assume=[*LENGTHS, *assume], replays=False).level == "not-proved", assume
    with pytest.raises(ContractError, match=r"`n` in `n\[0\] == 0` is not an array"):
        ptxlab.prove(last([]), assume=["n[0] == 0"])


APPEND = f"""{READ} mul.wide.u32 %d5, %t, 4; add.s64 %d5, %x, %d5; setp.ge.u32 %p1, %t, %n; @%p1 ret;
ld.global.u32 %r1, [%d5]; setp.eq.s32 %p2, %r1, 0; @%p2 ret;
atom.relaxed.gpu.global.add.u32 %r2, [%d2], 1;
mul.wide.u32 %d5, %r2, 4; add.s64 %d5, %d4, %d5; st.global.u32 [%d5], %r1;
"""
QUEUE = f"""{READ} setp.ne.u32 %p1, %t, 0;
again: @%p1 bra drawn;
atom.relaxed.gpu.global.add.u32 %r2, [%d2], 1; st.shared.u32 [tile], %r2;
drawn: bar.sync 0; ld.shared.u32 %r3, [tile]; bar.sync 0;
setp.ge.s32 %p2, %r3, %n; @%p2 ret;
mad.lo.u32 %r4, %r3, 64, %t; mul.wide.s32 %d5, %r4, 4; add.s64 %d5, %d4, %d5; st.global.u32 [%d5], %r3; bra again;
"""
TILE = f"""{READ} mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.y; mov.u32 %r3, %ctaid.y; mad.lo.u32 %r4, %r1, %r2, %r3;
mul.wide.u32 %d5, %r4, 4; add.s64 %d5, %d1, %d5; setp.ne.u32 %p1, %t, 0; @%p1 bra both; st.global.u32 [%d5], %r4;
mul.wide.u32 %d5, %r1, 4; add.s64 %d6, %d2, %d5;
atom.acq_rel.gpu.global.add.u32 %r5, [%d6], 1; st.shared.u32 [tile], %r5;
both: bar.sync 0; ld.shared.u32 %r6, [tile]; add.u32 %r7, %r2, -1; setp.ne.u32 %p2, %r6, %r7; @%p2 ret;
setp.ge.u32 %p3, %t, %r2; @%p3 ret; mad.lo.u32 %r4, %r1, %r2, %t;
mul.wide.u32 %d5, %r4, 4; add.s64 %d5, %d1, %d5; ld.global.u32 %r8, [%d5];
"""
COMPACT = f"""{READ} setp.ne.u32 %p1, %t, 0; mov.b32 %r1, 0; @!%p1 st.shared.u32 [start], %r1; bar.sync 0;
mul.wide.u32 %d5, %t, 4; add.s64 %d5, %x, %d5; ld.global.u32 %r1, [%d5]; setp.eq.s32 %p2, %r1, 0; @%p2 bra over;
mov.u32 %r3, start; atom.shared.add.u32 %r2, [%r3], 1;
shl.b32 %r2, %r2, 2; mov.u32 %r3, tile; add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1;
over: bar.sync 0;
"""
QUEUED = ["count[0] == 0", "1 <= len(count)", "64 * n <= len(out)"]
TILES = ["count[:] == 0", "grid.x <= len(count)", "grid.x * grid.y <= len(part)"]
NEIGHBORS = {
    "append": (APPEND, [], False), "queue": (QUEUE, QUEUED, True), "tile": (TILE, TILES, True),
    "compact": (COMPACT, ["64 <= len(x)"], True),
}  # fmt: skip
STRANGE = {
    "one result, two elements": ("append", ("[%d5], %r1", "[%d5+4], %r1; st.global.u32 [%d5], %r1")),
    "no result": ("append", ("mul.wide.u32 %d5, %r2", "mul.wide.u32 %d5, %t")),
    "a result of the block": ("append", ("relaxed.gpu", "relaxed.cta")),
    "the counter goes down": ("append", ("[%d2], 1", "[%d2], -1")),
    "a counter that wraps": ("append", ("add.u32 %r2, [%d2], 1", "inc.u32 %r2, [%d2], 7")),
    "tiles overlap": ("queue", ("%r3, 64, %t", "%r3, 63, %t")),
    "one barrier": ("queue", ("[tile]; bar.sync 0;", "[tile];")),
    "two draw": ("queue", ("setp.ne.u32 %p1, %t, 0", "setp.gt.u32 %p1, %t, 1")),
    "a counter for two tiles": (
        "tile", ("mul.wide.u32 %d5, %r1, 4; add", "shr.u32 %r9, %r1, 1; mul.wide.u32 %d5, %r9, 4; add")),
    "a counter for all": ("tile", ("add.s64 %d6, %d2, %d5", "mov.u64 %d6, %d2")),
    "relaxed": ("tile", ("acq_rel", "relaxed")),
    "not set": ("compact", ("@!%p1 st.shared.u32 [start], %r1;", "")),
    "set to 1": ("compact", ("mov.b32 %r1, 0;", "mov.b32 %r1, 1;")),
    "set without a barrier": ("compact", ("[start], %r1; bar.sync 0;", "[start], %r1;")),
    "set by an atomic operation, without a barrier": (
        "compact", ("bar.sync 0;\nmul.wide", "mul.wide"),
        ("st.shared.u32 [start], %r1;", "atom.shared.exch.b32 %r4, [start], %r1;")),
    "set once more": (
        "compact", ("over: bar.sync 0;", "over: mov.b32 %r1, 0; @!%p1 st.shared.u32 [start], %r1; bar.sync 0;")),
    "set by another": (
        "compact", ("mov.u32 %r3, start;", "mov.b32 %r4, 0; setp.eq.u32 %p3, %t, 9; @%p3 st.shared.u32 [start], %r4;\n"
                    "mov.u32 %r3, start;")),
}  # fmt: skip


def neighbor(name: str, *changes: tuple[str, str]) -> object:
    """A kernel that uses results of atomic additions, with changes."""
    text = changed(NEIGHBORS[name][0], list(changes))
    return kernel(f".shared .align 4 .b32 start;\n{text}", PARAMETERS)


@needs_solver
@pytest.mark.parametrize("name", NEIGHBORS)
def test_results_are_unique(name: str) -> None:
    _, assume, bounds = NEIGHBORS[name]
    found = ptxlab.prove(neighbor(name), assume=assume, bounds=bounds, replays=False)
    assert found.level == "proved", str(found)


@needs_solver
@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize("name", STRANGE)
def test_results_are_not(name: str) -> None:
    of, *changes = STRANGE[name]
    _, assume, bounds = NEIGHBORS[of]
    found = ptxlab.prove(neighbor(of, *changes), assume=assume, bounds=bounds, replays=False, timeout=60)
    assert found.level == "not-proved", name


FLAG = """setp.ne.u32 %p1, %t, 0; setp.ne.u32 %p2, %t, 40; mov.b32 %r1, 1; @!%p1 st.shared.u32 [tile], %r1;
both: bar.sync 0; ld.shared.u32 %r2, [tile]; setp.eq.s32 %p3, %r2, 1; @%p3 ret; st.global.u32 [%x], %t;
"""
OTHER = "mov.b32 %r3, 0; @!%p2 st.shared.u32 [tile], %r3;"
FLAGS = [
    ("", "", "proved"), ("@!%p1 st", "st", "proved"),
    ("both: bar.sync 0;", "both:", "not-proved"), ("[tile], %r1;", f"[tile], %r1; {OTHER}", "not-proved"),
    ("[tile], %r1;", f"[tile], %r1; bar.sync 0; {OTHER}", "not-proved"),
    ("both: bar.sync 0;", f"both: bar.sync 0; {OTHER} bar.sync 0;", "not-proved"),
    ("[tile], %r1;", f"[tile], %r1; {OTHER.replace('%r3;', '%r1;')}", "not-proved"),
    ("st.shared.u32 [tile], %r1;", f"st.volatile.shared.u32 [tile], %r1; {OTHER.replace('st.', 'st.volatile.')}",
     "not-proved"),
    ("[tile], %r1;", "[tile+4], %r1;", "not-proved"), ("@!%p1 st", "setp.eq.u32 %p4, %n, 3; @%p4 st", "not-proved"),
    ("both: bar.sync 0;", "both: mov.u32 %r4, tile; shl.b32 %r5, %t, 2; add.u32 %r4, %r4, %r5; bar.sync 0; "
     "st.shared.u32 [%r4], %t; bar.sync 0;", "not-proved"),
]  # fmt: skip


@needs_solver
@pytest.mark.bulk(one_in=4)
@pytest.mark.parametrize(("old", "new", "level"), FLAGS)
def test_what_one_thread_hands_to_all(old: str, new: str, level: str) -> None:
    """All threads return, if they read what was stored; else they race."""
    assert old in FLAG
    found = ptxlab.prove(kernel(FLAG.replace(old, new)), assume="1 <= len(x)", replays=False, timeout=60)
    assert found.level == level, str(found)
