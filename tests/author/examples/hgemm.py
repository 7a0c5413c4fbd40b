"""C = A B in f16 with f32 sums: `mma.m16n8k16`, `ldmatrix`, and stages of `cp.async` into swizzled tiles.

A is m x k by rows, B is n x k (each column of the product one row of it), C is f32. A block is one warp and makes a
tile of 16 x 16; m and n are multiples of 16, k of 32.
"""

from ptxlab.author import f16, f32, kernel, pointer, ptx, u32

MMA = ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
DEPTH = 32  # columns of a tile


@kernel(target="sm_80", maxntid=32)
def hgemm(a: pointer[f16], b: pointer[f16], c: pointer[f32], n: u32, k: u32, *, STAGES: int = 2):  # noqa: N803
    a_tile = ptx.tile(f16, 16, DEPTH, swizzle="64B", copies=STAGES, name="a_tile")
    b_tile = ptx.tile(f16, 16, DEPTH, swizzle="64B", copies=STAGES, name="b_tile")
    lane = ptx.tid.x
    row, column = lane >> 2, (lane & 3) << 3  # each lane copies 8 halves of a row, and of one 8 rows on
    a_row = a + (ptx.ctaid.y * 16 + row) * k + column
    b_row = b + (ptx.ctaid.x * 16 + row) * k + column
    below = k << 3
    a_place, b_place = a_tile.at(row, column), b_tile.at(row, column)
    held = ptx.fragments(MMA)
    b_pair = held.b.stacked(2)  # 16 columns of the product: the operands of two multiplications
    a_rows, b_rows = a_tile.matrices(held.a, lane), b_tile.matrices(b_pair, lane)

    sums = [[f32(0.0) for _ in range(4)] for _ in range(2)]
    pipeline = ptx.copy_pipeline(STAGES)
    fetched = u32(0)

    def fetch(stage):
        with ptx.when(fetched < k):
            for place, source in ((a_place, a_row), (b_place, b_row)):
                there = place.move(copy=stage)
                ptx.cp["async"].cg.shared.global_(there, source, 16)
                ptx.cp["async"].cg.shared.global_(there.move(rows=8), source.at(below), 16)
        pipeline.commit()
        for moving in (a_row, b_row, fetched):
            moving += DEPTH

    for stage in pipeline.ahead:
        fetch(stage)
    for _ in ptx.range(0, k, DEPTH):
        pipeline.wait()
        fetch(pipeline.filling.index)
        a_here, b_here = a_rows.move(copy=pipeline.reading.index), b_rows.move(copy=pipeline.reading.index)
        for step in range(0, DEPTH, 16):
            halves = held.a.load(a_here.move(columns=step))
            others = b_pair.load(b_here.move(columns=step))
            for j in range(2):
                MMA(halves, others[2 * j : 2 * j + 2], sums[j], out=sums[j])
        pipeline.advance()
    row, column = held.d.first(lane)
    corner = c + (ptx.ctaid.y * 16 + row) * n + ptx.ctaid.x * 16 + column
    lower = corner + (n << 3)
    for j in range(2):
        (corner + 8 * j).v2[0] = sums[j][:2]
        (lower + 8 * j).v2[0] = sums[j][2:]
