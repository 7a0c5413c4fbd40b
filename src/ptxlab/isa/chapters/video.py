"""Video instructions: arithmetic on bytes and halves chosen from 32-bit registers (PTX ISA 9.7.18).

A scalar one works on a part of `a` and of `b` and can then combine the result with `c`: by a second operation, or by
putting it into the part of `c` that `d` selects. A SIMD one works on two halves or four bytes, and writes the lanes
that `d` selects over those of `c`, or adds all of them up with `c`.

An H200 has none of the scalar ones: ptxas writes ordinary instructions for them, and these clamp and compare in ways
of their own. The semantics below are what they compute, which is not always what the manual says; comments say where.
With `d.h1`, ptxas 13.0 writes the upper half of the result; as with ptxas 13.4 and in the manual, it is the lower one
here.
"""

from collections.abc import Callable

from ..bits import larger, limits, saturate, smaller
from ..form import Modifiers, Slots, form
from ..machine import Machine, Value
from .compare import INTEGERS

SIGNS = "u32 s32"
SECOND = "add min max"
ORDER = "eq ne lt le gt ge"

SCALAR = {"d": "dtype", "a": "atype select(part)", "b": "btype select(part)"}
# What the forms of an instruction have in common: alone, with a second operation, merged into a part of `c`.
ALONE: Slots = {"dtype": SIGNS, "atype": SIGNS, "btype": SIGNS, "types": SCALAR, "since": "2.0 sm_20"}
THEN: Slots = {**ALONE, "op2": SECOND, "types": {**SCALAR, "c": "dtype"}}
INTO: Slots = {**ALONE, "types": {**SCALAR, "d": "dtype select(part)", "c": "dtype"}}
# And of the SIMD ones, on halves and on bytes.
LANES: Slots = {"dtype": SIGNS, "atype": SIGNS, "btype": SIGNS, "since": "3.0 sm_30"}
HALVES: Slots = {**LANES, "types": {
    "d": "dtype select(half_mask)", "a": "atype select(halves) reg", "b": "btype select(halves) reg", "c": "dtype reg",
}}  # fmt: skip
BYTES: Slots = {**LANES, "types": {
    "d": "dtype select(byte_mask)", "a": "atype select(bytes) reg", "b": "btype select(bytes) reg", "c": "dtype reg",
}}  # fmt: skip
OnLanes = Callable[[Machine, Modifiers, Value, Value], Value]


