"""Y = activation(X Aᵀ) ⊙ (X Bᵀ) for at most 8 rows of X, in Python: tensor cores multiply what lanes load.

A block has 16 rows of both matrices, and its warps take chunks of 32 columns in turn. In a chunk, lane 4 r + c has 8
columns of row r and 8 of row r + 8, and the same columns of row r of X. `mma.m16n8k16` wants them at other places in k;
which column is where does not matter to a sum, as long as it is the same for both.
"""

from __future__ import annotations

from functools import cache, reduce

from ptxlab.author import Kernel, Pointer, b16, b32, f32, kernel, pointer, pred, ptx, u32
from ptxlab.kernels.gemv.kernel import Form, finished, overlap
from ptxlab.kernels.parts.elements import element_pointer, store
from ptxlab.kernels.parts.reductions import add

WARPS, LANES = 16, 32
ROWS, MOST = 16, 8  # of a product: rows of the matrices, and of X
PIECE = 8  # columns that a lane has of each row
CHUNK = 4 * PIECE
LOAD = ptx.ld.global_  # not `.nc`: the kernel before may still write X


@cache
def build(form: Form, whole: bool) -> Kernel:
    """The kernel; `whole` if k is a multiple of what a block loads at a time."""
    product = ptx.mma.sync.aligned.m16n8k16.row.col.f32[form.type][form.type].f32

    @kernel(target="sm_90", maxntid=WARPS * LANES, minnctapersm=2)
    def gemv_few(
        a: pointer[b16],
        b: pointer[b16],
        x: pointer[b16],
        y: pointer[b16],
        n: u32,
        k: u32,
        count: u32,
        a_pitch: u32,
        b_pitch: u32,
        x_pitch: u32,
        y_pitch: u32,
    ) -> None:
        thread, lane, warp = ptx.tid.x, ptx.laneid, ptx.tid.x >> 5
        first, column = ptx.ctaid.x * ROWS, (lane & 3) * PIECE

        def place(matrix: Pointer, row: u32, rows: u32, pitch: u32) -> Pointer:
            """Where a lane's part of a row starts, or of the last row."""
            return matrix + ptx.mul.wide.u32(ptx.min.u32(row, rows - 1), pitch) + column

        sources = [
            [place(matrix, first + half + (lane >> 2), n, pitch) for half in (0, 8)]
            for matrix, pitch in ((a, a_pitch), (b, b_pitch))
        ]
        vector = place(x, lane >> 2, count, x_pitch)
        sums = [[f32(0.0) for _ in range(4)] for _ in sources]
        overlap()
        for start in ptx.range(warp * CHUNK, k, WARPS * CHUNK):
            inside = None if whole else start + column < k
            tiles = [[words(LOAD["L1::no_allocate"], source + start, inside) for source in tile] for tile in sources]
            factors = words(LOAD, vector + start, inside)
            for (upper, lower), sum in zip(tiles, sums, strict=True):
                for half in (0, 2):
                    left = upper[half], lower[half], upper[half + 1], lower[half + 1]
                    product(left, (factors[half], factors[half + 1]), sum, out=tuple(sum))
        partial = ptx.shared(f32, WARPS, len(sources), MOST, ROWS)
        for which, values in enumerate(sums):
            for at, value in enumerate(values):
                partial[warp, which, (lane & 3) * 2 + at % 2, (lane >> 2) + at // 2 * 8] = value
        ptx.bar.sync(0)
        number, row = thread // ROWS, first + thread % ROWS
        with ptx.when((number < count) & (row < n)):
            totals = [
                reduce(add, (partial[warp, which, number, thread % ROWS] for warp in range(WARPS)))
                for which in range(len(sources))
            ]
            result = ptx.mad.wide.u32(number, y_pitch, ptx.cvt.u64.u32(row))
            store(element_pointer(y, form.result, 1, result), form.result, [finished(form, totals, [])])

    return gemv_few


def words(load: object, source: Pointer, inside: pred | None) -> list[b32]:
    """What a lane has of a row: 8 columns in 4 words, or zeros."""
    found = [b32() if inside is None else b32(0) for _ in range(4)]
    load.v4.b32(source, out=tuple(found), when=inside)  # type: ignore[attr-defined]
    return found
