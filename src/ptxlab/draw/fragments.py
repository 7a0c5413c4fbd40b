"""Which lane holds which element of a matrix, for the instructions that multiply matrices and move them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ptxlab.draw.picture import Cell, Panel, Picture
from ptxlab.isa import layouts, opcode
from ptxlab.isa.descriptor import K_MAJOR
from ptxlab.isa.form import Modifiers
from ptxlab.isa.layouts import Layout
from ptxlab.isa.layouts_rows import eight_rows, memory_rows, sixteen_columns
from ptxlab.isa.tensor_memory import SHAPES, moved
from ptxlab.isa.warpgroup import WarpgroupMma
from ptxlab.isa.warpgroup_multiplication import IN_REGISTERS
from ptxlab.report.nearest import nearest

FAMILIES = "mma, wmma, wgmma, tcgen05.ld and .st, ldmatrix, stmatrix and movmatrix"


@dataclass(frozen=True)
class Matrix:
    """An operand: its letter, what it is, where its elements are, and whether it is drawn with columns as rows.

    `owners` says for each row of each copy which lane has its address, if any.
    """

    name: str
    title: str
    layout: Layout
    is_turned: bool = False
    owners: Layout | None = None


def fragments(instruction: str, operand: str | None = None, lane: int | None = None) -> Picture:
    """Which lane holds which element of each operand, or of one; `lane` highlights one lane.

    `T5.a2` is element number 2 of operand `a` in lane 5, counted from its first register on and from the low bits up.
    """
    text = instruction.split()[0].rstrip(";") if instruction.strip() else ""
    found = list(_matrices(text))
    names = list(dict.fromkeys(matrix.name for matrix in found))
    if operand is not None and operand not in names:
        raise ValueError(f"`{text}` has no matrix `{operand}`: it has {', '.join(names)}")
    if lane is not None and not 0 <= lane < 32:
        raise ValueError(f"lane {lane}: a warp has lanes 0 to 31")
    chosen = [matrix for matrix in found if operand in (None, matrix.name)]
    if operand is None and len(found) == 4 and found[2].layout is found[3].layout:
        chosen[2:] = [replace(found[3], title=f"C and {found[3].title}")]
    return Picture(text, [panel for matrix in chosen for panel in _panels(matrix, lane)])


def _matrices(text: str) -> Iterator[Matrix]:
    """The operands of an instruction that are matrices in the registers of a warp."""
    known = opcode(text)
    spelled = [candidate for candidate in known.candidates if candidate.violation is None and candidate.in_order]
    if known.mnemonic not in _FAMILIES:
        close = nearest(known.mnemonic, _FAMILIES)
        meant = f"; did you mean `{close}`?" if close else ""
        raise ValueError(f"`{text}` holds no matrix in registers: {FAMILIES} do{meant}")
    if not spelled:
        help = f"`ptxlab explain {known.mnemonic}` lists its forms"
        raise ValueError(f"`{text}` is not an instruction with all its modifiers; {help}")
    form, m = spelled[0].form, spelled[0].modifiers
    if m.shape is None and known.mnemonic == "wgmma":
        raise ValueError(f"`{text}` holds no matrix in registers: `wgmma.mma_async` does")
    if form.semantics is None:
        raise ValueError(f"where `{text}` holds its elements is not known: {form.unknown}")
    yield from _FAMILIES[known.mnemonic](m, text)


def _multiplication(m: Modifiers, text: str) -> Iterator[Matrix]:
    """`mma`: dense, sparse, and with scale factors."""
    sparse = ".sp" in text
    kinds = {"alayout": m.alayout or "row", "blayout": m.blayout or "col"}
    if "block_scale" in text:
        bits = 8 if m.kind == "kind::mxf8f6f4" else 4
        found = layouts.fragments(m.shape, m.atype, m.btype, "f32", "f32", bits=bits, sparse=sparse)
    else:
        found = layouts.fragments(m.shape, m.atype, m.btype, m.ctype, m.dtype, sparse=sparse, **kinds)
    yield from _products(found, m.atype, m.btype, m.ctype or "f32", m.dtype or "f32", sparse)


def _products(
    found: layouts.Fragments, atype: str, btype: str, ctype: str, dtype: str, sparse: bool = False
) -> Iterator[Matrix]:
    stored = ", of which half is stored" if sparse else ""
    yield Matrix("a", f"A, {_extent(found.a)} {atype}{stored}", found.a)
    yield Matrix("b", f"B, {_extent(found.b.transposed if found.b.copies == 1 else found.b)} {btype}", found.b, True)
    yield Matrix("c", f"C, {_extent(found.c)} {ctype}", found.c)
    yield Matrix("d", f"D, {_extent(found.d)} {dtype}", found.d)


def _opaque(m: Modifiers, text: str) -> Iterator[Matrix]:
    """`wmma`: what an H200 was seen to do, since PTX leaves it open."""
    open_to_change = "as an H200 has it; PTX leaves it open"
    if text.startswith("wmma.mma"):
        a, b = m.atype or "f16", m.btype or "f16"
        for matrix in _products(layouts.opaque_fragments(m.shape, a, b, m.ctype, m.dtype), a, b, m.ctype, m.dtype):
            yield Matrix(matrix.name, f"{matrix.title}, {open_to_change}", matrix.layout, matrix.is_turned)
        return
    name = text.split(".")[2]
    if name in ("a", "b"):
        layout = layouts.opaque_multiplicand(name, m.shape, m.type)
        shown = layout.transposed if name == "b" else layout
    else:
        layout = shown = layouts.opaque_accumulator(m.shape, m.type)
    yield Matrix(name, f"{name.upper()}, {_extent(shown)} {m.type}, {open_to_change}", layout, name == "b")


def _warpgroup(m: Modifiers, text: str) -> Iterator[Matrix]:
    """`wgmma`: the quarter of one warp; B, and A unless it is in registers, are in shared memory."""
    sparse = 0 if ".sp" in text else None
    mma = WarpgroupMma(m.shape, m.atype, m.btype, m.dtype, IN_REGISTERS, K_MAJOR, selector=sparse)
    a, d = mma.fragments
    quarter = "rows 0 to 15, of the first warp; the next three hold 16 rows each in the same way"
    yield Matrix("a", f"A in registers, {_extent(a)} {m.atype}: {quarter}", a)
    yield Matrix("d", f"D, {_extent(d)} {m.dtype}: {quarter}", d)


def _loaded(m: Modifiers, text: str) -> Iterator[Matrix]:
    """`ldmatrix`: the matrices of shared memory, and which lane gets which element."""
    count = int(m.num[1:])
    if m.m16n16:
        layout = sixteen_columns(16, count)
    else:
        layout = eight_rows(8 if m.b16 else 16, 16 if m.b16 else 8, count, bool(m.trans))
    owners = memory_rows(layout.rows, layout.columns, layout.bits, count)
    yield Matrix("d", "read from the row that the named lane points to", layout, owners=owners)


def _stored(m: Modifiers, text: str) -> Iterator[Matrix]:
    count = int(m.num[1:])
    layout = sixteen_columns(8, count) if m.m16n8 else eight_rows(8, 16, count, bool(m.trans))
    owners = memory_rows(8, layout.columns, layout.bits, count)
    yield Matrix("a", "written to the row that the named lane points to", layout, owners=owners)


def _turned(m: Modifiers, text: str) -> Iterator[Matrix]:
    yield Matrix("a", "A, 8x8 b16", eight_rows(8, 16, 1))
    yield Matrix("d", "D, the same elements turned", eight_rows(8, 16, 1, transposed=True))


def _moved(m: Modifiers, text: str) -> Iterator[Matrix]:
    """`tcgen05.ld` and `.st`: which lane of the warp gets, or gives, which cells of tensor memory."""
    if m.shape not in SHAPES:
        raise ValueError(f"`{text}` holds no matrix in registers: of tcgen05, only `.ld` and `.st` do")
    layout = moved(m.shape, int(m.num[1:]), packed=bool(m.pack_16b or m.unpack_16b))
    half = ", the lower half of each" if layout.bits == 16 else ""
    split = "; the second half is as far to the right as the instruction says" if m.shape == "16x32bx2" else ""
    name, verb = ("d", "read from") if text.startswith("tcgen05.ld") else ("a", "written to")
    yield Matrix(name, f"{verb} {layout.rows} lanes and {layout.columns} columns of tensor memory{half}{split}", layout)


_FAMILIES = {
    "mma": _multiplication, "wmma": _opaque, "wgmma": _warpgroup, "tcgen05": _moved,
    "ldmatrix": _loaded, "stmatrix": _stored, "movmatrix": _turned,
}  # fmt: skip


def _extent(layout: Layout) -> str:
    several = f"{layout.copies} matrices of " if layout.copies > 1 else ""
    return f"{several}{layout.rows}x{layout.columns}"


def _panels(matrix: Matrix, lane: int | None) -> Iterator[Panel]:
    """A panel for each copy of the matrix."""
    layout = matrix.layout
    numbers = _numbers(layout)
    for copy in range(layout.copies):
        rows, columns = layout.rows, layout.columns
        cells = [[_cell(matrix, row, column, copy, numbers, lane) for column in range(columns)] for row in range(rows)]
        names = [str(row) for row in range(rows)]
        if matrix.owners is not None:
            names = [f"T{matrix.owners.place(row, 0, copy)[1]} → {row}" for row in range(rows)]
        columns_named = [str(column) for column in range(columns)]
        if matrix.is_turned:
            cells, names, columns_named = [list(row) for row in zip(*cells, strict=True)], columns_named, names
        which = f", number {copy}" if layout.copies > 1 else ""
        yield Panel(f"{matrix.title}{which}", cells, names, columns_named, (8, 8))


def _cell(matrix: Matrix, row: int, column: int, copy: int, numbers: dict[int, int], lane: int | None) -> Cell:
    layout = matrix.layout
    index = (copy * layout.rows + row) * layout.columns + column
    holder = layout.place(row, column, copy)[1]
    return Cell(f"T{holder}.{matrix.name}{numbers[index]}", holder, lane in (None, holder))


def _numbers(layout: Layout) -> dict[int, int]:
    """For each element, its number among those that its lane holds, from the first register and the low bits on."""
    held: dict[int, list[tuple[int, int, int]]] = {}
    for index, place in enumerate(layout.places):
        held.setdefault(place >> 5 & 31, []).append((place >> 10, place & 31, index))
    return {index: number for own in held.values() for number, (_, _, index) in enumerate(sorted(own))}
