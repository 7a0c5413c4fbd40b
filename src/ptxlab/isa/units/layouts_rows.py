"""Matrices of which each lane holds a row as memory has it, and the same matrices in fragments (PTX ISA 9.7.14.5.15).

`ldmatrix` goes from the first to the second, `stmatrix` back. The manual only draws the fragments of 16x16 and 16x8
bytes; they are as CUTLASS has them: `copy_traits_sm100.hpp`, and for 16x16 what `copy_sm100.hpp` does before. Triton
takes 16x16 bytes for A and B of `mma.sync` as they are.
"""

from functools import cache

from .layouts import Layout, RegisterBit, laid_out


@cache
def memory_rows(rows: int, columns: int, bits: int, count: int) -> Layout:
    """`count` matrices, of which each lane holds one row of 16 bytes: those of the first matrix first."""

    def position(row: int, column: int, copy: int) -> RegisterBit:
        register, bit = divmod(column * bits, 32)
        return register, copy * rows + row, bit

    return laid_out(rows, columns, bits, position, copies=count)


@cache
def eight_rows(columns: int, bits: int, count: int, transposed: bool = False) -> Layout:
    """`count` matrices of eight rows, a register each: four lanes share a row, or a column if it is transposed."""
    each = 32 // bits

    def position(row: int, column: int, copy: int) -> RegisterBit:
        if transposed:
            row, column = column, row
        return copy, row * 4 + column // each, column % each * bits

    return laid_out(8, columns, bits, position, copies=count)


@cache
def sixteen_rows(count: int) -> Layout:
    """`count` transposed matrices of 16x16 bytes: a register has four rows of column `g`, the next those of `g + 8`."""

    def position(row: int, column: int, copy: int) -> RegisterBit:
        return copy * 2 + column // 8, column % 8 * 4 + row // 4, row % 4 * 8

    return laid_out(16, 16, 8, position, copies=count)


@cache
def sixteen_columns(count: int) -> Layout:
    """`count` transposed matrices of eight rows of sixteen bytes.

    A register has two rows of column `g` and, above them, the same rows of column `g + 8`.
    """

    def position(row: int, column: int, copy: int) -> RegisterBit:
        return copy, column % 8 * 4 + row // 2, (row % 2 + column // 8 * 2) * 8

    return laid_out(8, 16, 8, position, copies=count)
