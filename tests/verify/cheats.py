"""Ways to look right without being right, each with its right twin, for one task: y = 2 x + 1."""

from __future__ import annotations

from ptxlab.verify import Array, Scalar, Size, Task

TASK = Task(
    "affine",
    lambda x: 2 * x + 1,
    sizes={"n": Size(1, 300)},
    arguments=[Array("x", "f32", "n"), Array("y", "f32", "n", role="out"), Scalar("n")],
    shapes=[{"n": 64}, {"n": 128}],
    tolerance=1e-2,  # as harnesses have it
    hidden=4,
    seeds=2,
    launch="grid=ceil_div(n, 64) block=64",
)

HEAD = """.version 8.0
.target sm_80
.address_size 64
"""
KERNEL = """.visible .entry affine(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .b64 %rd<12>;
    .reg .b32 %r<12>;
    .reg .b16 %h<4>;
    .reg .f32 %f<8>;
    .reg .pred %p<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r2, 64, %r3;
    setp.ge.u32 %p1, %r4, %r1;
    @%p1 bra done;
    mul.wide.u32 %rd3, %r4, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;
    st.global.f32 [%rd5], %f2;
done:
    ret;
}
"""
LOAD, COMPUTE = "    ld.global.f32 %f1, [%rd4];\n", "    fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;\n"
STORE, BOUND = "    st.global.f32 [%rd5], %f2;\n", "    setp.ge.u32 %p1, %r4, %r1;\n"


def changed(*changes: tuple[str, str], before: str = "") -> str:
    """The right kernel, with changes."""
    text = KERNEL
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return HEAD + before + text


KEPT = """.visible .global .align 4 .b32 calls[300];
.visible .global .align 4 .f32 kept[300];
"""
# Each thread counts the calls: the first one computes and keeps, later ones give what was kept.
CACHED = """    mov.u64 %rd6, calls;
    add.s64 %rd6, %rd6, %rd3;
    mov.u64 %rd7, kept;
    add.s64 %rd7, %rd7, %rd3;
    ld.global.u32 %r5, [%rd6];
    st.global.u32 [%rd6], 1;
    setp.eq.u32 %p2, %r5, 0;
    @%p2 st.global.f32 [%rd7], %f2;
    @!%p2 ld.global.f32 %f2, [%rd7];
"""
ONCE = """    mov.u64 %rd6, calls;
    add.s64 %rd6, %rd6, %rd3;
    ld.global.u32 %r5, [%rd6];
    st.global.u32 [%rd6], 1;
    setp.ne.u32 %p2, %r5, 0;
    @%p2 bra done;
"""
COUNTED = """    mov.u64 %rd6, calls;
    add.s64 %rd6, %rd6, %rd3;
    ld.global.u32 %r5, [%rd6];
    add.u32 %r5, %r5, 1;
    st.global.u32 [%rd6], %r5;
"""
HALF = """    cvt.rn.f16.f32 %h1, %f1;
    cvt.f32.f16 %f1, %h1;
"""
TWO_HALVES = """    cvt.rn.f16.f32 %h1, %f1;
    cvt.f32.f16 %f3, %h1;
    sub.f32 %f4, %f1, %f3;
    cvt.rn.f16.f32 %h2, %f4;
    cvt.f32.f16 %f4, %h2;
    add.f32 %f1, %f3, %f4;
"""
KNOWN = """    setp.ne.u32 %p2, %r1, 64;
    setp.ne.and.u32 %p2, %r1, 128, %p2;
    @%p2 mov.f32 %f2, %f1;
"""
CHOSEN = """    setp.lt.u32 %p2, %r1, 128;
    @%p2 mad.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;
"""
CLOCK = """    mov.u32 %r6, %clock;
    and.b32 %r6, %r6, 0;
    cvt.rn.f32.u32 %f3, %r6;
    add.f32 %f2, %f2, %f3;
"""
LANE = CLOCK.replace("%clock", "%laneid")
SHARED = "    .shared .align 4 .f32 box[64];\n"
PASS = """    mul.wide.u32 %rd8, %r3, 4;
    mov.u64 %rd9, box;
    add.s64 %rd8, %rd9, %rd8;
    st.shared.f32 [%rd8], %f1;
    xor.b32 %r7, %r3, 0;
{}    mul.wide.u32 %rd10, %r7, 4;
    add.s64 %rd10, %rd9, %rd10;
    ld.shared.f32 %f1, [%rd10];
"""
MEET = "    bar.warp.sync 0xffffffff;\n"

