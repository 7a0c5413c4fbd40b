"""Operands that TMA can't read are copied first, by a kernel that is the first step of the call.

TMA wants rows without gaps between elements, at multiples of 16 bytes. A copy has such rows, and is in memory that the
call has until it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from math import prod

import numpy as np

from ptxlab.author import b8, b16, b32, kernel, pointer, ptx, s64, u32
from ptxlab.kernels.parts.strided import flat
from ptxlab.launch.launches import Launch
from ptxlab.ops.calls import BoundLaunch
from ptxlab.ops.matrices import HALVES, ROW, Matrix, address_of, argument, dense, empty

THREADS = 256
APART = 256  # bytes: copies start at multiples of it


@kernel(target="sm_80", maxntid=THREADS)
def pack_rows(
    x: pointer[b32],
    y: pointer[b32],
    start: s64,
    row: u32,
    rows: u32,
    inner: u32,
    columns: u32,
    outer_step: s64,
    inner_step: s64,
    step: s64,
    *,
    SIZE: int,  # noqa: N803
    TURNED: bool,  # noqa: N803
) -> None:
    """Copy rows of elements of SIZE bytes to rows that are multiples of 16 bytes, from number `row` on.

    The rows that are read are those of two dimensions, of which the inner one has that extent. A thread copies 16 bytes
    of a row. Neighbouring threads have neighbouring pieces of a row, or rows if it is TURNED: what is near in memory.
    """
    each, element = ROW // SIZE, {1: b8, 2: b16, 4: b32}[SIZE]
    across = (columns + (each - 1)) // each
    thread = ptx.ctaid.x * THREADS + ptx.tid.x
    number, piece = (thread % rows, thread // rows) if TURNED else (thread // across, thread % across)
    with ptx.when((number < rows) & (piece < across)):
        outer, within = ptx.cvt.s64.u32(number // inner), ptx.cvt.s64.u32(number % inner)
        source = x.view(element) + (start + outer * outer_step + within * inner_step)
        words = [u32(0) for _ in range(4)]
        for place in range(each):
            column, value = piece * each + place, u32(0)
            load = ptx.ld.global_[{1: "u8", 2: "u16", 4: "u32"}[SIZE]]
            load(source + ptx.cvt.s64.u32(column) * step, out=value, when=column < columns)
            at, shift = divmod(place * SIZE, 4)
            words[at] = words[at] | (value << 8 * shift)
        target = y + (ptx.mul.wide.u32(row + number, across * 4) + ptx.cvt.u64.u32(piece * 4))
        ptx.st.global_.v4.b32(target, tuple(words))


class Packing:
    """Copies of operands, as steps of a call that reads and writes so many `arrays`; each has scratch memory."""

    def __init__(self, arrays: int) -> None:
        self.steps: list[BoundLaunch] = []
        self.scratch: list[int] = []
        self.numbers = list(range(arrays))  # of each array's address in the call, or of its copy's

    def operand(self, matrix: Matrix, number: int) -> tuple[Matrix, bool]:
        """An operand as TMA can copy it, and whether its rows run along k; `number` is that of its array."""
        if matrix.is_aligned:
            return matrix, True
        is_half = matrix.type in HALVES  # `wgmma` transposes no others
        if matrix.transposed.is_aligned and is_half:
            return matrix.transposed, False
        along_k = matrix.strides[0] != 1 or not is_half
        return self.copied(matrix if along_k else matrix.transposed, number), along_k

    def rows(self, given: Matrix, number: int) -> Matrix:
        """An array of two or more dimensions as a matrix, its last dimension's elements as rows."""
        return as_rows(given) or self.copied(given, number)

    def copied(self, given: Matrix, number: int) -> Matrix:
        """A copy whose rows are multiples of 16 bytes, seen with the extents that it had."""
        *before, columns = given.shape
        each, rows = ROW // given.size, prod(before)
        pitch = -(-columns // each) * each
        space = empty(given.array, (rows, pitch), given.type)
        found = Matrix(address_of(space), (rows, columns), (pitch, 1), given.type, given.gpu, space)
        self.numbers[number] = len(self.numbers) + len(self.scratch)
        changing = [(0, number), (1, self.numbers[number])]
        self.scratch.append(-(-rows * pitch * given.size // APART) * APART)
        self.steps += [BoundLaunch(one, changing, uses_workspace=False) for one in packs(given, found)]
        return found


def packs(given: Matrix, found: Matrix) -> Iterator[Launch]:
    """What copies an array to a matrix: a launch for each index of the dimensions before the last three."""
    if given.gpu is None and min(given.strides) < 0:  # the emulator knows memory by its first byte
        given = replace(given, array=np.ascontiguousarray(given.array), strides=dense(given.shape))
    extents, strides = [1, 1, *given.shape], [0, 0, *given.strides]
    inner, columns = extents[-2:]
    rows, pieces = extents[-3] * inner, -(-columns // (ROW // given.size))
    source = flat(given.array.view(f"u{given.size}")) if given.gpu is None else given.address
    pack = pack_rows.specialize(SIZE=given.size, TURNED=abs(strides[-2]) < abs(strides[-1]))
    for number, index in enumerate(product(*map(range, extents[:-3]))):
        start = sum(at * step for at, step in zip(index, strides[:-3], strict=True))
        sizes = start, number * rows, rows, inner, columns, *strides[-3:]
        yield Launch(pack, max(1, -(-rows * pieces // THREADS)), THREADS, [source, argument(found), *sizes])


def as_rows(given: Matrix) -> Matrix | None:
    """An array of two or more dimensions as a matrix, where its rows are at equal distances."""
    if len(given.shape) <= 2:
        return given
    *before, columns = given.shape
    pairs = [(extent, step) for extent, step in zip(before, given.strides, strict=False) if extent > 1]
    if any(step != extent * below for (_, step), (extent, below) in pairwise(pairs)) and 0 not in before:
        return None
    shape = prod(before), columns
    strides = pairs[-1][1] if pairs else columns, given.strides[-1]
    array = given.array.reshape(shape) if given.gpu is None else given.array
    return Matrix(given.address, shape, strides, given.type, given.gpu, array)
