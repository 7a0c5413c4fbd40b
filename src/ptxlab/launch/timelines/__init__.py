"""A launch that records when its warps run and wait, by clocks: of a GPU, or the emulator's steps.

The kernel that runs is another one, which `code` makes of the user's: it does the same, and records the instructions
that `events` finds. `reading` makes a timeline of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

from ptxlab import gpu, ir
from ptxlab.device.digest import digest_of
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.launch.contexts import Context, context_of
from ptxlab.launch.timelines.code import OWN, Insertions, insertions
from ptxlab.launch.timelines.events import TimedEvent, events_of
from ptxlab.launch.timelines.reading import read
from ptxlab.report import Diagnostic, KernelError, Source, Span
from ptxlab.syntax import format, parse
from ptxlab.timelines.layout import Layout

SPANS = 512  # records of a warp, unless the user says how many
MOST = 1 << 24  # bytes of records; blocks after the first that fit are not recorded

Launch = Callable[[ir.Function, Sequence[Any], LaunchOptions], Result]


@dataclass(frozen=True)
class TimedKernel:
    """A kernel that records its timeline: its module, what it records, and where its text differs from the user's."""

    module: ir.Module
    events: list[TimedEvent]
    inserted: Insertions

    @classmethod
    def of(cls, module: ir.Module, name: str) -> TimedKernel:
        """The kernel of that name in a module, as one that records."""
        text = format(module) if module.source is None else module.source.text
        given = "kernel.ptx" if module.source is None else module.source.name
        plain = parse(text, name=given)
        if digest_of(plain) != digest_of(module):  # it was edited
            plain = parse(format(module), name=given)
        kernel = plain[name]
        events = events_of(plain, kernel)
        inserted = insertions(plain, kernel, events)
        made = parse(inserted.result(), name=given)
        made.origins = module.origins
        return cls(made, events, inserted)

    def in_original(self, found: Diagnostic, source: Source | None) -> Diagnostic:
        """A finding with the places that the user's text has."""
        own = self.module.source
        if source is None or source.text != self.inserted.text:
            return found
        labels = tuple(
            replace(label, span=Span(source, *map(self.inserted.original, (label.span.start, label.span.end))))
            if label.span is not None and label.span.source is own
            else label
            for label in found.labels
        )
        return replace(found, labels=labels)


def launch_recorded(
    kernel: ir.Function, args: Sequence[object], options: LaunchOptions, where: tuple[str, int], launch: Launch
) -> Result:
    """Run a kernel by `launch` as one that records, and read its timeline; `where` is the device it runs on."""
    import numpy

    module = kernel.module
    assert module is not None
    refuse(options, where[0])
    context = context_of(module)
    context.refuse_wrong(module, kernel if options.on_error == "strict" else None)
    recording = context.recording_timelines.get(kernel.name)
    if recording is None:
        recording = context.recording_timelines[kernel.name] = TimedKernel.of(module, kernel.name)
    layout = layout_for(options)
    records = numpy.zeros(layout.size, numpy.uint8)
    values, plain = [*args, records, layout.blocks, layout.capacity], replace(options, timeline=False)
    try:
        with _variables_of(kernel, context, recording, plain, where):
            result = launch(recording.module[kernel.name], values, plain)
    except KernelError as problem:
        problem.diagnostics = [recording.in_original(found, module.source) for found in problem.diagnostics]
        raise
    result.diagnostics = [recording.in_original(found, module.source) for found in result.diagnostics]
    result.read_timeline = partial(read, layout, records.tobytes(), recording.events)
    return result


def layout_for(options: LaunchOptions) -> Layout:
    """The memory of a timeline: of all blocks, or of the first that there is enough for."""
    blocks, threads = prod(options.grid), prod(options.block)
    spans = SPANS if options.timeline is True else int(options.timeline)
    layout = Layout(blocks, max((threads + 31) // 32, 1), spans + OWN)
    layout.blocks = max(min(blocks, MOST // (layout.warps * layout.warp_bytes)), 1)
    return layout


def refuse(options: LaunchOptions, kind: str) -> None:
    """Refuse what a launch with a timeline cannot have."""
    wrong = {
        "device='both'": kind == "both",
        "seeds": options.seeds is not None,
        "schedule": options.schedule is not None,
        "record": options.record is not None,
        "profile": options.profile,
        "wait=False": not options.wait,
        "compile": options.compile not in (None, "ptxas", "driver"),
    }
    for name, is_given in wrong.items():
        if is_given:
            raise ValueError(f"`timeline` and `{name}`: a timeline is of one launch, and of a kernel made for it")


@contextmanager
def _variables_of(
    kernel: ir.Function, context: Context, recording: TimedKernel, options: LaunchOptions, where: tuple[str, int]
) -> Iterator[None]:
    """Have the kernel that records start with the variables of the user's module, and leave its own there."""
    own, module = context_of(recording.module), kernel.module
    assert module is not None
    own.host, own.memory = context.host, context.memory
    names = [variable.name for variable in module.variables if variable.state_space.startswith("global")]
    if where[0] == "cpu" or not names:
        yield
        return
    from ptxlab.gpu.launching import how_of
    from ptxlab.gpu.prepared import make, note_run
    from ptxlab.gpu.variables import copy_variables

    there, how = gpu.gpu(where[1]), how_of(options)
    user = make(module, kernel, there, context.on_gpu, how, options.compile)
    made = make(recording.module, recording.module[kernel.name], there, own.on_gpu, how, options.compile)
    copy_variables(user.loaded, made.loaded, names)
    yield
    copy_variables(made.loaded, user.loaded, names)
    note_run(context.on_gpu, user)
