"""Products of groups of rows, each with a matrix of its own, in one launch: what experts of a mixture compute.

A is m by k and has the rows of all groups one after the other, B is groups by n by k, D is m by n, in f16 or bf16; or A
and B are e4m3 with scales of rows of A and of columns of each matrix of B, and D is bf16. `offsets` has the row after
the last one of each group, in the GPU's memory: the host never reads it. Rows, or columns of B in 16 bits if those are
in memory one after the other, are multiples of 16 bytes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.formats import Formats, bytes_of
from ptxlab.kernels.parts.shapes import BLOCKS, Layout, Shape
from ptxlab.kernels.wgmma_gemm import grid_of
from ptxlab.kernels.wgmma_grouped_gemm.choice import MOST_GROUPS, choose
from ptxlab.kernels.wgmma_grouped_gemm.groups import space_for
from ptxlab.kernels.wgmma_grouped_gemm.kernel import in_order, plan_of, specialize
from ptxlab.kernels.wgmma_grouped_gemm.measured import SIZES, arrays, by_cublas, by_torch, reference, tolerance, work
from ptxlab.kernels.wgmma_grouped_gemm.stores import ragged_map
from ptxlab.launch.launches import Launch, UnsuitedError, ceil_div
from ptxlab.measure import Entry

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array


SMALL = Shape(groups=1, columns=64, stages=2)


def product(
    a: Array,
    b: Array,
    offsets: Any,
    d: Array,
    shape: Shape | None = None,
    blocks: int = BLOCKS,
    scales: tuple[Array, Array] | None = None,
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
    return launch(formats, (a, stored, d), offsets, (groups, m, n, k), chosen, layout, blocks, scales)


def steps_of(array: Any) -> list[int]:
    """Strides in elements."""
    if hasattr(array, "data_ptr"):
        return [*array.stride()]
    return [step // array.itemsize for step in array.strides]


def launch(
    formats: Formats,
    matrices: tuple[Array, Array, Array],
    offsets: object,
    extents: tuple[int, int, int, int],
    shape: Shape,
    layout: Layout,
    blocks: int = BLOCKS,
    scales: tuple[Array | int, ...] | None = None,
) -> Launch:
    """The launch of one variant; `extents` are groups, m, n and k. Matrices of B that are across k are k by n.

    `scales` are factors of rows of A, and of columns of each matrix of B: groups by n.
    """
    (a, b, d), (groups, m, n, _) = matrices, extents
    plan = plan_of(formats, shape, layout)
    tokens, weights = in_order(shape, *plan.operands)
    maps = tokens.map(a), weights.map(b), ragged_map(plan.boxes.map(d))
    rows, columns = in_order(shape, *shape.covered)
    most = (ceil_div(m, rows) + min(groups, m)) * ceil_div(n, columns)
    grid = grid_of(most, replace(shape, even=False), blocks)
    args = [*maps, offsets, *extents, *(scales or (0, 0))]
    kernel = specialize(formats, shape, layout, space_for(groups), scales is not None)
    return Launch(kernel, grid, shape.threads, args, plan.shared, overlap=True)


entry = Entry(
    title="Dᵢ = Aᵢ·Bᵢᵀ of groups of rows by wgmma",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"wgmma": product},
    libraries={"torch._grouped_mm": by_torch, "a cuBLAS call each": by_cublas},
    sizes=SIZES,
    small=[
        {"type": "bf16", "groups": 9, "m": 150, "n": 40, "k": 136, "skew": 1.0},
        {"type": "e4m3", "groups": 3, "m": 70, "n": 16, "k": 144, "skew": 1.0},
    ],
    tolerance=tolerance,
)
