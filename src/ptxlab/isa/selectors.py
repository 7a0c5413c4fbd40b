"""The parts of a 32-bit register that video instructions choose: `%r1.b0`, `%r1.h1`, `%r1.h32`, `%r1.b7654`.

An operand says which of these sets it takes: `select(part)`. In the SIMD ones each digit names a half (0 to 3) or byte
(0 to 7) of `a` and `b` taken together, the first digit for the highest lane; a mask names the lanes that are written.
"""

from itertools import product

SELECTORS: dict[str, frozenset[str]] = {
    "part": frozenset("b0 b1 b2 b3 h0 h1".split()),
    "halves": frozenset(f"h{high}{low}" for high in range(4) for low in range(4)),
    "bytes": frozenset("b" + "".join(digits) for digits in product("01234567", repeat=4)),
    "half_mask": frozenset("h0 h1 h10".split()),
    "byte_mask": frozenset("b" + "".join(d for d, kept in zip("3210", mask, strict=True) if kept)
                           for mask in product((False, True), repeat=4) if any(mask)),
}  # fmt: skip
