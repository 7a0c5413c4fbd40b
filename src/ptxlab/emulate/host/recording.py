"""Taking down a recorded launch: the buffers that machine code fills, and the file that they are written to."""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.device import trace_file
from ptxlab.device.arguments import HEAP
from ptxlab.device.host_memory import START
from ptxlab.device.record import Record
from ptxlab.device.regions import Region
from ptxlab.device.trace_file import TraceWriter
from ptxlab.device.trace_format import SEGMENT_BITS
from ptxlab.emulate.abi import recording
from ptxlab.emulate.abi.structs import StructArray
from ptxlab.native import size_of
from ptxlab.native.checking import share
from ptxlab.report import Diagnostic, KernelError, Source, error, render
from ptxlab.syntax import format
from ptxlab.values import Json

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import LaunchPlace, RunningLaunch

ENTRIES, PAYLOAD, EVENTS, DATA = 1 << 18, 4 << 20, 1 << 14, 1 << 20  # what the buffers have space for
_SEGMENT = (1 << SEGMENT_BITS) - 1
SUFFIX = ".ptxtrace"
_ENDS = {
    None: trace_file.COMPLETE,
    "interrupted": trace_file.INTERRUPTED,
    "timeout": trace_file.TIMED_OUT,
}


def _buffer(size: int) -> ctypes.Array[ctypes.c_char]:
    """Zeroed memory that takes time only where it is written: most launches fill little of it."""
    return share((ctypes.c_char * size).from_buffer(mmap.mmap(-1, size)))


class HostRecorder:
    """The recording of a launch."""

    def __init__(self, launch: RunningLaunch, record: Record) -> None:
        self.limit = record.limit
        segments = self._segments = launch.compiled.facts["segments"]
        self._steps_of = np.array([len(segment["steps"]) for segment in segments] or [0], np.int64)
        self._source = launch.compiled.module.source
        self.steps = 0
        self.failure: OSError | None = None
        self.is_temporary = record.path is None
        self.path = record.path or _temporary_file()
        largest = max((segment["size"] for segment in segments), default=0)
        self._event_size = size_of(recording.RecordedEvent)
        self.entries = _buffer(8 * ENTRIES)
        self.payload = _buffer(max(PAYLOAD, largest))
        self.events = _buffer(self._event_size * EVENTS)
        self.data = _buffer(DATA)
        self.sink = _buffer(max(largest, 1))
        self._numbers = self._blocks(launch, record)
        self.record = StructArray(recording.Recorder)
        self._set(record, max(PAYLOAD, largest))
        self.writer = TraceWriter(self.path, _describe(launch, record))
        for region in launch.regions:
            self._write(trace_file.MEMORY, (ctypes.c_char * region.size).from_address(region.data), region.size)
        self._note()

    def _blocks(self, launch: RunningLaunch, record: Record) -> ctypes.Array[ctypes.c_uint64] | None:
        if record.blocks is None:
            return None
        for block in record.blocks:
            if any(at >= extent or at < 0 for at, extent in zip(block, launch.grid, strict=True)):
                raise KernelError([error("bad-launch", f"block {block} is to be recorded, the grid is {launch.grid}",
                                         None)])  # fmt: skip
        x, y, _ = launch.grid
        numbers = [at[0] + x * (at[1] + y * at[2]) for at in record.blocks]
        return share((ctypes.c_uint64 * max(len(numbers), 1))(*numbers))

    def _set(self, record: Record, payload: int) -> None:
        warps = (1 << 64) - 1 if record.warps is None else sum(1 << warp for warp in record.warps)
        self.record.set(
            entries=ctypes.addressof(self.entries),
            payload=ctypes.addressof(self.payload),
            events=ctypes.addressof(self.events),
            data=ctypes.addressof(self.data),
            sink=ctypes.addressof(self.sink),
            entry_capacity=ENTRIES,
            payload_capacity=payload,
            event_capacity=EVENTS,
            data_capacity=DATA,
            blocks=0 if self._numbers is None else ctypes.addressof(self._numbers),
            block_count=0 if record.blocks is None else len(record.blocks),
            warps=warps,
        )

    def take(self) -> None:
        """Write down what is in the buffers, and empty them."""
        if self.failure is not None or self.record.get("is_over"):
            return
        count = self.record.get("entry_count")
        entries = np.frombuffer(memoryview(self.entries), np.uint64, count)
        self.steps += int(self._steps_of[entries & _SEGMENT].sum())
        try:
            self._write(trace_file.ENTRIES, self.entries, 8 * count)
            self._write(trace_file.PAYLOAD, self.payload, self.record.get("payload_size"))
            self._write(trace_file.EVENTS, self.events, self._event_size * self.record.get("event_count"))
            self._write(trace_file.DATA, self.data, self.record.get("data_size"))
            self._note()
        except OSError as problem:
            self.stop(problem)
        self.record.set(emptied=self.record.get("emptied") + count)
        self.record.set(entry_count=0, payload_size=0, event_count=0, data_size=0)
        if self.steps >= self.limit:
            self.record.set(is_over=1)

    def stop(self, problem: OSError) -> None:
        """Record no more: the file cannot be written any further."""
        self.failure = problem
        self.record.set(is_over=1)
        self.writer.give_up()

    def _write(self, kind: int, buffer: Any, size: int) -> None:
        if size:
            self.writer.write(kind, memoryview(buffer).cast("B")[:size])

    def _note(self, end: int = trace_file.UNFINISHED) -> None:
        self.writer.note(min(self.steps, self.limit), end)

    def finish(self, outcome: str | None, fault: int | None, found: Sequence[Diagnostic]) -> None:
        """The launch has ended: write down the rest, what was found, and how it ended; raise what kept it from that.

        `fault` is the instruction that was wrong.
        """
        self._finish(outcome, fault, found)
        if self.error is not None:
            raise self.error

    def _finish(self, outcome: str | None, fault: int | None, found: Sequence[Diagnostic]) -> None:
        missing = 0 if fault is None else self._steps_after(fault)
        self.take()
        self.steps -= missing
        if self.failure is not None:
            return
        end = trace_file.LIMITED if self.steps >= self.limit else _ENDS.get(outcome, trace_file.COMPLETE)
        if end == trace_file.COMPLETE and fault is not None:
            end = trace_file.FAILED
        try:
            if found:
                data = json.dumps([describe_finding(one, self._source) for one in found]).encode()
                self.writer.write(trace_file.REMARK, data)
            self._note(end)
            self.writer.close()
        except OSError as problem:
            self.stop(problem)

    def close(self) -> None:
        """Close the file, however the launch has ended."""
        with contextlib.suppress(OSError):
            self.writer.close()

    def _steps_after(self, instruction: int) -> int:
        """How many steps of the last segment were not executed, since this instruction of it has failed."""
        count = self.record.get("entry_count")
        if not count or self.record.get("is_over"):
            return 0
        last = np.frombuffer(memoryview(self.entries), np.uint64, count)[-1]
        numbers = [number for number, _ in self._segments[int(last) & _SEGMENT]["steps"]]
        return len(numbers) - numbers.index(instruction) if instruction in numbers else 0

    @property
    def error(self) -> OSError | None:
        """Why recording stopped early, if the file could not be written."""
        if self.failure is None:
            return None
        text = f"recording stopped after {self.writer.steps:,} steps, which open: {self.failure.strerror}"
        return OSError(self.failure.errno, text, str(self.path))


