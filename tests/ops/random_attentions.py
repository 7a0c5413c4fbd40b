"""Random calls of attention, and what they are in float64."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from ptxlab import kernels
from tests.ops.drawing import BF16, E4M3, HALVES, ROUNDING, Draw, Drawn, wide


def scores_of(q: Any, k: Any, options: dict[str, Any], slopes: Any, shift: int = 0) -> tuple[Any, Any]:
    """Scores, heads by queries by keys, and which are attended to."""
    group = q.shape[-3] // k.shape[-3]
    s = wide(q) @ wide(k).repeat(group, -3).swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    row, column = np.arange(s.shape[-2])[:, None] + shift, np.arange(s.shape[-1])[None]
    if options.get("softcap"):
        s = options["softcap"] * np.tanh(s / options["softcap"])
    if slopes is not None:
        s = s - wide(slopes)[:, None, None] * abs(row - column)
    causal, window = options.get("causal", False), options.get("window", 0)
    sees = (column <= row) if causal else np.ones(s.shape[-2:], bool)
    if window:
        sees = sees & (column > row - window)
    return np.where(sees, s, -np.inf), sees


def attended(q: Any, k: Any, v: Any, options: dict[str, Any], slopes: Any = None, sinks: Any = None) -> list[Any]:
    s, _ = scores_of(q, k, options, slopes)
    group = q.shape[-3] // k.shape[-3]
    largest = np.maximum(s.max(-1, initial=-1e30, keepdims=True), -1e30)
    sink = None if sinks is None else wide(sinks)[:, None, None]
    if sink is not None:
        largest = np.maximum(largest, sink)
    e = np.exp(s - largest)
    total = e.sum(-1, keepdims=True) + (0 if sink is None else np.exp(sink - largest))
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + largest)[..., 0]
    return [e / np.maximum(total, 1e-300) @ wide(v).repeat(group, -3), lse]


def attention(draw: Draw) -> Drawn:
    groups, key_heads = draw.one_of(1, 1, 2, 3), draw.one_of(1, 2)
    heads, batch = groups * key_heads, draw.one_of(1, 1, 2)
    fp8 = draw.chance(0.12)
    size = draw.one_of(64, 128) if fp8 else draw.one_of(64, 128, 128, 8 * draw.size(32), 256)
    values = size if fp8 or draw.chance(0.8) else 8 * draw.size(size // 8)
    length = draw.size(200)
    keys = length if draw.chance() else draw.size(250)
    causal = draw.chance()
    options: dict[str, Any] = {"causal": causal}
    if causal and draw.chance(0.3):
        options["window"] = draw.size(100)
    type = E4M3 if fp8 else draw.one_of(*HALVES)
    packed = not fp8 and draw.chance(0.3)
    arrays: dict[str, Any] = {}
    if packed:
        keys = length
        starts = np.array([0, *np.sort(draw.rng.integers(0, length + 1, draw.one_of(0, 1, 3))), length], np.int32)
        for name, count, n in (("q", heads, size), ("k", key_heads, size), ("v", key_heads, values)):
            arrays[name] = draw.placed(draw.normal(length, count, n, type=type), 8)
        arrays["cu_seqlens_q"] = starts
    else:
        for name, count, many, n in (
            ("q", heads, length, size),
            ("k", key_heads, keys, size),
            ("v", key_heads, keys, values),
        ):
            if draw.chance():
                arrays[name] = draw.placed(draw.normal(batch, count, many, n).astype(type), 16)
            else:
                arrays[name] = draw.placed(draw.normal(batch, many, count, n).astype(type), 16).swapaxes(1, 2)
    if fp8:
        arrays |= {f"scale_{name}": np.array([draw.rng.uniform(0.5, 1.5)], np.float32) for name in "qkv"}
    elif draw.chance(0.4):
        if draw.chance():
            options["softcap"] = draw.one_of(5.0, 30.0)
        if draw.chance():
            arrays["alibi_slopes"] = draw.rng.uniform(0, 0.5, heads).astype(np.float32)
        if draw.chance():
            arrays["sinks"] = draw.normal(heads)
    with_lse = draw.chance(0.4)
    rounding = ROUNDING[BF16 if fp8 else type]

    def exact(q: Any, k: Any, v: Any, **more: Any) -> list[Any]:
        how = more.get("alibi_slopes"), more.get("sinks")
        if "scale_q" in more:
            q, k, v = (wide(one) * float(more[f"scale_{name}"][0]) for one, name in ((q, "q"), (k, "k"), (v, "v")))
        if not packed:
            return attended(q, k, v, options, *how)[: 1 + with_lse]
        each = [
            attended(*(one[a:b].swapaxes(0, 1) for one in (q, k, v)), options, *how)
            for a, b in pairwise(more["cu_seqlens_q"])
        ]
        return [np.concatenate([o.swapaxes(0, 1) for o, _ in each]), np.concatenate([lse for _, lse in each], 1)][
            : 1 + with_lse
        ]

    options_given = {**options, "return_lse": True} if with_lse else options
    return Drawn(kernels.attention, arrays, exact, options_given, None, 0.2 if fp8 else 3 * rounding, 2 * rounding)


def attention_backward(draw: Draw) -> Drawn:
    found = attention(draw)
    while "scale_q" in found.arrays:
        found = attention(draw)
    options = {name: one for name, one in found.options.items() if name != "return_lse"}
    heads = {name: one for name, one in found.arrays.items() if name in ("alibi_slopes", "sinks")}
    q, k, v = (found.arrays[name] for name in "qkv")
    starts = found.arrays.get("cu_seqlens_q")
    type = q.dtype.type
    spans = [(0, q.shape[0])] if starts is None else [*pairwise(starts)]

    def in_parts(one: Any) -> list[Any]:
        return [one] if starts is None else [one[a:b].swapaxes(0, 1) for a, b in spans]

    forward = [
        attended(*given, options, heads.get("alibi_slopes"), heads.get("sinks"))
        for given in zip(in_parts(q), in_parts(k), in_parts(v), strict=True)
    ]
    if starts is None:
        o, lse = forward[0]
    else:
        o, lse = np.concatenate([a.swapaxes(0, 1) for a, _ in forward]), np.concatenate([b for _, b in forward], 1)
    do = draw.placed(draw.normal(*o.shape, type=type), 8)
    arrays = {"do": do, "q": q, "k": k, "v": v, "o": o.astype(type), "lse": lse.astype(np.float32), **heads}
    if starts is not None:
        arrays["cu_seqlens_q"] = arrays["cu_seqlens_k"] = starts
    given_options = {**options, "deterministic": draw.chance(0.3)}

    def exact(do: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, **more: Any) -> list[Any]:
        parts = [in_parts(one) for one in (do, q, k, v, o)]
        found = [
            _differentiated(*each, options, more.get("alibi_slopes"), more.get("sinks"))
            for each in zip(*parts, strict=True)
        ]
        if starts is None:
            result = [*found[0]]
        else:
            result = [np.concatenate([each[at].swapaxes(0, 1) for each in found]) for at in range(3)]
            result.append(sum(each[3] for each in found))
        return result[: 3 + ("sinks" in more)]

    rounding = ROUNDING[type]
    return Drawn(kernels.attention_backward, arrays, exact, given_options, None, 12 * rounding, 4 * rounding, 1e-5)


def _differentiated(
    do: Any, q: Any, k: Any, v: Any, o: Any, options: dict[str, Any], slopes: Any, sinks: Any
) -> list[Any]:
    group, scale = q.shape[-3] // k.shape[-3], 1 / math.sqrt(q.shape[-1])
    s, _ = scores_of(q, k, options, slopes)
    _, lse = attended(q, k, v, options, slopes, sinks)
    safe = np.where(np.isfinite(lse), lse, 0)
    p = np.exp(s - safe[..., None])
    wide_k, wide_v, wide_do = wide(k).repeat(group, -3), wide(v).repeat(group, -3), wide(do)
    dp = wide_do @ wide_v.swapaxes(-1, -2)
    delta = (wide_do * wide(o)).sum(-1, keepdims=True)  # of what is given, which is rounded
    ds = p * (dp - delta)
    if options.get("softcap"):
        raw = wide(q) @ wide_k.swapaxes(-1, -2) * scale
        ds = ds * (1 - np.tanh(raw / options["softcap"]) ** 2)

    def joined(one: Any) -> Any:
        return one.reshape(*one.shape[:-3], k.shape[-3], group, *one.shape[-2:]).sum(-3)

    dq, dk, dv = (
        ds @ wide_k * scale,
        joined(ds.swapaxes(-1, -2) @ wide(q)) * scale,
        joined(p.swapaxes(-1, -2) @ wide_do),
    )
    dsinks = 0.0
    if sinks is not None:
        each = -(np.exp(wide(sinks)[:, None] - safe) * delta[..., 0])
        dsinks = each.sum(-1).reshape(-1, len(sinks)).sum(0)
    return [dq, dk, dv, dsinks]


def paged(draw: Draw, key_heads: int, size: int, values: int, type: Any, keys: list[int]) -> tuple[Any, Any, Any]:
    page = draw.one_of(16, 32)
    counts = [-(-n // page) for n in keys]
    order = draw.rng.permutation(sum(counts) + 2).astype(np.int32)
    table = np.full((len(keys), max(1, *counts)), -7, np.int32)
    for row, pages in zip(table, np.split(order, np.cumsum(counts)), strict=False):
        row[: len(pages)] = pages
    k, v = (draw.normal(len(order), page, key_heads, n).astype(type) for n in (size, values))
    return k, v, table


def rows_of(cache: Any, table: Any, number: int, count: int) -> Any:
    if table is None:
        return cache[number, :count]
    pages = table[number, : -(-count // cache.shape[1])]
    return cache[pages].reshape(-1, *cache.shape[2:])[:count]


def decode_attention(draw: Draw) -> Drawn:
    key_heads = draw.one_of(1, 2, 3)
    heads, size, batch = key_heads * draw.one_of(1, 2, 5, 8), draw.one_of(64, 128, 256), draw.one_of(1, 2, 5)
    type = draw.one_of(*HALVES)
    cached = E4M3 if draw.chance(0.25) else type
    keys = [0 if draw.chance(0.1) else draw.size(400) for _ in range(batch)]
    arrays: dict[str, Any] = {"q": draw.normal(batch, heads, size, type=type)}
    if draw.chance():
        k, v, table = paged(draw, key_heads, size, size, cached, keys)
    else:
        most = max(1, *keys) + draw.one_of(0, 3)
        k, v = (draw.normal(batch, most, key_heads, size).astype(cached) for _ in range(2))
        table = None
    arrays |= {"k_cache": draw.placed(k, 16), "v_cache": draw.placed(v, 16), "lengths": np.array(keys, np.int32)}
    if table is not None:
        arrays["block_table"] = table
    options: dict[str, Any] = {}
    if draw.chance(0.3):
        options["scale"] = 0.3 / math.sqrt(size)
    if cached is E4M3:
        options |= {"scale_k": 0.5, "scale_v": 1.5}
    out = draw.normal(batch, heads, size, type=type) if draw.chance(0.3) else None

    def exact(q: Any, k_cache: Any, v_cache: Any, lengths: Any, block_table: Any = None) -> list[Any]:
        found = np.zeros(q.shape)
        for number, count in enumerate(lengths):
            if count:
                k, v = (
                    wide(rows_of(one, block_table, number, count)).repeat(heads // key_heads, 1)
                    for one in (k_cache, v_cache)
                )
                s = (
                    np.einsum("hd,nhd->hn", wide(q[number]), k)
                    * options.get("scale", 1 / math.sqrt(size))
                    * options.get("scale_k", 1)
                )
                p = np.exp(s - s.max(1, keepdims=True))
                found[number] = np.einsum("hn,nhd->hd", p / p.sum(1, keepdims=True), v) * options.get("scale_v", 1)
        return [found]

    return Drawn(kernels.decode_attention, arrays, exact, options, out, 3 * ROUNDING[type], 2 * ROUNDING[type])


def prefill_attention(draw: Draw) -> Drawn:
    key_heads = draw.one_of(1, 2)
    heads, size = key_heads * draw.one_of(1, 2, 3), draw.one_of(64, 128, 8 * draw.size(32))
    values = size if draw.chance(0.8) else 8 * draw.size(size // 8)
    type, batch = draw.one_of(*HALVES), draw.one_of(1, 2, 4)
    keys = [0 if draw.chance(0.1) else draw.size(200) for _ in range(batch)]
    queries = [0 if draw.chance(0.1) else draw.size(60) for _ in range(batch)]
    k, v, table = paged(draw, key_heads, size, values, type, keys)
    arrays = {
        "q": draw.placed(draw.normal(max(1, sum(queries)), heads, size, type=type), 8),
        "k_cache": draw.placed(k, 8), "v_cache": draw.placed(v, 8),
        "cu_seqlens_q": np.cumsum([0, *queries]).astype(np.int32), "lengths": np.array(keys, np.int32),
        "block_table": table,
    }  # fmt: skip
    if not sum(queries):
        arrays["cu_seqlens_q"][-1] = 1
    causal = draw.chance(0.7)
    options = {"causal": causal, "window": draw.size(60) if causal and draw.chance(0.3) else 0}

    def exact(q: Any, k_cache: Any, v_cache: Any, cu_seqlens_q: Any, lengths: Any, block_table: Any) -> list[Any]:
        found = np.zeros((*q.shape[:2], v_cache.shape[3]))
        for number, ((a, b), count) in enumerate(zip(pairwise(cu_seqlens_q), lengths, strict=True)):
            if a < b and count:
                k, v = (rows_of(one, block_table, number, count).swapaxes(0, 1) for one in (k_cache, v_cache))
                s, _ = scores_of(q[a:b].swapaxes(0, 1), k, options, None, int(count) - int(b - a))
                p = np.exp(s - np.maximum(s.max(-1, keepdims=True), -1e30))
                total = np.maximum(p.sum(-1, keepdims=True), 1e-300)
                found[a:b] = (p / total @ wide(v).repeat(heads // key_heads, 0)).swapaxes(0, 1)
        return [found]

    return Drawn(kernels.prefill_attention, arrays, exact, options, None, 3 * ROUNDING[type], 2 * ROUNDING[type])
