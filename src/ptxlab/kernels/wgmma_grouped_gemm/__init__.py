"""Products of groups of rows, each with a matrix of its own, in one launch: what experts of a mixture compute.

A is m by k and has the rows of all groups one after the other, B is groups by n by k, D is m by n, in f16 or bf16; or A
and B are e4m3 with scales of rows of A and of columns of each matrix of B, and D is bf16. `offsets` has the row after
the last one of each group, in the GPU's memory: the host never reads it. Rows, or columns of B in 16 bits if those are
in memory one after the other, are multiples of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from ptxlab.kernels.parts.formats import Formats, bytes_of
from ptxlab.kernels.parts.shapes import BLOCKS, Layout, Shape
from ptxlab.kernels.wgmma_gemm import grid_of
from ptxlab.kernels.wgmma_grouped_gemm.groups import space_for
from ptxlab.kernels.wgmma_grouped_gemm.kernel import plan_of, specialize
from ptxlab.kernels.wgmma_grouped_gemm.stores import ragged_map
from ptxlab.measure import Draw, Entry, Launch, UnsuitedError, Work
from ptxlab.measure.checking import as_float64
from ptxlab.measure.data import type_of
from ptxlab.measure.entry import Arrays, ceil_div

SMALL = Shape(groups=1, columns=64, stages=2)
MOST_GROUPS = 1024


def choose(groups: int, m: int, n: int, k: int, along_k: bool = True, size: int = 2) -> Shape:
    """The variant for so many groups of elements of `size` bytes, from the mean of their rows: no more is known."""
    if n <= 64 and m <= 384 * groups:
        return Shape(groups=1, columns=64, stages=6, occupancy=2)
    if m <= 48 * groups:
        return Shape(groups=1, columns=128, stages=4, occupancy=2, buffers=1)
    buffers = 2 if groups <= 256 else 1  # more groups leave less shared memory
    if size == 1:
        return Shape(stages=4, buffers=buffers)
    if m < 192 * groups:
        return Shape(stages=4, buffers=buffers, even=True)
    if k <= 3072:
        return Shape(columns=192, tall=2, stages=4, buffers=2, alternate=True)
    if m <= 1024 * groups:
        return Shape(stages=4, buffers=buffers, together=4, lead=2, even=True)
    return Shape(buffers=4, together=16, lead=2)


def product(
    a: Any,
    b: Any,
    offsets: Any,
    d: Any,
    shape: Shape | None = None,
    store: str = "ragged",
    blocks: int = BLOCKS,
    scales: tuple[Any, Any] | None = None,
) -> Launch:
    """The launch that computes D; rows of matrices of B run along k, or their columns do. `scales` are for e4m3."""
    (m, k), (groups, n, depth) = a.shape, b.shape
    formats, along_k = Formats(type_of(a), type_of(b), type_of(d)), steps_of(b)[2] == 1
    if formats.left not in ("f16", "bf16", "e4m3") or a.dtype != b.dtype or depth != k or len(offsets) != groups:
        raise UnsuitedError(f"no grouped product of {a.dtype} {m}x{k} and {b.dtype} {groups}x{n}x{depth}")
    each = 16 // bytes_of(formats.left)
    if n % 8 or k % each or not 0 < groups <= MOST_GROUPS:
        raise UnsuitedError(
            f"n is {n}, k is {k}: they must be multiples of 8 and {each}, with up to {MOST_GROUPS} groups"
        )
    chosen = shape or choose(groups, m, n, k, along_k, bytes_of(formats.left))
    stored = b if along_k else b.swapaxes(1, 2)
    layout = Layout(True, along_k, element=formats.element)
    return launch(formats, (a, stored, d), offsets, (groups, m, n, k), chosen, layout, store, blocks, scales)


def steps_of(array: Any) -> list[int]:
    """Strides in elements."""
    if hasattr(array, "data_ptr"):
        return [*array.stride()]
    return [step // array.itemsize for step in array.strides]


def launch(
    formats: Formats,
    matrices: tuple[Any, Any, Any],
    offsets: Any,
    extents: tuple[int, int, int, int],
    shape: Shape,
    layout: Layout,
    store: str = "ragged",
    blocks: int = BLOCKS,
    scales: tuple[Any, Any] | None = None,
) -> Launch:
    """The launch of one variant; `extents` are groups, m, n and k. Matrices of B that are across k are k by n.

    `scales` are factors of rows of A, and of columns of each matrix of B: groups by n.
    """
    (a, b, d), (groups, m, n, _) = matrices, extents
    if scales is not None and store != "ragged":
        raise UnsuitedError("only without scales")
    plan = plan_of(formats, shape, layout)
    left, right = plan.operands
    maps = left.map(a), right.map(b), ragged_map(plan.boxes, d) if store == "ragged" else plan.boxes.map(d)
    most = (ceil_div(m, shape.rows * shape.cluster) + min(groups, m)) * ceil_div(n, shape.columns)
    grid = grid_of(most, replace(shape, even=False), blocks)
    masked = [d, steps_of(d)[0]] if store == "masked" else [0, 0]
    space = space_like(d, 128 * grid * shape.groups) if store == "changed" else 0
    args = [*maps, offsets, *extents, *(scales or (0, 0)), *masked, space]
    kernel = specialize(formats, shape, layout, space_for(groups), store, scales is not None)
    return Launch(kernel, grid, shape.threads, args, plan.shared, overlap=True)


def space_like(array: Any, bytes: int) -> Any:
    """So many bytes where an array is."""
    if hasattr(array, "data_ptr"):
        return array.new_zeros(bytes, dtype=import_module("torch").uint8)
    return np.zeros(bytes, np.uint8)


def rows_of(groups: int, m: int, skew: float) -> list[int]:
    """The rows of each group: all alike, or the more unlike the larger the skew, and then each eighth has none."""
    shares = [(1 + number * 37 % groups) ** -skew for number in range(groups)]
    if skew:
        shares[3::8] = [0.0] * len(shares[3::8])
    found = [int(m * share / sum(shares)) for share in shares]
    found[0] += m - sum(found)
    return found


def arrays(draw: Draw, type: str, groups: int, m: int, n: int, k: int, skew: float = 0.0) -> Arrays:
    """A, the matrices of B by columns, where groups end, and space for D."""
    offsets = draw.integers(groups, "s32", 0, 1)
    for number, end in enumerate(np.cumsum(rows_of(groups, m, skew)).tolist()):
        offsets[number] = end
    found = {"a": draw.normal((m, k), type), "b": draw.normal((groups, n, k), type), "offsets": offsets}
    if type == "e4m3":
        found["scales"] = tuple(draw.uniform(shape, "f32", 0.5, 2) for shape in (m, (groups, n)))
    return {**found, "d": draw.empty((m, n), "bf16" if type == "e4m3" else type)}


def parts_of(offsets: Any) -> list[tuple[int, slice]]:
    """Each group that is not empty: its number and its rows."""
    ends = [int(end) for end in offsets]
    rows = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
    return [(number, part) for number, part in enumerate(rows) if part.stop > part.start]


def reference(xp: Any, a: Any, b: Any, offsets: Any, d: Any, scales: Any = None) -> Arrays:
    """The same in float64."""
    for number, rows in parts_of(offsets):
        d[rows] = a[rows] @ b[number].T
        if scales is not None:
            d[rows] *= as_float64(xp, scales[0])[rows, None] * as_float64(xp, scales[1])[number]
    return {"d": d}


def by_torch(torch: Any, a: Any, b: Any, offsets: Any, d: Any, scales: Any = None) -> Callable[[], Any]:
    """torch's own kernel, from CUTLASS."""
    matrices = b.transpose(1, 2)
    if scales is None:
        return lambda: {"d": torch._grouped_mm(a, matrices, offs=offsets)}
    how = {"offs": offsets, "out_dtype": d.dtype, "use_fast_accum": True}
    return lambda: {"d": torch._scaled_grouped_mm(a, matrices, *scales, **how)}


