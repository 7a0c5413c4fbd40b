"""Find the fastest variant of `wgmma_gemm` for each product of its entry.

`python benchmarks/tune_gemm.py` needs an H200, for a minute. It tries the variants that are estimated to be fastest,
the one that is in the table and its relatives, and those of a file of results given as an argument. All are assembled
before the GPU is used; each answer is checked, and each variant takes turns with cuBLAS and the others. All times go to
evidence/tuned/wgmma_gemm.json, the fastest variants to the table that `matmul` chooses from.
"""

import json
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab.gpu.loading import compile_text
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm import entry, product
from ptxlab.kernels.wgmma_gemm.candidates import SHARED, SMS, Problem, best, hints
from ptxlab.kernels.wgmma_gemm.choice import TABLE, read_table, shape_of, tuned
from ptxlab.kernels.wgmma_gemm.kernel import specialize
from ptxlab.kernels.wgmma_gemm.measured import FUSED
from ptxlab.measure import WrongAnswerError, check
from ptxlab.measure.checking import expect
from ptxlab.measure.data import poison
from ptxlab.measure.interleaving import take_turns
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.session import draw_sets, timer, together
from ptxlab.syntax import format

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "tuned" / "wgmma_gemm.json"
ESTIMATED = 2  # variants of each product that are tried because of their estimate
ROUNDS = 4


def sizes() -> list[dict[str, Any]]:
    """What is tuned: the products of the entry, small ones first, and those that others are fused with."""
    found = [dict(size) for size in entry.sizes if size["type"] == "bf16" and not size.get("epilogue")]
    found += [{"type": "bf16", "m": m, "n": n, "k": k, "layout": "NT"} for m, n, k in FUSED]
    once = {problem_of(size): size for size in found}
    return sorted(once.values(), key=lambda size: size["m"] * size["n"] * size["k"])


def problem_of(size: Any) -> Problem:
    """The product of a size of the entry."""
    layout = size.get("layout", "NT")
    return Problem(size["m"], size["n"], size["k"], layout[0] == "N", layout[1] == "T")


def candidates(problem: Problem, given: Sequence[Shape]) -> list[Shape]:
    """What is tried for a product, each variant once."""
    known = [tuned()[problem]] if problem in tuned() else best(problem, 1)
    tried = [*known, *given, *relatives(problem, known[0]), *best(problem, ESTIMATED)]
    fitted = [fitted for fitted in (fit(problem, shape) for shape in tried) if fitted is not None]
    return [*dict.fromkeys(fitted)]


def relatives(problem: Problem, shape: Shape) -> list[Shape]:
    """What differs in one thing, and warpgroups that take turns where there are many tiles."""
    found = [replace(shape, stages=stages) for stages in (shape.stages - 1, shape.stages - 2) if stages >= 3]
    found += [replace(shape, keep=hints(problem, shape.swapped))]
    if shape.split > 4 and not shape.clustered:
        plain = replace(shape, cluster=1, clustered=True)
        found += [replace(plain, split=split) for split in (6, 7) if problem.tiles(plain) * split <= SMS]
    if problem.tiles(shape) > SMS and problem.m >= SMS:
        turns = Shape(tall=2, alternate=True, stages=4, buffers=2, swapped=shape.swapped)
        found += [replace(turns, columns=192, cluster=cluster) for cluster in (1, 2)]
        found += [
            replace(turns, columns=160, stages=5, cluster=2),
            Shape(buffers=4, even=True),
            Shape(stages=4, buffers=2),
        ]
    return found


def fit(problem: Problem, shape: Shape) -> Shape | None:
    """The variant with as many of its stages as fit."""
    layout = problem.layout(shape)
    if shape.cluster > 1 and shape.columns % (shape.cluster * (8 if layout.right_along_k else 64)):
        return None
    while shape.occupancy * shape.shared(layout) > SHARED:
        if shape.stages < 3:
            return None
        shape = replace(shape, stages=shape.stages - 1)
    return shape


