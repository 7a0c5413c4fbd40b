"""`scaled_matmul`: a product of 8-bit floats with scales, of both matrices or of blocks of them.

For torch there is a second operator, of matrices before they are rounded: it has a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptxlab.gpu.arrays import is_torch
from ptxlab.kernels import scaled_gemm, wgmma_gemm
from ptxlab.kernels.parts.finishing import Extras
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.scaled_gemm.choice import choose as choose_by_blocks
from ptxlab.kernels.scaled_gemm.scales import BLOCK
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import choose
from ptxlab.launch.launches import Launch
from ptxlab.ops import jax_functions
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import check_apart, check_gpu, times
from ptxlab.ops.matrices import Matrix, argument, empty, look
from ptxlab.ops.operators import Operator, is_traced
from ptxlab.ops.packing import Packing
from ptxlab.ops.product_gradients import SCALED, rounded
from ptxlab.ops.products import WORKSPACE, check_arrays, extents_of, workspace_of
from ptxlab.ops.xla import is_jax

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

RESULT, BY_TENSOR, BY_BLOCKS = 2, (12, 13), (7, 8)  # parameters of the kernels: D, and the scales of both
TYPES, OUT = ("e4m3", "e5m2"), ("bf16", "f16", "f32")
SCHEMA = '(Tensor a, Tensor b, Tensor scale_a, Tensor scale_b, str out_type="bf16") -> Tensor'


def scaled_matmul(
    a: Array, b: Array, scale_a: Array | float, scale_b: Array, *, out: Array | None = None, out_type: str = "bf16"
) -> Any:
    """(a · scale_a) @ (b · scale_b) of e4m3 or e5m2, as "bf16", "f16" or "f32".

    `a` is m by k, `b` is k by n with columns one after the other in memory (others are copied first). Scales are f32:
    one number for each matrix, or one for each 128 elements of a row of `a` (m by k/128, rounded up) and for each 128
    by 128 of `b` (k/128 by n/128). With scales of blocks, sums over each 128 elements are added in f32; else all sums
    are the tensor cores' own, which have 14 bits for fp8: torch calls that `use_fast_accum`. The result is a new array,
    or `out`. Work starts on the stream that the framework uses now; arrays of the host run on the emulator.

    Tensors of torch may also be of f16, bf16 or f32: they are divided by their scales and rounded to e4m3. Those have
    gradients, as if they were not rounded: products of f16 or bf16 with the other matrix as it was rounded. 8-bit
    floats have none: torch would round it to the same type, without a scale.
    """
    are_tensors = is_traced() or (is_torch(a.__class__) and is_torch(b.__class__))
    if are_tensors and max(a.dtype.itemsize, b.dtype.itemsize) > 1:
        return _of_wide((a, b), (scale_a, scale_b), out, out_type)
    if out is None and is_traced():
        return calls.operator(a, b, scale_a, scale_b, out_type)
    if is_jax(a.__class__):
        return jax_functions.scaled_matmul(a, b, scale_a, scale_b, out_type, out)
    found = calls((a, b, scale_a, scale_b), (out,), out_type)
    return calls.operator.differentiate(a, b, scale_a, scale_b, out_type) if found is None else found[0]


def of_tensors(a: Array, b: Array, scale_a: Array | float, scale_b: Array, out_type: str = "bf16") -> Any:
    """The operator: `scaled_matmul` without `out`."""
    return calls.compute((a, b, scale_a, scale_b), (None,), out_type)[0]


def _of_wide(matrices: tuple[Any, Any], scales: tuple[Any, Any], out: Any, out_type: str) -> Any:
    """The same of tensors that are rounded first."""
    small = [
        one if one.dtype.itemsize == 1 else rounded(one.detach(), scale, is_left)
        for one, scale, is_left in zip(matrices, scales, (True, False), strict=True)
    ]
    if not is_traced() and not of_wide.is_recorded(*matrices):
        return scaled_matmul(small[0], small[1], *scales, out=out, out_type=out_type)
    if out is not None:
        raise ValueError("a result in `out` has no gradient: leave it out, or call this under `torch.no_grad()`")
    given = *matrices, *small, *scales, out_type
    return of_wide(*given) if is_traced() else of_wide.differentiate(*given)


def _of_rounded(
    a: Array, b: Array, small_a: Array, small_b: Array, scale_a: Array, scale_b: Array, out_type: str = "bf16"
) -> Any:
    return of_tensors(small_a, small_b, scale_a, scale_b, out_type)


def describe(a: Array, b: Array, scale_a: Array | float, scale_b: Array, out_type: str = "bf16") -> Any:
    """What comes out, for `torch.compile`."""
    return empty(a, (a.shape[0], b.shape[1]), out_type)


def prepare(given: Sequence[Any], written: Sequence[Any], out_type: str) -> Call:
    """Check a call, and make its launch."""
    a, b, *factors = given
    if out_type not in OUT:
        raise ValueError(f"out_type={out_type!r}: expected one of {', '.join(map(repr, OUT))}")
    left, right = look(a, "a", TYPES), look(b, "b", TYPES)
    m, n, k = extents_of(left, right)
    made = empty(a, (m, n), out_type) if written[0] is None else written[0]
    target = look(made, "out", OUT)
    scales = [look(one, name, ["f32"]) for one, name in zip(factors, ("scale_a", "scale_b"), strict=True)]
    is_whole = all(_count(one) == 1 for one in scales)
    check_arrays(left, right, target, {})
    _check_scales(scales, is_whole, (m, n, k), target)
    packing = Packing(len(given) + 1)
    sides = packing.operand(left, 0)[0], packing.operand(right.transposed, 1)[0]
    arrays = [*sides, *scales, target]
    if not m or not n:
        return Call([made])
    if target.gpu is None and not target.array.flags.c_contiguous:
        raise ValueError("`out` is a part of another array: on the emulator it must be contiguous")
    problem = Problem(m, n, k, size=1, out_size=target.size)
    formats = Formats(left.type, right.type, target.type)
    shape = (choose if is_whole else choose_by_blocks)(problem, target.gpu is None)
    memory = wgmma_gemm.workspace_for(problem, shape, target.array) if target.gpu is None else (0, 0)
    launch = (_by_tensor if is_whole else _by_blocks)(formats, shape, arrays, memory)
    numbers = (1, 0) if shape.swap_ab else (0, 1)
    changing = *numbers, *(BY_TENSOR if is_whole else BY_BLOCKS), RESULT
    step = BoundLaunch(launch, [*zip(changing, packing.numbers, strict=True)])
    workspace = workspace_of(problem, shape, a, target.gpu, WORKSPACE if is_whole else scaled_gemm.WORKSPACE)
    return Call([made], [*packing.steps, step], [left, right, *scales, target], workspace, packing.scratch)


def _count(matrix: Matrix) -> int:
    total = 1
    for extent in matrix.shape:
        total *= extent
    return total


def _check_scales(scales: Sequence[Matrix], is_whole: bool, extents: tuple[int, int, int], target: Matrix) -> None:
    m, n, k = extents
    along = -(-k // BLOCK)
    wanted = (m, along), (along, -(-n // BLOCK))
    named = [*zip(("scale_a", "scale_b"), scales, strict=True)]
    for (name, one), shape in zip(named, wanted, strict=True):
        if not is_whole and one.shape != shape:
            raise ValueError(f"`{name}` is {times(one.shape)}: both scales are one number, or this is {times(shape)}")
    check_gpu(("a", target), named)
    check_apart(target, named)


def _by_tensor(formats: Formats, shape: Shape, arrays: Sequence[Matrix], workspace: tuple[int, int]) -> Launch:
    """One scale for each matrix."""
    left, right, scale_a, scale_b, target = arrays
    return wgmma_gemm.launch(
        formats,
        (left.view(), right.view(), target.view()),
        (left.shape[0], right.shape[0], left.shape[1]),
        shape,
        extras=Extras(scales=True),
        pitches=(target.strides[0], 0),
        aligned=target.is_aligned,
        workspace=workspace,
        scales=(argument(scale_a), argument(scale_b)),
    )


def _by_blocks(formats: Formats, shape: Shape, arrays: Sequence[Matrix], workspace: tuple[int, int]) -> Launch:
    """Scales of blocks; those of B are k/128 by n/128, and the kernel takes the transpose, as it takes B's."""
    left, right, scale_a, scale_b, target = arrays
    return scaled_gemm.launch(
        formats,
        (left.view(), right.view(), target.view()),
        (scale_a.view(), scale_b.transposed.view()),
        shape,
        aligned=target.is_aligned,
        mapped=scale_a.transposed.is_aligned,
        workspace=workspace,
    )


calls = Calls(prepare, Operator("scaled_matmul", SCHEMA, of_tensors, describe))
of_wide = Operator(
    "scaled_matmul_of_rounded",
    SCHEMA.replace("Tensor scale_a", "Tensor small_a, Tensor small_b, Tensor scale_a"),
    _of_rounded,
    lambda a, b, small_a, small_b, *others: describe(small_a, small_b, *others),
    SCALED,
)
