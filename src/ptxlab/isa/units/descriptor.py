"""Matrices in shared memory as `wgmma` finds them: a descriptor, and where each element is (PTX ISA 9.7.15.5.1).

Memory is taken in chunks of 16 bytes. Eight of them, one below the other, are the smallest piece of a matrix; a swizzle
puts 2, 4 or 8 such pieces side by side in rows of 32, 64 or 128 bytes. A matrix is K-major if a chunk runs along k, the
side that is summed over, and MN-major if it runs along the rows of A or the columns of B. B is laid out transposed: its
rows here are its columns there.

    descriptor = Descriptor(start=1024, stride=1024, swizzle="128B")
    bits = descriptor.encode()
    descriptor.offset(row=3, column=5, bits=16)  # the byte at which A[3, 5], or B[5, 3], is
"""

from __future__ import annotations

from dataclasses import replace

from ptxlab.native import native, u32, u64
from ptxlab.values import dataclass

CHUNK = 16
EIGHT = 8

# The modes of swizzling, by their number in a descriptor, and the chunks in a row of each.
MODES = ("none", "128B", "64B", "32B")
WIDTHS = (1, 8, 4, 2)

K_MAJOR = 0
MN_MAJOR = 1


@native
def chunk_offset(descriptor: u64, row: u32, chunk: u32, major: u32) -> u64:
    """Where in shared memory a chunk starts: number `chunk` of row `row`.

    Of an MN-major matrix a row, here, is one of its columns.
    """
    start: u64 = (descriptor & 0x3FFF) << 4
    leading: u64 = ((descriptor >> 16) & 0x3FFF) << 4
    stride: u64 = ((descriptor >> 32) & 0x3FFF) << 4
    pattern: u64 = ((descriptor >> 49) & 7) << 7
    mode: u32 = u32(descriptor >> 62)
    width: u64 = WIDTHS[mode]
    if mode == 0 and major == MN_MAJOR:
        leading, stride = stride, leading
    down: u64 = u64(row % EIGHT) * width * CHUNK + u64(row // EIGHT) * stride
    right: u64 = u64(chunk) % width * CHUNK + u64(chunk) // width * leading
    address: u64 = start + down + right
    # The swizzle uses bits of the address itself, counted from the start of its pattern.
    return address ^ ((u64(address - pattern) >> 7) & (width - 1)) << 4


# `tcgen05` has the same descriptors, but for the numbers of the modes (PTX ISA 9.7.16.4.1); three are reserved.
TENSOR_MODES = {"none": 0, "128B/32B": 1, "128B": 2, "64B": 4, "32B": 6}
LIKE = (0, 0, 1, 0, 2, 0, 3, 0)  # the mode of `wgmma` that each of them is
COARSE = 1  # rows of 128 bytes, four of them, swizzled in pieces of 32 bytes; only for MN-major matrices
VERSION = 1 << 46  # a constant that these descriptors have
ABSOLUTE = 1 << 52  # the leading dimension is an address; only of `sm_103a`

# Bits that must be 0: of `wgmma`, and of `tcgen05`, whose bits 46 to 48 are `VERSION`.
RESERVED = 0b11 << 14 | 0b11 << 30 | 0b111 << 46 | 0x3FF << 52
TENSOR_RESERVED = 0b11 << 14 | 0b11 << 30 | 0b11 << 47 | 0xFF << 53


@native
def tensor_chunk_offset(descriptor: u64, row: u32, chunk: u32, major: u32) -> u64:
    """Where in shared memory a chunk starts, by a descriptor of `tcgen05`."""
    mode: u32 = u32(descriptor >> 61)
    fields: u64 = descriptor & 0x000E_3FFF_3FFF_3FFF
    if mode != COARSE:
        width: u64 = WIDTHS[LIKE[mode]]
        column: u64 = (fields & (width - 1)) + u64(chunk)
        if major == K_MAJOR and width != 1 and column >= width:  # past a row of the swizzle, as 48 bytes can be
            leading_field: u64 = fields >> 16 & 0x3FFF
            if descriptor & ABSOLUTE == 0:
                leading_field = leading_field + (fields & 0x3FFF & ~(width - 1))
            fields = fields & ~u64(0x3FFF) | leading_field & 0x3FFF
            return chunk_offset(fields | u64(LIKE[mode]) << 62, row, u32(column - width), major)
        return chunk_offset(fields | u64(LIKE[mode]) << 62, row, chunk, major)
    start: u64 = (fields & 0x3FFF) << 4
    leading: u64 = ((fields >> 16) & 0x3FFF) << 4
    stride: u64 = ((fields >> 32) & 0x3FFF) << 4
    address: u64 = (
        start + u64(row % 4) * 128 + u64(row // 4) * stride + u64(chunk % 8) * CHUNK + u64(chunk // 8) * leading
    )
    return address ^ ((address >> 7) & 3) << 5


@dataclass(frozen=True)
class Descriptor:
    """What a matrix descriptor says, in bytes; `base_offset` counts rows of 128 bytes.

    `stride` leads from eight rows to the next eight, `leading` to the chunks beyond a row of the swizzle, or
    to the next chunk without one; there the two change their places if the matrix is MN-major.
    """

    start: int
    leading: int = CHUNK
    stride: int = 0
    swizzle: str = "none"
    base_offset: int = 0

    def encode(self) -> int:
        """The 64 bits; a `ValueError` says which part does not fit."""
        for name, value in (("start", self.start), ("leading", self.leading), ("stride", self.stride)):
            if value % CHUNK or not 0 <= value < 1 << 18:
                raise ValueError(f"`{name}` is {value}: it must be a multiple of {CHUNK} below {1 << 18}")
        if self.swizzle not in MODES:
            raise ValueError(f"there is no swizzle `{self.swizzle}`, only {', '.join(MODES)}")
        if not 0 <= self.base_offset < EIGHT:
            raise ValueError(f"`base_offset` is {self.base_offset}: it must be 0 to {EIGHT - 1}")
        mode = MODES.index(self.swizzle)
        fields = self.start >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32
        return fields | self.base_offset << 49 | mode << 62

    @staticmethod
    def decode(bits: int) -> Descriptor:
        """What 64 bits say."""
        start, leading, stride = ((bits >> at & 0x3FFF) << 4 for at in (0, 16, 32))
        return Descriptor(start, leading, stride, MODES[bits >> 62], bits >> 49 & 7)

    def encode_for_tcgen05(self) -> int:
        """The 64 bits that `tcgen05` takes; its swizzle may be `128B/32B`, too."""
        if self.swizzle not in TENSOR_MODES:
            raise ValueError(f"there is no swizzle `{self.swizzle}`, only {', '.join(TENSOR_MODES)}")
        fields = replace(self, swizzle="none").encode()
        return fields | VERSION | TENSOR_MODES[self.swizzle] << 61

    @staticmethod
    def decode_for_tcgen05(bits: int) -> Descriptor:
        """What 64 bits say to `tcgen05`."""
        modes = {number: name for name, number in TENSOR_MODES.items()}
        return replace(Descriptor.decode(bits & ~(7 << 61)), swizzle=modes.get(bits >> 61, "?"))

    def offset(self, row: int, column: int, bits: int, major: int = K_MAJOR) -> int:
        """The byte of shared memory at which an element of `bits` bits starts, in `row` of A or of B transposed."""
        each = CHUNK * 8 // bits
        along, across = (column, row) if major == K_MAJOR else (row, column)
        return chunk_offset(self.encode(), across, along // each, major) + along % each * bits // 8

    def __str__(self) -> str:
        steps = f"leading {self.leading}, stride {self.stride} bytes"
        swizzle = "no swizzle" if self.swizzle == "none" else f"{self.swizzle} swizzle"
        base = f", base offset {self.base_offset}" if self.base_offset else ""
        return f"start {self.start:#x}, {steps}, {swizzle}{base}"
