"""Are changes of the source noticed? `python -m tests.mutants --out FOLDER` makes 400 at random and runs tests on each.

Every mutant is run against the cases and the tests of its package (`TESTS`), with all their parameters, until one
fails. Each process has a copy of the repository with a cache of its own. Tests that fail without any change are left
out, and so are those of a GPU. `FOLDER/mutants.jsonl` has a line for each mutant as it ends; `--done FILE` leaves out
those that are in a file of an earlier run, `--numbers 0:100` takes a part, `--seconds` is for all of it. `--only FILE`
takes the mutants that survived in such a file. `--evidence FILE...` joins files into `evidence/source_mutants.json`.
"""

import argparse
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from tests.mutants.sites import Site, sites

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "evidence" / "source_mutants.json"
JUDGED = Path(__file__).with_name("judged.json")
# The tests of a package: what runs it. Semantics of `isa` are run by the emulator alone, and `device` has what every
# launch needs.
TESTS = {
    "check": "check flow cases",
    "debug": "debug",
    "device": "launch gpu cases emulate",
    "emulate": "cases emulate",
    "flow": "flow check cases",
    "isa": "isa cases emulate",
    "trace": "trace debug lab",
}
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__", ".mypy_cache", ".ruff_cache", "node_modules")


@dataclass
class Baseline:
    """How the tests end without any change: those that pass, by file, and the seconds of each file."""

    seconds: dict[str, float] = field(default_factory=Counter)
    failing: list[str] = field(default_factory=list)


