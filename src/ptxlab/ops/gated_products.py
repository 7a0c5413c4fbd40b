"""`gated_matmul`: the gated product of a feed-forward layer, for arrays of torch, CuPy, JAX and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ptxlab.device.arrays import Array
from ptxlab.kernels import gemv, wgmma_dual_gemm
from ptxlab.kernels.gemv import few
from ptxlab.kernels.gemv.kernel import Form
from ptxlab.kernels.parts.finishing import Activation, check_activation
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.shapes import Layout
from ptxlab.ops import jax_functions
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import (
    Named,
    check_apart,
    check_extents,
    check_gpu,
    check_result,
    check_type,
    named,
    scales_of,
    times,
)
from ptxlab.ops.matrices import HALVES, Matrix, argument, empty, look
from ptxlab.ops.operators import Operator, is_traced
from ptxlab.ops.packing import Packing
from ptxlab.ops.product_gradients import GATED
from ptxlab.ops.products import is_one_row, of_one_row, one_matrix
from ptxlab.ops.xla import is_jax

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

NAMES = ("x", "w1", "w2", "scale_x", "scale_w1", "scale_w2")
TYPES = (*HALVES, "e4m3")
EMPTY = None, None, None
SCALES, PRODUCTS = (7, 8, 9), (10, 11)  # the parameters of the kernel
SCHEMA = (
    '(Tensor x, Tensor w1, Tensor w2, str activation="silu", '
    "Tensor? scale_x=None, Tensor? scale_w1=None, Tensor? scale_w2=None) -> Tensor"
)
KEEPING = '(Tensor x, Tensor w1, Tensor w2, str activation="silu") -> (Tensor, Tensor, Tensor)'


def gated_matmul(
    x: Array,
    w1: Array,
    w2: Array,
    activation: str | Activation = "silu",
    *,
    out: Array | None = None,
    scale_x: Array | None = None,
    scale_w1: Array | None = None,
    scale_w2: Array | None = None,
) -> Any:
    """activation(x @ w1) * (x @ w2), in f16 or bf16 with f32 accumulators, by one kernel.

    `x` is m by k, or has more dimensions before k; `w1` and `w2` are k by n, both with their rows or both with their
    columns one after the other in memory. `activation` is "silu", "gelu", "gelu_tanh" or "relu", or a function as in
    `matmul`. Of e4m3, each matrix has a scale, an array of one f32, the weights have their columns one after the other,
    and the result is bf16. The result is a new array, or `out`. Work starts on the stream that the framework uses now;
    arrays of the host run on the emulator. It has a gradient in torch and JAX, but not of e4m3; where torch records it,
    both products are kept.
    """
    scales = scale_x, scale_w1, scale_w2
    if out is None and is_traced():
        if scale_x is None and x.dtype.itemsize > 1 and calls.operator.is_recorded(x, w1, w2):
            return calls.operator(x, w1, w2, named(activation))[0]
        return plain(x, w1, w2, named(activation), *scales)
    if is_jax(x.__class__):
        return jax_functions.gated_matmul(x, w1, w2, named(activation), scales, out)
    given = (x, w1, w2) if scale_x is scale_w1 is scale_w2 is None else (x, w1, w2, *scales)
    found = calls(given, (out,), activation)
    if found is not None:
        return found[0]
    if len(given) > 3:
        raise ValueError("products of 8-bit floats have no gradient: call this under `torch.no_grad()`")
    return calls.operator.differentiate(x, w1, w2, named(activation))[0]


def prepare(given: Sequence[Array], written: Sequence[object], activation: Any) -> Call:
    """A call that was checked, and its launch; `written` is the result, and both products if they are kept."""
    check_activation(activation)
    read = [(name, look(one, name, TYPES)) for name, one in zip(NAMES, given[:3], strict=False)]
    left, first, second = (one for _, one in read)
    extents = *left.shape[:-1], *first.shape[1:]
    packing = Packing(len(given) + len(written))
    originals = [one for _, one in read]
    left = packing.rows(left, 0)
    read[0] = "x", left
    m, n, k = _extents(read)
    formats = Formats(left.type, left.type, "bf16" if left.size == 1 else left.type)
    made = empty(given[0], extents, formats.out) if written[0] is None else written[0]
    target = look(made, "out", (formats.out,))
    check_type(read[0], read[1:])
    check_gpu(read[0], [*read[1:], ("out", target)])
    check_extents("w2", second, first.shape)
    check_extents("out", target, extents)
    target = one_matrix("out", target)
    check_result("out", target)
    check_apart(target, read)
    scales = scales_of(read[0], [(name, one, (1,)) for name, one in zip(NAMES[3:], given[3:] or EMPTY, strict=True)])
    kept = [empty(given[0], extents) for _ in written[1:]]
    if not m or not n:
        return Call([made, *kept])
    if not target.is_aligned:
        raise ValueError("rows of the result must be multiples of 16 bytes: have a multiple of 8 columns, without gaps")
    sides = [packing.operand(one, at) for at, one in enumerate((left, first.transposed, second.transposed))]
    if sides[1][1] != sides[2][1]:  # one by rows and one by columns: the second one as the first
        sides[2] = packing.copied(second.transposed if sides[1][1] else second, 2), sides[1][1]
    matrices = [matrix for matrix, _ in sides]
    parameters: tuple[int, ...]
    if not kept and not scales and is_one_row(left.type, m, k, sides):
        launch = of_one_row((matrices[0], matrices[1], target), activation, gate=matrices[2])
        parameters = 1, 0, gemv.GATE, 2
    elif not kept and not scales and _are_few(left.type, m, k, sides):
        form = Form(left.type, activation=activation, gated=True, overlaps=True)
        row, *weights = matrices
        operands = [*weights, row, target]
        pitches = [one.strides[0] for one in operands]
        launch = gemv.gated_of_few(form, [one.view() for one in operands], (m, n, k), pitches)
        parameters = 2, 0, 1, 3
    else:
        layout = Layout(sides[0][1], sides[1][1], element=formats.element)
        products = [one_matrix("product", look(one, "product")) for one in kept]
        launch = wgmma_dual_gemm.launch(
            formats,
            (*(one.view() for one in matrices), target.view()),
            (m, n, k),
            wgmma_dual_gemm.choose(m, n, k, layout),
            layout,
            activation,
            scales=tuple(map(argument, scales)) or None,
            products=tuple(one.view() for one in products) or None,
        )
        parameters = 0, 1, 2, *SCALES[: len(scales)], 3, *PRODUCTS[: len(kept)]
    step = BoundLaunch(launch, [*zip(parameters, packing.numbers, strict=True)])
    arrays = [*originals, *scales, target, *(look(one, "product") for one in kept)]
    return Call([made, *kept], [*packing.steps, step], arrays, scratch=packing.scratch)


def _are_few(type: str, m: int, k: int, sides: Sequence[tuple[Matrix, bool]]) -> bool:
    """Whether so few rows are multiplied with each row of the others; the emulator takes no arrays with gaps."""
    is_there = all(rows and (one.gpu is not None or one.strides[0] == k) for one, rows in sides)
    return type in HALVES and m <= few.MOST and k % few.PIECE == 0 and is_there


def _extents(read: Sequence[Named]) -> tuple[int, int, int]:
    for name, one in read:
        if len(one.shape) != 2:
            raise ValueError(f"`{name}` is {times(one.shape)}: a matrix has two dimensions")
    (m, k), (depth, n) = read[0][1].shape, read[1][1].shape
    if k != depth:
        raise ValueError(f"`x` has {k} columns and `w1` has {depth} rows: a product needs the same number")
    if not k:
        raise ValueError("`x` has no columns: there is nothing to multiply")
    return m, n, k


def describe(x: Array, w1: Array, w2: Array, activation: str = "silu", *scales: object) -> Any:
    """What comes out, for `torch.compile`."""
    return empty(x, (*x.shape[:-1], w1.shape[1]), "bf16" if x.dtype.itemsize == 1 else None)


def of_tensors(
    x: Array,
    w1: Array,
    w2: Array,
    activation: str = "silu",
    scale_x: object = None,
    scale_w1: object = None,
    scale_w2: object = None,
) -> Any:
    """The operator: `gated_matmul` without `out`."""
    is_plain = scale_x is scale_w1 is scale_w2 is None
    given = (x, w1, w2) if is_plain else (x, w1, w2, scale_x, scale_w1, scale_w2)
    return calls.compute(given, (None,), activation)[0]


def keeping_of_tensors(x: Array, w1: Array, w2: Array, activation: str = "silu") -> tuple[object, ...]:
    """The operator that a gradient is of: the result and both products."""
    return tuple(calls.compute((x, w1, w2), (None,) * 3, activation))


def describe_keeping(x: Array, w1: Array, w2: Array, activation: str = "silu") -> tuple[object, ...]:
    """What comes out of it, for `torch.compile`."""
    return tuple(describe(x, w1, w2) for _ in range(3))


plain = Operator("gated_matmul", SCHEMA, of_tensors, describe)
calls = Calls(prepare, Operator("gated_matmul_keeping", KEEPING, keeping_of_tensors, describe_keeping, GATED))
