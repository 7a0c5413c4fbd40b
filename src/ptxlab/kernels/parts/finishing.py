"""What is done to a result before it is rounded and stored: a bias is added, a function applied, a matrix added.

    D = activation(A·Bᵀ · scale_a · scale_b + bias) + residual

An activation takes a register of f32 and returns one, so that a new one is a line of arithmetic: `activation=` of
products takes the name of one of `ACTIVATIONS`, or such a function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import log2, pi, sqrt
from typing import Any

from ptxlab.author import Pointer, Scalar, b16, b32, f32, ptx, u32


def relu(x: f32) -> f32:
    """The larger one of x and 0."""
    return ptx.max.f32(x, 0.0)


def silu(x: f32) -> f32:
    """x / (1 + exp(-x))."""
    return x * ptx.rcp.approx.ftz.f32(ptx.ex2.approx.ftz.f32(x * -log2(2.718281828459045)) + 1.0)


def gelu_tanh(x: f32) -> f32:
    """GELU with tanh, as torch's `approximate="tanh"`."""
    inner = x * ptx.fma.rn.f32(x * x, 0.044715 * sqrt(2 / pi), sqrt(2 / pi))
    half = x * 0.5
    return ptx.fma.rn.f32(half, ptx.tanh.approx.f32(inner), half)


