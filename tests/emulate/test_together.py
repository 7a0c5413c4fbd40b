"""Lanes that execute a kernel together compute, count and report what single threads do, bit for bit."""

from random import Random

import numpy as np
import pytest

import ptxlab
from ptxlab.emulate import launch as launching
from ptxlab.emulate.abi.code import GROUP
from tests.emulate.kernels import CASES, Case, Launch
from tests.emulate.launching import kernel
from tests.emulate.together import Comparison, compare, compare_case, compare_random, launch_all

GLOBAL_INDEX = """
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r1, %r2, %r3, %r1;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3;
"""
COLLATZ = """
    ld.global.u32 %r4, [%rd1];
    mov.u32 %r5, 0;
again:
    setp.le.u32 %p1, %r4, 1;
    @%p1 bra done;
    and.b32 %r6, %r4, 1;
    setp.eq.u32 %p2, %r6, 0;
    @%p2 bra even;
    mad.lo.u32 %r4, %r4, 3, 1;
    bra next;
even:
    shr.u32 %r4, %r4, 1;
next:
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, 300;
    @%p3 bra again;
done:
    st.global.u32 [%rd2], %r5;
    ret;
"""
# Each is the rest of a kernel that has the addresses of its elements of `x` and `y`, and its number in %r1.
BODIES = {
    "collatz": COLLATZ,
    "guards": """
    ld.global.u32 %r4, [%rd1];
    setp.gt.u32 %p1, %r4, 40;
    @%p1 mul.lo.u32 %r4, %r4, 7;
    @!%p1 st.global.u32 [%rd2], 5;
    @%p1 ld.global.u32 %r4, [%rd1];
    and.b32 %r5, %r1, 3;
    setp.eq.u32 %p2, %r5, 1;
    @%p2 exit;
    @%p1 st.global.u32 [%rd2], %r4;
    ret;""",
    "early exit": """
    setp.ge.u32 %p1, %r1, 75;
    @%p1 bra end;
    ld.global.f32 %f1, [%rd1];
    fma.rn.f32 %f2, %f1, %f1, 0f3F000000;
    sqrt.rn.f32 %f2, %f2;
    mul.ftz.f32 %f2, %f2, 0f00800001;
    div.rn.f32 %f2, %f2, 0f40400000;
    st.global.f32 [%rd2], %f2;
end:
    ret;""",
    "a stencil that wraps around": """
    sub.u32 %r4, %r1, 1;
    mul.wide.u32 %rd4, %r4, 4;
    ld.param.u64 %rd5, [x];
    add.s64 %rd5, %rd5, %rd4;
    setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r5, 17;
    @%p1 ld.global.u32 %r5, [%rd5];
    st.global.u32 [%rd2], %r5;
    ret;""",
    "a gather and a scatter": """
    ld.global.u32 %r4, [%rd1];
    rem.u32 %r5, %r4, 96;
    ld.param.u64 %rd5, [x];
    mad.wide.u32 %rd5, %r5, 4, %rd5;
    ld.global.u32 %r6, [%rd5];
    and.b32 %r5, %r5, 15;
    ld.param.u64 %rd6, [y];
    mad.wide.u32 %rd6, %r5, 4, %rd6;
    st.global.u32 [%rd6], %r6;
    st.global.u32 [%rd6+128], %r1;
    ret;""",
    "one address": """
    ld.param.u64 %rd6, [y];
    st.global.u32 [%rd6], %r1;
    ld.global.u32 %r4, [%rd6+4];
    add.u32 %r4, %r4, %r1;
    st.global.u32 [%rd2+64], %r4;
    ret;""",
    "vectors": """
    and.b32 %r4, %r1, 31;
    shl.b32 %r4, %r4, 3;
    ld.param.u64 %rd5, [x];
    ld.param.u64 %rd6, [y];
    cvt.u64.u32 %rd4, %r4;
    add.u64 %rd5, %rd5, %rd4;
    add.u64 %rd6, %rd6, %rd4;
    ld.global.v2.u32 {%r5, %r6}, [%rd5];
    add.u32 %r5, %r5, %r1;
    st.global.v2.u32 [%rd6], {%r6, %r5};
    ld.global.u8 %r7, [%rd5+1];
    st.global.u8 [%rd6+2], %r7;
    ret;""",
    "an uneven loop in a loop": """
    mov.u32 %r4, 0;
    mov.u32 %r5, 0;
outer:
    and.b32 %r6, %r1, 3;
    add.u32 %r6, %r6, %r4;
inner:
    add.u32 %r5, %r5, %r6;
    sub.u32 %r6, %r6, 1;
    setp.gt.s32 %p1, %r6, 0;
    @%p1 bra inner;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p2, %r4, 5;
    @%p2 bra outer;
    mad.lo.u32 %r5, %r4, 1000, %r5;
    st.global.u32 [%rd2], %r5;
    ret;""",
    "shared memory": """
    .shared .b32 s[64];
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, s;
    mad.lo.u32 %r5, %r4, 4, %r5;
    st.shared.u32 [%r5], %r1;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%rd2], %r6;
    ret;""",
    "a reduction": """
    .shared .b32 s[64];
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, s;
    mad.lo.u32 %r5, %r4, 4, %r5;
    ld.global.u32 %r6, [%rd1];
    st.shared.u32 [%r5], %r6;
    mov.u32 %r7, 24;
loop:
    bar.sync 0;
    setp.ge.u32 %p1, %r4, %r7;
    @%p1 bra skip;
    mad.lo.u32 %r8, %r7, 4, %r5;
    ld.shared.u32 %r9, [%r8];
    ld.shared.u32 %r6, [%r5];
    add.u32 %r6, %r6, %r9;
    st.shared.u32 [%r5], %r6;
skip:
    shr.u32 %r7, %r7, 1;
    setp.ne.u32 %p2, %r7, 0;
    @%p2 bra loop;
    bar.sync 0;
    ld.shared.u32 %r6, [%r5];
    st.global.u32 [%rd2], %r6;
    ret;""",
    "a barrier in a loop of products": """
    .shared .b32 s[48];
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, s;
    mad.lo.u32 %r6, %r4, 4, %r5;
    mov.f32 %f1, 0f00000000;
    mov.u32 %r7, 0;
tile:
    ld.global.f32 %f2, [%rd1];
    bar.sync 0;
    st.shared.f32 [%r6], %f2;
    bar.sync 0;
    mov.u32 %r8, 0;
product:
    mad.lo.u32 %r9, %r8, 4, %r5;
    ld.shared.f32 %f3, [%r9];
    fma.rn.f32 %f1, %f3, %f2, %f1;
    add.u32 %r8, %r8, 1;
    setp.lt.u32 %p1, %r8, 48;
    @%p1 bra product;
    add.u32 %r7, %r7, 1;
    setp.lt.u32 %p1, %r7, 3;
    @%p1 bra tile;
    st.global.f32 [%rd2], %f1;
    ret;""",
    "names that are used again": """
    mov.u32 %r4, %tid.x;
    add.u32 %r5, %r4, %r1;
    mov.u32 %r4, %ctaid.x;
    add.u32 %r5, %r5, %r4;
    setp.lt.u32 %p1, %r5, 30;
    @%p1 bra small;
    mov.u32 %r4, %r1;
    bra join;
small:
    mov.u32 %r4, 3;
join:
    add.u32 %r5, %r5, %r4;
    st.global.u32 [%rd2], %r5;
    ret;""",
}

