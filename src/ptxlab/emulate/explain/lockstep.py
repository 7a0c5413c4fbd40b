"""Lanes of a warp that rely on running in step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxlab.emulate.explain.causes import by_synchronization, other_lines
from ptxlab.emulate.explain.found import Found
from ptxlab.report import Diagnostic, warning

_VOLATILE = (
    "volatile accesses don't race, and order nothing: since Volta, lanes of a warp need not run in step (PTX ISA 3.2)"
)


def explain_lockstep(found: Sequence[Found]) -> Iterator[Diagnostic]:
    """Lanes that read what others wrote by volatile accesses: one report for all after the same synchronization."""
    for group in by_synchronization(found):
        written, read = group[0].parties
        yield warning(
            "lockstep-dependence",
            "lanes of a warp read what other lanes write, and nothing but lockstep orders them",
            group[0].span,
            f"{read.who} reads them",
            others=group[0].label(written.instruction, f"{written.who} wrote {group[0].bytes}"),
            notes=[_VOLATILE, *other_lines(group)],
            helps=["`bar.warp.sync` (`__syncwarp()`) between the two, in all lanes, and before the next write"],
        )
