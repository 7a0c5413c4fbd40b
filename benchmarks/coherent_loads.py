"""Kernels that start early, by the functions of two trees of ptxlab in turns: what plain loads in place of `.nc` cost.

    python benchmarks/coherent_loads.py --old FOLDER [--seconds 40]      needs an H200 and torch; prints a table, writes
evidence/coherent_loads.json

`--old` is another tree, as `git archive` writes it. A call is captured with other copies of its arrays again and again,
which together are larger than the L2 cache; graphs take turns, and times are medians of the GPU's, in microseconds.
The same machine code differs by up to 8 % with the place of its arrays in memory: every few turns they get another one,
and the range is of the medians of single places.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contenders import ROOT, ask, keep, serve, start

COLD = 160 << 20  # bytes that arrays of one graph have at least
MOST = 64  # calls of a graph
TURNS = 5  # with the same arrays
LONG_ROWS = (
    (4, 262144),
    (500, 262144),
    (4, 1048576),
    (1024, 131072),
    (16, 131072),
    (4096, 32768),
    (64, 65536),
    (500, 50257),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contender:
        torch: Any = __import__("torch")
        graphs: dict[str, Any] = {}
        kept: list[Any] = []  # so that what is freed does not come back as it was

        def place() -> dict[str, Any]:
            graphs.clear()
            torch.cuda.empty_cache()
            kept.append(torch.empty((len(kept) % 7 + 1) << 21, dtype=torch.uint8, device="cuda"))
            graphs.update({name: captured(torch, *one) for name, one in calls(torch).items()})
            return {}

        def measure() -> dict[str, float]:
            return {name: timed(torch, *one) for name, one in graphs.items()}

        place()
        serve({"ready": dict, "place": place, "measure": measure})
        return
    running = {name: start(__file__, name, tree) for name, tree in (("new", ROOT), ("old", given.old.resolve()))}
    for process in running.values():
        ask(process, "ready")
    found: dict[str, dict[str, list[float]]] = {name: {} for name in running}
    end, turn = time.monotonic() + given.seconds, 0
    while time.monotonic() < end or turn % TURNS:
        if turn and turn % TURNS == 0:
            for process in running.values():
                ask(process, "place")
        for name in list(running)[:: 1 if turn % 2 else -1]:
            for what, value in ask(running[name], "measure").items():
                found[name].setdefault(what, []).append(value)
        turn += 1
    for process in running.values():
        process.communicate("", timeout=30)
    ratios = []
    for what in found["new"]:
        new, old = (statistics.median(found[name][what]) for name in ("new", "old"))
        ratios.append(old / new)
        print(f"{what:44} old {old:8.2f} {range_of(found['old'][what])}  new {new:8.2f}", end=" ")
        print(f"{range_of(found['new'][what])}  {old / new:6.3f}")
    print(
        f"{turn} turns; geometric mean of old / new {statistics.geometric_mean(ratios):.4f}, lowest {min(ratios):.3f}"
    )
    keep("coherent_loads.json", found)


def range_of(times: list[float]) -> str:
    """The least and the largest median of the times of one place."""
    medians = [statistics.median(times[start : start + TURNS]) for start in range(0, len(times), TURNS)]
    return f"({min(medians):8.2f} to {max(medians):8.2f})"


def calls(torch: Any) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Functions, and their arrays."""
    from ptxlab import kernels

    def normal(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda").bfloat16()

    def e4m3(*shape: int) -> Any:
        return normal(*shape).to(torch.float8_e4m3fn)

    def scales(*shape: int) -> Any:
        return torch.rand(*shape, device="cuda") + 0.5

    found: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
    for format in ("nvfp4", "mxfp4", "int4", "fp8"):
        packed = kernels.quantize(torch.randn(14336, 4096, device="cuda"), format).pack()
        for rows in (1, 8):

            def product(x: Any, weights: Any, scales: Any, packed: Any = packed) -> Any:
                matrix = kernels.Packed(packed.format, packed.rows, packed.columns, weights, scales, packed.factor)
                return kernels.quantized_matvec(matrix, x)

            found[f"quantized_matvec {format} {rows}"] = product, (normal(rows, 4096), packed.weights, packed.scales)
    for rows, columns in LONG_ROWS:
        x, w = normal(rows, columns), normal(columns)
        found[f"rms_norm {rows}x{columns}"] = kernels.rms_norm, (x, w)
        found[f"rms_norm, residual {rows}x{columns}"] = (
            lambda x, w, added: kernels.rms_norm(x, w, residual=added),
            (x, w, normal(rows, columns)),
        )
        found[f"layer_norm {rows}x{columns}"] = kernels.layer_norm, (x, w, normal(columns))
    for rows, columns in ((16, 4096), (4096, 4096), (8192, 8192)):
        found[f"rms_norm, residual {rows}x{columns}"] = (
            lambda x, w, added: kernels.rms_norm(x, w, residual=added),
            (normal(rows, columns), normal(columns), normal(rows, columns)),
        )
    for m, n, k in ((16, 6144, 4096), (300, 4096, 4096), (2048, 4096, 4096), (2048, 4096, 1024)):
        a, b = normal(m, k), normal(n, k).t()
        found[f"matmul, bias {m}x{n}x{k}"] = lambda a, b, c: kernels.matmul(a, b, bias=c), (a, b, normal(n))
        found[f"matmul, residual {m}x{n}x{k}"] = lambda a, b, c: kernels.matmul(a, b, residual=c), (a, b, normal(m, n))
        small = e4m3(m, k), e4m3(n, k).t()
        found[f"scaled_matmul {m}x{n}x{k}"] = kernels.scaled_matmul, (*small, scales(1), scales(1))
        blocks = scales(m, k // 128), scales(k // 128, n // 128)
        found[f"scaled_matmul, blocks {m}x{n}x{k}"] = kernels.scaled_matmul, (*small, *blocks)
    ends = torch.arange(1, 9, device="cuda", dtype=torch.int32) * 64
    groups = e4m3(512, 2048), e4m3(8, 4096, 2048).transpose(1, 2), ends, scales(512), scales(8, 4096)
    found["grouped_matmul e4m3 8 of 64x4096x2048"] = (
        lambda a, b, c, d, e: kernels.grouped_matmul(a, b, c, scale_a=d, scale_b=e),
        groups,
    )
    pages, length = 64, 2048
    table = torch.randperm(pages * length // 16, device="cuda").int().view(pages, -1)
    cache = [normal(pages * length // 16, 16, 8, 128) for _ in range(2)]
    lengths = torch.full((pages,), length, device="cuda", dtype=torch.int32)
    found["decode_attention in pages 64x2048"] = kernels.decode_attention, (normal(64, 32, 128), *cache, lengths, table)
    q, k, v, do = normal(2, 32, 2048, 128), normal(2, 8, 2048, 128), normal(2, 8, 2048, 128), normal(2, 32, 2048, 128)
    o, lse = kernels.attention(q, k, v, causal=True, return_lse=True)
    found["attention_backward 2x32/8x2048x128"] = (
        lambda *given: kernels.attention_backward(*given, causal=True),
        (do, q, k, v, o, lse),
    )
    return found


def captured(torch: Any, function: Callable[..., Any], arrays: tuple[Any, ...]) -> tuple[Any, int, object]:
    """A graph of a call, again and again with other copies, how many these are, and the copies, which stay."""
    each = sum(one.numel() * one.element_size() for one in arrays)
    count = min(MOST, max(4, math.ceil(COLD / each)))
    copies = [arrays, *(tuple(one.clone() for one in arrays) for _ in range(count - 1))]  # clones keep the strides
    with torch.no_grad():
        function(*arrays)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for one in copies:
                function(*one)
    return graph, count, copies


def timed(torch: Any, graph: Any, count: int, _: object) -> float:
    """Microseconds of a call."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    graph.replay()
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end) / count * 1e3)


if __name__ == "__main__":
    main()