# The same, for whole warps.
OF_WARPS = {
    "sums by shuffles": """
    ld.global.u32 %r4, [%rd1];
    shfl.sync.bfly.b32 %r5, %r4, 16, 31, -1;
    add.u32 %r4, %r4, %r5;
    shfl.sync.down.b32 %r5|%p1, %r4, 3, 31, -1;
    @%p1 add.u32 %r4, %r4, %r5;
    shfl.sync.idx.b32 %r6, %r4, 7, 6175, -1;
    mad.lo.u32 %r4, %r6, 3, %r4;
    st.global.u32 [%rd2], %r4;
    ret;""",
    "votes and matches": """
    ld.global.u32 %r4, [%rd1];
    and.b32 %r5, %r4, 3;
    setp.eq.u32 %p1, %r5, 1;
    vote.sync.ballot.b32 %r6, %p1, -1;
    vote.sync.any.pred %p2, %p1, -1;
    match.any.sync.b32 %r7, %r5, -1;
    redux.sync.add.u32 %r8, %r4, -1;
    xor.b32 %r6, %r6, %r7;
    @%p2 add.u32 %r6, %r6, %r8;
    st.global.u32 [%rd2], %r6;
    ret;""",
    "lanes by a mask": """
    mov.u32 %r4, %tid.x;
    and.b32 %r5, %r4, 16;
    setp.eq.u32 %p1, %r5, 0;
    selp.b32 %r6, 65535, -65536, %p1;
    shfl.sync.bfly.b32 %r7, %r1, 5, 31, %r6;
    add.u32 %r7, %r7, %r6;
    st.global.u32 [%rd2], %r7;
    ret;""",
    "a mask that is loaded": """
    ld.param.u64 %rd5, [x];
    ld.global.u32 %r6, [%rd5+4];
    or.b32 %r6, %r6, -1;
    shfl.sync.up.b32 %r7, %r1, 1, 0, %r6;
    shfl.sync.up.b32 %r8, %r7, 2, 0, -1;
    add.u32 %r7, %r7, %r8;
    st.global.u32 [%rd2], %r7;
    ret;""",
    "lanes that have exited": """
    mov.u32 %r4, %tid.x;
    setp.gt.u32 %p1, %r4, 40;
    @%p1 exit;
    shfl.sync.idx.b32 %r5, %r1, 3, 31, -1;
    add.u32 %r5, %r5, %r1;
    bar.warp.sync -1;
    st.global.u32 [%rd2], %r5;
    ret;""",
    "shared memory in turns": """
    .shared .b32 s[64];
    mov.u32 %r4, %tid.x;
    mov.u32 %r5, s;
    mad.lo.u32 %r6, %r4, 4, %r5;
    st.shared.u32 [%r6], %r1;
    bar.warp.sync -1;
    xor.b32 %r7, %r4, 9;
    mad.lo.u32 %r7, %r7, 4, %r5;
    ld.shared.u32 %r8, [%r7];
    bar.sync 0;
    st.global.u32 [%rd2], %r8;
    ret;""",
    "a loop of shuffles": """
    ld.global.f32 %f1, [%rd1];
    mov.u32 %r4, 16;
loop:
    mov.b32 %r5, %f1;
    shfl.sync.bfly.b32 %r6, %r5, %r4, 31, -1;
    mov.b32 %f2, %r6;
    add.f32 %f1, %f1, %f2;
    shr.u32 %r4, %r4, 1;
    setp.ne.u32 %p1, %r4, 0;
    @%p1 bra loop;
    st.global.f32 [%rd2], %f1;
    ret;""",
}
ATOMICS = {
    "counters": """
    ld.global.u32 %r4, [%rd1];
    mov.u32 %r6, 0;
loop:
    and.b32 %r5, %r4, 7;
    ld.param.u64 %rd5, [y];
    mad.wide.u32 %rd5, %r5, 4, %rd5;
    red.global.add.u32 [%rd5], %r6;
    setp.gt.u32 %p1, %r4, 500;
    @%p1 red.global.add.u32 [%rd5+64], 1;
    shr.u32 %r4, %r4, 1;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p2, %r6, 3;
    @%p2 bra loop;
    ret;""",
    "a queue": """
    ld.global.u32 %r4, [%rd1];
    setp.lt.u32 %p1, %r4, 500;
    @%p1 bra end;
    ld.param.u64 %rd5, [y];
    atom.global.add.u32 %r5, [%rd5], 1;
    mad.wide.u32 %rd6, %r5, 4, %rd5;
    st.global.u32 [%rd6+4], %r4;
end:
    ret;""",
    "a sum of floats": """
    ld.global.u32 %r4, [%rd1];
    cvt.rn.f32.u32 %f1, %r4;
    rcp.rn.f32 %f1, %f1;
    ld.param.u64 %rd5, [y];
    red.global.add.f32 [%rd5], %f1;
    ret;""",
    "shared memory": """
    .shared .b32 s[16];
    mov.u32 %r4, %tid.x;
    setp.lt.u32 %p1, %r4, 16;
    and.b32 %r4, %r4, 15;
    mov.u32 %r5, s;
    mad.lo.u32 %r5, %r4, 4, %r5;
    @%p1 st.shared.u32 [%r5], 0;
    bar.sync 0;
    ld.global.u32 %r6, [%rd1];
    atom.shared.max.u32 %r7, [%r5], %r6;
    bar.sync 0;
    ld.shared.u32 %r7, [%r5];
    ld.param.u64 %rd5, [y];
    mad.wide.u32 %rd5, %r4, 4, %rd5;
    red.global.max.u32 [%rd5], %r7;
    ret;""",
}
# Atomic operations that lanes would do in another order than threads, one after the other, do.
IN_ORDER = {
    "a counter in a loop": """
    mov.u32 %r5, 0;
    ld.param.u64 %rd5, [y];
loop:
    atom.global.add.u32 %r4, [%rd5], 1;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 3;
    @%p1 bra loop;
    st.global.u32 [%rd2+4], %r4;
    ret;""",
    "floats in a loop": """
    mov.u32 %r5, 0;
    cvt.rn.f32.u32 %f1, %r1;
    ld.param.u64 %rd5, [y];
loop:
    red.global.add.f32 [%rd5], %f1;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 3;
    @%p1 bra loop;
    ret;""",
    "two operations": """
    ld.param.u64 %rd5, [y];
    red.global.add.u32 [%rd5], %r1;
    red.global.max.u32 [%rd5], 77;
    ret;""",
}
LOCAL = """
    .local .align 4 .b8 depot[64];
    .reg .b64 %SPL, %SP;
    mov.u64 %SPL, depot;
    cvta.local.u64 %SP, %SPL;
    mov.u32 %r4, 0;
fill:
    and.b32 %r5, %r4, 15;
    mul.wide.u32 %rd4, %r5, 4;
    add.u64 %rd5, %SPL, %rd4;
    add.u32 %r6, %r1, %r4;
    st.local.u32 [%rd5], %r6;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 16;
    @%p1 bra fill;
    ld.u32 %r7, [%SP+12];
    and.b32 %r5, %r1, 15;
    mul.wide.u32 %rd4, %r5, 4;
    add.u64 %rd5, %SP, %rd4;
    ld.u32 %r8, [%rd5];
    mad.lo.u32 %r7, %r8, 1000, %r7;
    st.global.u32 [%rd2], %r7;
    ret;
"""


