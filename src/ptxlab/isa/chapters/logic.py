"""Logic and shift instructions (PTX ISA 9.7.8)."""

from ..bits import shift_left, shift_right
from ..form import Modifiers, form
from ..machine import Machine, Value
from ..operation import computes

BITS = "b16 b32 b64"


@form("and.type d, a, b", type=BITS)
@form("and.pred d, {!}a, {!}b")
@computes("and")
def and_(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Give the bits that are set in both `a` and `b`."""
    return a & b


@form("or.type d, a, b", type=BITS)
@form("or.pred d, {!}a, {!}b")
@computes("or")
def or_(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Give the bits that are set in `a`, in `b` or in both."""
    return a | b


@form("xor.type d, a, b", type=BITS)
@form("xor.pred d, {!}a, {!}b")
@computes("xor")
def xor(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Give the bits that are set in exactly one of `a` and `b`."""
    return a ^ b


@form("not.type d, a", type=BITS)
@form("not.pred d, {!}a")
@computes("not")
def not_(k: Machine, m: Modifiers, a: Value) -> Value:
    """Invert every bit of `a`."""
    return ~a


@form("cnot.type d, a", type=BITS)
def cnot(k: Machine, m: Modifiers, a: Value) -> Value:
    """Negate as C does: give 1 where `a` is zero, else 0."""
    return k.select(a == 0, k.constant(m.type, 1), 0)


@form("lop3.b32 d, a, b, c, lut", types={"d": "b32 sink", "lut": "imm"}, since="4.3 sm_50")
@form(
    "lop3.bool.b32 d|p, a, b, c, lut, {!}q",
    bool="or and",
    types={"d": "b32 sink", "p": "pred", "lut": "imm", "q": "pred"},
    writes="d p",
    since="8.2 sm_70",
)
def lop3(
    k: Machine, m: Modifiers, a: Value, b: Value, c: Value, lut: int, q: Value | None = None
) -> Value | tuple[Value, Value]:
    """Combine three values bit by bit as the truth table `lut` says: 8 bits, indexed by a bit of `a`, `b` and `c`.

    With `.or` or `.and`, `p` is whether the result is not zero, combined with `q`.
    """
    result = k.constant("b32", 0)
    for row in range(8):
        if lut >> row & 1:
            result = result | (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    if q is None:
        return result
    return result, (result != 0) & q if m.bool == "and" else (result != 0) | q


@form("shf.l.mode.b32 d, a, b, c", mode="clamp wrap", types={"c": "u32"}, since="3.1 sm_32")
def shf_l(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Shift the 64 bits of `b` (high) and `a` (low) left by `c`, clamped to 32 or wrapped; give the high word."""
    return k.unpack(k.pack((a, b), "b64") << _funnel_count(k, m, c), "b32")[1]


@form("shf.r.mode.b32 d, a, b, c", mode="clamp wrap", types={"c": "u32"}, since="3.1 sm_32")
def shf_r(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Shift the 64 bits of `b` (high) and `a` (low) right by `c`, clamped to 32 or wrapped; give the low word."""
    return k.unpack(k.pack((a, b), "b64") >> _funnel_count(k, m, c), "b32")[0]


def _funnel_count(k: Machine, m: Modifiers, c: Value) -> Value:
    return c & 31 if m.mode == "wrap" else k.select(c < 32, c, 32)


@form("shl.type d, a, b", type=BITS, types={"b": "u32"})
@computes("left-shift")
def shl(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Shift `a` left by `b` bits; counts at or above the width of the type give zero."""
    return shift_left(k, a, b)


@form("shr.type d, a, b", type="b16 b32 b64 u16 u32 u64 s16 s32 s64", types={"b": "u32"})
@computes("right-shift")
def shr(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Shift `a` right by `b` bits, filling with zeros, or with the sign for signed types."""
    return shift_right(k, a, b)
