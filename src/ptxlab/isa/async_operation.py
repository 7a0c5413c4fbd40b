"""What methods of asynchronous units do, for effects of instructions, and what they start, in the words of diagnostics.

`@step` is written above the methods of the protocols in `asynchronous.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ptxlab.values import dataclass

F = TypeVar("F", bound=Callable[..., object])

MBARRIER_BYTES = 8


@dataclass(frozen=True, slots=True)
class AsyncOperation:
    """What a method starts: what diagnostics call it, and how threads know that it is complete."""

    name: str
    completion: str = ""
    is_awaited: bool = False
    """Whether the thread that started it may wait for it, by the step `wait` of its unit."""

    def __str__(self) -> str:
        """`a copy`, `an MMA`"""
        return f"an {self.name}" if self.name == "MMA" else f"a {self.name}"


@dataclass(frozen=True, slots=True)
class Action:
    """What a method does, as `@step` says it."""

    step: str
    """Its name among the steps of an instruction's effects; empty for what others do not see."""
    reads: str = ""
    """The parameter that is the address it reads."""
    writes: str = ""
    """The address that it writes, or updates if it is given a `reduction`."""
    updates: str = ""
    completes: str = ""
    """The mbarrier that it completes on later."""
    bytes: int | str | None = None
    """How many it accesses at each address, or the parameter whose width that is; None: not known from the text."""
    is_later: bool = True
    """Whether it accesses memory later, through the async proxy."""
    result: str = ""
    """The type of the result, or the parameter that names it."""
    starts: AsyncOperation | None = None
    address: str = ""
    """The parameter that is an address which the result, an address too, is derived from."""


def step(name: str, **how: Any) -> Callable[[F], F]:
    """Say what a method does: the fields of `Action`."""
    action = Action(name, **how)

    def note(method: F) -> F:
        method.action = action  # type: ignore[attr-defined]
        return method

    return note
