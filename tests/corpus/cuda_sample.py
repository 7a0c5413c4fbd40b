"""A kernel of a public `.cu` file: how it is launched, and what it must compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
RANDOM = np.random.default_rng(1)


@dataclass(frozen=True)
class Sample:
    """A kernel of a file, how it is launched, and what it must compute: `wanted` takes the arguments as they were."""

    file: str
    entry: str
    grid: Any
    block: Any
    args: Sequence[Any]
    result: Any  # the number of the argument that holds the result, or the array itself
    wanted: Callable[..., Any]
    target: str = "sm_80"
    tolerance: float = 1e-5
    launch: dict[str, Any] = field(default_factory=dict)
    variables: dict[str, Array] = field(default_factory=dict)
    known: str = ""  # what is wrong with the kernel itself
    repository: str = "cuda-samples"
    options: Sequence[str] = ("-ICommon", "-std=c++17")


def floats(*shape: int) -> Array:
    """Numbers from 0 to 1."""
    return RANDOM.random(shape, np.float32)


def zeros(*shape: int) -> Array:
    """An array for a result."""
    return np.zeros(shape, np.float32)
