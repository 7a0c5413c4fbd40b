"""`matmul`: a matrix product for arrays of torch, CuPy and JAX on a Hopper GPU, and of NumPy on the emulator.

The first call with some extents, strides and types chooses a variant, compiles it and encodes its tensor maps. What
changes from call to call is a few addresses among its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.kernels import gemv
from ptxlab.kernels.gemv.kernel import Form
from ptxlab.kernels.parts.finishing import Activation, Extras, check_activation
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm import is_for_gemv, launch, workspace_for
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import choose
from ptxlab.launch.launches import Launch, on_emulator
from ptxlab.ops import jax_functions
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import check_apart, check_extents, check_result, named, times
from ptxlab.ops.matrices import HALVES, ROW, Matrix, dense, empty, look
from ptxlab.ops.operators import Operator, is_traced
from ptxlab.ops.packing import Packing, as_rows
from ptxlab.ops.product_gradients import PRODUCT
from ptxlab.ops.ready import Workspace
from ptxlab.ops.xla import is_jax

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

_RESULT, _ADDED, WORKSPACE = 2, (7, 8), (10, 11)  # parameters of the kernel, after both operands
TF32 = Formats("tf32", "tf32", "f32")
FORMATS = {"f16": Formats.of("f16"), "bf16": Formats.of("bf16"), "f32": TF32, "s8": Formats("s8", "s8", "s32")}
LEAST = 16 << 20  # bytes of memory for partial results
COUNTERS = 4096  # bytes of counters: one for each tile of a variant that has few


def workspace_of(
    problem: Problem, shape: Shape, like: Array | float, gpu: int | None, numbers: tuple[int, int] = WORKSPACE
) -> Workspace | None:
    """What blocks need that compute a tile of a product together; `numbers` are those of both parameters."""
    if shape.split_k == 1 or shape.clustered or gpu is None:
        return None
    partial = problem.tiles(shape) * shape.cluster * shape.split_k * shape.parts.bytes
    return Workspace("products", like, gpu, {numbers[1]: COUNTERS}, {numbers[0]: max(partial, LEAST)})


SCHEMA = (
    "(Tensor a, Tensor b, Tensor? bias=None, str? activation=None, Tensor? residual=None, bool allow_tf32=False)"
    " -> Tensor"
)


def matmul_of_tensors(
    a: object,
    b: object,
    bias: object = None,
    activation: object = None,
    residual: object = None,
    allow_tf32: bool = False,
) -> Any:
    """The operator: `matmul` without `out`."""
    given = (a, b) if bias is residual is None else (a, b, bias, residual)
    return _calls.compute(given, (None,), (activation, allow_tf32, False))[0]


def describe(
    a: Any, b: Any, bias: Any = None, activation: Any = None, residual: Any = None, allow_tf32: bool = False
) -> Any:
    """What comes out, for `torch.compile`."""
    return empty(a, (*a.shape[:-1], b.shape[1]), "s32" if str(a.dtype) == "torch.int8" else None)


def matmul(
    a: Array,
    b: Array,
    *,
    out: Array | None = None,
    bias: Array | None = None,
    activation: str | Activation | None = None,
    residual: Array | None = None,
    allow_tf32: bool = False,
    accumulate: bool = False,
) -> Any:
    """D = activation(a @ b + bias) + residual, in f16 or bf16 with f32 accumulators.

    With `allow_tf32` also of f32, rounded to tf32 before it is multiplied. The product of int8 is int32, and has
    nothing added to it. For 8-bit floats see `scaled_matmul`.

    `a` is m by k and `b` is k by n, each with its rows or its columns one after the other in memory. `bias` has n
    elements, `residual` is m by n. `activation` is "relu", "silu", "gelu" or "gelu_tanh", or a function that writes
    PTX: of a register of f32, without a gradient (docs/own-kernel.md). The result is a new array, or `out`, which may
    be f32. With `accumulate` it is added to what is there, as gradients of weights are: rows of `out` are multiples of
    16 bytes then. Work starts on the stream that the framework uses now; arrays of the host run on the emulator. It has
    a gradient in torch and JAX.
    """
    if accumulate and out is None:
        raise ValueError("`accumulate` adds to `out`: pass the array to add to")
    if out is None and is_traced():
        return _calls.operator(a, b, bias, named(activation), residual, allow_tf32)
    if is_jax(a.__class__):
        return jax_functions.matmul(a, b, bias, named(activation), residual, allow_tf32, out)
    given = (a, b) if bias is residual is None else (a, b, bias, residual)
    found = _calls(given, (out,), (activation, allow_tf32, accumulate))
    if found is None:
        return _calls.operator.differentiate(a, b, bias, named(activation), residual, allow_tf32)
    return found[0]


def _prepare(given: Sequence[Any], written: Sequence[Any], how: tuple[str | Activation | None, bool, bool]) -> Call:
    """A call that was checked, and its launch."""
    (a, b, *others), (activation, allow_tf32, accumulate) = given, how
    others = others or [None, None]
    left, right = look(a, "a", tuple(FORMATS)), look(b, "b", tuple(FORMATS))
    extents = *left.shape[:-1], *right.shape[1:]
    packing = Packing(len(given) + 1)
    flat = packing.rows(left, 0)
    m, n, k = extents_of(flat, right)
    formats = FORMATS[left.type]
    _check_options(formats, others, activation, allow_tf32)
    made = empty(a, extents, formats.out) if written[0] is None else written[0]
    target = look(made, "out", [formats.out, "f32"][: 1 + (left.type in HALVES)])
    formats = replace(formats, out=target.type)
    check_extents("out", target, extents)
    target = one_matrix("out", target)
    if accumulate and not target.is_aligned:
        raise ValueError("rows of `out` must be multiples of 16 bytes, at such addresses, to be added to")
    bias, residual = (
        None if one is None else look(one, name, [formats.out])
        for one, name in zip(others, ("bias", "residual"), strict=True)
    )
    if residual is not None:
        check_extents("residual", residual, extents)
        residual = one_matrix("residual", residual)
    check_arrays(flat, right, target, {"bias": (bias, (n,)), "residual": (residual, (m, n))})
    added = [bias, None if residual is None else without_gaps(residual)]
    if not m or not n:
        return Call([made])
    sides = [packing.operand(flat, 0), packing.operand(right.transposed, 1)]
    along = sides[0][1], sides[1][1]
    problem = Problem(m, n, k, *along, left.size, target.size, integers=formats.out == "s32")
    is_paired = target.size == 2 and _are_paired(n, added)
    shape = choose(problem, target.gpu is None, residual is not None, activation is not None)
    is_aligned = target.size == 2 and added[1] is not None and added[1].is_aligned
    in_ring = is_aligned and shape.takes_residuals(problem.layout(shape))
    extras = Extras(
        bias is not None, activation, residual is not None, paired=is_paired, in_ring=in_ring, adds=accumulate
    )
    is_apart = target.gpu is None and not target.array.flags.c_contiguous  # a part of an array of the host
    result = look(target.array.copy(), "out", [formats.out]) if is_apart else target
    by_rows = formats.out == left.type and not accumulate and is_one_row(left.type, m, k, sides)
    launched = (
        of_one_row((sides[0][0], sides[1][0], result), activation, added=added)
        if by_rows
        else _launch(formats, problem, shape, sides, result, added, extras)
    )
    if is_apart:
        on_emulator([*(step.launch for step in packing.steps), launched])
        target.array[...] = result.array
        return Call([made])
    numbers = (1, 0) if by_rows or shape.swap_ab else (0, 1)
    extra = gemv.ADDED if by_rows else _ADDED
    changing = *numbers, *(extra if len(given) > 2 else ()), _RESULT
    arrays = [left, right, *(added if len(given) > 2 else ()), target]
    step = BoundLaunch(launched, [*zip(changing, packing.numbers, strict=True)])
    workspace = None if by_rows else workspace_of(problem, shape, a, target.gpu)
    return Call([made], [*packing.steps, step], arrays, workspace, packing.scratch)


def _are_paired(n: int, added: Sequence[Matrix | None]) -> bool:
    """Whether pairs of neighbours of what is added are words."""
    given = [one for one in added if one is not None]
    numbers = [n, *(one.address // 2 for one in given), *(one.strides[0] for one in given if len(one.shape) == 2)]
    return bool(given) and not any(number % 2 for number in numbers)


def _check_options(
    formats: Formats, added: Sequence[Array | None], activation: str | Activation | None, allow_tf32: bool
) -> None:
    """Whether such a product can be computed."""
    if activation is not None:
        check_activation(activation)
    if formats == TF32 and not allow_tf32:
        raise TypeError("float32 is rounded to tf32 before it is multiplied: pass `allow_tf32=True` if that is enough")
    if formats.out == "s32" and (activation is not None or any(one is not None for one in added)):
        raise TypeError("the product of int8 is int32: there is no bias, activation or residual")


def extents_of(left: Matrix, right: Matrix) -> tuple[int, int, int]:
    """m, n and k, where there is such a product."""
    for one, name in ((left, "a"), (right, "b")):
        if len(one.shape) != 2:
            raise ValueError(f"`{name}` is {times(one.shape)}: a matrix has two dimensions")
    (m, k), (depth, n) = left.shape, right.shape
    if k != depth:
        raise ValueError(f"`a` has {k} columns and `b` has {depth} rows: a product needs the same number")
    if not k:
        raise ValueError("`a` has no columns: there is nothing to multiply")
    return m, n, k


def check_arrays(
    left: Matrix, right: Matrix, target: Matrix, more: Mapping[str, tuple[Matrix | None, tuple[int, ...]]]
) -> None:
    """Whether all arrays go together; `more` has others that are read, and the extents that they must have."""
    added = {name: (one, shape) for name, (one, shape) in more.items() if one is not None}
    extents = left.shape[0], right.shape[1]
    if left.size != right.size or (left.size != 1 and left.type != right.type):
        raise TypeError(f"`b` is of type {right.type}, and `a` of {left.type}")
    for name, (one, shape) in {"b": (right, right.shape), "out": (target, extents), **added}.items():
        if one.gpu != left.gpu:
            places = ["the host" if gpu is None else f"GPU {gpu}" for gpu in (one.gpu, left.gpu)]
            raise ValueError(f"`{name}` is on {places[0]}, and `a` on {places[1]}")
        if one.shape != shape:
            raise ValueError(f"`{name}` is {times(one.shape)}, and must be {times(shape)}")
        if name != "b" and one.strides[-1] != 1 and one.shape[-1] > 1 and 0 not in one.shape:
            raise ValueError(f"rows of `{name}` have gaps: pass a contiguous array")
    check_result("out", target)
    check_apart(target, [("a", left), ("b", right), *((name, one) for name, (one, _) in added.items())])


def one_matrix(name: str, given: Matrix) -> Matrix:
    """An array of two or more dimensions as a matrix, its last dimension's elements as rows, where that is possible."""
    found = as_rows(given)
    if found is None:
        raise ValueError(f"rows of `{name}` are not at equal distances: pass a contiguous array")
    return found


