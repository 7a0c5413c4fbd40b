"""What attention of e4m3 computes, for `ptxlab bench` and tests: data, the answer in float64, the least work."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.device.arrays import Tensor
from ptxlab.kernels import wgmma_attention
from ptxlab.kernels.wgmma_attention.problem import inputs, torch_baseline
from ptxlab.launch.launches import Arrays
from ptxlab.measure import Draw, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

SCALES = {"q": 0.8, "k": 1.25, "v": 0.5}


def arrays(
    draw: Draw, batch: int, heads: tuple[int, int], length: int, size: int, causal: bool, window: int = 0
) -> Arrays:
    """Queries, keys and values, their scales, and space for the answer."""
    drawn = inputs(draw, "e4m3", batch, heads, length, size)
    scales = {f"scale_{name}": draw.uniform(1, "f32", one, one) for name, one in SCALES.items()}
    output = {"o": draw.empty(drawn["q"].shape, "bf16"), "counter": draw.integers(1, "u32", 0, 1)}
    return {**drawn, **scales, **output, "causal": causal, "window": window}


def reference(
    xp: ModuleType, q: Array, k: Array, v: Array, scale_q: Array, scale_k: Array, scale_v: Array, **others: Any
) -> Arrays:
    """The formula, of arrays times their scales."""
    found: Arrays = wgmma_attention.reference(xp, q * scale_q, k * scale_k, v * scale_v, **others)
    return found


def work(batch: int, heads: tuple[int, int], length: int, size: int, causal: bool, window: int = 0) -> Work:
    """Two products, of which a mask leaves a part."""
    wide = wgmma_attention.work("bf16", batch, heads, length, size, causal, window)
    read = batch * length * (heads[0] + 2 * heads[1]) * size
    return Work(flops=wide.flops, bytes=read + 2 * batch * length * heads[0] * size, rate="e4m3")


def in_bf16(
    backend: str,
    torch: ModuleType,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale_q: Tensor,
    scale_k: Tensor,
    scale_v: Tensor,
    **others: Any,
) -> Callable[[], object]:
    """torch's attention of the same numbers in bf16: it has none of 8 bits."""
    q, k, v = ((one.float() * scale).bfloat16() for one, scale in ((q, scale_q), (k, scale_k), (v, scale_v)))
    return torch_baseline(backend, torch, q, k, v, **others)


def sized(length: int, size: int, causal: bool, heads: tuple[int, int] = (16, 16)) -> dict[str, object]:
    """16,384 queries for each head."""
    return {"batch": max(1, 16384 // length), "heads": heads, "length": length, "size": size, "causal": causal}
