"""Softmax over rows, the plain way: a warp for each row goes over it three times. Read this before `kernel.py`."""

from __future__ import annotations

import math

from ptxlab.author import b32, f32, kernel, pointer, ptx, u32
from ptxlab.kernels.parts.elements import element_pointer, load, store
from ptxlab.kernels.parts.reductions import add, larger, over_warp


@kernel(target="sm_80", maxntid=32)
def softmax_plain(x: pointer[b32], y: pointer[b32], columns: u32, *, TYPE: str) -> None:  # noqa: N803
    """y = exp(x - maximum) / Σ exp(x - maximum); block b has row b, and lane l the columns l, l + 32, …"""
    start = ptx.mul.wide.u32(ptx.ctaid.x, columns)

    def element(column: u32) -> f32:
        (value,) = load(ptx.ld.global_, element_pointer(x, TYPE, 1, start, column), TYPE, 1)
        return value

    def power(value: f32) -> f32:  # exp(x) is 2 to the x · log2 e, and `ex2` is what the hardware has
        return ptx.ex2.approx.ftz.f32((value - highest) * math.log2(math.e))

    highest, total = f32(-math.inf), f32(0.0)
    for column in ptx.range(ptx.laneid, columns, 32):
        ptx.max.f32(highest, element(column), out=highest)
    highest = over_warp(highest, larger)
    for column in ptx.range(ptx.laneid, columns, 32):
        total += power(element(column))
    inverse = ptx.rcp.rn.f32(over_warp(total, add))
    for column in ptx.range(ptx.laneid, columns, 32):
        store(element_pointer(y, TYPE, 1, start, column), TYPE, [power(element(column)) * inverse])
