"""Litmus tests in every placement, on all cores: `python -m tests.litmus.placements [FOLDER] --seeds 20 --jobs 16`.

Without a folder, the tests beside this file; the public ones are in Dat3M's `litmus/PTX`. Each placement is counted as
racy or race-free, as the model says of the test, and as reported or silent, by whether a run reported a data race.
What differs from the model is printed, a line each, and makes the status 1. A racy placement may be silent and right:
no run ended in a state whose executions are racy.
"""

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from ptxlab.litmus import load
from ptxlab.litmus.report import report
from ptxlab.litmus.run import Observed
from ptxlab.report import PtxError

OURS = Path(__file__).parent


@dataclass(frozen=True)
class Examined:
    """A test: how many of its placements are of which kind, and where runs differ from the model."""

    path: Path
    kinds: Counter[str]
    problems: tuple[str, ...]


def examine(path: Path, seeds: int, timeout: float) -> Examined:
    """Judge a test and run it in every placement."""
    try:
        made = report(load(path), seeds=seeds, every=True, timeout=timeout)
    except PtxError as refused:
        return Examined(path, Counter(["not read"]), (refused.diagnostics[0].message,))
    if made.not_run is not None:
        return Examined(path, Counter(["tests not run"]), ())
    if made.verdict is None:
        return Examined(path, Counter(["tests with too many executions"]), tuple(made.problems()))
    kind = "racy" if made.verdict.racy else "race-free"
    kinds = Counter(f"{kind}, {_heard(seen)}" for _, seen in made.runs)
    kinds["runs"] = sum(seen.runs for _, seen in made.runs)
    kinds["runs without an end"] = sum(seen.endless for _, seen in made.runs)
    return Examined(path, kinds, tuple(made.problems()))


def _heard(seen: Observed) -> str:
    """Whether a run that ended reported a race: the model says nothing of others."""
    return ("reported" if seen.races.total() else "silent") if seen.finals else "no run ended"


def examine_all(paths: list[Path], seeds: int, timeout: float, jobs: int) -> Iterator[Examined]:
    """Examine tests in several processes, in order."""
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from pool.map(examine, paths, repeat(seeds), repeat(timeout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=OURS)
    parser.add_argument("--seeds", type=int, default=20, help="runs in each placement")
    parser.add_argument("--timeout", type=float, default=5, help="seconds of one run; with seed 0 some never end")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    differ = 0
    for one in examine_all(sorted(options.folder.rglob("*.litmus")), options.seeds, options.timeout, options.jobs):
        total += one.kinds
        total["tests"] += 1
        differ += bool(one.problems)
        if "racy, silent" in one.kinds:
            print(f"{one.path}: racy, and silent in {one.kinds['racy, silent']} placements", flush=True)
        for problem in one.problems:
            print(f"{one.path}: {problem}", flush=True)
    placements = sum(count for name, count in total.items() if name.startswith("rac"))
    print(f"{placements} placements: {dict(total)}; {differ} tests differ from the model")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
