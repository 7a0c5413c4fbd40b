"""D = activation(A·Gᵀ) ⊙ (A·Uᵀ) on Hopper's tensor cores: the gated product of a transformer's feed-forward layer.

A is m by k, G and U are n by k, D is m by n, in f16 or bf16; or A, G and U are e4m3 with a scale each, and D is bf16.
Rows of all of them, or columns of A, G and U in 16 bits if those are in memory one after the other, are multiples of 16
bytes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.author import Pointer
from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.choices import Choice
from ptxlab.kernels.parts.finishing import Activation
from ptxlab.kernels.parts.formats import Formats, bytes_of
from ptxlab.kernels.parts.shapes import BLOCKS, Layout, Shape
from ptxlab.kernels.parts.torch_baselines import compiled, eager
from ptxlab.kernels.wgmma_dual_gemm.kernel import plan_of, specialize
from ptxlab.kernels.wgmma_gemm import grid_of, has_rows
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import ALIKE, TRIED
from ptxlab.kernels.wgmma_gemm.correction import best
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


def choose(m: int, n: int, k: int, layout: Layout) -> Shape:
    """The variant for a gated product: as for a product with a matrix of 2n columns."""
    size = layout.element.type.width // 8
    found: Shape = GATED(Problem(m, 2 * n, k, layout.left_along_k, layout.right_along_k, size, gated=True))
    return found


@cache
def _candidates(problem: Problem) -> list[Shape]:
    """The variants that are likely to be the fastest: more rows of tiles at a time than of a product, which share A.

    Where warpgroups do not take turns, the first K tiles are on their way while the kernel before runs.
    """
    found = [replace(one, raster=16) for one in best(problem, TRIED, ALIKE)]
    return [replace(one, keep=("", "evict_first")) if one.pingpong else replace(one, early=1) for one in found]


GATED = Choice("gated_product", lambda problem: _candidates(problem)[0], _candidates)


def product(
    a: Array,
    g: Array,
    u: Array,
    d: Array,
    shape: Shape | None = None,
    activation: str | Activation = "silu",
    blocks: int = BLOCKS,
    scales: tuple[Array | int, ...] | None = None,
    products: tuple[object, object] | None = None,
) -> Launch:
    """The launch that computes D; rows of A, G and U run along k, or their columns do. `scales` are for e4m3.

    `products` is where both products are stored, too.
    """
    (m, k), (n, depth) = a.shape, g.shape
    formats, along = Formats(type_of(a), type_of(g), type_of(d)), [has_rows(one) for one in (a, g, u)]
    if formats.left not in ("f16", "bf16", "e4m3") or len({a.dtype, g.dtype, u.dtype}) > 1 or depth != k:
        raise UnsuitedError(f"no gated product of {a.dtype} {m}x{k} with {g.dtype} {n}x{depth}")
    each = 16 // bytes_of(formats.left)
    if along[1] != along[2] or n % 8 or (m if not along[0] else k) % each or (along[1] and k % each):
        raise UnsuitedError("rows must be multiples of 16 bytes, and G and U be in memory in the same way")
    layout = Layout(along[0], along[1], element=formats.element)
    stored = [one if rows else one.T for one, rows in zip((a, g, u), along, strict=True)]
    chosen = shape or choose(m, n, k, layout)
    return launch(formats, (*stored, d), (m, n, k), chosen, layout, activation, blocks, scales, products)


def launch(
    formats: Formats,
    matrices: tuple[Array, ...],
    extents: tuple[int, int, int],
    shape: Shape,
    layout: Layout,
    activation: str | Activation,
    blocks: int = BLOCKS,
    scales: tuple[Array | int, ...] | None = None,
    products: tuple[Any, Any] | None = None,
) -> Launch:
    """The launch of one variant. An operand that is not along k is given as it is in memory: its rows run across k.

    `scales` are factors of A, G and U, each a number in the GPU's memory.
    """
    (a, g, u, d), (m, n, k) = matrices, extents
    if ceil_div(k, formats.depth) < shape.split_k:
        raise UnsuitedError(f"k is {k}, and {shape.split_k} blocks of a cluster need {shape.split_k * formats.depth}")
    plan = plan_of(formats, shape, layout)
    left, right = plan.operands
    maps = left.map(a), right.map(g), right.map(u), plan.boxes.map(d)
    tiles = ceil_div(m, shape.rows * shape.cluster) * ceil_div(n, shape.columns // 2)
    kernel = specialize(formats, shape, layout, activation, scales is not None, products is not None)
    kept = [plan.boxes.map(one) for one in products or (d, d)]
    args = [*maps, *extents, *(scales or (0, 0, 0)), *kept]
    return Launch(kernel, grid_of(tiles, shape, blocks), shape.threads, args, plan.shared, overlap=True)


def arrays(draw: Draw, type: str, m: int, n: int, k: int) -> Arrays:
    """A, and G and U by columns, and space for D. Products are around 1, where the activation is not linear."""
    width = (3 / k) ** 0.5
    if type == "e4m3":
        names = {"a": (m, k), "g": (n, k), "u": (n, k)}
        scales = tuple(draw.uniform(1, "f32", low, high) for low, high in ((0.9, 1.1), *((0.5 * width, width),) * 2))
        return {**{name: draw.normal(shape, type) for name, shape in names.items()},
                "d": draw.empty((m, n), "bf16"), "scales": scales}  # fmt: skip
    weights = {name: draw.uniform((n, k), type, -width, width) for name in "gu"}
    return {"a": draw.normal((m, k), type), **weights, "d": draw.empty((m, n), type)}


def reference(
    xp: ModuleType, a: Array, g: Array, u: Array, d: Array, scales: tuple[Array, Array, Array] | None = None
) -> Arrays:
    """The same in float64."""
    of_a, of_g, of_u = [float(one[0]) for one in scales] if scales else (1, 1, 1)
    x = (a @ g.T) * (of_a * of_g)
    return {"d": x / (1 + xp.exp(-x)) * (a @ u.T) * (of_a * of_u)}


def in_torch(
    torch: ModuleType, a: Array, g: Array, u: Array, d: Array, scales: tuple[Pointer, Pointer, Pointer] | None = None
) -> Any:
    """The same by torch: two products by cuBLAS, and the rest."""
    if scales is None:
        return torch.nn.functional.silu(a @ g.T) * (a @ u.T)
    x, y = (
        torch._scaled_mm(a, one.T, scales[0], scale, out_dtype=d.dtype, use_fast_accum=True)
        for one, scale in ((g, scales[1]), (u, scales[2]))
    )
    return torch.nn.functional.silu(x) * y


def work(type: str, m: int, n: int, k: int) -> Work:
    """Two products."""
    return Work(flops=4 * m * n * k, bytes=bytes_of(type) * (m * k + 2 * n * k) + 2 * m * n, rate=type)


def tolerance(type: str, **_: object) -> float:
    """Half a unit in the last place of what comes out; sums of e4m3 have 14 bits on a GPU."""
    return {"f16": 5e-4, "bf16": 4e-3, "e4m3": 1e-2}[type]


entry = Entry(
    title="D = SiLU(A·Gᵀ) ⊙ A·Uᵀ by wgmma",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"gated": product},
    libraries={"torch": eager(in_torch, "d"), "torch.compile": compiled(in_torch, "d", mode="default")},
    sizes=[
        {"type": type, "m": m, "n": n, "k": k}
        for type in ("e4m3", "bf16")
        for m, n, k in (
            (16, 14336, 4096), (128, 14336, 4096), (512, 14336, 4096), (2048, 11008, 4096), (8192, 8192, 2048),
            (8192, 28672, 8192), (4096, 14336, 4096),
        )
    ],
    small=[{"type": "bf16", "m": 70, "n": 40, "k": 136}, {"type": "e4m3", "m": 20, "n": 16, "k": 144}],
    tolerance=tolerance,
)  # fmt: skip
