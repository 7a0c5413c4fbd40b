"""The gradients of attention: what the gallery's data does not reach, what users call, one synchronization left out."""

import math
from dataclasses import replace
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.kernels import attention, attention_backward, wgmma_attention_backward
from ptxlab.kernels.mma_attention import half_of
from ptxlab.kernels.wgmma_attention_backward import (
    Backward,
    choose,
    differentiate_at_once,
    parts_at_once,
    reference,
    share,
    specialize,
    start,
)
from ptxlab.kernels.wgmma_attention_backward.at_once import specialize_at_once
from ptxlab.kernels.wgmma_attention_backward.plan import Plan
from ptxlab.kernels.wgmma_attention_backward.rows import convert, prepare
from ptxlab.measure import Host, Launch, UnsuitedError
from tests.kernels.left_out import codes, without

from ..tools import needs_ptxas, ptxas_reports

SMALL = {"type": "f16", "batch": 1, "heads": (1, 1), "length": 300, "size": 64}
PLANS = [
    replace(choose(size, type, bool(mask), mask == "window", queries), ordered=type == "f16")
    for size, type, queries in (
        (64, "bf16", 4096),
        (128, "bf16", 4096),
        (64, "f16", 4096),
        (128, "f16", 16384),
        (256, "bf16", 4096),
    )
    for mask in ("", "causal", "window")
]
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")


def problem(**size: Any) -> dict[str, Any]:
    return wgmma_attention_backward.arrays(Host(1), **{**SMALL, "causal": False, **size})


def largest_error(given: Any, wanted: Any) -> float:
    return float(np.linalg.norm(given.astype(float) - wanted) / max(np.linalg.norm(wanted), 1))


def errors(arrays: dict[str, Any]) -> list[float]:
    """How far the gradients of q, k and v are from those of float64."""
    exact = {name: value.astype(float) if isinstance(value, np.ndarray) else value for name, value in arrays.items()}
    wanted = reference(np, **exact)
    return [largest_error(exact[name], wanted[name]) for name in wanted]


# What is left out of the kernel that goes over the queries, and what is found then.
LOST = {
    "fence.proxy.async": "missing-proxy-fence",
    "wgmma.wait_group.sync.aligned 1": "touched-accumulator",
    "wgmma.wait_group.sync.aligned 0": "touched-accumulator",
    "wgmma.commit_group": "touched-accumulator",
    "barrier.sync.aligned 1, 256": "data-race",
    "bar.sync 0": "data-race",
    "mbarrier.arrive.shared": "hang",
    "mbarrier.arrive.expect_tx": "hang",
}


@pytest.mark.bulk
@pytest.mark.parametrize("lost", [None, *LOST])
def test_what_is_left_out_is_found(lost: str | None) -> None:
    arrays = problem(causal=True, length=400 if lost else 300)
    first, second, *after = start(**arrays)
    assert codes(first) == []
    changed = second if lost is None else without(second, lost)
    found = codes(changed) + [one.code for one in ptxlab.check(changed.module)]
    if lost is None:
        assert (found, *map(codes, after)) == ([],) * (1 + len(after))
        assert max(errors(arrays)) < 1e-3
    else:
        assert LOST[lost] in found


@pytest.mark.bulk
@pytest.mark.parametrize("window", [1, 40, 130, 1000])
@pytest.mark.parametrize("size", [64, 128, 256])
def test_windows(size: int, window: int) -> None:
    arrays = problem(size=size, causal=True, window=window, heads=(2, 1))
    for launch in start(**arrays):
        assert codes(launch) == []
    assert max(errors(arrays)) < 1e-3


@pytest.mark.bulk
@pytest.mark.parametrize("size", [64, 128])
def test_many_seeds(size: int) -> None:
    for seed in range(10):
        arrays = problem(size=size, causal=True)
        assert not any(codes(launch, seed) for launch in start(**arrays))
        assert max(errors(arrays)) < 1e-3