def compare_body(body: str, arrays: list[np.ndarray], block: int, grid: int, detectors: bool = False) -> Comparison:
    """What comes of a kernel, which starts with the addresses of its elements, both ways."""
    text = ptxlab.format(kernel(GLOBAL_INDEX + body, ".u64 x, .u64 y").module)

    def make() -> list[Launch]:
        return [Launch("k", grid, block, [array.copy() for array in arrays])]

    return compare("k", lambda: ptxlab.parse(text), make, detectors)


def check(body: str, arrays: list[np.ndarray], block: int = 48, grid: int = 2) -> None:
    """Have a kernel do the same both ways, without detectors and with them."""
    for detectors in (False, True):
        found = compare_body(body, arrays, block, grid, detectors)
        assert found.apart == ()
        assert found.together > 0 or (detectors and found.found)
        assert found.differs == ""


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_lanes_together_do_what_threads_do(body: str) -> None:
    x = np.random.default_rng(1).integers(0, 1000, 128, np.uint32)
    check(body, [x, np.zeros_like(x)])


@pytest.mark.parametrize("body", OF_WARPS.values(), ids=OF_WARPS)
def test_warps_exchange_values(body: str) -> None:
    x = np.random.default_rng(1).integers(0, 1000, 128, np.uint32)
    check(body, [x, np.zeros_like(x)], block=64)


