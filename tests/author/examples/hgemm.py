"""C = A B in f16 with f32 sums: `mma.m16n8k16`, `ldmatrix`, and two stages of `cp.async`.

A is m x k by rows, B is n x k (each column of the product one row of it), C is f32. A block is one warp and makes a
tile of 16 x 16; m, n and k are multiples of 16, and k no less than 16 * (STAGES - 1). Rows of shared memory have 8
halves more, against bank conflicts.
"""

from ptxlab.author import f16, f32, kernel, pointer, ptx, u32

MMA = ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
PITCH = 16 + 8


@kernel(target="sm_80", maxntid=32)
def hgemm(a: pointer[f16], b: pointer[f16], c: pointer[f32], n: u32, k: u32, *, STAGES: int = 2):  # noqa: N803
    a_tile = ptx.shared(f16, STAGES, 16, PITCH, align=16, name="a_tile")
    b_tile = ptx.shared(f16, STAGES, 16, PITCH, align=16, name="b_tile")
    lane = ptx.tid.x
    row, half = lane >> 1, (lane & 1) << 3  # each lane copies 8 halves of a row
    a_row = a + (ptx.ctaid.y * 16 + row) * k + half
    b_row = b + (ptx.ctaid.x * 16 + row) * k + half
    a_place, b_place = a_tile.at(0, row, half), b_tile.at(0, row, half)
    # ldmatrix.x4 takes one row address a lane: lanes 0 to 15 the left halves, 16 to 31 the right ones.
    a_fragment = a_tile.at(0, lane & 15, (lane >> 4) << 3)
    b_fragment = b_tile.at(0, (lane & 7) + ((lane >> 4) << 3), lane & 8)
    size = 16 * PITCH  # elements of a stage

    def fetch(stage):
        ptx.cp["async"].cg.shared.global_(a_place + stage, a_row, 16)
        ptx.cp["async"].cg.shared.global_(b_place + stage, b_row, 16)
        ptx.cp["async"].commit_group()

    sums = [[f32(0.0) for _ in range(4)] for _ in range(2)]
    filling, reading = u32(0), u32(0)
    for _ in range(STAGES - 1):
        fetch(filling)
        filling += size
        a_row += 16
        b_row += 16
    for start in ptx.range(0, k, 16):
        with ptx.when(start + 16 * (STAGES - 1) < k):
            fetch(filling)
        with ptx.otherwise():
            ptx.cp["async"].commit_group()
        ptx.cp["async"].wait_group(STAGES - 1)
        ptx.bar.warp.sync(0xFFFFFFFF)
        halves = ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(a_fragment + reading)
        b0, b1, b2, b3 = ptx.ldmatrix.sync.aligned.m8n8.x4.shared.b16(b_fragment + reading)
        MMA(halves, (b0, b1), sums[0], out=sums[0])
        MMA(halves, (b2, b3), sums[1], out=sums[1])
        ptx.bar.warp.sync(0xFFFFFFFF)
        a_row += 16
        b_row += 16
        advance(filling, size, STAGES)
        advance(reading, size, STAGES)
    first = c + (ptx.ctaid.y * 16 + (lane >> 2)) * n + ptx.ctaid.x * 16 + ((lane & 3) << 1)
    second = first + (n << 3)
    for j in range(2):
        (first + 8 * j).v2[0] = sums[j][:2]
        (second + 8 * j).v2[0] = sums[j][2:]


def advance(stage, size, count):
    """The next of `count` stages, the first after the last."""
    stage += size
    ptx.mov.u32(0, out=stage, when=stage == size * count)