@pytest.mark.bulk
@pytest.mark.parametrize(("window", "size"), [(0, 64), (40, 64), (0, 256)])
def test_in_one_order_bits_do_not_depend_on_the_schedule(window: int, size: int) -> None:
    found = []
    for seed in range(5):
        arrays = problem(causal=True, window=window, size=size)
        assert not any(codes(launch, seed) for launch in start(**arrays, ordered=True))
        assert max(errors(arrays)) < 1e-3
        found.append(arrays["sums"].tobytes())
    assert len(set(found)) == 1


def at_once(arrays: dict[str, Any], shares: int) -> tuple[Launch, np.ndarray]:
    """The launch of one kernel that does all, with memory in which nothing is left from before, and its counters."""
    (batch, heads, keys, size), type = arrays["k"].shape, half_of(arrays["q"])
    plan = replace(choose(size, type, arrays["causal"], False, arrays["q"].shape[2]), shares=shares)
    numbers, tiles = parts_at_once(arrays["q"].shape, arrays["k"].shape, plan)
    given = {name: arrays[name] for name in ("q", "k", "v", "o", "lse", "do", "dq", "dk", "dv")}
    if shares > 1:
        extents = batch, heads * shares, keys, size
        given |= {name: np.full(extents, np.nan, arrays["k"].dtype) for name in ("dk_parts", "dv_parts")}
    parts, counters = np.full(numbers, np.nan, np.float32), np.zeros(tiles, np.uint32)
    return differentiate_at_once(Backward(**given), parts, counters, plan), counters


@pytest.mark.parametrize(
    ("shares", "size"),
    [
        (1, {"length": 150, "causal": True}),
        *(
            pytest.param(*one, marks=pytest.mark.bulk)
            for one in (
                (2, {"length": 300, "causal": True, "heads": (3, 1)}),
                (3, {"length": 200, "size": 128, "heads": (2, 1), "batch": 2}),
                (1, {"length": 200, "size": 128, "type": "bf16", "causal": True}),
                (2, {"length": 140, "size": 256}),
                (1, {"length": 140, "size": 256, "type": "bf16", "causal": True}),
                (8, {"length": 130, "size": 80, "causal": True, "heads": (2, 2)}),
            )
        ),
    ],
    ids=str,
)
def test_one_kernel_does_all(shares: int, size: dict[str, Any]) -> None:
    """More blocks share a tile of keys than it has tiles of queries, in the last one."""
    found = []
    for seed in range(1 if shares == 1 else 3):
        arrays = problem(**size)
        launch, counters = at_once(arrays, shares)
        assert codes(launch, seed) == []
        assert not counters.any()
        assert max(errors(arrays)) < (4e-3 if size.get("type") == "bf16" else 1e-3)
        found.append([arrays[name].tobytes() for name in ("dq", "dk", "dv")])
    assert all(one == found[0] for one in found)


# What is left out of that kernel, where two blocks share a tile of keys, and what is found then.
LOST_AT_ONCE = {
    "barrier.cluster.arrive.release": "bad-barrier",
    "barrier.cluster.wait.acquire": "data-race",
    "barrier.sync.aligned 1, 256": "data-race",
    "fence.proxy.async": "missing-proxy-fence",
}


@pytest.mark.bulk
@pytest.mark.parametrize("lost", LOST_AT_ONCE)
def test_what_is_left_out_of_one_kernel_is_found(lost: str) -> None:
    launch, _ = at_once(problem(length=300, causal=True), 2)
    changed = without(launch, lost)
    assert LOST_AT_ONCE[lost] in codes(changed) + [one.code for one in ptxlab.check(changed.module)]


@pytest.mark.bulk
def test_parts_are_counted_in_order() -> None:
    launch, _ = at_once(problem(length=300), 1)
    assert codes(launch.changed(("atom.acq_rel", "atom.relaxed"))) == ["data-race"]


