"""Fit what things cost in products of `wgmma_gemm` (`Costs`) to times of variants of random sizes, and judge them.

    python benchmarks/fit_products.py [FILE ...]      reads evidence/random_products.json, or what `random_sizes.py`
                                                      collected; takes some minutes, and no GPU

Costs are fitted to the sizes with even numbers, and judged by the others: how much longer the variant takes that is
estimated to be the fastest than the fastest one that was measured. What counts is how variants of one size differ, so
the mean error of each size counts for little, and variants that are far from the fastest count for less.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from ptxlab.kernels import wgmma_formats
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm.candidates import COSTS, Costs, Problem, estimate

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "random_products.json"
CYCLES = 1755.0  # of an SM in a microsecond
SLOW = 1.5  # times the fastest: slower variants are left out
FEW = 3  # samples of a variant that was measured only until it was clearly slower
STEP, DAMPING, ROUNDS = 1e-3, 1e-3, 10
MEAN = 0.3  # how much the mean error of a size counts
LIMIT = 0.1  # errors beyond it count linearly


@dataclass(frozen=True)
class Measured:
    """A product, what cuBLAS took, and what each variant took, in microseconds."""

    problem: Problem
    library: float
    times: dict[Shape, float]

    @property
    def fastest(self) -> float:
        return min(self.times.values())


def read(path: Path) -> list[Measured]:
    """What `random_sizes.py` collected."""
    return [measured(row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"] if row.get("variants")]


def measured(row: dict[str, Any]) -> Measured:
    """A row of a file."""
    size, default = row["size"], asdict(Shape())
    times = {}
    for one in row["variants"]:
        plain = {name: one.get(name, value) for name, value in default.items()} | {
            "keep": tuple(one.get("keep", ("", "")))
        }
        times[Shape(**plain)] = min(one["us"]) if len(one["us"]) <= FEW else statistics.median(one["us"])
    extents = size["m"], size["n"], size["k"]
    problem = Problem(*extents, size["layout"][0] == "N", size["layout"][1] == "T")
    if size["type"] == "e4m3":
        problem = wgmma_formats.problem_of("e4m3", *extents)
    return Measured(problem, statistics.median(row["cuBLAS"]), times)


def residuals(sizes: Sequence[Measured], costs: Costs) -> Any:
    """How far estimates are from times, as logarithms."""
    found: list[float] = []
    for one in sizes:
        near = {shape: time for shape, time in one.times.items() if time < SLOW * one.fastest}
        errors = np.array(
            [math.log(estimate(one.problem, shape, costs) / CYCLES / time) for shape, time in near.items()]
        )
        weights = np.exp(-4 * (np.array([*near.values()]) / one.fastest - 1))
        mean = (errors * weights).sum() / weights.sum()
        found += [*(np.sqrt(weights) * (errors - mean)), MEAN * mean * math.sqrt(weights.sum())]
    return np.array(found)


def fit(sizes: Sequence[Measured], costs: Costs = COSTS) -> Costs:
    """The costs with the least errors, by the method of Levenberg and Marquardt on their logarithms."""
    names = [field.name for field in fields(Costs)]
    at = np.log([getattr(costs, name) for name in names])

    def errors(where: Any) -> Any:
        return residuals(sizes, Costs(**dict(zip(names, map(float, np.exp(where)), strict=True))))

    def loss(values: Any) -> float:
        return float((np.sqrt(1 + (values / LIMIT) ** 2) - 1).sum())

    now, damping = errors(at), DAMPING
    for _ in range(ROUNDS):
        slopes = np.stack([(errors(at + STEP * one) - now) / STEP for one in np.eye(len(names))], axis=1)
        weights = 1 / np.sqrt(1 + (now / LIMIT) ** 2)
        square = slopes.T @ (weights[:, None] * slopes)
        while damping < 1e6:
            step = np.linalg.solve(
                square + damping * (np.diag(np.diag(square)) + np.eye(len(names))), slopes.T @ (weights * now)
            )
            then = errors(at - step)
            if loss(then) < loss(now):
                at, now, damping = at - step, then, damping / 4
                break
            damping *= 4
        print(f"loss {loss(now):.3f}", flush=True)
    return Costs(**dict(zip(names, (float(f"{one:.4g}") for one in np.exp(at)), strict=True)))


def judge(sizes: Sequence[Measured], costs: Costs = COSTS) -> dict[str, float]:
    """How the variants that are estimated to be the fastest compare with the fastest ones, and with cuBLAS."""
    chosen = [one.times[min(one.times, key=lambda shape: estimate(one.problem, shape, costs))] for one in sizes]
    found: dict[str, float] = {}
    for name, others in (("fastest", [one.fastest for one in sizes]), ("cuBLAS", [one.library for one in sizes])):
        ratios = sorted(other / time for other, time in zip(others, chosen, strict=True))
        found[f"of {name}"] = round(math.exp(statistics.mean(map(math.log, ratios))), 4)
        found[f"of {name}, 5th percentile"] = round(ratios[len(ratios) // 20], 4)
    return found


def main() -> None:
    """Fit, and print the costs and what they are worth."""
    sizes = [one for path in sys.argv[1:] or [EVIDENCE] for one in read(Path(path))]
    fitted, others = sizes[::2], sizes[1::2]
    print("as they are:", judge(others))
    costs = fit(fitted)
    print(costs)
    print("sizes they were fitted to:", judge(fitted, costs))
    print("other sizes:", judge(others, costs))


if __name__ == "__main__":
    main()
