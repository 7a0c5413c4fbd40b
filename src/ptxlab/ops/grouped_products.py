"""`grouped_matmul`: rows in groups, each multiplied with a matrix of its own, for torch, CuPy, JAX and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ptxlab.author import b32, kernel, pointer, ptx, u32
from ptxlab.device.arrays import Array
from ptxlab.kernels import gemv, wgmma_grouped_gemm
from ptxlab.kernels.gemv.kernel import Form
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import BLOCKS, Layout
from ptxlab.kernels.wgmma_grouped_gemm import inner
from ptxlab.kernels.wgmma_grouped_gemm.choice import MOST_GROUPS, choose
from ptxlab.launch.launches import Launch
from ptxlab.ops import jax_functions
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import (
    check_apart,
    check_dense,
    check_extents,
    check_gpu,
    check_result,
    check_type,
    scales_of,
    times,
)
from ptxlab.ops.matrices import HALVES, ROW, Matrix, argument, empty, look
from ptxlab.ops.operators import Operator, is_traced
from ptxlab.ops.packing import Packing
from ptxlab.ops.product_gradients import GROUPED
from ptxlab.ops.xla import is_jax

RESULT, OFFSETS, SCALES = 2, 3, (8, 9)  # parameters of the kernel
SCHEMA = (
    "(Tensor a, Tensor b, Tensor offsets, Tensor? scale_a=None, Tensor? scale_b=None, bool clear_rest=False) -> Tensor"
)
THREADS = 256
FEW = 4  # rows that each read the weights of their group


def grouped_matmul(
    a: Any,
    b: Any,
    offsets: Any,
    *,
    out: Any = None,
    scale_a: Any = None,
    scale_b: Any = None,
    accumulate: bool = False,
    clear_rest: bool = False,
) -> Any:
    """Rows of `a` in groups, each group times its matrix of `b`, in f16 or bf16 with f32 accumulators: one kernel.

    `a` is m by k, `b` is groups by k by n, each matrix with its rows or its columns one after the other in memory.
    `offsets` has the row after the last one of each group as int32, as in `torch._grouped_mm`: group g has the rows
    from `offsets[g - 1]` on, or 0, up to but without `offsets[g]`; it may be empty. Only the kernel reads them, and a
    call does not wait for the GPU; where they decrease, results are wrong. Of e4m3, `scale_a` has an f32 for each row
    of `a`, `scale_b` one for each column of each matrix, groups by n; columns of `b` are one after the other, and the
    result is bf16. The result is m by n, a new array, or `out`; rows after the last group are not written, or
    with `clear_rest` they are 0. Work starts on the stream that the framework uses now; arrays of the host run on the
    emulator.

    Where `b` has two dimensions, groups are along k: columns of `a`, m by k, times rows of `b`, k by n, as
    `torch._grouped_mm` has it. The result is groups by m by n, 0 for a group of none; columns of `a` and rows of `b`
    that are not one after the other in memory are copied first. Then `out` may be f32, and with `accumulate` the result
    is added to what is there: so gradients of weights are computed. In 16 bits it has a gradient in torch.
    """
    if out is None and not accumulate and is_traced():
        return calls.operator(a, b, offsets, scale_a, scale_b, clear_rest)
    if is_jax(a.__class__):
        return jax_functions.grouped_matmul(a, b, offsets, scale_a, scale_b, out)
    given = (a, b, offsets) if scale_a is scale_b is None else (a, b, offsets, scale_a, scale_b)
    found = calls(given, (out,), (accumulate, clear_rest))
    return calls.operator.differentiate(a, b, offsets, scale_a, scale_b, clear_rest) if found is None else found[0]


@kernel(target="sm_90", maxntid=THREADS)
def clear_rows(offsets: pointer[u32], d: pointer[b32], groups: u32, m: u32, across: u32) -> None:
    """Set the rows after the last group to 0; a row is `across` times 16 bytes."""
    ptx.griddepcontrol.wait()
    end = ptx.min.u32(ptx.ld.global_.u32(offsets + (groups - 1)), m)
    thread, step = (
        ptx.cvt.u64.u32(one * THREADS + other) for one, other in ((ptx.ctaid.x, ptx.tid.x), (ptx.nctaid.x, 0))
    )
    for piece in ptx.range(ptx.mad.wide.u32(end, across, thread), ptx.mul.wide.u32(m, across), step):
        ptx.st.global_.v4.b32(d + piece * 4, (0, 0, 0, 0))


def prepare(given: Sequence[Array], written: Sequence[object], how: tuple[bool, bool]) -> Call:
    """A call that was checked, and its launch."""
    accumulate, clear_rest = how
    if accumulate and written[0] is None:
        raise ValueError("`accumulate` adds to `out`: pass the array to add to")
    left, right = (look(one, name, (*HALVES, "e4m3")) for one, name in zip(given, "ab", strict=False))
    ends = look(given[2], "offsets", ("s32",))
    if len(right.shape) == 2:
        return prepare_inner(given, written[0], (left, right, ends), accumulate)
    if accumulate:
        raise ValueError("`accumulate` is for groups along k: pass `b` with two dimensions")
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
    if _are_few(left, target, weights, along_k):
        form = Form(left.type, grouped=True, overlaps=True)
        views = weights.view(), left.view(), target.view()
        launch = gemv.by_rows(form, views, (m, n, left.shape[1]), ROW // left.size, 0, 0, 0, argument(ends), groups)
        parameters = [1, 0, gemv.ENDS, RESULT]
    else:
        launch = wgmma_grouped_gemm.launch(
            formats,
            (left.view(), weights.view(), target.view()),
            argument(ends),
            extents,
            choose(*extents, along_k, left.size),
            Layout(True, along_k, element=formats.element),
            scales=tuple(map(argument, scales)) or None,
        )
        parameters = [0, 1, OFFSETS, *SCALES[: len(scales)], RESULT]
    changing = [(parameter, at) for at, parameter in enumerate(parameters)]
    steps = [BoundLaunch(launch, changing)]
    if clear_rest:
        check_dense("out", target)
        across = n * target.size // ROW
        rest = [argument(ends), argument(target), groups, m, across]
        blocks = min(-(-m * across // THREADS), 4 * BLOCKS)
        clear = Launch(clear_rows, blocks, THREADS, rest, overlap=True)
        steps.append(BoundLaunch(clear, [(0, 2), (1, 3 + len(scales))]))
    return Call([made], steps, [left, weights, ends, *scales, target])


def _are_few(left: Matrix, target: Matrix, weights: Matrix, along_k: bool) -> bool:
    """Whether each row is multiplied by itself: a few, as of one token, which are in different groups, and no gaps."""
    _, n, k = weights.shape
    are_dense = (left.strides[0], target.strides[0], *weights.strides[:2]) == (k, n, n * k, k)
    return left.type in HALVES and left.shape[0] <= FEW and along_k and are_dense and k % (ROW // left.size) == 0


def prepare_inner(given: Sequence[object], out: object, read: Sequence[Matrix], accumulate: bool) -> Call:
    """The same, of groups along k."""
    left, right, ends = read
    if len(given) > 3 or left.size == 1:
        raise TypeError("`a` and `b` with groups along k are of float16 or bfloat16, and have no scales")
    _check_ranks((("a", left, 2), ("b", right, 2), ("offsets", ends, 1)))
    (m, k), n, groups = left.shape, right.shape[1], ends.shape[0]
    made = empty(given[0], (groups, m, n)) if out is None else out
    target = look(made, "out", (left.type, "f32"))
    check_groups(ends, groups, k, "columns")
    check_type(("a", left), [("b", right)])
    check_gpu(("a", left), [("b", right), ("offsets", ends), ("out", target)])
    check_extents("b", right, (k, n))
    check_extents("out", target, (groups, m, n))
    check_result("out", target)
    check_dense("out", target)
    check_apart(target, [("a", left), ("b", right), ("offsets", ends)])
    if not m or not n or not groups:
        return Call([made])
    if n * target.size % ROW or target.address % ROW:
        raise ValueError(f"rows of `out` must be multiples of {ROW} bytes, at such addresses: "
                         f"pass `b` with a multiple of {ROW // target.size} columns")  # fmt: skip
    packing = Packing(len(given) + 1)
    sides = [one if one.is_aligned else packing.copied(one, at) for at, one in enumerate((left.transposed, right))]
    formats, extents = Formats(left.type, left.type, target.type), (groups, k, m, n)
    matrices = sides[0].view(), sides[1].view(), target.view()
    shape = inner.choose(*extents, target.size, target.gpu is None)
    launch = inner.launch(formats, matrices, argument(ends), extents, shape, accumulate)
    step = BoundLaunch(launch, [*zip([0, 1, OFFSETS, RESULT], packing.numbers, strict=True)])
    return Call([made], [*packing.steps, step], [left, right, ends, target], scratch=packing.scratch)


def _extents(left: Matrix, right: Matrix, ends: Matrix) -> tuple[int, int, int, int]:
    """Groups, m, n and k."""
    _check_ranks((("a", left, 2), ("b", right, 3), ("offsets", ends, 1)))
    (m, k), (groups, depth, n) = left.shape, right.shape
    if k != depth:
        raise ValueError(f"`a` has {k} columns and matrices of `b` have {depth} rows: a product needs the same number")
    if not k:
        raise ValueError("`a` has no columns: there is nothing to multiply")
    if ends.shape != (groups,):
        raise ValueError(f"`offsets` has {ends.shape[0]} elements and `b` has {groups} matrices: each has a group")
    check_groups(ends, groups, m, "rows")
    return groups, m, n, k


def _check_ranks(wanted: Sequence[tuple[str, Matrix, int]]) -> None:
    for name, one, rank in wanted:
        if len(one.shape) != rank:
            raise ValueError(f"`{name}` is {times(one.shape)}, and must have {rank} dimension{'s' * (rank > 1)}")


def check_groups(ends: Matrix, groups: int, extent: int, what: str) -> None:
    """Whether these are the ends of groups of so many rows or columns of `a`."""
    if groups > 1 and ends.strides != (1,):
        raise ValueError("elements of `offsets` have gaps: pass a contiguous array")
    if ends.gpu is None and any(low > high for low, high in pairwise([0, *ends.array.tolist(), extent])):
        raise ValueError(f"`offsets` decrease, or are not between 0 and {extent}, the {what} of `a`")
    if groups > MOST_GROUPS:
        raise ValueError(f"{groups} groups: there are {MOST_GROUPS} at most")


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


def describe(a: Any, b: Any, offsets: Any, *scales: object) -> Any:
    """What comes out, for `torch.compile`."""
    if len(b.shape) == 2:
        return empty(a, (offsets.shape[0], a.shape[0], b.shape[1]))
    return empty(a, (a.shape[0], b.shape[2]), "bf16" if a.dtype.itemsize == 1 else None)


def of_tensors(
    a: object, b: object, offsets: object, scale_a: object = None, scale_b: object = None, clear_rest: bool = False
) -> Any:
    """The operator: `grouped_matmul` without `out`."""
    given = (a, b, offsets) if scale_a is scale_b is None else (a, b, offsets, scale_a, scale_b)
    return calls.compute(given, (None,), (False, clear_rest))[0]


calls = Calls(prepare, Operator("grouped_matmul", SCHEMA, of_tensors, describe, GROUPED))
