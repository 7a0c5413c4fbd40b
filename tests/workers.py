"""Tests shared among processes: one collects all of them and forks the others, which have everything loaded.

`--workers auto` is one process a core. Each asks for a range of tests at a time, large ranges first and single tests
last, and sends its reports to the first process, which shows them. What crashes a process is a failed test; another
process continues after it.
"""

import atexit
import mmap
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

import pytest

PIECES = 4  # a range is a part of what is left: for each process, this many of them
SHOWN = 0.05  # seconds from which the time of a setup or a teardown is shown


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--workers", default="1", help="processes that share the tests; `auto` is one a core")


def processes(config: pytest.Config) -> int:
    """How many processes share the tests."""
    asked = config.option.workers
    return (os.cpu_count() or 1) if asked == "auto" else int(asked)


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in several processes; pytest does it where one is asked for, or collecting has failed."""
    count = processes(session.config)
    if count < 2 or session.testsfailed or session.config.option.collectonly:
        return None
    from ptxlab.gpu import absence

    if absence() is None:
        raise pytest.UsageError("a process that was forked can't use the GPU: ask for processes by `-n` of xdist")
    left = _Ranges(len(session.items), count)
    workers = [Worker(session) for _ in range(min(count, len(session.items)))]
    try:
        while workers:
            for ready in wait([worker.connection for worker in workers]):
                worker = next(one for one in workers if one.connection is ready)
                if worker.serve(left):
                    continue
                workers.remove(worker)
                if worker.numbers:
                    workers.append(Worker(session, worker.numbers))
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    finally:
        for worker in workers:
            worker.stop()
    return True


class _Ranges:
    """Ranges of tests that no process has yet."""

    def __init__(self, size: int, processes: int) -> None:
        self.start, self.size, self.processes = 0, size, processes

    def next(self) -> range:
        start, length = self.start, -(-(self.size - self.start) // (PIECES * self.processes))
        self.start += length
        return range(start, self.start)


class Worker:
    """A process that runs tests, as the first one sees it; `numbers` are its tests, or those that it left."""

    def __init__(self, session: pytest.Session, numbers: Sequence[int] = ()) -> None:
        self.session = session
        self.numbers = [*numbers]
        self.current = mmap.mmap(-1, 8)  # the number of the test that runs
        self.connection, other = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if not self.process:
            self.connection.close()
            _run(session, other, self.current, numbers)
        other.close()

    def serve(self, left: _Ranges) -> bool:
        """Do what the process asks for; False if it has ended."""
        try:
            name, given = self.connection.recv()
        except EOFError:
            self._end()
            return False
        hook = self.session.config.hook
        if name == "next":
            found = left.next()
            self.numbers += found
            self.connection.send(found)
        elif name == "warning":
            hook.pytest_warning_recorded.call_historic(kwargs=given)
        else:
            report = hook.pytest_report_from_serializable(config=self.session.config, data=given)
            hook.pytest_runtest_logreport(report=report)
        return True

    def _end(self) -> None:
        _, status = os.waitpid(self.process, 0)
        if not status:
            self.numbers = []
            return
        number = int.from_bytes(self.current[:], "little")
        item = self.session.items[number]
        cause = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
        said = f"the process of this test ended with {cause}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")
        self.session.config.hook.pytest_runtest_logreport(report=report)
        self.numbers = self.numbers[self.numbers.index(number) + 1 :]

    def stop(self) -> None:
        """End the process as Ctrl-C does, which ends those that it started."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGINT)
        self.connection.close()
        os.waitpid(self.process, 0)


def _run(session: pytest.Session, connection: Connection, current: mmap.mmap, first: Sequence[int]) -> NoReturn:
    """Run tests in a process that has just been forked."""
    config = session.config
    status = 1
    try:
        config.workerinput = {}  # type: ignore[attr-defined]  # plugins ask whether another process shows what is found
        capture: Any = config.pluginmanager.get_plugin("capturemanager")
        capture.stop_global_capturing()  # into files that all processes have
        capture.start_global_capturing()
        config.pluginmanager.unregister(name="terminalreporter")
        config.pluginmanager.register(_Sender(config, connection))
        try:
            _run_tests(session, connection, current, first)
            status = 0
        finally:
            config.hook.pytest_sessionfinish(session=session, exitstatus=session.exitstatus)
            config._ensure_unconfigure()
            atexit._run_exitfuncs()
    except (KeyboardInterrupt, BrokenPipeError):
        status = 130
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run_tests(session: pytest.Session, connection: Connection, current: mmap.mmap, first: Sequence[int]) -> None:
    numbers = _numbers(connection, first)
    number = next(numbers, None)
    while number is not None and not session.shouldfail and not session.shouldstop:
        following = next(numbers, None)
        current[:] = number.to_bytes(8, "little")
        item, after = session.items[number], None if following is None else session.items[following]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        number = following


def _numbers(connection: Connection, first: Sequence[int]) -> Iterator[int]:
    """The numbers of the tests that this process is to run."""
    numbers = first
    while True:
        yield from numbers
        connection.send(("next", None))
        numbers = connection.recv()
        if not numbers:
            return


class _Sender:
    """Sends what the first process is to show."""

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self.config, self.connection = config, connection

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed" or report.duration > SHOWN:
            data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
            self.connection.send(("report", data))

    def pytest_warning_recorded(self, warning_message: Any, when: str, nodeid: str, location: Any) -> None:
        warning_message.source = None
        given = {"warning_message": warning_message, "when": when, "nodeid": nodeid, "location": location}
        self.connection.send(("warning", given))
