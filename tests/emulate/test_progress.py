"""Threads that poll, under many schedules: a program that can make progress ends, and one that cannot is a hang."""

from typing import Any

import numpy as np
import pytest

import ptxlab

HEAD = """
.version 8.3
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %out, %rd<4>;
    .reg .b32 %i, %r<12>;
    .reg .pred %p<4>;
    .shared .align 8 .b64 bar;
    ld.param.u64 %out, [out];
"""
# How the threads that take part are numbered, the blocks of the grid, and the threads of a block.
PLACES = {
    "lanes": ("mov.u32 %i, %tid.x;", lambda threads: (1, threads)),
    "warps": ("""
    mov.u32 %i, %tid.x; and.b32 %r11, %i, 31; setp.ne.u32 %p3, %r11, 0; @%p3 exit;
    shr.u32 %i, %i, 5;""", lambda threads: (1, 32 * threads)),
    "blocks": ("mov.u32 %i, %ctaid.x;", lambda threads: (threads, 1)),
}  # fmt: skip


def findings(body: str, place: str, threads: int, seed: int) -> list[str]:
    numbered, extents = PLACES[place]
    kernel: Any = ptxlab.parse(f"{HEAD}{numbered}\n{body}\nret;\n}}\n")["k"]
    result = kernel.launch(
        *extents(threads), [np.zeros(8, np.uint32)], seed=seed, on_error="collect", timeout=60, device="cpu"
    )
    return [diagnostic.code for diagnostic in result.diagnostics]


def lock(label: str) -> str:
    return f"""
{label}: atom.acquire.gpu.global.cas.b32 %r1, [%out], 0, 1;
    setp.ne.u32 %p1, %r1, 0; @%p1 bra {label};"""


UNLOCK = "st.release.gpu.global.u32 [%out], 0;"
# Thread 0 polls a word under a lock, and jumps back with the lock taken: it is free only between two accesses.
ROTATED_LOCK = f"""
    setp.ne.u32 %p2, %i, 0; @%p2 bra setter;
    {lock("L0")}
    bra middle;
again: {UNLOCK} {lock("L1")}
middle: ld.global.u32 %r2, [%out+4]; setp.eq.u32 %p1, %r2, 0; @%p1 bra again;
    {UNLOCK} exit;
setter: {lock("L2")}
    st.global.u32 [%out+4], 1; {UNLOCK}
"""
# A word is 1 only between two stores.
BLINK = """
    setp.ne.u32 %p2, %i, 0; @%p2 bra look;
again: ld.relaxed.gpu.global.u32 %r3, [%out+8]; setp.ne.u32 %p1, %r3, 0; @%p1 exit;
    st.relaxed.gpu.global.u32 [%out+4], 1; st.relaxed.gpu.global.u32 [%out+4], 0; bra again;
look: ld.relaxed.gpu.global.u32 %r3, [%out+4]; setp.eq.u32 %p1, %r3, 0; @%p1 bra look;
    st.relaxed.gpu.global.u32 [%out+8], 1;
"""
TICKETS = """
    mov.u32 %r4, 0;
again: atom.relaxed.gpu.global.add.u32 %r2, [%out], 1;
wait: ld.acquire.gpu.global.u32 %r3, [%out+4]; setp.ne.u32 %p1, %r3, %r2; @%p1 bra wait;
    ld.global.u32 %r5, [%out+8]; add.u32 %r5, %r5, 1; st.global.u32 [%out+8], %r5;
    add.u32 %r3, %r3, 1; st.release.gpu.global.u32 [%out+4], %r3;
    add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 4; @%p1 bra again;
"""
BACK_OFF = """
    xor.b32 %r6, %i, 1; mad.wide.u32 %rd1, %i, 4, %out; mad.wide.u32 %rd2, %r6, 4, %out; mov.u32 %r4, 0;
again: st.relaxed.gpu.global.u32 [%rd1], 1;
    ld.relaxed.gpu.global.u32 %r3, [%rd2]; setp.eq.u32 %p1, %r3, 0; @%p1 bra inside;
    st.relaxed.gpu.global.u32 [%rd1], 0; bra again;
inside: st.relaxed.gpu.global.u32 [%rd1], 0;
    add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 3; @%p1 bra again;
"""
LATE = """
    setp.ne.u32 %p2, %i, 0; @%p2 bra look; mov.u32 %r4, 0;
count: add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 20000; @%p1 bra count;
    st.release.gpu.global.u32 [%out+4], 1; exit;
look: nanosleep.u32 20; ld.acquire.gpu.global.u32 %r3, [%out+4]; setp.eq.u32 %p1, %r3, 0; @%p1 bra look;
"""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("body", "threads"),
    [(ROTATED_LOCK, 2), (BLINK, 2), (TICKETS, 4), (BACK_OFF, 2), (LATE, 3)],
    ids=["rotated lock", "blink", "tickets", "back off", "late"],
)
def test_what_can_make_progress_ends(body: str, threads: int, place: str) -> None:
    for seed in range(1, 25):
        assert findings(body, place, threads, seed) == [], seed


NEVER_SET = "look: ld.acquire.gpu.global.u32 %r3, [%out+4]; setp.eq.u32 %p1, %r3, 0; @%p1 bra look;"
NEVER_FREE = f"{lock('L0')}\n    add.u32 %r2, %r2, 1;"
NEVER_SET_BETWEEN_BARRIERS = """
look: barrier.sync 0; ld.acquire.gpu.global.u32 %r3, [%out+4]; setp.eq.u32 %p1, %r3, 0; @%p1 bra look;
"""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "body", [NEVER_SET, NEVER_FREE, NEVER_SET_BETWEEN_BARRIERS], ids=["flag", "lock", "flag between barriers"]
)
def test_what_polls_in_vain_is_a_hang(body: str, place: str) -> None:
    for seed in range(1, 13):
        assert findings(body, place, 3, seed) == ["hang"], seed


def test_a_phase_that_never_completes_is_a_hang() -> None:
    body = """
    setp.eq.u32 %p1, %i, 0; @%p1 mbarrier.init.shared.b64 [bar], 9; bar.sync 0;
    mbarrier.arrive.shared.b64 %rd1, [bar];
look: mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra look;
"""
    for seed in range(1, 13):
        assert findings(body, "lanes", 8, seed) == ["hang"], seed
