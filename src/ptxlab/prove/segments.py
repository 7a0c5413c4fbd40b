"""What an execution notes: segments, which are stretches without a barrier, their accesses, and decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ptxlab.flow.expressions import Linear

from .terms import TRUE, Loop

Path = tuple[Linear, ...]
State = dict[int, Linear]


class UnsupportedError(Exception):
    """An instruction that the proof knows nothing of."""

    def __init__(self, at: int, reason: str) -> None:
        super().__init__(reason)
        self.at, self.reason = at, reason


@dataclass(eq=False)
class Access:
    """Memory that an instruction reads or writes, by all threads for which `path` holds."""

    at: int
    line: int
    kind: str
    space: str
    bytes: int
    align: int
    element: int
    order: str
    address: Linear
    path: Path
    segment: Segment
    is_collective: bool = False
    """Whether a lane gives the address, and any lane of its warp may be the one that accesses it."""
    is_async: bool = False
    """Whether it is a part of an asynchronous copy, which starts at the end of its segment."""

    @property
    def writes(self) -> bool:
        """Whether it changes memory."""
        return self.kind != "load"


@dataclass(eq=False)
class Decision:
    """A branch or a guard, and the threads that come to it."""

    at: int
    line: int
    condition: Linear
    path: Path
    loops: tuple[Loop, ...]


@dataclass(eq=False)
class Segment:
    """Instructions without a barrier between them; `successors` come after, `back` of a loop if it is its next turn."""

    loops: tuple[Loop, ...]
    barrier: int | None = None
    """The barrier that it starts after; None: what comes before it is not a barrier."""
    is_of_warp: bool = False
    """Whether that is a barrier of the warp only."""
    commits: int = 0
    """How many groups of asynchronous copies are committed at its start."""
    waits: int | None = None
    """At its start, after the commit: for all but how many groups the thread waits."""
    accesses: list[Access] = field(default_factory=list)
    successors: list[tuple[Segment, Loop | None]] = field(default_factory=list)


class Arrival(NamedTuple):
    """A way to a block: what holds on it, what registers hold, and the segment that it comes from."""

    path: Path
    state: State
    segment: Segment


class Here(NamedTuple):
    """An instruction where it is executed: by threads for which `path` and `guard` hold, in turns of `loops`."""

    at: int
    guard: Linear
    path: Path
    state: State
    segment: Segment
    loops: tuple[Loop, ...]


class Notes:
    """What was noted so far; what a loop that runs again noted is forgotten."""

    def __init__(self, lines: Sequence[int]) -> None:
        self.lines = lines
        self.segments: list[Segment] = []
        self.decisions: list[Decision] = []
        self.loops: list[Loop] = []
        self.collectives: list[Decision] = []
        """Where lanes of a warp wait for each other; the condition is that of the guard."""
        self.reads_textures = False

    def segment(self, loops: tuple[Loop, ...], barrier: int | None = None, *, is_of_warp: bool = False) -> Segment:
        """A new segment."""
        self.segments.append(Segment(loops, barrier, is_of_warp))
        return self.segments[-1]

    def decide(self, at: int, condition: Linear, path: Path, loops: tuple[Loop, ...]) -> None:
        """Note a decision."""
        self.decisions.append(Decision(at, self.lines[at], condition, path, loops))

    def mark(self) -> tuple[int, int, int, int]:
        """How much there is."""
        return len(self.segments), len(self.decisions), len(self.loops), len(self.collectives)

    def forget(self, mark: tuple[int, int, int, int]) -> None:
        """Forget what came since."""
        segments, decisions, loops, collectives = mark
        del self.segments[segments:], self.decisions[decisions:], self.loops[loops:], self.collectives[collectives:]


def joined(path: Path, condition: Linear) -> Path:
    """A path on which one more predicate holds."""
    if condition == TRUE or condition in path:
        return path
    return (*path, condition)
