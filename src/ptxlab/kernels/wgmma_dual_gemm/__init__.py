"""D = activation(A·Gᵀ) ⊙ (A·Uᵀ) on Hopper's tensor cores: the gated product of a transformer's feed-forward layer.

A is m by k, G and U are n by k, D is m by n, in f16 or bf16. Rows of all of them, or columns of A, G and U if those are
in memory one after the other, are multiples of 16 bytes.
"""

from __future__ import annotations

from typing import Any

from ptxlab.kernels.formats import Formats
from ptxlab.kernels.torch_baselines import compiled, eager
from ptxlab.kernels.wgmma_dual_gemm.kernel import plan_of, specialize
from ptxlab.kernels.wgmma_gemm import grid_of, has_rows
from ptxlab.kernels.wgmma_gemm.shapes import BLOCKS, Layout, Shape
from ptxlab.measure import Draw, Entry, Launch, UnsuitedError, Work
from ptxlab.measure.data import type_of
from ptxlab.measure.entry import Arrays, ceil_div

SMALL = Shape(groups=1, columns=128, stages=2)


def choose(m: int, n: int, k: int, layout: Layout) -> Shape:
    """The variant for a product."""
    return Shape(stages=4) if m > 128 else Shape(groups=1, columns=128, stages=4, occupancy=2)


def product(
    a: Any, g: Any, u: Any, d: Any, shape: Shape | None = None, activation: str = "silu", blocks: int = BLOCKS
) -> Launch:
    """The launch that computes D; rows of A, G and U run along k, or their columns do."""
    (m, k), (n, depth) = a.shape, g.shape
    type, along = type_of(a), [has_rows(one) for one in (a, g, u)]
    if type not in ("f16", "bf16") or len({a.dtype, g.dtype, u.dtype}) > 1 or depth != k or u.shape != g.shape:
        raise UnsuitedError(f"no gated product of {a.dtype} {m}x{k} with {g.dtype} {n}x{depth}")
    if along[1] != along[2] or n % 8 or (m if not along[0] else k) % 8 or (along[1] and k % 8):
        raise UnsuitedError("rows must be multiples of 16 bytes, and G and U be in memory in the same way")
    layout = Layout(along[0], along[1])
    stored = [one if rows else one.T for one, rows in zip((a, g, u), along, strict=True)]
    chosen = shape or choose(m, n, k, layout)
    return launch(Formats.of(type), (*stored, d), (m, n, k), chosen, layout, activation, blocks)


def launch(
    formats: Formats,
    matrices: tuple[Any, Any, Any, Any],
    extents: tuple[int, int, int],
    shape: Shape,
    layout: Layout,
    activation: str,
    blocks: int = BLOCKS,
    scales: tuple[Any, Any, Any] | None = None,
) -> Launch:
    """The launch of one variant. An operand that is not along k is given as it is in memory: its rows run across k.

    `scales` are factors of A, G and U, each a number in the GPU's memory.
    """
    (a, g, u, d), (m, n, _) = matrices, extents
    plan = plan_of(formats, shape, layout)
    left, right = plan.operands
    maps = left.map(a), right.map(g), right.map(u), plan.boxes.map(d)
    tiles = ceil_div(m, shape.rows * shape.cluster) * ceil_div(n, shape.columns // 2)
    kernel = specialize(formats, shape, layout, activation, scales is not None)
    args = [*maps, *extents, *(scales or (0, 0, 0))]
    return Launch(kernel, grid_of(tiles, shape, blocks), shape.threads, args, plan.shared, overlap=True)


def arrays(draw: Draw, type: str, m: int, n: int, k: int) -> Arrays:
    """A, and G and U by columns, whose products are around 1, where the activation is not linear; space for D."""
    width = (3 / k) ** 0.5
    weights = {name: draw.uniform((n, k), type, -width, width) for name in "gu"}
    return {"a": draw.normal((m, k), type), **weights, "d": draw.empty((m, n), type)}


def reference(xp: Any, a: Any, g: Any, u: Any, d: Any) -> Arrays:
    """The same in float64."""
    x = a @ g.T
    return {"d": x / (1 + xp.exp(-x)) * (a @ u.T)}


def in_torch(torch: Any, a: Any, g: Any, u: Any, d: Any) -> Any:
    """The same by torch: two products by cuBLAS, and the rest."""
    return torch.nn.functional.silu(a @ g.T) * (a @ u.T)


def work(type: str, m: int, n: int, k: int) -> Work:
    """Two products."""
    return Work(flops=4 * m * n * k, bytes=2 * (m * k + 2 * n * k + m * n), rate=type)


def tolerance(type: str, **_: Any) -> float:
    """Half a unit in the last place of what comes out."""
    return {"f16": 5e-4, "bf16": 4e-3}[type]


entry = Entry(
    title="D = SiLU(A·Gᵀ) ⊙ A·Uᵀ by wgmma",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"gated": product},
    libraries={"torch": eager(in_torch, "d"), "torch.compile": compiled(in_torch, "d", mode="default")},
    sizes=[
        {"type": "bf16", "m": m, "n": n, "k": k}
        for m, n, k in (
            (16, 14336, 4096), (64, 14336, 4096), (128, 14336, 4096), (512, 14336, 4096), (2048, 11008, 4096),
            (8192, 2048, 2048), (8192, 8192, 2048), (8192, 28672, 8192), (4096, 14336, 4096),
        )
    ],
    small=[{"type": "bf16", "m": 100, "n": 72, "k": 136}],
    tolerance=tolerance,
)  # fmt: skip
