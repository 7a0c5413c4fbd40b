"""Running what a process of a program has launched, and noting what is found."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.device.detectors import DETECTORS
from ptxlab.device.host_memory import RawArguments
from ptxlab.device.options import LaunchOptions
from ptxlab.device.record import Record
from ptxlab.device.regions import ReadBytes, Region
from ptxlab.device.result import Result
from ptxlab.emulate.launch import Interrupted, launch
from ptxlab.ir.origin import at_origin
from ptxlab.launch.contexts import context_of
from ptxlab.programs.device_launches import take_launches
from ptxlab.programs.device_memory import DeviceMemory
from ptxlab.programs.host_memory import name_host_memory
from ptxlab.programs.log import LaunchCount, Log, RecordedLaunch, Recorder
from ptxlab.programs.messages import Frames, Writer
from ptxlab.programs.queue import (
    Queued,
    QueuedCopy,
    QueuedLaunch,
    Team,
    compare,
    directly_before,
    one_by_one,
    parts_of,
    perform,
    stages_of,
)
from ptxlab.programs.repeats import Repeats
from ptxlab.report import Diagnostic, KernelError, PtxError, Span

if TYPE_CHECKING:
    from ptxlab.programs.modules import LoadedModule
    from ptxlab.programs.turns import Turn

MOST_RECORDED = 256  # operations of a program that go to a folder
_WATCHED = 4  # launches of a kernel of which each is watched; see `Runner.watches`
_FAILURE, _NOT_SUPPORTED = 719, 801
# What a GPU reports of a kernel that has stopped; of other faults, an unspecified failure.
_FAULTS = {"out-of-bounds": 700, "use-after-free": 700, "missing-peer-access": 700,
           "read-only-write": 700, "misaligned-access": 716, "trap": 719,
           "assertion-failed": 710, "hang": 702, "timeout": 702}  # fmt: skip

Ended = tuple[int, str]
"""The error of CUDA, 0 for none, and what kernels printed."""


class Runner:
    """How kernels of a process run: in which memory, with which textures, and where findings go."""

    def __init__(
        self, connection: socket.socket, memory: DeviceMemory, log: Log, record: Recorder | None,
        max_repeats: int | None, span_of: Callable[[Frames], Span | None], folder: Path | None,
    ) -> None:  # fmt: skip
        """In `folder`, all that runs is recorded."""
        self.connection, self.memory, self.log, self.record, self.span_of = connection, memory, log, record, span_of
        self.folder = folder
        self.objects: dict[int, Any] = {}  # textures and surfaces
        self.next_object = 0
        self.repeats = Repeats(max_repeats)
        self._reads: list[tuple[QueuedLaunch, ReadBytes]] = []  # of memory of the host, that it does not know of
        self._last_reads: dict[Hashable, list[ReadBytes]] = {}  # of launches that may be repeated
        log.repeats.append(self.repeats)

    def note(self, found: Iterable[Diagnostic], at: Frames) -> None:
        """Keep findings, each once, with the place of the host."""
        for one in (name_host_memory(one, self.connection) for one in found):
            if one not in self.log.device:
                self.log.launched_at[len(self.log.device)] = at
                self.log.device.append(one)

    def recorded(self, kernel: ir.Function) -> Record | None:
        """What is to be recorded of the next launch of a kernel."""
        return None if self.record is None else self.record(kernel.name, self.log)

    def count(self, kernel: ir.Function) -> LaunchCount:
        """How often a kernel was launched."""
        return self.log.launches.setdefault(kernel.title, LaunchCount())

    def watches(self, loaded: LoadedModule, kernel: ir.Function) -> bool:
        """Whether it matters which memory of the host the next launch of a kernel reads.

        Not of one that may talk to the host; and of one that is launched often, seldom: it takes time.
        """
        count = self.count(kernel).count
        return not loaded.talks_to_host(kernel) and (count <= _WATCHED or count & (count - 1) == 0)

    def add_reads(self, answer: Writer) -> Writer:
        """Add to an answer what launches have read of memory of the host: their titles, streams, and numbers there."""
        answer.number(len(self._reads))
        for one, read in self._reads:
            answer.text(one.kernel.title).number(one.order.stream).number(one.order.count)
            answer.number(read.start).number(read.size).number(len(read.marks)).raw(read.marks)
        self._reads.clear()
        return answer

    def run_queue(self, queue: Sequence[Queued], turn: Turn | None = None) -> Ended:
        """Run all that the program has issued and has not waited for; with a `turn`, it may wait for the host."""
        return self._one_after_another(parts_of(queue) if queue else (), partial(self._run_part, turn=turn))

    def _one_after_another(self, parts: Iterable[Sequence[Queued]], run: Callable[[Sequence[Queued]], Ended]) -> Ended:
        """Run parts of a queue until one fails."""
        output = ""
        for part in parts:
            status, printed = run(part)
            output += printed
            if status:
                return status, output
        return 0, output

    def run_in_order(self, copies: Sequence[Queued]) -> Ended:
        """Make copies and fills that nothing else is between."""
        for one in copies:
            assert isinstance(one, QueuedCopy)
            perform(one, self.memory.bytes_at)
        return 0, ""

    def run_pes(
        self, operations: Sequence[Queued], left_over: Callable[[Sequence[Queued]], bool]
    ) -> tuple[Ended, Sequence[Queued]]:
        """Run at the same time what several PEs have issued; what is left over.

        `left_over` says of operations that would never end whether they may be left over: nothing is reported then.
        """
        left = self._without_first_copies(operations)
        launches = [one for one in left if isinstance(one, QueuedLaunch)]
        rest: list[Queued] = []

        def reported(result: Result) -> bool:
            if any(one.code == "hang" for one in result.diagnostics):
                rest.extend(one for one, has in zip(left, result.finished, strict=True) if not has)
            return not rest or not left_over(rest)

        ended = self._run_together(left, launches, reported) if launches else self.run_in_order(left)
        return ended, rest

    def judge_pes(self, operations: Sequence[Queued]) -> Iterable[Diagnostic]:
        """What is found where all of that runs at the same time."""
        left = self._without_first_copies(operations)
        launches = [one for one in left if isinstance(one, QueuedLaunch)]
        if not launches:
            copies = [one for one in left if isinstance(one, QueuedCopy)]
            found = list(compare(copies, self.span_of))
            self.run_in_order(copies)
            return found
        return self._run_team(left, launches, None).diagnostics

    def _without_first_copies(self, operations: Sequence[Queued]) -> Sequence[Queued]:
        """Make large copies that come after no other operation, which would take long as kernels; the others."""
        before = directly_before(operations)
        made: set[int] = set()
        for at, one in enumerate(operations):
            if isinstance(one, QueuedCopy) and one.is_large and made.issuperset(before[at]):
                perform(one, self.memory.bytes_at)
                made.add(at)
        return [one for at, one in enumerate(operations) if at not in made]

    def _run_part(self, part: Sequence[Queued], turn: Turn | None) -> Ended:
        """Run operations that are not all ordered, or a single one."""
        copies = [one for one in part if isinstance(one, QueuedCopy)]
        if len(copies) == len(part) or any(one.is_large for one in copies):
            self.note(compare(copies, self.span_of), ())
        return self._one_after_another(stages_of(part), partial(self._run_stage, turn=turn))

    def _run_stage(self, stage: Sequence[Queued], turn: Turn | None) -> Ended:
        launches = [one for one in stage if isinstance(one, QueuedLaunch)]
        if not launches:
            for one in stage:
                assert isinstance(one, QueuedCopy)
                perform(one, self.memory.bytes_at)
            return 0, ""
        is_alone = len(stage) == 1 and self.memory.gpus == 1 and turn is None
        return self.run_alone(launches[0]) if is_alone else self._run_together(stage, launches, turn=turn)

    def run_alone(self, one: QueuedLaunch) -> Ended:
        """Run a launch that nothing runs beside, unless it was run before and changed nothing."""
        loaded, kernel, shape = one.loaded, one.kernel, one.options
        watched = self.memory.watched() if one.is_watched else ()
        reads: list[ReadBytes] = []

        def run() -> Ended:
            return self._run(loaded.module, kernel, shape, one.data, one.frames, watched, reads)

        path = self._next_recording(1)
        if path is not None:
            shape = replace(shape, record=Record(path.with_suffix(".ptxtrace")))
        if shape.record is not None or loaded.allocates:
            ended = run()
        else:
            key = (id(loaded), kernel.name, shape.grid, shape.block, shape.cluster, shape.shared, shape.cooperative,
                   one.data, bool(watched))  # fmt: skip
            variables = context_of(loaded.module).memory.variables
            memory = partial(self.memory.held, variables.values()) if loaded.may_access_memory(kernel) else None
            ended = self.repeats.run(key, memory, run)
            reads = self._last_reads[key] = reads or self._last_reads.get(key, [])
        self._reads += [(one, read) for read in reads]
        return ended

    def _run_together(
        self,
        part: Sequence[Queued],
        launches: Sequence[QueuedLaunch],
        reported: Callable[[Result], bool] = lambda _: True,
        turn: Turn | None = None,
    ) -> Ended:
        """Run operations at the same time; what is found counts if the result is `reported`."""
        started = time.perf_counter()
        at = launches[0].frames if len(launches) == 1 else ()
        try:
            result = self._run_team(part, launches, self._next_recording(len(part)), turn)
        except Interrupted as stopped:
            self.note(stopped.diagnostics, at)
            raise
        except (KernelError, PtxError) as wrong:
            return self._refused(wrong, launches[0].loaded.module, launches[0].frames)
        finally:
            for one in (one for one in launches if one.is_of_user):
                self.count(one.kernel).seconds += (time.perf_counter() - started) / len(launches)
        if not reported(result):
            return 0, ""
        self.note(result.diagnostics, at)
        self._note_reads(part, result)
        return _status_of(result.diagnostics), result.output

    def _note_reads(self, part: Sequence[Queued], result: Result) -> None:
        for read in result.reads:
            one = part[read.grid]
            assert isinstance(one, QueuedLaunch)
            self._reads.append((one, read))

    def _run_team(
        self,
        part: Sequence[Queued],
        launches: Sequence[QueuedLaunch],
        recording: Path | None,
        turn: Turn | None = None,
    ) -> Result:
        for module in {id(one.loaded): one.loaded.module for one in launches}.values():
            context_of(module).refuse_wrong(module)
        return Team(self.memory, self.objects).run(part, launches[0].options, self.span_of, recording, turn)

    def _next_recording(self, count: int) -> Path | None:
        """Where so many operations are recorded that run next, at the same time; None where they are not."""
        log = self.log
        if self.folder is None or log.recorded_operations + count > MOST_RECORDED:
            log.unrecorded += count * (self.folder is not None)
            return None
        log.recorded_operations += count
        log.recordings += 1
        return self.folder / f"{log.recordings - 1:03}"

    def _refused(self, wrong: KernelError | PtxError, module: ir.Module, frames: Frames) -> Ended:
        self.note(at_origin(module, wrong.diagnostics), frames)
        return _NOT_SUPPORTED if any(one.code == "not-emulated" for one in wrong.diagnostics) else _FAILURE, ""

    def _run(
        self, module: ir.Module, kernel: ir.Function, options: LaunchOptions, data: bytes, frames: Frames,
        watched: Sequence[Region], reads: list[ReadBytes],
    ) -> Ended:  # fmt: skip
        """Run a kernel, and those that it launches; what they read of memory that is watched is added to `reads`."""
        args = RawArguments(self.memory, one_by_one(kernel, data), self.objects)
        context = context_of(module)
        started = time.perf_counter()
        try:
            context.refuse_wrong(module)
            result = launch(context.emulated(module), kernel, args, options, watched)
        except Interrupted as stopped:
            self.note(stopped.diagnostics, frames)
            raise
        except (KernelError, PtxError) as wrong:
            return self._refused(wrong, module, frames)
        finally:
            self.count(kernel).seconds += time.perf_counter() - started
        self.note(result.diagnostics, frames)
        reads += result.reads
        if result.recording is not None:
            self.log.recorded.append(RecordedLaunch(kernel.title, result, frames))
        status, output = _status_of(result.diagnostics), result.output
        for one in take_launches(module):
            self.count(one.kernel).count += 1
            shape = replace(options, grid=one.grid, block=one.block, shared=one.shared, cluster=None,
                            cooperative=False, record=self.recorded(one.kernel))  # fmt: skip
            failed, printed = (
                self._run(module, one.kernel, shape, one.data, frames, watched, reads) if not status else (0, "")
            )
            status, output = status or failed, output + printed
        return status, output


def _status_of(found: list[Diagnostic]) -> int:
    """The error that a GPU would report of a kernel, if it stopped."""
    stopped = [one for one in found if one.level == "error" and one.code not in DETECTORS]
    return next((_FAULTS.get(one.code, _FAILURE) for one in stopped), 0)
