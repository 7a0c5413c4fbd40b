"""Fragments: which element of a matrix each register of each lane holds, as the instruction set says it.

`fragments(MMA)` reads the layouts of a multiplication from the same data that the emulator multiplies by. Rows and
columns of what a lane holds are those of its first element plus numbers that are the same for all lanes, so a kernel
needs `row, column = d.first(lane)` and, for each register, one of `d.offsets`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from ptxlab.author.emit import emit
from ptxlab.author.lines import refuse
from ptxlab.author.pointers import Pointer
from ptxlab.author.spelling import Spelling
from ptxlab.author.values import Scalar
from ptxlab.isa import Candidate, Operation, opcode
from ptxlab.isa.chapters.matrix_scaled import bits_of
from ptxlab.isa.units import layouts
from ptxlab.isa.units.layouts import Layout
from ptxlab.isa.units.layouts_rows import eight_rows

LANE_BITS = 5


@dataclass(frozen=True, eq=False)
class Fragment:
    """A matrix in the registers of a warp; `layout` has the position of each element.

    The matrix is the one in memory: of B, whose columns a multiplication takes, each is a row here. A
    `transposed` one is in memory the other way round, and `ldmatrix.trans` transposes it.
    """

    layout: Layout
    is_transposed: bool = False

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return self.layout.bits

    @property
    def registers(self) -> int:
        """How many registers a lane has."""
        return self.layout.registers

    @property
    def offsets(self) -> tuple[tuple[int, int], ...]:
        """Rows and columns from the first element of any lane to each that it holds, in the order of registers."""
        first, *_ = held = self.layout.held(0)
        return tuple((row - first[0], column - first[1]) for row, column in held)

    def first(self, lane: object) -> tuple[Any, Any]:
        """The row and the column of the first element that a lane holds, in registers."""
        steps = _lane_steps(self.layout)
        if steps is None:
            refuse("no-fragment", "rows and columns of this fragment are not sums over the bits of a lane's number")
        rows, columns = zip(*steps, strict=True)
        return weigh_bits(lane, rows), weigh_bits(lane, columns)

    @property
    def transposed(self) -> Fragment:
        """The fragment of the matrix that is transposed in memory."""
        if self.bits != 16:
            refuse(
                "no-fragment",
                f"`ldmatrix.trans` turns elements of 16 bits, and these have {self.bits}",
                helps=["store the matrix the other way round"],
            )
        return Fragment(self.layout.transposed, not self.is_transposed)

    def stacked(self, count: int) -> Fragment:
        """That many of them, one below the other in memory, or side by side if they are transposed."""
        if self.is_transposed:
            return replace(self, layout=layouts.stacked(self.layout.transposed, count).transposed)
        return replace(self, layout=layouts.stacked(self.layout, count))

    def packed(self, type: type[Scalar]) -> Fragment:
        """The same elements of C or D in a narrower type, two or more in a register."""
        return Fragment(layouts.accumulator(self.layout.rows, self.layout.columns, type.type.name))

    @property
    def matrices(self) -> tuple[tuple[int, int], ...]:
        """For each register, the first row and column of the 8 rows of 16 bytes that it holds in all lanes.

        That is what `ldmatrix` gives and `stmatrix` takes.
        """
        found = _matrices(self.layout, self.is_transposed)
        if found is None:
            refuse(
                "no-fragment",
                "registers of this fragment hold no matrices of 8 rows of 16 bytes",
                helps=["load or store its elements one by one: `fragment.first(lane)` and `fragment.offsets`"],
            )
        return found

    def row_of(self, lane: object) -> tuple[Any, Any]:
        """The row and column that a lane gives the address of: lanes 0 to 7 the rows of the first matrix, and so on."""
        starts = self.matrices
        chosen = [starts[number] if number < len(starts) else (0, 0) for number in (1, 2)]  # by the two highest bits
        steps = [(1, 0), (2, 0), (4, 0), *chosen]
        assert len(starts) < 4 or starts[3] == (starts[1][0] + starts[2][0], starts[1][1] + starts[2][1])
        rows, columns = zip(*steps, strict=True)
        return weigh_bits(lane, rows), weigh_bits(lane, columns)

    def load(self, pointer: Pointer, out: Sequence[Scalar] | None = None) -> tuple[Scalar, ...]:
        """The registers, fresh ones or those of `out`, by one `ldmatrix`; each lane points to the row of `row_of`."""
        result = emit(f"ldmatrix{self._modifiers}", [pointer], out=None if out is None else tuple(out))
        return result if isinstance(result, tuple) else (result,)

    def store(self, pointer: Pointer, values: Sequence[Scalar]) -> None:
        """Write the registers by one `stmatrix`."""
        emit(f"stmatrix{self._modifiers}", [pointer, tuple(values)])

    @property
    def _modifiers(self) -> str:
        if len(self.matrices) not in (1, 2, 4):
            refuse(
                "no-fragment",
                f"`ldmatrix` and `stmatrix` move 1, 2 or 4 matrices, and this fragment has {len(self.matrices)}",
                helps=["`fragment.stacked(2)` makes one of two"],
            )
        return f".sync.aligned.m8n8.x{len(self.matrices)}{'.trans' if self.is_transposed else ''}.shared.b16"


@cache
def _lane_steps(layout: Layout) -> tuple[tuple[int, int], ...] | None:
    """Rows and columns that each bit of a lane's number adds; None where that is not all there is to it."""
    held = [layout.held(lane) for lane in range(1 << LANE_BITS)]
    steps = tuple(held[1 << bit][0] for bit in range(LANE_BITS))
    for lane, own in enumerate(held):
        set_bits = [step for bit, step in enumerate(steps) if lane >> bit & 1]
        row, column = sum(step[0] for step in set_bits), sum(step[1] for step in set_bits)
        if own != tuple((row + down, column + right) for down, right in held[0]):
            return None
    return steps


