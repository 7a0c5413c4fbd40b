"""Are changes of the source noticed? `python -m tests.mutants --out FOLDER` makes 400 at random and runs tests on each.

Every mutant is run against the cases and the tests of its package (`TESTS`), those of `dev.py check`, until one fails:
first all mutants against a few files of their subject, which notice most, then those that passed against the rest. Each
process has a copy of the repository with a cache of its own. Tests that fail without any change are left out, and so
are those of a GPU. `FOLDER/mutants.jsonl` has a line for each mutant as it ends, and one where it passed the first
tests; `--done FILE...` continues after an earlier run, `--numbers 0:100` takes a part, `--seconds` is for all of it.
`--only FILE...` takes the mutants that survived in such files or passed the first tests, as far as the source still has
them: their source may have changed since. `--evidence FILE...` joins files into `evidence/source_mutants.json`.

With `--reached FILE...` (see `tests/mutants/reached.py`) a mutant is run against those of these tests that reach its
line, the nearest files first: seconds in place of minutes. Where none does, since the line is run as its module is
imported, it is run against all of them, as without. What a copy of the repository keeps of machine code is in
`tests/mutants/trees.py`.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from queue import Empty, PriorityQueue, Queue
from typing import Any

from tests.mutants.near import Tests
from tests.mutants.reached import Reached
from tests.mutants.sites import Site, sites
from tests.mutants.trees import ROOT, Ended, Tree, share_cache, stop

EVIDENCE = ROOT / "evidence" / "source_mutants.json"
JUDGED = Path(__file__).with_name("judged.json")
# The tests of a package: what runs it. Semantics of `isa` are run by the emulator, its forms by the rules, and `device`
# has what every launch needs. Chains of grids and grids of several GPUs have folders of their own.
TESTS = {
    "author": "author",
    "check": "check flow cases",
    "debug": "debug trace",
    "device": "launch gpu cases emulate",
    "draw": "draw learn",
    "editor": "editor",
    "emulate": "cases emulate launch node explain",
    "equal": "equal",
    "estimate": "estimate",
    "flow": "flow check cases",
    "ir": "ir syntax check debug",
    "isa": "isa cases emulate check",
    "lab": "lab trace",
    "launch": "launch cases",
    "learn": "learn",
    "litmus": "litmus",
    "numbers": "numbers",
    "programs": "programs",
    "prove": "prove",
    "report": "report check",
    "schedule": "schedule",
    "syntax": "syntax ir check",
    "toolchain": "toolchain",
    "trace": "trace debug lab",
    "verify": "verify grade",
}
DEFAULT = "check debug device emulate flow isa trace"
# How many seconds of tests are run first, before the rest is collected; and a file of more than so many is of the rest.
FIRST = 12
SHORT = 6
# What notices most, for its seconds, whatever a mutant is of.
DENSE = ("tests/emulate/test_random_programs.py", "tests/debug/test_random_sessions.py")
LONGEST = 180  # seconds of one test without any change, the first of which may have to compile the emulator
# What takes more than so many times its seconds has no end; the runtime that is compiled first is in the others.
TIMES = 4
OTHERS = 30
FIRST_PASSED = "passed the first tests"


@dataclass
class Baseline:
    """How the tests end without any change: the seconds of those that pass."""

    seconds: dict[str, float] = field(default_factory=dict)
    failing: list[str] = field(default_factory=list)

    def of(self, files: set[str]) -> list[str]:
        """The tests of these files that pass."""
        return [test for test in self.seconds if test.partition("::")[0] in files]


@dataclass(order=True)
class Turn:
    """A mutant that is to be tested: first all of them once, then, for the last time, those that passed."""

    is_last: bool
    number: int
    site: Site = field(compare=False)
    cpu: float = field(compare=False)  # what was spent on it before


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    if options.evidence:
        return _write_evidence(options.evidence)
    end = time.monotonic() + options.seconds
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    wanted = list(_wanted(options))
    for reason in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(reason, stop)
    with ThreadPoolExecutor(options.processes) as pool:
        trees = list(pool.map(lambda number: Tree.copy(Path(options.scratch), number), range(options.processes)))
        files = sorted({file for site in dict(wanted).values() for file in files_of(site.package)})
        kept = Path(options.baseline)
        baseline = Baseline(**json.loads(kept.read_text())) if kept.is_file() else _measure(pool, trees, files)
        for file in (kept, out / "baseline.json"):
            file.write_text(json.dumps(vars(baseline), indent=1))
        print(f"{sum(baseline.seconds.values()):.0f} s of tests, left out: {len(baseline.failing)}", flush=True)
        if not baseline.seconds:
            sys.exit("no test passes without a change")
        share_cache(trees)
        queue: PriorityQueue[Turn] = PriorityQueue()
        passed = {_key(one): one["cpu"] for name in options.done for one in _lines(name) if _is_open(one)}
        for number, site in wanted:
            queue.put(Turn(_key(_shown(site)) in passed, number, site, passed.get(_key(_shown(site)), 0.0)))
        run = Run(baseline, Reached(options.reached), out / "mutants.jsonl", end, options.patience)
        found = pool.map(lambda tree: run.judge_all(tree, queue), trees)
        print(f"{sum(found)} of {len(wanted)} were judged")
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="build/mutants")
    parser.add_argument("--scratch", default="/tmp/mutants")
    parser.add_argument("--seed", type=int, default=34)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--numbers", default="0:")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--patience", type=float, default=1, help="how many times longer than usual tests may take")
    parser.add_argument("--packages", default=DEFAULT.replace(" ", ","))
    parser.add_argument("--baseline", default="/tmp/mutants.json", help="how tests end without any change, once known")
    parser.add_argument("--reached", nargs="*", default=[], help="which tests reach a line, and their seconds")
    parser.add_argument("--done", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--evidence", nargs="*")
    return parser.parse_args(arguments)


def draw(seed: int, count: int, packages: list[str]) -> list[Site]:
    """So many places of these packages, no two the same; of a seed and a state of the source always the same ones."""
    return random.Random(seed).sample(sites(ROOT, packages), count)


def _wanted(options: argparse.Namespace) -> Iterator[tuple[int, Site]]:
    first, _, last = options.numbers.partition(":")
    done = {_key(one) for name in options.done for one in _lines(name) if not _is_open(one)}
    packages = options.packages.split(",")
    drawn = _again(options.only, packages) if options.only else enumerate(draw(options.seed, options.count, packages))
    for number, site in drawn:
        if int(first or 0) <= number < int(last or options.count) and _key(_shown(site)) not in done:
            yield number, site


def _again(names: list[str], packages: list[str]) -> Iterator[tuple[int, Site]]:
    """The mutants of earlier runs that nothing noticed until then."""
    ended = {_key(one): one for name in names for one in _lines(name)}
    wanted = {
        key: one
        for key, one in ended.items()
        if (_is_open(one) or one["outcome"] == "survived") and Path(one["file"]).parts[2] in packages
    }
    files = {one["file"] for one in wanted.values()}
    for site in sites(ROOT, packages):
        if site.file in files and (one := wanted.pop(_key(_shown(site)), None)):
            yield one["number"], site
    for key in wanted:
        print(f"not in the source now: {key}", flush=True)


def _shown(site: Site) -> dict[str, Any]:
    return {"file": site.file, **site.show((ROOT / site.file).read_bytes())}


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


@cache
def _files(folder: str) -> tuple[str, ...]:
    """The files of a folder of tests."""
    home = ROOT / "tests" / folder
    found = home.rglob("*.ptx" if folder == "cases" else "test_*.py")
    return tuple(sorted(str(one.relative_to(ROOT)) for one in found))


def files_of(package: str) -> list[str]:
    """The files of tests that run a package."""
    return [file for folder in TESTS[package].split() for file in _files(folder)]


@cache
def _tests(package: str) -> Tests:
    return Tests(ROOT, files_of(package))


def _measure(pool: ThreadPoolExecutor, trees: list[Tree], files: list[str]) -> Baseline:
    """Run all tests without any change."""
    baseline, queue = Baseline(), Queue[str]()
    parts = {file if file.endswith(".py") else str(Path(file).parent) for file in files}  # cases, by their folders
    for part in sorted(parts, key=lambda part: -(ROOT / part).stat().st_size):
        queue.put(part)

    def run(tree: Tree) -> None:
        with suppress(Empty):
            while True:
                part = queue.get_nowait()
                ended = tree.test([part], seconds=400, longest=LONGEST, only=None)
                last = {test: what for test, what, _ in ended.tests}
                failing = {test for test, what, _ in ended.tests if what == "failed"}
                failing |= {test for test, what in last.items() if what == "started"}
                ended_well = {test: seconds for test, what, seconds in ended.tests if what == "ended"}
                baseline.seconds |= {test: seconds for test, seconds in ended_well.items() if test not in failing}
                baseline.failing += sorted(failing)
                if ended.status not in (0, 1, 5):
                    print(f"{part}: pytest ended with {ended.status}", flush=True)

    list(pool.map(run, trees))
    return baseline


@dataclass
class Run:
    """What each process needs for judging mutants, until the `end`."""

    baseline: Baseline
    reached: Reached
    out: Path
    end: float
    patience: float = 1

    def judge_all(self, tree: Tree, queue: "PriorityQueue[Turn]") -> int:
        """Judge mutants as they come, and say how many."""
        count = 0
        with suppress(Empty):
            while time.monotonic() < self.end - 5:
                turn = queue.get_nowait()
                record = self._judge(tree, turn)
                if record is None:
                    break
                with self.out.open("a") as file:
                    file.write(json.dumps({"number": turn.number, **record}) + "\n")
                print(turn.number, record["outcome"], turn.site.file, turn.site.line, record.get("by", ""), flush=True)
                if _is_open(record):
                    queue.put(Turn(True, turn.number, turn.site, float(str(record["cpu"]))))
                else:
                    count += 1
        return count

    def _judge(self, tree: Tree, turn: Turn) -> dict[str, object] | None:
        """What comes of a mutant; None where there was no time for it."""
        path = tree.folder / turn.site.file
        source = path.read_bytes()
        changed = turn.site.apply(source)
        record: dict[str, object] = {"file": turn.site.file, "line": turn.site.line, **turn.site.show(source)}
        try:
            compile(changed, turn.site.file, "exec")
        except SyntaxError:
            return record | {"outcome": "no program", "cpu": 0}
        tests = self.chosen(turn)
        if not tests:
            return record | {"tests": 0, "cpu": turn.cpu, "outcome": "survived" if turn.is_last else FIRST_PASSED}
        # Machine code that is made again takes its time; what takes much longer than that has no end.
        seconds = [self.baseline.seconds[test] for test in tests]
        limit = self.patience * (OTHERS + TIMES * sum(seconds))
        longest = self.patience * (OTHERS + TIMES * max(seconds))
        left = self.end - time.monotonic()
        files = [*dict.fromkeys(test.partition("::")[0] for test in tests)]
        try:
            path.write_bytes(changed)
            ended = tree.test(
                files, "-x", seconds=min(limit, left), longest=longest, changed=turn.site.file, only=tests
            )
        finally:
            path.write_bytes(source)
        if ended.status is None and left < limit:
            return None
        record |= {"tests": ended.count, "cpu": round(turn.cpu + ended.cpu, 1)}
        if ended.is_passed:
            return record | {"outcome": "survived" if turn.is_last else FIRST_PASSED}
        return record | _noticed(ended)

    def chosen(self, turn: Turn) -> list[str]:
        """The tests that a mutant is run against first, or all others: the nearest files first."""
        order = _tests(turn.site.package).order(turn.site)
        near = {file: number for number, file in enumerate(sorted(order, key=lambda file: file not in DENSE))}
        known = self.baseline.of(set(near))
        reaching = {*self.reached(turn.site.file, turn.site.line)}.intersection(known)
        tests = [test for test in known if not reaching or test in reaching or test not in self.reached.seconds]
        first, seconds = dict[str, None](), 0.0
        for test in sorted(tests, key=lambda test: near[test.partition("::")[0]]):
            if seconds < FIRST and self.baseline.seconds[test] < SHORT:
                first[test] = None
                seconds += self.baseline.seconds[test]
        return [test for test in tests if test not in first] if turn.is_last else list(first)


def _noticed(ended: Ended) -> dict[str, object]:
    by, what, _ = ended.tests[-1] if ended.tests else ("the start of pytest", "failed", 0)
    if ended.status is None or (ended.status > 0 and what == "started"):
        return {"outcome": "endless", "by": by}
    return {"outcome": "crashed" if ended.status < 0 else "killed", "by": by}


def _is_open(record: dict[str, Any]) -> bool:
    return bool(record["outcome"] == FIRST_PASSED)


def _write_evidence(names: list[str]) -> int:
    """Join what runs have found, with what was judged of those that survived."""
    records = {_key(one): one for name in names for one in _lines(name)}
    judged = json.loads(JUDGED.read_text()) if JUDGED.exists() else {}
    print(Counter(one["outcome"] for one in records.values()))
    EVIDENCE.write_text(json.dumps(evidence(list(records.values()), judged), indent=1) + "\n")
    return 0


def _key(one: dict[str, Any]) -> str:
    """What a mutant is, whatever its number was in the run that made it."""
    return f"{one['file']}: {one['before']} -> {one['after']}"


def evidence(records: list[dict[str, Any]], judged: dict[str, Any]) -> dict[str, Any]:
    """The share of mutants that are noticed, of those that change what the program does.

    One that is not judged to the end is not noticed.
    """
    made = [one for one in records if one["outcome"] != "no program"]
    open_or_survived = [one for one in made if _is_open(one) or one["outcome"] == "survived"]
    packages: dict[str, Counter[str]] = {}
    for one in made:
        packages.setdefault(Path(one["file"]).parts[2], Counter())[one["outcome"]] += 1
    for one in open_or_survived:
        one["judged"] = judged.get(_key(one), "not judged")
    equivalent = sum(one["judged"].startswith("equivalent") for one in open_or_survived)
    noticed = len(made) - len(open_or_survived)
    return {
        "command": "python -m tests.mutants.forked",
        "mutants": len(made),
        "noticed": noticed,
        "equivalent": equivalent,
        "passed_the_first_tests_only": sum(map(_is_open, made)),
        "share_noticed": round(noticed / max(1, len(made) - equivalent), 4),
        "packages": {name: dict(sorted(count.items())) for name, count in sorted(packages.items())},
        "survivors": sorted(open_or_survived, key=lambda one: int(one["number"])),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
