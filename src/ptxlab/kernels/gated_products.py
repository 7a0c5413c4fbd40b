"""`gated_matmul`: the gated product of a feed-forward layer, for arrays of torch, CuPy, JAX and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.kernels import wgmma_dual_gemm
from ptxlab.kernels.calls import Call, Calls, Operator, check_apart, check_together, times
from ptxlab.kernels.finishing import ACTIVATIONS
from ptxlab.kernels.formats import Formats
from ptxlab.kernels.matrices import Matrix, empty, look, padded
from ptxlab.kernels.wgmma_gemm.shapes import Layout


def gated_matmul(x: Any, w1: Any, w2: Any, activation: str = "silu", out: Any = None) -> Any:
    """activation(x @ w1) * (x @ w2), in f16 or bf16 with f32 accumulators, by one kernel.

    `x` is m by k, or has more dimensions before k; `w1` and `w2` are k by n, both with their rows or both with their
    columns one after the other in memory. `activation` is "silu", "gelu", "gelu_tanh" or "relu". The result is a new
    array, or `out`. Work starts on the stream that the framework uses now; arrays of the host run on the emulator.
    There is no gradient.
    """
    if operator.is_compiling() and out is None:
        return operator.made(x, w1, w2, activation)
    if len(getattr(x, "shape", ())) > 2:
        flat = [one if one is None else one.reshape(-1, one.shape[-1]) for one in (x, out)]
        found = gated_matmul(flat[0], w1, w2, activation, flat[1])
        return found.reshape((*x.shape[:-1], found.shape[-1]))
    for one in (x, w1, w2):
        operator.check(one)
    return calls((x, w1, w2), out, activation)


def prepare(given: Sequence[Any], out: Any, activation: Any) -> Call:
    """A call that was checked, and its launch."""
    x, w1, w2 = given
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation={activation!r}: there are {', '.join(map(repr, ACTIVATIONS))}")
    left, first, second = (look(one, name) for one, name in zip(given, ("x", "w1", "w2"), strict=True))
    for name, one in (("x", left), ("w1", first), ("w2", second)):
        if len(one.shape) != 2:
            raise ValueError(f"`{name}` is {times(one.shape)}: a matrix has two dimensions")
    (m, k), (depth, n) = left.shape, first.shape
    if k != depth:
        raise ValueError(f"`x` has {k} columns and `w1` has {depth} rows: a product needs the same number")
    if not k:
        raise ValueError("`x` has no columns: there is nothing to multiply")
    made = empty(x, (m, n)) if out is None else out
    target = look(made, "out")
    check_together(("x", left), [("w1", first, None), ("w2", second, first.shape), ("out", target, (m, n))])
    check_apart(target, [("x", left), ("w1", first), ("w2", second)])
    if not m or not n:
        return Call(made, None, [], [])
    if not target.is_aligned:
        raise ValueError("rows of the result must be multiples of 16 bytes: have a multiple of 8 columns, without gaps")
    sides = [_source(left, x), _source(first.transposed, w1.T), _source(second.transposed, w2.T)]
    if sides[1][1] != sides[2][1]:  # one by rows and one by columns: the second one as the first
        sides[2] = _like(second, w2, sides[1][1])
    matrices = [matrix for matrix, _ in sides]
    is_kept = all(one.address == old.address for one, old in zip(matrices, (left, first, second), strict=True))
    layout = Layout(sides[0][1], sides[1][1])
    views = *(one.view() for one in matrices), target.view()
    launch = wgmma_dual_gemm.launch(
        Formats.of(left.type), views, (m, n, k), wgmma_dual_gemm.choose(m, n, k, layout), layout, activation
    )
    return Call(made, launch, [*matrices, target], range(4), is_kept)


def _source(matrix: Matrix, array: Any) -> tuple[Matrix, bool]:
    """An operand as TMA can copy it, copied first if need be, and whether its rows run along k."""
    if matrix.is_aligned:
        return matrix, True
    if matrix.transposed.is_aligned:
        return matrix.transposed, False
    return look(padded(array), "copy"), True


def _like(matrix: Matrix, array: Any, along_k: bool) -> tuple[Matrix, bool]:
    """A copy of k by n weights with rows along k, or across it."""
    return look(padded(array.T if along_k else array), "copy"), along_k


def describe(x: Any, w1: Any, w2: Any, activation: str = "silu") -> Any:
    """What comes out, for `torch.compile`."""
    return x.new_empty((*x.shape[:-1], w1.shape[1]))


def of_tensors(x: Any, w1: Any, w2: Any, activation: str = "silu") -> Any:
    """The operator: `gated_matmul` without `out`."""
    return gated_matmul(x, w1, w2, activation)


calls = Calls(prepare)
operator = Operator(
    "gated_matmul", '(Tensor x, Tensor w1, Tensor w2, str activation="silu") -> Tensor', of_tensors, describe
)
