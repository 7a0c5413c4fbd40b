"""A ring of tensor copies: one warp begins them, others use them; what goes wrong in such kernels is found."""

from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.report import Diagnostic

STAGES, TILES = 3, 8
COPY = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"

# Warp 0 brings rows of 32 x 32 words, warps 1 and 2 add them up; `full` and `empty` have a barrier for each stage.
RING = f""".version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)
{{{{
    .reg .pred %p<8>;
    .reg .b32 %r<24>, %t;
    .reg .b64 %rd<6>;
    .shared .align 128 .b8 tiles[{STAGES * 4096}];
    .shared .align 8 .b64 full[{STAGES}];
    .shared .align 8 .b64 empty[{STAGES}];
    mov.u32 %t, %tid.x;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd2, %rd1;
    mov.u32 %r1, full;
    mov.u32 %r2, empty;
    mov.u32 %r3, tiles;
    mov.u32 %r4, 0; // the tile
    mov.u32 %r5, 0; // its stage
    mov.u32 %r6, 0; // the parity of the round
    mov.u32 %r7, 0; // the sum
    setp.ne.u32 %p1, %t, 0;
    @%p1 bra ready;
init:
    mad.lo.u32 %r8, %r5, 8, %r1;
    mbarrier.init.shared::cta.b64 [%r8], 1;
    mad.lo.u32 %r8, %r5, 8, %r2;
    mbarrier.init.shared::cta.b64 [%r8], 64;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, {STAGES};
    @%p2 bra init;
    mov.u32 %r5, 0;
    fence.mbarrier_init.release.cluster;
ready:
    bar.sync 0;
    setp.ge.u32 %p3, %t, 32;
    @%p3 bra consume;
    @%p1 bra end;
produce:
    mad.lo.u32 %r9, %r5, 8, %r1;
    mad.lo.u32 %r10, %r5, 8, %r2;
    mad.lo.u32 %r11, %r5, 4096, %r3;
    xor.b32 %r12, %r6, 1;
free:
    {{free}}
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], {{bytes}};
    mul.lo.u32 %r13, %r4, 32;
    {COPY} [%r11], [%rd2, {{{{0, %r13}}}}], [%r9];
    add.u32 %r4, %r4, 1;
    add.u32 %r5, %r5, 1;
    setp.eq.u32 %p4, %r5, {STAGES};
    @%p4 mov.u32 %r5, 0;
    @%p4 xor.b32 %r6, %r6, 1;
    setp.lt.u32 %p5, %r4, {TILES};
    @%p5 bra produce;
    bra end;
consume:
    mad.lo.u32 %r9, %r5, 8, %r1;
    mad.lo.u32 %r10, %r5, 8, %r2;
    mad.lo.u32 %r11, %r5, 4096, %r3;
    sub.u32 %r14, %t, 32;
    mad.lo.u32 %r11, %r14, 64, %r11;
wait:
    {{wait}}
    {{early}}
    mov.u32 %r15, 0;
add:
    ld.shared.u32 %r16, [%r11];
    add.u32 %r7, %r7, %r16;
    add.u32 %r11, %r11, 4;
    add.u32 %r15, %r15, 1;
    setp.lt.u32 %p2, %r15, 16;
    @%p2 bra add;
    {{late}}
    add.u32 %r4, %r4, 1;
    add.u32 %r5, %r5, 1;
    setp.eq.u32 %p4, %r5, {STAGES};
    @%p4 mov.u32 %r5, 0;
    @%p4 xor.b32 %r6, %r6, 1;
    setp.lt.u32 %p5, %r4, {TILES};
    @%p5 bra consume;
    ld.param.u64 %rd3, [out];
    mad.wide.u32 %rd4, %r14, 4, %rd3;
    st.global.u32 [%rd4], %r7;
end:
    ret;
}}}}
"""
FREE = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r10], %r12;\n    @!%p2 bra free;"
WAIT = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9], %r6;\n    @!%p2 bra wait;"
RELEASE = "mbarrier.arrive.shared::cta.b64 _, [%r10];"


def run(
    free: str = FREE, wait: str = WAIT, early: str = "", late: str = RELEASE, bytes: int = 4096, seed: int = 0
) -> tuple[bool, list[Diagnostic]]:
    """Whether the sums are right, and what is wrong."""
    data = np.random.default_rng(1).integers(0, 1000, (32 * TILES, 32), dtype=np.uint32)
    out = np.zeros(64, np.uint32)
    text = RING.format(free=free, wait=wait, early=early, late=late, bytes=bytes)
    how: dict[str, Any] = {"device": "cpu", "seed": seed, "timeout": 30, "on_error": "collect"}
    result = ptxlab.parse(text, name="k.ptx")["k"].launch(1, 96, [ptxlab.tensor_map(data, (32, 32)), out], **how)
    return bool((out == data.reshape(TILES, 64, 16).sum((0, 2))).all()), result.diagnostics


@pytest.mark.parametrize("seed", range(4))
def test_a_ring(seed: int) -> None:
    assert run(seed=seed) == (True, [])


WRONG = {
    "no thread waits for a stage that is free": ({"free": ""}, "bad-barrier"),
    "no thread waits for a stage that is full": ({"wait": ""}, "uninitialized-read"),
    "a delay is not a wait": ({"wait": "nanosleep.u32 100;"}, "data-race"),
    "the parity is always that of the first round": ({"wait": WAIT.replace("%r6", "0")}, "data-race"),
    "a stage is given back before it is read": ({"early": RELEASE, "late": ""}, "data-race"),
}


@pytest.mark.parametrize(("how", "code"), WRONG.values(), ids=WRONG.keys())
def test_a_ring_that_turns_too_fast(how: dict[str, str], code: str) -> None:
    """Every schedule shows that something is wrong, and some show what."""
    reported = set()
    for seed in range(4):
        found = run(**how, seed=seed)[1]  # type: ignore[arg-type]
        assert any(diagnostic.level == "error" for diagnostic in found), seed
        reported |= {diagnostic.code for diagnostic in found}
    assert code in reported


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"late": ""}, "thread 0 of block (0,0,0) waits here for phase 0 of the mbarrier `empty`"),
        ({"bytes": 8192}, "4096 of 8192 bytes"),
    ],
)
def test_a_ring_without_progress(how: dict[str, Any], said: str) -> None:
    (found,) = run(**how)[1]
    assert found.code == "hang"
    shown = "".join(found.notes) + "".join(label.text for label in found.labels)
    assert said in shown
