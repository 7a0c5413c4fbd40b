"""Asynchronous operations as diagnostics name them; see `isa.asynchronous`."""

from __future__ import annotations

from ptxlab.isa.async_operation import AsyncOperation
from ptxlab.isa.asynchronous import started_by
from ptxlab.isa.effects import Effects


def operation_of(effects: Effects) -> AsyncOperation:
    """What an instruction starts that has such effects."""
    started = (started_by(step.unit, step.name) for step in effects.steps)
    return next(operation for operation in started if operation is not None)
