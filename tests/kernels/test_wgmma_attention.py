"""Attention by wgmma: what the gallery's data does not reach, and one synchronization left out after the other."""

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.kernels import attention, wgmma_attention
from ptxlab.kernels.wgmma_attention.plan import Plan
from ptxlab.measure import Host, Launch, UnsuitedError
from tests.kernels.left_out import codes, without

from ..tools import needs_ptxas, ptxas_reports

SMALL = {"type": "f16", "batch": 1, "heads": (1, 1), "length": 260, "size": 64}
PLANS = [
    wgmma_attention.choose(size, "bf16", bool(mask), mask == "window", 4096)
    for size in (64, 128, 256)
    for mask in ("", "causal", "window")
]
PLANS += [replace(plan, packed=True, logs=True) for plan in PLANS]


def problem(**size: Any) -> dict[str, Any]:
    return wgmma_attention.arrays(Host(1), **{**SMALL, "causal": False, **size})


def attend(arrays: dict[str, Any], blocks: int = 2, **how: Any) -> Launch:
    launch = wgmma_attention.attend(**arrays, **how)
    assert isinstance(launch.grid, int)
    return replace(launch, grid=min(blocks, launch.grid))


def error(arrays: dict[str, Any]) -> float:
    """How far the answer is from that of float64."""
    exact = {
        name: value.astype(np.float64) if isinstance(value, np.ndarray) else value for name, value in arrays.items()
    }
    wanted = wgmma_attention.reference(np, **exact)["o"]
    return float(np.linalg.norm(exact["o"] - wanted) / np.linalg.norm(wanted))


# What is left out of the kernel that counts its tiles, and what is found then.
LOST = {
    "fence.proxy.async": "missing-proxy-fence",
    "wgmma.wait_group.sync.aligned 1": "touched-accumulator",
    "wgmma.commit_group": "data-race",
    "cp.async.bulk.wait_group.read": "data-race",
    "barrier.sync.aligned": "data-race",
    "bar.sync 0": "data-race",
    "mbarrier.arrive.shared": "hang",
    "mbarrier.arrive.expect_tx": "hang",
}


@pytest.mark.parametrize("lost", [None, *(pytest.param(lost, marks=pytest.mark.bulk) for lost in LOST)])
def test_what_is_left_out_is_found(lost: str | None) -> None:
    arrays = problem(causal=True)
    launch = attend(arrays, blocks=1)  # which computes three tiles
    launch = launch if lost is None else without(launch, lost)
    found = codes(launch) + [one.code for one in ptxlab.check(launch.module)]
    if lost is None:
        assert found == []
        assert error(arrays) < 1e-3
        assert arrays["counter"] == 0  # as it was, for the next launch
    else:
        assert LOST[lost] in found


@pytest.mark.bulk
@pytest.mark.parametrize("window", [1, 40, 130, 1000])
@pytest.mark.parametrize("size", [64, 128, 256])
def test_windows(size: int, window: int) -> None:
    arrays = problem(size=size, causal=True, window=window)
    assert attend(arrays).run(device="cpu").diagnostics == []
    assert error(arrays) < 1e-3


@pytest.mark.bulk
@pytest.mark.parametrize("step", [0.01, 0.3, 4.0, -4.0])
def test_scores_that_grow_from_key_to_key(step: float) -> None:
    arrays = problem(length=150)
    arrays["q"][..., 0] = 8  # scores change by `step` from each key to the next
    arrays["k"][..., 0] = np.arange(150) * step
    attend(arrays).run(device="cpu")
    assert error(arrays) < 1e-3


@pytest.mark.bulk
def test_very_large_scores_of_many_keys() -> None:
    arrays = problem(type="bf16", length=1024)
    arrays["q"] = (arrays["q"][:, :, :100].astype(np.float32) * 1e4).astype(arrays["q"].dtype)
    arrays["o"] = arrays["o"][:, :, :100].copy()
    attend(arrays).run(device="cpu")
    assert error(arrays) < 3e-4


