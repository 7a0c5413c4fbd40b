"""Attention on a GPU: errors beside cuDNN's on the same data, NaN and infinity, packed sequences."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from ptxlab.kernels import attention

from .test_functions import error, normal, reference, torch  # noqa: F401 - `torch` is a fixture

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]  # other packages have their own

Change = Callable[[Any, Any, Any], tuple[Any, Any, Any]]
LENGTHS = [300, 0, 1, 128, 129, 700, 5]
KEYS = [300, 40, 1, 0, 257, 33, 5]


def replaced(tensor: Any, rows: Any, value: float) -> Any:
    """A copy in which rows of all heads hold one number."""
    copy = tensor.clone()
    copy[:, :, rows] = value
    return copy


FINITE: dict[str, Change] = {
    "normal": lambda q, k, v: (q, k, v),
    "large logits": lambda q, k, v: (q * 100, k, v),
    "very large logits": lambda q, k, v: (q * 10000, k, v),
    "one large key": lambda q, k, v: (q, replaced(k, 700, 40.0), v),
    "far from 0": lambda q, k, v: (q + 3, k + 3, v + 100),
}
SPECIAL: dict[str, Change] = {
    "NaN in q": lambda q, k, v: (replaced(q, 5, math.nan), k, v),
    "NaN in k": lambda q, k, v: (q, replaced(k, 900, math.nan), v),
    "NaN in v": lambda q, k, v: (q, k, replaced(v, 900, math.nan)),
    "infinity in q": lambda q, k, v: (replaced(q, 5, math.inf), k, v),
    "infinity in v": lambda q, k, v: (q, k, replaced(v, 900, math.inf)),
    "scores of −∞": lambda q, k, v: (q.abs(), replaced(k, slice(512, None), -math.inf), v),
}


def by_cudnn(torch: Any, q: Any, k: Any, v: Any, causal: bool) -> Any:  # noqa: F811
    backends = torch.nn.attention
    with backends.sdpa_kernel(backends.SDPBackend.CUDNN_ATTENTION):
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [64, 128, 256])
@pytest.mark.parametrize("name", FINITE)
def test_the_error_is_not_larger_than_that_of_cudnn(torch: Any, name: str, size: int, causal: bool) -> None:  # noqa: F811
    q, k, v = FINITE[name](*(normal(torch, 2, 4, 1024, size) for _ in range(3)))
    wanted = reference(torch, q, k, v, causal)
    ours, theirs = (error(one, wanted) for one in (attention(q, k, v, causal=causal), by_cudnn(torch, q, k, v, causal)))
    assert ours <= max(1.02 * theirs, 2e-4)  # the last bits of both are chance; with bf16, 2e-4 is a tenth of rounding


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", SPECIAL)
def test_nan_and_infinity_are_in_the_rows_where_cudnn_has_them(torch: Any, name: str, causal: bool) -> None:  # noqa: F811
    q, k, v = SPECIAL[name](*(normal(torch, 1, 2, 1024, 128) for _ in range(3)))
    found, theirs = attention(q, k, v, causal=causal), by_cudnn(torch, q, k, v, causal)
    is_finite = found.isfinite().all(-1)
    assert torch.equal(is_finite, theirs.isfinite().all(-1))
    wanted = reference(torch, q, k, v.nan_to_num(0, 0), causal)  # rows that attend to a value of NaN are not compared
    if is_finite.any():
        assert error(found[is_finite], wanted[is_finite]) <= 4e-3


def starts_of(torch: Any, lengths: list[int]) -> Any:  # noqa: F811
    return torch.tensor([0, *lengths], device="cuda").cumsum(0).int()


@pytest.mark.parametrize(("causal", "window"), [(False, 0), (True, 0), (True, 77)])
@pytest.mark.parametrize("size", [64, 128, 256])
def test_packed_sequences(torch: Any, size: int, causal: bool, window: int) -> None:  # noqa: F811
    q, k, v = (normal(torch, sum(n), heads, size) for n, heads in ((LENGTHS, 4), (KEYS, 2), (KEYS, 2)))
    starts, ends = starts_of(torch, LENGTHS), starts_of(torch, KEYS)
    how = {"cu_seqlens_q": starts, "cu_seqlens_k": ends, "causal": causal, "window": window, "return_lse": True}
    k[ends[4] : ends[5]] = math.nan  # of one sequence, which others do not see
    v[ends[4] : ends[5]] = math.inf
    (first, lse), (second, _) = (attention(q, k, v, **how) for _ in range(2))
    assert torch.equal(first.nan_to_num(), second.nan_to_num())
    pairs = zip(pairwise(starts.tolist()), pairwise(ends.tolist()), strict=True)
    for number, ((start, end), (key_start, key_end)) in enumerate(pairs):
        if start == end or number == 4:
            continue
        if key_start == key_end:
            assert not first[start:end].any()
            assert torch.isneginf(lse[:, start:end]).all()
            continue
        one, other, values = (
            x[a:b].transpose(0, 1)[None]
            for x, a, b in ((q, start, end), (k, key_start, key_end), (v, key_start, key_end))
        )
        wanted = reference(torch, one, other, values, causal, window).nan_to_num()  # a window may be past all keys
        assert error(first[start:end].transpose(0, 1)[None], wanted) <= 8e-3


def test_packed_sequences_in_a_graph_and_compiled(torch: Any) -> None:  # noqa: F811
    q, k, v = (normal(torch, sum(LENGTHS), 2, 128) for _ in range(3))
    starts, others = starts_of(torch, LENGTHS), starts_of(torch, sorted(LENGTHS))
    wanted = [attention(q, k, v, causal=True, cu_seqlens_q=one) for one in (starts, others)]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = attention(q, k, v, causal=True, cu_seqlens_q=starts)
    graph.replay()
    assert torch.equal(found, wanted[0])
    starts.copy_(others)  # the numbers are read when the graph runs
    graph.replay()
    assert torch.equal(found, wanted[1])
    twice = torch.compile(lambda q, starts: attention(q, k, v, causal=True, cu_seqlens_q=starts) * 2, fullgraph=True)
    assert torch.equal(twice(q, others), wanted[1] * 2)
