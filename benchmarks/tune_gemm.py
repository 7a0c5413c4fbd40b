"""Find the fastest variant of each product of `wgmma_gemm` and of `wgmma_formats`.

    python benchmarks/tune_gemm.py wgmma_gemm [SECONDS [FOLDER]]         needs an H200, for a minute
    python benchmarks/tune_gemm.py wgmma_formats [SECONDS [FOLDER]]

It tries the variant that is in the table, what differs from it in one thing, and the variants that are estimated to be
the fastest. All are assembled before the GPU is used; each answer is checked, and each variant takes turns with cuBLAS
and the others. The times go to evidence/tuned, the fastest variants to the table that functions choose from; another
one replaces that of the table if it is clearly faster. Products whose variant was never measured come first, and after
so many SECONDS no other is started: what was measured before stays, with its commit. With a FOLDER for the times, the
table stays as it is.
"""

import json
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab.gpu.loading import compile_text
from ptxlab.kernels import wgmma_formats, wgmma_gemm
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm.candidates import SHARED, SMS, Problem, hints
from ptxlab.kernels.wgmma_gemm.choice import FORMATS_TABLE, TABLE, read_table, shape_of
from ptxlab.kernels.wgmma_gemm.correction import best
from ptxlab.kernels.wgmma_gemm.measured import FUSED
from ptxlab.launch.launches import UnsuitedError
from ptxlab.measure import WrongAnswerError, check
from ptxlab.measure.checking import expect
from ptxlab.measure.data import Blank, poison
from ptxlab.measure.interleaving import until_steady
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.session import draw_sets, timer, together
from ptxlab.syntax import format

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "tuned"
ESTIMATED = 2  # variants of each product that are tried because of their estimate
ROUNDS = 4
FASTER = 1.005  # than the variant of the table, where that is replaced
FEW_ROWS = 512  # of A, for which tiles for many rows are not tried
TABLES = {"wgmma_gemm": TABLE, "wgmma_formats": FORMATS_TABLE}
MANY_ROWS = (
    Shape(stages=4, buffers=2, raster=16),
    Shape(stages=4, buffers=2, raster=8),
    Shape(stages=4, buffers=2, cluster=2),
    Shape(buffers=4, even=True, lead=2),
    Shape(columns=128, tall=2, stages=4, buffers=2),
    Shape(columns=160, tall=2, stages=4, buffers=2),
    Shape(columns=192, tall=2, stages=4, buffers=2, pingpong=True),
)


@dataclass(frozen=True)
class Family:
    """The products of an entry, and the variants that its functions choose from."""

    name: str
    folder: Path | None = None  # for the times alone

    @property
    def module(self) -> Any:
        return {"wgmma_gemm": wgmma_gemm, "wgmma_formats": wgmma_formats}[self.name]

    @property
    def evidence(self) -> Path:
        return (self.folder or EVIDENCE) / f"{self.name}.json"

    def problem(self, size: Any) -> Problem:
        """The product of a size of the entry."""
        if self.name == "wgmma_formats":
            return wgmma_formats.problem_of(**size)
        layout = size.get("layout", "NT")
        return Problem(size["m"], size["n"], size["k"], layout[0] == "N", layout[1] == "T")

    def sizes(self) -> list[dict[str, Any]]:
        """What is tuned: of 16 bits also what others are fused with. What the table has from elsewhere comes first."""
        found = [dict(size) for size in self.module.entry.sizes if size["type"] != "f16" and not size.get("epilogue")]
        if self.name == "wgmma_gemm":
            found += [{"type": "bf16", "m": m, "n": n, "k": k, "layout": "NT"} for m, n, k in FUSED]
        once, table = {self.problem(size): size for size in found}, read_table(TABLES[self.name])
        measured = {json.dumps(row["size"]): [shape_in(one) for one in row["times"]] for row in self.rows()}

        def rank(problem: Problem) -> tuple[bool, int]:
            shape, times = table.get(problem), measured.get(json.dumps(once[problem]), [])
            return bool(times) and shape in (None, times[0]), problem.m * problem.n * problem.k

        return [once[problem] for problem in sorted(once, key=rank)]

    def rows(self) -> list[dict[str, Any]]:
        """What was measured before."""
        path = next((one for one in (self.evidence, EVIDENCE / self.evidence.name) if one.exists()), None)
        if path is None:
            return []
        found = json.loads(path.read_text(encoding="utf-8"))
        about = {name: found["about"][name] for name in ("date", "commit") if name in found["about"]}
        return [about | row for row in found["products"] if "commit" in about | row]

    def build(self, size: dict[str, Any], shape: Shape) -> tuple[str, Any]:
        """The text of a variant, and where it is from."""
        made = self.module.product(**self.module.entry.arrays(Blank(), **size), shape=shape)
        return format(made.module), made.module.source


def candidates(family: Family, problem: Problem) -> list[Shape]:
    """What is tried for a product, each variant once; the one of the table first."""
    table = read_table(TABLES[family.name])
    known = table[problem] if problem in table else best(problem, 1)[0]
    tried = [known, *relatives(problem, known), *best(problem, ESTIMATED)]
    if problem.m > FEW_ROWS:
        tried += [replace(one, early=known.early) for one in MANY_ROWS]
    fitted = [fitted for fitted in (fit(problem, shape) for shape in tried) if fitted is not None]
    return [*dict.fromkeys(fitted)]