@cache
def _matrices(layout: Layout, transposed: bool) -> tuple[tuple[int, int], ...] | None:
    """The first row and column of the matrix in each register, or None if some register holds no such matrix."""
    if layout.bits > 32:
        return None
    pattern = eight_rows(128 // layout.bits, layout.bits, 1, transposed)
    each = 32 // layout.bits
    starts = []
    for first in range(0, layout.registers * each, each):
        row, column = layout.held(0)[first]
        for lane in range(32):
            wanted = tuple((row + down, column + right) for down, right in pattern.held(lane))
            if layout.held(lane)[first : first + each] != wanted:
                return None
        starts.append((row, column))
    return tuple(starts)


class Fragments(NamedTuple):
    """The fragments of a multiplication."""

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment


def fragments(multiplication: Spelling) -> Fragments:
    """The fragments of `mma`, by its spelling: `ptx.mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32`."""
    text = multiplication._text
    found = [candidate for candidate in opcode(text).candidates if candidate.violation is None]
    if not found or not _is_dense(found[0]):
        refuse("no-fragment", f"`{text}` is not an `mma.sync` with all its modifiers")
    m = found[0].modifiers
    bits = bits_of(m) if m.block_scale else None  # of four-bit elements, two are in a byte, or one
    types = (m.atype, m.btype, m.ctype, m.dtype)
    layout = layouts.fragments(m.shape, *types, alayout=m.alayout, blayout=m.blayout, bits=bits)
    return Fragments(*(Fragment(part) for part in (layout.a, layout.b, layout.c, layout.d)))


def _is_dense(candidate: Candidate) -> bool:
    """Whether it is an MMA of fragments with a layout that is known, and stores all of A."""
    is_sparse = any(expected.name == "e" for expected in candidate.expected)
    return candidate.effects.computes is Operation.MMA and not is_sparse


def weigh_bits(number: Any, weights: Sequence[int]) -> Any:
    """The sum of the weights, powers of two, of the lowest bits that are set in a number: masks and shifts."""
    masks: dict[int, int] = {}
    for bit, weight in enumerate(weights):
        if weight:
            shift = weight.bit_length() - 1 - bit
            masks[shift] = masks.get(shift, 0) | 1 << bit
    total: Any = None
    for shift, mask in masks.items():
        part = number & mask
        part = part << shift if shift > 0 else part >> -shift if shift < 0 else part
        total = part if total is None else total + part
    return 0 if total is None else total
