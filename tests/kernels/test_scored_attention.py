"""Attention with a soft cap, ALiBi's slopes and sinks, and its gradients: right and silent on the emulator, and on a
GPU through the functions."""

import math
from typing import Any

import numpy as np
import pytest

from ptxlab import gpu
from ptxlab.kernels import attention, attention_backward

Scores = tuple[float, Any, Any]
"""The soft cap, slopes and sinks."""


def drawn(heads: int, softcap: float, alibi: bool, sinks: bool) -> Scores:
    rng = np.random.default_rng(1)
    slopes, logits = rng.random(heads) / 5, 2 * rng.standard_normal(heads)
    return softcap, slopes.astype(np.float32) if alibi else None, logits.astype(np.float32) if sinks else None


def expected(given: list[Any], how: Scores, causal: bool, window: int = 0) -> list[Any]:
    """The answer, log-sum-exps, and the gradients of q, k, v and sinks, in float64."""
    (q, k, v, do), (softcap, slopes, sinks) = given, how
    shared_by, scale = q.shape[1] // k.shape[1], 1 / math.sqrt(q.shape[3])
    o, lse = np.empty((*q.shape[:3], v.shape[3])), np.empty(q.shape[:3])
    dq, dk, dv, dsinks = np.empty_like(q), np.zeros_like(k), np.zeros_like(v), np.zeros(q.shape[1])
    distance = np.arange(q.shape[2])[:, None] - np.arange(k.shape[2])
    for at in np.ndindex(q.shape[:2]):
        own, head = (at[0], at[1] // shared_by), at[1]
        plain = q[at] @ k[own].T * scale
        scores = softcap * np.tanh(plain / softcap) if softcap else plain
        steepness = 1 - (scores / softcap) ** 2 if softcap else 1.0
        if slopes is not None:
            scores = scores - slopes[head] * abs(distance)
        if causal:
            is_attended = (distance >= 0) & ((distance < window) if window else True)
            scores = np.where(is_attended, scores, -math.inf)
        sink = -math.inf if sinks is None else sinks[head]
        lse[at] = np.logaddexp(np.logaddexp.reduce(scores, 1), sink)
        p = np.exp(scores - lse[at][:, None])
        o[at] = p @ v[own]
        dp, total = do[at] @ v[own].T, (do[at] * o[at]).sum(1)
        ds = p * (dp - total[:, None]) * steepness * scale
        dq[at] = ds @ k[own]
        dk[own] += ds.T @ q[at]
        dv[own] += p.T @ do[at]
        dsinks[head] -= (np.exp(sink - lse[at]) * total).sum()
    return [o, lse, dq, dk, dv, dsinks]


def near(given: Any, wanted: Any, allowed: float) -> bool:
    return bool(np.linalg.norm(np.asarray(given, float) - wanted) <= allowed * np.linalg.norm(wanted))


def problem(heads: tuple[int, int], length: int, size: int) -> list[Any]:
    rng = np.random.default_rng(0)
    counts = heads[0], heads[1], heads[1], heads[0]
    return [(2 * rng.standard_normal((1, count, length, size))).astype(np.float16) for count in counts]


@pytest.mark.bulk
@pytest.mark.parametrize(
    ("heads", "length", "size", "causal", "how"),
    [
        pytest.param((2, 1), 140, 64, True, (3.0, True, True), id="all"),
        pytest.param((1, 1), 100, 128, False, (0.0, True, False), id="slopes, without a mask"),
        pytest.param((2, 2), 70, 64, False, (0.0, False, True), id="sinks"),
        pytest.param((1, 1), 90, 128, True, (2.0, False, False), id="a soft cap"),
        pytest.param((1, 1), 128, 256, True, (20.0, False, False), id="a soft cap, rows without keys in a tile"),
    ],
)
def test_changed_scores_and_their_gradients_on_the_emulator(
    heads: tuple[int, int], length: int, size: int, causal: bool, how: tuple[float, bool, bool]
) -> None:
    q, k, v, do = problem(heads, length, size)
    softcap, slopes, sinks = drawn(heads[0], *how)
    given: dict[str, Any] = {"softcap": softcap, "alibi_slopes": slopes, "sinks": sinks, "causal": causal}
    wanted = expected([one.astype(float) for one in (q, k, v, do)], (softcap, slopes, sinks), causal)
    o, lse = attention(q, k, v, return_lse=True, **given)
    found = attention_backward(do, q, k, v, o, lse, **given)
    assert len(found) == (3 if sinks is None else 4)
    for one, other in zip((o, lse, *found), wanted, strict=False):
        assert near(one, other, 2e-3)


@pytest.mark.bulk
def test_changed_scores_of_packed_sequences_on_the_emulator() -> None:
    starts, (softcap, slopes, sinks) = np.array([0, 37, 37, 100], np.int32), drawn(2, 3.0, True, True)
    q, k, v, do = (one[0].swapaxes(0, 1).copy() for one in problem((2, 1), 100, 64))
    given: dict[str, Any] = {"softcap": softcap, "alibi_slopes": slopes, "sinks": sinks, "causal": True}
    o, lse = attention(q, k, v, return_lse=True, cu_seqlens_q=starts, **given)
    *found, dsinks = attention_backward(do, q, k, v, o, lse, cu_seqlens_q=starts, **given)
    of_sinks = np.zeros(2)
    for start, end in ((0, 37), (37, 100)):
        parts = [one[start:end].swapaxes(0, 1)[None].astype(float) for one in (q, k, v, do)]
        answer, logs, *wanted, more = expected(parts, (softcap, slopes, sinks), True)
        of_sinks += more
        assert near(lse[:, start:end], logs[0], 2e-3)
        for one, other in zip((o, *found), (answer, *wanted), strict=True):
            assert near(one[start:end], other[0].swapaxes(0, 1), 2e-3)
    assert near(dsinks, of_sinks, 2e-3)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"softcap": -1.0}, "`softcap` is -1.0: it is a positive number, or 0 for none"),
        ({"softcap": math.nan}, "`softcap` is nan: it is a positive number, or 0 for none"),
        ({"softcap": "30"}, "`softcap` is '30': it is a positive number, or 0 for none"),
        ({"sinks": np.zeros(3, np.float32)}, "`sinks` is 3 long, and must be 2 long"),
        ({"alibi_slopes": np.zeros((2, 2), np.float32)}, "`alibi_slopes` is 2 by 2, and must be 2 long"),
        ({"sinks": np.zeros(2, np.float16)}, "`sinks` has elements of type float16: this kernel is for float32"),
    ],
)
def test_scores_that_cannot_be_changed_so_are_refused(given: dict[str, Any], problem: str) -> None:
    q = np.zeros((1, 2, 8, 64), np.float16)
    with pytest.raises((ValueError, TypeError), match=problem):
        attention(q, q, q, **given)