@pytest.mark.parametrize(
    ("heads", "length", "batch", "wanted"),
    [((1, 1), 347, 1, 6), ((4, 4), 106, 3, 2), ((16, 16), 120, 4, 1), ((16, 16), 271, 4, 0), ((1, 1), 1025, 1, 0)],
)
def test_one_kernel_is_for_few_short_heads(heads: tuple[int, int], length: int, batch: int, wanted: int) -> None:
    shapes = [(batch, count, length, 128) for count in heads]
    assert wgmma_attention_backward.share_at_once(*shapes, choose(128, "bf16", False, False, length)) == wanted


def exact_gradients(q: Any, k: Any, v: Any, do: Any, is_attended: Any) -> list[Any]:
    """In float64, for one head; a query that attends to no key has none."""
    q, k, v, do = (one.astype(float) for one in (q, k, v, do))
    powers = np.where(is_attended, np.exp(q @ k.T / math.sqrt(q.shape[1])), 0)
    weights = powers / np.maximum(powers.sum(1, keepdims=True), 1e-300)
    inner = do @ v.T
    scores = weights * (inner - (weights * inner).sum(1, keepdims=True)) / math.sqrt(q.shape[1])
    return [scores @ k, scores.T @ q, weights.T @ do]


@pytest.mark.bulk
@pytest.mark.parametrize(("queries", "keys", "window"), [(70, 40, 20), (20, 300, 0), (1, 1, 0), (300, 20, 5)])
def test_the_functions_where_some_queries_attend_to_no_key(queries: int, keys: int, window: int) -> None:
    """The gradients that follow from what `attention` returned, of arrays with strides."""
    rng = np.random.default_rng(0)
    q, do = (rng.standard_normal((1, queries, 1, 64)).astype(np.float16).swapaxes(1, 2) for _ in range(2))
    k, v = (rng.standard_normal((1, 1, keys, 64)).astype(np.float16) for _ in range(2))
    o, lse = attention(q, k, v, causal=True, window=window, return_lse=True)
    found = attention_backward(do, q, k, v, o, lse, causal=True, window=window)
    row, key = np.arange(queries)[:, None], np.arange(keys)
    is_attended = (key <= row) & (key > row - (window or keys + queries))
    wanted = exact_gradients(q[0, 0], k[0, 0], v[0, 0], do[0, 0], is_attended)
    assert max(largest_error(one[0, 0], exact) for one, exact in zip(found, wanted, strict=True)) < 1e-3
    assert np.array_equal(np.isinf(lse[0, 0]), ~is_attended.any(1))


@pytest.mark.bulk
def test_the_functions_follow_each_other() -> None:
    """With the kernels of the gallery's first size, and fewer queries."""
    arrays = problem(heads=(2, 1), length=40, causal=True)
    q, k, v, do = (np.ascontiguousarray(arrays[name].swapaxes(1, 2)).swapaxes(1, 2) for name in ("q", "k", "v", "do"))
    o, lse = attention(q, k, v, causal=True, return_lse=True)
    arrays["dq"], arrays["dk"], arrays["dv"] = attention_backward(do, q, k, v, o, lse, causal=True)
    assert np.allclose(lse, arrays["lse"], atol=1e-5)
    assert max(errors(arrays)) < 1e-3


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("shares", [2, 5])
def test_blocks_share_the_queries_of_a_tile_of_keys(shares: int) -> None:
    """More of them than some tiles of keys have tiles of queries, so that a few store zeros."""
    arrays = problem(heads=(3, 1), length=150, causal=True)
    extents = (1, shares, 150, 64)
    arrays |= {name: np.full(extents, np.nan, np.float16) for name in ("dk_parts", "dv_parts")}
    launches = start(**arrays)
    assert [codes(launch) for launch in launches] == [[], [], [], []]
    assert launches[1].grid == 2 * shares
    assert max(errors(arrays)) < 1e-3


