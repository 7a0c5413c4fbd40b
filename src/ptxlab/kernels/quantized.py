"""`quantized_matvec`: a matrix of 4-bit or fp8 weights times a few vectors in bf16.

For arrays of torch, CuPy and JAX on a GPU of sm_90 or later, and of NumPy on the emulator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from math import prod
from typing import Any

from ptxlab.gpu.arrays import is_torch
from ptxlab.gpu.driver import call, current
from ptxlab.kernels.matrices import ROW, Matrix, empty, framework, look, stream_of
from ptxlab.kernels.quantized_gemv import product
from ptxlab.kernels.quantized_gemv.packing import Packed
from ptxlab.kernels.ready import Ready

_MOST = 4096  # launches that stay ready
_RESULT = 3  # the number of its parameter
_ready: dict[Any, Ready] = {}
_operator: Any = None  # of torch, once torch is imported
_is_compiling: Callable[[], bool] = bool

SCHEMA = "(Tensor weights, Tensor scales, Tensor x, str format, int rows, int columns, float factor) -> Tensor"


def register_with_torch() -> Any:
    """Make it an operator of torch, `torch.ops.ptxlab.quantized_matvec`, so that `torch.compile` knows it.

    That is done by itself where torch was imported before this module, and at the first call with a tensor.
    """
    global _operator, _is_compiling
    if _operator is None:
        torch = import_module("torch")
        made = torch.library.custom_op("ptxlab::quantized_matvec", multiply_tensors, mutates_args=(), schema=SCHEMA)
        made.register_fake(describe)
        _operator, _is_compiling = torch.ops.ptxlab.quantized_matvec, torch.compiler.is_compiling
    return _operator


def multiply_tensors(weights: Any, scales: Any, x: Any, format: str, rows: int, columns: int, factor: float) -> Any:
    """The operator: all parts of the matrix one by one."""
    return quantized_matvec(Packed(format, rows, columns, weights, scales, factor), x)


def describe(weights: Any, scales: Any, x: Any, format: str, rows: int, columns: int, factor: float) -> Any:
    """What comes out, for `torch.compile`."""
    return x.new_empty((*x.shape[:-1], rows))


def quantized_matvec(matrix: Packed, x: Any, out: Any = None) -> Any:
    """x @ Wᵀ for a packed matrix W of n by k weights: `quantize(floats, "nvfp4").pack()`.

    `x` is bf16, k long, or several such vectors in any number of dimensions: W is read once for each four. Sums are
    f32; the result is bf16, a new array or `out`. Work starts on the stream that the framework uses now; arrays of the
    host run on the emulator.
    """
    if _is_compiling() and out is None:
        one = matrix
        return _operator(one.weights, one.scales, x, one.format, one.rows, one.columns, one.factor)
    if not is_torch(x.__class__) or not x.is_cuda:
        return _first(matrix, x, out, None)
    form = (x.shape, x.stride(), x.dtype, x.device)
    key: Any = (matrix.format, matrix.rows, matrix.columns, matrix.factor, matrix.weights.device, form)
    if out is not None:
        key = *key, out.shape, out.stride(), out.dtype, out.device
    ready = _ready.get(key)
    if ready is None:
        return _first(matrix, x, out, key)
    made = x.new_empty((*x.shape[:-1], matrix.rows)) if out is None else out
    addresses = [matrix.weights.data_ptr(), matrix.scales.data_ptr(), x.data_ptr(), made.data_ptr()]
    if addresses[2] % ROW or (out is not None and ready.overlaps(addresses)):
        return _first(matrix, x, out, key)
    ready.start(addresses, stream_of(x, ready.gpu))
    return made


def _first(matrix: Packed, x: Any, out: Any, key: Any) -> Any:
    """A call that is not ready yet, from top to bottom."""
    if not isinstance(matrix, Packed):
        raise TypeError(f"`matrix` is a {type(matrix).__name__}: pass what `Quantized.pack` returns")
    if is_torch(x.__class__):
        register_with_torch()
    vectors = look(x, "x")
    made = empty(x, (*vectors.shape[:-1], matrix.rows)) if out is None else out
    target = look(made, "out")
    parts = [_part(one, name) for one, name in ((matrix.weights, "weights"), (matrix.scales, "scales"))]
    _check(matrix, parts, vectors, target)
    if 0 in vectors.shape:
        return made
    launch = product(matrix, *((vectors.array, target.array) if vectors.gpu is None else (x, made)))
    if vectors.gpu is None:
        launch.run(device="cpu")
        return made
    arrays = [*parts, vectors, target]
    bytes = [one.end - one.address for one in arrays]
    ready = Ready(launch, vectors.gpu, range(len(arrays)), bytes, _RESULT, lambda _: ({}, None))
    if key is not None:
        if len(_ready) >= _MOST:
            _ready.clear()
        _ready[key] = ready
    ready.start([one.address for one in arrays], stream_of(x, vectors.gpu))
    if hasattr(x, "unsafe_buffer_pointer"):  # JAX does not know of this work: it is completed now
        with current(vectors.gpu):
            call("cuStreamSynchronize", 0)
    return made


def _part(array: Any, name: str) -> Matrix:
    """Where a part of the matrix is: its bytes, as 16-bit numbers."""
    return look(array.view(framework(array).float16), name)


def _check(matrix: Packed, parts: Sequence[Matrix], x: Matrix, out: Matrix) -> None:
    """Whether all arrays go together."""
    if not x.shape or x.shape[-1] != matrix.columns:
        raise ValueError(f"`x` is {_times(x.shape)}, and rows of the matrix have {matrix.columns} weights")
    if out.shape != (*x.shape[:-1], matrix.rows):
        raise ValueError(f"`out` is {_times(out.shape)}, and must be {_times((*x.shape[:-1], matrix.rows))}")
    for name, one in (("x", x), ("out", out)):
        if one.type != "bf16":
            raise TypeError(f"`{name}` is of type {one.type}, and must be bf16")
        dense = [prod(one.shape[at + 1 :]) for at in range(len(one.shape))]
        steps = zip(one.shape, one.strides, dense, strict=True)
        if 0 not in one.shape and any(extent > 1 and step != wanted for extent, step, wanted in steps):
            raise ValueError(f"`{name}` has gaps: pass a contiguous array")
    if x.address % ROW:
        raise ValueError(f"`x` does not start at a multiple of {ROW} bytes")
    for name, one in (("weights", parts[0]), ("scales", parts[1]), ("out", out)):
        if one.gpu != x.gpu:
            where = ["the host" if gpu is None else f"GPU {gpu}" for gpu in (one.gpu, x.gpu)]
            raise ValueError(f"`{name}` is on {where[0]}, and `x` on {where[1]}")
    for name, one in (("weights", parts[0]), ("scales", parts[1]), ("x", x)):
        if one.address < out.end and out.address < one.end:
            raise ValueError(f"`out` overlaps `{name}`: what is written would be read")


def _times(shape: Sequence[int]) -> str:
    return " by ".join(map(str, shape)) + (" long" if len(shape) == 1 else "")


if hasattr(sys.modules.get("torch"), "compiler"):
    register_with_torch()
