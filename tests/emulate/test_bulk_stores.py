"""`st.bulk`: zeros for a range of shared memory, as ordinary stores would write them."""

from typing import Any

import numpy as np
import pytest

import ptxlab

KERNEL = """.version 9.0
.target sm_100
.address_size 64
.visible .entry k(.param .u64 out, .param .u64 size, .param .u64 at)
{{
    .shared .align 16 .b8 room[64];
    .reg .b64 %rd<8>;
    .reg .b32 %r<8>;
    .reg .u32 %size;
    .reg .pred %p<3>;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd1, %r1, 4;
    mov.u64 %rd2, room;
    add.u64 %rd3, %rd2, %rd1;
    st.shared.u32 [%rd3], 0xffffffff;
    bar.sync 0;
    setp.eq.u32 %p1, %r1, 0;
    ld.param.u64 %rd4, [size];
    cvt.u32.u64 %size, %rd4;
    ld.param.u64 %rd5, [at];
    add.u64 %rd2, %rd2, %rd5;
    cvta.shared.u64 %rd6, %rd2;
    @%p1 {store}
    {wait}
    ld.shared.u32 %r3, [%rd3];
    ld.param.u64 %rd7, [out];
    add.u64 %rd7, %rd7, %rd1;
    st.global.u32 [%rd7], %r3;
    ret;
}}
"""
FORMS = [
    "st.bulk.weak.shared::cta [%rd2], %rd4, 0;",
    "st.bulk.shared::cta [%rd2], %size, 0;",
    "st.bulk [%rd6], %rd4, 0;",
    "st.bulk.weak [%rd6], %size, 0;",
]


def run(
    store: str, size: int, at: int, wait: str = "bar.sync 0;"
) -> tuple[list[int], list[ptxlab.Diagnostic], dict[str, Any]]:
    """What 16 threads read, what is wrong, and what was counted."""
    out = np.zeros(16, np.uint32)
    kernel = ptxlab.parse(KERNEL.format(store=store, wait=wait), name="k.ptx")["k"]
    result = kernel.launch(grid=1, block=16, args=[out, size, at], device="cpu", on_error="collect")
    return out.tolist(), result.diagnostics, result.counters


@pytest.mark.parametrize("store", FORMS)
@pytest.mark.parametrize(("size", "at"), [(64, 0), (24, 8), (0, 16), (8, 56)])
def test_zeros(store: str, size: int, at: int) -> None:
    found, wrong, counters = run(store, size, at)
    assert wrong == []
    assert found == [0 if at <= 4 * index < at + size else 0xFFFFFFFF for index in range(16)]
    assert sum(counters["bytes"]["shared"].values()) == 64 + size + 64


def test_a_constant_size() -> None:
    assert run("st.bulk.shared::cta [%rd2], 16, 0;", 0, 8)[0] == [0xFFFFFFFF] * 2 + [0] * 4 + [0xFFFFFFFF] * 10


@pytest.mark.parametrize(
    ("size", "at", "code", "message"),
    [
        (72, 0, "out-of-bounds", "write of 72 bytes outside of shared memory"),
        (8, 60, "misaligned-access", "write of 8 bytes at address 0x3c, not a multiple of 8"),
        (12, 0, "misaligned-access", "`st.bulk.weak.shared::cta` of 12 bytes, not a multiple of 8 up to 16777216"),
        (
            1 << 25,
            0,
            "misaligned-access",
            "`st.bulk.weak.shared::cta` of 33554432 bytes, not a multiple of 8 up to 16777216",
        ),
    ],
)
def test_ranges_that_are_wrong(size: int, at: int, code: str, message: str) -> None:
    (found,) = run(FORMS[0], size, at)[1]
    assert (found.code, found.message) == (code, message)


def test_others_must_wait_for_it() -> None:
    codes = {found.code for found in run(FORMS[0], 64, 0, wait="bar.warp.sync 0xffff;")[1]}
    assert codes == set()  # lanes of one warp that meet are ordered
    assert {found.code for found in run(FORMS[0], 64, 0, wait="")[1]} == {"data-race"}
