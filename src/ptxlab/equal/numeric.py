"""Numbers for two sides that are not the same by rule: how near they are, and inputs that show a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.equal.nodes import Ids, Nodes
from ptxlab.equal.reals import Reals
from ptxlab.equal.sides import Inputs, Kernels, NamedArray

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """What came of the inputs that showed the largest difference."""

    is_known: bool
    """Whether all of both sides could be computed."""
    difference: float
    """The largest, as a part of the largest element."""
    worst: int | None
    inputs: dict[str, Any]
    both: tuple[Numbers, Numbers]
    errors: tuple[float, float] | None = None
    apart: float = 0.0
    """How far the results of the kernels are from each other for these inputs, as a part of the largest element."""

    def values(self, index: int) -> tuple[float, float]:
        """What an element is on both sides."""
        return float(self.both[0][index]), float(self.both[1][index])


def _draws(generator: np.random.Generator, size: int) -> dict[str, Numbers]:
    """Numbers that kernels tend to be wrong for."""
    normal = generator.standard_normal(size)
    return {
        "normal": normal,
        "all of one sign": np.abs(normal) + 0.5,
        "of many magnitudes": normal * np.exp2(generator.integers(-8, 9, size)),
        "large": normal * 30.0,
        "cancelling": np.where(np.arange(size) % 2, 1.0, -1.0) * (1000 + generator.standard_normal(size)),
        "ties": generator.integers(-2, 3, size).astype(np.float64),
        "zeros": np.zeros(size),
        "subnormal": normal * 2.0**-130,
    }


def measure(
    nodes: Nodes, inputs: Inputs, sides: Sequence[Any], arrays: Sequence[NamedArray], a: Ids, b: Ids
) -> Measured:
    """Evaluate both sides on adversarial inputs in float64, and run the kernels on those that show the most.

    Where branches are taken to go as they did, only the arrays as they are given are known to do that.
    """
    generator = np.random.default_rng(7)
    symbols = {array.name: array for key, array in inputs.arrays.items() if key in inputs.ids and array.format}
    drawn = {name: {"as given": array.data.ravel().astype(np.float64), **_draws(generator, array.data.size)}
             for name, array in symbols.items()}  # fmt: skip
    worst = Measured(False, 0.0, None, {}, (np.zeros(0), np.zeros(0)))
    for kind in ["as given"] if any(side.assumed for side in sides) else next(iter(drawn.values()), {}):
        given = {name: _rounded(array, drawn[name][kind]) for name, array in symbols.items()}
        real = Reals(
            nodes, np.concatenate([a, b]), {name: one.ravel().astype(np.float64) for name, one in given.items()}
        )
        x, y = real.held_in(arrays, a), real.held_in(arrays, b)
        known = np.isfinite(x) & np.isfinite(y)
        unlike = np.isfinite(x) != np.isfinite(y)
        if not known.any() and not unlike.any():
            continue
        scale = max(float(np.abs(x[known]).max(initial=0)), float(np.abs(y[known]).max(initial=0)), 1e-300)
        distance = np.where(known, np.abs(np.where(known, x, 0) - np.where(known, y, 0)) / scale, 0)
        difference = float(distance.max(initial=0))
        is_known = worst.is_known or (bool(known.all()) and kind in ("as given", "normal"))
        if is_known > worst.is_known or difference > worst.difference:
            worst = Measured(is_known, max(difference, worst.difference), int(distance.argmax()), given, (x, y))
    return _run(sides, arrays, worst, symbols) if worst.is_known else worst


def _rounded(array: NamedArray, numbers: Numbers) -> npt.NDArray[Any]:
    with np.errstate(over="ignore"):
        found: npt.NDArray[Any] = numbers.astype(array.data.dtype).reshape(array.data.shape)
    return found


def _run(
    sides: Sequence[object], arrays: Sequence[NamedArray], measured: Measured, symbols: dict[str, NamedArray]
) -> Measured:
    """What the kernels give for these inputs: the error against real numbers, and how far apart they are."""
    errors, results = [], []
    scale = max(float(np.abs(one[np.isfinite(one)]).max(initial=0)) for one in measured.both) or 1e-300
    saved = {name: array.data.copy() for name, array in symbols.items()}
    try:
        for name, array in symbols.items():
            array.data[...] = measured.inputs[name]
        for side, real in zip(sides, measured.both, strict=True):
            got = real
            if isinstance(side, Kernels):
                again = Kernels(side.launches, side.inputs, side.side, side.options)
                again.record()
                parts = [again.results[array.key].ravel()[: array.data.size] for array in arrays]
                got = np.concatenate([one.astype(np.float64) for one in parts])
            errors.append(_distance(got, real) / scale)
            results.append(got)
    finally:
        for name, array in symbols.items():
            array.data[...] = saved[name]
    return replace(measured, errors=(errors[0], errors[1]), apart=_distance(*results) / scale)


def _distance(a: Numbers, b: Numbers) -> float:
    """The largest difference of numbers that are finite on both sides."""
    known = np.isfinite(a) & np.isfinite(b)
    return float(np.abs(a[known] - b[known]).max(initial=0))
