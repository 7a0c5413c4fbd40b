"""Attention of new tokens to a cache in pages: against float64, with NaN wherever there is no key."""

import math
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ptxlab
from ptxlab.kernels import prefill_attention, wgmma_attention
from tests.kernels.left_out import without

from ..tools import needs_ptxas, ptxas_reports

QUERIES, KEYS = [40, 7, 0, 30, 3, 25], [100, 7, 20, 150, 0, 9]  # of sequences: some with fewer keys than queries


def problem(page: int = 16, queries: list[int] = QUERIES, keys: list[int] = KEYS, **size: Any) -> dict[str, Any]:
    """Pages in an order that is not theirs, and a table with numbers of no page where it is not to be read."""
    draw = np.random.default_rng(size.get("seed", 0))
    heads, key_heads, width, values = size.get("heads", (2, 1, 64, 64))
    counts = [-(-n // page) for n in keys]
    order = draw.permutation(sum(counts) + 2).astype(np.int32)
    table = np.full((len(keys), max(counts)), -7, np.int32)
    for row, pages in zip(table, np.split(order, np.cumsum(counts)), strict=False):
        row[: len(pages)] = pages
    type = size.get("type", np.float16)
    q = draw.standard_normal((sum(queries), heads, width)).astype(type)
    caches = [draw.standard_normal((len(order), page, key_heads, n)).astype(type) for n in (width, values)]
    is_key = np.zeros((len(order), page), bool)
    for n, row in zip(keys, table, strict=True):
        is_key[row[np.arange(n) // page], np.arange(n) % page] = True
    for cache in caches:
        cache[~is_key] = np.nan
    starts = np.cumsum([0, *queries]).astype(np.int32)
    names = ("q", "k_cache", "v_cache", "cu_seqlens_q", "lengths", "block_table")
    return dict(zip(names, (q, *caches, starts, np.array(keys, np.int32), table), strict=True))


def expected(given: dict[str, Any], causal: bool = True, window: int = 0) -> Any:
    """Each sequence for itself, in float64."""
    q, k, v = (given[name].astype(float) for name in ("q", "k_cache", "v_cache"))
    found = np.zeros((*q.shape[:2], v.shape[3]))
    for (a, b), n, pages in zip(pairwise(given["cu_seqlens_q"]), given["lengths"], given["block_table"], strict=True):
        used = pages[: -(-n // k.shape[1])]
        keys, values = (one[used].reshape(-1, *one.shape[2:])[:n] for one in (k, v))
        row, column = np.arange(n - (b - a), n)[:, None], np.arange(n)[None]
        sees = (column <= row if causal else column >= 0) & (column > row - (window or n + b))
        for head in range(q.shape[1]):
            own = head * keys.shape[1] // q.shape[1]
            scores = np.where(sees, q[a:b, head] @ keys[:, own].T / math.sqrt(q.shape[2]), -np.inf)
            weights = np.exp(scores - scores.max(1, initial=-1e30, keepdims=True))
            found[a:b, head] = weights @ values[:, own] / np.maximum(weights.sum(1, keepdims=True), 1e-30)
    return found


def error(given: dict[str, Any], **how: Any) -> float:
    wanted = expected(given, **how)
    return float(np.linalg.norm(prefill_attention(**given, **how) - wanted) / np.linalg.norm(wanted))


def test_sequences_of_all_lengths() -> None:
    given = problem()
    found = prefill_attention(**given)
    wanted = expected(given)
    assert np.linalg.norm(found - wanted) < 1e-3 * np.linalg.norm(wanted)
    assert (found[77:80] == 0).all()  # of no keys
    assert (found[80:96] == 0).all()  # before the first key
    assert found.tobytes() == prefill_attention(**given, out=np.full_like(found, np.nan)).tobytes()


@pytest.mark.bulk
@pytest.mark.parametrize(
    ("page", "how", "size"),
    [
        (64, {}, {"heads": (4, 2, 128, 128), "type": ml_dtypes.bfloat16}),
        (48, {"window": 30}, {"queries": [170, 1], "keys": [333, 64]}),
        (128, {"causal": False}, {"heads": (3, 3, 80, 64)}),
        (256, {}, {"heads": (1, 1, 192, 128), "queries": [150], "keys": [300]}),
        (32, {}, {"heads": (7, 1, 256, 256), "queries": [9, 1], "keys": [90, 33]}),
    ],
    ids=str,
)
def test_pages_masks_and_heads(page: int, how: dict[str, Any], size: dict[str, Any]) -> None:
    given = problem(page, **size)
    assert error(given, **how) < (1e-2 if given["q"].dtype == ml_dtypes.bfloat16 else 1e-3)


@pytest.mark.bulk
def test_three_warpgroups() -> None:
    """As for many queries, with masks that cut two tiles of keys."""
    given = problem(queries=[150, 200], keys=[400, 130])
    arrays, out = launches(given, groups=3)
    run(arrays)
    wanted = expected(given)
    assert np.linalg.norm(out - wanted) < 1e-3 * np.linalg.norm(wanted)


def test_a_cache_with_strides_is_read_where_it_is() -> None:
    given = problem(queries=[9, 1], keys=[40, 33])
    both = np.stack([given["k_cache"], given["v_cache"]], 1)  # pages × 2 × positions, as vLLM has them
    wanted = prefill_attention(**given)
    assert prefill_attention(**{**given, "k_cache": both[:, 0], "v_cache": both[:, 1]}).tobytes() == wanted.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "convert"), [("torch", "from_numpy"), ("jax.numpy", "asarray")])
def test_arrays_of_frameworks_on_the_host(name: str, convert: str) -> None:
    module = pytest.importorskip(name)
    given = problem()
    found = prefill_attention(**{name: getattr(module, convert)(one) for name, one in given.items()})
    assert np.asarray(found).tobytes() == prefill_attention(**given).tobytes()


def launches(given: dict[str, Any], **plan: Any) -> tuple[list[Any], Any]:
    """The launches of the function, and where they write."""
    q, table, starts = given["q"], given["block_table"], given["cu_seqlens_q"]
    out = np.zeros((*q.shape[:2], given["v_cache"].shape[3]), q.dtype)
    views = [one.swapaxes(0, 1)[None] for one in (q, out)]
    caches = [given[name].swapaxes(1, 2) for name in ("k_cache", "v_cache")]
    counts = wgmma_attention.workspace(views[0].shape, len(starts) - 1)
    memory = np.zeros(counts[1], np.uint32), np.zeros(4 * counts[0], np.uint8)
    chosen = replace(wgmma_attention.choose(q.shape[2], "f16", True, False, 30, 0), **plan)
    found = wgmma_attention.attend_packed(
        views[0], *caches, views[1], np.zeros(1, np.uint32), (starts, given["lengths"]), len(starts) - 1, memory,
        causal=True, plan=chosen, table=(table, table.shape[1]),
    )  # fmt: skip
    return found, out


def run(launches: list[Any]) -> list[str]:
    """One after the other, as they overlap: what is found."""
    grids = [(one.kernel, one.grid, one.block, one.args, {"shared": one.shared, "overlap": one.overlap})
             for one in launches]  # fmt: skip
    try:
        return [finding.code for result in ptxlab.launch_chain(*grids, device="cpu") for finding in result.diagnostics]
    except ptxlab.KernelError as wrong:
        return [finding.code for finding in wrong.diagnostics]


# What is left out of the kernels, and what is found then.
LOST = {
    "fence.proxy.tensormap::generic.acquire": "stale-tensor-map",
    "griddepcontrol.wait": "data-race",
    "mbarrier.arrive.expect_tx": "hang",
    "shfl.sync.idx": "data-race",
}


@pytest.mark.bulk
@pytest.mark.parametrize("lost", [None, *LOST])
def test_what_is_left_out_is_found(lost: str | None) -> None:
    given = problem(queries=[140, 30], keys=[140, 60])
    found, _ = launches(given)
    if lost is not None:
        found = [found[0], without(found[1], lost)] if lost in str(found[1].kernel) else found
    assert set(run(found)) == ({LOST[lost]} if lost else set())


@pytest.mark.bulk
@pytest.mark.parametrize("wrong", [r"selp\.b64 (%\w+), (%\w+), %\w+, %\w+;", r"max\.s32 (%\w+), (%\w+), 0;"])
def test_values_after_the_last_key_and_rows_before_the_first_matter(wrong: str) -> None:
    """A map of values that does not end with the sequence reads NaN; tiles are counted by rows of 0 or more."""
    given = problem(queries=[140, 541], keys=[150, 141])
    (first, second), out = launches(given, groups=3)
    text = str(second.kernel)
    changed = re.sub(wrong, lambda at: f"mov.b{'64' if 'selp' in at[0] else '32'} {at[1]}, {at[2]};", text)
    if "selp" in wrong:  # the map of the whole cache
        changed = re.sub(r"selp\.b64 (%\w+), %\w+, (%\w+), %\w+;", r"mov.b64 \1, \2;", text)
    assert changed != text
    for module, is_right in ((text, True), (changed, False)):
        out[:] = 0
        run([first, replace(second, kernel=ptxlab.parse(module)[second.function.name])])
        wanted = expected(given)
        assert bool(np.linalg.norm(out - wanted) < 1e-3 * np.linalg.norm(wanted)) == is_right


def test_what_the_function_refuses() -> None:
    given = problem()
    q, k, v, starts, lengths, table = given.values()
    for change, message in (
        ({"q": q[None]}, "`q` has 4 dimensions"),
        ({"k_cache": k[0]}, "`k_cache` has 3 dimensions: a cache is pages × positions × heads × head size"),
        ({"v_cache": v[1:]}, "`k_cache` and `v_cache` differ in pages, positions or heads"),
        ({"k_cache": k[:, :12], "v_cache": v[:, :12]}, "pages of 12 positions: this kernel is for multiples of 16"),
        ({"k_cache": k[..., :32]}, "queries of 2 heads × 64, keys of 1 × 32"),
        ({"k_cache": k.astype(ml_dtypes.float8_e4m3fn)}, "`k_cache` has elements of type float8_e4m3fn"),
        ({"cu_seqlens_q": starts[::-1].copy()}, "`cu_seqlens_q` decreases"),
        ({"cu_seqlens_q": starts[:-1]}, "`lengths` is 6 long, and must be 5 long"),
        ({"lengths": lengths + 200}, "and the cache has 160 positions"),
        ({"lengths": lengths - 1}, "`lengths` are from -1 to 149"),
        ({"lengths": lengths.astype(np.int64)}, "`lengths` has elements of type int64"),
        ({"block_table": table[:5]}, "`block_table` is (5, 10): it is sequences × pages, and sequences are 6"),
        ({"block_table": table + 100}, "`block_table` names a page that the cache does not have: it has"),
        ({"block_table": np.asfortranarray(table)}, "`block_table` has gaps between its elements, or is transposed"),
        ({"window": 4, "causal": False}, "a window of 4 keys"),
        ({"out": np.zeros((3, 2, 64), np.float16)}, "`out` is"),
        ({"out": q}, "`out` overlaps `q`"),
    ):
        with pytest.raises((ValueError, TypeError), match=re.escape(message)):
            prefill_attention(**{**given, **change})


@pytest.mark.parametrize("name", ["q", "k_cache", "block_table"])
def test_nothing_to_attend_to(name: str) -> None:
    given = problem()
    if name == "q":
        given |= {"q": given["q"][:0], "cu_seqlens_q": given["cu_seqlens_q"] * 0}
    else:
        given |= {"lengths": given["lengths"] * 0}
        given |= {"block_table": given["block_table"][:, :0]} if name == "block_table" else {}
        given |= {one: given[one][:0] for one in ("k_cache", "v_cache")} if name == "k_cache" else {}
    found = prefill_attention(**given)
    assert found.shape == given["q"].shape
    assert not found.any()


@pytest.mark.bulk
@needs_ptxas
@pytest.mark.parametrize("page", [16, 64])
@pytest.mark.parametrize(("size", "causal"), [(64, True), (64, False), (128, True), (192, True), (256, True)])
def test_ptxas_neither_spills_nor_serializes(size: int, causal: bool, page: int) -> None:
    plan = replace(wgmma_attention.choose(size, "bf16", causal, False, 4096), packed=True, page=page)
    assert ptxas_reports(wgmma_attention.specialize_packed(plan).ptx) == []
