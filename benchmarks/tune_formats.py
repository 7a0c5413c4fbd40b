"""Find the fastest variant of `wgmma_gemm` for each product of `wgmma_formats`: fp8, tf32 and s8.

`python benchmarks/tune_formats.py` needs an H200. It tries the variants that are estimated to be fastest, those that
are in the table, and some that are good for many extents; each answer is checked. All times go to
evidence/tuned/wgmma_formats.json, the fastest variants to the table that `matmul` and `scaled_matmul` choose from.
"""

import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_formats import entry, problem_of, product
from ptxlab.kernels.wgmma_gemm.candidates import SHARED, Problem, best
from ptxlab.kernels.wgmma_gemm.choice import FORMATS_TABLE, read_table, shape_of
from ptxlab.measure import Tuned, tune
from ptxlab.measure.machine import commit, describe, require_torch

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "tuned" / "wgmma_formats.json"
ESTIMATED = 2  # variants of each product that are tried because of their estimate
FEW_ROWS = 512
LARGE = [Shape(2, 256, 4, buffers=2, together=together, cluster=cluster) for together in (8, 16) for cluster in (1, 2)]
LARGE += [Shape(2, 256, 3, buffers=1, swapped=True), Shape(2, 128, 4, tall=2, buffers=2)]
SMALL = [
    Shape(1, 128, 8, buffers=1, swapped=True),
    Shape(1, 64, 8, buffers=1, tall=2),
    Shape(2, 112, 6, buffers=1, split=2),
    Shape(1, 112, 9, buffers=7, cluster=2),
]


def candidates(problem: Problem) -> Iterator[Shape]:
    """What is tried for a product."""
    yield from best(problem, ESTIMATED)
    known = read_table(FORMATS_TABLE)
    if problem in known:
        yield known[problem]
    for shape in SMALL if problem.m <= FEW_ROWS else LARGE:
        if shape.shared(problem.layout(shape)) <= SHARED:
            yield shape


def row(size: Any, found: Tuned) -> dict[str, Any]:
    """What is kept of one product: microseconds of each variant, the fastest first."""
    default = asdict(Shape())
    times = []
    for trial in found.trials:
        if trial.samples:
            shape = {name: value for name, value in trial.parameters["shape"].items() if value != default[name]}
            times.append({"us": round(1e6 * statistics.median(trial.samples), 2), **shape})
    wrong = [trial.problem for trial in found.trials if trial.problem]
    return {"size": dict(size), "times": sorted(times, key=lambda one: one["us"]), "wrong": wrong}


def main() -> None:
    """Tune every product."""
    machine = describe(require_torch())
    about = {"date": date.today().isoformat(), "commit": commit(), **machine}
    rows, fastest = [], read_table(FORMATS_TABLE)
    for size in entry.sizes:
        problem = problem_of(**size)
        shapes = [*dict.fromkeys(candidates(problem))]
        found = tune(lambda shape: partial(product, shape=shape), {"shape": shapes}, entry, size)
        rows.append(row(size, found))
        fastest[problem] = shape_of(found.best.parameters["shape"])  # trials keep plain values
        print(size, rows[-1]["times"][0], f"{len(rows[-1]['wrong'])} wrong", flush=True)
        EVIDENCE.parent.mkdir(parents=True, exist_ok=True)
        EVIDENCE.write_text(json.dumps({"about": about, "products": rows}, indent=1) + "\n", encoding="utf-8")
        table = [{"problem": asdict(problem), "shape": asdict(shape)} for problem, shape in fastest.items()]
        FORMATS_TABLE.write_text(json.dumps({"fastest": table}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