def test_without_queries_gradients_are_zero() -> None:
    q, sinks = np.zeros((1, 2, 0, 64), np.float16), np.ones(2, np.float32)
    o, lse = attention(q, q, q, sinks=sinks, return_lse=True)
    *others, dsinks = attention_backward(o, q, q, q, o, lse, sinks=sinks)
    assert [one.shape for one in others] == [q.shape] * 3
    assert not dsinks.any()


@pytest.mark.gpu
@pytest.mark.filterwarnings("default")
@pytest.mark.skipif(gpu.absence() is not None, reason="needs a GPU")
@pytest.mark.parametrize("how", [(3.0, True, True), (20.0, False, False), (0.0, True, False), (0.0, False, True)])
@pytest.mark.parametrize(
    ("heads", "length", "size", "causal", "window"),
    [
        ((4, 1), 700, 128, True, 0),
        ((2, 2), 333, 64, False, 0),
        ((2, 1), 257, 256, True, 100),
        ((3, 3), 190, 96, True, 0),
    ],
)
def test_changed_scores_under_autograd(
    how: tuple[float, bool, bool], heads: tuple[int, int], length: int, size: int, causal: bool, window: int
) -> None:
    torch = pytest.importorskip("torch")
    given = problem(heads, length, size)
    softcap, slopes, sinks = drawn(heads[0], *how)
    wanted = expected([one.astype(float) for one in given], (softcap, slopes, sinks), causal, window)
    q, k, v = (torch.tensor(one, device="cuda", requires_grad=True) for one in given[:3])
    of_heads = [None if one is None else torch.tensor(one, device="cuda") for one in (slopes, sinks)]
    if of_heads[1] is not None:
        of_heads[1].requires_grad_()
    for _ in range(2):  # the second time by the form of the first
        o = attention(
            q, k, v, causal=causal, window=window, softcap=softcap, alibi_slopes=of_heads[0], sinks=of_heads[1]
        )
        leaves = [q, k, v, *([] if of_heads[1] is None else [of_heads[1]])]
        found = torch.autograd.grad(o, leaves, torch.tensor(given[3], device="cuda"))
        for one, other in zip((o, *found), (wanted[0], *wanted[2:]), strict=False):
            assert near(one.detach().cpu().numpy(), other, 5e-3)


@pytest.mark.parametrize("how", [(4.0, True, True), pytest.param((0.0, False, True), marks=pytest.mark.bulk)], ids=str)
def test_changed_scores_of_jax(how: tuple[float, bool, bool]) -> None:
    """On the CPU, which is the emulator; packed sequences of which one has all positions are the same."""
    jax = pytest.importorskip("jax")
    q, k, v, do = problem((2, 1), 40, 64)
    softcap, slopes, sinks = drawn(2, *how)
    answer, _, *wanted, of_sinks = expected(
        [one.astype(float) for one in (q, k, v, do)], (softcap, slopes, sinks), True
    )
    starts = np.array([0, 40], np.int32)

    def attend(q: Any, k: Any, v: Any, sinks: Any, packed: bool = False) -> Any:
        options: dict[str, Any] = {"softcap": softcap, "alibi_slopes": slopes, "sinks": sinks, "causal": True}
        if not packed:
            return attention(q, k, v, **options)
        turned = (one[0].swapaxes(0, 1) for one in (q, k, v))
        return attention(*turned, cu_seqlens_q=jax.numpy.asarray(starts), **options).swapaxes(0, 1)[None]

    for packed in (False, True):
        found, backward = jax.vjp(
            lambda *given, packed=packed: attend(*given, packed), *map(jax.numpy.asarray, (q, k, v, sinks))
        )
        assert near(np.asarray(found), answer, 2e-3)
        for one, exact in zip(backward(jax.numpy.asarray(do)), [*wanted, of_sinks], strict=True):
            assert near(np.asarray(one), exact, 5e-3)
