"""What seeds have covered: how many schedules, how many that differ, and which bugs they find with what probability."""

from __future__ import annotations

from math import prod
from typing import Any

from ptxlab.values import dataclass

DEPTHS = 3  # bugs of depth 1 to 3 are searched for by priorities
MAGNITUDES = 20  # a change point is equally likely to be at 1, at 2 or 3, at 4 to 7, … up to one of so many


@dataclass(frozen=True)
class Schedule:
    """The schedule of a launch: its seed, a digest of the order in which threads passed preemption points."""

    seed: int
    digest: int
    points: int
    """Preemption points that were passed by threads that took turns."""
    threads: int

    @property
    def depth(self) -> int:
        """The depth of bugs that it searches for by priorities; 0 for a random walk and for seed 0."""
        return self.seed // 2 % DEPTHS + 1 if self.seed % 2 else 0

    def probability(self, depth: int) -> float:
        """At least how probable it was that it shows a bug of this depth, if there is one."""
        if depth != self.depth or not self.points:
            return 0.0
        magnitude = self.points.bit_length() - 1
        of_point = sum(1 / (MAGNITUDES * most) for most in range(magnitude + 1, MAGNITUDES + 1)) / 2**magnitude
        return float(of_point ** (depth - 1)) / max(self.threads, 1)


@dataclass(frozen=True)
class Coverage:
    """What the seeds of a search have covered."""

    schedules: tuple[Schedule, ...]

    @property
    def distinct(self) -> int:
        """Schedules in which threads pass preemption points in different orders."""
        return len({schedule.digest for schedule in self.schedules})

    @property
    def points(self) -> int:
        """Preemption points, at most, in a schedule."""
        return max((schedule.points for schedule in self.schedules), default=0)

    @property
    def threads(self) -> int:
        """Threads that took turns, at most."""
        return max((schedule.threads for schedule in self.schedules), default=0)

    def probability(self, depth: int) -> float:
        """At least how probable it is that one of these schedules shows a bug of this depth, if there is one."""
        return 1 - prod(1 - schedule.probability(depth) for schedule in self.schedules)

    def as_object(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "schedules": len(self.schedules),
            "distinct": self.distinct,
            "threads": self.threads,
            "points": self.points,
            "probabilities": [self.probability(depth) for depth in range(1, DEPTHS + 1)],
        }

    def __str__(self) -> str:
        count = len(self.schedules)
        bounds = ", ".join(f"{100 * self.probability(depth):.2g} %" for depth in range(1, DEPTHS + 1))
        return (
            f"{count:,} schedule{'s' * (count != 1)}, {self.distinct:,} distinct; "
            f"{self.threads:,} threads, {self.points:,} preemption points; "
            f"a bug of depth 1, 2, 3 shows with a probability of at least {bounds}"
        )
