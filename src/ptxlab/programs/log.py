"""What is known of a program that runs: findings, launches, allocations, recordings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ptxlab.device.record import Record
from ptxlab.device.result import Result
from ptxlab.programs.messages import Frames
from ptxlab.programs.repeats import Repeats
from ptxlab.report import Diagnostic

if TYPE_CHECKING:
    from ptxlab.programs.examples import LaunchExample


@dataclass(frozen=True)
class HostFinding:
    """What the runtime has found of the host code."""

    code: str
    message: str
    help: str
    frames: Frames
    allocation: int | None = None


@dataclass
class AllocationRecord:
    """An allocation: how large, where it was made, and where it was freed."""

    base: int
    size: int
    kind: str
    made: Frames
    freed: Frames = ()


@dataclass
class LaunchCount:
    """Launches of one kernel, and how long they took."""

    count: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class RecordedLaunch:
    """A launch that was recorded: of which kernel, how it ended, and where the host was."""

    kernel: str
    result: Result
    frames: Frames


@dataclass
class Log:
    """What is known at the end."""

    host: list[HostFinding] = field(default_factory=list)
    device: list[Diagnostic] = field(default_factory=list)
    launches: dict[str, LaunchCount] = field(default_factory=dict)
    launched_at: dict[int, Frames] = field(default_factory=dict)
    """Where the launch was in which a finding of the device was made, by its position."""
    allocations: list[AllocationRecord] = field(default_factory=list)
    recorded: list[RecordedLaunch] = field(default_factory=list)
    repeats: list[Repeats] = field(default_factory=list)
    """Of each process."""
    recordings: int = 0
    """In the folder that all is recorded to: of a launch, or of what ran at the same time."""
    recorded_operations: int = 0
    unrecorded: int = 0
    """Operations that were not recorded, as there were too many."""
    examples: list[LaunchExample] | None = None
    """What launches were like, each once; None where that is not asked for."""


Recorder = Callable[[str, Log], Record | None]
"""What is to be recorded of the next launch of a kernel, given what was recorded before."""