def _temporary_file() -> Path:
    descriptor, name = tempfile.mkstemp(suffix=SUFFIX)
    os.close(descriptor)
    return Path(name)


def _describe(launch: RunningLaunch, record: Record) -> Json:
    """What a reader needs beside the chunks."""
    compiled = launch.compiled
    source, calls = compiled.module.source, compiled.module.calls
    chains = {frames: number for number, frames in enumerate(dict.fromkeys(frames for _, frames in calls))}
    return {
        "name": source.name if source is not None else compiled.kernel.name,
        "text": source.text if source is not None else format(compiled.module),
        "chains": [[[one.file, one.line, one.function] for one in frames] for frames in chains],
        "calls": [[offset, chains[frames]] for offset, frames in calls],
        "kernel": compiled.kernel.name,
        "grid": launch.grid,
        "block": launch.block,
        "cluster": launch.cluster,
        "seed": launch.seed,
        "shared": launch.shared_size,
        "local": launch.needs.local,
        "blocks": record.blocks,
        "warps": None if record.warps is None else sorted(record.warps),
        "lines": None if record.lines is None else sorted(record.lines),
        "limit": record.limit,
        "parameters": bytes(launch.parameters)[: launch.parameter_size].hex(),
        "regions": [_describe_region(region) for region in launch.regions],
        "segments": compiled.facts["segments"],
        **({} if launch.place is None else {"together": _describe_place(launch.place)}),
    }


def _describe_place(place: LaunchPlace) -> Json:
    """Which of the launches that run together a launch is."""
    return {
        "number": place.number,
        "count": place.count,
        "rank": place.device,
        "stream": place.stream,
        "title": place.title,
        "is_kernel": place.is_kernel,
    }


def describe_finding(found: Diagnostic, source: Source | None) -> Json:
    """A finding, with its line in the PTX: where that was compiled from something, the texts are on the lines there."""
    labels = [label for label in found.labels if label.span.source is source]
    line = labels[0].span.source.position(labels[0].span.start)[0] if labels else 0
    above = [label.text for label in found.labels if label.span.source is not source]
    if len(above) != len(labels):
        above = [""] * len(labels)
    caller = f" (called from {found.facts['called_from']})" if "called_from" in found.facts else ""
    return {
        "level": found.level,
        "code": found.code,
        "message": found.message,
        "line": line,
        "text": render([found]),
        "labels": [
            [label.span.source.position(label.span.start)[0], label.text or text]
            for label, text in zip(labels, above, strict=True)
        ],
        "notes": list(found.notes),
        "helps": [one.text for one in found.helps],
        "accesses": list(found.facts.get("accesses", ())),
        "place": f"{found.file}:{found.line}{caller}" if found.labels else "",
    }


def _describe_region(region: Region) -> Json:
    owner = region.owner
    shape: Sequence[int] = getattr(owner, "shape", ())
    kind = str(getattr(owner, "dtype", ""))
    return {
        "base": region.base, "size": region.size, "name": region.name, "shape": list(shape), "dtype": kind,
        "of_module": region.owner_device is None and not START <= region.base < HEAP,
    }  # fmt: skip
