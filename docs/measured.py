"""What `claims.md` says about speed, asserted of what was measured on an H200 and is kept in `evidence`.

The page names a claim by its function here. `build.py` calls them all: no page is built that evidence contradicts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from ptxlab.measure import Record
from ptxlab.measure.record import Sized

EVIDENCE = Path(__file__).parent.parent / "evidence"
MEMORY: dict[str, Any] = json.loads((EVIDENCE / "memory.json").read_text(encoding="utf-8"))
CLAIMS: list[Callable[[], None]] = []


def claim(function: Callable[[], None]) -> Callable[[], None]:
    """What the page may name."""
    CLAIMS.append(function)
    return function


def sizes(name: str) -> list[Sized]:
    """What was measured of a kernel of the gallery."""
    return Record.read(EVIDENCE / "bench" / f"{name}.json").sizes


def speed_ups(name: str, after: str, before: str) -> list[float]:
    """How many times as fast one variant is as another, at each size."""
    return [sized.ratio(after, before) for sized in sizes(name)]


@claim
def every_optimization_step_is_faster() -> None:
    steps = ("naive", "coalesced", "shared memory", "1-D tiling")
    largest = sizes("sgemm")[-1]
    assert all(largest.ratio(after, before) > 1.5 for before, after in pairwise(steps))


@claim
def shared_memory_is_an_order_of_magnitude_faster_than_memory_not_two() -> None:
    cycles = 1.5e9, 2.0e9  # a second, what an H200 runs at, at least and at most
    shared = [MEMORY["measured"]["shared memory, bytes a cycle and SM"] * MEMORY["multiprocessors"] * hertz
              for hertz in cycles]  # fmt: skip
    copied = sizes("copy")[-1]["copy"].bandwidth
    assert all(5 < bandwidth / copied < 10 for bandwidth in shared)


@claim
def a_load_from_memory_takes_more_than_400_cycles_and_one_from_the_second_cache_less() -> None:
    assert MEMORY["measured"]["memory, cycles"] > 500
    assert 200 < MEMORY["measured"]["L2 cache, cycles"] < 350


@claim
def a_load_from_shared_memory_takes_less_than_30_cycles() -> None:
    assert 20 < MEMORY["measured"]["shared memory, cycles"] < 30


@claim
def on_hopper_wgmma_is_as_fast_as_cublas_and_mma_sync_is_not() -> None:
    def largest(name: str, variant: str) -> list[float]:
        chosen = [
            one
            for one in sizes(name)
            if one.size["m"] == one.size["n"] == one.size["k"] == 8192 and one.size["type"] in ("f16", "bf16")
        ]
        return [one.ratio(variant, "cuBLAS") for one in chosen]

    assert min(largest("wgmma_gemm", "wgmma")) > 1
    assert max(largest("mma_gemm", "mma.sync")) < 0.7


@claim
def pipelining_pays_where_few_warps_are_there() -> None:
    few, *full = speed_ups("pipelined", "cp.async, 2 stages", "plain loads")
    assert few > 1.5
    assert all(ratio < 1.05 for ratio in full)
    assert speed_ups("pipelined", "cp.async, 4 stages", "plain loads")[0] > few


@claim
def prefetching_pays_where_few_warps_are_there() -> None:
    full, *few = speed_ups("prefetch", "prefetch.L2, 4 ahead", "plain loads")
    assert full < 1
    assert all(ratio > 1.05 for ratio in few)


@claim
def cache_hints_change_nothing_for_a_copy() -> None:
    for hints in ("ld.cs, st.wt", "ld.cs, st.cs", "L1::no_allocate", "L1::evict_first", "L2::evict_first"):
        assert all(0.95 < ratio < 1.05 for ratio in speed_ups("copy", hints, "16 bytes a thread"))


@claim
def a_copy_is_as_fast_as_torch() -> None:
    assert all(ratio > 0.97 for ratio in speed_ups("copy", "16 bytes a thread", "torch"))


@claim
def shfl_wins_little_over_shared_memory() -> None:
    assert all(1 <= ratio < 1.2 for ratio in speed_ups("warp_reduction", "shfl", "shared memory"))


@claim
def more_warps_for_spilled_registers_do_not_pay() -> None:
    assert all(ratio < 1 for ratio in speed_ups("registers", ".minnctapersm 8", "nothing said"))


@claim
def mma_in_registers_is_2_7_times_as_fast_as_wmma() -> None:
    assert all(ratio > 2.7 for ratio in speed_ups("attention_tile", "mma in registers", "WMMA, an element a lane"))


@claim
def a_better_wmma_is_nearer() -> None:
    assert all(
        1.5 < ratio < 2.7 for ratio in speed_ups("attention_tile", "mma in registers", "WMMA, half a row a lane")
    )
