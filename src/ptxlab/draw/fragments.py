"""Which lane holds which element of a matrix, for the instructions that multiply matrices and move them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ptxlab.draw.picture import Cell, Panel, Picture
from ptxlab.isa import opcode
from ptxlab.isa.held import Held
from ptxlab.isa.table import forms_of, heads
from ptxlab.isa.units.layouts import Layout
from ptxlab.report.nearest import nearest

FAMILIES = "mma, wmma, wgmma, tcgen05.ld and .st, ldmatrix, stmatrix and movmatrix"


def fragments(instruction: str, operand: str | None = None, lane: int | None = None) -> Picture:
    """Which lane holds which element of each operand, or of one; `lane` highlights one lane.

    `T5.a2` is element number 2 of operand `a` in lane 5, counted from its first register on and from the low bits up.
    """
    text = instruction.split()[0].rstrip(";") if instruction.strip() else ""
    found = list(_matrices(text))
    names = list(dict.fromkeys(matrix.operand for matrix in found))
    if operand is not None and operand not in names:
        raise ValueError(f"`{text}` has no matrix `{operand}`: it has {', '.join(names)}")
    if lane is not None and not 0 <= lane < 32:
        raise ValueError(f"lane {lane}: a warp has lanes 0 to 31")
    chosen = [matrix for matrix in found if operand in (None, matrix.operand)]
    if operand is None and len(found) == 4 and found[2].layout is found[3].layout:
        chosen[2:] = [replace(found[3], title=f"C and {found[3].title}")]
    return Picture(text, [panel for matrix in chosen for panel in _panels(matrix, lane)])


def _matrices(text: str) -> Iterator[Held]:
    """The operands of an instruction that are matrices in the registers of a warp."""
    known = opcode(text)
    spelled = [candidate for candidate in known.candidates if candidate.violation is None and candidate.in_order]
    holders = _holders(known.mnemonic)
    if not holders:
        close = nearest(known.mnemonic, (name for name in heads() if _holders(name)))
        meant = f"; did you mean `{close}`?" if close else ""
        raise ValueError(f"`{text}` holds no matrix in registers: {FAMILIES} do{meant}")
    if not spelled:
        help = f"`ptxlab explain {known.mnemonic}` lists its forms"
        raise ValueError(f"`{text}` is not an instruction with all its modifiers; {help}")
    form = spelled[0].form
    if form.semantics is None:
        raise ValueError(f"where `{text}` holds its elements is not known: {form.unknown}")
    if form.holds is None:
        do = "does" if len(holders) == 1 else "do"
        raise ValueError(f"`{text}` holds no matrix in registers: {' and '.join(holders)} {do}")
    return form.holds(spelled[0].modifiers)


def _holders(mnemonic: str) -> list[str]:
    """The instructions of a mnemonic that hold matrices in registers."""
    return list(dict.fromkeys(f"`{'.'.join(form.name)}`" for form in forms_of(mnemonic) if form.holds is not None))


def _panels(matrix: Held, lane: int | None) -> Iterator[Panel]:
    """A panel for each copy of the matrix."""
    layout = matrix.layout
    numbers = _numbers(layout)
    for copy in range(layout.copies):
        rows, columns = layout.rows, layout.columns
        cells = [[_cell(matrix, row, column, copy, numbers, lane) for column in range(columns)] for row in range(rows)]
        names = [str(row) for row in range(rows)]
        if matrix.owners is not None:
            names = [f"T{matrix.owners.position(row, 0, copy)[1]} → {row}" for row in range(rows)]
        columns_named = [str(column) for column in range(columns)]
        if matrix.is_transposed:
            cells, names, columns_named = [list(row) for row in zip(*cells, strict=True)], columns_named, names
        which = f", number {copy}" if layout.copies > 1 else ""
        yield Panel(f"{matrix.title}{which}", cells, names, columns_named, (8, 8))


def _cell(matrix: Held, row: int, column: int, copy: int, numbers: dict[int, int], lane: int | None) -> Cell:
    layout = matrix.layout
    index = (copy * layout.rows + row) * layout.columns + column
    holder = layout.position(row, column, copy)[1]
    return Cell(f"T{holder}.{matrix.operand}{numbers[index]}", holder, lane in (None, holder))


def _numbers(layout: Layout) -> dict[int, int]:
    """For each element, its number among those that its lane holds, from the first register and the low bits on."""
    held: dict[int, list[tuple[int, int, int]]] = {}
    for index, position in enumerate(layout.positions):
        held.setdefault(position >> 5 & 31, []).append((position >> 10, position & 31, index))
    return {index: number for own in held.values() for number, (_, _, index) in enumerate(sorted(own))}