@pytest.mark.parametrize(
    ("heads", "keys", "batch", "causal", "wanted"),
    [
        ((64, 64), 4096, 4, True, 1),  # 8,192 blocks
        ((16, 16), 16384, 1, False, 1),
        ((7, 1), 4805, 1, True, 7),  # 38 blocks for 132 SMs
        ((1, 1), 2048, 1, False, 8),  # 16 blocks: 8 times as many are one wave
    ],
)
def test_as_many_blocks_share_keys_as_there_are_idle_sms(
    heads: tuple[int, int], keys: int, batch: int, causal: bool, wanted: int
) -> None:
    plan = choose(128, "bf16", causal, False, keys)
    assert share((batch, heads[0], keys, 128), (batch, heads[1], keys, 128), plan) == wanted


@pytest.mark.bulk
def test_gradients_are_in_memory_as_what_they_are_the_gradients_of() -> None:
    q, k, v = (np.ones((1, 40, heads, 64), np.float16).swapaxes(1, 2) for heads in (4, 2, 2))
    o, lse = attention(q, k, v, return_lse=True)
    found = attention_backward(o, q, k, v, o, lse)
    assert [one.strides for one in (o, *found)] == [one.strides for one in (q, q, k, v)]


def packed(lengths: list[int], key_lengths: list[int], size: int = 64, **how: Any) -> float:
    """How far the gradients of packed sequences are from those of float64, each for itself."""
    rng = np.random.default_rng(0)
    counts = lengths, lengths, key_lengths, key_lengths
    q, do, k, v = (rng.standard_normal((sum(n), h, size)).astype(np.float16)
                   for n, h in zip(counts, (2, 2, 1, 1), strict=True))  # fmt: skip
    starts, key_starts = (np.cumsum([0, *n]).astype(np.int32) for n in (lengths, key_lengths))
    both: dict[str, Any] = {"cu_seqlens_q": starts, "cu_seqlens_k": key_starts, "causal": how.get("causal", False)}
    if "spoil" in how:
        lost, its_keys = (slice(*one[how["spoil"] :][:2]) for one in (starts, key_starts))
        q[lost], do[lost], k[its_keys], v[its_keys] = np.nan, np.inf, np.nan, np.inf
    o, lse = attention(q, k, v, return_lse=True, **both)
    dq, dk, dv = attention_backward(do, q, k, v, o, lse, **both)
    most = 0.0
    for number, ((a, b), (c, d)) in enumerate(zip(pairwise(starts), pairwise(key_starts), strict=True)):
        if number == how.get("spoil"):
            continue
        is_attended = np.tri(b - a, d - c, dtype=bool) if both["causal"] else np.ones((b - a, d - c), bool)
        parts = [exact_gradients(q[a:b, h], k[c:d, 0], v[c:d, 0], do[a:b, h], is_attended) for h in range(2)]
        pairs = [(dq[a:b, h], parts[h][0]) for h in range(2)]
        pairs += [(dk[c:d, 0], parts[0][1] + parts[1][1]), (dv[c:d, 0], parts[0][2] + parts[1][2])]
        most = max(most, *(largest_error(one, wanted) for one, wanted in pairs))
    return most


@pytest.mark.bulk
def test_packed_sequences() -> None:
    assert packed([70, 0, 1, 33, 5], [70, 3, 1, 0, 5], causal=True) < 1e-3


@pytest.mark.bulk
@pytest.mark.parametrize("how", [{}, {"spoil": 1}, {"size": 256, "causal": True}], ids=str)
def test_packed_sequences_of_other_keys(how: dict[str, Any]) -> None:
    assert packed([200, 40, 0, 40], [150, 130, 20, 0], **how) < 1e-3


def test_nothing_has_a_gradient_of_nothing() -> None:
    q, none = np.ones((1, 2, 5, 64), np.float16), np.ones((1, 1, 0, 64), np.float16)
    o, lse = attention(q, none, none, return_lse=True)
    assert not o.any()
    assert np.isneginf(lse).all()
    dq, dk, dv = attention_backward(q, q, none, none, o, lse)
    assert not dq.any()
    assert dk.shape == dv.shape == none.shape


