"""Attention of new tokens to a cache in pages, at random sizes, beside torch's flash attention, on a GPU.

    python benchmarks/paged_attention.py FILE [SECONDS] [SEED]

Sequences have 1 to 4,096 new tokens and up to 32,768 keys, both drawn log-uniformly, 1 to 16 of them; heads of 64, 128
or 256 elements of bf16, 1 to 8 of keys, each for 1, 4 or 8 of queries; pages of 16, 32, 64 or 128 positions, which are
in an order that is not theirs. torch's operator reads no pages: its cache is packed, before it is timed ("flash") and
while it is ("flash and gather"). Calls are eager, the L2 cache is cold, and contenders take turns. What our answer
differs from torch's by is in the file.
"""

from __future__ import annotations

import math
import random
import statistics
from typing import Any, NamedTuple

from random_attention import Bench, run, show_ratios

from ptxlab import kernels

MOST_WORK = 1e13  # multiplications and additions of a call
TOLERANCE = 1e-2  # of the norm of the difference


class Size(NamedTuple):
    """A call: new tokens and keys of each sequence, and its extents."""

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    heads: int
    key_heads: int
    size: int
    page: int


def draw(source: random.Random) -> Size:
    """A size; one that takes too long is drawn again."""

    def between(low: int, high: int) -> int:
        return round(math.exp(source.uniform(math.log(low), math.log(high))))

    while True:
        queries = tuple(between(1, 4096) for _ in range(between(1, 16)))
        keys = tuple(n + between(1, 32768) - 1 for n in queries)
        key_heads, size = source.choice([1, 2, 4, 8]), source.choice([64, 128, 128, 256])
        heads, page = key_heads * source.choice([1, 4, 8]), source.choice([16, 32, 64, 128])
        work = sum(4 * n * m * heads * size for n, m in zip(queries, keys, strict=True))
        if work <= MOST_WORK:
            return Size(queries, keys, heads, key_heads, size, page)


def judge(bench: Bench, size: Size) -> dict[str, Any]:
    """One size: how far we are from flash, and samples of all."""
    torch, (queries, keys, heads, key_heads, width, page) = bench.torch, size
    counts = [-(-n // page) for n in keys]
    order = torch.randperm(sum(counts), device="cuda").int()
    table = torch.zeros(len(keys), max(counts), dtype=torch.int32, device="cuda")
    for row, own in zip(table, order.split(counts), strict=True):
        row[: len(own)] = own

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, width, device="cuda", dtype=torch.bfloat16)

    q, k, v = normal(sum(queries), heads), *(normal(sum(counts), page, key_heads) for _ in "kv")
    starts, key_starts = (torch.tensor([0, *n], device="cuda").cumsum(0).int() for n in (queries, keys))
    lengths = torch.tensor(keys, dtype=torch.int32, device="cuda")
    places = torch.cat(
        [(own.long()[:, None] * page + torch.arange(page, device="cuda")).flatten()[:n]
         for n, own in zip(keys, order.split(counts), strict=True)]
    )  # fmt: skip

    def gather() -> list[Any]:
        return [one.flatten(0, 1)[places] for one in (k, v)]

    packed, flash = gather(), torch.ops.aten._flash_attention_forward
    lasts = max(queries), max(keys)

    def library(given: list[Any]) -> Any:
        return flash(q, *given, starts, key_starts, *lasts, 0.0, True, False)[0]

    calls = {
        "ptxlab": lambda: kernels.prefill_attention(q, k, v, starts, lengths, table),
        "flash": lambda: library(packed),
        "flash and gather": lambda: library(gather()),
    }
    ours, theirs = calls["ptxlab"](), calls["flash"]()
    error = float((ours - theirs).float().norm() / theirs.float().norm())
    if error > TOLERANCE:
        raise ValueError(f"{size}: {error} from flash")
    return {"size": size._asdict(), "error": error, "samples": bench.turns(calls)}


def show(rows: list[dict[str, Any]]) -> None:
    """The distribution beside each contender, and the sizes that are worst."""
    medians = [{one: statistics.median(times) for one, times in row["samples"].items()} for row in rows]
    for name in ("flash", "flash and gather"):
        sizes = ([*row["size"].values()] for row in rows)
        show_ratios(name, [(m[name] / m["ptxlab"], size) for m, size in zip(medians, sizes, strict=True)])


if __name__ == "__main__":
    run(draw, judge, show)