@dataclass
class Tree:
    """A copy of the repository that one process changes and tests."""

    folder: Path
    scratch: Path

    def test(self, files: list[str], *options: str, seconds: float) -> tuple[int | None, list[tuple[str, str, float]]]:
        """Run pytest; its status, None when it took too long, and how each test ended."""
        said = self.scratch / f"{self.folder.name}.jsonl"
        said.unlink(missing_ok=True)
        path = os.pathsep.join(map(str, (self.folder / "src", self.folder)))
        environment = {**os.environ, "PYTHONPATH": path, "MUTANTS_FILE": str(said), "CUDA_VISIBLE_DEVICES": ""}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "OMP_NUM_THREADS": "1"}
        plugins = ["-p", "_hypothesis_pytestplugin", "-p", "tests.mutants.watch", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", "-q", *plugins, *options, *files]
        # Where it is started with Ctrl-C ignored, too, and with less memory than the machine has for all of them.
        process = subprocess.Popen(
            command, cwd=self.folder, env=environment, start_new_session=True, preexec_fn=_limit,
            stdin=subprocess.DEVNULL, stdout=(self.scratch / f"{self.folder.name}.txt").open("w"),
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            status: int | None = process.wait(max(1.0, seconds))
        except subprocess.TimeoutExpired:
            status = None
        with suppress(ProcessLookupError):  # and what it has started
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        lines = said.read_text().splitlines() if said.exists() else []
        return status, [tuple(json.loads(line)) for line in lines]

    def keep_cache(self) -> None:
        """Machine code is found by a digest of the source that it was made from: the tests need not empty the cache."""
        digest = hashlib.sha256()
        for file in sorted((self.folder / "src").rglob("*.py")):
            digest.update(f"{file} ".encode() + file.read_bytes())
        folder = self.folder / ".pytest_cache" / "ptxlab"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / "sources.txt").write_text(digest.hexdigest())


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (12 << 30, 12 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    if options.evidence:
        return _write_evidence(options.evidence)
    end = time.monotonic() + options.seconds
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    wanted = list(_wanted(options))
    with ThreadPoolExecutor(options.processes) as pool:
        trees = list(pool.map(lambda number: _copy(Path(options.scratch), number), range(options.processes)))
        files = sorted({file for site in dict(wanted).values() for file in tests_of(site)})
        given = json.loads(Path(options.baseline).read_text()) if options.baseline else None
        baseline = Baseline(**given) if given else _measure(pool, trees, files)
        (out / "baseline.json").write_text(json.dumps(vars(baseline), indent=1))
        print(f"{sum(baseline.seconds.values()):.0f} s of tests, left out: {len(baseline.failing)}", flush=True)
        _share_cache(trees)
        queue: Queue[tuple[int, Site]] = Queue()
        for mutant in wanted:
            queue.put(mutant)
        found = pool.map(lambda tree: _judge_all(tree, queue, baseline, out / "mutants.jsonl", end), trees)
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
    parser.add_argument("--packages", default=",".join(TESTS))
    parser.add_argument("--baseline", help="of an earlier run, on the same machine")
    parser.add_argument("--done", nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--evidence", nargs="*")
    return parser.parse_args(arguments)


def draw(seed: int, count: int, packages: list[str]) -> list[Site]:
    """So many places of these packages, no two the same; of a seed and a state of the source always the same ones."""
    return random.Random(seed).sample(sites(ROOT, packages), count)


def _wanted(options: argparse.Namespace) -> Iterator[tuple[int, Site]]:
    first, _, last = options.numbers.partition(":")
    done = {one["number"] for name in options.done for one in _lines(name)}
    only = {one["number"] for name in options.only for one in _lines(name) if one["outcome"] == "survived"}
    for number, site in enumerate(draw(options.seed, options.count, options.packages.split(","))):
        is_asked = int(first or 0) <= number < int(last or options.count)
        if is_asked and number not in done and (not options.only or number in only):
            yield number, site


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


@cache
def _files(folder: str) -> tuple[str, ...]:
    """The files of a folder of tests; of the cases, its folders."""
    home = ROOT / "tests" / folder
    found = home.iterdir() if folder == "cases" else home.rglob("test_*.py")
    return tuple(sorted(str(one.relative_to(ROOT)) for one in found if one.is_dir() or one.suffix == ".py"
                        if not one.name.startswith("__")))  # fmt: skip


def tests_of(site: Site) -> list[str]:
    """The files of tests that run a package."""
    package = Path(site.file).parts[2]
    return [file for folder in TESTS[package].split() for file in _files(folder)]


def ordered(site: Site, files: list[str], seconds: dict[str, float]) -> list[str]:
    """Files in the order in which they are likely to notice a change soon: of its subject first, then short ones."""
    words = {_singular(word) for word in re.findall(r"[a-z]+", Path(site.file).stem)}
    module = ".".join(Path(site.file).with_suffix("").parts[1:])

    def rank(file: str) -> tuple[int, float]:
        own = {_singular(word) for word in re.findall(r"[a-z]+", Path(file).stem)}
        path = ROOT / file
        is_named = path.is_file() and (
            module in path.read_text() or f"import {Path(site.file).stem}" in path.read_text()
        )
        return -len(words & own) - 2 * is_named, seconds.get(file, 1.0)

    return sorted(files, key=rank)


def _singular(word: str) -> str:
    return word.removesuffix("s")


def _copy(scratch: Path, number: int) -> Tree:
    folder = scratch / f"tree{number}"
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)
    return Tree(folder, scratch)


def _measure(pool: ThreadPoolExecutor, trees: list[Tree], files: list[str]) -> Baseline:
    """Run all tests without any change."""
    baseline, queue = Baseline(), Queue[str]()
    for file in sorted(files, key=lambda file: -(ROOT / file).stat().st_size):
        queue.put(file)

    def run(tree: Tree) -> None:
        with suppress(Empty):
            while True:
                file = queue.get_nowait()
                status, ended = tree.test([file], seconds=400)
                baseline.seconds[file] += sum(seconds for _, what, seconds in ended if what == "ended")
                last = {test: what for test, what, _ in ended}
                baseline.failing += {test for test, what, _ in ended if what == "failed"}
                baseline.failing += [test for test, what in last.items() if what == "started"]
                if status not in (0, 1, 5):
                    print(f"{file}: pytest ended with {status}", flush=True)

    list(pool.map(run, trees))
    return baseline


def _share_cache(trees: list[Tree]) -> None:
    """What one process has compiled, or asked ptxas, need not be done by another."""
    caches = [tree.folder / ".pytest_cache" / "ptxlab" for tree in trees]
    for cache_ in caches:
        for file in cache_.iterdir() if cache_.exists() else ():
            for other in caches:
                if file.is_file() and not (other / file.name).exists():
                    other.mkdir(mode=0o700, parents=True, exist_ok=True)
                    shutil.copy2(file, other / file.name)


def _judge_all(tree: Tree, queue: "Queue[tuple[int, Site]]", baseline: Baseline, out: Path, end: float) -> int:
    count = 0
    with suppress(Empty):
        while time.monotonic() < end - 5:
            number, site = queue.get_nowait()
            record = _judge(tree, site, baseline, end)
            if record is None:
                break
            with out.open("a") as file:
                file.write(json.dumps({"number": number, **record}) + "\n")
            print(number, record["outcome"], site.file, site.line, record.get("by", ""), flush=True)
            count += 1
    return count


def _judge(tree: Tree, site: Site, baseline: Baseline, end: float) -> dict[str, object] | None:
    """What comes of a mutant; None where there was no time for it."""
    start = time.monotonic()
    path = tree.folder / site.file
    source = path.read_bytes()
    changed = site.apply(source)
    record: dict[str, object] = {"file": site.file, "line": site.line, **site.show(source)}
    try:
        compile(changed, site.file, "exec")
    except SyntaxError:
        return record | {"outcome": "no program", "seconds": 0}
    files = ordered(site, tests_of(site), baseline.seconds)
    chosen = {file.split("::")[0] for file in files}
    skipped = [f"--deselect={test}" for test in baseline.failing if any(test.startswith(file) for file in chosen)]
    try:
        path.write_bytes(changed)
        tree.keep_cache()
        # Machine code that is made again takes its time; what takes much longer than that has no end.
        limit = 300 + 3 * sum(baseline.seconds.get(file, 1) for file in files)
        status, ended = tree.test(files, "-x", *skipped, seconds=min(limit, end - start))
    finally:
        path.write_bytes(source)
    took = time.monotonic() - start
    if status is None and took < limit:
        return None
    if status == 0:
        return record | {"outcome": "survived", "tests": len(ended) // 2, "seconds": round(took, 1)}
    by = ended[-1][0] if ended else "the start of pytest"
    outcome = "killed" if status is not None and status > 0 else "crashed" if status else "endless"
    return record | {"outcome": outcome, "by": by, "tests": len(ended) // 2, "seconds": round(took, 1)}


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
    """The share of mutants that are noticed, of those that change what the program does."""
    made = [one for one in records if one["outcome"] != "no program"]
    survived = [one for one in made if one["outcome"] == "survived"]
    packages: dict[str, Counter[str]] = {}
    for one in made:
        packages.setdefault(Path(one["file"]).parts[2], Counter())[one["outcome"]] += 1
    for one in survived:
        one["judged"] = judged.get(_key(one), "not judged")
    equivalent = [one for one in survived if str(one["judged"]).startswith("equivalent")]
    return {
        "command": "python -m tests.mutants",
        "mutants": len(made),
        "noticed": len(made) - len(survived),
        "equivalent": len(equivalent),
        "share_noticed": round((len(made) - len(survived)) / max(1, len(made) - len(equivalent)), 4),
        "packages": {name: dict(sorted(count.items())) for name, count in sorted(packages.items())},
        "survivors": sorted(survived, key=lambda one: int(one["number"])),
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
