"""Kernels that compilers make: of CUDA C++ by nvcc, and of Triton, for a GPU that need not be there."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

import ptxlab
from ptxlab.equal import Launch

X, Y = (np.random.default_rng(1).standard_normal((3, 70)).astype(np.float32) for _ in range(2))
A, B = (np.random.default_rng(2).standard_normal((16, 64)).astype(np.float32) for _ in range(2))
B = np.ascontiguousarray(B.T)
C = np.zeros((16, 16), np.float32)
SOFTMAX = {"x": X, "y": Y}
MATRICES = {"a": A, "b": B, "c": C}

_SOFTMAX = """
extern "C" __global__ void kernel(const float *x, float *y, int columns) {
    const float *row = x + blockIdx.x * columns;
    __shared__ float shared[64];
    float top = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < columns; i += 64) top = fmaxf(top, row[i]);
    shared[threadIdx.x] = top;
    __syncthreads();
    for (int i = 0; i < 64; i++) top = fmaxf(top, shared[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < columns; i += 64) sum += expf(row[i] - top);
    shared[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < 64; i++) sum += shared[i];
    for (int i = threadIdx.x; i < columns; i += 64) y[blockIdx.x * columns + i] = expf(row[i] - top) / sum;
}
"""
_PRODUCT = """
extern "C" __global__ void kernel(const float *a, const float *b, float *c) {
    int row = threadIdx.y, column = threadIdx.x;
    float sum = 0;
    for (int k = 0; k < 64; k++) sum += a[row * 64 + k] * b[k * 16 + column];
    c[row * 16 + column] = sum;
}
"""
_CUDA = {
    "softmax": _SOFTMAX,
    "shifted": _SOFTMAX.replace("expf(row[i] - top) / sum", "expf(row[i ? i - 1 : 0] - top) / sum"),
    "product": _PRODUCT,
    "assigned": _PRODUCT.replace("sum += a", "sum = a"),
}


@cache
def cuda(name: str, *options: str) -> Launch:
    """A kernel of CUDA C++."""
    function = ptxlab.cuda(_CUDA[name], "sm_80", options, name=f"{name}.cu")["kernel"]
    is_product = _CUDA[name].startswith(_PRODUCT[:60])
    return Launch(function, 1, (16, 16), [A, B, C]) if is_product else Launch(function, 3, 64, [X, Y, 70])


@cache
def triton_kernel(name: str, num_warps: int = 1) -> Launch:
    """A kernel of Triton, for sm_80."""
    compiler, backends = import_module("triton.compiler"), import_module("triton.backends.compiler")
    own = import_module("tests.equal.triton_kernels")
    is_product = name in ("product", "short")
    pointers = ("a", "b", "c") if is_product else ("x", "y")
    signature = {**dict.fromkeys(pointers, "*fp32"), **({} if is_product else {"columns": "i32", "block": "constexpr"})}
    source = compiler.ASTSource(getattr(own, name), signature, {} if is_product else {"block": 128})
    made = compiler.compile(source, target=backends.GPUTarget("cuda", 80, 32), options={"num_warps": num_warps})
    function = ptxlab.from_framework(made)[name]
    args: list[Any] = [A, B, C] if is_product else [X, Y, 70]
    args += [0] * (len(function.parameters) - len(args))
    return Launch(function, 1 if is_product else 3, 32 * num_warps, args, made.metadata.shared)
