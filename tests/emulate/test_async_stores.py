"""`st.async` and `red.async`: what they bring, when it comes, and what is found wrong."""

from typing import Any

import numpy as np
import pytest

import ptxlab
from tests.emulate.clusters import SYNC, codes, findings, run

# Each block sends to the next one, which waits for `bytes` bytes at its mbarrier.
SEND = """
    .reg .b32 %w<9>; .reg .b64 %d<9>;
    @%p1 mbarrier.init.shared.b64 [bar], 1;
    @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], {bytes};
    {before}
""" + SYNC + """
    mov.u32 %r10, bar; mapa.shared::cluster.u32 %r11, %r10, %r3;
    {send}
    {wait}
    ld.shared.u32 %r20, [%r4];
    st.global.u32 [%rd1], %r20;
""" + SYNC  # fmt: skip
WAIT = "wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [bar], 0;\n@!%p3 bra wait;"
STORE = "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r9, [%r11];"


def send(send: str = STORE, bytes: int = 128, before: str = "", wait: str = WAIT) -> str:
    return SEND.format(send=send, bytes=bytes, before=before, wait=wait)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("detectors", [True, False])
def test_a_store(seed: int, detectors: bool) -> None:
    out = run(send(), grid=6, cluster=3, seed=seed, detectors=detectors)
    own = np.arange(6 * 32).reshape(2, 3, 32)
    assert (out.reshape(2, 3, 32) == np.roll(own, 1, 1)).all()


GENERIC = "cvt.u64.u32 %d1, %r5; cvta.shared::cluster.u64 %d1, %d1; cvt.u64.u32 %d2, %r11;"
GENERIC += " cvta.shared::cluster.u64 %d2, %d2;"


@pytest.mark.parametrize(
    ("body", "bytes", "expected"),
    [
        (f"{GENERIC} st.async.mbarrier::complete_tx::bytes.b32 [%d1], %r9, [%d2];", 128, lambda own: own),
        ("setp.lt.u32 %p4, %r1, 8; mad.lo.u32 %r5, %r1, 12, %r5; add.u32 %w1, %r9, 1; add.u32 %w2, %r9, 2;"
         " add.u32 %w3, %r9, 3; @%p4 st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32"
         " [%r5], {{%r9, %w1, %w2, %w3}}, [%r11];", 128,
         lambda own: own[:, :8, None].repeat(4, 2).reshape(2, 32) + np.tile(np.arange(4), 8)),
        ("setp.lt.u32 %p4, %r1, 16; mad.lo.u32 %r5, %r1, 4, %r5; mov.b64 %d1, {{%r9, %r1}};"
         " @%p4 st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r5], %d1, [%r11];", 128,
         lambda own: np.stack([own[:, :16], own[:, :16] % 32], 2).reshape(2, 32)),
    ],
)  # fmt: skip
def test_values_of_all_widths(body: str, bytes: int, expected: Any) -> None:
    own = np.arange(64).reshape(2, 32)
    assert (run(send(body.replace("{{", "{").replace("}}", "}"), bytes)) == np.roll(expected(own), 1, 0)).all()


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("add.u32", lambda old, new: old + new),
        ("min.s32", lambda old, new: np.minimum(old.astype(np.int32), new.astype(np.int32)).astype(np.uint32)),
        ("max.u32", np.maximum),
        ("and.b32", lambda old, new: old & new),
        ("xor.b32", lambda old, new: old ^ new),
        ("inc.u32", lambda old, new: np.where(old >= new, 0, old + 1).astype(np.uint32)),
        ("dec.u32", lambda old, new: np.where((old == 0) | (old > new), new, old - 1).astype(np.uint32)),
    ],
)
def test_reductions(operation: str, expected: Any) -> None:
    reduce = f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{operation} [%r5], %w1, [%r11];"
    begin = "mad.lo.u32 %w1, %r9, 0x2f0b9c35, 7; mul.lo.u32 %w2, %r1, 0x9b3d1f; st.shared.u32 [%r4], %w2;"
    brought = (np.arange(64, dtype=np.uint32) * np.uint32(0x2F0B9C35) + np.uint32(7)).reshape(2, 32)
    found = np.arange(32, dtype=np.uint32) * np.uint32(0x9B3D1F)
    assert (run(send(reduce, before=begin)) == expected(found[None], np.roll(brought, 1, 0))).all()


def test_who_does_not_wait_reads_what_was_there() -> None:
    """In every run, and it is a race; the one that waits has none."""
    assert codes(send()) == []
    body = send(before="st.shared.u32 [%r4], 77;", wait="") + WAIT
    assert (run(body, on_error="collect") == 77).all()
    (found,) = findings(body)
    assert (found.code, found.message) == ("data-race", "a thread reads shared memory that a store still writes")
    assert found.notes[0] == "the store is complete when its mbarrier completes"


def test_no_proxy_fence_is_needed() -> None:
    assert codes(send(before="st.shared.u32 [%r4], 77;")) == []


def test_bytes_that_do_not_add_up() -> None:
    (found,) = findings(send(bytes=132))
    assert found.code == "hang"
    assert "128 of 132 bytes" in found.notes[0]


def test_a_block_that_goes_before_the_bytes_come() -> None:
    """It must wait for what is sent to it, or for who sends it."""
    early = "@%p1 mbarrier.init.shared.b64 [bar], 1;\n" + SYNC
    early += f"mov.u32 %r10, bar; mapa.shared::cluster.u32 %r11, %r10, %r3;\n@%p2 {STORE}\n"
    assert codes(early) == ["exited-block"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (STORE.replace("[%r11]", "[%r10]"), "the mbarrier is in another block than the bytes whose arrival it counts"),
        (STORE.replace("[%r11]", "[%r11+8]"), "the mbarrier at byte 8 of shared memory is not initialized"),
        (STORE.replace("[%r5]", "[%r5+2]"), "write of 4 bytes at address 0x2000012, not a multiple of 4"),
        (STORE.replace("[%r5]", "[%r5+8192]"), "write of 4 bytes outside of shared memory of block (1,0,0)"),
    ],
)
def test_misuse(body: str, message: str) -> None:
    with pytest.raises(ptxlab.KernelError) as refused:
        run(send(f"@%p2 {body}"), detectors=False)
    assert refused.value.diagnostics[0].message == message
