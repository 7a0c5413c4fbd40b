"""o = softmax(q·kᵀ/√d)·v for many heads, in one pass over the keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.device.array_types import type_of
from ptxlab.device.arrays import Tensor
from ptxlab.kernels.mma_attention.kernel import Plan, attention
from ptxlab.kernels.parts.torch_baselines import torch_attention
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

MASKS = ("none", "causal")
SHORT = 128  # up to this length tiles are small: more blocks, and fewer rows without a query


def attend(q: Array, k: Array, v: Array, o: Array, mask: str = "none", **chosen: Any) -> Launch:
    """A launch for arrays of batch × heads × length × head size; `chosen` are parts of a plan other than ours.

    Under the mask "causal" a row attends to the keys up to its own.
    """
    batch, heads, length, size = q.shape
    if size not in (64, 128):
        raise UnsuitedError(f"heads of {size} elements: this kernel is for 64 and 128")
    tiles = {"tiles": 1, "keys": 32} if length <= SHORT else {"tiles": 2, "keys": 8192 // size}
    plan = Plan(size, half_of(q), mask == "causal", **(tiles | chosen))
    blocks = ceil_div(length, plan.rows)
    return Launch(attention(plan), batch * heads * blocks, plan.threads, [q, k, v, o, length, blocks], plan.shared)


def make(**chosen: Any) -> Callable[..., Launch]:
    """The kernel with another plan, for `tune`."""
    return partial(attend, **chosen)


def half_of(array: Array) -> str:
    """The type of an array's elements, of 16 bits."""
    found = type_of(array)
    if found not in ("bf16", "f16"):
        raise UnsuitedError(f"elements are {found}: this kernel is for bf16 and f16")
    return found


def torch_baseline(
    backend: str, torch: ModuleType, q: Tensor, k: Tensor, v: Tensor, o: Tensor, mask: str
) -> Callable[[], object]:
    """torch's attention by one of its backends; it allocates the answer itself."""
    return lambda: {"o": torch_attention(torch, backend, q, k, v, mask == "causal")}


def arrays(draw: Draw, batch: int, heads: int, length: int, size: int, type: str, mask: str) -> Arrays:
    """Queries, keys and values, and space for the answer."""
    shape = (batch, heads, length, size)
    drawn = {name: draw.normal(shape, type) for name in "qkv"}
    return {**drawn, "o": draw.empty(shape, type), "mask": mask}


def reference(xp: ModuleType, q: Array, k: Array, v: Array, o: Array, mask: str) -> Arrays:
    """The formula, head by head."""
    output = xp.empty_like(q)
    for head in product(range(q.shape[0]), range(q.shape[1])):
        scores = q[head] @ k[head].T / math.sqrt(q.shape[3])
        if mask == "causal":
            scores = xp.where(xp.tril(xp.ones_like(scores)) > 0, scores, -math.inf)
        p = xp.exp(scores - xp.amax(scores, 1)[:, None])
        output[head] = p @ v[head] / p.sum(1)[:, None]
    return {"o": output}


def work(batch: int, heads: int, length: int, size: int, type: str, mask: str) -> Work:
    """Two products, of which a causal mask leaves half."""
    pairs = length * length // (2 if mask == "causal" else 1)
    return Work(flops=4 * batch * heads * pairs * size, bytes=8 * batch * heads * length * size, rate=type)


def sized(batch: int, heads: int, length: int, size: int, type: str, mask: str) -> dict[str, object]:
    """The names of a size's parts."""
    return {"batch": batch, "heads": heads, "length": length, "size": size, "type": type, "mask": mask}


entry = Entry(
    title="o = softmax(q·kᵀ/√d)·v for many heads",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"mma.sync": attend},
    libraries={
        "torch, flash": partial(torch_baseline, "FLASH_ATTENTION"),
        "torch, cuDNN": partial(torch_baseline, "CUDNN_ATTENTION"),
    },
    sizes=[
        *(sized(4, 16, 4096, 64, "bf16", mask) for mask in MASKS),
        sized(4, 16, 4096, 128, "f16", "none"),
        *(sized(4, 16, 4096, 128, "bf16", mask) for mask in MASKS),
        *(sized(1, 16, 16384, 128, "bf16", mask) for mask in reversed(MASKS)),
    ],
    small=[
        sized(1, 1, 1, 64, "bf16", "causal"),
        sized(2, 1, 100, 64, "bf16", "causal"),
        sized(1, 2, 77, 128, "f16", "none"),
    ],
    tolerance=5e-3,
)
