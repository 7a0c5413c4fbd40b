"""Baselines from torch: an expression as torch runs it, and as one kernel by torch.compile; attention by a backend."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cache
from types import ModuleType
from typing import Any

from ptxlab.device.arrays import Array
from ptxlab.launch.launches import UnsuitedError

Library = Callable[..., Callable[[], Any]]


def eager(expression: Callable[..., object], *answers: str) -> Library:
    """What torch does with `expression(torch, **arrays)`, which returns the answer, or a tuple of all of them."""
    return lambda torch, **arrays: lambda: _named(answers, expression(torch, **arrays))


def _named(answers: Sequence[str], found: object) -> dict[str, object]:
    return dict(zip(answers, found if isinstance(found, tuple) else (found,), strict=True))


def compiled(expression: Callable[..., object], *answers: str, mode: str = "max-autotune-no-cudagraphs") -> Library:
    """What torch.compile makes of it, by default tuned for each size."""

    @cache
    def compile(torch: ModuleType, size: Hashable) -> Callable[..., object]:
        def run(**arrays: object) -> object:
            return expression(torch, **arrays)

        torch.compiler.reset()  # `run` is one function for all sizes, and torch compiles one only so many times
        made: Callable[..., Any] = torch.compile(run, mode=mode, dynamic=False, fullgraph=True)
        return made

    def begin(torch: ModuleType, **arrays: object) -> Callable[[], Any]:
        size = tuple((name, getattr(one, "shape", one), getattr(one, "dtype", None)) for name, one in arrays.items())
        return lambda: _named(answers, compile(torch, size)(**arrays))

    return begin


def torch_attention(torch: ModuleType, backend: str, q: Array, k: Array, v: Array, causal: bool = False) -> Any:
    """softmax(q·kᵀ/√d)·v by one of torch's backends; heads of keys may be fewer than those of queries."""
    choice = torch.nn.attention
    has_fewer = q.shape[1] != k.shape[1]
    with choice.sdpa_kernel(getattr(choice.SDPBackend, backend)):
        try:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=has_fewer)
        except RuntimeError as refused:
            if "No available kernel" not in str(refused):
                raise
            raise UnsuitedError("torch's backend has no kernel for this") from None
