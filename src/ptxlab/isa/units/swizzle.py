"""Swizzles of shared memory: some bits of an address are XORed with bits above them (PTX ISA 5.5.7).

Elements of one column are then in different banks, row by row, without any padding between rows.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Swizzle:
    """The `bits` bits from `base` on are XORed with those `shift` places above them."""

    bits: int
    base: int = 4
    shift: int = 3

    @property
    def mask(self) -> int:
        """The bits that are changed."""
        return ((1 << self.bits) - 1) << self.base

    @property
    def period(self) -> int:
        """Bytes after which the pattern repeats; it is meant for memory that is aligned to them."""
        return 1 << (self.base + self.shift + self.bits)

    def apply(self, offset: int) -> int:
        """Where the byte at `offset` is.

        What has no bits in common may be swizzled apart: `apply(a ^ b) == apply(a) ^ apply(b)`.
        """
        return offset ^ (offset >> self.shift & self.mask)


# The modes of tensor copies and matrix descriptors that move pieces of 16 bytes.
SWIZZLES = {"32B": Swizzle(1), "64B": Swizzle(2), "128B": Swizzle(3)}
