"""What each step of a schedule changes, by the estimate: no GPU is needed.

A step that leaves work for the next one, such as `tile` before `threads`, is listed with the kernel that there is then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab.report import KernelError, PtxError

if TYPE_CHECKING:
    from ptxlab.schedule.scheduling import Schedule


@dataclass(frozen=True)
class Estimated:
    """A step, the time of the kernel after it and what limits it, or why there is none."""

    step: str
    seconds: float | None
    limiter: str = ""
    problem: str = ""
    conflicts: float = 0.0
    """The part of shared memory's cycles that bank conflicts take."""


@dataclass(frozen=True)
class Estimates:
    """All steps, in their order."""

    steps: tuple[Estimated, ...]

    def __str__(self) -> str:
        lines, before = [], None
        for one in self.steps:
            if one.seconds is None:
                lines.append(f"{one.step:60.60} {one.problem}")
                continue
            change = f"{before / one.seconds:7.2f} x" if before else ""
            conflicts = f", {one.conflicts:.0%} bank conflicts" if one.conflicts >= 0.005 else ""
            limiter = f"{one.limiter}{conflicts}"
            lines.append(f"{one.step:60.60} {one.seconds * 1e6:12.1f} us {change:10} {limiter}".rstrip())
            before = one.seconds
        return "\n".join(lines)


def estimates(schedule: Schedule, sizes: Mapping[str, int]) -> Estimates:
    """Estimate the kernel after each step."""
    fresh = schedule.copy().undo(len(schedule.steps))
    found = []
    for number, step in enumerate(schedule.steps):
        fresh.take(step)
        if step.name == "tile" and number + 1 < len(schedule.steps):
            continue  # it is for a step that follows
        try:
            made = fresh.estimate(**sizes)
        except (PtxError, KernelError) as problem:
            found.append(Estimated(str(step), None, problem=problem.diagnostics[0].message))
            continue
        found.append(Estimated(str(step), made.seconds, made.limiter, conflicts=made.conflicts))
    return Estimates(tuple(found))
