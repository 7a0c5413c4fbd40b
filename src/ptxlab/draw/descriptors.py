"""Where the elements are that a matrix descriptor of `wgmma` or `tcgen05` describes: core matrices, LBO and SBO."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ptxlab.draw.palette import apart
from ptxlab.draw.picture import Cell, Mark, Panel, Picture
from ptxlab.isa.units.descriptor import (
    CHUNK,
    EIGHT,
    K_MAJOR,
    MN_MAJOR,
    VERSION,
    Descriptor,
    chunk_offset,
    tensor_chunk_offset,
)
from ptxlab.isa.units.fragment import ELEMENT_BITS
from ptxlab.isa.units.instruction_descriptor import KINDS, type_codes
from ptxlab.isa.units.tensor_matrix import bits_of, each_of

LINE = 128  # bytes that all 32 banks hold side by side
MAJORS = {"k": K_MAJOR, "mn": MN_MAJOR}
TARGETS = {"sm_90a": False, "sm_100a": True}  # whether its descriptors are those of `tcgen05`
WGMMA = ("f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "b1")
FIELD = 0x3FFF
FIELDS = {"LBO": 1 << 16, "SBO": 1 << 32}  # the lowest bit of each


@dataclass(frozen=True, slots=True)
class ChunkLayout:
    """A matrix in chunks of 16 bytes, each of `each` elements: a chunk has the number of a line, and one in it."""

    bits: int
    is_tensor: bool
    major: int
    each: int
    rows: int
    columns: int

    @property
    def lines(self) -> int:
        """Chunks across: rows of a K-major matrix, columns of an MN-major one."""
        return self.rows if self.major == K_MAJOR else self.columns

    @property
    def chunks(self) -> int:
        """Chunks along, in one line."""
        return (self.columns if self.major == K_MAJOR else self.rows) // self.each

    def address(self, line: int, chunk: int, bits: int | None = None) -> int:
        """The byte at which a chunk starts, by the function that the emulator reads it by."""
        where = tensor_chunk_offset if self.is_tensor else chunk_offset
        return int(where(self.bits if bits is None else bits, line, chunk, self.major))

    def field(self, line: int, chunk: int) -> str | None:
        """The field of the descriptor that leads from the first chunk to this one: the one that moves it if changed."""
        rest = self.bits & ~sum(FIELD * lowest for lowest in FIELDS.values())
        near = self.address(line, chunk, rest)
        return next(
            (name for name, bit in FIELDS.items() if self.address(line, chunk, rest | FIELD * bit) != near), None
        )

    def first(self, line: int, chunk: int) -> tuple[int, int]:
        """The row and column of a chunk's first element."""
        return (line, chunk * self.each) if self.major == K_MAJOR else (chunk * self.each, line)

    def core(self, line: int, chunk: int) -> int:
        """The number of the core matrix, chunks below each other, that a chunk belongs to."""
        return line // self.group * self.chunks + chunk

    @property
    def group(self) -> int:
        """The lines of a core matrix: after them, a field of the descriptor leads to the next one."""
        return next((line for line in range(1, self.lines) if self.field(line, 0) is not None), EIGHT)


def descriptor(
    bits: int | Descriptor,
    rows: int,
    columns: int,
    type: str = "f16",
    major: str = "k",
    *,
    target: str | None = None,
    kind: str | None = None,
) -> Picture:
    """The core matrices of a matrix, where in shared memory each 16 bytes of them start, and what LBO and SBO lead to.

    The matrix is A, `rows` by `columns` of k, or B transposed. It is K-major if 16 bytes run along k, as they do where
    it is not transposed, and MN-major (`major="mn"`) if they run down. Descriptors of `tcgen05` have bit 46, or the
    `target` says it; `kind` says which one packs elements of four bits: `mxf4` does, `mxf8f6f4` leaves gaps.
    """
    number, is_tensor = _number(bits, target)
    each, packing = _packing(type, kind, is_tensor)
    if major not in MAJORS:
        raise ValueError(f"major {major!r}: expected one of k and mn")
    layout = ChunkLayout(number, is_tensor, MAJORS[major], each, rows, columns)
    along = columns if layout.major == K_MAJOR else rows
    if rows < 1 or columns < 1 or along % each:
        raise ValueError(
            f"{rows}x{columns} {type}: 16 bytes are {each} elements, and must divide the side they run along"
        )
    found = Descriptor.decode_for_tcgen05(number) if is_tensor else Descriptor.decode(number)
    owner = "tcgen05" if is_tensor else "wgmma"
    named = f"{rows}x{columns} {type}, {'K' if major == 'k' else 'MN'}-major{packing}"
    return Picture(f"{owner} descriptor {number:#018x}: {found}", [_matrix(layout, named), _memory(layout)])


