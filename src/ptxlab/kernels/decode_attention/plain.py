"""Attention of one query token to a cache, the plain way: a warp for each head of queries, key by key.

Read this before `kernel.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer, b16, f32, kernel, pointer, ptx, u32
from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.elements import element_pointer, load, store
from ptxlab.kernels.parts.reductions import add, over_warp
from ptxlab.launch.launches import Launch, UnsuitedError

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


@kernel(target="sm_80", maxntid=32)
def decode_plain(
    q: pointer[b16],
    k: pointer[b16],
    v: pointer[b16],
    o: pointer[b16],
    lengths: pointer[u32],
    table: pointer[u32],
    key_heads: u32,
    pages: u32,
    positions: u32,
    scale: f32,
    *,
    TYPE: str,  # noqa: N803
    SIZE: int,  # noqa: N803
    PAGED: bool,  # noqa: N803
) -> None:
    """Block (h, b) has head h of sequence b; a lane has SIZE / 32 elements that follow each other of every vector."""
    own, (head, sequence) = SIZE // 32, (ptx.ctaid.x, ptx.ctaid.y)
    row, key_head = ptx.mad.lo.u32(sequence, ptx.nctaid.x, head), head // (ptx.nctaid.x // key_heads)

    def vector(of: Pointer, number: u32) -> list[f32]:
        """What this lane has of a vector, as f32."""
        return load(ptx.ld.global_, place(of, number), TYPE, own)

    def place(of: Pointer, number: u32) -> Any:
        return element_pointer(of, TYPE, own, ptx.mul.wide.u32(number, SIZE), ptx.laneid * own)

    query = [value * scale for value in vector(q, row)]
    highest, total, result = f32(-(2.0**127)), f32(0.0), [f32(0.0) for _ in range(own)]
    for position in ptx.range(0, lengths[sequence]):
        page, within = sequence, position
        if PAGED:
            page, within = table[ptx.mad.lo.u32(sequence, pages, position // positions)], position % positions
        number = ptx.mad.lo.u32(ptx.mad.lo.u32(page, positions, within), key_heads, key_head)
        products = [one * other for one, other in zip(query, vector(k, number), strict=True)]
        score = over_warp(sum(products[1:], products[0]), add)
        larger = ptx.max.f32(highest, score)
        rescale, weight = ptx.ex2.approx.ftz.f32(highest - larger), ptx.ex2.approx.ftz.f32(score - larger)
        ptx.mov.f32(larger, out=highest)
        ptx.fma.rn.f32(total, rescale, weight, out=total)
        for sums, value in zip(result, vector(v, number), strict=True):
            ptx.fma.rn.f32(sums, rescale, value * weight, out=sums)
    inverse = ptx.selp.f32(ptx.rcp.rn.f32(total), 0.0, total > 0.0)  # a sequence may have no keys
    store(place(o, row), TYPE, [value * inverse for value in result])


def plain(q: Array, k: Array, v: Array, o: Array, lengths: Array, partial: Array, table: Array | None) -> Launch:
    """A warp for each head of each sequence."""
    if k.dtype != q.dtype:
        raise UnsuitedError(f"the queries are {q.dtype}, and the cache is {k.dtype}")
    (batch, heads, size), (_, positions, key_heads, _) = q.shape, k.shape
    made = decode_plain.specialize(TYPE=type_of(q), SIZE=size, PAGED=table is not None)
    memory = [q, k, v, o, lengths, 0 if table is None else table]
    pages = 0 if table is None else table.shape[1]
    return Launch(made, (heads, batch), 32, [*memory, key_heads, pages, positions, math.log2(math.e) / math.sqrt(size)])