@form("vadd.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vadd.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vadd.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vadd(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Add a part of `a` and a part of `b`."""
    x, y = _part(k, "a", a), _part(k, "b", b)
    return _combine(k, m, _word(k, _clamp(k, m, x + y)), c)


@form("vsub.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vsub.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vsub.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vsub(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Subtract a part of `b` from a part of `a`."""
    x, y = _part(k, "a", a), _part(k, "b", b)
    return _combine(k, m, _word(k, _clamp(k, m, x - y)), c)


@form("vabsdiff.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vabsdiff.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vabsdiff.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vabsdiff(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Give the absolute difference of a part of `a` and a part of `b`."""
    x, y = _part(k, "a", a), _part(k, "b", b)
    return _combine(k, m, _clamp(k, m, larger(k, x - y, y - x)), c)


@form("vmin.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vmin.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vmin.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vmin(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Give the smaller of a part of `a` and a part of `b`."""
    x, y = _part(k, "a", a), _part(k, "b", b)
    return _combine(k, m, _clamp(k, m, smaller(k, x, y)), c)


@form("vmax.dtype.atype.btype{.sat} d, a, b", **ALONE)
@form("vmax.dtype.atype.btype{.sat}.op2 d, a, b, c", **THEN)
@form("vmax.dtype.atype.btype{.sat} d, a, b, c", **INTO)
def vmax(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Give the larger of a part of `a` and a part of `b`."""
    x, y = _part(k, "a", a), _part(k, "b", b)
    return _combine(k, m, _clamp(k, m, larger(k, x, y)), c)


SHIFT: Slots = {"btype": "u32", "mode": "clamp wrap"}


@form("vshl.dtype.atype.btype{.sat}.mode d, a, b", **ALONE | SHIFT)
@form("vshl.dtype.atype.btype{.sat}.mode.op2 d, a, b, c", **THEN | SHIFT)
@form("vshl.dtype.atype.btype{.sat}.mode d, a, b, c", **INTO | SHIFT)
def vshl(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Shift a part of `a` left by a part of `b`, a count that is clamped to 32 or wraps around."""
    shifted = _part(k, "a", a) << _count(k, m, b)
    if m.sat:  # PTX ISA 9.7.18.1: what is clamped has 34 bits
        shifted = _word(k, saturate(k, shifted << 30 >> 30, m.dtype))
    return _combine(k, m, shifted, c)


@form("vshr.dtype.atype.btype{.sat}.mode d, a, b", **ALONE | SHIFT)
@form("vshr.dtype.atype.btype{.sat}.mode.op2 d, a, b, c", **THEN | SHIFT)
@form("vshr.dtype.atype.btype{.sat}.mode d, a, b, c", **INTO | SHIFT)
def vshr(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Shift a part of `a` right by a part of `b`, a count that is clamped to 32 or wraps around."""
    shifted = _part(k, "a", a) >> _count(k, m, b)
    if m.sat:  # as in `vshl`, to 32 bits even where `d` is a part; the manual clamps to the part
        shifted = _word(k, saturate(k, shifted, m.dtype))
    return _combine(k, m, shifted, c)


SCALE: Slots = {**ALONE, "scale": "shr7 shr15"}
# Either the product (by a minus sign on `a` or on `b`, but not on both) or `c` may be negated.
SIGNED = {"d": "dtype", "a": "atype select(part) minus", "b": "btype select(part) minus", "c": "dtype minus"}


@form("vmad.dtype.atype.btype{.sat}{.scale} d, a, b, c", **SCALE | {"types": SIGNED})
@form("vmad.dtype.atype.btype.po{.sat}{.scale} d, a, b, c", **SCALE | {"types": {**SCALAR, "c": "dtype"}})
def vmad(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply a part of `a` by a part of `b`, add `c` (and 1 with `.po`), and shift the sum right by 7 or 15 bits."""
    flip = k.has_minus("a") != k.has_minus("b")
    # The manual has the words of u32 multiplied and added as such; they are taken with a sign, whatever their types.
    product = _word(k, _part(k, "a", a)) * _word(k, _part(k, "b", b))
    addend = k.cast(k.reinterpret(c, "s32"), "s64")
    total = (-product if flip else product) + (-addend if k.has_minus("c") else addend)
    if m.po:
        total = total + 1
    signed = "s32" in (m.atype, m.btype) or flip or k.has_minus("c")
    result = k.reinterpret(total, "s64" if signed else "u64") >> {"shr7": 7, "shr15": 15}.get(m.scale, 0)
    if m.sat:
        result = saturate(k, k.reinterpret(result, "s64"), "s32" if signed else "u32")
    return k.cast(result, m.dtype)


TEST: Slots = {"cmp": ORDER, "atype": SIGNS, "btype": SIGNS}
PARTS = {"d": "u32", "a": "atype select(part)", "b": "btype select(part)"}


@form("vset.atype.btype.cmp d, a, b", types=PARTS, since="2.0 sm_20", **TEST)
@form("vset.atype.btype.cmp.op2 d, a, b, c", op2=SECOND, types={**PARTS, "c": "u32"}, since="2.0 sm_20", **TEST)
@form(
    "vset.atype.btype.cmp d, a, b, c", types={**PARTS, "d": "u32 select(part)", "c": "u32"}, since="2.0 sm_20", **TEST
)
def vset(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Compare a part of `a` with a part of `b`: 1 if it holds, else 0."""
    return _combine(k, m, k.cast(INTEGERS[m.cmp](_part(k, "a", a), _part(k, "b", b)), "s64"), c)


def _on_lanes(syntax: str, halves: Slots, bytes: Slots) -> Callable[[OnLanes], OnLanes]:
    """Declare an instruction on halves (`vadd2`) and on bytes (`vadd4`) by what it gives for one pair of lanes.

    `#` in the syntax is the number of lanes, `{}` in the docstring says what they are. Each has a second form, which
    adds the results to `c`.
    """

    def declare(function: OnLanes) -> OnLanes:
        for count, lane, lanes, how in (
            (2, "h", "two pairs of halves", halves),
            (4, "b", "four pairs of bytes", bytes),
        ):
            semantics = _semantics_on(lane, function)
            semantics.__doc__ = (function.__doc__ or "").format(lanes)
            written = syntax.replace("#", str(count))
            form(f"{written} d, a, b, c", **how)(semantics)
            form(f"{written.removesuffix('{.sat}')}.add d, a, b, c", **how)(semantics)
        return function

    return declare


def _semantics_on(lane: str, function: OnLanes) -> Callable[[Machine, Modifiers, Value, Value, Value], Value]:
    def semantics(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
        return _each(k, m, lane, lambda x, y: function(k, m, x, y), a, b, c)

    return semantics


@_on_lanes("vadd#.dtype.atype.btype{.sat}", HALVES, BYTES)
def vadd_lanes(k: Machine, m: Modifiers, x: Value, y: Value) -> Value:
    """Add {}."""
    return x + y


@_on_lanes("vsub#.dtype.atype.btype{.sat}", HALVES, BYTES)
def vsub_lanes(k: Machine, m: Modifiers, x: Value, y: Value) -> Value:
    """Subtract {}."""
    return x - y


@_on_lanes("vavrg#.dtype.atype.btype{.sat}", HALVES, BYTES)
def vavrg_lanes(k: Machine, m: Modifiers, x: Value, y: Value) -> Value:
    """Give the averages of {}, rounded away from zero."""
    return k.select(x + y < 0, x + y, x + y + 1) >> 1


@_on_lanes("vabsdiff#.dtype.atype.btype{.sat}", HALVES, BYTES)
def vabsdiff_lanes(k: Machine, m: Modifiers, x: Value, y: Value) -> Value:
    """Give the absolute differences of {}; with `.add`, their sum is what block matching needs."""
    return larger(k, x - y, y - x)


@_on_lanes("vmin#.dtype.atype.btype{.sat}", HALVES, BYTES)
def vmin_lanes(k: Machine, m: Modifiers, x: Value, y: Value) -> Value:
    """Give the smaller ones of {}."""
    return smaller(k, x, y)


@_on_lanes("vmax#.dtype.atype.btype{.sat}", HALVES, BYTES)
def vmax_lanes(k: Machine, m: Modifiers, x: Value, y: Value) -> Value:
    """Give the larger ones of {}."""
    return larger(k, x, y)


TEST_HALVES: Slots = {**TEST, "since": "3.0 sm_30", "types": {
    **HALVES["types"], "d": "u32 select(half_mask)", "c": "u32 reg",
}}  # fmt: skip
TEST_BYTES: Slots = {**TEST, "since": "3.0 sm_30", "types": {
    **BYTES["types"], "d": "u32 select(byte_mask)", "c": "u32 reg",
}}  # fmt: skip


@_on_lanes("vset#.atype.btype.cmp", TEST_HALVES, TEST_BYTES)
def vset_lanes(k: Machine, m: Modifiers, x: Value, y: Value) -> Value:
    """Compare {}: 1 in each lane where it holds, else 0."""
    return k.cast(INTEGERS[m.cmp](x, y), "s32")


def _part(k: Machine, name: str, value: Value) -> Value:
    """The part of an operand that the instruction chooses, extended by the sign of its type, in 64 bits."""
    chosen = k.selection(name)
    if chosen is not None:
        value = k.unpack(value, f"{value.type.kind}{_BITS[chosen[0]]}")[int(chosen[1])]
    return k.cast(value, "s64")


_BITS = {"b": 8, "h": 16}


def _word(k: Machine, value: Value) -> Value:
    """The low 32 bits with their sign, in 64 bits."""
    return k.cast(k.cast(value, "s32"), "s64")


def _clamp(k: Machine, m: Modifiers, result: Value) -> Value:
    """The result, with `.sat` clamped to the type of `d` or of the part of it that is written.

    The manual has both ends clamped. On the GPU a part becomes its greatest number even where the result is negative,
    and what is too large for a u32 wraps around.
    """
    if not m.sat:
        return result
    chosen = k.selection("d")
    if chosen is not None:
        _, greatest = limits(f"{m.dtype[0]}{_BITS[chosen[0]]}")
        return k.select(k.reinterpret(result, "u64") <= greatest, result, greatest)
    return saturate(k, result, "s32") if m.dtype == "s32" else larger(k, result, k.constant("s64", 0))


def _combine(k: Machine, m: Modifiers, result: Value, c: Value | None) -> Value:
    """The result of a scalar instruction combined with `c`, or put into the part of `c` that `d` selects."""
    type = m.dtype or "u32"
    chosen = k.selection("d")
    if c is not None and m.op2:
        # All 64 bits of the result are compared with `c`, unsigned ones as a number without a sign; those of `vadd`,
        # `vsub` and clamped shifts are copies of bit 31, so that 0x80000000 is above each u32. The manual says neither,
        # nor that it is the type of `a` by which `vset` compares.
        kind = (m.dtype or m.atype)[0]
        result = k.reinterpret(result, f"{kind}64")
        other = k.cast(k.reinterpret(c, f"{kind}32"), f"{kind}64")
        result = {"add": result + other, "min": smaller(k, result, other), "max": larger(k, result, other)}[m.op2]
    if c is None or chosen is None:
        return k.cast(result, type)
    part = f"{type[0]}{_BITS[chosen[0]]}"
    parts = list(k.unpack(c, part))
    parts[int(chosen[1])] = k.cast(result, part)
    return k.pack(parts, type)


def _count(k: Machine, m: Modifiers, b: Value) -> Value:
    """How far `vshl` and `vshr` shift."""
    count = k.cast(_part(k, "b", b), "u32")
    return count & 31 if m.mode == "wrap" else k.select(count < 32, count, 32)


def _each(
    k: Machine, m: Modifiers, lane: str, function: Callable[[Value, Value], Value], a: Value, b: Value, c: Value
) -> Value:
    """The function of each pair of halves or bytes that `a` and `b` choose, added to `c` or written over its lanes."""
    type = m.dtype or "u32"
    narrow = f"{type[0]}{_BITS[lane]}"
    first, second, mask = _DEFAULTS[lane]
    xs = _lanes(k, a, b, k.selection("a") or first, m.atype[0])
    ys = _lanes(k, a, b, k.selection("b") or second, m.btype[0])
    results = [function(x, y) for x, y in zip(xs, ys, strict=True)]
    if m.sat:
        results = [saturate(k, result, narrow) for result in results]
    written = (k.selection("d") or mask)[1:]
    if m.add:
        for position in written:
            c = c + k.cast(results[int(position)], type)
        return c
    lanes = list(k.unpack(c, narrow))
    for position in written:
        lanes[int(position)] = k.cast(results[int(position)], narrow)
    return k.pack(lanes, type)


_DEFAULTS = {"h": ("h10", "h32", "h10"), "b": ("b3210", "b7654", "b3210")}


def _lanes(k: Machine, a: Value, b: Value, chosen: str, kind: str) -> list[Value]:
    """The lanes of `a` and `b` that a selection names, the lowest first, in 32 bits."""
    narrow = f"{kind}{_BITS[chosen[0]]}"
    pool = k.unpack(a, narrow) + k.unpack(b, narrow)
    return [k.cast(pool[int(digit)], "s32") for digit in reversed(chosen[1:])]
