"""Lanes of a warp that rely on running in step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlab.emulate.abi.structs import StructArray
from ptxlab.emulate.explain.accesses import bytes_of, parties_of
from ptxlab.emulate.explain.causes import by_synchronization, other_lines
from ptxlab.emulate.explain.snapshots import thread_name
from ptxlab.report import Diagnostic, Label, warning

if TYPE_CHECKING:
    from ptxlab.emulate.host.running import RunningLaunch

_VOLATILE = (
    "volatile accesses don't race, and order nothing: since Volta, lanes of a warp need not run in step (PTX ISA 3.2)"
)


def explain_lockstep(launch: RunningLaunch, found: StructArray, numbers: list[int]) -> Iterator[Diagnostic]:
    """Lanes that read what others wrote by volatile accesses: one report for all after the same synchronization."""
    for group in by_synchronization(launch, found, numbers):
        written, read = parties_of(found, group[0])
        span = launch.span_of(written.instruction)
        who = thread_name(launch, written.block, written.thread)
        yield warning(
            "lockstep-dependence",
            "lanes of a warp read what other lanes write, and nothing but lockstep orders them",
            launch.span_of(read.instruction),
            f"{thread_name(launch, read.block, read.thread)} reads them",
            others=[] if span is None else [Label(span, f"{who} wrote {bytes_of(launch, found, group[0])}")],
            notes=[_VOLATILE, *other_lines(launch, found, group)],
            helps=["`bar.warp.sync` (`__syncwarp()`) between the two, in all lanes, and before the next write"],
        )
