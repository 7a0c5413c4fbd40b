"""A kernel of a public project, random arguments for it, and what several of them compute, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

RANDOM = np.random.default_rng(38)
Results = dict[int, Any] | Any
"""What a kernel computes: by the number of the argument, or of the one array that it writes."""


@dataclass(frozen=True)
class Stranger:
    """A kernel, its launch, and `wanted`, which takes all arguments in their order.

    A kernel whose paths or addresses depend on floats has no `wanted`: it is compared with itself as the compiler
    makes it without contraction, which must not be different.
    """

    project: str
    file: str
    entry: str
    grid: Any
    block: Any
    args: Sequence[Any]
    wanted: Callable[..., Results] | None
    shared: int = 0
    options: Sequence[str] = ()
    target: str = "sm_90"
    mistake: str = ""
    """What is wrong with the kernel itself, where that is known."""
    instance: Sequence[str] = field(default=())
    """Template instances that nothing in the file asks for."""

    @property
    def name(self) -> str:
        """What a table calls it."""
        return f"{self.project} {self.file} {self.entry.partition('<')[0]}"


def f(*shape: int, type: Any = np.float32) -> Any:
    """Numbers."""
    return RANDOM.standard_normal(shape).astype(type)


def p(*shape: int, type: Any = np.float32) -> Any:
    """Positive numbers."""
    return (RANDOM.random(shape) + 0.5).astype(type)


def h(*shape: int) -> Any:
    return f(*shape, type=np.float16)


def b(*shape: int) -> Any:
    return f(*shape, type=ml_dtypes.bfloat16)


def i(most: int, *shape: int) -> Any:
    return RANDOM.integers(0, most, shape).astype(np.int32)


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def normed(x: Any, eps: float = 1e-5) -> tuple[Any, Any, Any]:
    """Rows without mean, of variance 1; the mean, and the reciprocal of the deviation."""
    mean = x.mean(-1, keepdims=True)
    rest = x - mean
    scale = 1 / np.sqrt((rest * rest).mean(-1, keepdims=True) + eps)
    return rest * scale, mean, scale


def attention(q: Any, k: Any, v: Any, *_: Any) -> Results:
    return {3: softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v}


def attention_of_columns(q: Any, k: Any, v: Any, *_: Any) -> Results:
    """V is stored by columns: a row has one element of each key."""
    return attention(q, k, v.reshape(*v.shape[:-2], v.shape[-1], v.shape[-2]).swapaxes(-1, -2))


def scanned(x: Any) -> Any:
    """Sums of all elements up to each, along the last axis."""
    return x @ np.triu(np.ones((x.shape[-1],) * 2, np.float32))
