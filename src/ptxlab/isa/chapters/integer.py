"""Integer arithmetic instructions (PTX ISA 9.7.1)."""

from collections.abc import Sequence

from ..bits import (
    carryless_product,
    count_leading_zeros,
    each_lane,
    extend,
    find_set_bit,
    high_half,
    larger,
    low_ones,
    ones_32,
    ones_64,
    reversed_32,
    reversed_64,
    saturate,
    shift_left,
    shift_right,
    smaller,
)
from ..form import Modifiers, Specification, form
from ..machine import Machine, Value
from ..operation import computes

WORDS = "u16 u32 u64 s16 s32 s64"
PAIRS = ("u16x2 s16x2", "8.0 sm_90")
BYTES = ("u8x4 s8x4", "9.2 sm_120f")
_U64 = dict.fromkeys("dabc", "u64")


@form("add.type d, a, b", type=(WORDS, PAIRS, BYTES))
@form("add.sat.type d, a, b", type=("s32", ("u32 u16x2 s16x2 u8x4 s8x4", "9.2 sm_120f")))
@computes("sum")
def add(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Add two integers; `.sat` clamps the sum to the range of the type instead of wrapping around."""

    def one(a: Value, b: Value) -> Value:
        return _saturated(k, k.cast(a, "s64") + k.cast(b, "s64"), a) if m.sat else a + b

    return each_lane(k, one, a, b)


@form("sub.type d, a, b", type=(WORDS, BYTES))
@form("sub.sat.type d, a, b", type=("s32", BYTES))
@computes("difference")
def sub(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Subtract `b` from `a`; `.sat` clamps the difference to the range of the type instead of wrapping around."""

    def one(a: Value, b: Value) -> Value:
        return _saturated(k, k.cast(a, "s64") - k.cast(b, "s64"), a) if m.sat else a - b

    return each_lane(k, one, a, b)


def _saturated(k: Machine, value: Value, like: Value) -> Value:
    """`value` clamped to the range of the type of `like`, and of that type."""
    return k.cast(saturate(k, value, like.type.name), like.type.name)


@form("mul.lo.type d, a, b", type=WORDS)
@computes("product")
def mul_lo(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Multiply and keep the low half of the product."""
    return a * b


@form("mul.hi.type d, a, b", type=WORDS)
def mul_hi(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Multiply and keep the high half of the product."""
    return high_half(k, a, b)


@form("mul.wide.type d, a, b", type="u16 u32 s16 s32", types={"d": "2*type"})
@computes("product")
def mul_wide(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Multiply and keep all of the product, in a register twice as wide."""
    return _product(k, a, b)


def _product(k: Machine, a: Value, b: Value) -> Value:
    """All of the product, in a type twice as wide."""
    wider = f"{a.type.kind}{2 * a.type.bits}"
    return k.cast(a, wider) * k.cast(b, wider)


@form("mad.lo.type d, a, b, c", type=WORDS)
@computes("product-sum")
def mad_lo(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply `a` by `b`, keep the low half of the product, and add `c`."""
    return a * b + c


@form("mad.hi.type d, a, b, c", type=WORDS)
@form("mad.hi.sat.s32 d, a, b, c")
def mad_hi(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply `a` by `b`, keep the high half of the product, and add `c`; `.sat` clamps that sum to the range."""
    return add(k, m, high_half(k, a, b), c)


@form("mad.wide.type d, a, b, c", type="u16 u32 s16 s32", types={"d": "2*type", "c": "2*type"})
@computes("product-sum")
def mad_wide(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply `a` by `b` and add `c`, which is as wide as the product."""
    return _product(k, a, b) + c


@form("clmad.lo.u64 d, a, b, c", types=_U64, since="9.3 sm_80")
def clmad_lo(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply without carries, keep the low half of the product, and add `c` without carries."""
    return k.call(carryless_product, a, b, 0, type="u64") ^ c


@form("clmad.hi.u64 d, a, b, c", types=_U64, since="9.3 sm_80")
def clmad_hi(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply without carries, keep the high half of the product, and add `c` without carries."""
    return k.call(carryless_product, a, b, 64, type="u64") ^ c


@form("mul24.lo.type d, a, b", type="u32 s32")
@computes("short-product")
def mul24_lo(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Multiply the low 24 bits of `a` and `b`; the 48-bit product gives its low 32 bits."""
    return _low_24(a) * _low_24(b)


@form("mul24.hi.type d, a, b", type="u32 s32")
def mul24_hi(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Multiply the low 24 bits of `a` and `b`; the 48-bit product gives its high 32 bits."""
    return k.cast(_product(k, _low_24(a), _low_24(b)) >> 16, a.type.name)


@form("mad24.lo.type d, a, b, c", type="u32 s32")
@computes("short-product-sum")
def mad24_lo(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply the low 24 bits of `a` and `b`, keep the low 32 bits of the product, and add `c`."""
    return mul24_lo(k, m, a, b) + c


@form("mad24.hi.type d, a, b, c", type="u32 s32")
@form("mad24.hi.sat.s32 d, a, b, c")
def mad24_hi(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply the low 24 bits of `a` and `b`, keep the high 32 of the product's 48 bits, and add `c`."""
    return add(k, m, mul24_hi(k, m, a, b), c)


def _low_24(a: Value) -> Value:
    """The low 24 bits of a word, extended by the sign of its type."""
    return a << 8 >> 8


@form("sad.type d, a, b, c", type=WORDS)
def sad(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Add the absolute difference of `a` and `b` to `c`."""
    return c + k.select(a < b, b - a, a - b)


@form("div.type d, a, b", type=WORDS)
@computes("quotient")
def div(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Divide `a` by `b`, rounding towards zero."""
    # PTX ISA 9.7.1.8 leaves the quotient by zero open: ptxas gives all ones. The one that does not fit wraps around.
    quotient = a // _divisor(k, b)
    if b.type.kind == "s":
        quotient = k.select(b == -1, -a, quotient)
    return k.select(b == 0, k.constant(a.type.name, -1), quotient)


@form("rem.type d, a, b", type=WORDS)
@computes("remainder")
def rem(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Give the remainder of dividing `a` by `b`."""
    # PTX ISA 9.7.1.9 leaves the remainder of a division by zero open: ptxas gives all ones.
    return k.select(b == 0, k.constant(a.type.name, -1), a % _divisor(k, b))


def _divisor(k: Machine, b: Value) -> Value:
    """`b`, or 1 where a division by `b` has no quotient or one that may not fit."""
    unfit = (b == 0) | (b == -1) if b.type.kind == "s" else b == 0
    return k.select(unfit, k.constant(b.type.name, 1), b)


@form("abs.type d, a", type="s16 s32 s64")
@computes("magnitude")
def abs(k: Machine, m: Modifiers, a: Value) -> Value:
    """Give the absolute value of `a`."""
    return k.select(a < 0, -a, a)  # the least integer stays as it is


@form("neg.type d, a", type=("s16 s32 s64", ("s8x4", "9.2 sm_120f")))
@computes("negation")
def neg(k: Machine, m: Modifiers, a: Value) -> Value:
    """Change the sign of `a`."""
    return each_lane(k, lambda a: -a, a)


@form("min.type d, a, b", type=(WORDS, PAIRS, BYTES))
@form("min.relu.type d, a, b", name="min", type="s32 s16x2", since="8.0 sm_90")
@computes("minimum")
def min(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Give the smaller of two integers; `.relu` gives zero where that is negative."""

    def one(a: Value, b: Value) -> Value:
        chosen = smaller(k, a, b)
        return k.select(chosen < 0, k.constant(chosen.type.name, 0), chosen) if m.relu else chosen

    return each_lane(k, one, a, b)


@form("max.type d, a, b", type=(WORDS, PAIRS, BYTES))
@form("max.relu.type d, a, b", name="max", type="s32 s16x2", since="8.0 sm_90")
@computes("maximum")
def max(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Give the larger of two integers; `.relu` gives zero where that is negative."""

    def one(a: Value, b: Value) -> Value:
        chosen = larger(k, a, b)
        return k.select(chosen < 0, k.constant(chosen.type.name, 0), chosen) if m.relu else chosen

    return each_lane(k, one, a, b)


@form("popc.type d, a", type="b32 b64", types={"d": "u32"}, since="2.0 sm_20")
def popc(k: Machine, m: Modifiers, a: Value) -> Value:
    """Count the bits of `a` that are set."""
    return k.call(ones_32 if m.type == "b32" else ones_64, a, type="u32")


@form("clz.type d, a", type="b32 b64", types={"d": "u32"}, since="2.0 sm_20")
def clz(k: Machine, m: Modifiers, a: Value) -> Value:
    """Count the zero bits above the highest bit of `a` that is set."""
    return count_leading_zeros(k, a)


@form("bfind.type d, a", type="u32 u64 s32 s64", types={"d": "u32"}, since="2.0 sm_20")
@form("bfind.shiftamt.type d, a", name="bfind", type="u32 u64 s32 s64", types={"d": "u32"}, since="2.0 sm_20")
def bfind(k: Machine, m: Modifiers, a: Value) -> Value:
    """Give the position of the highest bit of `a` that is not a copy of the sign, all ones where there is none.

    With `.shiftamt` it is how far to shift left to bring that bit to the top.
    """
    last = a.type.width - 1
    zeros = count_leading_zeros(k, a ^ (a >> last) if a.type.kind == "s" else a)
    if m.shiftamt:
        return k.select(zeros <= last, zeros, -1)
    return k.constant("u32", last) - zeros


@form("fns.b32 d, mask, base, offset", since="5.1 sm_30")  # the manual says 6.0
def fns(k: Machine, m: Modifiers, mask: Value, base: Value, offset: Value) -> Value:
    """Find the set bit of `mask` that is number `offset` counted from bit `base`, upwards or downwards."""
    return k.call(find_set_bit, mask, base, k.reinterpret(offset, "s32"), type="b32")


@form("brev.type d, a", type="b32 b64", since="2.0 sm_20")
def brev(k: Machine, m: Modifiers, a: Value) -> Value:
    """Reverse the order of the bits of `a`."""
    return k.call(reversed_32 if m.type == "b32" else reversed_64, a, type=m.type)


COUNT = "u32 within(0..255)"


@form("bfe.type d, a, b, c", type="u32 u64 s32 s64", types={"b": COUNT, "c": COUNT}, since="2.0 sm_20")
def bfe(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Extract the field of `c` bits that starts at bit `b` of `a`, extended by zeros or by its sign."""
    return extend(k, shift_right(k, a, b & 0xFF), c & 0xFF)


@form("bfi.type f, a, b, c, d", type="b32 b64", types={"c": COUNT, "d": COUNT}, writes="f", since="2.0 sm_20")
def bfi(k: Machine, m: Modifiers, a: Value, b: Value, c: Value, d: Value) -> Value:
    """Insert the low `d` bits of `a` into `b`, starting at bit `c`."""
    field = shift_left(k, low_ones(k, d & 0xFF, m.type), c & 0xFF)
    return b & ~field | shift_left(k, a, c & 0xFF) & field


@form("szext.mode.type d, a, b", mode="clamp wrap", type="u32 s32", types={"b": "u32"}, since="7.6 sm_70")
def szext(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Keep the low `b` bits of `a` and fill the rest with zeros or with the sign of what is kept."""
    return extend(k, a, b & 31 if m.mode == "wrap" else b)


@form("bmsk.mode.b32 d, a, b", mode="clamp wrap", types={"d": "u32", "a": "u32", "b": "u32"}, since="7.6 sm_70")
def bmsk(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Make a mask of `b` set bits that starts at bit `a`."""
    if m.mode == "wrap":
        a, b = a & 31, b & 31
    return shift_left(k, low_ones(k, b, "u32"), a)


def _sum_of_products(m: Modifiers) -> str:
    return "u32" if m.atype == m.btype == "u32" else "s32"


_DOT: dict[str, Specification] = {"d": _sum_of_products, "a": "atype", "b": "btype", "c": _sum_of_products}


@form("dp4a.atype.btype d, a, b, c", atype="u32 s32", btype="u32 s32", types=_DOT, since="5.0 sm_61")
def dp4a(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Add to `c` the dot product of the four bytes of `a` with the four bytes of `b`."""
    bytes_of_a, bytes_of_b = k.unpack(a, f"{m.atype[0]}8"), k.unpack(b, f"{m.btype[0]}8")
    return _dot(k, bytes_of_a, bytes_of_b, c)


def _dot(k: Machine, a: Sequence[Value], b: Sequence[Value], c: Value) -> Value:
    """`c` and the products of `a` and `b`, added up in 32 bits."""
    for one, other in zip(a, b, strict=True):
        c = c + k.cast(one, "u32") * k.cast(other, "u32")
    return c


@form("dp2a.lo.atype.btype d, a, b, c", atype="u32 s32", btype="u32 s32", types=_DOT, since="5.0 sm_61")
def dp2a_lo(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Add to `c` the dot product of the two halves of `a` with the low two bytes of `b`."""
    return _dot(k, k.unpack(a, f"{m.atype[0]}16"), k.unpack(b, f"{m.btype[0]}8")[:2], c)


@form("dp2a.hi.atype.btype d, a, b, c", atype="u32 s32", btype="u32 s32", types=_DOT, since="5.0 sm_61")
def dp2a_hi(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Add to `c` the dot product of the two halves of `a` with the high two bytes of `b`."""
    return _dot(k, k.unpack(a, f"{m.atype[0]}16"), k.unpack(b, f"{m.btype[0]}8")[2:], c)
