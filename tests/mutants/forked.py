"""Mutants judged in forks of one process: `python -m tests.mutants.forked --out FOLDER --reached FILE...`.

That process collects the tests once, and has a runtime with all native mutants as variants (`switched.py`). For each
mutant it forks; the child has the code of the changed function in place of the old one, and runs the tests that reach
its line, the nearest files first, until one fails: those of the first seconds. Mutants that pass these are judged to
the end in groups of different files: a child has all changes of a group, and runs tests that reach any of them. Where
one fails, it is run on each mutant alone. So a test that passes is run once for a group, and only a change that
another one of its group hides passes unseen.

A mutant is noticed by a test that fails in a child of its own with the change, and passes in one without any. What is
run as modules are imported is not judged here: `python -m tests.mutants --done FOLDER/mutants.jsonl` does that. What no
test reaches has survived.
`FOLDER/mutants.jsonl` has a line for each mutant as it is judged, and `FOLDER/passed.jsonl` which tests have passed on
which: `--done FOLDER...` continues.
"""

import argparse
import faulthandler
import functools
import gc
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import types
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest

from tests.mutants import __main__ as judging
from tests.mutants.__main__ import DEFAULT, FIRST_PASSED, Baseline, Run, Turn, draw, files_of
from tests.mutants.reached import Reached
from tests.mutants.sites import Site
from tests.mutants.trees import MEMORY, ROOT, of_kernels

LONGEST = 20  # CPU seconds of one test, most of which take less than one
MOST = 400  # of a child
WAITING = 90  # seconds of one test, by the clock: it may wait for what never comes
GROUP = 16  # mutants that are judged together
PIECE = 60  # seconds of tests that one child runs for a group
GRACE = 10  # seconds after the end, in which children come to theirs


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="build/mutants")
    parser.add_argument("--seed", type=int, default=34)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--packages", default=DEFAULT.replace(" ", ","))
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--done", nargs="*", default=[], help="folders of earlier runs of the same mutants")
    parser.add_argument("--reached", nargs="+", required=True, help="which tests reach a line, and their seconds")
    parser.add_argument("--first", type=float, default=judging.FIRST, help="seconds of tests that are run first")
    parser.add_argument("--group", type=int, default=GROUP, help="mutants that are judged together; 0: none to the end")
    options = parser.parse_args(arguments)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    judging.FIRST, judging.SHORT = options.first, options.first / 2
    drawn = dict(enumerate(draw(options.seed, options.count, options.packages.split(",")), 1))
    plugin = Judge(options, drawn)
    files = sorted({str(ROOT / file) for site in drawn.values() for file in files_of(site.package)})
    plugins = ["-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider", "--rootdir", str(ROOT)]
    return int(pytest.main(["-q", "-x", *plugins, *files], [plugin]))


@dataclass(eq=False)
class Mutant:
    """A mutant, and what is known of it."""

    number: int
    site: Site
    first: list[str]  # the nearest tests
    tests: list[str]  # all that reach its line
    passed: set[str]
    cpu: float = 0.0
    outcome: str = ""

    def left(self) -> list[str]:
        """The tests that were not run on it, or on a group that it was in."""
        return [test for test in self.tests if test not in self.passed]


@dataclass
class Question:
    """Which mutants of a task a test notices that failed on all of them; then the `rest` of the tests is run."""

    rest: "Task"
    open: int


@dataclass
class Task:
    """Tests for one child, with the changes of all these mutants; for one mutant and test perhaps an answer."""

    mutants: list[Mutant]
    tests: list[str]
    answers: Question | None = None
    without: tuple[str, bool] | None = None  # no change is made: which test it is, and whether there is a cache


