"""Where the elements lie that a matrix descriptor of `wgmma` names."""

from __future__ import annotations

from ptxlab.draw.picture import Cell, Panel, Picture
from ptxlab.isa.descriptor import CHUNK, K_MAJOR, MN_MAJOR, Descriptor
from ptxlab.isa.fragment import ELEMENT_BITS

LINE = 128  # bytes that all 32 banks hold side by side
MAJORS = {"k": K_MAJOR, "mn": MN_MAJOR}


def descriptor(bits: int | Descriptor, rows: int, columns: int, type: str = "f16", major: str = "k") -> Picture:
    """The byte of shared memory at which each 16 bytes of a matrix begin, on the colour of their first bank.

    The matrix is A, `rows` by `columns` of k, or B transposed. It is K-major if 16 bytes run along k, as they do where
    `trans` is 0, and MN-major (`major="mn"`) if they run down.
    """
    found = bits if isinstance(bits, Descriptor) else Descriptor.decode(bits)
    width = ELEMENT_BITS.get(type)
    if width is None or width % 8:
        raise ValueError(f"type {type!r}: a descriptor is drawn for elements of whole bytes")
    if major not in MAJORS:
        raise ValueError(f"major {major!r}: there are k and mn")
    each = CHUNK * 8 // width  # elements of 16 bytes
    down, right = (1, each) if major == "k" else (each, 1)
    if rows < 1 or columns < 1 or rows % down or columns % right:
        raise ValueError(
            f"{rows}x{columns} {type}: 16 bytes are {each} elements, and must divide the side they run along"
        )
    cells = []
    for row in range(0, rows, down):
        places = [found.offset(row, column, width, MAJORS[major]) for column in range(0, columns, right)]
        cells.append([Cell(f"{place:#x}", place % LINE // 4) for place in places])
    panel = Panel(
        f"{rows}x{columns} {type}, {'K' if major == 'k' else 'MN'}-major: where each 16 bytes start",
        cells,
        [_span(row, down) for row in range(0, rows, down)],
        [_span(column, right) for column in range(0, columns, right)],
        (8 // down if major == "k" else 0, 0 if major == "k" else 8),
    )
    return Picture(f"descriptor {found.encode():#018x}: {found}", [panel])


def _span(first: int, count: int) -> str:
    return str(first) if count == 1 else f"{first}-{first + count - 1}"
