"""What an algorithm means: its statements by NumPy in float64, all iterations at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptxlab.schedule.linear import Linear
from ptxlab.schedule.statements import (
    Algorithm,
    Applied,
    Expression,
    Gathered,
    Index,
    Let,
    Load,
    Name,
    Number,
    Reduce,
    Store,
)

Values = NDArray[Any]
_FUNCTIONS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "max": np.maximum,
    "min": np.minimum, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "tanh": np.tanh, "abs": np.abs, "sin": np.sin, "cos": np.cos, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal, "and": np.logical_and,
    "or": np.logical_or, "choose": np.where,
}  # fmt: skip
NEUTRAL = {"add": 0.0, "max": -np.inf, "min": np.inf}


def compute(algorithm: Algorithm, sizes: Mapping[str, int], arguments: Mapping[str, object]) -> dict[str, Values]:
    """The outputs in float64, for arrays and numbers by name."""
    with np.errstate(all="ignore"):
        return _Reference(algorithm, sizes, arguments).outputs()


class _Reference:
    """Each value has a dimension for each axis, in one order, of extent 1 where it does not depend on that axis."""

    def __init__(self, algorithm: Algorithm, sizes: Mapping[str, int], arguments: Mapping[str, object]) -> None:
        self.algorithm, self.sizes = algorithm, sizes
        self.order = list(algorithm.axes)
        self.extents = {axis: max(extent.value(sizes), 0) for axis, extent in algorithm.axes.items()}
        wide = {name: np.asarray(getattr(v, "numbers", v), np.float64) for name, v in arguments.items()}
        self.arrays = {name: wide[name] for name in algorithm.arrays}
        self.values: dict[str, Values] = {name: wide[name] for name in wide if name not in algorithm.arrays}

    def outputs(self) -> dict[str, Values]:
        found = {name: self.arrays[name].copy() for name in self.algorithm.outputs}
        for one in self.algorithm.statements:
            value = self.evaluate(one.value)
            if isinstance(one, Let):
                self.values[one.name] = value
            elif isinstance(one, Reduce):
                where = True if one.condition is None else self.evaluate(one.condition)
                value = np.broadcast_to(np.where(where, value, NEUTRAL[one.operation]), self.shape(one.axes + one.over))
                over = tuple(self.order.index(axis) for axis in one.over)
                self.values[one.name] = _FUNCTIONS[one.operation].reduce(
                    value, axis=over, keepdims=True, initial=NEUTRAL[one.operation]
                )
            elif isinstance(one, Store):
                shape = self.shape(one.axes)
                index = tuple(np.broadcast_to(self.index(part), shape) for part in one.index)
                value = np.broadcast_to(value, shape)
                where = np.broadcast_to(True if one.condition is None else self.evaluate(one.condition), shape)
                found[one.array][tuple(part[where] for part in index)] = value[where]
        return found

    def shape(self, axes: tuple[str, ...]) -> tuple[int, ...]:
        return tuple(self.extents[axis] if axis in axes else 1 for axis in self.order)

    def index(self, value: Linear) -> Values:
        found: Values = np.full((1,) * len(self.order), value.constant)
        for name, coefficient in value.terms:
            if isinstance(name, Gathered):
                found = found + self.evaluate(name.load).astype(np.int64) * coefficient
                continue
            if name in self.sizes:
                found = found + self.sizes[name] * coefficient
                continue
            shape = [1] * len(self.order)
            shape[self.order.index(name)] = -1
            found = found + (np.arange(self.extents[name]) * coefficient).reshape(shape)
        return found

    def evaluate(self, value: Expression) -> Values:
        match value:
            case Number(number):
                return np.full((1,) * len(self.order), number)
            case Index(linear):
                return self.index(linear)
            case Name(name):
                return self.values[name]
            case Load(array, index):
                values = self.arrays[array]
                parts = [self.index(part) for part in index]
                clipped = [np.clip(part, 0, extent - 1) for part, extent in zip(parts, values.shape, strict=True)]
                return np.asarray(values[tuple(np.broadcast_arrays(*clipped))])
            case Applied(name, operands):
                return np.asarray(_FUNCTIONS[name](*map(self.evaluate, operands)))
        raise AssertionError(value)
