"""A plugin of pytest: says how each test ended in a file, and ends the process when one takes too long."""

import faulthandler
import json
import os
import time
from pathlib import Path

import pytest

SECONDS = float(os.environ["MUTANTS_SECONDS"])
FILE = Path(os.environ["MUTANTS_FILE"])
_started = time.monotonic()


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
