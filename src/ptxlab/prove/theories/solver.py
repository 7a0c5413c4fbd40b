"""One small interface to the solver."""

from __future__ import annotations

from collections.abc import Iterable
from time import monotonic
from typing import Any

try:
    import z3 as z3
except ImportError:  # `prove` says which package it needs
    z3 = None

WORK = 3_000  # what Z3 calls resources, in a millisecond
FENCE = 20


class MissingSolverError(ImportError):
    """Z3 is not installed."""


def require_solver() -> None:
    """Raise where Z3 is not installed."""
    if z3 is None:
        raise MissingSolverError("prove: it needs the solver Z3: `pip install --only-binary z3-solver 'ptxlab[prove]'`")


class Clock:
    """When a proof must be over; without a limit, never."""

    def __init__(self, seconds: float = 1e6) -> None:
        self.start = monotonic()
        self.deadline = self.start + seconds

    @property
    def left(self) -> float:
        """The seconds that are left, at least a few hundredths."""
        return max(0.05, self.deadline - monotonic())

    @property
    def is_over(self) -> bool:
        """Whether there is no time left."""
        return monotonic() >= self.deadline

    def check(self, formulas: Iterable[object], milliseconds: int) -> tuple[str, Any]:
        """`unsat`, `sat` with a model, or `unknown`."""
        if self.is_over:
            return "unknown", None
        solver = self.solver(milliseconds)
        solver.add(*formulas)
        found = str(solver.check())
        return found, solver.model() if found == "sat" else None

    def solver(self, milliseconds: int) -> Any:
        """A solver that gives up after so much work, the same on every machine; or when the time is over."""
        solver = z3.Solver()
        solver.set("rlimit", milliseconds * WORK)
        solver.set("timeout", max(1, int(min(milliseconds * FENCE, self.left * 1000))))
        solver.set("ctrl_c", False)  # else Ctrl-C ends one question, not the proof
        return solver
