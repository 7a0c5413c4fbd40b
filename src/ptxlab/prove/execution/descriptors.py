"""Matrices in shared memory that MMAs read, as addresses: what a descriptor says, as a term."""

from __future__ import annotations

from ptxlab import ir
from ptxlab.flow.expressions import ADDRESS, Linear, linear
from ptxlab.flow.ranges import wrap
from ptxlab.flow.symbolic import LONG
from ptxlab.isa.units.descriptor import CHUNK, LIKE, MODES, VERSION, Descriptor, chunk_offset
from ptxlab.prove.terms.terms import Terms, leaves

SHARED = 1 << 18  # bytes that a descriptor can address
PATTERN = 1024  # bytes after which a swizzle comes again
MODE_NONE = MODES.index("none")
TENSOR = LIKE.index(1), LIKE.index(2), LIKE.index(3), 0  # modes of `tcgen05` that `wgmma` has, too


def tensor_matrix(
    terms: Terms, bits: Linear, rows: int, is_across: bool = False, chunks: int = 2
) -> tuple[Linear, int] | None:  # fmt: skip
    """The same of a descriptor for `tcgen05`, which has another number for the swizzle."""
    constant = wrap(bits.constant, LONG)
    mode = constant >> 61
    if constant >> 46 & 7 != VERSION >> 46 or mode not in TENSOR:
        return None
    fields = constant & ~(7 << 61) & ~VERSION | LIKE[mode] << 62
    return matrix(terms, linear(LONG, fields, dict(bits.terms)), rows, is_across, chunks)


def matrix(
    terms: Terms, bits: Linear, rows: int, is_across: bool, chunks: int = 2
) -> tuple[Linear, int] | None:  # fmt: skip
    """The first address of a matrix of so many chunks of 16 bytes a row, and how many bytes from there on it is in;
    None: not known."""  # fmt: skip
    bases = [atom for atom in leaves([bits]) if atom.kind == ADDRESS]
    if len(bases) != 1 or not isinstance(bases[0].detail, ir.Variable):
        return None
    (base,) = bases
    variable = base.detail
    assert isinstance(variable, ir.Variable)
    align = variable.align or 1
    elements = variable.elements
    size = terms.shared if elements is None else elements * variable.type.width // 8
    if align % PATTERN or size > SHARED:
        return None
    # The address of a variable is a multiple of its alignment, and all of it is in shared memory.
    number = terms.bounded(base, (SHARED - size) // align)
    value = terms.substitute(bits, {base: number.times(align)})
    rest = value.plus(number, -align // CHUNK)
    if any(atom in dict(number.terms) for atom in leaves([rest])):
        return None
    constant = wrap(rest.constant, LONG)
    fields, start = constant >> 14 << 14, constant & 0x3FFF
    moving = linear(LONG, start, dict(rest.terms))
    low, high = moving.bounds
    if low < 0 or high + size // CHUNK < 0 or high * CHUNK > SHARED:
        return None
    if fields >> 62 != MODE_NONE and any(factor * CHUNK % PATTERN for _, factor in moving.terms):
        return None
    first = start * CHUNK % PATTERN
    descriptor = Descriptor.decode(fields | first // CHUNK).encode()
    if descriptor != fields | first // CHUNK:
        return None
    across, along = (rows, chunks) if not is_across else (16, rows // 8)
    offsets = [chunk_offset(descriptor, row, chunk, int(is_across)) for row in range(across) for chunk in range(along)]
    lowest, highest = min(offsets), max(offsets) + CHUNK
    address = linear(LONG, lowest - first, {base: 1}).plus(moving.times(CHUNK))
    return address, highest - lowest
