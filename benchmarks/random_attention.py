"""Attention and its gradients at random sizes, beside cuDNN and flash as torch calls them, on a GPU.

    python benchmarks/random_attention.py FILE [SECONDS] [SEED]

Heads of 64, 128 or 256 elements of bf16, 1 to 16 of keys, each for 1, 4 or 7 of queries; 100 to 20,000 positions and 1
to 8 of a batch, both drawn log-uniformly; most with a causal mask. Arrays are as a model has them: batch × length ×
heads × head size, transposed. Calls are eager, so that what they cost the host is part of the time; the L2 cache is
cold, and contenders take turns: 7, or 41 where a call is short, as hosts vary, and 20 calls of each before those.
Gradients are also measured as a CUDA graph, which is their time on the GPU. An answer is compared with cuDNN's before
it is timed.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

from ptxlab import kernels
from ptxlab.measure.machine import commit, describe, require_torch

ROUNDS, MORE = 7, 41
WARM_UP = 20  # calls before the turns of short ones: allocators and caches of the host are then as in a loop
SHORT = 400.0  # µs: what the host does, which varies, is much of a shorter call
MOST_WORK = 3e13  # multiplications and additions of a call
TOLERANCE = 2e-2  # of the norm of the difference from cuDNN's answer

Action = Callable[[], Any]


class Size(NamedTuple):
    """A call: forward or backward, and its extents."""

    direction: str
    batch: int
    heads: int
    key_heads: int
    length: int
    size: int
    causal: bool


def draw(source: random.Random) -> Size:
    """A size; one that takes too long is drawn again."""
    while True:
        length, batch = (round(math.exp(source.uniform(math.log(a), math.log(b)))) for a, b in ((100, 20000), (1, 8)))
        size, key_heads = source.choice([64, 128, 128, 256]), source.choice([1, 2, 4, 8, 16])
        heads, causal = key_heads * source.choice([1, 1, 4, 7]), source.random() < 0.6
        direction = source.choice(["forward", "backward"])
        if 4 * batch * heads * length * length * size <= MOST_WORK:
            return Size(direction, batch, heads, key_heads, length, size, causal)


class Bench:
    """Times of calls, with a cold L2 cache."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.other = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")

    def sample(self, action: Action) -> float:
        """Microseconds from the start of a call until the GPU is done."""
        self.other.fill_(1)
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        action()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end) * 1e3)

    def turns(self, contenders: dict[str, Action]) -> dict[str, list[float]]:
        """Samples of each, in turns."""
        for action in contenders.values():
            action()
            is_short = self.sample(action) < SHORT
            for _ in range(WARM_UP if is_short else 1):
                self.sample(action)
        samples: dict[str, list[float]] = {name: [] for name in contenders}
        for turn in range(MORE):
            if turn == ROUNDS and statistics.median(min(samples.values(), key=statistics.median)) > SHORT:
                break
            for name in list(contenders)[:: 1 if turn % 2 == 0 else -1]:
                samples[name].append(self.sample(contenders[name]))
        return samples

    def graph(self, action: Action) -> Action:
        """A call as a CUDA graph."""
        action()
        self.torch.cuda.synchronize()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            action()
        return lambda: graph.replay()


def judge(bench: Bench, size: Size) -> dict[str, Any]:
    """One size: how far we are from cuDNN, and samples of all."""
    torch = bench.torch
    direction, batch, heads, key_heads, length, width, causal = size

    def normal(count: int) -> Any:
        return torch.randn(batch, length, count, width, device="cuda", dtype=torch.bfloat16).transpose(1, 2)

    q, k, v = (normal(count).requires_grad_(direction == "backward") for count in (heads, key_heads, key_heads))
    gradient = normal(heads)
    backends = torch.nn.attention.SDPBackend
    kinds = {"cuDNN": backends.CUDNN_ATTENTION, "flash": backends.FLASH_ATTENTION}

    def library(kind: Any) -> Any:
        with torch.nn.attention.sdpa_kernel(kind):
            call = torch.nn.functional.scaled_dot_product_attention
            return call(q, k, v, is_causal=causal, enable_gqa=heads != key_heads)

    calls: dict[str, Action] = {"ptxlab": lambda: kernels.attention(q, k, v, causal=causal)}
    calls |= {name: lambda kind=kind: library(kind) for name, kind in kinds.items()}  # type: ignore[misc]
    graphs: dict[str, list[float]] = {}
    if direction == "backward":
        outputs = {name: call() for name, call in calls.items()}
        calls = {
            name: lambda one=one: torch.autograd.grad(one, (q, k, v), gradient, retain_graph=True)  # type: ignore[misc]
            for name, one in outputs.items()
        }
        with torch.no_grad():
            o, lse = kernels.attention(q, k, v, causal=causal, return_lse=True)
            run = bench.graph(lambda: kernels.attention_backward(gradient, q, k, v, o, lse, causal=causal))
            graphs = bench.turns({"ptxlab": run})
    answers = {name: (found,) if torch.is_tensor(found := call()) else found for name, call in calls.items()}
    errors = [
        float((one - wanted).float().norm() / wanted.float().norm())
        for one, wanted in zip(answers["ptxlab"], answers["cuDNN"], strict=True)
    ]
    if max(errors) > TOLERANCE:
        raise ValueError(f"{size}: {errors} from cuDNN")
    return {"size": size._asdict(), "errors": errors, "samples": bench.turns(calls), "graph": graphs}


def ratio(row: dict[str, Any]) -> float:
    """The time of the better library in ours."""
    medians = {name: statistics.median(times) for name, times in row["samples"].items()}
    ours = medians.pop("ptxlab")
    return float(min(medians.values()) / ours)


def show(rows: list[dict[str, Any]]) -> None:
    """The distribution for each direction, and the sizes that are worst."""
    for direction in ("forward", "backward"):
        own = [(ratio(row), [*row["size"].values()][1:]) for row in rows if row["size"]["direction"] == direction]
        if own:
            show_ratios(direction, own)


def show_ratios(name: str, found: list[tuple[float, list[Any]]]) -> None:
    """The distribution of ratios, each with its size, and the sizes that are worst."""
    ratios = sorted(value for value, _ in found)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    low = ratios[int(0.05 * (len(ratios) - 1))]
    print(f"{name}: {len(ratios)} sizes, geometric mean {mean:.3f}, 5 % {low:.3f}, lowest {ratios[0]:.3f}")
    for value, size in sorted(found)[:8]:
        print(f"   {value:.3f} {size}")


def run(
    draw: Callable[[random.Random], Any], judge: Callable[[Bench, Any], Any], show: Callable[[list[Any]], None]
) -> None:
    """Judge sizes that are drawn by a seed, for so many seconds, into a file: `FILE [SECONDS [SEED]]`."""
    path, seconds, seed = Path(sys.argv[1]), *map(int, (*sys.argv[2:4], *("60", "1")[len(sys.argv) - 2 :]))
    torch, source, rows = require_torch(), random.Random(seed), list[dict[str, Any]]()
    about = {"date": str(date.today()), "commit": commit(), "machine": describe(torch), "seed": seed}
    bench, end = Bench(torch), time.time() + seconds
    while time.time() < end:
        rows.append(judge(bench, draw(source)))
        path.write_text(json.dumps({**about, "results": rows}) + "\n")
    show(rows)


if __name__ == "__main__":
    run(draw, judge, show)
