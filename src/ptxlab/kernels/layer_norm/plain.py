"""Layer norm over rows, the plain way: a warp for each row goes over it three times. Read this before `kernel.py`."""

from __future__ import annotations

from ptxlab.author import b32, f32, kernel, pointer, ptx, u32, u64
from ptxlab.kernels.parts.elements import element_pointer, inverse_root, load, store
from ptxlab.kernels.parts.reductions import add, over_warp


@kernel(target="sm_80", maxntid=32)
def layer_norm_plain(
    x: pointer[b32],
    weight: pointer[b32],
    bias: pointer[b32],
    y: pointer[b32],
    columns: u32,
    epsilon: f32,
    *,
    TYPE: str,  # noqa: N803
) -> None:
    """y = (x - mean) / √(variance + ε) · weight + bias; block b has row b, and lane l the columns l, l + 32, …"""
    start, count = ptx.mul.wide.u32(ptx.ctaid.x, columns), ptx.cvt.rn.f32.u32(columns)

    def element(of: pointer[b32], *place: u32 | u64) -> f32:
        (value,) = load(ptx.ld.global_, element_pointer(of, TYPE, 1, *place), TYPE, 1)
        return value

    total, squares = f32(0.0), f32(0.0)
    for column in ptx.range(ptx.laneid, columns, 32):
        total += element(x, start, column)
    mean = ptx.div.rn.f32(over_warp(total, add), count)
    for column in ptx.range(ptx.laneid, columns, 32):
        apart = element(x, start, column) - mean
        ptx.fma.rn.f32(apart, apart, squares, out=squares)
    scale = inverse_root(ptx.div.rn.f32(over_warp(squares, add), count) + epsilon)
    for column in ptx.range(ptx.laneid, columns, 32):
        normed = (element(x, start, column) - mean) * scale
        result = ptx.fma.rn.f32(normed, element(weight, column), element(bias, column))
        store(element_pointer(y, TYPE, 1, start, column), TYPE, [result])