@pytest.mark.parametrize("body", ATOMICS.values(), ids=ATOMICS)
def test_lanes_do_atomic_operations_one_after_the_other(body: str) -> None:
    x = np.random.default_rng(1).integers(1, 1000, 128, np.uint32)
    check(body, [x, np.zeros(256, np.uint32)])


@pytest.mark.parametrize("body", IN_ORDER.values(), ids=IN_ORDER)
def test_atomic_operations_whose_order_would_differ_run_as_threads(body: str) -> None:
    found = compare_body(body, [np.zeros(128, np.uint32)] * 2, 64, 1)
    assert found.apart == ("atomic operations that lanes would order otherwise",)
    assert found.differs == ""


def test_each_lane_has_its_own_local_memory() -> None:
    check(LOCAL, [np.zeros(128, np.uint32)] * 2)


def test_a_fault_of_a_gather_names_the_thread() -> None:
    body = """
    ld.global.u32 %r4, [%rd1];
    ld.param.u64 %rd5, [x];
    mad.wide.u32 %rd5, %r4, 4, %rd5;
    ld.global.u32 %r5, [%rd5];
    st.global.u32 [%rd2], %r5;
    ret;"""
    x = np.arange(48, dtype=np.uint32)[::-1].copy()
    check(body, [x, np.zeros_like(x)], grid=1)
    for wrong in (48, 1 << 31, (1 << 32) - 1):
        x[19] = wrong
        module = kernel(GLOBAL_INDEX + body, ".u64 x, .u64 y").module
        (result,), _ = launch_all(module, [Launch("k", 1, 48, [x, np.zeros_like(x)])], together=True)
        assert result.counters["together"] > 0
        assert "thread (19,0,0)" in str(result.diagnostics[0])


