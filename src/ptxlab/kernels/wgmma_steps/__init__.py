"""D = A·Bᵀ on Hopper's tensor cores, by `wgmma` and TMA copies, in five steps: f16 and bf16.

A is m by k, B is n by k, D is m by n. Rows of A, B and D are multiples of 16 bytes; m is any.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import ptxlab
from ptxlab.device.array_types import type_of
from ptxlab.kernels.wgmma_gemm.measured import arrays, by_cublas, reference, tolerance, work
from ptxlab.kernels.wgmma_steps import one_tile, persistent, ping_pong, ring, specialized
from ptxlab.kernels.wgmma_steps.parts import BOX, DEPTH, GROUP, STRIPE, Shape
from ptxlab.launch.launches import Launch, UnsuitedError, ceil_div
from ptxlab.measure import Entry

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

BLOCKS = 132  # as many as an H200 has SMs
STEPS = {
    "one_tile": Shape(stages=1),
    "ring": Shape(stages=3),
    "specialized": Shape(stages=3, groups=2),
    "persistent": Shape(stages=6, groups=2),
    "ping_pong": Shape(stages=5),
}
"""The shape of each step: tiles of 128 by 128, as many stages as were fastest on an H200."""
WIDE = Shape(columns=256, stages=3, groups=2)
"""Tiles of 128 by 256, for the persistent kernel."""
_KERNELS: dict[str, Any] = {
    "one_tile": one_tile, "ring": ring, "specialized": specialized, "persistent": persistent, "ping_pong": ping_pong,
}  # fmt: skip


def product(
    a: Array, b: Array, d: Array, step: str = "ping_pong", shape: Shape | None = None, blocks: int = 0
) -> Launch:
    """The launch that computes D, by one of the steps; of the persistent kernels, by so many blocks."""
    (m, k), (n, depth) = a.shape, b.shape
    type = type_of(a)
    if type not in ("f16", "bf16") or a.dtype != b.dtype or depth != k:
        raise UnsuitedError(f"no product of {a.dtype} {m}x{k} and {b.dtype} {n}x{depth}, by columns")
    if k % 8 or not k or n % 8:
        raise UnsuitedError(f"k is {k} and n is {n}: rows must be multiples of 16 bytes")
    shape = shape or (STEPS[step] if m * n >= 256 * 256 else STEPS[step].small)
    made = _KERNELS[step].specialize(type, shape)
    maps = [ptxlab.tensor_map(one, box=(rows, DEPTH), swizzle="128B")
            for one, rows in ((a, shape.rows), (b, shape.columns))]  # fmt: skip
    shared, tiles = shape.stages * shape.stage_bytes, (ceil_div(n, shape.columns), ceil_div(m, shape.rows))
    if step in ("one_tile", "ring"):
        return Launch(made, tiles, GROUP, [*maps, d, m, n, k], shared)
    if step == "specialized":
        return Launch(made, tiles, shape.groups * GROUP + 32, [*maps, d, m, n, k], shared)
    maps.append(ptxlab.tensor_map(d, box=(STRIPE, BOX), swizzle="128B"))
    shared += 2 * shape.rows * shape.columns * (2 // shape.groups)
    return Launch(made, min(tiles[0] * tiles[1], blocks or BLOCKS), 2 * GROUP + 32, [*maps, m, n, k], shared)


def wide(a: Array, b: Array, d: Array) -> Launch:
    """The persistent kernel with wide tiles."""
    return product(a, b, d, "persistent", WIDE if d.shape[0] * d.shape[1] >= 256 * 256 else WIDE.small)


entry = Entry(
    title="D = A·Bᵀ by wgmma and TMA copies, in steps",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={
        **{step: partial(product, step=step) for step in STEPS},
        "persistent, 256 columns": wide,
    },
    libraries={"cuBLAS": by_cublas},
    sizes=[{"type": "bf16", "m": extent, "n": extent, "k": extent} for extent in (2048, 4096, 8192)],
    small=[{"type": "bf16", "m": 70, "n": 72, "k": 200}],
    tolerance=tolerance,
)
