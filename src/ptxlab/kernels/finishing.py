"""What is done to a result before it is rounded and stored: a bias is added, a function applied, a matrix added.

    D = activation(A·Bᵀ · scale_a · scale_b + bias) + residual

Each function of `ACTIVATIONS` takes a register and returns one, so that a new one is a line of arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log2, pi, sqrt
from typing import Any

from ptxlab.author import b16, f32, ptx


def relu(x: Any) -> Any:
    """The larger one of x and 0."""
    return ptx.max.f32(x, 0.0)


def silu(x: Any) -> Any:
    """x / (1 + exp(-x))."""
    return x * ptx.rcp.approx.f32(ptx.ex2.approx.f32(x * -log2(2.718281828459045)) + 1.0)


def gelu_tanh(x: Any) -> Any:
    """GELU with tanh, as torch's `approximate="tanh"`."""
    inner = x * ptx.fma.rn.f32(x * x, 0.044715 * sqrt(2 / pi), sqrt(2 / pi))
    half = x * 0.5
    return ptx.fma.rn.f32(half, ptx.tanh.approx.f32(inner), half)


def gelu(x: Any) -> Any:
    """x / 2 (1 + erf(x / √2)); erf by formula 7.1.26 of Abramowitz and Stegun, to 1.5e-7."""
    size = abs(x) * sqrt(0.5)
    t = ptx.rcp.approx.f32(ptx.fma.rn.f32(size, 0.3275911, 1.0))
    series = f32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = ptx.fma.rn.f32(series, t, factor)
    small = series * t * ptx.ex2.approx.f32(size * size * -log2(2.718281828459045))  # 1 - erf
    half = x * 0.5
    # where x is positive, 1 + erf is 2 - small; where it is negative, small
    return ptx.fma.rn.f32(ptx.neg.f32(abs(half)), small, ptx.max.f32(x, 0.0))


ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": relu, "silu": silu, "gelu": gelu, "gelu_tanh": gelu_tanh}


@dataclass(frozen=True)
class Extras:
    """What is computed beside the product."""

    bias: bool = False
    activation: str | None = None
    residual: bool = False
    scales: bool = False


@dataclass(frozen=True, eq=False)
class Finish:
    """Finishes accumulators of one block of columns, where `bias` and `residual` point to what is added."""

    type: str
    extras: Extras
    swapped: bool
    extents: tuple[Any, Any]  # rows and columns of what is computed, before it is transposed
    bias: Any
    residual: Any
    pitch: Any  # from one row of the residual to the next
    scales: tuple[Any, Any]  # where the factors of A and B are
    scale: Any = None  # their product, once it is read

    def begin(self) -> Finish:
        """The same, with all read that is the same for all tiles."""
        if not self.extras.scales:
            return self
        a, b = (ptx.ld.global_.nc.f32(place) for place in self.scales)
        return replace(self, scale=a * b)

    def apply(self, values: list[Any], fragment: Any, row: Any, column: Any) -> list[Any]:
        """The results at `row` and `column` and what follows, as a fragment holds them."""
        if self.scale is not None:
            values = [value * self.scale for value in values]
        down, right = fragment.first(ptx.laneid)
        found = []
        for value, (rows, columns) in zip(values, fragment.offsets, strict=True):
            at = row + down + rows, column + right + columns
            inside = ptx.and_.pred(at[0] < self.extents[0], at[1] < self.extents[1])
            across, along = at if self.swapped else (at[1], at[0])  # columns and rows of D
            if self.extras.bias:
                value = value + self.load(self.bias + across, inside)
            if self.extras.activation is not None:
                value = ACTIVATIONS[self.extras.activation](value)
            if self.extras.residual:
                place = self.residual + ptx.mad.wide.u32(along, self.pitch, ptx.cvt.u64.u32(across))
                value = value + self.load(place, inside)
            found.append(value)
        return found

    def load(self, place: Any, inside: Any) -> Any:
        """An element as f32; 0 where there is none."""
        if self.type == "f32":
            value = f32(0)
            ptx.ld.global_.nc.f32(place, out=value, when=inside)
            return value
        bits = b16(0)
        ptx.ld.global_.nc.b16(place, out=bits, when=inside)
        return ptx.cvt.f32[self.type](bits)
