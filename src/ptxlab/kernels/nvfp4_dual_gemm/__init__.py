"""D = SiLU(A·B₁ᵀ) ⊙ A·B₂ᵀ of NVFP4 matrices: the gated product of a transformer, as one kernel.

A is m by k, B₁ and B₂ are n by k, as `measure.block_scaled` has them; D is m by n, f16. It is the kernel of
`nvfp4_gemm` with two matrices B: A is copied to shared memory once, and the two products meet in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

import ptxlab
from ptxlab.author import f32, ptx
from ptxlab.kernels.nvfp4_gemm import blank, maps_of
from ptxlab.kernels.nvfp4_gemm.kernel import Shape, specialize
from ptxlab.kernels.tcgen05_gemm import BLOCKS
from ptxlab.kernels.tcgen05_gemm.epilogue import THREADS
from ptxlab.kernels.tcgen05_gemm.parts import BOX, ROWS
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.measure.block_scaled import NVFP4, check, matrix, numbers
from ptxlab.measure.data import Blank
from ptxlab.measure.steps import OptimizationStep, Steps, spell_size

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

TWO = Shape(stages=3, products=2, buffers=1)
KEPT = replace(TWO, collector=True)
LOG2_E = 1.4426950408889634


def gate(products: Sequence[f32]) -> f32:
    """SiLU of the first product, times the second: x / (1 + e⁻ˣ) · y."""
    x, y = products
    power = ptx.ex2.approx.f32(ptx.mul.rn.f32(x, -LOG2_E))
    return ptx.mul.rn.f32(ptx.mul.rn.f32(x, ptx.rcp.approx.f32(ptx.add.rn.f32(power, 1.0))), y)


def product(
    a: Array, a_factors: Array, b1: Array, b1_factors: Array, b2: Array, b2_factors: Array, d: Array,
    shape: Shape = TWO, blocks: int = BLOCKS,
) -> Launch:  # fmt: skip
    """The launch that computes D, by that many blocks at most."""
    m, k = check("A", NVFP4, a, a_factors)
    sides = [check("B1", NVFP4, b1, b1_factors), check("B2", NVFP4, b2, b2_factors)]
    n = sides[0][0]
    if sides != [(n, k)] * 2 or n % 8:
        raise UnsuitedError(f"no gated product of {m}x{k} with {sides[0]} and {sides[1]}: n must be a multiple of 8")
    maps = maps_of(shape, a, a_factors, ROWS)
    for b, scale_factors in ((b1, b1_factors), (b2, b2_factors)):
        maps += maps_of(shape, b, scale_factors, shape.columns)
    maps.append(ptxlab.tensor_map(d, box=(ROWS, BOX), swizzle="128B"))
    count = min(ceil_div(m, ROWS) * ceil_div(n, shape.columns), blocks)
    return Launch(specialize(shape, gate), count, THREADS, [tuple(maps), m, n, k], shape.shared)


kept = partial(product, shape=KEPT)
"""The same, where the tensor core keeps A for the second product."""


def arrays(draw: Draw, m: int, n: int, k: int) -> Arrays:
    """A, B₁ and B₂ with their factors, and space for D; products are small, where SiLU is not linear."""
    found: Arrays = {}
    for name, rows in (("a", m), ("b1", n), ("b2", n)):
        found[name], _ = matrix(draw, NVFP4, rows, k)
        found[f"{name}_factors"] = draw.uniform(NVFP4.extents(rows, k), "e4m3", 0.02, 0.2)
    return found | {"d": draw.empty((m, n), "f16")}


def reference(
    xp: ModuleType, a: Array, a_factors: Array, b1: Array, b1_factors: Array, b2: Array, b2_factors: Array, d: Array
) -> Arrays:
    """The same in float64."""
    left = numbers(xp, NVFP4, a, a_factors)
    x, y = (left @ numbers(xp, NVFP4, *b).T for b in ((b1, b1_factors), (b2, b2_factors)))
    return {"d": x / (1 + xp.exp(-x)) * y}


def work(m: int, n: int, k: int) -> Work:
    """Two products."""
    return Work(flops=4 * m * n * k, bytes=(m + 2 * n) * k * 9 / 16 + 2 * m * n, rate="e2m1")


def steps() -> Steps:
    """Two products by two launches, and the gated one."""
    sizes = (256, 256, 1024), (512, 3072, 7168)
    rows = [
        OptimizationStep("two products", *([blank("nvfp4", *size)] * 2 for size in sizes)),
        OptimizationStep("gated product", *([product(**arrays(Blank(), *size))] for size in sizes)),
        OptimizationStep(
            "gated product, A kept by the collector", *([kept(**arrays(Blank(), *size))] for size in sizes)
        ),
    ]
    return Steps(rows, *(spell_size(*size) for size in sizes))


entry = Entry(
    title="D = SiLU(A·B₁ᵀ) ⊙ A·B₂ᵀ of NVFP4 matrices by tcgen05",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"tcgen05": product, "A kept by the collector": kept},
    sizes=[
        {"m": 256, "n": 4096, "k": 7168}, {"m": 512, "n": 4096, "k": 7168}, {"m": 256, "n": 3072, "k": 4096},
        {"m": 512, "n": 3072, "k": 7168},
    ],
    small=[{"m": 128, "n": 128, "k": 256}, {"m": 130, "n": 136, "k": 288}, {"m": 64, "n": 96, "k": 224}],
    tolerance=1e-3,
)  # fmt: skip
