"""`quantized_matvec`: a matrix of 4-bit or fp8 weights times vectors in bf16.

For arrays of torch, CuPy and JAX on a GPU of sm_90 or later, and of NumPy on the emulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.device.arrays import Array
from ptxlab.kernels.quantized_gemv import product
from ptxlab.kernels.quantized_gemv.packing import Packed
from ptxlab.ops import jax_functions
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import (
    check_address,
    check_apart,
    check_dense,
    check_extents,
    check_gpu,
    check_result,
    times,
)
from ptxlab.ops.matrices import empty, look
from ptxlab.ops.operators import Operator, is_traced
from ptxlab.ops.xla import is_jax

_CHANGING = [(2, 0), (0, 1), (1, 2), (3, 3)]  # parameters of the kernel: x, weights, scales, the result


def quantized_matvec(matrix: Packed, x: Array, *, out: Array | None = None) -> Any:
    """x @ Wᵀ for a packed matrix W of n by k weights: `quantize(floats, "nvfp4").pack()`.

    `x` is bf16, k long, or several such vectors in any number of dimensions: W is read once for each eight. Sums are
    f32; the result is bf16, a new array or `out`. Work starts on the stream that the framework uses now; arrays of the
    host run on the emulator. There is no gradient.
    """
    if not isinstance(matrix, Packed):
        raise TypeError(f"`matrix` is a {type(matrix).__name__}: pass what `Quantized.pack` returns")
    how = matrix.format, matrix.rows, matrix.columns, matrix.factor
    given = x, matrix.weights, matrix.scales
    if out is None and is_traced():
        return calls.operator(*given, *how)
    if is_jax(x.__class__):
        return jax_functions.quantized_matvec(*given, how, out)
    found = calls(given, (out,), how)
    return calls.operator.differentiate(*given, *how) if found is None else found[0]


def prepare(given: Sequence[object], written: Sequence[object], how: Any) -> Call:
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
    check_extents("out", target, extents)
    read = [("x", vectors), ("weights", weights), ("scales", scales)]
    for (name, one), wanted in zip(read[1:], Packed(format, rows, columns, None, None, factor).extents, strict=True):
        check_extents(name, one, wanted)
    check_gpu(read[0], [*read[1:], ("out", target)])
    for name, one in (*read, ("out", target)):
        check_dense(name, one)
    for name, one in read:
        check_address(name, one)
    check_result("out", target)
    check_apart(target, read)
    if 0 in vectors.shape:
        return Call([made])
    matrix = Packed(format, rows, columns, weights.view(), scales.view(), factor)
    launch = product(matrix, vectors.view(), target.view())
    return Call([made], [BoundLaunch(launch, _CHANGING)], [vectors, weights, scales, target])


def multiply(x: Array, weights: Array, scales: Array, format: str, rows: int, columns: int, factor: float) -> Any:
    """The operator of torch: all parts of the matrix one by one."""
    return calls.compute((x, weights, scales), (None,), (format, rows, columns, factor))[0]


def describe(x: Any, weights: Array, scales: Array, format: str, rows: int, columns: int, factor: float) -> Any:
    """What comes out, for `torch.compile`."""
    return x.new_empty((*x.shape[:-1], rows))


SCHEMA = "(Tensor x, Tensor weights, Tensor scales, str format, int rows, int columns, float factor) -> Tensor"
calls = Calls(prepare, Operator("quantized_matvec", SCHEMA, multiply, describe))
