"""Attention of one query token: sequences of any length, unusual numbers, pages, and what is left out."""

import math
import re
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ptxlab.kernels import decode_attention
from ptxlab.kernels.decode_attention import arrays, attend, choose, plan_for, reference, workspace_of
from ptxlab.kernels.decode_attention.kernel import specialize
from ptxlab.kernels.decode_attention.plan import Plan
from ptxlab.measure import Host, Launch
from ptxlab.toolchain import assemble
from tests.kernels.left_out import codes, without

from ..tools import needs_ptxas

SMALL = {"type": "f16", "cache": "f16", "batch": 3, "heads": (4, 2), "size": 64}
BLOCKS = 3


def problem(lengths: list[int], **size: Any) -> dict[str, Any]:
    """A cache in which there is NaN after the last key of each sequence."""
    given = arrays(Host(1), **{**SMALL, "batch": len(lengths), "length": max(lengths), **size})
    given["lengths"][:] = lengths
    for number, length in enumerate(lengths):
        if given["table"] is None:
            given["k"][number, length:] = np.nan
            given["v"][number, length:] = np.nan
    return {**given, "partial": np.zeros(workspace_of(given["q"], given["k"], size.get("page", 0), BLOCKS), np.float32)}


def launch(given: dict[str, Any]) -> Launch:
    page = 0 if given["table"] is None else given["k"].shape[1]
    plan = replace(plan_for(given["q"], given["k"], page), together=2)
    return attend(**given, plan=plan, blocks=BLOCKS)


def error(given: dict[str, Any]) -> float:
    """How far the answer is from that of float64."""
    exact = {name: one if one is None else one.astype(np.float64) for name, one in given.items()}
    if given["table"] is not None:
        exact["table"] = given["table"]
    wanted = reference(np, **exact)["o"]
    return float(np.linalg.norm(exact["o"] - wanted) / np.linalg.norm(wanted))


def test_sequences_of_all_lengths_are_shared_evenly() -> None:
    given = problem([300, 600, 0, 1, 256])  # 16 tiles for 3 blocks: one head is split
    results = []
    for seed in range(2):
        given["o"][:] = np.nan
        assert launch(given).run(device="cpu", seed=seed).diagnostics == []
        assert error(given) < 1e-3
        assert (given["o"][2] == 0).all()  # of no keys
        assert not given["partial"].view(np.uint32).any()  # as it was, for the next launch
        results.append(given["o"].tobytes())
    assert results[0] == results[1]  # whichever block came first


@pytest.mark.slow
@pytest.mark.parametrize("page", [0, pytest.param(16, marks=pytest.mark.bulk)])
def test_lengths_that_change_after_a_block_has_seen_them(page: int) -> None:
    """A block finds out what to do before the kernel before it has written the lengths: here it sees at most 20."""
    given = problem([150, 90], page=page)
    made = launch(given)
    first = re.search(r"ld\.relaxed\.gpu\.global\.u32.*\n *(min\.u32 %r\d+, %r\d+, )(%r\d+);", str(made.kernel))
    assert first
    assert codes(made.changed((first[1] + first[2], first[1] + "20"))) == []
    assert error(given) < 1e-3


def test_a_part_of_zeros_arrives() -> None:
    """Sums, a maximum and even a total may be 0, which in memory means that nothing has come yet."""
    given = problem([600])
    given["v"][...] = 0
    given["q"][...] = 0
    assert codes(launch(given)) == []
    assert not given["o"].any()


@pytest.mark.parametrize("change", ["large scores", pytest.param("growing scores", marks=pytest.mark.bulk)])
def test_scores_of_any_size(change: str) -> None:
    given = problem([150])
    if change == "large scores":
        given["q"] *= 30
    else:
        given["q"][..., 0] = 8
        given["k"][0, :, :, 0] = np.arange(150)[:, None] * 0.3
    assert launch(given).run(device="cpu").diagnostics == []
    assert error(given) < 1e-3


def test_infinities_and_nan_stay_in_their_heads() -> None:
    given = problem([70, 70])
    given["q"][0, 0, 3] = np.nan
    given["k"][0, 5, 1, 0] = np.inf
    given["k"][1, 6, 0, 0] = np.inf
    given["q"][1, 0, 0], given["q"][1, 1, 0] = 1, -1  # a score of +inf, and one of -inf, which has no weight
    given["v"][1, 69, 1, 5] = np.inf  # of the last key: those after it count nothing, not 0 · inf
    launch(given).run(device="cpu")
    finite = np.isfinite(given["o"]).all(axis=2)
    wanted = [[False, True, *(given["q"][0, 2:, 0] < 0)], [False, True, False, False]]
    assert finite.tolist() == wanted
    assert (given["o"][1, 2:, 5] == np.inf).all()


# What is left out, and what is found then.
LOST = {
    "bar.warp.sync": "data-race",
    "cp.async.wait_group": "data-race",
    "cp.async.commit_group": "data-race",
    "bar.sync": "data-race",
}


