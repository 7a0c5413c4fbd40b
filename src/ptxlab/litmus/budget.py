"""How much is enumerated of a litmus test before it is left unjudged."""

from __future__ import annotations

from dataclasses import dataclass

MOST = 200_000  # candidate executions, whole or as far as they were put together before one more choice


class TooManyError(Exception):
    """There are more candidate executions than are enumerated."""


@dataclass
class Budget:
    """What is left to enumerate."""

    left: int

    def spend(self) -> None:
        """Count one candidate, or a part of one."""
        self.left -= 1
        if self.left < 0:
            raise TooManyError
