"""Baselines from an expression of torch: as torch runs it, and as one kernel by torch.compile."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any

Library = Callable[..., Callable[[], Any]]


def eager(expression: Callable[..., Any], *answers: str) -> Library:
    """What torch does with `expression(torch, **arrays)`, which returns the answer, or a tuple of all of them."""
    return lambda torch, **arrays: lambda: _named(answers, expression(torch, **arrays))


def _named(answers: Sequence[str], found: Any) -> dict[str, Any]:
    return dict(zip(answers, found if isinstance(found, tuple) else (found,), strict=True))


def compiled(expression: Callable[..., Any], *answers: str, mode: str = "max-autotune-no-cudagraphs") -> Library:
    """What torch.compile makes of it, by default tuned for each size."""

    @cache
    def compile(torch: Any, size: Hashable) -> Callable[..., Any]:
        def run(**arrays: Any) -> Any:
            return expression(torch, **arrays)

        torch.compiler.reset()  # `run` is one function for all sizes, and torch compiles one only so many times
        made: Callable[..., Any] = torch.compile(run, mode=mode, dynamic=False, fullgraph=True)
        return made

    def begin(torch: Any, **arrays: Any) -> Callable[[], Any]:
        size = tuple((name, getattr(one, "shape", one), getattr(one, "dtype", None)) for name, one in arrays.items())
        return lambda: _named(answers, compile(torch, size)(**arrays))

    return begin
