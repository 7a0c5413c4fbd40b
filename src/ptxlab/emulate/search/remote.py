"""Trying seeds in other processes, of this machine or of a cluster.

A process is given the text of the program and how to launch it, and answers which seeds find something. Seeds that do
are run again where they were asked for: the same seed does the same everywhere.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

from ptxlab import ir
from ptxlab.device.coverage import Schedule
from ptxlab.device.digest import digest_of
from ptxlab.device.host_variables import HostVariables
from ptxlab.device.options import LaunchOptions
from ptxlab.emulate.host.module_memory import EmulatedModule, ModuleMemory
from ptxlab.emulate.launch import launch
from ptxlab.emulate.search.outputs import Marks, marks_of, outputs_of
from ptxlab.native.children import start_python
from ptxlab.report import is_failure
from ptxlab.syntax import parse
from ptxlab.values import dataclass


@dataclass(frozen=True)
class Job:
    """A launch whose seeds are to be tried."""

    text: str
    kernel: str
    prepare: Callable[[ir.Module, int], tuple[dict[str, bytes], Sequence[Any]]]
    """What variables of the module are set to for a seed, and the arguments."""
    options: LaunchOptions
    on_error: str
    """Which findings end the search."""


@dataclass(frozen=True)
class Tried:
    """What a seed gave."""

    schedule: Schedule
    is_failure: bool
    before: Marks = field(default_factory=dict)
    after: Marks = field(default_factory=dict)
    """Digests of the arrays before and after it."""


def try_some(job: Job, seeds: Sequence[int]) -> list[Tried]:
    """Try seeds until one finds something; a function of plain values, so that it can be sent to another machine."""
    module, found = parse(job.text), []
    kernel, digest = module[job.kernel], digest_of(module)
    options = replace(job.options, on_error="collect", workers=1)
    for seed in seeds:
        given, args = job.prepare(module, seed)
        emulated = EmulatedModule(module, digest, ModuleMemory(HostVariables(given)))
        before = marks_of(outputs_of(kernel, args))
        result = launch(emulated, kernel, args, replace(options, seed=seed))
        (schedule,) = result.coverage.schedules
        after = marks_of(outputs_of(kernel, args))
        found.append(Tried(schedule, is_failure(result.diagnostics, job.on_error), before, after))
        if found[-1].is_failure:
            break
    return found


class Processes:
    """Processes of this machine, each of which tries pieces of the seeds; `close` ends them."""

    def __init__(self) -> None:
        self._all: list[subprocess.Popen[bytes]] = []
        self._idle: list[subprocess.Popen[bytes]] = []
        self._is_closed = False

    def try_some(self, job: Job, seeds: Sequence[int]) -> list[Tried]:
        """As `try_some`, in a process that has nothing else to do, or a new one."""
        if self._is_closed:
            return []
        process = self._idle.pop() if self._idle else self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            pickle.dump((job, seeds), process.stdin)
            process.stdin.flush()
            found: list[Tried] = pickle.load(process.stdout)
        except (EOFError, OSError):
            if self._is_closed:
                return []
            raise RuntimeError(
                f"a process that tried seeds {seeds[0]} to {seeds[-1]} ended with {process.wait()}"
            ) from None
        self._idle.append(process)
        return found

    def _start(self) -> subprocess.Popen[bytes]:
        process = start_python(__name__, stdin=subprocess.PIPE)
        self._all.append(process)
        return process

    def close(self) -> None:
        self._is_closed = True
        for process in self._all:
            process.kill()
            with process:  # waits for it, and closes its pipes
                pass


def serve() -> None:
    """Do what is asked on standard input, and answer on standard output, until there is nothing more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # anything else that is printed is not an answer
    while True:
        try:
            job, seeds = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(try_some(job, seeds), answers)
        answers.flush()
