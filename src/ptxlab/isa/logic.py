"""Logic and shift instructions (PTX ISA 9.7.8)."""

from .form import form

BITS = "b16 b32 b64"


@form("and.type d, a, b", type=BITS)
@form("and.pred d, {!}a, {!}b")
def and_() -> None:
    """Give the bits that are set in both `a` and `b`."""


@form("or.type d, a, b", type=BITS)
@form("or.pred d, {!}a, {!}b")
def or_() -> None:
    """Give the bits that are set in `a`, in `b` or in both."""


@form("xor.type d, a, b", type=BITS)
@form("xor.pred d, {!}a, {!}b")
def xor() -> None:
    """Give the bits that are set in exactly one of `a` and `b`."""


@form("not.type d, a", type=BITS)
@form("not.pred d, {!}a")
def not_() -> None:
    """Invert every bit of `a`."""


@form("cnot.type d, a", type=BITS)
def cnot() -> None:
    """Negate as C does: give 1 where `a` is zero, else 0."""


@form("lop3.b32 d, a, b, c, lut", types={"d": "b32 sink", "lut": "imm"}, since="4.3 sm_50")
@form(
    "lop3.bool.b32 d|p, a, b, c, lut, {!}q",
    bool="or and",
    types={"d": "b32 sink", "p": "pred", "lut": "imm", "q": "pred"},
    writes="d p",
    since="8.2 sm_70",
)
def lop3() -> None:
    """Combine three values bit by bit as the truth table `lut` says: 8 bits, indexed by a bit of `a`, `b` and `c`.

    With `.or` or `.and`, `p` tells whether the result is not zero, combined with `q`.
    """


@form("shf.l.mode.b32 d, a, b, c", mode="clamp wrap", types={"c": "u32"}, since="3.1 sm_32")
@form("shf.r.mode.b32 d, a, b, c", mode="clamp wrap", types={"c": "u32"}, since="3.1 sm_32")
def shf() -> None:
    """Shift the 64 bits of `b` (high) and `a` (low) by `c`; a left shift gives the high word, a right shift the low."""


@form("shl.type d, a, b", type=BITS, types={"b": "u32"})
def shl() -> None:
    """Shift `a` left by `b` bits; counts at or above the width of the type give zero."""


@form("shr.type d, a, b", type="b16 b32 b64 u16 u32 u64 s16 s32 s64", types={"b": "u32"})
def shr() -> None:
    """Shift `a` right by `b` bits, filling with zeros, or with the sign for signed types."""
