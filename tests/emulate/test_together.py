"""Lanes that execute a kernel together compute, count and report what single threads do, bit for bit."""

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.device.result import Result
from ptxlab.emulate import launch as launching
from ptxlab.emulate.abi.code import GROUP
from tests.emulate.defined import STRIDE, Program
from tests.emulate.launching import kernel

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


def both_ways(
    monkeypatch: pytest.MonkeyPatch,
    module: ptxlab.ir.Module,
    grid: Any,
    block: Any,
    arrays: list[np.ndarray],
    **how: Any,
) -> tuple[list[np.ndarray], Result, Result]:
    """Launch the kernel `k` with lanes together and with single threads: the arrays afterwards, which are the same."""
    results, memory, compiled = [], [], []
    compile_kernel = launching.compile_kernel

    def noted(*given: Any) -> Any:
        compiled.append(compile_kernel(*given))
        return compiled[-1]

    monkeypatch.setattr(launching, "compile_kernel", noted)
    for many in (0, 1 << 60):
        monkeypatch.setattr(launching, "MANY_THREADS", many)
        monkeypatch.setattr(launching, "_spent", {})
        given = [array.copy() for array in arrays]
        results.append(
            module["k"].launch(grid, block, given, device="cpu", detectors=False, on_error="collect", workers=1, **how)
        )
        memory.append(given)
    assert compiled[0].facts["lanes"], compiled[0].facts["apart"]
    assert not compiled[1].facts["lanes"]
    if not results[1].diagnostics:  # a fault stops lanes at the same instruction, threads one after the other
        for together, single in zip(*memory, strict=True):
            assert together.tobytes() == single.tobytes()
        assert results[0].counters == results[1].counters
    return memory[0], *results


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_lanes_together_do_what_threads_do(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = kernel(GLOBAL_INDEX + body, ".u64 x, .u64 y").module
    x = np.random.default_rng(1).integers(0, 1000, 128, np.uint32)
    both_ways(monkeypatch, module, 2, 48, [x, np.zeros_like(x)])


def test_a_fault_names_the_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "ld.global.u32 %r4, [%rd1];\n st.global.u32 [%rd2], %r4;\n ret;"
    module = kernel(GLOBAL_INDEX + body, ".u64 x, .u64 y").module
    x = np.arange(40, dtype=np.uint32)
    _, together, single = both_ways(monkeypatch, module, 1, 48, [x, np.zeros(48, np.uint32)])
    assert [str(one) for one in together.diagnostics] == [str(one) for one in single.diagnostics]
    assert "thread (40,0,0)" in str(together.diagnostics[0])


def test_a_long_loop_ends_as_threads(monkeypatch: pytest.MonkeyPatch) -> None:
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
    module = kernel(GLOBAL_INDEX + body, ".u64 x, .u64 y").module
    x = np.arange(GROUP, dtype=np.uint32)
    both_ways(monkeypatch, module, 1, GROUP, [x, np.zeros_like(x)])


def test_a_loop_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    module = kernel("loop:\n bra loop;").module
    monkeypatch.setattr(launching, "MANY_THREADS", 0)
    found = module["k"].launch(1, 32, [], device="cpu", detectors=False, on_error="collect", timeout=0.5)
    assert found.diagnostics


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    text = random_program(seed)
    module = ptxlab.parse(text, name=f"defined{seed}.ptx")
    both_ways(monkeypatch, module, 1, 2 * GROUP, [np.zeros((2 * GROUP, STRIDE), np.uint8)])


def random_program(seed: int) -> str:
    """A program without calls, warp collectives and the carry flag, which lanes do not execute together."""
    head, _, body = Program(seed).text().partition(".visible .entry")
    left_out = ("shfl", "vote", "match", "redux", "bar.", "addc", ".cc.", "subc", "call", ".param .b32", "param.b32")
    lines = [line for line in body.splitlines() if not any(word in line for word in left_out)]
    return "\n".join([*head.splitlines()[:3], ".visible .entry" + lines[0], *lines[1:]])