def assemble(problems: Sequence[Problem], tried: Sequence[Sequence[Shape]]) -> None:
    """Assemble all variants; launches find them in the cache."""
    kernels = [
        specialize("bf16", shape, one.layout(shape))
        for one, shapes in zip(problems, tried, strict=True)
        for shape in shapes
    ]
    functions = [kernel.entry for kernel in kernels]
    modules = {format(one.module): one.module for one in functions if one.module is not None}
    with ThreadPoolExecutor() as pool:
        [*pool.map(lambda pair: compile_text(pair[0], "sm_90a", pair[1].source), modules.items())]


def tune(torch: Any, size: dict[str, Any], shapes: Sequence[Shape]) -> dict[str, Any]:
    """Microseconds of each variant and of cuBLAS, the fastest first, and which variants are wrong."""
    sets = draw_sets(torch, entry, size, 0)
    expected = expect(torch, entry, sets[0])
    torch.cuda.synchronize()
    stream, timers, wrong = torch.cuda.Stream(), {}, []
    with torch.cuda.stream(stream):
        for number, shape in enumerate(shapes):
            actions = [together([product(**arrays, shape=shape)], stream) for arrays in sets]
            poison(torch, sets[0]["d"])
            actions[0]()
            torch.cuda.synchronize()
            try:
                check(torch, entry, size, sets[0], expected, "it")
                timers[str(number)] = timer(torch, actions, stream)
            except WrongAnswerError as problem:
                wrong.append({"problem": str(problem), **brief(shape)})
        timers["cuBLAS"] = timer(torch, [entry.libraries["cuBLAS"](torch, **arrays) for arrays in sets], stream)
        take_turns(timers, 1)
        samples = take_turns(timers, ROUNDS)
    library = samples.pop("cuBLAS")
    rows = [(statistics.median(times), number) for number, times in samples.items()]
    times = [{"us": round(1e6 * seconds, 2), **brief(shapes[int(number)])} for seconds, number in sorted(rows)]
    return {"size": size, "cuBLAS": round(1e6 * statistics.median(library), 2), "times": times, "wrong": wrong}


def brief(shape: Shape) -> dict[str, Any]:
    """The fields of a variant that are not as they are by default."""
    default = asdict(Shape())
    return {name: value for name, value in asdict(shape).items() if value != default[name]}


def main() -> None:
    """Tune every product; what is tried is found and assembled before the GPU is used."""
    given: dict[Problem, list[Shape]] = {}
    for path in sys.argv[1:]:
        for one in json.loads(Path(path).read_text(encoding="utf-8")):
            given.setdefault(Problem(**one["problem"]), []).append(shape_of(one["shape"]))
    problems = [problem_of(size) for size in sizes()]
    with ProcessPoolExecutor() as pool:
        tried = [*pool.map(candidates, problems, [given.get(problem, []) for problem in problems])]
    assemble(problems, tried)
    torch = require_torch()
    about = {"date": date.today().isoformat(), "commit": commit(), **describe(torch)}
    rows, fastest = [], read_table(TABLE)
    for size, problem, shapes in zip(sizes(), problems, tried, strict=True):
        rows.append(tune(torch, size, shapes))
        found, default = rows[-1]["times"][0], asdict(Shape())
        fastest[problem] = shape_of({name: found.get(name, value) for name, value in default.items()})
        print(size, rows[-1]["cuBLAS"], found, f"{len(shapes)} tried, {len(rows[-1]['wrong'])} wrong", flush=True)
        keep(rows, fastest, about)
        torch.cuda.empty_cache()


def keep(rows: list[Any], fastest: dict[Problem, Shape], about: dict[str, Any]) -> None:
    """Write what was found until now."""
    EVIDENCE.parent.mkdir(parents=True, exist_ok=True)
    EVIDENCE.write_text(json.dumps({"about": about, "products": rows}, indent=1) + "\n", encoding="utf-8")
    table = [{"problem": asdict(problem), "shape": asdict(shape)} for problem, shape in fastest.items()]
    TABLE.write_text(json.dumps({"fastest": table}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
