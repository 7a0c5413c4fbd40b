"""Matrix descriptors: tiles in shared memory as `wgmma` and `tcgen05` find them, and the fragments of accumulators.

`ptx.descriptor(tile)` is what `a_desc` and `b_desc` are given: a few instructions that put the address of the tile into
a number that Python knows. Rows of the tile are as long as its swizzle; what is longer continues in the next copy.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxlab.author.emit import emit
from ptxlab.author.fragments import Fragment
from ptxlab.author.lines import refuse
from ptxlab.author.spelling import Spelling
from ptxlab.author.tiles import Tile
from ptxlab.author.trace import current
from ptxlab.author.values import Scalar, u64
from ptxlab.isa import opcode
from ptxlab.isa.units import layouts
from ptxlab.isa.units.descriptor import CHUNK, EIGHT, Descriptor
from ptxlab.isa.units.fragment import extents
from ptxlab.isa.units.swizzle import SWIZZLES

K_BYTES = 32  # of a row of A or B: what one MMA multiplies, of sparse matrices at least
TCGEN05 = 100  # the first target that has `tcgen05` and not `wgmma`


def descriptor(tile: Tile, row: int = 0, column: int = 0, copy: object = 0, *, transposed: bool = False) -> Scalar:
    """The descriptor of the matrix whose first element is there; `transposed` is what `trans_a` or `trans_b` says.

    Of a matrix that is not transposed, rows of the tile run along k.
    """
    name = _swizzle_name(tile)
    within = row * tile.row_bytes + column * tile.memory.size
    if row % EIGHT or within % CHUNK:
        refuse(
            "no-descriptor",
            f"no descriptor begins at row {row}, column {column}",
            helps=[f"begin at a multiple of {EIGHT} rows and of {CHUNK // tile.memory.size} columns"],
        )
    left = tile.row_bytes - column * tile.memory.size
    if name != "none" and not transposed and left < K_BYTES:
        refuse(
            "no-descriptor",
            f"an MMA reads {K_BYTES} bytes of k, and from column {column} on a row of this tile has {max(left, 0)}",
            helps=[
                f"begin at column {(tile.row_bytes - K_BYTES) // tile.memory.size} at most; more is in another copy"
            ],
        )
    down, right = EIGHT * tile.row_bytes, tile.copy_bytes if tile.copies > 1 else CHUNK
    leading, stride = (down, right) if transposed and name == "none" else (right, down)
    try:
        found = Descriptor(0, leading, stride, name)
        fields = found.encode_for_tcgen05() if current().program.chip.number >= TCGEN05 else found.encode()
    except ValueError as problem:
        refuse("no-descriptor", f"no descriptor can describe this tile: {problem}")
    start = tile.memory._advance([(copy, tile.copy_bytes)])._advance([(within, 1)]).address
    # In a cluster, bits above the 18 that count say which block an address is of: they must not get into other fields.
    wide: Scalar = emit("cvt.u64.u32", [emit("bfe.u32", [start, 4, 14])])
    bits: Scalar = emit("or.b64", [wide, fields])
    return bits.view(u64)


def _swizzle_name(tile: Tile) -> str:
    """The swizzle as descriptors name it, where rows are as long as it needs."""
    name, width = "none", CHUNK
    if tile.swizzle is not None:
        names = [known for known, swizzle in SWIZZLES.items() if swizzle == tile.swizzle]
        if not names:
            refuse("no-descriptor", "descriptors know the swizzles 32B, 64B and 128B, and this tile has another one")
        name, width = names[0], int(names[0][:-1])
    if tile.row_bytes != width:
        refuse(
            "no-descriptor",
            f"rows of this tile have {tile.row_bytes} bytes, and descriptors of swizzle {name} want {width}",
            helps=["choose the swizzle as long as a row: 32, 64 or 128 bytes; a wider matrix is several copies"],
        )
    return name


class WarpgroupFragments(NamedTuple):
    """What a warp of a warpgroup holds: 16 rows of D, and of A where it is in registers; warp `w` from row 16 w on."""

    a: Fragment
    d: Fragment


def warpgroup_fragments(multiplication: Spelling) -> WarpgroupFragments:
    """The fragments of `wgmma`, by its spelling: `ptx.wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16`."""
    text = multiplication._text
    found = [candidate for candidate in opcode(text).candidates if candidate.violation is None]
    if not found or not found[0].effects.does("wgmma", "start"):
        refuse("no-fragment", f"`{text}` is not a `wgmma.mma_async` with all its modifiers")
    m = found[0].modifiers
    _, n, k = extents(m.shape)
    stored = k // 2 if m.sp else k
    return WarpgroupFragments(
        Fragment(layouts.multiplicand(16, stored, m.atype)), Fragment(layouts.accumulator(16, n, m.dtype))
    )
