"""How good the schedules are that `choose` takes: what was measured at random sizes, judged without a GPU.

    python benchmarks/scheduled_chosen.py [FILE ...] [--fit 2000] [--beside "by hand"]

Of the products of f32 and bf16 matrices in FILE, of which those in `evidence/scheduled_*gemm_fresh.json` and
`scheduled_gemm_judged.json` are taken where none is named: how much of cuBLAS's speed the chosen schedule has, how much
the best one, and how much of the best the chosen one; for every second size, for the others, and for all. `--beside`
is `by hand` for `ptxlab.kernels.matmul`. `--fit` tries so many random changes of the rates, and prints those that
choose best for every second size of the FILEs. Variants of `ptxlab.kernels.matmul` are chosen by those of tensor cores
too: `fit_products.py judge` shows how well.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import scheduled_gemm as of_threads
import scheduled_tensor_gemm as of_tensor_cores
from scheduled_products import BASELINES

from ptxlab.estimate.products import COSTS, Costs, Variant
from ptxlab.schedule import Schedule
from ptxlab.schedule.waves import RATES, Counts, Rates, count, seconds

AllRates = tuple[Rates, Costs]

EVIDENCE = Path(__file__).parent.parent / "evidence"
JUDGED = [EVIDENCE / f"scheduled_{name}.json" for name in ("tensor_gemm_fresh", "gemm_judged", "gemm_fresh")]
DEFAULT = (RATES, COSTS)
SCHEDULES: dict[str, Mapping[str, Schedule]] = {
    "f32": of_threads.PRODUCT.tiles,
    "bf16": of_tensor_cores.PRODUCT.tiles,
}
SOFT = 0.04  # by how much, as a logarithm, one that is chosen may seem slower, where the choice is made softly
WEIGHT = 0.15  # of what is wrong with the times themselves
NEAR = 0.15  # by how much, as a logarithm, those are slower whose times matter


@dataclass(frozen=True)
class Measured:
    """The times of schedules at one size, in microseconds, and that of a library."""

    type: str
    sizes: Mapping[str, int]
    times: Mapping[str, float]
    library: float
    counts: Mapping[str, Counts | Variant]


def read(file: Path, beside: str = BASELINES[0]) -> list[Measured]:
    """What was measured at random sizes."""
    found = []
    for row in json.loads(file.read_text())["rows"]:
        if row["what"] == "random":
            medians = {name: statistics.median(each) for name, each in row["us"].items()}
            type = max(SCHEDULES, key=lambda one: len(SCHEDULES[one].keys() & medians.keys()))
            times = {name: medians[name] for name in SCHEDULES[type] if name in medians}  # some are made no more
            sizes = {size: row[size] for size in "mnk"}
            counts = {name: count(SCHEDULES[type][name], sizes) for name in times}
            found.append(Measured(type, sizes, times, medians[beside], counts))
    return found


def said(one: Measured, rates: AllRates) -> dict[str, float]:
    """What schedules take by waves, in seconds."""
    return {name: seconds(counts, *rates) for name, counts in one.counts.items()}


def judged(one: Measured, rates: AllRates) -> tuple[float, float, float]:
    """The chosen and the best beside the library, and the chosen beside the best."""
    best, counted = min(one.times.values()), said(one, rates)
    chosen = one.times[min(counted, key=lambda name: counted[name])]
    return one.library / chosen, one.library / best, best / chosen


def loss(measured: Sequence[Measured], rates: AllRates) -> float:
    """How much slower than the best what is chosen is, softly, and how wrong the times of the fastest are."""
    slower, wrong, total = 0.0, 0.0, 0.0
    for one in measured:
        best = min(one.times.values())
        counted = {name: math.log(1e6 * each) for name, each in said(one, rates).items()}
        took = {name: math.log(time) for name, time in one.times.items()}
        least = min(counted.values())
        chance = {name: math.exp((least - each) / SOFT) for name, each in counted.items()}
        slower += sum(chance[name] * (took[name] - math.log(best)) for name in took) / sum(chance.values())
        near = {name: math.exp((math.log(best) - each) / NEAR) for name, each in took.items()}
        wrong += sum(near[name] * abs(counted[name] - took[name]) for name in took)
        total += sum(near.values())
    return slower / len(measured) + WEIGHT * wrong / total


def fit(measured: Sequence[Measured], tries: int) -> AllRates:
    """Change the rates at random, and keep what chooses better."""
    chance, best, least = random.Random(0), DEFAULT, loss(measured, DEFAULT)
    own = list(SCHEDULES).index(measured[0].type)
    for number in range(tries):
        wide = 0.3 * (1 - number / tries)
        names = chance.sample(best[own]._fields, chance.choice((1, 1, 2, 3)))
        changed = {name: getattr(best[own], name) * math.exp(chance.gauss(0.0, wide)) for name in names}
        tried = (*best[:own], best[own]._replace(**changed), *best[own + 1 :])
        found = loss(measured, tried)
        if found < least:
            best, least = tried, found
    print(f"loss {least:.4f}:", ", ".join(f"{name} {rate:.3g}" for name, rate in best[own]._asdict().items()))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", default=JUDGED)
    parser.add_argument("--fit", type=int, default=0)
    parser.add_argument("--beside", choices=BASELINES, default=BASELINES[0])
    given = parser.parse_args()
    measured = {file: read(file, given.beside) for file in given.files}
    rates = dict.fromkeys(SCHEDULES, DEFAULT)
    for type in {each[0].type for each in measured.values()} if given.fit else ():
        rates[type] = fit([one for each in measured.values() for one in each[::2] if one.type == type], given.fit)
    for each in measured.values():
        for what, some in {"fitted": each[::2], "others": each[1::2], "all": each}.items():
            columns = zip(*(judged(one, rates[one.type]) for one in some), strict=True)
            chosen, best, both = (math.exp(statistics.mean(map(math.log, column))) for column in columns)
            ratios = f"{chosen:.3f} of {given.beside}, best {best:.3f}; {both:.3f} of the best"
            print(f"{each[0].type} {what:6} {len(some)} sizes: {ratios}")


if __name__ == "__main__":
    main()
