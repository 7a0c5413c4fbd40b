"""Child processes: run one to its end, its time limit, or the user's Ctrl-C, and say which of these it was."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ptxlab import interrupts

Answer = TypeVar("Answer")


def on_path(name: str) -> str | None:
    """Where PATH has a program; its relative entries are left out: the current folder may be a stranger's."""
    found = shutil.which(name, path=os.pathsep.join(absolute_entries("PATH")))
    return found if found and Path(found).is_absolute() else None  # Windows searches the current folder, too


def absolute_entries(variable: str) -> list[str]:
    """The folders of a variable such as PATH that are the same whatever the current folder is."""
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if Path(entry).is_absolute()]


def _environment(program: Path, temporary: Path) -> dict[str, str]:
    """The variables for a tool, none of which names the current folder: nvcc appends LD_LIBRARY_PATH to its own."""
    libraries = absolute_entries("LD_LIBRARY_PATH") or [str(program.parent)]
    return os.environ | {
        "PATH": os.pathsep.join(absolute_entries("PATH")),
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "TMPDIR": str(temporary),
    }


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a child ended and what it wrote, standard output first."""

    text: str
    status: int
    timed_out: bool = False

    @property
    def signal_name(self) -> str | None:
        """The signal that killed the child, also where a shell between us and it reports 128 + number."""
        number = -self.status if self.status < 0 else self.status - 128
        if self.timed_out or number not in {member.value for member in signal.Signals}:
            return None
        return signal.Signals(number).name


class Children:
    """Children that can be ended together: one that runs in another thread never sees the user's Ctrl-C."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def run(
        self, command: Sequence[str | Path], directory: Path, timeout: float | None, temporary: Path | None = None
    ) -> Outcome:
        """Run `command` in `directory`, with its own temporary files there too, or in `temporary`."""
        started: list[subprocess.Popen[str]] = []
        try:
            with interrupts.deferred():  # a child that starts would be forgotten, and run on its own
                started.append(self._start(command, directory, temporary or directory))
            text, _ = started[0].communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _end(started[0])
            text, _ = started[0].communicate()
            return Outcome(text, started[0].returncode, timed_out=True)
        except BaseException:
            for child in started:
                _end(child)
                child.communicate()
            raise
        finally:
            with self._lock:
                self._running.difference_update(started)
        return Outcome(text, started[0].returncode)

    def _start(self, command: Sequence[str | Path], directory: Path, temporary: Path) -> subprocess.Popen[str]:
        """Start a child that `end` knows of."""
        with self._lock:
            if self._closed:
                raise KeyboardInterrupt
            child = subprocess.Popen(
                [str(part) for part in command],
                cwd=directory,
                env=_environment(Path(command[0]), temporary),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
            )
            self._running.add(child)
        return child

    def end(self) -> None:
        """End every running child and start no more."""
        with self._lock:
            self._closed = True
            for child in self._running:
                _end(child)


_thread = threading.local()


def share(children: Children) -> None:
    """Let what this thread runs from now on be among `children`; the initializer of a pool of threads."""
    _thread.children = children


def run(
    command: Sequence[str | Path], directory: Path, timeout: float | None = None, temporary: Path | None = None
) -> Outcome:
    """Run `command` in `directory` until it ends or `timeout` seconds have passed."""
    children: Children = getattr(_thread, "children", None) or Children()
    return children.run(command, directory, timeout, temporary)


def run_together(tasks: Sequence[Callable[[], Answer]], workers: int) -> list[Answer]:
    """The answers of tasks that run children, `workers` at a time; Ctrl-C or a failure ends those under way."""
    if len(tasks) <= 1:
        return [task() for task in tasks]
    children = Children()
    with ThreadPoolExecutor(workers, initializer=share, initargs=(children,)) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            children.end()
            raise


def _end(child: subprocess.Popen[str]) -> None:
    """Kill a child with everything it started: a wrapper script's own child would keep our pipe open."""
    if child.poll() is not None:
        return
    if hasattr(os, "killpg"):
        os.killpg(child.pid, signal.SIGKILL)
    else:
        child.kill()
