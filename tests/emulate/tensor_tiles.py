"""Matrices as `tcgen05.mma` finds them in shared memory, by the canonical layouts of the manual (9.7.16.3.3)."""

from dataclasses import dataclass

import numpy as np

WIDTHS = {"none": 1, "32B": 2, "64B": 4, "128B": 8, "128B/32B": 8}  # chunks of 16 bytes in a row
MODES = {"none": 0, "128B/32B": 1, "128B": 2, "64B": 4, "32B": 6}


@dataclass(frozen=True)
class Tile:
    """Bytes of shared memory, and the descriptor of a matrix that begins at `start`."""

    data: bytes
    descriptor: int


def swizzled(at: int, mode: str) -> int:
    """CuTe's Swizzle<B, 4, 3> (or <2, 5, 2>) on the address of a byte."""
    if mode == "128B/32B":
        return at ^ (at >> 2 & 0x60)
    return at ^ (at >> 3 & (WIDTHS[mode] - 1) << 4)


def tile(elements: np.ndarray, start: int, *, mode: str = "none", transposed: bool = False) -> Tile:
    """Rows of chunks of 16 bytes, as `chunks` makes them: K-major, or MN-major if `transposed`.

    `elements` has the side that is summed over as its second axis and 16-byte chunks as bytes in its last.
    """
    lines, chunks, _ = elements.shape
    width, eight = WIDTHS[mode], 4 if mode == "128B/32B" else 8
    # The steps between groups of lines and groups of chunks; in MN-major layouts without swizzle they change roles.
    across = eight * width * 16
    along = across * -(-lines // eight)
    data = bytearray(along * -(-chunks // width))
    for line in range(lines):
        for chunk in range(chunks):
            at = line % eight * width * 16 + line // eight * across + chunk % width * 16 + chunk // width * along
            place = swizzled(start + at, mode) - start
            data[place : place + 16] = elements[line, chunk].tobytes()
    leading, stride = (across, along) if transposed and mode == "none" else (along, across)
    bits = start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1 << 46 | MODES[mode] << 61
    return Tile(bytes(data), bits)


def chunks(patterns: np.ndarray, bits: int, *, padded: bool = True) -> np.ndarray:
    """Patterns of so many bits, the last axis as chunks of 16 bytes; sixteen of fewer than eight bits fill one."""
    each = 16 if bits < 8 and padded else 128 // bits
    rows, count = patterns.shape
    found = np.zeros((rows, count // each, 16), np.uint8)
    for index in range(count):
        chunk, inside = divmod(index, each)
        for bit in range(bits):
            at = inside * bits + bit
            found[:, chunk, at // 8] |= ((patterns[:, index] >> bit & 1) << at % 8).astype(np.uint8)
    return found
