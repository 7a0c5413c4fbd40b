"""Operands by the thousand: patterns of every type at edges, near powers of two, of random length, and at random.

Patterns are NumPy arrays of 64-bit words; a type of 128 bits takes two.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.isa.form import Modifiers
from ptxlab.isa.operand import Expected
from ptxlab.isa.types import Type, type_named
from ptxlab.numbers import FORMATS, Format

Words = npt.NDArray[np.uint64]
WARP = 32
# Which of four neighbours a sparse matrix has: two of them, in rising order; or which of two pairs.
PAIRS = (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
HALVES = (0b0100, 0b1110)
MATRICES = ("matrix", "matrix_sparse", "matrix_wmma")


def draw(rng: np.random.Generator, one: Expected, m: Modifiers, chapter: str, opcode: str, threads: int) -> list[Words]:
    """What each thread has in each register of an operand: a low and a high word each."""
    assert one.type is not None
    found = []
    for _ in range(one.count or 1):
        low, high = np.zeros(threads, np.uint64), np.zeros(threads, np.uint64)
        if chapter in MATRICES:
            low = matrix_words(rng, one, m, threads)
        elif one.name == "membermask":
            # What `shfl` reads from a lane that is not a member is undefined.
            low = member_masks(rng, threads) if opcode != "shfl" else np.full(threads, 0xFFFFFFFF, np.uint64)
        elif one.type.width > 64:
            low, high = integers(rng, 64, threads), integers(rng, 64, threads)
        else:
            low = patterns(rng, one.type, threads)
        # Outside of what an operand may be, an instruction does something else on every machine.
        limits = range(32) if (opcode, one.name) == ("fns", "base") else one.allowed
        if limits is not None:
            low = np.where(low < len(limits), low, low % np.uint64(len(limits)))
        found += [low, high]
    return found


def patterns(rng: np.random.Generator, type: Type, count: int) -> Words:
    """Patterns of one type."""
    if type.lanes > 1:
        part = type_named(type.name.rpartition("x")[0])
        mask = np.uint64((1 << type.bits) - 1)
        lanes = [(patterns(rng, part, count) & mask) << np.uint64(type.bits * lane) for lane in range(type.lanes)]
        return np.bitwise_or.reduce(lanes)
    format = FORMATS.get(type.name)
    if isinstance(format, Format):
        return floats(rng, format, count)
    return integers(rng, type.width, count)


def integers(rng: np.random.Generator, width: int, count: int) -> Words:
    """Integers at an edge, of a random length, of striking bytes, of any bits."""
    top = (1 << width) - 1
    anything = rng.integers(0, 1 << 64, count, np.uint64, endpoint=False) if width else np.zeros(count, np.uint64)
    near = [0, 1, 2, 7, 8, 15, 16, 17, 23, 24, 31, 32, 33, 48, 63, 64, 65, 127, 128, 255]
    far = [top, top - 1, top >> 1, (top >> 1) + 1, (top >> 1) + 2]
    edges = np.array([edge & top for edge in (*near, *far)], np.uint64)[rng.integers(0, len(near) + len(far), count)]
    short = anything >> rng.integers(0, 64, count).astype(np.uint64)
    short ^= np.where(rng.integers(0, 2, count) == 1, np.uint64(2**64 - 1), np.uint64(0))
    striking = np.array([0, 1, 0x7F, 0x80, 0x81, 0xFE, 0xFF], np.uint8)[rng.integers(0, 7, (count, 8))]
    words = np.ascontiguousarray(striking).view(np.uint64)[:, 0]
    return np.choose(rng.integers(0, 5, count), [edges, short, words, anything, anything]) & np.uint64(top)


def floats(rng: np.random.Generator, format: Format, count: int, calm: bool = False) -> Words:
    """Floats that are edges, near powers of two, of any bits, or, most of them, of exponents that meet each other."""
    width, mantissa = format.width - format.padding, format.mantissa_bits
    top = np.uint64((1 << width) - 1)
    anything = rng.integers(0, 1 << 64, count, np.uint64) & top
    signs = np.where(rng.integers(0, 2, count) == 1, np.uint64(format.sign_bit >> format.padding), np.uint64(0))
    reach = 3 if calm else mantissa + 2
    fields = np.clip(format.bias + rng.integers(-reach, reach + 1, count), 0, 2 * format.bias).astype(np.uint64)
    bits = anything & np.uint64((1 << mantissa) - 1)
    cleared = np.uint64(2**64 - 1) << rng.integers(0, mantissa + 1, count).astype(np.uint64)
    bits = np.where(rng.random(count) < 0.3, bits & cleared, bits)
    usual = signs | fields << np.uint64(mantissa) | bits
    if calm:
        found = usual
    else:
        one = format.bias << mantissa
        largest = format.largest >> format.padding
        infinity = ((1 << (width - mantissa - 1)) - 1) << mantissa
        known = [0, 1, (1 << mantissa) - 1, 1 << mantissa, (1 << mantissa) + 1, one, one + 1, one - 1, largest,
                 largest - 1, infinity, infinity | 1, infinity | (1 << mantissa >> 1)]  # fmt: skip
        edges = signs | np.array([edge & int(top) for edge in known], np.uint64)[rng.integers(0, len(known), count)]
        power = anything >> np.uint64(mantissa) << np.uint64(mantissa)
        near = power + rng.integers(-2, 3, count).astype(np.int64).view(np.uint64)
        found = np.choose(rng.integers(0, 6, count), [edges, near, anything, usual, usual, usual])
    found = (found & top) << np.uint64(format.padding)
    if format.padding:  # bits that the hardware must ignore
        found |= rng.integers(0, 1 << format.padding, count).astype(np.uint64)
    return found


def member_masks(rng: np.random.Generator, threads: int) -> Words:
    """Lanes that meet: all of a warp, or two parts of it."""
    parts = rng.integers(0, 1 << 32, threads // WARP, np.uint64)
    parts[rng.random(len(parts)) < 0.3] = 0xFFFFFFFF
    each = np.repeat(parts, WARP)
    inside = each >> (np.arange(threads, dtype=np.uint64) % np.uint64(WARP)) & np.uint64(1)
    return np.where(inside == 1, each, each ^ np.uint64(0xFFFFFFFF))


def matrix_words(rng: np.random.Generator, one: Expected, m: Modifiers, threads: int) -> Words:
    """A register of a matrix: of calm numbers in most warps, of everything that there is in the others."""
    assert one.type is not None
    if one.name == "e":
        nibbles = np.array(HALVES if m.atype == "tf32" else PAIRS, np.uint64)
        chosen = nibbles[rng.integers(0, len(nibbles), (8, threads))]
        return np.bitwise_or.reduce([part << np.uint64(4 * number) for number, part in enumerate(chosen)])
    name = element_name(one, m)
    format = FORMATS.get(name)
    width = type_named(name).width if name != "b1" else 32
    width = max(width, 32) if name == "tf32" else width
    wild = np.repeat(rng.random(threads // WARP) < 0.25, WARP)
    found = np.zeros(threads, np.uint64)
    for at in range(0, one.type.width, width):
        if isinstance(format, Format):
            part = np.where(wild, floats(rng, format, threads), floats(rng, format, threads, calm=True))
            part = np.where(rng.random(threads) < 0.05, np.uint64(0), part)
        else:
            part = integers(rng, width, threads)
        found |= part << np.uint64(at)
    return found


def element_name(one: Expected, m: Any) -> str:
    """The type of the elements of a matrix operand."""
    assert one.type is not None
    stated = {"a": m.atype, "b": m.btype, "c": m.ctype}.get(one.name)
    return stated or one.type.name.removesuffix("x2")
