"""Which tests reach a line: a plugin of pytest that writes it to `$REACHED_FILE`, and what reads such files.

`REACHED_FILE=flow.json REACHED_PACKAGES=flow pytest -p tests.mutants.reached tests/flow`, with `coverage` installed.
The lines of these packages that are run as they are imported are reached by no test. Results that the source
keeps (`functools.cache`) are forgotten before each file of tests, so that what the first file computes is reached by
the next one, too. Each statement of a native function stores to a byte of its own, so that what is machine code is
known as well; nothing is taken from the cache of machine code, so that what makes it is reached.
"""

import ast
import ctypes
import functools
import gc
import json
import os
import sys
import time
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/ptxlab"


class Reached:
    """The tests that reach each line, and their seconds, by the files that `Recorder` has written.

    What a process does that a test starts is not known: such tests are not among these.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self.seconds: dict[str, float] = {}
        self._lines: dict[tuple[str, int], list[str]] = {}
        self._first: set[str] = set()
        self._imported: set[tuple[str, int]] = set()
        for name in names:
            read = json.loads(Path(name).read_text())
            tests = list(read["seconds"])
            self._first.update(tests[:1])
            self.seconds.update((test, read["seconds"][test]) for test in tests if test not in read["starting"])
            self._imported.update((file, line) for file, lines in read["imported"].items() for line in lines)
            for file, lines in read["lines"].items():
                for line, numbers in lines.items():
                    self._lines.setdefault((file, int(line)), []).extend(tests[number] for number in numbers)

    def __call__(self, file: str, line: int) -> list[str]:
        """The tests that reach a line; none where it is run as its module is imported, or once in a process."""
        found = self._lines.get((file, line), [])
        return [] if self._first.issuperset(found) else found

    def is_run(self, file: str, line: int) -> bool:
        """Whether anything runs a line, be it an import."""
        return (file, line) in self._imported or (file, line) in self._lines


class Statements:
    """The statements of native functions that are run: a byte of memory for each."""

    def __init__(self) -> None:
        self.bytes = (ctypes.c_uint8 * (1 << 18))()
        self.places: dict[tuple[str, int, int], int] = {}

    def watch(self) -> None:
        """Translate native functions so that their statements say when they are run."""
        from ptxlab.native.statements import Statements as Translated

        translate = Translated._block

        def block(function: Translated, statements: Sequence[ast.stmt]) -> None:
            for statement in statements:
                if not function.builder.is_closed:
                    function.builder.emit(f"store i8 1, ptr inttoptr (i64 {self._address(function, statement)} to ptr)")
                    translate(function, [statement])

        Translated._block = block  # type: ignore[assignment, method-assign]

    def _address(self, function: Any, statement: ast.stmt) -> int:
        body = getattr(statement, "body", None)
        end = body[0].lineno - 1 if body else statement.end_lineno or 0
        place = (str(function.signature.function.__code__.co_filename), statement.lineno, max(end, statement.lineno))
        return ctypes.addressof(self.bytes) + self.places.setdefault(place, len(self.places))

    def take(self) -> list[int]:
        """The statements that were run since it was asked before."""
        assert len(self.places) <= len(self.bytes)
        found = [number for number, one in enumerate(bytes(self.bytes)[: len(self.places)]) if one]
        ctypes.memset(self.bytes, 0, len(self.places))
        return found


class Recorder:
    """The plugin: from before the source is imported until the last test has ended."""

    def __init__(self) -> None:
        import coverage  # type: ignore[import-not-found, unused-ignore]

        self.file = Path(os.environ["REACHED_FILE"])
        self.seconds: dict[str, float] = {}
        self.last = self.current = ""
        self.statements = Statements()
        self.run: dict[str, list[int]] = {}
        self.starting: dict[str, None] = {}
        self.coverage = coverage.Coverage(data_file=None, source=[str(SOURCE)], config_file=False, messages=False)
        self.coverage.start()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionstart(self) -> None:
        """Watch native code, which is made in this process; and import what no test is to be taken for."""
        os.environ["PTXLAB_CACHE"] = ""
        self.statements.watch()
        sys.addaudithook(self._heard)
        for package in os.environ["REACHED_PACKAGES"].split(","):
            for module in walk_packages([str(SOURCE / package)], f"ptxlab.{package}."):
                import_module(module.name)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector):  # type: ignore[no-untyped-def]
        """What a module of tests computes as it is imported, all of its tests reach."""
        if isinstance(collector, pytest.Module):
            _forget()
            self.coverage.switch_context(collector.nodeid)
        try:
            return (yield)
        finally:
            self.coverage.switch_context("")

    def _heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and self.current and not _is_compiling(arguments[1]):
            self.starting[self.current] = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item):  # type: ignore[no-untyped-def]
        """One test."""
        if self.last != item.nodeid.partition("::")[0]:
            self.last = item.nodeid.partition("::")[0]
            _forget()
        self.current = item.nodeid
        self.coverage.switch_context(item.nodeid)
        self.statements.take()
        started = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.monotonic() - started, 3)
            self.run[item.nodeid] = self.statements.take()

    def pytest_sessionfinish(self) -> None:
        """Write the lines of all tests."""
        self.coverage.stop()
        numbers: dict[str, set[int]] = {"": set()}  # of a test, and of all tests of a file
        for number, test in enumerate(self.seconds):
            numbers[test] = {number}
            numbers.setdefault(test.partition("::")[0], set()).add(number)
        data = self.coverage.get_data()
        lines: dict[str, dict[int, set[int]]] = {}
        imported: dict[str, list[int]] = {}
        for file in sorted(data.measured_files()):
            known = lines[str(Path(file).relative_to(ROOT))] = {}
            before = imported[str(Path(file).relative_to(ROOT))] = []
            for line, tests in data.contexts_by_lineno(file).items():
                known[line] = {number for one in tests for number in numbers.get(one, ())}
                before += [line] * ("" in tests)
        places = list(self.statements.places)
        for test, statements in self.run.items():
            for file, first, last in map(places.__getitem__, statements):
                known = lines.setdefault(str(Path(file).relative_to(ROOT)), {})
                for line in range(first, last + 1):
                    known.setdefault(line, set()).update(numbers[test])
        shown = {file: {line: sorted(all) for line, all in known.items() if all} for file, known in lines.items()}
        found = {"seconds": self.seconds, "starting": [*self.starting], "lines": shown, "imported": imported}
        self.file.write_text(json.dumps(found))


def _is_compiling(command: Sequence[Any]) -> bool:
    """Whether a process does nothing but turn texts into others: LLVM, ptxas, nvcc."""
    words = " ".join(map(str, command))
    return "ptxlab.native.apart" in words or Path(str(command[0])).name in ("ptxas", "nvdisasm", "nvcc", "cuobjdump")


def _forget() -> None:
    """Empty the caches of functions of the source, other than those of machine code that is loaded."""
    modules = {name for name in sys.modules if name.startswith("ptxlab")}
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and one.__module__ in modules:
            one.cache_clear()


if "REACHED_FILE" in os.environ:

    def pytest_configure(config: pytest.Config) -> None:
        config.pluginmanager.register(_recorder)

    _recorder = Recorder()
