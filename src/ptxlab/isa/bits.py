"""Steps that the semantics of several chapters share: shifts of any count, fields of bits, lanes, ranges.

Functions with `k` are parts of semantic functions; those marked `@native` loop, or use what only processors have.
"""

from collections.abc import Callable

from ptxlab.native import (
    count_ones,
    leading_zeros,
    native,
    reverse_bits,
    s32,
    u32,
    u64,
    u128,
)

from .machine import Machine, Value
from .types import Type

WIDER = {16: "b32", 32: "b64", 64: "b128"}
"""A type twice as wide, in which neither a product nor a carry is lost."""


def element(type: Type) -> str:
    """The type of one lane of a packed type."""
    return f"{type.kind}{type.bits}"


def each_lane(k: Machine, function: Callable[..., Value], *values: Value) -> Value:
    """The function of each lane of packed values, or of plain values as they are."""
    type = values[0].type
    if type.lanes == 1:
        return function(*values)
    lanes = zip(*(k.unpack(value, element(type)) for value in values), strict=True)
    return k.pack([function(*lane) for lane in lanes], type.name)


def shift_left(k: Machine, a: Value, count: Value) -> Value:
    """`a << count`; zero for counts at or above the width."""
    width = a.type.width
    return k.select(count < width, a << (count & (width - 1)), 0)


def shift_right(k: Machine, a: Value, count: Value) -> Value:
    """`a >> count`; all copies of the sign, or zeros, for counts at or above the width."""
    last = a.type.width - 1
    if a.type.kind == "s":
        return a >> k.select(count < last, count, last)
    return k.select(count <= last, a >> (count & last), 0)


def low_ones(k: Machine, count: Value, type: str) -> Value:
    """A mask of the low `count` bits; all of them for counts at or above the width."""
    return ~shift_left(k, k.constant(type, -1), count)


def extend(k: Machine, a: Value, count: Value) -> Value:
    """The low `count` bits of `a`, above them zeros or their sign, as the type of `a` has one or not."""
    width = a.type.width
    unused = k.select(count < width, -count & (width - 1), 0)
    return k.select(count == 0, k.constant(a.type.name, 0), a << unused >> unused)


def smaller(k: Machine, a: Value, b: Value) -> Value:
    return k.select(a < b, a, b)


def larger(k: Machine, a: Value, b: Value) -> Value:
    return k.select(a > b, a, b)


def limits(type: str) -> tuple[int, int]:
    """The least and the greatest integer of a type: `limits("s8")` is (-128, 127)."""
    bits = int(type[1:])
    return (-1 << (bits - 1), (1 << (bits - 1)) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def saturate(k: Machine, value: Value, type: str) -> Value:
    """The signed `value` clamped to the range of a narrower type, still as wide as it was."""
    least, greatest = (k.constant(value.type.name, limit) for limit in limits(type))
    return smaller(k, larger(k, value, least), greatest)


@native
def carryless_product(a: u64, b: u64, shift: u32) -> u64:
    """The product of polynomials over two elements, whose coefficients are bits; from bit `shift` up."""
    product: u128 = 0
    for bit in range(64):
        if a >> u64(bit) & 1 != 0:
            product ^= u128(b) << u128(bit)
    return u64(product >> shift)


def high_half(k: Machine, a: Value, b: Value) -> Value:
    """The upper half of the product, read as the types of `a` and `b` say."""
    wider = WIDER[a.type.width]
    product = k.cast(a, wider) * k.cast(b, wider)
    return k.cast(product >> a.type.width, a.type.name)


def count_leading_zeros(k: Machine, a: Value) -> Value:
    """How many zeros are above the highest one, the width if there is none, as u32."""
    return k.call(leading_zeros_32 if a.type.width == 32 else leading_zeros_64, a, type="u32")


@native(inline=True)
def ones_32(a: u32) -> u32:
    return count_ones(a)


@native(inline=True)
def ones_64(a: u64) -> u32:
    return u32(count_ones(a))


@native(inline=True)
def leading_zeros_32(a: u32) -> u32:
    return leading_zeros(u32, a)


@native(inline=True)
def leading_zeros_64(a: u64) -> u32:
    return u32(leading_zeros(u64, a))


@native(inline=True)
def reversed_32(a: u32) -> u32:
    return reverse_bits(u32, a)


@native(inline=True)
def reversed_64(a: u64) -> u64:
    return reverse_bits(u64, a)


@native
def find_set_bit(mask: u32, base: u32, offset: s32) -> u32:
    """The set bit of `mask` that is number `offset` from `base` on, counted from 1 upwards or from -1 downwards.

    Offset 0 asks for the bit at `base` itself. All ones if there is no such bit, or `base` is not a bit; but 0 for the
    offset -2**31, which ptxas negates into itself and then finds to be less than the number of bits.
    """
    if offset == -0x80000000:
        return 0
    missing: s32 = 1 if offset == 0 else offset if offset > 0 else s32(-offset)
    position: s32 = s32(base)
    while 0 <= position < 32:
        if mask >> u32(position) & 1 != 0:
            missing -= 1
            if missing == 0:
                return u32(position)
        if offset == 0:
            return 0xFFFFFFFF
        position += 1 if offset > 0 else -1
    return 0xFFFFFFFF
