"""Fresh random data: on this machine by NumPy, on a GPU by torch, under the names that PTX has for types.

Space for an answer is poisoned, NaN or a pattern no kernel writes by chance, so that an element that was never written
is seen.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Protocol

import numpy as np

from ptxlab.device.array_types import DTYPES, TORCH_NAMES

Shape = int | tuple[int, ...]

_POISON = 0xA5  # the byte that space for whole numbers is filled with


class Draw(Protocol):
    """Where data comes from."""

    def normal(self, shape: Shape, type: str) -> Any:
        """Numbers around 0 with deviation 1, rounded to `type`."""

    def uniform(self, shape: Shape, type: str, low: float = 0.0, high: float = 1.0) -> Any:
        """Numbers between two, rounded to `type`."""

    def integers(self, shape: Shape, type: str, low: int, high: int) -> Any:
        """Whole numbers from `low` up to but without `high`."""

    def empty(self, shape: Shape, type: str) -> Any:
        """Space for an answer, poisoned."""


class Host:
    """Data in this machine's memory, as NumPy arrays."""

    def __init__(self, seed: int = 0) -> None:
        self.generator = np.random.default_rng(seed)

    def normal(self, shape: Shape, type: str) -> Any:
        return self.generator.standard_normal(shape, dtype=np.float32).astype(DTYPES[type])

    def uniform(self, shape: Shape, type: str, low: float = 0.0, high: float = 1.0) -> Any:
        return self.generator.uniform(low, high, shape).astype(DTYPES[type])

    def integers(self, shape: Shape, type: str, low: int, high: int) -> Any:
        return self.generator.integers(low, high, shape).astype(DTYPES[type])

    def empty(self, shape: Shape, type: str) -> Any:
        space = np.empty(shape, DTYPES[type])
        poison(np, space)
        return space


class Blank:
    """Zeros, where only sizes matter: they take memory where a kernel writes them."""

    def normal(self, shape: Shape, type: str) -> Any:
        return self.empty(shape, type)

    def uniform(self, shape: Shape, type: str, low: float = 0.0, high: float = 1.0) -> Any:
        return self.empty(shape, type)

    def integers(self, shape: Shape, type: str, low: int, high: int) -> Any:
        return self.empty(shape, type)

    def empty(self, shape: Shape, type: str) -> Any:
        return np.zeros(shape, DTYPES[type])


class Device:
    """Data in a GPU's memory, as tensors of torch."""

    def __init__(self, torch: ModuleType, seed: int) -> None:
        self.torch = torch
        self.generator = torch.Generator(device="cuda")
        self.generator.manual_seed(seed)

    def _type(self, type: str) -> Any:
        return getattr(self.torch, TORCH_NAMES[type])

    def normal(self, shape: Shape, type: str) -> Any:
        drawn = self.torch.randn(shape, device="cuda", generator=self.generator)
        return drawn.to(self._type(type))

    def uniform(self, shape: Shape, type: str, low: float = 0.0, high: float = 1.0) -> Any:
        drawn = self.torch.rand(shape, device="cuda", generator=self.generator)
        return (drawn * (high - low) + low).to(self._type(type))

    def integers(self, shape: Shape, type: str, low: int, high: int) -> Any:
        sizes = shape if isinstance(shape, tuple) else (shape,)
        return self.torch.randint(low, high, sizes, device="cuda", generator=self.generator).to(self._type(type))

    def empty(self, shape: Shape, type: str) -> Any:
        space = self.torch.empty(shape, device="cuda", dtype=self._type(type))
        poison(self.torch, space)
        return space


def poison(xp: ModuleType, space: Any) -> None:
    """Fill an array, of NumPy or of torch as `xp` says, with what no kernel writes by chance."""
    raw = space.reshape(-1).view(xp.uint8)
    raw[...] = 0xFF if _has_nan(space) else _POISON  # all ones is a NaN in every format that has one


def _has_nan(space: Any) -> bool:
    return "float" in str(space.dtype)
