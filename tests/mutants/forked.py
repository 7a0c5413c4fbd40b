"""Mutants judged in forks of one process: `python -m tests.mutants.forked --out FOLDER --reached FILE...`.

That process collects the tests once, and has a runtime with all native mutants as variants (`switched.py`). For each
mutant it forks; the child has the code of the changed function in place of the old one, and runs the tests that reach
its line, the nearest files first, until one fails: those of the first seconds, and with `--all N` all of them on N of
the mutants that passed. A test that notices a change has to pass without one, in a child as well. What is run as a
module is imported is not judged here: `python -m tests.mutants --done FOLDER/mutants.jsonl` does that, and what passed.
"""

import argparse
import faulthandler
import functools
import gc
import json
import os
import random
import resource
import signal
import sys
import time
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import __main__ as judging
from tests.mutants.__main__ import DEFAULT, FIRST_PASSED, Baseline, Run, Turn, draw, files_of
from tests.mutants.reached import Reached
from tests.mutants.sites import Site
from tests.mutants.trees import MEMORY, ROOT, of_kernels

LONGEST = 20  # CPU seconds of one test, most of which take less than one
MOST = 400  # of a mutant
WAITING = 90  # seconds of one test, by the clock: it may wait for what never comes


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="build/mutants")
    parser.add_argument("--seed", type=int, default=34)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--packages", default=DEFAULT.replace(" ", ","))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--done", nargs="*", default=[], help="what earlier runs of the same mutants have judged")
    parser.add_argument("--reached", nargs="+", required=True, help="which tests reach a line, and their seconds")
    parser.add_argument("--first", type=float, default=judging.FIRST, help="seconds of tests that are run first")
    parser.add_argument("--all", type=int, default=0, help="of those that pass the first tests, run all on so many")
    options = parser.parse_args(arguments)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    judging.FIRST, judging.SHORT = options.first, options.first / 2
    drawn = dict(enumerate(draw(options.seed, options.count, options.packages.split(",")), 1))
    done = {judging._key(one) for name in options.done for one in judging._lines(name) if not judging._is_open(one)}
    drawn = {number: site for number, site in drawn.items() if judging._key(judging._shown(site)) not in done}
    plugin = Judge(options, drawn)
    files = sorted({str(ROOT / file) for site in drawn.values() for file in files_of(site.package)})
    plugins = ["-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    return int(pytest.main(["-q", "-x", *plugins, *files], [plugin]))


class Judge:
    """The plugin: in place of the tests, it runs some of them for each mutant."""

    def __init__(self, options: argparse.Namespace, drawn: dict[int, Site]) -> None:
        self.options, self.drawn = options, drawn
        self.end = time.monotonic() + options.seconds
        reached = Reached(options.reached)
        self.run = Run(Baseline(reached.seconds), reached, Path(os.devnull), self.end)
        self.out = Path(options.out)
        self.passing: dict[tuple[str, bool], bool] = {}  # tests in a child without a change, with a cache or not

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge all mutants, so many at a time."""
        self.items = {item.nodeid: item for item in session.items}
        seconds = self.run.baseline.seconds
        self.run.baseline.seconds = {test: seconds[test] for test in seconds if test in self.items}
        self.sources = {site.file: (ROOT / site.file).read_bytes() for site in self.drawn.values()}
        self._prepare()
        self.out.mkdir(parents=True, exist_ok=True)
        running: dict[int, tuple[Turn, Path]] = {}
        turns = [Turn(False, number, site, 0.0) for number, site in self.drawn.items()]
        passed: list[Turn] = []
        while turns or running or (passed and self.options.all):
            if not turns and not running:  # some of those that passed, at random
                chosen = random.Random(0).sample(passed, min(self.options.all, len(passed)))
                turns, passed = [Turn(True, one.number, one.site, one.cpu) for one in chosen], []
            while turns and len(running) < self.options.processes and time.monotonic() < self.end:
                turn = turns.pop(0)
                said = self.out / f"{turn.number}.txt"
                running[self._start(turn, self.run.chosen(turn), said)] = turn, said
            if not running:
                break
            process, status, used = os.wait4(-1, 0)
            turn, said = running.pop(process)
            turn.cpu += used.ru_utime + used.ru_stime
            record = self._record(turn, _taken(said), status)
            if "by" in record and "::" in record["by"] and not self._passes(record["by"], turn.site):
                self.run.baseline.seconds.pop(record["by"], None)
                turns.insert(0, turn)
                continue
            if record["outcome"] == FIRST_PASSED:
                passed.append(turn)
            with (self.out / "mutants.jsonl").open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(record["number"], record["outcome"], record["file"], record["line"], record.get("by", ""), flush=True)
        return True

    def _prepare(self) -> None:
        """Make what all children have: the modules, and the runtime with its mutants."""
        for file in self.sources:
            import_module(".".join(Path(file).with_suffix("").parts[1:]).removesuffix(".__init__"))
        gc.unfreeze()  # so that `gc.get_objects` has what was there when tests were collected
        from tests.mutants.switched import Switched, install_runtime

        self.switched = Switched(self.drawn)
        self.switched.install()
        install_runtime(False, True)

    def _passes(self, test: str, site: Site) -> bool:
        """Whether a test passes in a child without any change."""
        key = test, site.file in of_kernels()
        if key not in self.passing:
            said = self.out / "0.txt"
            os.waitpid(self._start(Turn(False, 0, site, 0.0), [test], said), 0)
            self.passing[key] = _taken(said)[-1:] == ["passed"]
        return self.passing[key]

    def _start(self, turn: Turn, tests: list[str], said: Path) -> int:
        """A child that judges a mutant, or none if its number is 0, and writes what comes of it."""
        sys.stdout.flush()
        process = os.fork()
        if process:
            return process
        status = 1
        try:
            with said.open("w", buffering=1) as file:
                try:
                    self._judge(turn, tests, lambda text: print(text, file=file))
                except BaseException as problem:
                    print(f"judge: {problem!r}", file=file)
                    raise
            status = 0
        finally:
            os._exit(status)

    def _judge(self, turn: Turn, tests: list[str], say: Callable[[str], object]) -> None:
        """In the child: make the change, and run tests until one fails."""
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        faulthandler.disable()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        if not self._change(turn, say):
            return
        watching = _Watching(say)
        items = [self.items[test] for test in tests]
        for item in items[:1]:
            item.config.pluginmanager.register(watching)
        for item, following in zip(items, (*items[1:], None), strict=False):
            used = int(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (min(used + LONGEST, MOST), MOST + 10))
            signal.alarm(WAITING)
            say(f"started {item.nodeid}")
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if watching.failed:
                say("failed")
                return
        say("passed")

    def _change(self, turn: Turn, say: Callable[[str], object]) -> bool:
        """Make the change; false where that says already what comes of it."""
        site, number = turn.site, turn.number
        source = self.sources[site.file]
        if number in self.switched.refused:
            say("refused")
            return False
        is_native = number in self.switched.translated
        self.switched.number.value = number if is_native else 0
        try:
            changed = swap(str(ROOT / site.file), source, site.apply(source)) if number else 1
        except SyntaxError:
            say("no program")
            return False
        if not changed and not is_native:
            say("imported")
            return False
        if site.file in of_kernels():
            os.environ["PTXLAB_CACHE"] = ""
        forget()
        return True

    def _record(self, turn: Turn, said: list[str], status: int) -> dict[str, Any]:
        site = turn.site
        record = {"number": turn.number, "file": site.file, "line": site.line, **site.show(self.sources[site.file])}
        record |= {"tests": sum(line.startswith("started") for line in said), "cpu": round(turn.cpu, 1)}
        last = said[-1] if said else ""
        if last.startswith("judge: "):  # the mistake of this program
            return record | {"outcome": FIRST_PASSED, "problem": last}
        by = next((line.removeprefix("started ") for line in reversed(said) if line.startswith("started")), "")
        if last in ("imported", "no program"):
            return record | {"outcome": FIRST_PASSED if last == "imported" else last, "imported": last == "imported"}
        if last == "refused":
            return record | {"outcome": "killed", "by": "the compiler of native code"}
        if last == "passed":
            return record | {"outcome": "survived" if turn.is_last else FIRST_PASSED}
        if last == "failed":
            return record | {"outcome": "killed", "by": by}
        is_late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL)
        return record | {"outcome": "endless" if is_late else "crashed", "by": by}


class _Watching:
    """What a child knows of its tests."""

    def __init__(self, say: Callable[[str], object]) -> None:
        self.say = say
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed


def swap(file: str, before: bytes, after: bytes) -> int:
    """Put the code of changed functions in place of the old, wherever they are; how many functions have it now."""
    old, new = _codes(compile(before, file, "exec")), _codes(compile(after, file, "exec"))
    differing = {key for key in old if key in new and old[key] != new[key]}
    count = 0
    for one in gc.get_objects():
        if isinstance(one, types.FunctionType) and one.__code__.co_filename == file:
            key = one.__code__.co_qualname, one.__code__.co_firstlineno
            if key in differing and new[key].co_freevars == one.__code__.co_freevars:
                one.__code__ = new[key]
                count += 1
    return count


def _codes(module: types.CodeType) -> dict[tuple[str, int], types.CodeType]:
    """The code of all functions in a module."""

    def inside(code: types.CodeType) -> Iterator[types.CodeType]:
        for one in code.co_consts:
            if isinstance(one, types.CodeType):
                yield one
                yield from inside(one)

    return {(code.co_qualname, code.co_firstlineno): code for code in inside(module)}


def forget() -> None:
    """Empty the caches of functions of ptxlab."""
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and (one.__module__ or "").startswith("ptxlab."):
            one.cache_clear()


def _taken(said: Path) -> list[str]:
    """What a child has said."""
    lines = said.read_text().splitlines() if said.exists() else []
    said.unlink(missing_ok=True)
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