def by_cublas(torch: Any, a: Any, b: Any, offsets: Any, d: Any, scales: Any = None) -> Callable[[], Any]:
    """A call of cuBLAS for each group; it has to know their sizes."""
    if scales is not None:
        raise UnsuitedError("only in 16 bits")
    parts = [(a[rows], b[number].T, d[rows]) for number, rows in parts_of(offsets)]

    def run() -> None:
        for left, right, out in parts:
            torch.mm(left, right, out=out)

    return run


def work(type: str, groups: int, m: int, n: int, k: int, skew: float = 0.0) -> Work:
    """A multiplication and an addition for each of m·n·k; matrices of groups that are not empty are read."""
    used = sum(rows > 0 for rows in rows_of(groups, m, skew))
    return Work(flops=2 * m * n * k, bytes=bytes_of(type) * (m + used * n) * k + 2 * m * n, rate=type)


def tolerance(type: str, **_: Any) -> float:
    """Half a unit in the last place of what comes out; sums of e4m3 have 14 bits on a GPU."""
    return {"f16": 5e-4, "bf16": 4e-3, "e4m3": 1e-2}[type]


SIZES: Sequence[tuple[int, int, int, int, float]] = (
    (128, 512, 1536, 2048, 0.5), (32, 512, 4096, 7168, 0.5), (32, 4096, 4096, 7168, 0.5), (256, 32768, 2048, 2048, 1),
    (128, 65536, 1536, 2048, 0.5), (64, 16384, 4096, 7168, 0), (64, 16384, 4096, 7168, 1), (8, 16384, 4096, 14336, 0.5),
    (8, 16384, 14336, 4096, 0.5),
)  # fmt: skip
EIGHTS = [SIZES[number] for number in (1, 2, 3, 4, 6, 8)]


entry = Entry(
    title="Dᵢ = Aᵢ·Bᵢᵀ of groups of rows by wgmma",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={
        "one map": product,
        "changed map": partial(product, store="changed"),
        "masked": partial(product, store="masked"),
    },
    libraries={"torch._grouped_mm": by_torch, "a cuBLAS call each": by_cublas},
    sizes=[
        {"type": type, "groups": groups, "m": m, "n": n, "k": k, "skew": skew}
        for type, sizes in (("e4m3", EIGHTS), ("bf16", SIZES))
        for groups, m, n, k, skew in sizes
    ],
    small=[
        {"type": "bf16", "groups": 9, "m": 150, "n": 40, "k": 136, "skew": 1.0},
        {"type": "e4m3", "groups": 3, "m": 70, "n": 16, "k": 144, "skew": 1.0},
    ],
    tolerance=tolerance,
)