def without_gaps(given: Matrix) -> Matrix:
    """A matrix that is added: the emulator takes a pointer to the rows of an array without gaps."""
    if given.gpu is not None or given.array.flags.c_contiguous:
        return given
    copy = np.ascontiguousarray(given.array)
    return Matrix(copy.ctypes.data, given.shape, dense(given.shape), given.type, None, copy)


def is_one_row(type: str, m: int, k: int, sides: Sequence[tuple[Matrix, bool]]) -> bool:
    """Whether a row is multiplied with each row of other matrices, which have no gaps between them."""
    (_, along_k), *others = sides
    return along_k and all(is_for_gemv(type, m, one.strides[0], k, rows) for one, rows in others)


def of_one_row(
    arrays: tuple[Matrix, Matrix, Matrix],
    activation: str | Activation | None,
    gate: Matrix | None = None,
    added: Sequence[Matrix | None] = (None, None),
) -> Launch:
    """One row: each row of B, as it is in memory, is multiplied with it."""
    row, matrix, target = arrays
    bias, residual = (one is not None for one in added)
    form = Form(matrix.type, bias=bias, activation=activation, residual=residual, gated=gate is not None, overlaps=True)
    more = [0 if one is None else one.view() for one in (gate, *added)]
    views = matrix.view(), row.view(), target.view()
    n, k = matrix.shape
    return gemv.by_rows(form, views, (1, n, k), ROW // matrix.size, *more)


def _launch(
    formats: Formats,
    problem: Problem,
    shape: Shape,
    sides: Sequence[tuple[Matrix, bool]],
    target: Matrix,
    added: Sequence[Matrix | None],
    extras: Extras,
) -> Launch:
    matrices = sides[0][0].view(), sides[1][0].view(), target.view()
    bias, residual = (0 if one is None else one.view() for one in added)
    workspace: tuple[Any, Any] = 0, 0
    if target.gpu is None:
        workspace = workspace_for(problem, shape, target.array)
    return launch(
        formats,
        matrices,
        (problem.m, problem.n, problem.k),
        shape,
        a_along_k=problem.a_along_k,
        b_along_k=problem.b_along_k,
        extras=None if extras == Extras() else extras,
        bias=bias,
        residual=residual,
        pitches=(target.strides[0], 0 if added[1] is None else added[1].strides[0]),
        aligned=target.is_aligned,
        workspace=workspace,
    )


_calls = Calls(_prepare, Operator("matmul", SCHEMA, matmul_of_tensors, describe, PRODUCT))
