"""How much longer or shorter a variant takes than it is estimated to: what was learned from times on an H200.

The mean of a few small networks, for all types, whose inputs are a product and a variant of it.
`benchmarks/fit_products.py` trains them on seven of eight sizes of evidence/random_products.json and
the files whose names begin so, and judges them by the others. Only how variants of one
product differ was learned, so that numbers are of use among these alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from math import ceil, log2
from pathlib import Path
from typing import Any

import numpy as np

from ptxlab.kernels.parts.operands import SECTOR
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm.candidates import Problem, estimate, residual_cycles

TABLE = Path(__file__).with_name("correction.json")
LIKELY = 160  # variants with the best estimates, of which the fastest is found
DOUBT = 0.5  # how much what networks disagree about counts: the best of many is else often one that is misjudged


def inputs(problem: Problem, shape: Shape, cycles: float) -> list[float]:
    """What networks know of a variant that is estimated to take so many cycles."""
    sides = [(problem.m, problem.a_along_k), (problem.n, problem.b_along_k)]
    (high, left), (wide, right) = reversed(sides) if shape.swap_ab else sides
    lengths = problem.k if left else high, problem.k if right else wide, problem.n
    odd = [float(problem.size * length % SECTOR != 0) for length in lengths]
    rows, columns = shape.covered
    blocks = problem.tiles(shape) * shape.cluster * shape.split_k
    each = ceil(blocks / shape.sms)
    return [
        log2(high), log2(wide), log2(problem.steps), float(left), float(right), *odd,
        log2(shape.rows), log2(shape.columns), shape.columns / 64, float(shape.tall), float(shape.groups),
        log2(shape.stages), float(shape.occupancy), 1 + log2(shape.cluster), log2(shape.beside), log2(shape.split_k),
        float(shape.split_k > 1 and not shape.clustered), float(shape.swap_ab), float(shape.pingpong),
        log2(problem.boxes(shape).kept), float(shape.span < 64), log2(each), blocks / shape.sms / each,
        log2(ceil(problem.steps / shape.split_k)), high * wide / (problem.tiles(shape) * rows * columns),
        log2(ceil(high / rows)), log2(ceil(wide / columns)), float("evict_last" in shape.keep),
        float("evict_first" in shape.keep), log2(cycles), float(problem.size), float(problem.gated),
    ]  # fmt: skip


@cache
def networks() -> list[list[Any]]:
    """The weights of each layer, and what it adds, of each network."""
    read = json.loads(TABLE.read_text(encoding="utf-8"))["networks"]
    return [[np.array(numbers, np.float32) for numbers in network] for network in read]


def corrections(problem: Problem, variants: Sequence[Shape], cycles: Sequence[float]) -> Any:
    """The logarithm of how many times as long each may take as estimated, but for what is the same for all."""
    given = np.array([inputs(problem, *one) for one in zip(variants, cycles, strict=True)], np.float32)
    found = []
    for *hidden, weights, added in networks():
        values = given
        for matrix, more in zip(hidden[::2], hidden[1::2], strict=True):
            values = np.maximum(values @ matrix + more, 0)
        times = (values @ weights + added)[:, 0]
        found.append(times - times.mean())
    return np.mean(found, axis=0) + DOUBT * np.std(found, axis=0)


def ranked(problem: Problem, residual: bool = False) -> list[Shape]:
    """The variants of a product, to which a residual is added or not, that are likely to be fast, the fastest first."""
    times = {shape: estimate(problem, shape) for shape in problem.shapes()}
    if residual:
        times = {shape: time + residual_cycles(problem, shape) for shape, time in times.items()}
    likely = sorted(times, key=lambda shape: (times[shape], shape.rows * shape.columns, shape.split_k))[:LIKELY]
    cycles = [times[shape] for shape in likely]
    order = np.argsort(np.log(cycles) + corrections(problem, likely, cycles), kind="stable")
    return [likely[number] for number in order]


def best(problem: Problem, count: int, alike: int = 3, residual: bool = False) -> list[Shape]:
    """The variants that are likely to be the fastest, at most `alike` with the same tile."""
    found: list[Shape] = []
    for shape in ranked(problem, residual):
        tile = shape.rows, shape.columns, shape.swap_ab
        if sum(tile == (one.rows, one.columns, one.swap_ab) for one in found) < alike:
            found.append(shape)
    return found[:count]
