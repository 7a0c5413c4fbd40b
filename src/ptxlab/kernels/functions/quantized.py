"""`quantized_matvec`: a matrix of 4-bit or fp8 weights times vectors in bf16.

For arrays of torch, CuPy and JAX on a GPU of sm_90 or later, and of NumPy on the emulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ptxlab.kernels.functions.calls import Call, Calls, Operator, check_apart, times
from ptxlab.kernels.functions.matrices import ROW, Matrix, empty, look
from ptxlab.kernels.quantized_gemv import product
from ptxlab.kernels.quantized_gemv.packing import Packed

_CHANGING = 2, 0, 1, 3  # parameters of the kernel: x, weights, scales, the result


def quantized_matvec(matrix: Packed, x: Any, out: Any = None) -> Any:
    """x @ Wᵀ for a packed matrix W of n by k weights: `quantize(floats, "nvfp4").pack()`.

    `x` is bf16, k long, or several such vectors in any number of dimensions: W is read once for each eight. Sums are
    f32; the result is bf16, a new array or `out`. Work starts on the stream that the framework uses now; arrays of the
    host run on the emulator. There is no gradient.
    """
    if not isinstance(matrix, Packed):
        raise TypeError(f"`matrix` is a {type(matrix).__name__}: pass what `Quantized.pack` returns")
    how = matrix.format, matrix.rows, matrix.columns, matrix.factor
    if operator.is_compiling() and out is None:
        return operator.made(x, matrix.weights, matrix.scales, *how)
    operator.check(x)
    return calls((x, matrix.weights, matrix.scales), [out], how)[0]


def prepare(given: Sequence[Any], written: Sequence[Any], how: Any) -> Call:
    """A call that was checked, and its launch."""
    format, rows, columns, factor = how
    vectors, weights, scales = (
        look(one, name, types)
        for one, name, types in zip(given, ("x", "weights", "scales"), (("bf16",), ("u8",), ("u8", "f32")), strict=True)
    )
    if not vectors.shape or vectors.shape[-1] != columns:
        raise ValueError(f"`x` is {times(vectors.shape)}, and rows of the matrix have {columns} weights")
    extents = *vectors.shape[:-1], rows
    made = empty(given[0], extents) if written[0] is None else written[0]
    target = look(made, "out", ("bf16",))
    if target.shape != extents:
        raise ValueError(f"`out` is {times(target.shape)}, and must be {times(extents)}")
    _check(vectors, weights, scales, target)
    if 0 in vectors.shape:
        return Call([made])
    matrix = Packed(format, rows, columns, weights.view(), scales.view(), factor)
    launch = product(matrix, vectors.view(), target.view())
    return Call([made], launch, [vectors, weights, scales, target], _CHANGING)


def _check(x: Matrix, weights: Matrix, scales: Matrix, out: Matrix) -> None:
    """Whether the kernel can read and write all of them, where they are."""
    for name, one in (("weights", weights), ("scales", scales), ("out", out)):
        if one.gpu != x.gpu:
            where = ["the host" if gpu is None else f"GPU {gpu}" for gpu in (one.gpu, x.gpu)]
            raise ValueError(f"`{name}` is on {where[0]}, and `x` on {where[1]}")
    for name, one in (("x", x), ("weights", weights), ("scales", scales), ("out", out)):
        dense = [prod(one.shape[at + 1 :]) for at in range(len(one.shape))]
        steps = zip(one.shape, one.strides, dense, strict=True)
        if 0 not in one.shape and any(extent > 1 and step != wanted for extent, step, wanted in steps):
            raise ValueError(f"`{name}` has gaps: pass a contiguous array")
        if one is not out and one.address % ROW:
            raise ValueError(f"`{name}` does not start at a multiple of {ROW} bytes")
    check_apart(out, [("x", x), ("weights", weights), ("scales", scales)])


def multiply(x: Any, weights: Any, scales: Any, format: str, rows: int, columns: int, factor: float) -> Any:
    """The operator of torch: all parts of the matrix one by one."""
    return calls((x, weights, scales), [None], (format, rows, columns, factor))[0]


def describe(x: Any, weights: Any, scales: Any, format: str, rows: int, columns: int, factor: float) -> Any:
    """What comes out, for `torch.compile`."""
    return x.new_empty((*x.shape[:-1], rows))


SCHEMA = "(Tensor x, Tensor weights, Tensor scales, str format, int rows, int columns, float factor) -> Tensor"
calls = Calls(prepare)
operator = Operator("quantized_matvec", SCHEMA, multiply, describe)
