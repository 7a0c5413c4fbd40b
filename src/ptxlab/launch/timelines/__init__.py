"""A launch that records when its warps run and wait, by clocks: of a GPU, or the emulator's steps.

The kernel that runs is another one, which `code` makes of the user's: it does the same, and records the instructions
that `events` finds. `reading` makes a timeline of the records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from ptxlab import ir
from ptxlab.device.digest import digest_of
from ptxlab.device.options import LaunchOptions
from ptxlab.device.result import Result
from ptxlab.launch.timelines.code import OWN, Insertions, insertions
from ptxlab.launch.timelines.events import Event, events_of
from ptxlab.launch.timelines.reading import read
from ptxlab.report import Diagnostic, KernelError, Source, Span
from ptxlab.syntax import format, parse
from ptxlab.timelines.layout import Layout

SPANS = 512  # records of a warp, unless the user says how many
MOST = 1 << 26  # bytes of records; blocks after the first that fit are not recorded

Launch = Callable[[ir.Function, Sequence[Any], LaunchOptions], Result]


@dataclass(frozen=True)
class Recording:
    """A kernel that records its timeline: its module, what it records, and where its text differs from the user's."""

    module: ir.Module
    events: list[Event]
    inserted: Insertions

    @classmethod
    def of(cls, module: ir.Module, name: str) -> Recording:
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
    recording: Recording, kernel: ir.Function, args: Sequence[Any], options: LaunchOptions, launch: Launch
) -> Result:
    """Run a kernel and read its timeline."""
    import numpy

    assert kernel.module is not None
    source = kernel.module.source
    threads, blocks = prod(options.block), prod(options.grid)
    spans = SPANS if options.timeline is True else int(options.timeline)
    layout = Layout(blocks, max((threads + 31) // 32, 1), spans + OWN)
    layout.blocks = max(min(blocks, MOST // (layout.warps * layout.warp_bytes)), 1)
    records = numpy.zeros(layout.size, numpy.uint8)
    recorded = recording.module[kernel.name]
    try:
        result = launch(recorded, [*args, records, layout.blocks, layout.capacity], replace(options, timeline=False))
    except KernelError as problem:
        problem.diagnostics = [recording.in_original(found, source) for found in problem.diagnostics]
        raise
    result.diagnostics = [recording.in_original(found, source) for found in result.diagnostics]
    result.timeline = read(layout, records.tobytes(), recording.events)
    return result
