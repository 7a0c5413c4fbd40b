"""Occupancy against cases worked out by hand from NVIDIA's rules."""

from __future__ import annotations

import pytest

from ptxlab.isa.occupancy import block_threads, occupancy


@pytest.mark.parametrize(
    ("target", "threads", "registers", "shared", "blocks", "warps", "limiter"),
    [
        ("sm_80", 256, 32, 0, 8, 64, "warps"),  # 2048 threads
        ("sm_80", 32, 16, 0, 32, 32, "blocks"),
        ("sm_80", 256, 128, 0, 2, 16, "registers"),  # 65536 / (128 * 256)
        ("sm_80", 256, 33, 0, 6, 48, "registers"),  # 40 a thread once rounded: 12 warps a quarter
        ("sm_80", 128, 32, 48 * 1024, 3, 12, "shared"),  # 49 KB of 164 KB each
        ("sm_86", 1024, 32, 0, 1, 32, "warps"),  # 1536 threads
        ("sm_90a", 384, 168, 200_000, 1, 12, "registers"),
        ("sm_90a", 128, 40, 227 * 1024, 1, 4, "shared"),
        ("sm_90a", 128, 40, 227 * 1024 + 1, 0, 0, "shared"),
        ("sm_120", 1024, 64, 0, 1, 32, "warps"),
        ("sm_75", 1024, 64, 65536, 1, 32, "warps"),
        ("sm_89", 32, 16, 0, 24, 24, "blocks"),
        ("sm_89", 224, 16, 0, 6, 42, "warps"),
        ("sm_100a", 32, 16, 0, 32, 32, "blocks"),
    ],
)
def test_blocks_and_what_limits_them(
    target: str, threads: int, registers: int, shared: int, blocks: int, warps: int, limiter: str
) -> None:
    found = occupancy(target, threads, registers, shared)
    assert found
    assert (found.blocks, found.warps, found.limiter) == (blocks, warps, limiter)
    assert found.fraction == warps / found.warp_limit


def test_a_target_without_published_limits_has_no_answer() -> None:
    assert occupancy("sm_107", 256, 32, 0) is None


def test_threads_are_read_from_the_entry() -> None:
    text = ".entry kk() .maxntid 7 { } .entry k(.param .u32 x) .minnctapersm 1 .reqntid 64, 2, 3 { } .entry n() { }"
    assert block_threads(text, "k") == 384
    assert block_threads(text, "kk") == 7
    assert block_threads(text, "n") is None
    assert block_threads(text, "nowhere") is None
