"""Kernels to compare: products of matrices of the gallery, and rows of a matrix by one thread each."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

import ptxlab
from ptxlab.equal import Launch

_HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry rows(.param .u64 x, .param .u64 y, .param .u32 columns)
{
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    .reg .f32 %f<16>;
    .reg .pred %p<4>;
    mov.u32 %r1, %tid.x;
    ld.param.u32 %r2, [columns];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    mul.lo.u32 %r3, %r1, %r2;
    mad.wide.u32 %rd1, %r3, 4, %rd1;
    mad.wide.u32 %rd2, %r3, 4, %rd2;
"""
_WRITE = """
    mov.u32 %r4, 0;
    mov.u64 %rd3, %rd1;
write:
    ld.global.f32 %f4, [%rd3];
    sub.f32 %f4, %f4, %f1;
    mul.f32 %f4, %f4, 0f3FB8AA3B;
    ex2.approx.f32 %f4, %f4;
    div.rn.f32 %f4, %f4, %f2;
    st.global.f32 [%rd2], %f4;
    add.u64 %rd3, %rd3, 4;
    add.u64 %rd2, %rd2, 4;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r2;
    @%p1 bra write;
    ret;
}
"""
PLAIN = (
    _HEAD
    + """
    mov.f32 %f1, 0fFF800000;
    mov.u32 %r4, 0;
    mov.u64 %rd3, %rd1;
largest:
    ld.global.f32 %f3, [%rd3];
    max.f32 %f1, %f1, %f3;
    add.u64 %rd3, %rd3, 4;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r2;
    @%p1 bra largest;
    mov.f32 %f2, 0f00000000;
    mov.u32 %r4, 0;
    mov.u64 %rd3, %rd1;
sum:
    ld.global.f32 %f3, [%rd3];
    sub.f32 %f3, %f3, %f1;
    mul.f32 %f3, %f3, 0f3FB8AA3B;
    ex2.approx.f32 %f3, %f3;
    add.f32 %f2, %f2, %f3;
    add.u64 %rd3, %rd3, 4;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r2;
    @%p1 bra sum;
"""
    + _WRITE
)
"""Softmax in three passes over a row."""
ONLINE = (
    _HEAD
    + """
    mov.f32 %f1, 0fFF800000;
    mov.f32 %f2, 0f00000000;
    mov.u32 %r4, 0;
    mov.u64 %rd3, %rd1;
online:
    ld.global.f32 %f3, [%rd3];
    setp.gt.f32 %p2, %f3, %f1;
    selp.f32 %f5, %f3, %f1, %p2;
    sub.f32 %f6, %f1, %f5;
    mul.f32 %f6, %f6, 0f3FB8AA3B;
    ex2.approx.f32 %f6, %f6;
    sub.f32 %f7, %f3, %f5;
    mul.f32 %f7, %f7, 0f3FB8AA3B;
    ex2.approx.f32 %f7, %f7;
    fma.rn.f32 %f2, %f2, %f6, %f7;
    mov.f32 %f1, %f5;
    add.u64 %rd3, %rd3, 4;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r2;
    @%p1 bra online;
"""
    + _WRITE
)
"""Softmax whose maximum and sum come of one pass."""

M, N, K = 5, 7, 32
A, B, C = (np.ones(shape, np.float32) for shape in ((M, K), (K, N), (M, N)))
X, Y = np.ones((3, 6), np.float32), np.zeros((3, 6), np.float32)
FMA = "fma.rn.f32      %sum, %x, %y, %sum;"


def changed(text: str, *changes: tuple[str, str]) -> str:
    """A text with others in place of parts of it."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def product(name: str, *changes: tuple[str, str]) -> Launch:
    """A product of the gallery, `c = a·b`, with changes."""
    entry, block = {"naive": ("naive", (32, 32)), "shared": ("shared_memory", (32, 32)),
                    "tiled_1d": ("tiled_1d", (512, 1))}[name]  # fmt: skip
    text = (files("ptxlab") / "kernels" / "sgemm" / f"{name}.ptx").read_text()
    return Launch(ptxlab.parse(changed(text, *changes), name=f"{name}.ptx")[entry], 1, block, [A, B, C, M, N, K])


def rows(text: str, *changes: tuple[str, str], x: Any = X, y: Any = Y) -> Launch:
    """A kernel on rows, with changes."""
    return Launch(ptxlab.parse(changed(text, *changes), name="rows.ptx")["rows"], 1, len(x), [x, y, x.shape[1]])


MOVED = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry move(.param .u64 x, .param .u64 y)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<2>;
    .reg .b32 %r<2>;
    .reg .pred %p;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.global.f32 %f1, [%rd1];
    st.global.f32 [%rd2], %f1;
    ret;
}
"""
STORE = "st.global.f32 [%rd2], %f1;"
"""What is changed in the kernel before."""
NORM = (
    _HEAD
    + """
    mov.f32 %f1, 0f00000000;
    mov.u32 %r4, 0;
    mov.u64 %rd3, %rd1;
square:
    ld.global.f32 %f3, [%rd3];
    fma.rn.f32 %f1, %f3, %f3, %f1;
    add.u64 %rd3, %rd3, 4;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r2;
    @%p1 bra square;
    rsqrt.approx.f32 %f2, %f1;
    mul.f32 %f5, %f1, %f2;
    neg.f32 %f5, %f5;
    mul.f32 %f6, %f2, 0f3F000000;
    fma.rn.f32 %f6, %f5, %f6, 0f3F000000;
    fma.rn.f32 %f2, %f2, %f6, %f2;
    mov.u32 %r4, 0;
write:
    ld.global.f32 %f3, [%rd1];
    mul.f32 %f3, %f3, %f2;
    st.global.f32 [%rd2], %f3;
    add.u64 %rd1, %rd1, 4;
    add.u64 %rd2, %rd2, 4;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p1, %r4, %r2;
    @%p1 bra write;
    ret;
}
"""
)
"""Each row by its length; the reciprocal of that with one step of Newton's."""
EXPF = """
    ld.global.f32 %f4, [%rd3];
    sub.f32 %f4, %f4, %f1;
    fma.rn.sat.f32 %f5, %f4, 0f3BBB989D, 0f3F000000;
    fma.rm.f32 %f5, %f5, 0f437C0000, 0f4B400001;
    add.f32 %f6, %f5, 0fCB40007F;
    neg.f32 %f6, %f6;
    fma.rn.f32 %f6, %f4, 0f3FB8AA3B, %f6;
    fma.rn.f32 %f6, %f4, 0f32A57060, %f6;
    mov.b32 %r5, %f5;
    shl.b32 %r5, %r5, 23;
    mov.b32 %f7, %r5;
    ex2.approx.f32 %f6, %f6;
    mul.f32 %f4, %f6, %f7;
    div.rn.f32 %f4, %f4, %f2;
"""
"""An element of softmax as nvcc computes `expf`."""
