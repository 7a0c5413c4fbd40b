"""Which tests reach a line: a plugin of pytest that writes it to `$REACHED_FILE`, and what reads such files.

`REACHED_FILE=flow.json pytest -p tests.mutants.reached tests/flow`, with `coverage` installed. Results that the source
keeps (`functools.cache`) are forgotten before each file of tests, so that what the first file computes is reached by
the next one, too.
"""

import functools
import gc
import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src/ptxlab"
# What becomes machine code, and what makes it: no line of it is run by the tests that use the code.
COMPILED = tuple(f"src/ptxlab/{name}/" for name in ("emulate/runtime", "emulate/translate", "isa", "native"))


class Reached:
    """The tests that reach each line, and their seconds, by the files that `Recorder` has written."""

    def __init__(self, names: Iterable[str]) -> None:
        self.seconds: dict[str, float] = {}
        self._lines: dict[tuple[str, int], list[str]] = {}
        for name in names:
            read = json.loads(Path(name).read_text())
            tests = list(read["seconds"])
            self.seconds.update(read["seconds"])
            for file, lines in read["lines"].items():
                for line, numbers in lines.items():
                    self._lines.setdefault((file, int(line)), []).extend(tests[number] for number in numbers)

    def __call__(self, file: str, line: int) -> list[str]:
        """The tests that reach a line; none where it is run as its module is imported, or compiled."""
        return [] if file.startswith(COMPILED) else self._lines.get((file, line), [])


class Recorder:
    """The plugin: from before the source is imported until the last test has ended."""

    def __init__(self) -> None:
        import coverage  # type: ignore[import-not-found]

        self.file = Path(os.environ["REACHED_FILE"])
        self.seconds: dict[str, float] = {}
        self.last = ""
        self.coverage = coverage.Coverage(data_file=None, source=[str(SOURCE)], config_file=False, messages=False)
        self.coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item):  # type: ignore[no-untyped-def]
        """One test."""
        if self.last != item.nodeid.partition("::")[0]:
            self.last = item.nodeid.partition("::")[0]
            _forget()
        self.coverage.switch_context(item.nodeid)
        started = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.monotonic() - started, 3)

    def pytest_sessionfinish(self) -> None:
        """Write the lines of all tests."""
        self.coverage.stop()
        numbers = {test: number for number, test in enumerate(self.seconds)}
        data = self.coverage.get_data()
        lines = {}
        for file in sorted(data.measured_files()):
            tests = {line: [numbers[one] for one in all if one] for line, all in data.contexts_by_lineno(file).items()}
            lines[str(Path(file).relative_to(ROOT))] = {line: all for line, all in sorted(tests.items()) if all}
        self.file.write_text(json.dumps({"seconds": self.seconds, "lines": lines}))


def _forget() -> None:
    """Empty the caches of functions of the source."""
    modules = {name for name in sys.modules if name.startswith("ptxlab")}
    for one in gc.get_objects():
        if isinstance(one, functools._lru_cache_wrapper) and one.__module__ in modules:
            one.cache_clear()


if "REACHED_FILE" in os.environ:

    def pytest_configure(config: pytest.Config) -> None:
        config.pluginmanager.register(_recorder)

    _recorder = Recorder()
