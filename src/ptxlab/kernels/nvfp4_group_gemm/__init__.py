"""Dᵢ = Aᵢ·Bᵢᵀ of several groups of NVFP4 matrices, in one launch.

Aᵢ is mᵢ by k, Bᵢ is n by k, as `ptxlab.measure.block_scaled` has them; Dᵢ is mᵢ by n, f16. It is the kernel of
`nvfp4_gemm`; only the order of tiles is another one.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

import ptxlab
from ptxlab.kernels.nvfp4_gemm import blank, maps_of
from ptxlab.kernels.nvfp4_gemm.kernel import Shape
from ptxlab.kernels.nvfp4_group_gemm import changed_maps
from ptxlab.kernels.nvfp4_group_gemm.kernel import specialize
from ptxlab.kernels.tcgen05_gemm import BLOCKS
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS
from ptxlab.kernels.tcgen05_gemm.parts import BOX, ROWS
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.measure.block_scaled import NVFP4, check, matrix, numbers
from ptxlab.measure.data import Blank
from ptxlab.measure.steps import OptimizationStep, Steps

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array
    from ptxlab.device.tensor_maps import TensorMap

SHAPE = Shape()
PAIR = Shape(cluster=2)
PARTS = ("a", "a_factors", "b", "b_factors", "d")
MOST = 50  # groups whose maps fit into the parameters of a kernel


def product(shape: Shape = SHAPE, blocks: int = BLOCKS, changed: bool = False, **groups: Any) -> Launch:
    """The launch that computes all Dᵢ; `a0`, `a_factors0`, `b0`, `b_factors0` and `d0` are of the first group.

    The tensor maps are made here, or `changed` by the kernel where a group starts.
    """
    count = len(groups) // len(PARTS)
    if not 0 < count <= MOST:
        raise UnsuitedError(f"{count} groups: 1 to {MOST} fit into the parameters of a kernel")
    arrays = [[groups[f"{part}{group}"] for part in PARTS] for group in range(count)]
    sizes = [size_of(group, *parts) for group, parts in enumerate(arrays)]
    cluster = shape.cluster
    tiles = sum(ceil_div(m, ROWS) * ceil_div(n, cluster * shape.columns) for m, n, _ in sizes)
    grid, extents = cluster * min(tiles, blocks // cluster), np.array(sizes, np.uint32).reshape(-1)
    if changed and cluster > 1:
        raise UnsuitedError("maps that each block changes are its own: no cluster shares copies by them")
    if changed:
        space = np.zeros((grid, changed_maps.workspace(shape)), np.uint8)
        templates = {128 * number: map for number, map in enumerate(all_maps(shape, *arrays[0]))}
        pointers = {8 * number: array for number, array in enumerate(chain.from_iterable(arrays))}
        args = [templates, pointers, extents, space]
        return Launch(changed_maps.specialize(shape, count), grid, THREADS, args, shape.shared)
    maps = tuple(map for parts in arrays for map in all_maps(shape, *parts))
    return Launch(
        specialize(shape, count), grid, THREADS, [maps, extents], shape.shared, cluster=cluster if cluster > 1 else None
    )


def size_of(group: int, a: Array, a_factors: Array, b: Array, b_factors: Array, d: Array) -> tuple[int, int, int]:
    """The rows and columns of Dᵢ, and k; `UnsuitedError` if the matrices do not go together."""
    (m, k), (n, depth) = check(f"A{group}", NVFP4, a, a_factors), check(f"B{group}", NVFP4, b, b_factors)
    if depth != k or n % 8 or not m:
        raise UnsuitedError(f"group {group}: no product of {m}x{k} and {n}x{depth}, n a multiple of 8")
    return m, n, k


def all_maps(shape: Shape, a: Array, a_factors: Array, b: Array, b_factors: Array, d: Array) -> list[TensorMap]:
    """The five tensor maps of a group."""
    sources = [*maps_of(shape, a, a_factors, ROWS), *maps_of(shape, b, b_factors, shape.columns)]
    return [*sources, ptxlab.tensor_map(d, box=(ROWS, BOX), swizzle="128B")]


def arrays(draw: Draw, m: str, n: int, k: int) -> Arrays:
    """The matrices of all groups; `m` has the rows of each, as in `80-176-128`."""
    found: Arrays = {}
    for group, rows in enumerate(map(int, m.split("-"))):
        found[f"a{group}"], found[f"a_factors{group}"] = matrix(draw, NVFP4, rows, k)
        found[f"b{group}"], found[f"b_factors{group}"] = matrix(draw, NVFP4, n, k)
        found[f"d{group}"] = draw.empty((rows, n), "f16")
    return found


def reference(xp: ModuleType, **groups: Any) -> Arrays:
    """The same in float64."""
    found: Arrays = {}
    for group in range(len(groups) // len(PARTS)):
        a, a_factors, b, b_factors, _ = (groups[f"{part}{group}"] for part in PARTS)
        found[f"d{group}"] = numbers(xp, NVFP4, a, a_factors) @ numbers(xp, NVFP4, b, b_factors).T
    return found


def work(m: str, n: int, k: int) -> Work:
    """A multiplication and an addition for each of m·n·k."""
    rows = [int(each) for each in m.split("-")]
    return Work(
        flops=2 * sum(rows) * n * k, bytes=(sum(rows) + n * len(rows)) * k * 9 / 16 + 2 * sum(rows) * n, rate="e2m1"
    )


def steps() -> Steps:
    """A launch for each group, and one launch for all of them."""
    sizes = ("40-76-168", 256, 512), ("80-176-128-72-64-248-96-160", 4096, 7168)
    apart = ([blank("nvfp4", int(rows), n, k) for rows in m.split("-")] for m, n, k in sizes)
    found = [OptimizationStep("a launch for each group", *apart)]
    ways: dict[str, dict[str, Any]] = {
        "maps of the host": {}, "changed maps": {"changed": True}, "maps of the host, A by multicast": {"shape": PAIR},
    }  # fmt: skip
    for name, how in ways.items():
        launches = ([product(**arrays(Blank(), *size), **how)] for size in sizes)
        found.append(OptimizationStep(name, *launches))
    return Steps(found, *(f"groups of {m.replace('-', ', ')} rows, n {n:,}, k {k:,}" for m, n, k in sizes))


entry = Entry(
    title="Dᵢ = Aᵢ·Bᵢᵀ of groups of NVFP4 matrices by tcgen05",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={
        "maps of the host": product,
        "changed maps": partial(product, changed=True),
        "A by multicast": partial(product, shape=PAIR),
    },
    sizes=[
        {"m": "80-176-128-72-64-248-96-160", "n": 4096, "k": 7168},
        {"m": "40-76-168-72-164-148-196-160", "n": 7168, "k": 2048},
        {"m": "192-320", "n": 3072, "k": 4096},
        {"m": "128-384", "n": 4096, "k": 1536},
    ],
    small=[
        {"m": "40-130", "n": 136, "k": 288},
        {"m": "10-22-16-9-8-31-12-20", "n": 128, "k": 224},
        {"m": "24-40", "n": 96, "k": 128},
    ],
    tolerance=5e-4,
)