def _number(bits: int | Descriptor, target: str | None) -> tuple[int, bool]:
    """The 64 bits, and whether they are for `tcgen05`."""
    if target is not None and target not in TARGETS:
        raise ValueError(f"target {target!r}: expected one of {' and '.join(TARGETS)}")
    if isinstance(bits, Descriptor):
        is_tensor = TARGETS[target or "sm_90a"]
        return (bits.encode_for_tcgen05() if is_tensor else bits.encode()), is_tensor
    if not 0 <= bits < 1 << 64:
        raise ValueError(f"{bits} is not a number of 64 bits")
    return bits, bool(bits & VERSION) if target is None else TARGETS[target]


def _packing(type: str, kind: str | None, is_tensor: bool) -> tuple[int, str]:
    """The elements of 16 bytes, and what a title says of them."""
    kinds = [name for name in KINDS if type in type_codes(name)]
    if not is_tensor:
        if type not in WGMMA:
            more = "; it is one of `tcgen05`, of target sm_100a" if kinds else ""
            raise ValueError(f"type {type!r}: `wgmma` has {', '.join(WGMMA)}{more}")
        return CHUNK * 8 // ELEMENT_BITS[type], ""
    if not kinds or (kind is not None and kind not in kinds):
        asked = "" if kind is None else f" of kind {kind!r}"
        have = f"kind {' and '.join(kinds)} of `tcgen05.mma` have it" if kinds else "`tcgen05.mma` does not have it"
        raise ValueError(f"type {type!r}{asked}: {have}")
    # Four bits are packed, unless a kind is named that mixes them with wider types.
    chosen = kind or max(kinds, key=lambda name: each_of(KINDS.index(name)))
    number = KINDS.index(chosen)
    each, width = int(each_of(number)), int(bits_of(type_codes(chosen)[type], number))
    return each, f" of kind {chosen}, {each} in 16 bytes" if width < 8 else ""


def _matrix(layout: ChunkLayout, named: str) -> Panel:
    """The matrix, a cell for each 16 bytes of it."""
    cells = []
    for line in range(layout.lines):
        starts = [(layout.address(line, chunk), layout.core(line, chunk)) for chunk in range(layout.chunks)]
        cells.append([Cell(f"{start:#x}", apart(core)) for start, core in starts])
    across, along = list(_marks(layout, layout.lines, True)), list(_marks(layout, layout.chunks, False))
    lines = [str(line) for line in range(layout.lines)]
    chunks = [_span(chunk * layout.each, layout.each) for chunk in range(layout.chunks)]
    title = f"{named}: where each 16 bytes start"
    if layout.major == K_MAJOR:
        return Panel(title, cells, lines, chunks, (layout.group, 0), _unused(layout), across, along)
    turned = [list(row) for row in zip(*cells, strict=True)]
    return Panel(title, turned, chunks, lines, (0, layout.group), _unused(layout), along, across)


def _marks(layout: ChunkLayout, count: int, is_across: bool) -> Iterator[Mark]:
    """Where a field of the descriptor leads for the first time, in one direction."""
    for number in range(1, count):
        name = layout.field(number, 0) if is_across else layout.field(0, number)
        if name is not None:
            yield Mark(f"{name} {_distance(layout.bits, name)}", 0, number)
            return


def _distance(bits: int, name: str) -> int:
    found = Descriptor.decode(bits)
    return found.leading if name == "LBO" else found.stride


def _unused(layout: ChunkLayout) -> str:
    """Which field no chunk of this matrix depends on."""
    used = {layout.field(line, 0) for line in range(layout.lines)}
    used |= {layout.field(0, chunk) for chunk in range(layout.chunks)}
    names = [name for name in FIELDS if name not in used]
    return (
        f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} not used by a matrix of this size" if names else ""
    )


def _memory(layout: ChunkLayout) -> Panel:
    """Shared memory in lines of 128 bytes: the row and column of the first element of each 16 bytes there."""
    there: dict[int, Cell] = {}
    shared = 0
    for line in range(layout.lines):
        for chunk in range(layout.chunks):
            row, column = layout.first(line, chunk)
            start = layout.address(line, chunk)
            shared += start in there
            there.setdefault(start, Cell(f"{row},{column}", apart(layout.core(line, chunk))))
    starts = sorted({start // LINE * LINE for start in there})
    cells = [[there.get(start + offset) for offset in range(0, LINE, CHUNK)] for start in starts]
    marks = [Mark(mark.text, starts.index(first), starts.index(last)) for mark, first, last in _steps(layout)
             if last in starts]  # fmt: skip
    note = f"{shared} pieces of 16 bytes are where others are" if shared else ""
    names = [f"+{offset}" for offset in range(0, LINE, CHUNK)]
    title = "shared memory: the row and column of the first element of each 16 bytes"
    return Panel(title, cells, [f"{start:#x}" for start in starts], names, (0, 0), note, marks)


def _steps(layout: ChunkLayout) -> Iterator[tuple[Mark, int, int]]:
    """The fields that lead from one line of shared memory to another, and these lines."""
    first = layout.address(0, 0) // LINE * LINE
    for mark in _marks(layout, layout.lines, True):
        yield mark, first, layout.address(mark.last, 0) // LINE * LINE
    for mark in _marks(layout, layout.chunks, False):
        yield mark, first, layout.address(0, mark.last) // LINE * LINE


def _span(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}-{first + count - 1}"
