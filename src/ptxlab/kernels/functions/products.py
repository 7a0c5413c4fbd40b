"""`matmul`: a matrix product for arrays of torch, CuPy and JAX on a Hopper GPU, and of NumPy on the emulator.

The first call with some extents, strides and types chooses a variant, compiles it and encodes its tensor maps. What
changes from call to call is a few addresses among its parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ptxlab.gpu.arrays import is_torch
from ptxlab.gpu.driver import call, current
from ptxlab.kernels.functions.calls import Operator, times
from ptxlab.kernels.functions.matrices import HALVES, Matrix, empty, look, padded, stream_of, zeros
from ptxlab.kernels.functions.ready import Ready
from ptxlab.kernels.gemv import AHEAD
from ptxlab.kernels.gemv.kernel import THREADS, gemv
from ptxlab.kernels.parts.finishing import ACTIVATIONS, Extras
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.wgmma_gemm import is_for_gemv, launch, workspace_for
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import choose
from ptxlab.measure import Launch
from ptxlab.measure.data import TORCH_NAMES

_MOST = 4096  # launches that stay ready
_RESULT, _ADDED, WORKSPACE = 2, (7, 8), (10, 11)  # parameters of the kernel, after both operands
TF32 = Formats("tf32", "tf32", "f32")
FORMATS = {"f16": Formats.of("f16"), "bf16": Formats.of("bf16"), "f32": TF32, "s8": Formats("s8", "s8", "s32")}
LEAST = 16 << 20  # bytes of memory for partial results
COUNTERS = 4096  # bytes of counters: one for each tile of a variant that has few


class Workspace:
    """Memory for partial results and counters, of one size; streams have their own, which is kept.

    `numbers` are those of both parameters of a kernel.
    """

    kept: ClassVar[dict[tuple[int, int], tuple[int, Any, Any]]] = {}

    def __init__(self, like: Any, gpu: int, bytes: int, numbers: tuple[int, int] = WORKSPACE) -> None:
        self.like, self.gpu, self.bytes, self.numbers = like, gpu, bytes, numbers

    def on(self, stream: int) -> tuple[dict[int, int], Any]:
        """The addresses of both by the number of their parameter, and what keeps the memory."""
        if not self.bytes:
            return {}, None
        found = self.kept.get((self.gpu, stream))
        if found is None or found[0] < self.bytes:
            size = max(self.bytes, LEAST)
            found = size, zeros(self.like, size), zeros(self.like, COUNTERS)
            self.kept[self.gpu, stream] = found
        addresses = [look(memory, "workspace", tuple(TORCH_NAMES)).address for memory in found[1:]]
        return dict(zip(self.numbers, addresses, strict=True)), found


_ready: dict[Any, tuple[Ready, tuple[int, int], Any]] = {}  # and the extents of the result, and its type for torch

SCHEMA = (
    "(Tensor a, Tensor b, Tensor? bias=None, str? activation=None, Tensor? residual=None, bool allow_tf32=False)"
    " -> Tensor"
)


def matmul_of_tensors(
    a: Any, b: Any, bias: Any = None, activation: Any = None, residual: Any = None, allow_tf32: bool = False
) -> Any:
    """The operator: `matmul` without `out`."""
    return matmul(a, b, bias=bias, activation=activation, residual=residual, allow_tf32=allow_tf32)


def describe(
    a: Any, b: Any, bias: Any = None, activation: Any = None, residual: Any = None, allow_tf32: bool = False
) -> Any:
    """What comes out, for `torch.compile`."""
    return empty(a, (*a.shape[:-1], b.shape[1]), "s32" if str(a.dtype) == "torch.int8" else None)


_operator = Operator("matmul", SCHEMA, matmul_of_tensors, describe)


def matmul(
    a: Any,
    b: Any,
    out: Any = None,
    *,
    bias: Any = None,
    activation: str | None = None,
    residual: Any = None,
    allow_tf32: bool = False,
) -> Any:
    """D = activation(a @ b + bias) + residual, in f16 or bf16 with f32 accumulators.

    With `allow_tf32` also of f32, rounded to tf32 before it is multiplied. The product of int8 is int32, and has
    nothing added to it. For 8-bit floats see `scaled_matmul`.

    `a` is m by k and `b` is k by n, each with its rows or its columns one after the other in memory. `bias` has n
    elements, `residual` is m by n. `activation` is "relu", "silu", "gelu" or "gelu_tanh". The result is a new array,
    or `out`. Work starts on the stream that the framework uses now; arrays of the host run on the emulator.
    """
    if _operator.is_compiling() and out is None:
        return _operator.made(a, b, bias=bias, activation=activation, residual=residual, allow_tf32=allow_tf32)
    if len(getattr(a, "shape", ())) > 2 and len(getattr(b, "shape", ())) == 2:
        flat = [one if one is None else one.reshape(-1, one.shape[-1]) for one in (a, out, residual)]
        found = matmul(flat[0], b, flat[1], bias=bias, activation=activation, residual=flat[2], allow_tf32=allow_tf32)
        return found.reshape((*a.shape[:-1], b.shape[1]))
    if not is_torch(a.__class__) or not a.is_cuda:
        return _first((a, b, out, bias, residual), activation, allow_tf32, None)
    key: Any = (a.shape, a.stride(), a.dtype, a.device, b.shape, b.stride(), b.dtype, b.device, activation, allow_tf32)
    if out is not None or bias is not None or residual is not None:
        key = (key, *(None if one is None else _form(one) for one in (out, bias, residual)))
    found = _ready.get(key)
    given = a, b, out, bias, residual
    if found is None:
        return _first(given, activation, allow_tf32, key)
    ready, extents, dtype = found
    made = a.new_empty(extents, dtype=dtype) if out is None else out
    addresses = [a.data_ptr(), b.data_ptr(), made.data_ptr()]
    if bias is not None or residual is not None:
        addresses += [0 if one is None else one.data_ptr() for one in (bias, residual)]
    if (addresses[0] | addresses[1]) & 15 or (out is not None and ready.overlaps(addresses)):
        return _first(given, activation, allow_tf32, key)
    ready.start(addresses, stream_of(a, ready.gpu))
    return made


def _form(tensor: Any) -> Any:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.data_ptr() & 15


def _first(given: Sequence[Any], activation: str | None, allow_tf32: bool, key: Any) -> Any:
    """A product that is not ready yet, from top to bottom."""
    a, b, out, *others = given
    if is_torch(a.__class__):
        _operator.register()
    left, right = look(a, "a", tuple(FORMATS)), look(b, "b", tuple(FORMATS))
    m, n, k = extents_of(left, right)
    formats = FORMATS[left.type]
    _check_options(formats, others, activation, allow_tf32)
    made = empty(a, (m, n), formats.out) if out is None else out
    target = look(made, "out", [formats.out])
    pairs = zip(others, ("bias", "residual"), strict=True)
    added = [None if one is None else look(one, name, [formats.out]) for one, name in pairs]
    check_arrays(left, right, target, {"bias": (added[0], (n,)), "residual": (added[1], (m, n))})
    if not m or not n:
        return made
    sides = [source(left, a), source(right.transposed, b.T)]
    problem = Problem(m, n, k, sides[0][1], sides[1][1], left.size, target.size)
    is_paired = target.size == 2 and _are_paired(n, added)
    extras = Extras(added[0] is not None, activation, added[1] is not None, paired=is_paired)
    result = target
    if target.gpu is None and not target.array.flags.c_contiguous:
        result = look(empty(target.array, (m, n)), "out", [formats.out])
    (_, along_k), (matrix, b_along_k) = sides
    by_rows = extras == Extras() and along_k and is_for_gemv(left.type, m, matrix.strides[0], k, b_along_k)
    launched = _gemv(problem, sides, result) if by_rows else _launch(formats, problem, sides, result, added, extras)
    if left.gpu is None:
        launched.run(device="cpu")
        if target.array is not result.array:
            target.array[...] = result.array
        return made
    arrays: list[Any] = [sides[0][0], sides[1][0], target]
    if any(one is not None for one in added):
        arrays += added
    ready = _prepare(launched, problem, arrays, a, by_rows)
    is_kept = arrays[0].address == left.address and arrays[1].address == right.address
    if key is not None and is_kept and target.address % 16 == 0:
        if len(_ready) >= _MOST:
            _ready.clear()
        _ready[key] = ready, (m, n), made.dtype
    ready.start([0 if one is None else one.address for one in arrays], stream_of(a, left.gpu))
    if hasattr(a, "unsafe_buffer_pointer"):  # JAX does not know of this work: it is completed now
        with current(left.gpu):
            call("cuStreamSynchronize", 0)
    return made


def _prepare(launched: Launch, problem: Problem, arrays: Sequence[Any], like: Any, by_rows: bool) -> Ready:
    """The launch, ready for other addresses of the same arrays."""
    gpu = arrays[0].gpu
    shape = choose(problem)
    left, right = (1, 0) if by_rows or shape.swapped else (0, 1)
    is_split = shape.split > 1 and not shape.clustered and not by_rows
    partial = problem.tiles(shape) * shape.cluster * shape.split * shape.parts.bytes
    workspace = Workspace(like, gpu, partial if is_split else 0)
    changing = [left, right, _RESULT, *_ADDED][: len(arrays)]
    bytes = [0 if one is None else one.end - one.address for one in arrays]
    return Ready(launched, gpu, changing, bytes, _RESULT, workspace.on)


def _are_paired(n: int, added: Sequence[Matrix | None]) -> bool:
    """Whether pairs of neighbours of what is added are words."""
    given = [one for one in added if one is not None]
    numbers = [n, *(one.address // 2 for one in given), *(one.strides[0] for one in given if len(one.shape) == 2)]
    return bool(given) and not any(number % 2 for number in numbers)


def _check_options(formats: Formats, added: Sequence[Any], activation: str | None, allow_tf32: bool) -> None:
    """Whether such a product can be computed."""
    if activation is not None and activation not in ACTIVATIONS:
        raise ValueError(f"activation={activation!r}: there are {', '.join(map(repr, ACTIVATIONS))}")
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
    for name, read in {"a": left, "b": right, **{name: one for name, (one, _) in added.items()}}.items():
        if read.address < target.end and target.address < read.end:
            raise ValueError(f"`out` overlaps `{name}`: what is written would be read")


def source(matrix: Matrix, array: Any) -> tuple[Matrix, bool]:
    """An operand as TMA can copy it, copied first if need be, and whether its rows run along k."""
    if matrix.is_aligned:
        return matrix, True
    if matrix.transposed.is_aligned and matrix.type in HALVES:
        return matrix.transposed, False
    along_k = matrix.strides[0] != 1 or matrix.type not in HALVES  # `wgmma` transposes no others
    copy = look(padded(array if along_k else array.T), "copy", [matrix.type])
    return Matrix(copy.address, matrix.shape if along_k else matrix.shape[::-1],
                  copy.strides, copy.type, copy.gpu, copy.array), along_k  # fmt: skip


def _gemv(problem: Problem, sides: Sequence[tuple[Matrix, bool]], target: Matrix) -> Launch:
    """One row: each row of B, as it is in memory, is multiplied with it."""
    (row, _), (matrix, _) = sides
    ahead = min(AHEAD, -(-problem.k // (THREADS * 8)))
    arrays = [one.view() for one in (matrix, row, target)]
    return Launch(
        gemv.specialise(TYPE="bf16", VECTOR=8, AHEAD=ahead), (problem.n, 1), THREADS, [*arrays, problem.n, problem.k]
    )


def _launch(
    formats: Formats,
    problem: Problem,
    sides: Sequence[tuple[Matrix, bool]],
    target: Matrix,
    added: Sequence[Matrix | None],
    extras: Extras,
) -> Launch:
    matrices = sides[0][0].view(), sides[1][0].view(), target.view()
    bias, residual = (0 if one is None else one.view() for one in added)
    shape = choose(problem, target.gpu is None)
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
