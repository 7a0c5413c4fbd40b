"""Cross entropy of rows, in Python: the loss reads each row once and writes one number; so does its gradient."""

from __future__ import annotations

import math
from typing import Any

from ptxlab.author import Pointer, b32, f32, f64, kernel, pointer, ptx, s32, s64, u32, u64
from ptxlab.kernels.parts.elements import element_pointer, load
from ptxlab.kernels.parts.reductions import add, over_block
from ptxlab.kernels.parts.rows import Row, Rows, own_row
from ptxlab.kernels.parts.spreads import Spread
from ptxlab.kernels.softmax.kernel import Together, power, sum_powers

LN_2 = math.log(2)
THREADS = 1024  # of the block that sums losses


def cross_entropy(
    x: pointer[b32],
    targets: pointer[b32],
    loss: pointer[f32],
    logarithms: pointer[f32],
    rows: u32,
    columns: u32,
    ignored: s64,
    *,
    spread: Spread,
    index: str,
) -> None:
    """loss = log Σ exp(x) - x[target] for each row; the logarithm is kept for the gradient."""
    row = own_row(Rows(x, rows, columns, spread, -math.inf))
    common, total = row.agree(sum_powers(row), Together())
    with ptx.when(row.is_first):
        logarithm = ptx.fma.rn.f64(binary_logarithm(total), LN_2, ptx.cvt.f64.f32(common))
        logarithms[row.number] = ptx.cvt.rn.f32.f64(logarithm)
        target = read_target(targets, row, index)
        loss[row.number] = loss_of(x, row, target, logarithm, ignored)


def binary_logarithm(number: f32) -> f64:
    """log2 of a number, as f64: its exponent, and of what is left, from 1 to 2, what the hardware has.

    Of the number itself that would have an error as its last digit, which counts more the larger the logarithm is.
    """
    exponent = ptx.mov.b32(number, out=u32()) >> 23
    rest = number * ptx.shl.b32(254 - exponent, 23, out=f32())  # 0, infinity and NaN stay what they are
    return ptx.cvt.rn.f64.s32((exponent - 127).view(s32)) + ptx.cvt.f64.f32(ptx.lg2.approx.f32(rest))


def read_target(targets: Pointer, row: Row, index: str) -> Any:
    """The class that a row is of, as s64."""
    return target_of(targets, row.number, index)


def target_of(targets: Pointer, number: u32, index: str) -> Any:
    """The class of the row of a number."""
    if index == "s64":
        return targets.view(s64)[number]
    return ptx.cvt.s64.s32(targets.view(s32)[number])


def loss_of(x: Pointer, row: Row, target: s64, logarithm: f64, ignored: s64) -> f32:
    """The loss of a row: 0 where it is ignored, NaN where there is no such class."""
    spread = row.spread
    inside = ptx.cvt.u64.u32(row.columns) > target.view(u64)
    chosen = element_pointer(x, spread.type, 1, row.start, target)
    (logit,) = load(ptx.ld.global_, chosen, spread.type, 1, math.inf, inside)
    loss = ptx.cvt.rn.f32.f64(logarithm - ptx.cvt.f64.f32(logit))
    loss = ptx.selp.f32(loss, math.nan, inside)
    return ptx.selp.f32(0.0, loss, target == ignored)


@kernel(target="sm_90a", maxntid=THREADS)
def sum_losses(
    losses: pointer[f32],
    targets: pointer[b32],
    total: pointer[f32],
    count: pointer[f32],
    rows: u32,
    ignored: s64,
    *,
    INDEX: str,  # noqa: N803
    IS_MEAN: bool,  # noqa: N803
) -> None:
    """The sum of all losses, or their mean over rows that are not ignored, and how many these are, by one block."""
    own, counted = f32(0.0), f32(0.0)
    for row in ptx.range(ptx.tid.x, rows, THREADS):
        target = target_of(targets, row, INDEX)
        own += losses[row]
        counted += ptx.selp.f32(0.0, 1.0, target == ignored)
    found, seen = over_block((own, counted), lambda one, other: tuple(map(add, one, other)), THREADS)
    with ptx.when(ptx.tid.x == 0):
        count[0] = seen
        total[0] = ptx.div.rn.f32(found, seen) if IS_MEAN else found


def gradient(
    x: pointer[b32],
    targets: pointer[b32],
    logarithms: pointer[f32],
    factors: pointer[f32],
    y: pointer[b32],
    rows: u32,
    columns: u32,
    ignored: s64,
    *,
    spread: Spread,
    index: str,
) -> None:
    """y = (softmax(x) - 1 at the target) · factor for each row, and 0 for a row that is ignored."""
    row = own_row(Rows(x, rows, columns, spread, -math.inf, result=y))
    target = read_target(targets, row, index)
    logarithm = logarithms[row.number]
    factor = ptx.selp.f32(0.0, factors[row.number], target == ignored)
    column = ptx.cvt.u32.u64(target.view(u64))
    for vector in row.vectors():
        at = vector.column
        weights = [power(value - logarithm, spread.type == "f32") for value in vector.values]
        ones = [ptx.selp.f32(1.0, 0.0, column == at + number) for number in range(len(weights))]
        vector.store(y, [(weight - one) * factor for weight, one in zip(weights, ones, strict=True)])
