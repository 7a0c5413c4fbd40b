"""What attention computes, for `ptxlab bench` and tests: data, the answer in float64, the least work, torch's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.kernels.parts.torch_baselines import torch_attention
from ptxlab.kernels.wgmma_attention.launches import workspace
from ptxlab.launch.launches import Arrays, UnsuitedError
from ptxlab.measure import Draw, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

LONG = 4096  # up to so many queries torch's flash backend is timed, too: above, it takes twice the time of the others


def starts_of(length: int, sequences: int) -> list[int]:
    """Where sequences start that have this length together, and where the last one ends: each is longer than before.

    >>> starts_of(100, 4)
    [0, 10, 30, 60, 100]
    """
    return [length * number * (number + 1) // (sequences * (sequences + 1)) for number in range(sequences + 1)]


def inputs(
    draw: Draw, type: str, batch: int, heads: tuple[int, int], length: int, size: int, sequences: int = 0
) -> Arrays:
    """Queries, keys and values; `sequences` are packed, in a batch of one, and `starts` has where each begins."""
    counts = dict(zip("qkv", (*heads, heads[1]), strict=True))
    shapes = {name: (length, n, size) if sequences else (batch, n, length, size) for name, n in counts.items()}
    drawn: Arrays = {name: draw.normal(shape, type) for name, shape in shapes.items()}
    if sequences:
        drawn["starts"] = starts = draw.integers(sequences + 1, "s32", 0, 1)
        for number, start in enumerate(starts_of(length, sequences)):
            starts[number] = start
    return drawn


def arrays(
    draw: Draw,
    type: str,
    batch: int,
    heads: tuple[int, int],
    length: int,
    size: int,
    causal: bool,
    window: int = 0,
    sequences: int = 0,
) -> Arrays:
    """The inputs, and space for the answer."""
    given = inputs(draw, type, batch, heads, length, size, sequences)
    given |= {"o": draw.empty(given["q"].shape, type), "counter": draw.integers(1, "u32", 0, 1)}
    if sequences:
        maps, units = workspace((1, heads[0], length, size), sequences)
        given |= {"maps": draw.empty(maps * 4, "u8"), "units": draw.empty(units, "u32")}
    return {**given, "causal": causal, "window": window}


def reference(
    xp: ModuleType,
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    counter: Array,
    causal: bool,
    window: int,
    starts: Array | None = None,
    **_: object,
) -> Arrays:
    """The formula, head by head."""
    output = xp.empty_like(q)
    for queries, keys in heads_of(q, k, starts):
        scores = attended(xp, q[queries] @ k[keys].T / math.sqrt(q.shape[-1]), causal, window)
        p = xp.exp(scores - xp.amax(scores, 1)[:, None])
        output[queries] = p @ v[keys] / p.sum(1)[:, None]
    return {"o": output}


def heads_of(q: Array, k: Array, starts: Array | None) -> Iterator[tuple[object, object]]:
    """Each head of queries of each sequence, and the head of its keys, as indices."""
    if starts is None:
        shared_by = q.shape[1] // k.shape[1]
        for batch, head in product(range(q.shape[0]), range(q.shape[1])):
            yield (batch, head), (batch, head // shared_by)
        return
    for (start, end), head in product(pairwise(int(one) for one in starts), range(q.shape[1])):
        yield (slice(start, end), head), (slice(start, end), head // (q.shape[1] // k.shape[1]))


def attended(xp: ModuleType, scores: Array, causal: bool, window: int) -> Any:
    """The scores of a head, −∞ where a query does not attend to a key."""
    if not causal:
        return scores
    is_attended = xp.tril(xp.ones_like(scores))
    if window:
        is_attended = is_attended - xp.tril(is_attended, -window)
    return xp.where(is_attended > 0, scores, -math.inf)


def work(
    type: str,
    batch: int,
    heads: tuple[int, int],
    length: int,
    size: int,
    causal: bool,
    window: int = 0,
    sequences: int = 0,
) -> Work:
    """Two products, of which a mask leaves a part."""
    lengths = [end - start for start, end in pairwise(starts_of(length, sequences))] if sequences else [length] * batch
    pairs = sum(one * one // (2 if causal else 1) for one in lengths)
    if window:
        pairs -= sum(max(0, one - window) ** 2 // 2 for one in lengths)
    moved = 2 * sum(lengths) * (heads[0] + heads[1]) * size
    return Work(flops=4 * heads[0] * pairs * size, bytes=2 * moved, rate=type)


def torch_baseline(
    backend: str, torch: ModuleType, q: Any, k: Any, v: Any, causal: bool, window: int, starts: Any = None, **_: object
) -> Callable[[], object]:
    """torch's attention by one of its backends; it allocates the answer itself."""
    if starts is not None:
        return packed_baseline(backend, torch, (q, k, v), causal, starts)
    if window:
        return window_baseline(backend, torch, (q, k, v), window)
    if backend == "FLASH_ATTENTION" and q.shape[2] > LONG:
        raise UnsuitedError
    return lambda: {"o": torch_attention(torch, backend, q, k, v, causal)}


def window_baseline(backend: str, torch: ModuleType, given: tuple[Any, Any, Any], window: int) -> Callable[[], object]:
    """A window is an argument of the flash backend's own operator only, whose arrays have length before heads."""
    if backend != "FLASH_ATTENTION":
        raise UnsuitedError("torch has no window for this backend")
    q, k, v = (one.transpose(1, 2) for one in given)
    flash, length = torch.ops.aten._flash_attention_forward, q.shape[1]

    def run() -> Arrays:
        found = flash(q, k, v, None, None, length, length, 0.0, True, False, window_size_left=window - 1)
        return {"o": found[0].transpose(1, 2)}

    return run


def packed_baseline(
    backend: str, torch: ModuleType, given: tuple[object, object, object], causal: bool, starts: Any
) -> Callable[[], Any]:
    """Packed sequences, by the operator that torch's nested tensors use."""
    if backend != "FLASH_ATTENTION":
        raise UnsuitedError("by cuDNN, torch took 42 to 70 ms for each call with packed sequences")
    most = max(end - start for start, end in pairwise(int(one) for one in starts))
    flash = torch.ops.aten._flash_attention_forward
    return lambda: {"o": flash(*given, starts, starts, most, most, 0.0, causal, False)[0]}


def sized(
    length: int, size: int, causal: bool, heads: tuple[int, int] = (16, 16), type: str = "bf16"
) -> dict[str, object]:
    """16,384 queries for each head."""
    batch = max(1, 16384 // length)
    return {"type": type, "batch": batch, "heads": heads, "length": length, "size": size, "causal": causal}


def packed(sequences: int, size: int, causal: bool, heads: tuple[int, int] = (16, 16)) -> dict[str, object]:
    """16,384 queries for each head, in sequences of unequal lengths."""
    return {**sized(16384, size, causal, heads), "sequences": sequences}
