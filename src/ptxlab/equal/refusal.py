"""Why a comparison is refused: an instruction whose effect is not followed, or that is different for other inputs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """What cannot be decided, and where."""

    side: int
    """0 for the first kernel, 1 for the second."""
    line: int
    instruction: str
    why: str


class RefusedError(Exception):
    """Raised where a replay ends."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.why)
        self.refusal = refusal