@pytest.mark.bulk
@pytest.mark.parametrize("lost", LOST)
def test_what_is_left_out_is_found(lost: str) -> None:
    assert LOST[lost] in codes(without(launch(problem([600, 300])), lost))


@pytest.mark.bulk
@pytest.mark.parametrize(
    "size",
    [
        {"type": "bf16", "cache": "bf16", "heads": (20, 1), "page": 16},
        {"cache": "e4m3", "heads": (16, 1)},
        {"size": 128, "type": "bf16", "cache": "bf16"},
        {"size": 128, "type": "bf16", "cache": "e4m3", "page": 64},
        {"size": 256},
        {"size": 256, "cache": "e4m3", "page": 16, "heads": (9, 1)},
    ],
)
def test_all_kinds_of_heads_and_caches(size: dict[str, Any]) -> None:
    given = problem([300, 600, 0, 33], **size)
    assert codes(launch(given)) == []
    assert error(given) < 5e-3


@pytest.mark.bulk
@pytest.mark.parametrize(("number", "found"), [(0, "data-race"), (1, "hang"), (2, "data-race")])
def test_every_barrier_is_needed(number: int, found: str) -> None:
    assert found in codes(without(launch(problem([600, 300])), "bar.sync", number))


@pytest.mark.bulk
@pytest.mark.parametrize("seed", range(20))
def test_it_is_silent_under_many_seeds(seed: int) -> None:
    assert codes(launch(problem([300, 600, 0, 40])), seed) == []


def test_the_function() -> None:
    given = problem([100, 20], cache="e4m3", page=16)
    found = decode_attention(
        given["q"], given["k"], given["v"], given["lengths"], given["table"], scale=0.2, scale_k=0.5, scale_v=3.0
    )
    given["q"] = given["q"] * np.float16(0.1 * math.sqrt(64))
    given["o"] = found / np.float16(3)
    assert error(given) < 2e-3


def test_a_cache_with_its_heads_first() -> None:
    given = problem([150])
    k, v = (np.ascontiguousarray(given[name].swapaxes(1, 2)).swapaxes(1, 2) for name in "kv")
    given["o"] = np.empty_like(given["q"])
    assert decode_attention(given["q"], k, v, given["lengths"], out=given["o"]) is given["o"]
    assert error(given) < 1e-3


def test_what_the_function_refuses() -> None:
    q, k = np.zeros((2, 4, 64), np.float16), np.zeros((2, 48, 2, 64), np.float16)
    lengths, table = np.array([3, 40], np.int32), np.zeros((2, 1), np.int32)
    for given, message in (
        ((q, k, k[:, :, :1], lengths), "queries are batch × heads × size"),
        ((q[:, :0], k, k, lengths), "there are no heads"),
        ((q[..., :32].copy(), k[..., :32].copy(), k[..., :32].copy(), lengths), "heads of 32 elements"),
        ((q[:, :3].copy(), k, k, lengths), "3 heads of queries are not a multiple of 2"),
        ((q, k, k, lengths[:1]), "`lengths` is .1,., and must be .2,."),
        ((q, k, k, lengths.astype(np.int64)), "`lengths` has elements of type int64"),
        ((q, k, k, lengths + 9), "the cache has 48 positions"),
        ((q, k, k.astype(ml_dtypes.bfloat16), lengths), "keys of f16, values of bf16"),
        ((q, k[:1], k[:1], lengths), "pass a `block_table`"),
        ((q, k, k, lengths, table[:1]), "`block_table` is .1, 1."),
        ((q, k, k, lengths - 30 + 27, table + 5), "a page that the cache does not have"),
        ((q, k[:, :40].copy(), k[:, :40].copy(), lengths, table), "pages of 40 positions"),
        ((q[..., ::-1], k, k, lengths), "`q` has gaps"),
        ((q, k[..., ::-1], k, lengths), "`k_cache` is not in rows"),
        (("q", k, k, lengths), "`q` is a str"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            decode_attention(*given)
    with pytest.raises(ValueError, match="scale=-1"):
        decode_attention(q, k, k, lengths, scale=-1.0)
    with pytest.raises(ValueError, match="`out` overlaps `q`"):
        decode_attention(q, k, k, lengths, out=q)


PLANS = [
    choose(size, "bf16", cache, page, shared_by, heads)
    for heads in (64, 8, 512)
    for size in (64, 128, 256)
    for cache in ("bf16", "e4m3")
    for page in (0, 16, 64)
    for shared_by in (4, 16)
]


@needs_ptxas
@pytest.mark.parametrize(
    "plan", [pytest.param(one, marks=() if one == PLANS[12] else pytest.mark.bulk) for one in PLANS]
)
def test_ptxas_does_not_spill(plan: Plan) -> None:
    (resources,) = assemble(specialize(plan).ptx, "sm_90a").resources
    assert resources.spill_stores <= (8 if plan.size == 256 else 0)
    assert resources.registers * plan.threads * plan.blocks <= 65536
    assert plan.blocks * (plan.shared + resources.shared + 1024) <= 228 << 10
