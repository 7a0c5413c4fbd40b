"""Tiles: where elements are, what their addresses cost, and that no access has a bank conflict."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptxlab.author import Kernel, Swizzle, b8, bf16, f16, f32, kernel, pointer, ptx, u32
from ptxlab.isa.units.swizzle import SWIZZLES

from .writing import lines, made, refusal

MMA = ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32


@given(st.sampled_from(sorted(SWIZZLES)), st.integers(0, 1 << 20))
def test_a_swizzle_is_its_own_inverse_and_repeats(name: str, offset: int) -> None:
    swizzle = SWIZZLES[name]
    placed = swizzle.apply(offset)
    assert swizzle.apply(placed) == offset
    assert placed // 16 % 8 == offset // 16 % 8 ^ (offset >> 7) % (1 << swizzle.bits)
    assert swizzle.apply(offset + swizzle.period) == placed + swizzle.period


def test_addresses_are_the_instructions_of_the_manual() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        tile = ptx.tile(f16, 64, 64, swizzle="128B", copies=2)
        place = tile.at(n, 8)
        ptx.ld.shared.b16(place.move(rows=8, columns=16))
        ptx.ld.shared.b16(place.move(copy=n))
        ptx.ld.shared.b16(tile.at(9, 8, 1))

    assert lines(write) == [
        ".shared .align 1024 .b16 tile[8192];",
        "mov.u32 %r3, tile;",
        "mad.lo.u32 %r4, %r1, 128, 16;",
        "shr.u32 %r5, %r4, 3;",
        "and.b32 %r6, %r5, 112;",
        "xor.b32 %r7, %r4, %r6;",
        "add.u32 %r8, %r3, %r7;",
        "xor.b32 %r9, %r8, 32;",
        "ld.shared.b16 %rs1, [%r9+1024];",
        "mad.lo.u32 %r10, %r1, 8192, %r8;",
        "ld.shared.b16 %rs2, [%r10];",
        "ld.shared.b16 %rs3, [tile+9344];",
    ]


def test_rows_in_a_register_cost_a_mad_too() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        ptx.ld.shared.f32(ptx.tile(f32, 4, 32, pitch=33).at(1, 2).move(rows=n, columns=1))

    assert lines(write)[1:] == [
        "mov.u32 %r3, tile;",
        "mad.lo.u32 %r4, %r1, 132, %r3;",
        "ld.shared.f32 %f2, [%r4+144];",
    ]


def test_padded_rows_cost_a_mad_an_index() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        place = ptx.tile(f32, 4, 32, pitch=33).at(n, n)
        ptx.ld.shared.f32(place.move(rows=1, columns=2))

    assert lines(write)[2:] == [
        "mad.lo.u32 %r4, %r1, 132, %r3;",
        "mad.lo.u32 %r5, %r1, 4, %r4;",
        "ld.shared.f32 %f2, [%r5+140];",
    ]


def transposing(rows: int, columns: int, pitch: int, swizzle: str | Swizzle | None, offset: int) -> Kernel:
    """Write each element by its row and column, then read all by numbers known to Python and by moves."""

    @kernel
    def k(x: pointer[f32], y: pointer[f32]) -> None:
        memory = ptx.dynamic_shared(b8, align=4096)
        tile = ptx.tile(f32, rows, columns, pitch=pitch, swizzle=swizzle, copies=2, at=memory + offset)
        thread = ptx.tid.x
        row, column = thread // columns, thread % columns
        tile.at(row, column, 1).store(x[thread])
        ptx.bar.sync(0)
        y[thread] = tile.at(row, column, u32(1)).load()
        with ptx.when(thread == 0):
            place = tile.at(0, 0).move(copy=1)
            for i in range(rows):
                for j in range(columns):
                    y[rows * columns + i * columns + j] = tile.at(i, j, 1).load()
                    y[2 * rows * columns + i * columns + j] = place.move(rows=i, columns=j).load()

    return k


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("offset", [0, 4096])
@pytest.mark.parametrize(
    ("rows", "columns", "pitch", "swizzle"),
    [(4, 8, 8, None), (4, 8, 9, None), (16, 8, 8, "32B"), (8, 16, 16, "64B"), (8, 32, 32, "128B")],
)
def test_every_element_is_where_the_tile_says(
    rows: int, columns: int, pitch: int, swizzle: str | None, offset: int
) -> None:
    x = np.arange(rows * columns, dtype=np.float32)
    y = np.zeros((3, rows * columns), np.float32)
    written = transposing(rows, columns, pitch, swizzle, offset)
    written.launch(grid=1, block=rows * columns, args=[x, y], shared=offset + 4096)
    assert (y == x).all()


def shared_wavefronts(written: Kernel, args: list[Any], block: int) -> dict[str, tuple[int, int]]:
    """What each instruction on shared memory took, and what it takes at best."""
    found = written.launch(grid=1, block=block, args=args, profile=True).counters["lines"]
    texts = written.ptx.split("\n")
    taken: dict[str, tuple[int, int]] = {}
    for line, counts in found.items():
        if counts.get("shared_requests"):
            name = texts[line - 1].split()[0].partition(".")[0]
            before = taken.get(name, (0, 0))
            taken[name] = (before[0] + counts["wavefronts"], before[1] + counts["ideal_wavefronts"])
    return taken


@pytest.mark.parametrize(
    ("columns", "swizzle", "conflicts"),
    [
        (16, "32B", 1),
        (32, "64B", 1),
        (64, "128B", 1),
        (128, Swizzle(3, shift=4), 1),
        (64, None, 8),  # rows of 128 bytes begin in one bank
        (32, None, 4),
    ],
)
def test_bank_conflicts(columns: int, swizzle: str | Swizzle | None, conflicts: int) -> None:
    @kernel
    def k(x: pointer[f16], y: pointer[u32]) -> None:
        tile = ptx.tile(f16, 16, columns, swizzle=swizzle)
        lane = ptx.tid.x
        for i in range(16 * columns // 8 // 32):  # rows are written 16 bytes a lane
            chunk = lane + 32 * i
            row, column = chunk // (columns // 8), chunk % (columns // 8) * 8
            ptx.cp["async"].cg.shared.global_(tile.at(row, column), x + chunk * 8, 16)
        ptx.cp["async"].wait_all()
        ptx.bar.warp.sync(0xFFFFFFFF)
        held = ptx.fragments(MMA).a
        place = tile.matrices(held, lane)
        for step in range(columns // 16):
            for register, value in enumerate(held.load(place.move(columns=16 * step))):
                y[(lane * (columns // 16) + step) * 4 + register] = value.view(u32)

    x = np.arange(16 * columns, dtype=np.uint16).reshape(16, columns)
    y = np.zeros((32, columns // 16, 4, 2), np.uint16)
    taken = shared_wavefronts(k, [x, y], 32)
    assert taken["ldmatrix"] == (columns // 4 * conflicts, columns // 4)
    assert taken["cp"] == (columns // 4, columns // 4)
    for lane, (row, column) in ((0, (0, 0)), (5, (1, 2)), (31, (7, 6))):
        rows, first = [row, row + 8, row, row + 8], [column, column, column + 8, column + 8]
        for step in range(columns // 16):
            wanted = [[x[r, c + 16 * step], x[r, c + 1 + 16 * step]] for r, c in zip(rows, first, strict=True)]
            assert y[lane, step].tolist() == wanted


TILE = {"rows": 16, "columns": 64, "swizzle": "128B"}


@pytest.mark.parametrize(
    ("write", "code", "message"),
    [
        (
            lambda n: ptx.tile(f16, 16, 64, swizzle="16B"),
            "unknown-name",
            "there is no swizzle `16B`",
        ),
        (
            lambda n: ptx.tile(f16, 16, 48, swizzle="128B"),
            "illegal-declaration",
            "rows of 96 bytes are not swizzled over 1024 bytes",
        ),
        (
            lambda n: ptx.tile(f16, 16, 48, pitch=40),
            "illegal-declaration",
            "1 tiles of 16 by 48 in rows of 40 elements are not tiles",
        ),
        (
            lambda n: ptx.tile(f16, **TILE, at=ptx.dynamic_shared(b8)),
            "misaligned-tile",
            "a tile of this swizzle begins at a multiple of 1024 bytes",
        ),
        (
            lambda n: ptx.tile(f16, **TILE, at=ptx.dynamic_shared(b8, align=1024) + 512),
            "misaligned-tile",
            "a tile of this swizzle begins at a multiple of 1024 bytes",
        ),
        (lambda n: ptx.tile(f16, **TILE).at(16, 0), "outside-array", "16 is outside of the tile, which has 16 rows"),
        (
            lambda n: ptx.tile(f16, **TILE).at(n, 0).move(rows=4),
            "not-an-index",
            "4 rows on, the swizzle is another one: it repeats every 8 rows",
        ),
        (
            lambda n: ptx.tile(f16, **TILE).at(n, 0).move(rows=n),
            "not-an-index",
            "`rows=` takes a Python number in a swizzled tile, and `%r1` is a register",
        ),
        (
            lambda n: ptx.tile(f16, **TILE).at(0, 0).move(columns=n),
            "not-an-index",
            "`columns=` takes a Python number in a swizzled tile, and `%r1` is a register",
        ),
        (
            lambda n: ptx.tile(f16, **TILE).at(n, n).move(columns=8),
            "not-an-index",
            "columns can be moved by where the first column is known to be small enough, and here it is any",
        ),
        (
            lambda n: ptx.tile(f16, **TILE).at(n, n, below=16).move(columns=8),
            "not-an-index",
            "8 columns on is not a step of 16 columns within the row",
        ),
        (
            lambda n: ptx.tile(f16, **TILE).at(n, 0) + 1,
            "no-operator",
            "elements of a swizzled tile do not follow each other",
        ),
        (
            lambda n: ptx.tile(f32, 16, 32).matrices(ptx.fragments(MMA).a, n),
            "type-clash",
            "the tile has elements of 32 bits, the fragment of 16",
        ),
    ],
)
def test_refused(write: Callable[[Any], Any], code: str, message: str) -> None:
    found = refusal(lambda x, n, s, a: write(n))
    assert (found.code, found.message) == (code, message)
    assert found.file is not None
    assert found.file.endswith("test_tiles.py")


def test_dynamic_shared_memory_is_aligned_as_the_most_demanding_asks() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        ptx.dynamic_shared(b8)
        ptx.printf("\n")
        ptx.tile(bf16, 16, 64, swizzle="128B", at=ptx.dynamic_shared(b8, align=1024))

    assert str(made(write)).count(".extern .shared .align 1024 .b8 dynamic_shared_memory[];") == 1
