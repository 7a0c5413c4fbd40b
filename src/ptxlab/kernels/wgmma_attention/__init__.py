"""o = softmax(q·kᵀ/√d)·v on Hopper's tensor cores, by `wgmma` and tensor copies: f16 and bf16.

Arrays are batch × heads × length × head size, and heads of 64, 128 or 256 elements. Keys and values may have fewer
heads, each for as many heads of queries. Under a causal mask a query attends to the keys up to its own, in a window to
the last of these only. The answer does not depend on the order in which blocks run: two runs give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import ptxlab
from ptxlab.kernels.mma_attention import half_of
from ptxlab.kernels.wgmma_attention.kernel import specialize
from ptxlab.kernels.wgmma_attention.plan import BOX, GROUP_ROWS, Plan
from ptxlab.measure import Draw, Entry, Launch, UnsuitedError, Work
from ptxlab.measure.entry import Arrays, ceil_div

BLOCKS = 132  # as many as an H200 has SMs
L2 = 32 << 20  # bytes of keys and values that are read together; an H200 has 50 MiB of L2
SHORT = 1024  # up to this length, tiles of 128 queries for heads of 64 elements


def attend(
    q: Any,
    k: Any,
    v: Any,
    o: Any,
    counter: Any,
    causal: bool = False,
    window: int = 0,
    plan: Plan | None = None,
    lse: Any = None,
) -> Launch:
    """The launch; `counter` is one number, 0, which the kernel sets back to 0 when it ends.

    A `window` of so many keys goes with a causal mask; 0 is all of them. `lse`, batch × heads × length in f32, is space
    for the log-sum-exp of each row's scores, which the gradients need.
    """
    check(q, k, v, o, causal, window)
    (batch, heads, queries, size), (_, key_heads, keys, _) = q.shape, k.shape
    chosen = replace(plan or choose(size, half_of(q), causal, bool(window), queries), logs=lse is not None)
    maps = [
        ptxlab.tensor_map(array, box=(1, 1, rows, BOX), swizzle="128B", l2_promotion="256B")
        for array, rows in ((q, GROUP_ROWS), (k, chosen.keys), (v, chosen.keys), (o, GROUP_ROWS))
    ]
    shared_by = heads // key_heads
    together = max(1, L2 // (4 * keys * size)) * shared_by
    tiles = batch * heads * ceil_div(queries, chosen.rows)
    args = [*maps, counter, queries, keys, heads, batch * heads, shared_by, together, window, 0 if lse is None else lse]
    return Launch(specialize(chosen), min(tiles, BLOCKS), chosen.threads, args, shared=chosen.shared)


def check(q: Any, k: Any, v: Any, o: Any, causal: bool, window: int) -> None:
    """Refuse what the kernel does not do."""
    shapes = f"queries {tuple(q.shape)}, keys {tuple(k.shape)}, values {tuple(v.shape)}, answer {tuple(o.shape)}"
    if len(q.shape) != 4 or len(k.shape) != 4 or k.shape != v.shape or o.shape != q.shape:
        raise UnsuitedError(f"arrays are batch × heads × length × head size, and these do not fit: {shapes}")
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3]:
        raise UnsuitedError(f"batch and head size are the same for queries and keys, and here are {shapes}")
    if 0 in (*q.shape, *k.shape):
        raise UnsuitedError(f"there is nothing to compute: {shapes}")
    if q.shape[3] not in (64, 128, 256):
        raise UnsuitedError(f"heads of {q.shape[3]} elements: this kernel is for 64, 128 and 256")
    if q.shape[1] % k.shape[1]:
        raise UnsuitedError(f"{q.shape[1]} heads of queries are not a multiple of {k.shape[1]} heads of keys")
    if len({half_of(array) for array in (q, k, v, o)}) > 1:
        raise UnsuitedError("queries, keys, values and the answer are of one type")
    if window < 0 or (window and not causal):
        raise UnsuitedError(f"a window of {window} keys: it has 1 or more, and goes with a causal mask")


def choose(size: int, type: str, causal: bool, window: bool, queries: int) -> Plan:
    """The plan that was fastest on an H200 for such a problem."""
    groups = 3 if size == 64 and queries > SHORT and not window else 2
    return Plan(size, type, causal, window, groups, keys=128 if size < 256 else 64)


def torch_baseline(backend: str, torch: Any, causal: bool, window: int, **arrays: Any) -> Callable[[], Any]:
    """torch's attention by one of its backends; it allocates the answer itself."""
    if window:
        raise UnsuitedError("torch's backends have no window")
    choice = torch.nn.attention
    q, k, v = (arrays[name] for name in "qkv")

    def run() -> Arrays:
        with choice.sdpa_kernel(getattr(choice.SDPBackend, backend)):
            found = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=q.shape[1] != k.shape[1]
            )
            return {"o": found}

    return run