def gelu(x: f32) -> f32:
    """x / 2 (1 + erf(x / √2)); erf by formula 7.1.26 of Abramowitz and Stegun, to 1.5e-7."""
    size = abs(x) * sqrt(0.5)
    t = ptx.rcp.approx.ftz.f32(ptx.fma.rn.f32(size, 0.3275911, 1.0))
    series = f32(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = ptx.fma.rn.f32(series, t, factor)
    small = series * t * ptx.ex2.approx.ftz.f32(size * size * -log2(2.718281828459045))  # 1 - erf
    half = x * 0.5
    # where x is positive, 1 + erf is 2 - small; where it is negative, small
    return ptx.fma.rn.f32(ptx.neg.f32(abs(half)), small, ptx.max.f32(x, 0.0))


Activation = Callable[[Any], Any]
ACTIVATIONS: dict[str, Activation] = {"relu": relu, "silu": silu, "gelu": gelu, "gelu_tanh": gelu_tanh}


def activation_of(given: str | Activation) -> Activation:
    """The function of a name, or the one that is given."""
    return given if callable(given) else ACTIVATIONS[given]


def check_activation(given: object) -> None:
    """Refuse what is neither a name nor a function."""
    if not callable(given) and given not in ACTIVATIONS:
        names = ", ".join(map(repr, ACTIVATIONS))
        raise ValueError(f"activation={given!r}: expected a function of a register, or one of {names}")


@dataclass(frozen=True)
class Extras:
    """What is computed beside the product."""

    bias: bool = False
    activation: str | Activation | None = None
    residual: bool = False
    scales: bool = False
    paired: bool = False  # two neighbours in a row of the residual, and of the bias, are one aligned word
    boxed: bool = False  # columns are a multiple of a box of D: all of a box are in bounds, or none
    in_ring: bool = False  # the residual is a tensor map, and comes through the ring of stages: `RingResidual`
    adds: bool = False  # the result is added to D, by TMA


@dataclass(frozen=True, eq=False)
class Finish:
    """Finishes accumulators of one block of columns, where `bias` and `residual` point to what is added.

    What is beyond the matrix is computed, too, from its last row and column, and not stored.
    """

    type: str
    extras: Extras
    swap_ab: bool
    extents: tuple[u32, u32]  # rows and columns of what is computed, before it is transposed
    bias: Pointer
    residual: Pointer
    pitch: u32  # from one row of the residual to the next
    scales: tuple[Any, Any]  # where the factors of A and B are
    scale: f32 | None = None  # their product, once it is read

    def begin(self) -> Finish:
        """The same, with all read that is the same for all tiles."""
        if not self.extras.scales:
            return self
        a, b = (ptx.ld.global_.f32(place) for place in self.scales)
        return replace(self, scale=a * b)

    def registers(self, results: int) -> int:
        """Registers of what is added to so many results in two rows."""
        paired = 1 + (self.extras.paired and not self.swap_ab)
        biases = 2 if self.swap_ab else results // 2 // paired
        return biases * self.extras.bias + results // paired * self.extras.residual

    def inside(self, column: u32, width: int) -> u32:
        """The first column of a box of that width, or of one that is in bounds instead of it."""
        return ptx.min.u32(column, self.extents[1] - width) if self.extras.boxed else column

    def load(self, fragment: Any, row: Any, first: Any, place: Any = None, at: int = 0) -> list[list[list[Scalar]]]:
        """Load what is added at `row` and what follows, as a fragment holds it: to each pair in a row.

        It is `at` columns after the `first` of its box; `place` is where that is in the tile.
        """
        down, right = fragment.first(ptx.laneid)
        column = first + at if at else first
        offsets = fragment.offsets[::2]
        step = 2 if self.extras.paired and not self.swap_ab else 1
        rows = {one: ptx.min.u32(row + down + one, self.extents[0] - 1) for one in dict.fromkeys(r for r, _ in offsets)}
        firsts = dict.fromkeys(c for _, c in offsets)
        columns = {one: ptx.min.u32(column + right + one, self.extents[1] - step) for one in firsts}
        if step == 1:
            columns |= {one + 1: ptx.min.u32(columns[one] + 1, self.extents[1] - 1) for one in firsts}
        if self.extras.boxed:  # one address for all of a box
            start = self.bias + (first + right)
            biases = {one: self.pair(start + (at + one)) for one in firsts}
        else:
            biases = self.biases(rows, columns) if self.extras.bias else {}
        is_loaded = self.extras.residual and not self.extras.in_ring
        lines = self.lines(rows, columns) if is_loaded else {}
        added = [[biases[r] if self.swap_ab else biases[c]] if biases else [] for r, c in offsets]
        if is_loaded:
            for some, (r, c) in zip(added, offsets, strict=True):
                some.append(self.residuals(lines, rows, columns, r, c))
        return added

    def apply(self, values: list[f32], loaded: list[list[list[Scalar]]]) -> list[f32]:
        """The results, with what `load` has loaded for them."""
        if self.scale is not None:
            values = [value * self.scale for value in values]
        found: list[Any] = []
        for number, words in enumerate(loaded):
            pair, added = values[2 * number : 2 * number + 2], [self.numbers(one) for one in words]
            if self.extras.bias:
                pair = [value + one for value, one in zip(pair, added[0], strict=True)]
            if self.extras.activation is not None:
                pair = [activation_of(self.extras.activation)(value) for value in pair]
            if self.extras.residual:
                pair = [value + one for value, one in zip(pair, added[-1], strict=True)]
            found += pair
        return found

    def biases(self, rows: dict[int, Any], columns: dict[int, Any]) -> dict[int, list[Any]]:
        """What is added to each pair: one bias for both if D is stored transposed, else one for each column."""
        if self.swap_ab:
            return {r: [self.element(self.bias + at)] * 2 for r, at in rows.items()}
        if self.extras.paired:
            return {c: self.pair(self.bias + at) for c, at in columns.items()}
        return {c: [self.element(self.bias + columns[one]) for one in (c, c + 1)] for c in columns if c + 1 in columns}

    def lines(self, rows: dict[int, Any], columns: dict[int, Any]) -> dict[int, Any]:
        """Where rows of the residual start."""
        starts = columns if self.swap_ab else rows
        return {one: self.residual + ptx.mul.wide.u32(at, self.pitch) for one, at in starts.items()}

    def residuals(self, lines: Any, rows: Any, columns: Any, r: int, c: int) -> list[Any]:
        """What is added to a pair."""
        if self.swap_ab:
            return [self.element(lines[one] + rows[r]) for one in (c, c + 1)]
        if self.extras.paired:
            return self.pair(lines[r] + columns[c])
        return [self.element(lines[r] + columns[one]) for one in (c, c + 1)]

    def element(self, place: Pointer) -> Scalar:
        """An element as it is in memory."""
        return ptx.ld.global_.f32(place) if self.type == "f32" else ptx.ld.global_.b16(place)

    def pair(self, place: Pointer) -> list[Any]:
        """Two neighbours of 16 bits as they are in memory, in one register."""
        return [ptx.ld.global_.b32(place.view(b32))]

    def numbers(self, loaded: list[Scalar]) -> list[Any]:
        """Two neighbours as f32."""
        if len(loaded) == 1:
            loaded = [*ptx.mov.b32(loaded[0], out=(b16(), b16()))]
        return loaded if self.type == "f32" else [ptx.cvt.f32[self.type](one) for one in loaded]
