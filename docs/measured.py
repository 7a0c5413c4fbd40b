"""What `claims.md` says about speed, asserted of what was measured on an H200 and is kept in `evidence`.

The page names a claim by its function here. `build.py` calls them all: no page is built that evidence contradicts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

from ptxlab.measure import Record
from ptxlab.measure.record import Sized

EVIDENCE = Path(__file__).parent.parent / "evidence"
MEMORY, CORE_MATRICES, TENSOR_MAPS, MULTICAST = (
    json.loads((EVIDENCE / f"{name}.json").read_text(encoding="utf-8"))
    for name in ("memory", "core_matrices", "tensor_map_cost", "multicast")
)
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
    factors = [round(largest.ratio(step, "naive"), 1 if step == "coalesced" else None) for step in steps[1:]]
    assert factors == [8.8, 17, 42], factors


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
            if one.size["m"] == one.size["n"] == one.size["k"] == 8192
            and one.size["type"] in ("f16", "bf16")
            and not one.size.get("epilogue")
        ]
        return [one.ratio(variant, "cuBLAS") for one in chosen]

    assert min(largest("wgmma_gemm", "wgmma")) > 1
    assert max(largest("mma_gemm", "mma.sync")) < 0.7


@claim
def with_s8_mma_sync_is_as_fast_as_cublas() -> None:
    ratios = {one.size["type"]: one.ratio("mma.sync", "cuBLAS") for one in sizes("mma_gemm") if one.size["m"] == 8192}
    assert ratios["s8"] > 1
    assert 0.5 < ratios["tf32"] < 0.6
    assert ratios["e4m3"] < 0.25


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


def swept() -> list[Sized]:
    """The attention tile with from 1,024 to 524,288 tiles."""
    return Record.read(EVIDENCE / "attention_tile_sweep.json").sizes


@claim
def the_gap_to_wmma_widens_with_the_tiles() -> None:
    ratios = [sized.ratio("mma in registers", "WMMA, an element a lane") for sized in swept()]
    assert ratios == sorted(ratios)
    assert ratios[0] < 1.5
    assert ratios[-1] > 3


@claim
def an_h200_computes_3_billion_tiles_a_second_in_registers_and_1_by_wmma() -> None:
    rates = {
        name: max(sized.size["queries"] // 16 / sized[name].median for sized in swept())
        for name in ("mma in registers", "WMMA, an element a lane")
    }
    assert 3e9 < rates["mma in registers"] < 3.5e9
    assert 1e9 < rates["WMMA, an element a lane"] < 1.2e9


@claim
def registers_save_100_cycles_a_tile_over_the_first_wmma() -> None:
    largest = sizes("attention_tile")[-1]
    count = largest.size["queries"] // 16 * largest.size["keys"] // 16
    saved = largest["WMMA, an element a lane"].median - largest["mma in registers"].median
    cycles = [saved * MEMORY["multiprocessors"] * hertz / count for hertz in (1.5e9, 2.0e9)]
    assert all(100 < each < 150 for each in cycles)


@claim
def a_warp_hits_what_another_warp_brought_to_l1() -> None:
    own, other = (MEMORY["measured"][f"L1 cache, {name}cycles"] for name in ("", "filled by another warp, "))
    assert other < 1.1 * own < 100


@claim
def cg_moves_up_to_5_percent_more_than_ca() -> None:
    rates = MEMORY["bytes a second"]
    for place in ("memory", "L2 cache"):
        assert 1 < rates[f"cp.async.cg from {place}"]["median"] / rates[f"cp.async.ca from {place}"]["median"] < 1.05


@claim
def core_matrices_may_be_any_bytes_apart() -> None:
    tiles = CORE_MATRICES["tiles"]
    assert len(tiles) == 300
    assert all(tile["the same"]["is right"] for tile in tiles)


@claim
def wrong_offsets_are_wrong_numbers_and_no_fault() -> None:
    for name in ("exchanged", "another stride offset"):
        assert not any(tile[name]["is right"] for tile in CORE_MATRICES["tiles"])
        assert all(tile[name]["as emulated"] for tile in CORE_MATRICES["tiles"])


def microseconds(variant: str, tiles: str) -> float:
    """What the kernel over eight groups takes."""
    return median(TENSOR_MAPS["seconds"][tiles][variant]) * 1e6


@claim
def a_change_of_three_tensor_maps_takes_more_than_a_microsecond() -> None:
    for tiles in TENSOR_MAPS["seconds"]:
        added = microseconds("3 maps a group, cp_fenceproxy", tiles) - microseconds("the host's maps", tiles)
        assert 1.5 < added / TENSOR_MAPS["groups"] < 3.2


@claim
def maps_for_each_tile_take_38_microseconds_more_than_for_each_group() -> None:
    assert (
        30 < microseconds("3 maps a tile, cp_fenceproxy", "4") - microseconds("3 maps a group, cp_fenceproxy", "4") < 45
    )


@claim
def cp_fenceproxy_alone_takes_less_than_a_store_and_a_fence() -> None:
    for cycles in TENSOR_MAPS["cycles"].values():
        alone, fence = (
            median(cycles[name]) for name in ("tensormap.cp_fenceproxy release.gpu", "store and fence.acq_rel.gpu")
        )
        assert alone < 150 < fence


def rights(text: str) -> list[float]:
    """How many of the runs of a case of multicast were right, with clusters of two and of four."""
    found = [runs for name, runs in MULTICAST["runs"].items() if name.partition(", ")[2] == text]
    assert len(found) == 2
    return [sum(wrong == gave_up == 0 for _, _, wrong, gave_up in runs) / len(runs) for runs in found]


@claim
def one_arrival_with_all_bytes_is_enough_for_multicast() -> None:
    assert rights("full: 1 arrival with all bytes; empty: readers of all blocks") == [1, 1]
    assert rights("full: an arrival of each block; empty: readers of all blocks") == [1, 1]
    assert rights("full: the count of the cluster, 1 arrival") == [0, 0]


@claim
def a_race_may_be_right_a_hundred_times() -> None:
    assert rights("empty: readers of its own block") == [1, 0]
    assert rights("empty: readers of its own block, one block late by 10,000 cycles") == [0, 0]