def test_a_fault_names_the_thread() -> None:
    body = "ld.global.u32 %r4, [%rd1];\n st.global.u32 [%rd2], %r4;\n ret;"
    module = kernel(GLOBAL_INDEX + body, ".u64 x, .u64 y").module
    x = np.arange(40, dtype=np.uint32)
    (result,), _ = launch_all(module, [Launch("k", 1, 48, [x, np.zeros(48, np.uint32)])], together=True)
    assert result.counters["together"] > 0
    assert "thread (40,0,0)" in str(result.diagnostics[0])
    check(body, [x, np.zeros(48, np.uint32)], grid=1)


def test_lanes_with_barriers_of_their_own_run_as_threads() -> None:
    body = "and.b32 %r4, %r1, 1;\n add.u32 %r4, %r4, 1;\n bar.sync %r4, 64;\n st.global.u32 [%rd2], %r4;\n ret;"
    found = compare_body(body, [np.zeros(64, np.uint32)] * 2, 64, 1)
    assert found.apart == ("different barriers for different lanes",)
    assert found.differs == ""


def test_a_long_loop_ends_as_threads() -> None:
    body = """
    mov.u32 %r4, 0;
    mov.u32 %r6, %r1;
    ld.global.u32 %r7, [%rd1];
loop:
    mad.lo.u32 %r6, %r6, %r7, 5;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, 1100000;
    @%p1 bra loop;
    st.global.u32 [%rd2], %r6;
    ret;"""
    x = np.arange(GROUP, dtype=np.uint32)
    check(body, [x, np.zeros_like(x)], GROUP, 1)


def test_a_loop_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    module = kernel("loop:\n bra loop;").module
    monkeypatch.setattr(launching, "MANY_THREADS", 0)
    found = module["k"].launch(1, 32, [], device="cpu", detectors=False, on_error="collect", timeout=0.5)
    assert found.diagnostics


def accesses_in_turns(seed: int) -> str:
    """Loads and stores of own elements and of neighbours', by all threads or some, with barriers here and there."""
    random = Random(seed)
    lines = ["mov.u32 %r4, %tid.x;", "setp.lt.u32 %p1, %r4, 32;", "setp.eq.u32 %p2, %r2, 0;"]
    strange = random.random() < 0.5  # about half of the programs race
    for _ in range(random.randint(2, 10)):
        at = f"%rd{random.choice((1, 2))}+{random.choice((0, 0, 0, 4 * GROUP, 4)) if strange else 0}"
        guard = random.choice(("", "", "", "@%p1", "@%p2"))
        lines.append(
            random.choice(
                (
                    f"{guard} ld.global.u32 %r5, [{at}];",
                    f"{guard} ld.global.u32 %r6, [{at}];",
                    f"{guard} ld.global{random.choice(('', '.nc')) if strange else ''}.u32 %r7, [{at}];",
                    f"{guard} st.global.u32 [{at}], %r1;",
                    f"{guard} st.global.u32 [{at}], {random.randrange(3)};",
                    "bar.sync 0;",
                )
            )
        )
    return "\n".join([*lines, "add.u32 %r5, %r5, %r6;", "add.u32 %r5, %r5, %r7;", "st.global.u32 [%rd2], %r5;", "ret;"])


@pytest.mark.parametrize("seed", [3, 4, *(pytest.param(seed, marks=pytest.mark.bulk) for seed in range(5, 105))])
def test_accesses_in_turns(seed: int) -> None:
    x = np.arange(2048, dtype=np.uint32)
    found = compare_body(accesses_in_turns(seed), [x, x.copy()], 64, random_grid(seed), detectors=True)
    assert found.apart == ()
    assert found.differs == ""


def random_grid(seed: int) -> int:
    return 1 + seed % 4


@pytest.mark.bulk(one_in=32)
@pytest.mark.parametrize("seed", range(64))
def test_random_programs(seed: int) -> None:
    assert compare_random(seed).differs == ""


@pytest.mark.bulk(one_in=90)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_kernels_that_people_write(case: Case) -> None:
    assert compare_case(case).differs == ""
