"""Find the fastest variant of `wgmma_gemm` for each product of its entry.

`python benchmarks/tune_gemm.py` needs an H200. It tries the variants that are estimated to be fastest, those that are
in the table, and those of a file of results given as an argument; each answer is checked. All times go to
evidence/tuned/wgmma_gemm.json, the fastest variants to the table that `matmul` chooses from.
"""

import json
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from ptxlab.kernels.wgmma_gemm import entry, product
from ptxlab.kernels.wgmma_gemm.candidates import Problem, best
from ptxlab.kernels.wgmma_gemm.choice import TABLE, shape_of, tuned
from ptxlab.kernels.wgmma_gemm.shapes import Shape
from ptxlab.measure import Tuned, tune
from ptxlab.measure.machine import commit, describe, require_torch

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "tuned" / "wgmma_gemm.json"
ESTIMATED = 2  # variants of each product that are tried because of their estimate


def problem_of(size: Any) -> Problem:
    """The product of a size of the entry."""
    layout = size.get("layout", "NT")
    return Problem(size["m"], size["n"], size["k"], layout[0] == "N", layout[1] == "T")


def candidates(problem: Problem, given: Sequence[Shape]) -> list[Shape]:
    """What is tried for a product, each variant once."""
    known = [*given, *([tuned()[problem]] if problem in tuned() else [])]
    return [*dict.fromkeys([*known, *best(problem, ESTIMATED)])]


def row(size: Any, found: Tuned) -> dict[str, Any]:
    """What is kept of one product: microseconds of each variant, the fastest first."""
    right = sorted(
        (statistics.median(trial.samples), number) for number, trial in enumerate(found.trials) if trial.samples
    )
    times = [{"us": round(1e6 * seconds, 2), **brief(found.trials[number].parameters)} for seconds, number in right]
    wrong = [{"problem": trial.problem, **brief(trial.parameters)} for trial in found.trials if trial.problem]
    return {"size": dict(size), "times": times, "wrong": wrong}


def brief(parameters: dict[str, Any]) -> dict[str, Any]:
    """The fields of a variant that are not as they are by default."""
    default = asdict(Shape())
    return {name: value for name, value in parameters["shape"].items() if value != default[name]}


def main() -> None:
    """Tune every product; what is tried is found before the GPU is used."""
    given: dict[Problem, list[Shape]] = {}
    for path in sys.argv[1:]:
        for one in json.loads(Path(path).read_text(encoding="utf-8")):
            given.setdefault(Problem(**one["problem"]), []).append(shape_of(one["shape"]))
    sizes = [size for size in entry.sizes if size["type"] == "bf16" and not size.get("epilogue")]
    problems = [problem_of(size) for size in sizes]
    with ProcessPoolExecutor() as pool:
        tried = [*pool.map(candidates, problems, [given.get(problem, []) for problem in problems])]
    machine = describe(require_torch())
    rows, fastest = [], dict(tuned())
    for size, problem, shapes in zip(sizes, problems, tried, strict=True):
        found = tune(lambda shape: partial(product, shape=shape), {"shape": shapes}, entry, size)
        rows.append(row(size, found))
        fastest[problem] = shape_of(found.best.parameters["shape"])  # trials keep plain values
        print(size, rows[-1]["times"][0], f"{len(rows[-1]['wrong'])} wrong", flush=True)
        keep(rows, fastest, {"date": date.today().isoformat(), "commit": commit(), **machine})


def keep(rows: list[Any], fastest: dict[Problem, Shape], about: dict[str, Any]) -> None:
    """Write what was found until now."""
    EVIDENCE.parent.mkdir(parents=True, exist_ok=True)
    EVIDENCE.write_text(json.dumps({"about": about, "products": rows}, indent=1) + "\n", encoding="utf-8")
    table = [{"problem": asdict(problem), "shape": asdict(shape)} for problem, shape in fastest.items()]
    TABLE.write_text(json.dumps({"fastest": table}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
