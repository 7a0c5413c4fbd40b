"""A plugin of pytest: chooses tests, says how each ended in a file, and ends the process when one takes too long."""

import faulthandler
import json
import os
import time
from pathlib import Path

import pytest

SECONDS = float(os.environ["MUTANTS_SECONDS"])
FILE = Path(os.environ["MUTANTS_FILE"])
ONLY = os.environ.get("MUTANTS_ONLY")
_started = time.monotonic()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run only the tests that were asked for, in their order."""
    if ONLY is None:
        return
    wanted = {name: number for number, name in enumerate(Path(ONLY).read_text().splitlines())}
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
    items[:] = sorted(filter(lambda item: item.nodeid in wanted, items), key=lambda item: wanted[item.nodeid])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item):  # type: ignore[no-untyped-def]
    """One test, of at most so many seconds; native code cannot be interrupted, so that the process ends."""
    global _started
    _started = time.monotonic()
    _say(item.nodeid, "started")
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed or report.when == "teardown":
        _say(report.nodeid, "failed" if report.failed else "ended")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _say(report.nodeid, "failed")


def _say(test: str, what: str) -> None:
    with FILE.open("a") as file:
        file.write(json.dumps([test, what, round(time.monotonic() - _started, 3)]) + "\n")