@pytest.mark.bulk
def test_infinities_and_nan_stay_in_their_rows() -> None:
    arrays = problem(length=150, causal=True)
    arrays["q"][0, 0, 7, 3] = np.nan
    arrays["k"][0, 0, 100, 5] = np.inf
    attend(arrays).run(device="cpu")
    finite = np.isfinite(arrays["o"][0, 0]).all(axis=1)
    assert not finite[7]
    assert finite[[*range(7), *range(8, 100)]].all()
    is_infinite = arrays["q"][0, 0, 100:, 5] > 0  # the others weigh that key with 0
    assert np.array_equal(finite[100:], ~is_infinite)


@pytest.mark.bulk
def test_scores_of_minus_infinity_for_whole_tiles_of_keys() -> None:
    arrays = problem(length=400)
    arrays["q"][...] = np.abs(arrays["q"]) + 1
    arrays["k"][0, 0, 100:] = -np.inf  # the tiles that come first
    attend(arrays).run(device="cpu")
    with np.errstate(invalid="ignore"):
        assert error({**arrays, "k": arrays["k"][:, :, :100], "v": arrays["v"][:, :, :100]}) < 1e-3


@pytest.mark.bulk
def test_more_queries_than_keys_and_more_keys_than_queries() -> None:
    for queries, keys in ((200, 70), (70, 300)):
        arrays = problem(length=max(queries, keys))
        whole = {"k": arrays["k"][:, :, :keys].copy(), "v": arrays["v"][:, :, :keys].copy()}
        cut = {**arrays, **whole, "q": arrays["q"][:, :, :queries].copy(), "o": arrays["o"][:, :, :queries].copy()}
        attend(cut).run(device="cpu")
        assert error(cut) < 1e-3


def packed(lengths: list[int], key_lengths: list[int], **how: Any) -> float:
    """How far packed sequences are from float64, each for itself."""
    draw = np.random.default_rng(0)
    q, k, v = (draw.standard_normal((sum(n), heads, 64)).astype(np.float16)
               for n, heads in ((lengths, 2), (key_lengths, 1), (key_lengths, 1)))  # fmt: skip
    starts, key_starts = (np.cumsum([0, *n]).astype(np.int32) for n in (lengths, key_lengths))
    if "spoil" in how:
        lost = slice(*key_starts[how.pop("spoil") :][:2])
        k[lost], v[lost] = np.nan, np.inf
    found = attention(q, k, v, cu_seqlens_q=starts, cu_seqlens_k=key_starts, **how)
    o, lse = found if "return_lse" in how else (found, None)
    most = 0.0
    for (a, b), (c, d), head in product_of(starts, key_starts):
        if np.isnan(k[c:d]).any():
            continue
        scores = q[a:b, head].astype(float) @ k[c:d, 0].astype(float).T / 8
        scores = wgmma_attention.attended(np, scores, how.get("causal", False), how.get("window", 0))
        weights = np.exp(scores - scores.max(1, keepdims=True, initial=-1e30))
        total = weights.sum(1)
        wanted = weights @ v[c:d, 0].astype(float) / np.maximum(total, 1e-30)[:, None]
        most = max(most, np.abs(o[a:b, head] - wanted).max(initial=0))
        if lse is not None:
            assert np.isneginf(lse[head, a:b][total == 0]).all()
            logs = np.log(total[total > 0]) + scores.max(1, initial=-1e30)[total > 0]
            assert np.allclose(lse[head, a:b][total > 0], logs, atol=1e-5)
    return most


def product_of(starts: Any, key_starts: Any) -> Any:
    """The queries and the keys of each sequence, for both heads."""
    return ((*both, head) for both in zip(pairwise(starts), pairwise(key_starts), strict=True) for head in range(2))


def test_packed_sequences() -> None:
    assert packed([70, 0, 1, 33, 5], [70, 3, 1, 0, 5], causal=True) < 2e-3


@pytest.mark.bulk
@pytest.mark.parametrize("how", [{}, {"causal": True, "window": 40}, {"spoil": 1}], ids=str)
def test_packed_sequences_of_other_keys(how: dict[str, Any]) -> None:
    assert packed([200, 1, 0, 40], [150, 130, 20, 0], return_lse=True, **how) < 2e-3


