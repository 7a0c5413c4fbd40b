"""Descriptors of tiles, and kernels in Python that multiply by wgmma."""

from typing import Any

import numpy as np
import pytest

from ptxlab.author import Kernel, Swizzle, f16, f32, kernel, pointer, ptx
from ptxlab.isa.units.descriptor import Descriptor

from .writing import lines, refusal

WGMMA = ptx.wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16
SM_90A = {"target": "sm_90a"}


def test_a_descriptor_is_a_few_instructions() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        tile = ptx.tile(f16, 64, 64, swizzle="128B", copies=2)
        ptx.descriptor(tile, 8, 16)
        ptx.descriptor(tile, copy=n, transposed=True)

    fields = Descriptor(0, leading=8192, stride=1024, swizzle="128B").encode()
    assert lines(write)[2:] == [
        "add.u32 %r4, %r3, 1056;",
        "bfe.u32 %r5, %r4, 4, 14;",
        "cvt.u64.u32 %rd3, %r5;",
        f"or.b64 %rd4, %rd3, {fields:#x};",
        "mad.lo.u32 %r6, %r1, 8192, %r3;",
        "bfe.u32 %r7, %r6, 4, 14;",
        "cvt.u64.u32 %rd5, %r7;",
        f"or.b64 %rd6, %rd5, {fields:#x};",
    ]


@pytest.mark.parametrize(
    ("tile", "where", "message"),
    [
        ((32, "128B"), (0, 0), "rows of this tile have 64 bytes, and descriptors of swizzle 128B want 128"),
        ((32, None), (0, 0), "rows of this tile have 64 bytes, and descriptors of swizzle none want 16"),
        ((64, Swizzle(3, 5)), (0, 0), "descriptors know the swizzles 32B, 64B and 128B, and this tile has another one"),
        ((64, "128B"), (4, 0), "no descriptor begins at row 4, column 0"),
        ((64, "128B"), (0, 4), "no descriptor begins at row 0, column 4"),
        ((64, "128B"), (0, 56), "an MMA reads 32 bytes of k, and from column 56 on a row of this tile has 16"),
        ((64, "128B"), (0, 64), "an MMA reads 32 bytes of k, and from column 64 on a row of this tile has 0"),
    ],
)
def test_what_no_descriptor_says(tile: tuple[int, Any], where: tuple[int, int], message: str) -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        columns, swizzle = tile
        ptx.descriptor(ptx.tile(f16, 64, columns, swizzle=swizzle), *where)

    found = refusal(write)
    assert (found.code, found.message) == ("no-descriptor", message)


def multiplying(a_turned: bool, b_turned: bool, swizzle: str) -> Kernel:
    """64 x 32 numbers of A B, 64 of k; what is wider than a row of the swizzle takes several copies of a tile."""
    wide = int(swizzle[:-1]) // 2

    def fill(tile: Any, source: Any, rows: int, columns: int, turned: bool) -> None:
        thread = ptx.tid.x
        for start in range(0, rows * columns, 128):
            row, column = (thread + start) // columns, (thread + start) % columns
            along, down = (row, column) if turned else (column, row)
            tile.at(down, along % wide, along // wide).store(source[thread + start])

    @kernel(**SM_90A)
    def multiply(a: pointer[f16], b: pointer[f16], c: pointer[f32]) -> None:
        held = ptx.warpgroup_fragments(WGMMA)
        shapes = [(64, 64), (64, 32) if b_turned else (32, 64)]
        tiles = [
            ptx.tile(f16, down, wide, swizzle=swizzle, copies=max(along // wide, 1), name=name)
            for name, (down, along) in zip("ab", shapes, strict=True)
        ]
        fill(tiles[0], a, 64, 64, a_turned)
        fill(tiles[1], b, 32, 64, b_turned)
        ptx.fence.proxy.async_()
        ptx.bar.sync(0)
        sums = [f32(0.0) for _ in held.d.offsets]
        ptx.wgmma.fence.sync.aligned()
        for k in range(0, 64, 16):
            places = [(k, 0, 0) if turned else (0, k % wide, k // wide) for turned in (a_turned, b_turned)]
            left, right = (
                ptx.descriptor(tile, *place, transposed=turned)
                for tile, place, turned in zip(tiles, places, (a_turned, b_turned), strict=True)
            )
            WGMMA(sums, left, right, True, 1, 1, int(a_turned), int(b_turned))
        ptx.wgmma.commit_group.sync.aligned()
        ptx.wgmma.wait_group.sync.aligned(0)
        row, column = held.d.first(ptx.laneid)
        corner = c + (row + (ptx.tid.x >> 5) * 16) * 32 + column
        for value, (down, right) in zip(sums, held.d.offsets, strict=True):
            corner[down * 32 + right] = value

    return multiply


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize(
    ("a_turned", "b_turned", "swizzle"),
    [(False, False, "128B"), (True, False, "128B"), (True, False, "64B"), (False, True, "64B"), (True, True, "32B")],
)
def test_tiles_are_multiplied(a_turned: bool, b_turned: bool, swizzle: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-4, 5, (rows, 64)).astype(np.float16) for rows in (64, 32))
    c = np.zeros((64, 32), np.float32)
    multiplying(a_turned, b_turned, swizzle).launch(grid=1, block=128, args=[a, b, c], device="cpu")
    assert np.array_equal(c, a.astype(np.float32) @ b.T.astype(np.float32))


def test_fragments_of_what_is_not_an_mma() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        ptx.warpgroup_fragments(ptx.wgmma.fence.sync.aligned)

    assert refusal(write, **SM_90A).code == "no-fragment"