class Judge:
    """The plugin: in place of the tests, it runs some of them for each mutant."""

    def __init__(self, options: argparse.Namespace, drawn: dict[int, Site]) -> None:
        self.options, self.drawn = options, drawn
        self.end = time.monotonic() + options.seconds
        self.out = Path(options.out)
        self.scratch = Path(tempfile.mkdtemp(prefix="mutants-"))
        self.passing: dict[tuple[str, bool], bool] = {}  # tests in a child without a change, with a cache or not
        self.unsure: dict[tuple[str, bool], list[tuple[Mutant, str]]] = {}  # what became of mutants, if they do
        self.tasks: deque[Task] = deque()
        self.children = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judge all mutants, so many children at a time: first each alone, then in groups what passed."""
        self.items = {item.nodeid: item for item in session.items}
        self.sources = {site.file: (ROOT / site.file).read_bytes() for site in self.drawn.values()}
        self.out.mkdir(parents=True, exist_ok=True)
        self._prepare()
        mutants = list(self._open())
        print(f"{len(self.items)} tests, {len(mutants)} mutants", flush=True)
        self.tasks.extend(
            Task([one], one.first) for one in mutants if not one.tests or not one.passed.issuperset(one.first)
        )
        self._run()
        if self.options.group:
            self.tasks.extend(self._grouped([one for one in mutants if not one.outcome and one.passed and one.left()]))
            self._run()
        for one in mutants:
            if not one.outcome:
                self._conclude(one, FIRST_PASSED if one.left() else "survived")
        shutil.rmtree(self.scratch)
        return True

    def _prepare(self) -> None:
        """Make what all children have: the modules, and the runtime with its mutants."""
        cache = self.scratch / "cache"  # of this process alone: machine code of kernels has addresses of its memory
        cache.mkdir(mode=0o700)
        for answers in Path(os.environ["PTXLAB_CACHE"]).glob("answers.sqlite*"):  # of ptxas
            shutil.copy(answers, cache)
        os.environ["PTXLAB_CACHE"] = str(cache)
        for package in self.options.packages.split(","):
            for module in walk_packages([str(ROOT / "src/ptxlab" / package)], f"ptxlab.{package}."):
                import_module(module.name)
        gc.unfreeze()  # so that `gc.get_objects` has what was there when tests were collected
        self.loaded = Loaded()
        from tests.mutants.switched import Switched, install_runtime

        self.switched = Switched(self.drawn)
        self.switched.install()
        install_runtime(False, True)
        gc.freeze()

    def _open(self) -> Iterator[Mutant]:
        """The mutants that are not judged yet."""
        reached = self.reached = Reached(self.options.reached)
        self.seconds = {test: seconds for test, seconds in reached.seconds.items() if test in self.items}
        run = Run(Baseline(self.seconds), reached, Path(os.devnull), self.end)
        judged, passed = set[str](), dict[int, set[str]]()
        for folder in self.options.done:
            lines = judging._lines(f"{folder}/mutants.jsonl")
            judged.update(judging._key(one) for one in lines if not judging._is_open(one))
            for one in judging._lines(f"{folder}/passed.jsonl"):
                for number in one["mutants"]:
                    passed.setdefault(number, set()).update(one["tests"])
        for number, site in self.drawn.items():
            if judging._key(judging._shown(site)) not in judged:
                one = Mutant(number, site, [], [], passed.get(number, set()))
                if reached(site.file, site.line):
                    one.first, others = (run.chosen(Turn(is_last, number, site, 0.0)) for is_last in (False, True))
                    one.tests = [*one.first, *others]
                yield one

    def _grouped(self, left: list[Mutant]) -> Iterator[Task]:
        """Groups of different files, either all of what kernels are made from or none, which then are in the cache."""
        groups: list[list[Mutant]] = []
        for one in random.Random(0).sample(left, len(left)):
            for group in groups:
                alike = (one.site.file in of_kernels()) == (group[0].site.file in of_kernels())
                if alike and len(group) < self.options.group and all(one.site.file != it.site.file for it in group):
                    group.append(one)
                    break
            else:
                groups.append([one])
        print(f"{len(left)} mutants are judged in {len(groups)} groups", flush=True)
        for group in groups:
            wanted = {test for mutant in group for test in mutant.left()}
            pieces: dict[int, list[str]] = {}
            seconds = 0.0
            for test in filter(wanted.__contains__, self.items):
                pieces.setdefault(int(seconds / PIECE), []).append(test)
                seconds += self.seconds[test]
            yield from (Task(group, piece) for piece in pieces.values())

    def _run(self) -> None:
        """Run all tasks, until the time is over."""
        running: dict[int, tuple[Task, Path]] = {}
        while running or (self.tasks and time.monotonic() < self.end):
            while self.tasks and len(running) < self.options.processes and time.monotonic() < self.end:
                task = self.tasks.popleft()
                task = replace(task, mutants=[one for one in task.mutants if not one.outcome])
                if task.mutants or task.without:
                    self.children += 1
                    said = self.scratch / f"{self.children}.txt"
                    running[self._start(task, said)] = task, said
                elif task.answers:
                    self._answer(task.answers)
            if running:
                process, status, used = os.wait4(-1, 0)
                task, said = running.pop(process)
                for one in task.mutants:
                    one.cpu += (used.ru_utime + used.ru_stime) / len(task.mutants)
                self._ended(task, _taken(said), status)

    def _ended(self, task: Task, said: list[str], status: int) -> None:
        """Draw conclusions from what a child has said."""
        last = said[-1] if said else ""
        if task.without:
            self.passing[task.without] = last == "passed"
            for one, outcome in self.unsure.pop(task.without):
                self._decide(one, outcome, task.without)
            return
        if last.startswith("judge: ") or not said:  # a mistake of this program: what it ran does not count
            print(last or f"a child ended with {status}", flush=True)
            return
        if last in ("imported", "no program", "refused"):
            (one,) = task.mutants
            outcome = {"imported": FIRST_PASSED, "refused": "killed"}.get(last, last)
            self._conclude(one, outcome, "the compiler of native code" if last == "refused" else "", last)
            return
        if task.mutants and not task.tests:  # no test reaches it
            (one,) = task.mutants
            is_run = self.reached.is_run(one.site.file, one.site.line)
            self._conclude(one, FIRST_PASSED if is_run else "survived", "", "imported" if is_run else "")
            return
        started = [line.removeprefix("started ") for line in said if line.startswith("started ")]
        by = "" if last == "passed" else started[-1]
        is_late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGXCPU, signal.SIGKILL)
        if is_late and time.monotonic() >= self.end:
            by, started = "", started[:-1]
        passed = started[:-1] if by else started
        for one in task.mutants:
            one.passed.update(passed)
        if passed:
            with (self.out / "passed.jsonl").open("a") as file:
                file.write(json.dumps({"mutants": [one.number for one in task.mutants], "tests": passed}) + "\n")
        if by and len(task.mutants) == 1 and len(started) == 1:  # in a child of its own
            (one,) = task.mutants
            one.passed.add(by)  # or, if it fails without any change, nothing is known of it
            key = by, one.site.file not in of_kernels()
            self._decide(one, "endless" if is_late else "killed" if last == "failed" else "crashed", key)
            if task.tests[1:]:
                self.tasks.append(Task(task.mutants, task.tests[1:]))
        elif by:
            question = Question(Task(task.mutants, task.tests[len(started) :]), len(task.mutants))
            self.tasks.extendleft(Task([one], [by], question) for one in task.mutants)
        if task.answers:
            self._answer(task.answers)

    def _decide(self, one: Mutant, outcome: str, key: tuple[str, bool]) -> None:
        """A test noticed a mutant, if it passes in a child without any change."""
        if key in self.passing:
            if self.passing[key] and not one.outcome:
                self._conclude(one, outcome, key[0])
            return
        if key not in self.unsure:
            self.tasks.appendleft(Task([], [key[0]], without=key))
        self.unsure.setdefault(key, []).append((one, outcome))

    def _answer(self, question: Question) -> None:
        """One of the mutants that a test was asked for is decided."""
        question.open -= 1
        if not question.open and question.rest.tests:
            self.tasks.appendleft(question.rest)

    def _conclude(self, one: Mutant, outcome: str, by: str = "", why: str = "") -> None:
        """Say what becomes of a mutant."""
        one.outcome = outcome
        site = one.site
        record: dict[str, Any] = {"number": one.number, "file": site.file, "line": site.line}
        record |= site.show(self.sources[site.file])
        record |= {"tests": len(one.passed), "cpu": round(one.cpu, 1), "outcome": outcome}
        record |= {"by": by} if by else {}
        record |= {"imported": True} if why == "imported" else {}
        with (self.out / "mutants.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(one.number, outcome, site.file, site.line, by, flush=True)

    def _start(self, task: Task, said: Path) -> int:
        """A child that runs tests with the changes of mutants, and writes what comes of it."""
        sys.stdout.flush()
        process = os.fork()
        if process:
            return process
        status = 1
        try:
            with said.open("w", buffering=1) as file:
                try:
                    self._judge(task, lambda text: print(text, file=file))
                except BaseException as problem:
                    print(f"judge: {problem!r}", file=file)
                    raise
            status = 0
        finally:
            os._exit(status)

    def _judge(self, task: Task, say: Callable[[str], object]) -> None:
        """In the child: make the changes, and run tests until one fails."""
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        faulthandler.disable()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
        is_cached = task.without[1] if task.without else task.mutants[0].site.file not in of_kernels()
        if not is_cached:
            os.environ["PTXLAB_CACHE"] = ""
        if not self._change(task.mutants, say):
            return
        watching = _Watching()
        items = [self.items[test] for test in task.tests]
        for item in items[:1]:
            item.config.pluginmanager.register(watching)
        for item, following in zip(items, (*items[1:], None), strict=False):
            used = int(time.process_time())
            resource.setrlimit(resource.RLIMIT_CPU, (min(used + LONGEST, MOST), MOST + 10))
            signal.alarm(max(1, min(WAITING, int(self.end + GRACE - time.monotonic()))))
            say(f"started {item.nodeid}")
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            refused = self.switched.refused.intersection(one.number for one in task.mutants)  # by what it translated
            if watching.failed or refused:
                say("failed")
                return
        say("passed")

    def _change(self, mutants: list[Mutant], say: Callable[[str], object]) -> bool:
        """Make the changes; false where that says already what comes of a mutant."""
        if any(one.number in self.switched.refused for one in mutants):
            say("refused")
            return False
        self.switched.choose(one.number for one in mutants)
        sources = [(one.site.file, self.sources[one.site.file]) for one in mutants]
        try:
            changes = {
                str(ROOT / file): (source, one.site.apply(source))
                for one, (file, source) in zip(mutants, sources, strict=True)
            }
            changed = self.loaded.swap(changes)
        except SyntaxError:
            say("no program")
            return False
        if changed != changes.keys():
            say("imported")
            return False
        self.loaded.forget()
        return True


class _Watching:
    """What a child knows of its tests."""

    failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed


class Loaded:
    """The functions of Python that this process has, and caches of those of ptxlab.

    They are found before it forks: to ask all objects would copy them into each child.
    """

    def __init__(self) -> None:
        self.functions: dict[str, list[types.FunctionType]] = {}  # by their files
        self.caches: list[functools._lru_cache_wrapper[Any]] = []
        for one in gc.get_objects():
            if isinstance(one, types.FunctionType):
                self.functions.setdefault(one.__code__.co_filename, []).append(one)
            elif isinstance(one, functools._lru_cache_wrapper) and (one.__module__ or "").startswith("ptxlab."):
                self.caches.append(one)

    def swap(self, changes: dict[str, tuple[bytes, bytes]]) -> set[str]:
        """Put the code of changed functions of files in place of the old, wherever they are; in which files."""
        files = set[str]()
        for file, (before, after) in changes.items():
            old, new = _codes(compile(before, file, "exec")), _codes(compile(after, file, "exec"))
            for one in self.functions.get(file, ()):
                key = one.__code__.co_qualname, one.__code__.co_firstlineno
                if key in new and old[key] != new[key] and new[key].co_freevars == one.__code__.co_freevars:
                    one.__code__ = new[key]
                    files.add(file)
        return files

    def forget(self) -> None:
        """Empty the caches."""
        for one in self.caches:
            one.cache_clear()


def _codes(module: types.CodeType) -> dict[tuple[str, int], types.CodeType]:
    """The code of all functions in a module."""

    def inside(code: types.CodeType) -> Iterator[types.CodeType]:
        for one in code.co_consts:
            if isinstance(one, types.CodeType):
                yield one
                yield from inside(one)

    return {(code.co_qualname, code.co_firstlineno): code for code in inside(module)}


def _taken(said: Path) -> list[str]:
    """What a child has said."""
    lines = said.read_text().splitlines() if said.exists() else []
    said.unlink(missing_ok=True)
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
