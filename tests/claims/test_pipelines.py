"""What the texts say about rings of buffers and the phase of an mbarrier, tried on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

import ptxlab
from ptxlab.device.result import Result

RING = """.version 8.0
.target sm_90
.address_size 64
.visible .entry ring(.param .u64 out)
{{
    .shared .align 8 .b64 full[{stages}];
    .shared .align 8 .b64 empty[{stages}];
    .shared .align 4 .b32 slots[{words}];
    .reg .pred %p;
    .reg .b32 %thread, %lane, %i, %stage, %parity, %full, %empty, %slot, %value;
    .reg .b64 %out;
    mov.u32 %thread, %tid.x;
    and.b32 %lane, %thread, 31;
    ld.param.u64 %out, [out];
    mad.wide.u32 %out, %lane, 4, %out;
    setp.lt.u32 %p, %thread, {stages};
    mov.u32 %full, full;
    mov.u32 %empty, empty;
    mad.lo.u32 %full, %thread, 8, %full;
    mad.lo.u32 %empty, %thread, 8, %empty;
    @%p mbarrier.init.shared::cta.b64 [%full], 32;
    @%p mbarrier.init.shared::cta.b64 [%empty], 32;
    bar.sync 0;
    mov.u32 %i, 0;

next:
    rem.u32 %stage, %i, {stages};
    {parity}
    and.b32 %parity, %parity, 1;
    mov.u32 %full, full;
    mov.u32 %empty, empty;
    mad.lo.u32 %full, %stage, 8, %full;
    mad.lo.u32 %empty, %stage, 8, %empty;
    mov.u32 %slot, slots;
    mad.lo.u32 %slot, %stage, 128, %slot;
    mad.lo.u32 %slot, %lane, 4, %slot;
    setp.ge.u32 %p, %thread, 32;
    @%p bra consume;

    xor.b32 %parity, %parity, 1;
wait_empty:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%empty], %parity;
    @!%p bra wait_empty;
    mad.lo.u32 %value, %i, 100, %lane;
    st.shared.u32 [%slot], %value;
    mbarrier.arrive.shared::cta.b64 _, [%full];
    bra step;

consume:
wait_full:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [%full], %parity;
    @!%p bra wait_full;
    ld.shared.u32 %value, [%slot];
    mbarrier.arrive.shared::cta.b64 _, [%empty];
    st.global.u32 [%out], %value;
    add.u64 %out, %out, 128;

step:
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, {steps};
    @%p bra next;
    ret;
}}
"""
STEPS = 12


def run(stages: int, parity: str) -> tuple[Result, bool]:
    """A warp that fills a ring and one that empties it; the result, and whether all came through in order."""
    out = np.zeros((STEPS, 32), np.uint32)
    text = RING.format(stages=stages, words=32 * stages, steps=STEPS, parity=parity.format(stages=stages))
    result = ptxlab.parse(text)["ring"].launch(1, 64, [out], device="cpu", on_error="collect", timeout=20)
    return result, bool((out == 100 * np.arange(STEPS)[:, None] + np.arange(32)).all())


@pytest.mark.parametrize("stages", [2, 3, 4, 5])
def test_one_bit_that_flips_when_the_ring_is_through_serves_any_number_of_stages(stages: int) -> None:
    result, complete = run(stages, "div.u32 %parity, %i, {stages};")
    assert result.diagnostics == []
    assert complete


@pytest.mark.parametrize(("stages", "code"), [(2, "hang"), (3, "stale-phase"), (4, "stale-phase"), (5, "stale-phase")])
def test_one_bit_that_flips_at_every_step_serves_none(stages: int, code: str) -> None:
    result, complete = run(stages, "mov.u32 %parity, %i;")
    assert code in {found.code for found in result.diagnostics}
    assert not complete
