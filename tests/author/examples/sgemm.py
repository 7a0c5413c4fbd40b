"""C = A B in f32, tiles of TILE x TILE in shared memory; any size, zeros beyond the edges."""

from ptxlab.author import f32, kernel, pointer, ptx, u32


@kernel(target="sm_80")
def sgemm(a: pointer[f32], b: pointer[f32], c: pointer[f32], m: u32, n: u32, k: u32, *, TILE: int = 16):  # noqa: N803
    a_tile = ptx.shared(f32, TILE, TILE + 1, name="a_tile")
    b_tile = ptx.shared(f32, TILE, TILE, name="b_tile")
    x, y = ptx.tid.x, ptx.tid.y
    row = ptx.ctaid.y * TILE + y
    column = ptx.ctaid.x * TILE + x
    total = f32(0.0)
    for start in ptx.range(0, k, TILE):
        load(a_tile.at(y, x), a, row, start + x, m, k)
        load(b_tile.at(y, x), b, start + y, column, k, n)
        ptx.bar.sync(0)
        for i in range(TILE):
            ptx.fma.rn.f32(a_tile[y, i], b_tile[i, x], total, out=total)
        ptx.bar.sync(0)
    with ptx.when((row < m) & (column < n)):
        c[row * n + column] = total


def load(place, matrix, row, column, rows, columns):
    """One element of a matrix into shared memory, zero outside of it. A Python function is a macro."""
    value = f32(0.0)
    with ptx.when((row < rows) & (column < columns)):
        value.set(matrix[row * columns + column])
    place.store(value)