def relatives(problem: Problem, shape: Shape) -> Iterable[Shape]:
    """What differs in one thing."""
    yield from (replace(shape, early=early) for early in (0, 1, 2) if early != shape.early)
    yield from (replace(shape, keep=keep) for keep in {("", ""), hints(problem, shape)} - {shape.keep})
    if shape.stages > 3:
        yield replace(shape, stages=shape.stages - 1, lead=0)
    if shape.groups == 2 and not shape.pingpong and shape.split_k == 1 and shape.stages > 2 and problem.m > FEW_ROWS:
        yield replace(shape, lead=0 if shape.lead else 2)
    if shape.split_k > 4 and not shape.clustered:
        plain = replace(shape, cluster=1, clustered=True)
        yield from (replace(plain, split_k=split_k) for split_k in (6, 7) if problem.tiles(plain) * split_k <= SMS)


def fit(problem: Problem, shape: Shape) -> Shape | None:
    """The variant with as many of its stages as fit."""
    layout = problem.layout(shape)
    if layout.right_along_k and shape.columns % (8 * shape.cluster):
        return None
    each = shape.stage_bytes(layout)
    more = max(0, shape.shared(layout) - SHARED // shape.occupancy)
    stages = shape.stages - -(-more // each)
    return replace(shape, stages=stages) if stages > max(2, shape.lead) else None


def assemble(family: Family, size: dict[str, Any], shape: Shape) -> bool:
    """Assemble a variant, for launches to find it in the cache; whether it suits."""
    try:
        text, source = family.build(size, shape)
    except UnsuitedError:
        return False
    compile_text(text, "sm_90a", source)
    return True


def tune(torch: Any, family: Family, size: dict[str, Any], shapes: Sequence[Shape]) -> dict[str, Any]:
    """Microseconds of each variant and of cuBLAS, the fastest first, and which variants are wrong."""
    entry, product = family.module.entry, family.module.product
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
        samples = until_steady(timers, ROUNDS)
    library = samples.pop("cuBLAS")
    ratios = {name: ratio(library, times) for name, times in samples.items()}
    times = [
        {"us": microseconds(samples[name]), "of cuBLAS": round(ratios[name], 4), **brief(shapes[int(name)])}
        for name in sorted(ratios, key=lambda name: -ratios[name])
    ]
    return {"size": size, "cuBLAS": microseconds(library), "times": times, "wrong": wrong}


def ratio(library: Sequence[float], own: Sequence[float]) -> float:
    """How many times as fast a variant is, in the median of rounds."""
    return statistics.median(other / mine for other, mine in zip(library, own, strict=True))


def microseconds(samples: Sequence[float]) -> float:
    return round(1e6 * statistics.median(samples), 2)


def brief(shape: Shape) -> dict[str, Any]:
    """The fields of a variant that are not as they are by default."""
    default = asdict(Shape())
    return {name: value for name, value in asdict(shape).items() if value != default[name]}


def shape_in(row: dict[str, Any]) -> Shape:
    """The variant whose times these are."""
    default = asdict(Shape())
    return shape_of({name: row.get(name, value) for name, value in default.items()})


def chosen(row: dict[str, Any], known: Shape | None) -> Shape:
    """The fastest, unless that of the table is about as fast."""
    first = row["times"][0]
    found = [one for one in row["times"] if shape_in(one) == known]
    is_close = bool(found) and first["of cuBLAS"] < FASTER * found[0]["of cuBLAS"]
    return shape_in(found[0] if is_close else first)


def main() -> None:
    """Tune every product; what is tried is found and assembled before the GPU is used."""
    family = Family(sys.argv[1], Path(sys.argv[3]) if len(sys.argv) > 3 else None)
    end = float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")
    sizes = family.sizes()
    with ProcessPoolExecutor() as pool:
        tried = [*pool.map(candidates, [family] * len(sizes), map(family.problem, sizes))]
        pairs = [(size, shape) for size, shapes in zip(sizes, tried, strict=True) for shape in shapes]
        suits = pool.map(assemble, [family] * len(pairs), *zip(*pairs, strict=True))
        suited = [pair for pair, is_suited in zip(pairs, suits, strict=True) if is_suited]
    for size, shape in suited:
        family.build(size, shape)  # in this process, too: before the GPU is used
    torch, table = require_torch(), read_table(TABLES[family.name])
    torch.cuda.init()
    started = time.monotonic()
    about = {"command": "python benchmarks/tune_gemm.py " + family.name, **describe(torch)}
    for size in sizes:
        if time.monotonic() - started > end:
            break
        row = tune(torch, family, size, [shape for one, shape in suited if one is size])
        problem = family.problem(size)
        if family.folder is None:
            table[problem] = chosen(row, table.get(problem))
        row |= {
            "date": date.today().isoformat(),
            "commit": commit(),
            "chosen": brief(table[problem]) if problem in table else {},
        }
        print(size, row["cuBLAS"], row["times"][0], "chosen:", row["chosen"], len(row["wrong"]), "wrong", flush=True)
        keep(family, row, about, table)
        torch.cuda.empty_cache()


def keep(family: Family, row: dict[str, Any], about: dict[str, Any], table: dict[Problem, Shape]) -> None:
    """Write what was found until now."""
    rows = [*(one for one in family.rows() if one["size"] != row["size"]), row]
    family.evidence.parent.mkdir(parents=True, exist_ok=True)
    family.evidence.write_text(json.dumps({"about": about, "products": rows}, indent=1) + "\n", encoding="utf-8")
    if family.folder is not None:
        return
    write_table(TABLES[family.name], table)


def write_table(path: Path, table: Mapping[Problem, Shape]) -> None:
    """Write the fastest variants, a product a line."""
    lines = [json.dumps({"problem": asdict(problem), "shape": brief(shape)}) for problem, shape in table.items()]
    path.write_text('{"fastest": [\n' + ",\n".join(lines) + "\n]}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
