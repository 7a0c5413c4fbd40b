"""One small interface to the solver."""

from __future__ import annotations

from collections.abc import Iterable
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


def check(formulas: Iterable[Any], milliseconds: int) -> tuple[str, Any]:
    """`unsat`, `sat` with a model, or `unknown`."""
    solver = limited(milliseconds)
    solver.add(*formulas)
    found = str(solver.check())
    return found, solver.model() if found == "sat" else None


def limited(milliseconds: int) -> Any:
    """A solver that gives up after so much work, the same on every machine; about so long on a free one."""
    solver = z3.Solver()
    solver.set("rlimit", milliseconds * WORK)
    solver.set("timeout", milliseconds * FENCE)
    solver.set("ctrl_c", False)  # else Ctrl-C ends one question, not the proof
    return solver
