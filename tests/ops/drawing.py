"""Random sizes, numbers and places in memory of arrays, and calls that are made of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
HALVES = (np.float16, BF16)
ROUNDING = {np.float16: 2.0**-11, BF16: 2.0**-8, np.float32: 2.0**-23, E4M3: 2.0**-4}
ACTIVATIONS: dict[str | None, Callable[[Any], Any]] = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_tanh": lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}


@dataclass
class Drawn:
    """A call, what float64 gives for its results, and how far each may be from that."""

    function: Callable[..., Any]
    arrays: dict[str, Any]
    exact: Callable[..., list[Any]]
    """All results from the arrays, in float64."""
    options: dict[str, Any] = field(default_factory=dict)
    out: Any = None
    """An array for the first result."""
    most: float = 0.0
    """What is allowed of the root mean square of a result, besides the rounding of each element."""
    rounding: float = 0.0
    least: float = 1e-7
    """What is allowed where float64 gives 0, as terms may cancel each other."""

    def __str__(self) -> str:
        parts = [f"{name}={show(one)}" for name, one in self.arrays.items()]
        parts += [f"{name}={one!r}" for name, one in self.options.items()]
        parts += [f"out={show(self.out)}"] if self.out is not None else []
        return ", ".join(parts)


def show(array: Any) -> str:
    steps = tuple(step // array.itemsize for step in array.strides)
    short = f" {array.tolist()}" if array.dtype == np.int32 and array.size < 8 else ""
    return f"{array.dtype}{list(array.shape)} by {list(steps)} at {array.ctypes.data % 16}{short}"


class Draw:
    """Random choices."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def size(self, most: int, step: int = 1) -> int:
        """Small numbers as often as large ones."""
        return step * max(1, int(math.exp(self.rng.uniform(0, math.log(most / step + 0.5)))))

    def one_of(self, *choices: Any) -> Any:
        return choices[self.rng.integers(len(choices))]

    def chance(self, part: float = 0.5) -> bool:
        return bool(self.rng.random() < part)

    def normal(self, *shape: int, type: Any = np.float32) -> Any:
        return self.rng.standard_normal(shape).astype(type)

    def placed(self, array: Any, step: int = 1, across: bool = False) -> Any:
        """The same numbers somewhere in memory: perhaps in wider rows, at another alignment, by columns.

        Rows and addresses are multiples of so many elements.
        """
        turned = across and array.ndim > 1 and self.chance()
        given = array.swapaxes(-1, -2) if turned else array
        more = step * int(self.one_of(0, 0, 1, 3)) if array.ndim > 1 else 0
        first = step * int(self.one_of(0, 0, 1, 2))
        columns = given.shape[-1] + more
        count = math.prod(given.shape[:-1]) * columns
        memory = np.zeros(count + first + 64, array.dtype)
        memory.view(np.uint8)[...] = 0x7F  # not a number in most types
        start = -(memory.ctypes.data // array.itemsize) % (64 // array.itemsize) + first
        found = memory[start : start + count].reshape(*given.shape[:-1], columns)[..., : given.shape[-1]]
        found[...] = given
        return found.swapaxes(-1, -2) if turned else found


def wide(array: Any) -> Any:
    return array.astype(np.float64)
