"""D = act(A·Bᵀ + bias) by `mma.sync`: the kernel, written for a type, a shape of tiles and an epilogue.

A block makes one tile of D. All its threads copy K tiles of A and B into a ring of stages in shared memory, by
`cp.async`, several tiles ahead; each warp reads its rows of a K tile by `ldmatrix`, one step ahead of the
MMAs that use them. A K tile is `depth` bytes wide whatever the type is, and a step takes 32 bytes of it, so
that all types share one kernel.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from ptxlab.author import Kernel, Scalar, b32, kernel, pointer, ptx, u32
from ptxlab.kernels.mma_gemm.copies import Copies, Copy
from ptxlab.kernels.mma_gemm.epilogue import Epilogue, Part, write_part
from ptxlab.kernels.mma_gemm.shapes import KINDS, Kind, Shape

if TYPE_CHECKING:
    from ptxlab.author.tiles import Tile

STEP = 32  # bytes of a row that one multiplication takes


@cache
def specialize(type: str, shape: Shape, epilogue: Epilogue) -> Kernel:
    """The kernel; its arguments are A, B, the bias (or 0), D, m, n and k."""
    kind = KINDS[type]

    @kernel(target=shape.target, maxntid=shape.threads)
    def mma_gemm(
        a: pointer[kind.element],  # type: ignore[name-defined]
        b: pointer[kind.element],  # type: ignore[name-defined]
        bias: pointer[kind.result],  # type: ignore[name-defined]
        d: pointer[kind.result],  # type: ignore[name-defined]
        m: u32,
        n: u32,
        k: u32,
    ) -> None:
        lane, warp = ptx.tid.x & 31, ptx.tid.x >> 5
        tile_row, tile_column = row, column = tile_of_block(shape, m, n)
        if epilogue.edges:  # a tile at the end starts earlier, and stores only what no other tile does
            row = ptx.min.u32(row, m - ptx.min.u32(m, shape.rows))
            column = ptx.min.u32(column, n - ptx.min.u32(n, shape.columns))
        across = shape.rows // shape.warp_rows
        warp_row, warp_column = warp % across * shape.warp_rows, warp // across * shape.warp_columns
        copies = Copies(kind, shape, k, epilogue.short)
        a_tile, b_tile = copies.of(a, m, row, shape.rows), copies.of(b, n, column, shape.columns)
        accumulators = multiply(kind, shape, copies, (a_tile, warp_row), (b_tile, warp_column), lane)
        part = Part(d, bias, row + warp_row, column + warp_column, tile_row, tile_column, m, n, lane, warp)
        write_part(epilogue, ptx.fragments(kind.multiply).d, accumulators, part, shape.warps)

    return mma_gemm


def tile_of_block(shape: Shape, m: u32, n: u32) -> tuple[u32, u32]:
    """The first row and column of the block's tile.

    Blocks that run together make `group` rows of tiles, column after column: what they read then fits the L2 cache.
    """
    across = (n + (shape.columns - 1)) // shape.columns
    down = (m + (shape.rows - 1)) // shape.rows
    size = across * shape.group
    group, within = ptx.ctaid.x // size, ptx.ctaid.x % size
    first = group * shape.group
    rows = ptx.min.u32(down - first, shape.group)
    return (first + within % rows) * shape.rows, within // rows * shape.columns


def multiply(
    kind: Kind, shape: Shape, copies: Copies, a: tuple[Tile, u32], b: tuple[Tile, u32], lane: u32
) -> list[list[list[Scalar]]]:
    """The sums of a warp: for each 16 rows and 8 columns the registers of a fragment.

    `a` and `b` are each a tile of shared memory and the first row of it that the warp reads.
    """
    held = ptx.fragments(kind.multiply)
    pair = held.b.stacked(2)  # 16 columns of D: the operands of two multiplications
    pipeline = ptx.copy_pipeline(shape.stages)
    for stage in pipeline.ahead:
        for copy in copies.next(stage):
            copy()
        copies.advance()
        pipeline.commit()

    a_rows, b_rows = a[0].matrices(held.a, lane, row=a[1]), b[0].matrices(pair, lane, row=b[1])
    down, across = range(0, shape.warp_rows, 16), range(0, shape.warp_columns, 16)
    # Registers for two steps: while one is multiplied, the next is loaded.
    left = [[b32.several(held.a.registers) for _ in down] for _ in range(2)]
    right = [[b32.several(pair.registers) for _ in across] for _ in range(2)]

    def load(step: int) -> None:
        """The fragments of a step of the stage that is read now."""
        stage, turn = pipeline.reading.index, step % 2
        a_here, b_here = (start.move(copy=stage).move(columns=step * STEP // kind.size) for start in (a_rows, b_rows))
        for i, registers in zip(down, left[turn], strict=True):
            held.a.load(a_here.move(rows=i), out=registers)
        for j, registers in zip(across, right[turn], strict=True):
            pair.load(b_here.move(rows=j), out=registers)

    accumulators = [[[kind.total(0) for _ in held.d.offsets] for _ in range(2 * len(across))] for _ in down]
    steps = shape.depth // STEP
    pipeline.wait()
    load(0)
    with ptx.loop():
        pending = copies.next(pipeline.filling.index)
        for step in range(steps - 1):
            part = pending[step * len(pending) // (steps - 1) : (step + 1) * len(pending) // (steps - 1)]
            loads: list[Copy] = [partial(load, step + 1)]
            for write in [*part, *loads] if shape.copies_first else [*loads, *part]:
                write()
            multiply_step(kind, left[step % 2], right[step % 2], accumulators)
        copies.advance()
        pipeline.commit()
        pipeline.wait()  # the next K tile is there, and all warps have read this one
        pipeline.advance()
        load(0)
        multiply_step(kind, left[1], right[1], accumulators)
        ptx.repeat_when(copies.remain())
    return accumulators


def multiply_step(
    kind: Kind, left: list[list[b32]], right: list[list[b32]], accumulators: list[list[list[Scalar]]]
) -> None:
    """All multiplications of a step, back and forth: neighbours have an operand in common, which is read once."""
    if kind.multiply is KINDS["tf32"].multiply:  # memory has f32, which is rounded here
        for register in (register for fragment in (*left, *right) for register in fragment):
            ptx.cvt.rna.tf32.f32(register, out=register)
    for i, a in enumerate(left):
        for j in range(len(accumulators[i])) if i % 2 == 0 else reversed(range(len(accumulators[i]))):
            kind.multiply(a, right[j // 2][j % 2 * 2 : j % 2 * 2 + 2], accumulators[i][j], out=accumulators[i][j])
