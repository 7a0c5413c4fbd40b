"""RMS norm over rows, the plain way: a warp for each row goes over it twice. Read this before `kernel.py`."""

from __future__ import annotations

from ptxlab.author import b32, f32, kernel, pointer, ptx, u32, u64
from ptxlab.kernels.parts.elements import element_pointer, inverse_root, load, store
from ptxlab.kernels.parts.reductions import add, over_warp


@kernel(target="sm_80", maxntid=32)
def rms_norm_plain(
    x: pointer[b32],
    weight: pointer[b32],
    y: pointer[b32],
    columns: u32,
    epsilon: f32,
    *,
    TYPE: str,  # noqa: N803
) -> None:
    """y = x / √(mean of squares + ε) · weight; block b has row b, and lane l the columns l, l + 32, …"""
    start = ptx.mul.wide.u32(ptx.ctaid.x, columns)

    def element(of: pointer[b32], *place: u32 | u64) -> f32:
        (value,) = load(ptx.ld.global_, element_pointer(of, TYPE, 1, *place), TYPE, 1)
        return value

    squares = f32(0.0)
    for column in ptx.range(ptx.laneid, columns, 32):
        value = element(x, start, column)
        ptx.fma.rn.f32(value, value, squares, out=squares)
    mean = ptx.div.rn.f32(over_warp(squares, add), ptx.cvt.rn.f32.u32(columns))
    scale = inverse_root(mean + epsilon)
    for column in ptx.range(ptx.laneid, columns, 32):
        normed = element(x, start, column) * scale * element(weight, column)
        store(element_pointer(y, TYPE, 1, start, column), TYPE, [normed])