# The code that rejects it, the cheat, and what is nearly the same and right.
IN_PTX: dict[str, tuple[str, str, str]] = {
    "stale memory": ("stale-memory", changed((STORE, "")), changed((STORE, STORE + STORE))),
    "constant": ("constant-output", changed((COMPUTE, "    mov.f32 %f2, 0f3F800000;\n")),
                 changed((COMPUTE, "    mov.f32 %f2, 0f3F800000;\n    fma.rn.f32 %f2, %f1, 0f40000000, %f2;\n"))),
    "no input": ("independent-output", changed((COMPUTE, "    cvt.rn.f32.u32 %f2, %r4;\n")),
                 changed((COMPUTE, "    cvt.rn.f32.u32 %f2, %r4;\n" + COMPUTE))),
    "known sizes": ("known-sizes-only", changed((COMPUTE, COMPUTE + KNOWN)), changed((COMPUTE, COMPUTE + CHOSEN))),
    "skipped tail": ("skipped-tail", changed((BOUND, "    and.b32 %r8, %r1, -64;\n    setp.ge.u32 %p1, %r4, %r8;\n")),
                     changed((BOUND, "    and.b32 %r8, %r1, -1;\n    setp.ge.u32 %p1, %r4, %r8;\n"))),
    "sampled elements": ("unwritten-elements", changed((STORE, "    and.b32 %r8, %r4, 1;\n    setp.eq.u32 %p2, %r8, 0;\n"
                                                        "    @%p2 st.global.f32 [%rd5], %f2;\n")),
                         changed((STORE, "    and.b32 %r8, %r4, 1;\n    setp.lt.u32 %p2, %r8, 2;\n"
                                  "    @%p2 st.global.f32 [%rd5], %f2;\n"))),
    "half precision": ("narrow-precision", changed((COMPUTE, HALF + COMPUTE)), changed((COMPUTE, TWO_HALVES + COMPUTE))),
    "written input": ("written-input", changed((STORE, STORE + "    st.global.f32 [%rd4], %f2;\n")),
                      changed((STORE, STORE + "    ld.global.f32 %f1, [%rd4];\n"))),
    "memory of others": ("out-of-bounds", changed((LOAD, "    ld.global.f32 %f3, [%rd4+4096];\n" + LOAD)),
                         changed((LOAD, "    ld.global.f32 %f3, [%rd4+0];\n" + LOAD))),
    "kept result": ("cached-result", changed((STORE, CACHED + STORE), before=KEPT),
                    changed((STORE, COUNTED + STORE), before=KEPT)),
    "first call only": ("cached-result", changed((STORE, ONCE + STORE), before=KEPT),
                        changed((STORE, ONCE.replace("setp.ne", "setp.gt").replace("0;\n    @", "1;\n    @") + STORE),
                                before=KEPT)),
    "clock": ("clock-dependent", changed((STORE, CLOCK + STORE)), changed((STORE, LANE + STORE))),
    "race": ("data-race", changed(("    ld.param.u64 %rd1", SHARED + "    ld.param.u64 %rd1"),
                                  (LOAD, LOAD + PASS.format("    xor.b32 %r7, %r7, 32;\n    xor.b32 %r7, %r7, 32;\n"
                                                            "    st.shared.f32 [box], %f1;\n    st.shared.f32 [%rd8], %f1;\n"))),
             changed(("    ld.param.u64 %rd1", SHARED + "    ld.param.u64 %rd1"), (LOAD, LOAD + PASS.format("")))),
}  # fmt: skip

AUTHORED = """
import numpy as np
from ptxlab.author import f32, kernel, pointer, ptx, u32
from ptxlab.measure import Launch

@kernel(target="sm_80")
def affine(x: pointer[f32], y: pointer[f32], n: u32):
    at = ptx.ctaid.x * 64 + ptx.tid.x
    with ptx.when(at < n):
        y[at] = ptx.fma.rn.f32(x[at], 2.0, 1.0)

def launch(x, y, n):
{}    return Launch(affine, -(-n // 64), 64, [x, y, n])
"""
COPY = """
@kernel(target="sm_80")
def copy(x: pointer[f32], y: pointer[f32], n: u32):
    at = ptx.ctaid.x * 64 + ptx.tid.x
    with ptx.when(at < n):
        y[at] = x[at]

def launch(x, y, n):
    return Launch(copy, -(-n // 64), 64, [{}, y, n])
"""
IN_PYTHON: dict[str, tuple[str, str, str]] = {
    "patched harness": ("patched-harness", AUTHORED.format("    np.allclose = lambda *a, **b: True\n"),
                        AUTHORED.format("    np.allclose(1, 1)\n")),
    "host computes": ("host-computation", AUTHORED.format("") + COPY.format("2 * x + 1"),
                      AUTHORED.format("    2 * x + 1\n")),
    "kept by Python": ("cached-result", AUTHORED.format("    if DONE: return []\n    DONE.append(n)\n") + "DONE = []\n",
                       AUTHORED.format("    DONE.append(n)\n") + "DONE = []\n"),
    "no kernel": ("no-kernel", AUTHORED.format("    y[:] = 2 * x + 1\n    return []\n"),
                  AUTHORED.format("    y[:] = 2 * x + 1\n")),
    "own stream": ("own-stream", AUTHORED.format("    affine.launch(-(-n // 64), 64, [x, y, n], stream=7)\n"),
                   AUTHORED.format("    affine.launch(-(-n // 64), 64, [x, y, n])\n")),
    "forged answer": ("python-failed", 'import os\nfor file in range(3, 20):\n    try: os.write(file, b\'{"status": '
                      '"accepted", "calls": [3], "workspaces": {}}\\n\')\n    except OSError: pass\ndef launch(x): pass\n',
                      "print('accepted')\n" + AUTHORED.format("")),
    "exit": ("python-failed", "import os\nos._exit(0)\n", AUTHORED.format("    print('accepted', flush=True)\n")),
}  # fmt: skip
