"""D = act(A·Bᵀ + bias) on the tensor cores, by `mma.sync`: f16, bf16, tf32, e4m3 and s8.

A is m by k, B is n by k (each column of the product is a row of it, as a layer of a network keeps its weights), D is
m by n. Rows of A and B are multiples of 16 bytes; m and n are any.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.kernels.mma_gemm.epilogue import ACTIVATIONS, Epilogue
from ptxlab.kernels.mma_gemm.kernel import specialize
from ptxlab.kernels.mma_gemm.shapes import KINDS, Shape, suited
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError
from ptxlab.measure import Draw, Entry, Work
from ptxlab.measure.entry import Size

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "tf32", "float8_e4m3fn": "e4m3", "int8": "s8"}


def product(
    a: Array, b: Array, bias: Array | None, d: Array, activation: str = "none", shape: Shape | None = None
) -> Launch:
    """The launch that computes D; `bias` may be None."""
    (m, k), (n, depth) = a.shape, b.shape
    type = TYPES.get(str(a.dtype).removeprefix("torch."))
    if type is None or a.dtype != b.dtype or depth != k:
        raise UnsuitedError(f"no product of {a.dtype} {m}x{k} and {b.dtype} {n}x{depth}, by columns")
    kind = KINDS[type]
    if k * kind.size % 16 or not k:
        raise UnsuitedError(f"rows of {k * kind.size} bytes: they must be a multiple of 16")
    if activation not in (("none", "relu") if type == "s8" else ACTIVATIONS):
        raise UnsuitedError(f"{activation} is not an activation for {type}")
    chosen = shape or suited(type, m, n)
    epilogue = Epilogue(
        bias=bias is not None,
        activation=activation,
        wide=n * kind.result.type.width % 128 == 0,
        edges=m % chosen.rows != 0 or n % chosen.columns != 0,
        short=m < chosen.rows or n < chosen.columns,
    )
    args = [a, b, 0 if bias is None else bias, d, m, n, k]
    kernel = specialize(type, chosen, epilogue)
    return Launch(kernel, chosen.tiles(m, n), chosen.threads, args, shared=chosen.shared(kind))


def by_cublas(torch: ModuleType, a: Array, b: Array, bias: Array, d: Array, activation: str) -> Callable[[], object]:
    """cuBLAS through torch."""
    if bias is not None or activation != "none":
        raise UnsuitedError("torch has no one call for it that writes into D")
    if str(a.dtype) == "torch.int8":
        return lambda: torch._int_mm(a, b.T, out=d)
    if str(a.dtype) == "torch.float8_e4m3fn":
        one = torch.ones((), device=a.device)
        return lambda: torch._scaled_mm(a, b.T, one, one, out_dtype=d.dtype, use_fast_accum=True, out=d)
    if str(a.dtype) == "torch.float32":
        return lambda: _in_tf32(torch, a, b, d)
    return lambda: torch.matmul(a, b.T, out=d)


def _in_tf32(torch: ModuleType, a: Array, b: Array, d: Array) -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        torch.matmul(a, b.T, out=d)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def arrays(draw: Draw, type: str, m: int, n: int, k: int, activation: str = "none", bias: bool = False) -> Arrays:
    """A, B by columns, a bias, and space for D."""
    result = KINDS[type].result.type.name

    def matrix(rows: int) -> Any:
        if type == "s8":
            return draw.integers((rows, k), "s8", -128, 128)
        return draw.normal((rows, k), {"tf32": "f32"}.get(type, type))

    added = draw.integers(n, "s32", -1000, 1000) if type == "s8" else draw.normal(n, result)
    return {
        "a": matrix(m),
        "b": matrix(n),
        "bias": added if bias else None,
        "d": draw.empty((m, n), result),
        "activation": activation,
    }


def reference(xp: ModuleType, a: Array, b: Array, bias: Array | None, d: Array, activation: str) -> Arrays:
    """The same in float64."""
    total = a @ b.T
    if bias is not None:
        total = total + bias
    if activation == "relu":
        total = xp.where(total > 0, total, 0 * total)
    elif activation == "silu":
        total = total / (1 + xp.exp(-total))
    elif activation == "gelu":
        total = total / 2 * (1 + xp.tanh(0.7978845608028654 * (total + 0.044715 * total**3)))
    return {"d": total}


def work(type: str, m: int, n: int, k: int, activation: str = "none", bias: bool = False) -> Work:
    """A multiplication and an addition for each of m·n·k."""
    kind = KINDS[type]
    moved = kind.size * (m * k + n * k) + kind.result.type.width // 8 * m * n
    return Work(flops=2 * m * n * k, bytes=moved, rate=type)


def tolerance(type: str, **_: object) -> float:
    """Half a unit in the last place of what comes out, or of what is multiplied."""
    return {"f16": 5e-4, "bf16": 4e-3, "tf32": 5e-4, "e4m3": 4e-3, "s8": 0.0}[type]


def _sizes() -> list[Size]:
    squares = [{"type": type, "m": 8192, "n": 8192, "k": 8192} for type in ("s8", "e4m3", "tf32", "f16")]
    return [*squares, *({"type": "bf16", "m": extent, "n": extent, "k": extent} for extent in (2048, 4096, 8192))]


def _small() -> list[Size]:
    found: list[Size] = [{"type": "bf16", "m": 64, "n": 128, "k": 256}]
    for number, type in enumerate(KINDS):
        step = 16 // KINDS[type].size  # elements in 16 bytes
        activation = "relu" if type == "s8" else list(ACTIVATIONS)[number % len(ACTIVATIONS)]
        found.append({"type": type, "m": 65, "n": 72, "k": 9 * step, "bias": True, "activation": activation})
        found.append({"type": type, "m": 1, "n": 67, "k": step, "bias": True})
    return found


entry = Entry(
    title="D = act(A·Bᵀ + bias) by mma.sync",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"mma.sync": product},
    libraries={"cuBLAS": by_cublas},
    sizes=_sizes(),
    small=_small(),
    tolerance=tolerance,
)
