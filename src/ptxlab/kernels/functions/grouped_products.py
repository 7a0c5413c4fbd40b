"""`grouped_matmul`: rows in groups, each multiplied with a matrix of its own, for torch, CuPy, JAX and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ptxlab.kernels import wgmma_grouped_gemm
from ptxlab.kernels.functions import jax_functions
from ptxlab.kernels.functions.calls import Call, Calls, Step
from ptxlab.kernels.functions.checks import (
    check_apart,
    check_extents,
    check_gpu,
    check_result,
    check_type,
    scales_of,
    times,
)
from ptxlab.kernels.functions.matrices import HALVES, ROW, Matrix, argument, empty, look
from ptxlab.kernels.functions.operators import Operator, is_traced
from ptxlab.kernels.functions.xla import is_jax
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import Layout
from ptxlab.kernels.wgmma_grouped_gemm import MOST_GROUPS

RESULT, OFFSETS, SCALES = 2, 3, (8, 9)  # parameters of the kernel
SCHEMA = "(Tensor a, Tensor b, Tensor offsets, Tensor? scale_a=None, Tensor? scale_b=None) -> Tensor"


def grouped_matmul(a: Any, b: Any, offsets: Any, out: Any = None, *, scale_a: Any = None, scale_b: Any = None) -> Any:
    """Rows of `a` in groups, each group times its matrix of `b`, in f16 or bf16 with f32 accumulators: one kernel.

    `a` is m by k, `b` is groups by k by n, each matrix with its rows or its columns one after the other in memory.
    `offsets` has the row after the last one of each group as int32, as in `torch._grouped_mm`: group g has the rows
    from `offsets[g - 1]` on, or 0, up to but without `offsets[g]`; it may be empty. Only the kernel reads them, and a
    call does not wait for the GPU; where they decrease, results are wrong. Of e4m3, `scale_a` has an f32 for each row
    of `a`, `scale_b` one for each column of each matrix, groups by n; columns of `b` are one after the other, and the
    result is bf16. The result is m by n, a new array, or `out`; rows after the last group are not written. Work starts
    on the stream that the framework uses now; arrays of the host run on the emulator. There is no gradient.
    """
    if out is None and is_traced():
        return calls.operator(a, b, offsets, scale_a, scale_b)
    if is_jax(a.__class__):
        return jax_functions.grouped_matmul(a, b, offsets, scale_a, scale_b, out)
    given = (a, b, offsets) if scale_a is scale_b is None else (a, b, offsets, scale_a, scale_b)
    found = calls(given, (out,))
    return calls.operator.differentiate(a, b, offsets, scale_a, scale_b) if found is None else found[0]


def prepare(given: Sequence[Any], written: Sequence[Any], how: Any = None) -> Call:
    """A call that was checked, and its launch."""
    left, right = (look(one, name, (*HALVES, "e4m3")) for one, name in zip(given, "ab", strict=False))
    ends = look(given[2], "offsets", ("s32",))
    groups, m, n, _ = extents = _extents(left, right, ends)
    formats = Formats(left.type, left.type, "bf16" if left.size == 1 else left.type)
    made = empty(given[0], (m, n), formats.out) if written[0] is None else written[0]
    target = look(made, "out", (formats.out,))
    check_type(("a", left), [("b", right)])
    check_gpu(("a", left), [("b", right), ("offsets", ends), ("out", target)])
    check_extents("out", target, (m, n))
    check_result("out", target)
    check_apart(target, [("a", left), ("b", right), ("offsets", ends)])
    shapes = ("scale_a", (m,)), ("scale_b", (groups, n))
    wanted = zip(shapes, given[3:] or (None, None), strict=True)
    scales = scales_of(("a", left), [(name, scale, shape) for (name, shape), scale in wanted])
    if not m or not n or not groups:
        return Call([made])
    for name, one in (("a", left), ("out", target)):
        if not one.is_aligned:
            raise ValueError(f"rows of `{name}` must be multiples of {ROW} bytes, at such addresses, without gaps: "
                             f"pass a contiguous array with a multiple of {ROW // one.size} columns")  # fmt: skip
    weights, along_k = _weights(right)
    launch = wgmma_grouped_gemm.launch(
        formats,
        (left.view(), weights.view(), target.view()),
        argument(ends),
        extents,
        wgmma_grouped_gemm.choose(*extents, along_k, left.size),
        Layout(True, along_k, element=formats.element),
        scales=tuple(map(argument, scales)) or None,
    )
    changing = [(parameter, at) for at, parameter in enumerate([0, 1, OFFSETS, *SCALES[: len(scales)], RESULT])]
    return Call([made], [Step(launch, changing)], [left, weights, ends, *scales, target])


def _extents(left: Matrix, right: Matrix, ends: Matrix) -> tuple[int, int, int, int]:
    """Groups, m, n and k."""
    for name, one, rank in (("a", left, 2), ("b", right, 3), ("offsets", ends, 1)):
        if len(one.shape) != rank:
            raise ValueError(f"`{name}` is {times(one.shape)}, and must have {rank} dimension{'s' * (rank > 1)}")
    (m, k), (groups, depth, n) = left.shape, right.shape
    if k != depth:
        raise ValueError(f"`a` has {k} columns and matrices of `b` have {depth} rows: a product needs the same number")
    if not k:
        raise ValueError("`a` has no columns: there is nothing to multiply")
    if ends.shape != (groups,):
        raise ValueError(f"`offsets` has {ends.shape[0]} elements and `b` has {groups} matrices: each has a group")
    if groups > 1 and ends.strides != (1,):
        raise ValueError("elements of `offsets` have gaps: pass a contiguous array")
    if ends.gpu is None and any(low > high for low, high in pairwise([0, *ends.array.tolist(), m])):
        raise ValueError(f"`offsets` decrease, or are not between 0 and {m}, the rows of `a`")
    if groups > MOST_GROUPS:
        raise ValueError(f"{groups} groups: there are {MOST_GROUPS} at most")
    return groups, m, n, k


def _weights(right: Matrix) -> tuple[Matrix, bool]:
    """The matrices as they are in memory: groups by n by k, or groups by k by n, and whether rows run along k."""
    groups, k, n = right.shape
    far, along, across = right.strides
    turned = right.array.transpose(0, 2, 1) if right.gpu is None else right.array
    by_rows = Matrix(right.address, (groups, n, k), (far, across, along), right.type, right.gpu, turned)
    for one, along_k in ((by_rows, True), (right, False)):
        pitch, step = one.strides[1:]
        dense, starts = step == 1 or one.shape[2] == 1, (one.address, pitch * one.size, far * one.size)
        if dense and not any(start % ROW for start in starts) and pitch >= one.shape[2] and (along_k or one.size == 2):
            return one, along_k
    way = "columns of matrices of `b`" if right.size == 1 else "rows of matrices of `b`, or their columns,"
    raise ValueError(f"{way} must be multiples of {ROW} bytes, at such addresses, without gaps: "
                     f"pass a contiguous array whose extents are multiples of {ROW // right.size}")  # fmt: skip


def describe(a: Any, b: Any, offsets: Any, *scales: Any) -> Any:
    """What comes out, for `torch.compile`."""
    return empty(a, (a.shape[0], b.shape[2]), "bf16" if a.dtype.itemsize == 1 else None)


def of_tensors(a: Any, b: Any, offsets: Any, scale_a: Any = None, scale_b: Any = None) -> Any:
    """The operator: `grouped_matmul` without `out`."""
    given = (a, b, offsets) if scale_a is scale_b is None else (a, b, offsets, scale_a, scale_b)
    return calls.compute(given)[0]


calls = Calls(prepare, Operator("grouped_matmul", SCHEMA, of_tensors, describe))
