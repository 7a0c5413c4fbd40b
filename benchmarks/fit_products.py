"""Fit what products of `wgmma_gemm` cost to times of variants of random sizes, train what corrects it, and judge both.

    python benchmarks/fit_products.py fit [FILE ...]     fits `Costs`, and prints them: takes half an hour
    python benchmarks/fit_products.py train [FILE ...]   trains the networks of `correction.py`: needs torch
    python benchmarks/fit_products.py judge [FILE ...]   what both are worth
    python benchmarks/fit_products.py keep KEPT FILE ... writes to a file of evidence/

FILEs are what `random_sizes.py` collected, by default those of evidence/; no GPU is needed. One size of eight is not
learned from, and they are judged by those: how much longer the variant takes that is chosen than the fastest one that
was measured. What counts is how variants of one size differ, so the mean error of each size counts for little, or
nothing, and variants that are far from the fastest count for less. What is kept of each size is the medians of the
fastest variants, and of as many of the others.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ptxlab.estimate.products import COSTS, Costs
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm.candidates import Problem, estimate, hints
from ptxlab.kernels.wgmma_gemm.correction import TABLE, corrections, inputs, networks

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "random_products.json"
MIDDLE = EVIDENCE.with_name("random_products_middle.json")  # sizes between a quarter of a wave and four
CLUSTERS = EVIDENCE.with_name("random_products_clusters.json")  # clusters of four blocks
GATED = EVIDENCE.with_name("random_products_gated.json")  # gated products of few tiles, in parts of k or not
CYCLES = 1755.0  # of an SM in a microsecond
SLOW = 1.5  # times the fastest: slower variants are left out
FEW = 3  # samples of a variant that was measured only until it was clearly slower
STEP, DAMPING, ROUNDS = 1e-3, 1e-3, 10
MEAN = 0.3  # how much the mean error of a size counts
LIMIT = 0.1  # errors beyond it count linearly
KEPT = 8  # of the fastest variants of a size, and of the others
HELD_OUT = 8  # one size of so many is not learned from
HIDDEN, NETWORKS = (48, 24), 8  # units of the layers of a network, and networks whose mean counts
EPOCHS, BATCH, RATE, DECAY = 100, 48, 3e-3, 0.02
FAR = 3.0  # how much less variants count that are far from the fastest
UNIT = 0.05  # errors of a correction that count 1
FIELDS = (
    "groups", "columns", "stages", "tall", "cluster", "beside", "split_k", "clustered", "swap_ab", "occupancy",
    "buffers", "span", "pingpong",
)  # fmt: skip


@dataclass(frozen=True)
class Measured:
    """A product, what cuBLAS took, and what each variant took, in microseconds."""

    type: str
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


def problem_of(type: str, m: int, n: int, k: int, layout: str) -> Problem:
    """The product of a row; that of a gated one has both matrices."""
    size, is_gated = 1 if type.endswith("e4m3") else 2, type.startswith("gated")
    return Problem(m, 2 * n if is_gated else n, k, layout[0] == "N", layout[1] == "T", size, gated=is_gated)


def measured(row: dict[str, Any], names: Sequence[str] | None) -> Measured:
    """A row of a file; `names` are those of the fields of a variant, after its time, where only values are kept."""
    problem, times = problem_of(**row["size"]), {}
    for one in row["variants"]:
        given = dict(one) if names is None else dict(zip(names, one[1:], strict=True))
        samples = given.pop("us") if names is None else one[:1]
        plain = Shape(**{name: value for name, value in given.items() if name in FIELDS})
        shape = replace(plain, keep=hints(problem, plain), buffers=problem.boxes(plain).kept)
        times[shape] = min(samples) if len(samples) <= FEW else statistics.median(samples)
    return Measured(row["size"]["type"], problem, statistics.median(row["cuBLAS"]), times)


def keep(kept: Path, paths: Sequence[Path]) -> None:
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
            size = {"size": row["size"], "cuBLAS": row["cuBLAS"], "variants": variants}
            lines.append(json.dumps(size, separators=(",", ":")))
    head = json.dumps({"about": about, "fields": FIELDS}, indent=1)[:-2]
    kept.write_text(head + ',\n "rows": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")


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
    at = np.log(costs)

    def errors(where: Any) -> Any:
        return residuals(sizes, Costs(*map(float, np.exp(where))))

    def loss(values: Any) -> float:
        return float((np.sqrt(1 + (values / LIMIT) ** 2) - 1).sum())

    now, damping = errors(at), DAMPING
    for _ in range(ROUNDS):
        slopes = np.stack([(errors(at + STEP * one) - now) / STEP for one in np.eye(len(at))], axis=1)
        weights = 1 / np.sqrt(1 + (now / LIMIT) ** 2)
        square = slopes.T @ (weights[:, None] * slopes)
        while damping < 1e6:
            step = np.linalg.solve(
                square + damping * (np.diag(np.diag(square)) + np.eye(len(at))), slopes.T @ (weights * now)
            )
            then = errors(at - step)
            if loss(then) < loss(now):
                at, now, damping = at - step, then, damping / 4
                break
            damping *= 4
        print(f"loss {loss(now):.3f}", flush=True)
    return Costs(*(float(f"{one:.4g}") for one in np.exp(at)))


def choose(one: Measured, costs: Costs, corrected: bool) -> float:
    """The time of the variant that is estimated to be the fastest."""
    variants = [*one.times]
    cycles = [estimate(one.problem, shape, costs) for shape in variants]
    found = np.log(cycles) + (corrections(one.problem, variants, cycles) if corrected else 0)
    return one.times[variants[int(np.argmin(found))]]


def judge(sizes: Sequence[Measured], costs: Costs = COSTS, corrected: bool = True) -> dict[str, float]:
    """How the variants that are estimated to be the fastest compare with the fastest ones, and with cuBLAS."""
    chosen = [choose(one, costs, corrected) for one in sizes]
    found: dict[str, float] = {}
    for name, others in (("fastest", [one.fastest for one in sizes]), ("cuBLAS", [one.library for one in sizes])):
        ratios = sorted(other / time for other, time in zip(others, chosen, strict=True))
        found[f"of {name}"] = round(math.exp(statistics.mean(map(math.log, ratios))), 4)
        found[f"of {name}, 5th percentile"] = round(ratios[len(ratios) // 20], 4)
    return found


class Lessons:
    """What networks learn from: inputs of the variants of a size, how far estimates are off, how much each counts."""

    def __init__(self, sizes: Sequence[Measured]) -> None:
        shape = len(sizes), max(len(one.times) for one in sizes)
        self.off, self.weights = np.zeros(shape, np.float32), np.zeros(shape, np.float32)  # 0: there is no variant
        rows: list[list[list[float]]] = []
        for number, one in enumerate(sizes):
            rows.append([])
            for at, (variant, time) in enumerate(one.times.items()):
                cycles = estimate(one.problem, variant)
                rows[-1].append(inputs(one.problem, variant, cycles))
                self.off[number, at] = math.log(time / cycles)
                self.weights[number, at] = math.exp(-FAR * (time / one.fastest - 1))
        all_rows = np.array([row for of_size in rows for row in of_size], np.float32)
        self.mean, self.deviation = all_rows.mean(0), all_rows.std(0) + 1e-6
        self.given = np.zeros((*shape, all_rows.shape[1]), np.float32)
        self.given[self.weights > 0] = (all_rows - self.mean) / self.deviation
        self.count = len(all_rows) / len(sizes)  # of the variants of a size


def train(lessons: Lessons) -> list[list[Any]]:
    """The weights of each network, and what its layers add, by Adam on errors less the mean error of each size.

    All networks are trained at once, each in an order of its own.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    chance = torch.Generator(device).manual_seed(0)
    given, off, weights = (torch.tensor(one, device=device) for one in (lessons.given, lessons.off, lessons.weights))
    layers: list[Any] = []
    for few, many in pairwise([given.shape[2], *HIDDEN, 1]):
        scale = math.sqrt(2 / few) * (0.1 if many == 1 else 1)
        first = torch.randn(NETWORKS, few, many, device=device, generator=chance) * scale
        layers += [first.requires_grad_(), torch.zeros(NETWORKS, 1, many, device=device, requires_grad=True)]
    decayed = [{"params": layers[::2], "weight_decay": DECAY}, {"params": layers[1::2], "weight_decay": 0.0}]
    adam = torch.optim.AdamW(decayed, lr=RATE, betas=(0.9, 0.99), eps=1e-6)
    batches = len(given) // BATCH
    slower = torch.optim.lr_scheduler.CosineAnnealingLR(adam, EPOCHS * batches)
    for _ in range(EPOCHS):
        order = torch.rand(NETWORKS, len(given), device=device, generator=chance).argsort(1)
        for at in order[:, : batches * BATCH].split(BATCH, 1):
            values, counts = given[at].flatten(1, 2), weights[at]
            for number in range(0, len(layers), 2):
                values = torch.baddbmm(layers[number + 1], values, layers[number])
                values = values.relu() if number < len(layers) - 2 else values
            errors = values.view(counts.shape) - off[at]
            means = (counts * errors).sum(2, keepdim=True) / counts.sum(2, keepdim=True)
            adam.zero_grad()
            loss = (counts * (errors - means) ** 2).sum() / (2 * UNIT**2 * BATCH * lessons.count)
            loss.backward()
            adam.step()
            slower.step()
    arrays = [one.detach().cpu().numpy() for one in layers]
    return [[one[at].squeeze(0) if len(one[at]) == 1 else one[at] for one in arrays] for at in range(NETWORKS)]