# What is left out of the kernels for packed sequences, and what is found then.
LOST_OF_PACKED = {
    "fence.proxy.tensormap::generic.acquire": "stale-tensor-map",
    "griddepcontrol.wait": "data-race",
}


@pytest.mark.bulk
@pytest.mark.parametrize("lost", [None, *LOST_OF_PACKED])
def test_what_is_left_out_of_packed_attention_is_found(lost: str | None) -> None:
    arrays = problem(heads=(2, 1), length=160, causal=True, sequences=3)
    launches = wgmma_attention.entry.launches("wgmma", arrays)
    if lost is not None:
        launches = [without(one, lost) if lost in str(one.kernel) else one for one in launches]
    grids = [(one.kernel, one.grid, one.block, one.args, {"shared": one.shared, "overlap": one.overlap})
             for one in launches]  # fmt: skip
    try:
        found = [finding.code for result in ptxlab.launch_chain(*grids, device="cpu") for finding in result.diagnostics]
    except ptxlab.KernelError as wrong:
        found = [finding.code for finding in wrong.diagnostics]
    assert set(found) == ({LOST_OF_PACKED[lost]} if lost else set())


def test_what_the_function_refuses_of_packed_sequences() -> None:
    q, starts = np.zeros((40, 2, 64), np.float16), np.array([0, 10, 40], np.int32)
    for given, more, message in (
        (q[None], {}, "`q` has 4 dimensions: packed sequences are length × heads × head size"),
        (q, {"cu_seqlens_k": starts[:2]}, "one number more than there are sequences"),
        (q, {"cu_seqlens_q": starts.astype(np.int64)}, "`cu_seqlens_q` has elements of type int64"),
        (q, {"cu_seqlens_q": np.array([0, 20, 10], np.int32)}, "`cu_seqlens_q` decreases"),
        (q, {"cu_seqlens_q": starts + 1}, "is not between 0 and 40"),
        (q, {"cu_seqlens_q": None, "cu_seqlens_k": starts}, "`cu_seqlens_k` goes with `cu_seqlens_q`"),
    ):
        with pytest.raises((ValueError, TypeError), match=re.escape(message)):
            attention(given, given, given, **{"cu_seqlens_q": starts, **more})


def test_the_function_reads_arrays_with_strides() -> None:
    arrays = problem(length=40, heads=(2, 1), causal=True)
    q, k, v = (np.ascontiguousarray(arrays[name].swapaxes(1, 2)).swapaxes(1, 2) for name in "qkv")
    arrays["o"] = attention(q, k, v, causal=True)
    assert error(arrays) < 1e-3


def test_what_the_function_refuses() -> None:
    q = np.zeros((1, 2, 40, 64), np.float16)
    for given, message in (
        ((q[..., ::-1], q, q), "`q` is not in rows"),
        ((q.astype(np.float32), q, q), "`q` has elements of type float32"),
        ((q, q, q[:, :1]), "these do not fit"),
        (("q", q, q), "`q` is a str"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            attention(*given)
    with pytest.raises(ValueError, match="`out` overlaps `q`"):
        attention(q, q, q, out=q)


def test_what_it_is_not_for() -> None:
    with pytest.raises(UnsuitedError, match="heads of 264 elements"):
        attend(problem(size=264))
    with pytest.raises(UnsuitedError, match="there is nothing to compute"):
        attend(problem(length=0))
    with pytest.raises(UnsuitedError, match="3 heads of queries are not a multiple of 2"):
        attend(problem(heads=(3, 2)))
    with pytest.raises(UnsuitedError, match="a window of 5 keys"):
        attend(problem(window=5))
    with pytest.raises(UnsuitedError, match="elements are f32"):
        attend(problem(type="f32"))


@pytest.mark.bulk(one_in=6)
@needs_ptxas
@pytest.mark.slow
@pytest.mark.parametrize(
    "plan", [pytest.param(p, marks=() if p.size == 128 and not p.packed else pytest.mark.bulk) for p in PLANS]
)
def test_ptxas_neither_spills_nor_serializes(plan: Plan) -> None:
    specialize = wgmma_attention.specialize_packed if plan.packed else wgmma_attention.specialize
    assert ptxas_reports(specialize(plan).ptx) == []
