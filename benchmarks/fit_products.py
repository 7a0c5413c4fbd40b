"""Fit what things cost in products of `wgmma_gemm` (`Costs`) to times of variants of random sizes, and judge them.

    python benchmarks/fit_products.py fit [FILE ...]     reads evidence/random_products.json, or what `random_sizes.py`
                                                         collected; takes some minutes, and no GPU
    python benchmarks/fit_products.py keep FILE ...      writes evidence/random_products.json

Costs are fitted to the sizes with even numbers, and judged by the others: how much longer the variant takes that is
estimated to be the fastest than the fastest one that was measured. What counts is how variants of one size differ, so
the mean error of each size counts for little, and variants that are far from the fastest count for less. What is kept
of each size is the medians of the fastest variants, and of as many of the others.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
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
KEPT = 10  # of the fastest variants of a size, and of the others
FIELDS = (
    "groups", "columns", "stages", "tall", "cluster", "beside", "split", "clustered", "swapped", "occupancy", "buffers",
    "span", "alternate",
)  # fmt: skip


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
    """What `random_sizes.py` collected, or what is kept of it."""
    found = json.loads(path.read_text(encoding="utf-8"))
    return [measured(row, found.get("fields")) for row in found["rows"] if row.get("variants")]


def measured(row: dict[str, Any], names: Sequence[str] | None) -> Measured:
    """A row of a file; `names` are those of the fields of a variant, after its time, where only values are kept."""
    size, times = row["size"], {}
    for one in row["variants"]:
        given = dict(one) if names is None else dict(zip(names, one[1:], strict=True))
        samples = given.pop("us") if names is None else one[:1]
        given |= {"keep": tuple(given.get("keep", ("", "")))}
        times[Shape(**given)] = min(samples) if len(samples) <= FEW else statistics.median(samples)
    extents = size["m"], size["n"], size["k"]
    problem = Problem(*extents, size["layout"][0] == "N", size["layout"][1] == "T")
    if size["type"] == "e4m3":
        problem = wgmma_formats.problem_of("e4m3", *extents)
    return Measured(problem, statistics.median(row["cuBLAS"]), times)


def keep(paths: Sequence[Path]) -> None:
    """Write what is kept of some files."""
    lines, about = [], []
    for path in paths:
        found = json.loads(path.read_text(encoding="utf-8"))
        about.append(found["about"])
        for row in (row for row in found["rows"] if row.get("variants")):
            times = sorted(measured(row, None).times.items(), key=lambda pair: pair[1])
            others = times[KEPT:]
            some = times[:KEPT] + others[:: max(1, -(-len(others) // KEPT))]
            variants = [[round(time, 2), *(int(getattr(shape, name)) for name in FIELDS)] for shape, time in some]
            kept = {"size": row["size"], "cuBLAS": row["cuBLAS"], "variants": variants}
            lines.append(json.dumps(kept, separators=(",", ":")))
    head = json.dumps({"about": about, "fields": FIELDS}, indent=1)[:-2]
    EVIDENCE.write_text(head + ',\n "rows": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")


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
    """Fit, and print the costs and what they are worth; or keep what was collected."""
    mode, *paths = sys.argv[1:] or ["fit"]
    if mode == "keep":
        keep([*map(Path, paths)])
        return
    sizes = [one for path in paths or [EVIDENCE] for one in read(Path(path))]
    fitted, others = sizes[::2], sizes[1::2]
    print("as they are:", judge(others))
    costs = fit(fitted)
    print(costs)
    print("sizes they were fitted to:", judge(fitted, costs))
    print("other sizes:", judge(others, costs))


if __name__ == "__main__":
    main()