def write(lessons: Lessons, trained: Sequence[list[Any]]) -> None:
    """Write networks whose inputs are as they are, rounded to what counts."""

    def brief(values: Any) -> Any:
        return [brief(one) if np.ndim(one) else float(f"{one:.4g}") for one in values]

    lines = []
    for first, added, *others in trained:
        scaled = first / lessons.deviation[:, None]
        numbers = [scaled, added - lessons.mean @ scaled, *others]
        lines.append(json.dumps([*map(brief, numbers)], separators=(",", ":")))
    TABLE.write_text('{"networks": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")
    networks.cache_clear()


def show(sizes: Sequence[Measured], corrected: bool = True) -> None:
    """Print what choices are worth, for each type."""
    for type in dict.fromkeys(one.type for one in sizes):
        own = [one for one in sizes if one.type == type]
        print(f"{type}, {len(own)} sizes:", judge(own, COSTS, corrected))


def main() -> None:
    """Fit, train, judge, or keep what was collected."""
    mode, *paths = sys.argv[1:] or ["judge"]
    if mode == "keep":
        kept, *others = map(Path, paths)
        keep(kept, others)
        return
    sizes = [one for path in paths or [EVIDENCE, MIDDLE, CLUSTERS, GATED] for one in read(Path(path))]
    others = sizes[HELD_OUT - 1 :: HELD_OUT]
    learned = [one for number, one in enumerate(sizes) if number % HELD_OUT != HELD_OUT - 1]
    if mode == "fit":
        costs = fit(learned)
        print(costs)
        print("other sizes:", judge(others, costs, corrected=False))
        return
    if mode == "train":
        lessons = Lessons(learned)
        write(lessons, train(lessons))
    print("estimates alone")
    show(others, corrected=False)
    print("corrected")
    show(others)


if __name__ == "__main__":
    main()