def test_what_the_function_refuses() -> None:
    q = np.zeros((1, 2, 40, 64), np.float16)
    lse, odd = np.zeros((1, 2, 40), np.float32), np.zeros((1, 2, 40, 264), np.float16)
    for given, message in (
        ((q, q, q, q, q, lse[:, 0]), "`lse` is 1 by 40, and must be 1 by 2 by 40"),
        ((q, q, q, q, q, lse.astype(np.float64)), "`lse` has elements of type float64"),
        (
            (q[:, :1], q, q, q, q, lse),
            "`do` is 1 by 1 by 40 by 64, and must be 1 by 2 by 40 by 64, as queries and values are",
        ),
        ((q[..., ::-1], q, q, q, q, lse), "`do` is not in rows"),
        ((odd, odd, odd, odd, odd, lse), "heads of 264 elements: this kernel is for multiples of 8 up to 256"),
    ):
        with pytest.raises((TypeError, ValueError, UnsuitedError), match=message):
            attention_backward(*given)


@needs_torch
def test_torch_differentiates_it() -> None:
    import torch

    q, k, v = (torch.randn(1, heads, 40, 64).half().requires_grad_() for heads in (2, 1, 1))
    exact = [one.detach().double().requires_grad_() for one in (q, k, v)]
    wide = [exact[0], *(one.expand(1, 2, 40, 64) for one in exact[1:])]
    weights = (wide[0] @ wide[1].mT / 8).masked_fill(~torch.ones(40, 40).tril().bool(), -math.inf).softmax(-1)
    (weights @ wide[2]).square().sum().backward()

    def loss(q: Any, k: Any, v: Any) -> Any:
        return attention(q, k, v, causal=True).float().square().sum()

    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        for found, wanted in zip(torch.autograd.grad(function(q, k, v), (q, k, v)), exact, strict=True):
            assert (found - wanted.grad).norm() / wanted.grad.norm() < 2e-3
    with pytest.raises(ValueError, match="a result in `out` has no gradient"):
        attention(q, k, v, out=torch.empty_like(q))


@needs_torch
def test_torch_differentiates_packed_sequences() -> None:
    """They are those of one sequence after the other."""
    import torch

    q, k, v = (torch.randn(40, heads, 64).half().requires_grad_() for heads in (2, 1, 1))
    starts = torch.tensor([0, 25, 40], dtype=torch.int32)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return attention(q, k, v, causal=True, cu_seqlens_q=starts).float().square().sum()

    wanted = [torch.zeros_like(one) for one in (q, k, v)]
    for a, b in ((0, 25), (25, 40)):
        parts = [one.detach()[None, a:b].transpose(1, 2).contiguous().requires_grad_() for one in (q, k, v)]
        single = attention(*parts, causal=True).float().square().sum()
        for whole, part in zip(wanted, torch.autograd.grad(single, parts), strict=True):
            whole[a:b] = part[0].transpose(0, 1)
    for function in (loss, torch.compile(loss, fullgraph=True, backend="aot_eager")):
        for found, one in zip(torch.autograd.grad(function(q, k, v), (q, k, v)), wanted, strict=True):
            assert (found - one).norm() / one.norm() < 2e-3


@needs_ptxas
@pytest.mark.slow
@pytest.mark.parametrize("plan", [pytest.param(p, marks=() if p == PLANS[4] else pytest.mark.bulk) for p in PLANS])
def test_ptxas_neither_spills_nor_serializes(plan: Plan) -> None:
    whole = [] if plan.window else [specialize_at_once(replace(plan, shares=1 + 2 * plan.causal))]
    for kernel in (specialize(plan), prepare(plan), convert(plan), *whole):
        assert ptxas_reports(kernel.ptx) == []
