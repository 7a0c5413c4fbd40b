"""D = A·Bᵀ of NVFP4 matrices on Blackwell's tensor cores, by `tcgen05` with scale factors; MXF4 and MXF8, too.

A is m by k, B is n by k, both as `measure.block_scaled` has them; D is m by n, f16. k is a multiple of 32, n is
one of 8, and m is any.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import ptxlab
from ptxlab.kernels.nvfp4_gemm import cancelling, pair, split_k
from ptxlab.kernels.nvfp4_gemm.kernel import ROW, Shape, specialize
from ptxlab.kernels.tcgen05_gemm import BLOCKS
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS
from ptxlab.kernels.tcgen05_gemm.pair import BLOCKS as PAIR
from ptxlab.kernels.tcgen05_gemm.parts import BOX, ROWS
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.measure.block_scaled import BLOCK, FORMATS, check, matrix, numbers
from ptxlab.measure.data import Blank
from ptxlab.measure.steps import OptimizationStep, Steps, spell_size

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array
    from ptxlab.device.tensor_maps import TensorMap

ONE = Shape()


def maps_of(shape: Shape, matrix: Array, scale_factors: Array, rows: int) -> list[TensorMap]:
    """The tensor maps of a matrix and of its factors, for tiles of that many rows."""
    blocks = scale_factors.reshape(*scale_factors.shape[:3], 16)
    return [
        ptxlab.tensor_map(matrix, box=(rows, ROW), swizzle="128B"),
        ptxlab.tensor_map(blocks, box=(rows // BLOCK, shape.scale_factors, 32, 16)),
    ]


def product(
    a: Array, a_factors: Array, b: Array, b_factors: Array, d: Array, format: str = "nvfp4", shape: Shape = ONE,
    blocks: int = BLOCKS, by: Literal["persistent", "cancelling", "split_k", "pair"] = "persistent",
) -> Launch:  # fmt: skip
    """The launch that computes D: by that many persistent blocks at most, or pairs, or by one or two for each tile."""
    if shape.columns % BLOCK:
        raise UnsuitedError(f"tiles of {shape.columns} columns: factors come in blocks of {BLOCK} rows, so columns are "
                            f"a multiple of {BLOCK}")  # fmt: skip
    shape = replace(shape, format=FORMATS[format])
    (m, k), (n, depth) = check("A", shape.format, a, a_factors), check("B", shape.format, b, b_factors)
    if depth != k or n % 8:
        raise UnsuitedError(f"no product of {m}x{k} and {n}x{depth}, by columns: k must be the same, n a multiple of 8")
    maps = [*maps_of(shape, a, a_factors, ROWS), *maps_of(shape, b, b_factors, shape.columns)]
    maps.append(ptxlab.tensor_map(d, box=(ROWS, BOX), swizzle="128B"))
    tiles, args = ceil_div(m, ROWS) * ceil_div(n, shape.columns), [tuple(maps), m, n, k]
    if by == "pair":
        maps[3] = maps_of(shape, b, b_factors, PAIR * shape.columns)[1]  # factors of all columns for each block
        tiles = ceil_div(m, PAIR * ROWS) * ceil_div(n, PAIR * shape.columns)
        count, args = PAIR * min(tiles, blocks // PAIR), [tuple(maps), m, n, k]
        return Launch(pair.specialize(shape), count, THREADS, args, pair.shared_bytes(shape), cluster=PAIR)
    if by == "split_k":
        if k <= shape.depth:
            raise UnsuitedError(f"k is {k}: it is split into K tiles of {shape.depth}, at least one for each block")
        shape = replace(shape, stages=min(shape.stages, 3))  # beside the accumulators of the other block
        shared, each = split_k.shared_bytes(shape), split_k.BLOCKS
        return Launch(split_k.specialize(shape), each * tiles, THREADS, args, shared, cluster=each)
    if by == "cancelling":
        return Launch(cancelling.specialize(shape), tiles, THREADS, args, shape.shared)
    return Launch(specialize(shape), min(tiles, blocks), THREADS, args, shape.shared)


def arrays(draw: Draw, format: str, m: int, n: int, k: int) -> Arrays:
    """A and B with their factors, and space for D."""
    (a, a_factors), (b, b_factors) = (matrix(draw, FORMATS[format], rows, k) for rows in (m, n))
    d = draw.empty((m, n), "f16")
    return {"a": a, "a_factors": a_factors, "b": b, "b_factors": b_factors, "d": d, "format": format}


def reference(xp: ModuleType, a: Array, a_factors: Array, b: Array, b_factors: Array, d: Array, format: str) -> Arrays:
    """The same in float64."""
    found = FORMATS[format]
    return {"d": numbers(xp, found, a, a_factors) @ numbers(xp, found, b, b_factors).T}


def work(format: str, m: int, n: int, k: int) -> Work:
    """A multiplication and an addition for each of m·n·k."""
    found = FORMATS[format]
    stored = (m + n) * k * (found.bits / 8 + 1 / found.group)
    return Work(flops=2 * m * n * k, bytes=stored + 2 * m * n, rate=found.name)


def steps() -> Steps:
    """The three formats, and NVFP4 by other ways."""
    sizes = (256, 256, 1024), (128, 7168, 16384)
    rows = [OptimizationStep(format, *([blank(format, *size)] for size in sizes)) for format in FORMATS]
    others: dict[str, dict[str, Any]] = {
        "nvfp4, three sets of accumulators": {"shape": Shape(buffers=3)},
        "nvfp4, pairs of blocks": {"by": "pair"},
        "nvfp4, clusterlaunchcontrol": {"by": "cancelling"},
        "nvfp4, split K through distributed shared memory": {"by": "split_k"},
    }
    rows += [
        OptimizationStep(name, *([product(**arrays(Blank(), "nvfp4", *size), **how)] for size in sizes))
        for name, how in others.items()
    ]
    return Steps(rows, *(spell_size(*size) for size in sizes))


def blank(format: str, m: int, n: int, k: int) -> Launch:
    """A launch on zeros."""
    return product(**arrays(Blank(), format, m, n, k))


entry = Entry(
    title="D = A·Bᵀ of NVFP4 matrices by tcgen05",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={
        "tcgen05": product,
        "clusterlaunchcontrol": partial(product, by="cancelling"),
        "split K": partial(product, by="split_k"),
        "pairs of blocks": partial(product, by="pair"),
    },
    sizes=[
        {"format": "nvfp4", "m": 128, "n": 7168, "k": 16384},
        {"format": "nvfp4", "m": 128, "n": 4096, "k": 7168},
        {"format": "nvfp4", "m": 128, "n": 7168, "k": 2048},
    ],
    small=[
        {"format": "nvfp4", "m": 128, "n": 128, "k": 256},
        {"format": "nvfp4", "m": 128, "n": 224, "k": 512},
        {"format": "nvfp4", "m": 200, "n": 136, "k": 544},
        {"format": "mxf4", "m": 130, "n": 128, "k": 352},
        {"format": "mxf8", "m": 128, "n": 136, "k": 416},
    ],
    tolerance=5e-4,
)
