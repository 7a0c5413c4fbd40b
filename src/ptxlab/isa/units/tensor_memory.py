"""Tensor memory, and how `tcgen05.ld` and `.st` spread it over the registers of a warp (PTX ISA 9.7.16).

There are 128 lanes of 512 columns of 32 bits. An address has the lane in its upper half and the column in its lower
one. The manual draws the shapes; the numbers here are those of CUTLASS (`copy_traits_sm100.hpp`). They are linear: each
bit of the number of a thread, and each bit of the number of a register, adds so many lanes and so many columns.
"""

from __future__ import annotations

from functools import cache

from ptxlab.values import dataclass

from ..machine import Machine, Value
from .layouts import Layout, RegisterBit, laid_out

LANES = 128
COLUMNS = 512
TWO_BLOCKS = "cta_group::2"  # the modifier of operations of a pair: two blocks of a cluster
BAND = 32  # lanes that a warp may load and store: those of its number in its warpgroup

Step = tuple[int, int]  # lanes and columns


@dataclass(frozen=True)
class Shape:
    """What one repetition moves: `lanes` of `columns`, and what each bit of a thread's number adds, the lowest first.

    `registers` is the same for the bits of a register's number in one repetition.
    """

    lanes: int
    columns: int
    threads: tuple[Step, ...]
    registers: tuple[Step, ...] = ()

    def register(self, number: int) -> Step:
        """The lanes and columns that the number of a register adds, in any repetition."""
        repetition, inside = divmod(number, 1 << len(self.registers))
        lane, column = _sum(self.registers, inside)
        return lane, column + repetition * self.columns


SPLIT = -1  # as many columns as the instruction says


SHAPES = {
    "32x32b": Shape(32, 1, ((1, 0), (2, 0), (4, 0), (8, 0), (16, 0))),
    "16x64b": Shape(16, 2, ((8, 0), (0, 1), (1, 0), (2, 0), (4, 0))),
    "16x128b": Shape(16, 4, ((0, 1), (0, 2), (1, 0), (2, 0), (4, 0)), ((8, 0),)),
    "16x256b": Shape(16, 8, ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)), ((0, 1), (8, 0))),
    "16x32bx2": Shape(16, 1, ((1, 0), (2, 0), (4, 0), (8, 0), (0, SPLIT))),
}


def _sum(steps: tuple[Step, ...], number: int) -> Step:
    chosen = [step for bit, step in enumerate(steps) if number >> bit & 1]
    return sum(lane for lane, _ in chosen), sum(column for _, column in chosen)


@cache
def moved(shape: str, repetitions: int, *, packed: bool = False) -> Layout:
    """Where in the registers of a warp each cell of tensor memory goes; packed, the lower half of each.

    The two halves of `16x32bx2` are side by side.
    """
    known = SHAPES[shape]
    halves = 2 if shape == "16x32bx2" else 1
    cells = {}
    for thread in range(32):
        for register in range(repetitions << len(known.registers)):
            lane, column = _sum(known.threads, thread)
            more, further = known.register(register)
            column = column + further if column >= 0 else repetitions + further
            cells[lane + more, column] = (register, thread)

    def position(row: int, column: int, copy: int) -> RegisterBit:
        register, thread = cells[row, column // 2 if packed else column]
        return register, thread, column % 2 * 16 if packed else 0

    width = known.columns * repetitions * halves
    return laid_out(known.lanes, width * 2 if packed else width, 16 if packed else 32, position)


def first_cell(k: Machine, shape: str, address: Value, split: int, *, packed: bool) -> Value:
    """The number of the cell that goes to the first register of this thread: 512 for each lane, 1 for each column."""
    each = 2 if packed else 1
    cell = (address >> 16) * COLUMNS + (address & 0xFFFF)
    for bit, (lanes, columns) in enumerate(SHAPES[shape].threads):
        width = split if columns == SPLIT else columns * each
        cell = cell + (k.lane >> bit & 1) * (lanes * COLUMNS + width)
    return cell


def next_cell(shape: str, register: int, *, packed: bool) -> int:
    """How many words further the word of another register is."""
    lane, column = SHAPES[shape].register(register)
    return lane * COLUMNS + column * (2 if packed else 1)
