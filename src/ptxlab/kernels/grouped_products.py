"""`grouped_matmul`: rows in groups, each multiplied with a matrix of its own, for torch, CuPy, JAX and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ptxlab.kernels import wgmma_grouped_gemm
from ptxlab.kernels.calls import Call, Calls, Operator, check_apart, check_together, times
from ptxlab.kernels.formats import Formats
from ptxlab.kernels.matrices import ROW, Matrix, empty, look
from ptxlab.kernels.wgmma_gemm.shapes import Layout
from ptxlab.kernels.wgmma_grouped_gemm import MOST_GROUPS


def grouped_matmul(a: Any, b: Any, offsets: Any, out: Any = None) -> Any:
    """Rows of `a` in groups, each group times its matrix of `b`, in f16 or bf16 with f32 accumulators: one kernel.

    `a` is m by k, `b` is groups by k by n, each matrix with its rows or its columns one after the other in memory.
    `offsets` has the row after the last one of each group as int32, as in `torch._grouped_mm`: group g has the rows
    from `offsets[g - 1]` on, or 0, up to but without `offsets[g]`; it may be empty. Only the kernel reads them, and a
    call does not wait for the GPU; where they decrease, results are wrong. The result is m by n, a new array, or `out`;
    rows after the last group are not written. Work starts on the stream that the framework uses now; arrays of the host
    run on the emulator. There is no gradient.
    """
    if operator.is_compiling() and out is None:
        return operator.made(a, b, offsets)
    for one in (a, b):
        operator.check(one)
    return calls((a, b, offsets), out)


def prepare(given: Sequence[Any], out: Any, how: Any = None) -> Call:
    """A call that was checked, and its launch."""
    a, b, offsets = given
    left, right, ends = look(a, "a"), look(b, "b"), look(offsets, "offsets", ("s32",))
    groups, m, n, k = _extents(left, right, ends)
    made = empty(a, (m, n)) if out is None else out
    target = look(made, "out")
    check_together(("a", left), [("b", right, None), ("out", target, (m, n))])
    if ends.gpu != left.gpu:
        check_together(("a", left), [("offsets", Matrix(0, (), (), left.type, ends.gpu, None), None)])
    check_apart(target, [("a", left), ("b", right), ("offsets", ends)])
    if not m or not n or not groups:
        return Call(made, None, [], [])
    for name, one in (("a", left), ("out", target)):
        if not one.is_aligned:
            raise ValueError(f"rows of `{name}` must be multiples of {ROW} bytes, at such addresses, without gaps: "
                             f"pass a contiguous array with a multiple of 8 columns")  # fmt: skip
    weights, along_k = _weights(right)
    views = left.view(), weights.view(), target.view()
    launch = wgmma_grouped_gemm.launch(
        Formats.of(left.type),
        views,
        ends.array if ends.gpu is None else ends.address,
        (groups, m, n, k),
        wgmma_grouped_gemm.choose(groups, m, n, k, along_k),
        Layout(True, along_k),
    )
    return Call(made, launch, [left, weights, ends, target], wgmma_grouped_gemm.CHANGING)


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
        rows = one.shape[2]
        dense = step == 1 or rows == 1
        if dense and right.address % ROW == 0 and not 2 * pitch % ROW and not 2 * far % ROW and pitch >= rows:
            return one, along_k
    raise ValueError(f"rows of matrices of `b`, or their columns, must be multiples of {ROW} bytes, at such addresses, "
                     f"without gaps: pass a contiguous array whose extents are multiples of 8")  # fmt: skip


def describe(a: Any, b: Any, offsets: Any) -> Any:
    """What comes out, for `torch.compile`."""
    return a.new_empty((a.shape[0], b.shape[2]))


def of_tensors(a: Any, b: Any, offsets: Any) -> Any:
    """The operator: `grouped_matmul` without `out`."""
    return grouped_matmul(a, b, offsets)


calls = Calls(prepare)
operator = Operator("grouped_matmul", "(Tensor a, Tensor b, Tensor offsets) -> Tensor", of_tensors, describe)
