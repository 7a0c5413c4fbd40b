"""The kernel of benchmarks/triton_products.py in Triton's language, which reads it from a file."""

import triton
import triton.language as tl


@triton.jit
def product(a, b, c, n, TILE: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):  # noqa: N803
    """A tile of c = a @ b of square matrices, whose size is a multiple of the tile's."""
    tiles = n // TILE
    block = tl.program_id(0)
    first = block // (GROUP * tiles) * GROUP
    rows = min(tiles - first, GROUP)
    i = (first + block % (GROUP * tiles) % rows) * TILE + tl.arange(0, TILE)
    j = block % (GROUP * tiles) // rows * TILE + tl.arange(0, TILE)
    x = tl.arange(0, DEPTH)
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, n, DEPTH):
        left = tl.load(a + i[:, None] * n + (start + x)[None, :])
        right = tl.load(b + (start + x)[:, None] * n + j[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + i[:, None] * n + j[None, :], total.to(tl.float16))
