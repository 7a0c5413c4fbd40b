"""The launch of attention of e4m3: what the kernel is specialized for, its tensor maps, its grid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ptxlab.kernels.wgmma_attention.launches import BLOCKS, SHORT, check_extents, gather, tensor_maps
from ptxlab.kernels.wgmma_attention_fp8.kernel import specialize
from ptxlab.kernels.wgmma_attention_fp8.plan import Fp8Plan
from ptxlab.launch.launches import Launch, UnsuitedError, ceil_div

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

SIZES = (64, 128, 256)
UNCUT = 4096  # keys that the tensor cores sum over where there is no mask
CHUNK = 8  # tiles of keys that they sum over elsewhere


def attend(
    q: Array,
    k: Array,
    v: Array,
    scale_q: Array,
    scale_k: Array,
    scale_v: Array,
    o: Array,
    counter: object,
    causal: bool = False,
    window: int = 0,
    plan: Fp8Plan | None = None,
    lse: Array | int | None = None,
) -> Launch:
    """The launch; scales are one f32 each, all else is as `wgmma_attention.attend` takes it."""
    check_extents(q, k, v, o, causal, window)
    if q.shape[3] not in SIZES or v.shape[3] != q.shape[3]:
        heads_of = " and ".join(str(one) for one in dict.fromkeys((q.shape[3], v.shape[3])))
        raise UnsuitedError(f"heads of {heads_of} elements: this kernel is for 64, 128 and 256")
    (batch, heads, queries, size), (_, key_heads, keys, _) = q.shape, k.shape
    chosen = replace(plan or choose(size, causal, bool(window), keys), logs=lse is not None)
    shared_by = heads // key_heads
    together = gather(keys, size, shared_by, causal)
    tiles = batch * heads * ceil_div(queries, chosen.rows)
    sizes = queries, keys, heads, batch * heads, shared_by, together, window
    logs = 0 if lse is None else lse
    args = [*tensor_maps(chosen, q, k, v, o), counter, *sizes, logs, scale_q, scale_k, scale_v]
    return Launch(specialize(chosen), min(tiles, BLOCKS), chosen.threads, args, shared=chosen.shared)


def choose(size: int, causal: bool, window: bool, length: int) -> Fp8Plan:
    """The plan that was fastest on an H200 for so many keys.

    Without a mask, up to `UNCUT` of them the tensor cores sum over all keys: promotion costs 5 % there.
    """
    if size == 256:  # there is no memory for promoted sums
        return Fp8Plan(size, causal=causal, window=window, keys=64, stages=3, transposers=3, ones="last")
    if causal:
        if size == 64 and length > SHORT and not window:
            return Fp8Plan(size, causal=True, keys=256, chunk=6, transposers=3, early=4, turns=True)
        if size == 128 and length <= SHORT:
            short = Fp8Plan(size, causal=True, window=window, keys=128, chunk=CHUNK)
            return short if window else replace(short, early=2, turns=True)
        return Fp8Plan(size, causal=True, window=window, keys=192, chunk=CHUNK)
    if size == 64:
        if SHORT < length <= UNCUT:
            return Fp8Plan(size, keys=256, transposers=3, ones="last", computed=16)
        return Fp8Plan(size, groups=3, keys=128, chunk=12 if length > UNCUT else 0)
    if length <= SHORT:
        return Fp8Plan(size, keys=128, transposers=3, ones="last", early=4, turns=True)
    if length <= UNCUT:
        return Fp8Plan(size, keys=192, transposers=3, early=4, ones="last")
    return Fp8Plan(size, keys=160, chunk=CHUNK, ones="first")