def arrays(
    draw: Draw, type: str, batch: int, heads: tuple[int, int], length: int, size: int, causal: bool, window: int = 0
) -> Arrays:
    """Queries, keys and values, and space for the answer."""
    shapes = {name: (batch, count, length, size) for name, count in zip("qkv", (*heads, heads[1]), strict=True)}
    drawn = {name: draw.normal(shape, type) for name, shape in shapes.items()}
    answer = {"o": draw.empty(shapes["q"], type), "counter": draw.integers(1, "u32", 0, 1)}
    return {**drawn, **answer, "causal": causal, "window": window}


def reference(xp: Any, q: Any, k: Any, v: Any, o: Any, counter: Any, causal: bool, window: int) -> Arrays:
    """The formula, head by head."""
    answer = xp.empty_like(q)
    shared_by = q.shape[1] // k.shape[1]
    for batch, head in product(range(q.shape[0]), range(q.shape[1])):
        keys, values = k[batch, head // shared_by], v[batch, head // shared_by]
        scores = attended(xp, q[batch, head] @ keys.T / math.sqrt(q.shape[3]), causal, window)
        weights = xp.exp(scores - xp.amax(scores, 1)[:, None])
        answer[batch, head] = weights @ values / weights.sum(1)[:, None]
    return {"o": answer}


def attended(xp: Any, scores: Any, causal: bool, window: int) -> Any:
    """The scores of a head, −∞ where a query does not attend to a key."""
    if not causal:
        return scores
    is_attended = xp.tril(xp.ones_like(scores))
    if window:
        is_attended = is_attended - xp.tril(is_attended, -window)
    return xp.where(is_attended > 0, scores, -math.inf)


def work(type: str, batch: int, heads: tuple[int, int], length: int, size: int, causal: bool, window: int = 0) -> Work:
    """Two products, of which a mask leaves a part."""
    pairs = length * length // (2 if causal else 1)
    if window:
        pairs -= max(0, length - window) ** 2 // 2
    moved = 2 * batch * (heads[0] + heads[1]) * length * size
    return Work(flops=4 * batch * heads[0] * pairs * size, bytes=2 * moved, rate=type)


def sized(length: int, size: int, causal: bool, heads: tuple[int, int] = (16, 16), type: str = "bf16") -> Any:
    """16,384 queries for each head."""
    batch = max(1, 16384 // length)
    return {"type": type, "batch": batch, "heads": heads, "length": length, "size": size, "causal": causal}


entry = Entry(
    title="o = softmax(q·kᵀ/√d)·v by wgmma and tensor copies",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"wgmma": attend},
    libraries={
        "torch, cuDNN": partial(torch_baseline, "CUDNN_ATTENTION"),
        "torch, flash": partial(torch_baseline, "FLASH_ATTENTION"),
    },
    sizes=[
        *(sized(4096, 64, causal) for causal in (False, True)),
        *(sized(4096, 256, causal, (8, 8)) for causal in (False, True)),
        sized(4096, 128, causal=True, heads=(32, 8)),
        sized(4096, 128, causal=False, type="f16"),
        *(sized(length, 128, causal) for length in (1024, 2048, 8192, 16384, 32768, 4096) for causal in (False, True)),
    ],
    small=[
        {"type": "bf16", "batch": 2, "heads": (2, 1), "length": 150, "size": 64, "causal": True},
        {"type": "f16", "batch": 1, "heads": (1, 1), "length": 177, "size": 128, "causal": False},
        {"type": "bf16", "batch": 1, "heads": (1, 1), "length": 200, "size": 128, "causal": True, "window": 40},
    ],
    tolerance=5e-3,
)
