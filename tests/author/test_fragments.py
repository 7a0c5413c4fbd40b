"""Fragments: rows and columns that helpers compute are those of the instruction set's own layouts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxlab.author import Kernel, bf16, f16, f32, kernel, pointer, ptx, u32

from .writing import lines, refusal

MMA = ptx.mma.sync.aligned
HALF = MMA.m16n8k16.row.col.f32.f16.f16.f32
SPELLINGS = [
    HALF,
    MMA.m16n8k8.row.col.f32.bf16.bf16.f32,
    MMA.m16n8k8.row.col.f32.tf32.tf32.f32,
    MMA.m16n8k32.row.col.f32.e4m3.e4m3.f32,
    MMA.m16n8k32.row.col.s32.s8.s8.s32,
    MMA.m8n8k4.row.col.f64.f64.f64.f64,
    MMA.m16n8k64.row.col["kind::mxf4nvf4"].block_scale["scale_vec::4X"].f32.e2m1.e2m1.f32.ue4m3,
    MMA.m16n8k32.row.col["kind::mxf8f6f4"].block_scale.f32.e3m2.e2m1.f32.ue8m0,
]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("matrix", ["a", "b", "c", "d"])
def test_first_and_offsets_are_what_each_lane_holds(spelling: Any, matrix: str) -> None:
    held = getattr(ptx.fragments(spelling), matrix)

    @kernel
    def k(y: pointer[u32]) -> None:
        row, column = held.first(ptx.tid.x)
        y[ptx.tid.x * 2] = row
        y[ptx.tid.x * 2 + 1] = column

    y = np.zeros((64, 2), np.uint32)
    k.launch(grid=1, block=64, args=[y])
    for lane in range(32):
        row, column = y[lane].tolist()
        assert held.layout.held(lane) == tuple((row + down, column + right) for down, right in held.offsets)
    assert (y[32:] == y[:32]).all()  # the thread's number will do, too


def test_maps_are_data() -> None:
    a, b, c, d = ptx.fragments(HALF)
    assert (a.registers, b.registers, c.registers, a.bits, d.bits) == (4, 2, 4, 16, 32)
    assert a.layout.held(5)[:4] == ((1, 2), (1, 3), (9, 2), (9, 3))
    assert d.offsets == ((0, 0), (0, 1), (8, 0), (8, 1))
    assert a.matrices == ((0, 0), (8, 0), (0, 8), (8, 8))
    assert b.matrices == ((0, 0), (0, 8))
    assert b.stacked(2).matrices == ((0, 0), (0, 8), (8, 0), (8, 8))
    assert b.transposed.stacked(2).matrices == ((0, 0), (8, 0), (0, 8), (8, 8))
    assert d.packed(bf16).matrices == ((0, 0), (8, 0))
    assert ptx.fragments(MMA.m16n8k32.row.col.s32.s8.s8.s32).a.matrices == ((0, 0), (8, 0), (0, 16), (8, 16))
    assert ptx.fragments(MMA.m16n8k8.row.col.f32.tf32.tf32.f32).b.matrices == ((0, 0), (0, 4))


def product(transposed: bool) -> Kernel:
    """D = A B, 16 x 16 x 16, from tiles of shared memory; B by columns, or by rows if it is transposed."""
    a, b, _, d = ptx.fragments(HALF)
    b = (b.transposed if transposed else b).stacked(2)

    @kernel(target="sm_90")
    def k(x: pointer[f16], w: pointer[f16], y: pointer[f16]) -> None:
        tiles = [ptx.tile(f16, 16, 16, swizzle="32B", name=name) for name in ("a_tile", "b_tile", "d_tile")]
        lane = ptx.tid.x
        row, column = lane >> 1, (lane & 1) << 3
        for tile, source in zip(tiles, (x, w), strict=False):
            tile.at(row, column).view(u32).vector(4).store((source + lane * 8).view(u32).v4[0])
        ptx.bar.warp.sync(0xFFFFFFFF)
        left = a.load(tiles[0].matrices(a, lane))
        right = b.load(tiles[1].matrices(b, lane))
        packed = d.packed(f16)
        position = tiles[2].matrices(packed, lane)
        for j in range(2):
            sums = HALF(left, right[2 * j : 2 * j + 2], [f32(0.0) for _ in range(4)])
            halves = [ptx.cvt.rn.f16x2.f32(sums[i + 1], sums[i]) for i in (0, 2)]
            packed.store(position.move(columns=8 * j), halves)
        ptx.bar.warp.sync(0xFFFFFFFF)
        (y + lane * 8).view(u32).v4[0] = tiles[2].at(row, column).view(u32).vector(4).load()

    return k


@pytest.mark.parametrize("transposed", [False, True])
def test_load_and_store(transposed: bool) -> None:
    random = np.random.default_rng(3)
    a, b = (random.integers(-4, 5, (16, 16)).astype(np.float16) for _ in range(2))
    d = np.zeros((16, 16), np.float16)
    product(transposed).launch(grid=1, block=32, args=[a, b, d])
    assert np.array_equal(d, a @ (b if transposed else b.T))


def test_what_is_written() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        b = ptx.fragments(HALF).b.transposed
        b.load(ptx.tile(f16, 16, 8).matrices(b, n))

    assert lines(write, target="sm_80")[2:] == [
        "and.b32 %r4, %r1, 15;",
        "mad.lo.u32 %r5, %r4, 16, %r3;",
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r6, %r7}, [%r5];",
    ]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            lambda: ptx.fragments(MMA.m16n8k16),
            "`mma.sync.aligned.m16n8k16` is not an `mma.sync` with all its modifiers",
        ),
        (
            lambda: ptx.fragments(ptx.mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32),
            "`mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32` is not an `mma.sync` with all its modifiers",
        ),
        (
            lambda: ptx.fragments(ptx.wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32),
            "`wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32` is not an `mma.sync` with all its modifiers",
        ),
        (lambda: ptx.fragments(ptx.fma.rn.f32), "`fma.rn.f32` is not an `mma.sync` with all its modifiers"),
        (
            lambda: ptx.fragments(MMA.m16n8k32.row.col.s32.s8.s8.s32).b.transposed,
            "`ldmatrix.trans` turns elements of 16 bits, and these have 8",
        ),
        (lambda: ptx.fragments(HALF).d.matrices, "registers of this fragment hold no matrices of 8 rows of 16 bytes"),
        (
            lambda: ptx.fragments(HALF).a.stacked(2).load(ptx.shared(f16, 64)),
            "`ldmatrix` and `stmatrix` move 1, 2 or 4 matrices, and this fragment has 8",
        ),
    ],
)
def test_refused(write: Callable[[], Any], message: str) -> None:
    found = refusal(lambda x, n, s, a: write())
    assert (found.code, found.message) == ("no-fragment", message)
    assert found.file is not None
    assert found.file.endswith("test_fragments.py")
