"""Reductions: by a butterfly of shuffles in a warp, and through shared memory in a block.

These are macros for kernels in Python: each writes its instructions where it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptxlab.author import f32, ptx

WARP = 32
EVERY_LANE = 0xFFFFFFFF

Combine = Callable[[Any, Any], Any]


def add(a: Any, b: Any) -> Any:
    """The sum."""
    return a + b


def larger(a: Any, b: Any) -> Any:
    """The larger one."""
    return ptx.max.f32(a, b)


def over_warp(value: Any, combine: Combine) -> Any:
    """One value from those of all 32 lanes, in every lane, after five steps."""
    for distance in (16, 8, 4, 2, 1):
        value = combine(value, ptx.shfl.sync.bfly.b32(value, distance, 31, EVERY_LANE))
    return value


def over_block(value: Any, combine: Combine, threads: int) -> Any:
    """One value from those of all threads of a block, in every thread, with one barrier.

    Each warp stores its own in shared memory; after the barrier each warp combines all of them. Each call has memory of
    its own, so the next one needs no second barrier.
    """
    value = over_warp(value, combine)
    if threads == WARP:
        return value
    warps = threads // WARP
    of_warps = ptx.shared(f32, warps, name="of_warps")
    thread = ptx.tid.x
    with ptx.when((thread & (WARP - 1)) == 0):
        of_warps[thread >> 5] = value
    ptx.bar.sync(0)
    value = of_warps[thread & (warps - 1)]
    distance = warps // 2
    while distance:
        value = combine(value, ptx.shfl.sync.bfly.b32(value, distance, 31, EVERY_LANE))
        distance //= 2
    return value
