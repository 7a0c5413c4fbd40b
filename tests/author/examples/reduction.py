"""The sum of each row: a warp a row, lanes in steps of 32, then a butterfly of shuffles."""

from ptxlab.author import f32, kernel, pointer, ptx, u32


@kernel(target="sm_80")
def row_sums(x: pointer[f32], sums: pointer[f32], columns: u32):
    lane = ptx.tid.x
    row = ptx.ctaid.x
    values = x + row * columns
    total = f32(0.0)
    for i in ptx.range(lane, columns, 32):
        total += values[i]
    for distance in (16, 8, 4, 2, 1):  # Python's own loop: five shuffles are written
        total += ptx.shfl.sync.bfly.b32(total, distance, 31, 0xFFFFFFFF)
    with ptx.when(lane == 0):
        sums[row] = total
