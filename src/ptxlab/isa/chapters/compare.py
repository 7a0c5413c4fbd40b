"""Comparison and selection, for all types including the half-precision ones (PTX ISA 9.7.6 and 9.7.7).

Which comparisons there are depends on the type compared: untyped bits are equal or not, unsigned values also know
`.lo .ls .hi .hs`, floats also the unordered comparisons (`.ltu`: less, or one is NaN) and `.num` and `.nan`.
"""

import operator
from collections.abc import Callable

from ..bits import each_lane
from ..form import Modifiers, Slots, form
from ..machine import Machine, Value
from ..operation import computes

BITS = "b16 b32 b64"
UNSIGNED = "u16 u32 u64"
SIGNED = "s16 s32 s64"
ALL = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"

EQUAL = "eq ne"
ORDER = "eq ne lt le gt ge"
UNSIGNED_ORDER = "eq ne lt le gt ge lo ls hi hs"
FLOAT_ORDER = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"

HALF = "4.2 sm_53"

# The predicate `c` is there exactly when a Boolean operation combines it with the comparison.
BOOL: Slots = {"bool": "and or xor", "present": {"c": "bool"}}
RESULT = {"p": "pred sink"}
PAIR = {"p": "pred sink", "q": "pred sink"}
SETP: Slots = {**BOOL, "writes": "p q", "types": {**PAIR, "c": "pred"}}
SETP_ONE: Slots = {**BOOL, "writes": "p", "types": {**RESULT, "c": "pred"}}
SET: Slots = {**BOOL, "types": {"d": "dtype", "a": "stype", "b": "stype", "c": "pred"}}

# With the bf16 formats, ptxas wants a register for `c` and takes integer registers for results.
BRAIN = "7.8 sm_90"
BRAIN_RESULT = {"bf16": "u16 vectors", "bf16x2": "bf16x2 untyped"}
BRAIN_PAIR = "bf16x2 predicate"
SETP_BRAIN: Slots = {**SETP_ONE, "types": {**RESULT, "c": "pred reg"}, "since": BRAIN}
SETP_BRAIN_PAIR: Slots = {**SETP, "types": {**PAIR, "b": BRAIN_PAIR, "c": "pred reg"}, "since": BRAIN}
SET_BRAIN: Slots = {
    **BOOL,
    "types": {
        "d": lambda m: BRAIN_RESULT.get(m.dtype, m.dtype),
        "a": "stype",
        "b": lambda m: BRAIN_PAIR if m.stype == "bf16x2" else "stype",
        "c": "pred reg",
    },
    "since": BRAIN,
}

WORDS = ("u32 s32 f32", ("f16", HALF))
SLCT = {"d": "dtype", "a": "dtype", "b": "dtype", "c": "ctype"}


@form("setp.cmp{.bool}.type p{|q}, a, b{, {!}c}", cmp=EQUAL, type=BITS, **SETP)
@form("setp.cmp{.bool}.type p{|q}, a, b{, {!}c}", cmp=UNSIGNED_ORDER, type=UNSIGNED, **SETP)
@form("setp.cmp{.bool}.type p{|q}, a, b{, {!}c}", cmp=ORDER, type=SIGNED, **SETP)
@form("setp.cmp{.bool}{.ftz}.f32 p{|q}, a, b{, {!}c}", cmp=FLOAT_ORDER, **SETP)
@form("setp.cmp{.bool}.f64 p{|q}, a, b{, {!}c}", cmp=FLOAT_ORDER, **SETP)
@form("setp.cmp{.bool}{.ftz}.f16 p, a, b{, {!}c}", cmp=FLOAT_ORDER, since=HALF, **SETP_ONE)
@form("setp.cmp{.bool}{.ftz}.f16x2 p{|q}, a, b{, {!}c}", cmp=FLOAT_ORDER, since=HALF, **SETP)
@form("setp.cmp{.bool}.bf16 p, a, b{, {!}c}", cmp=FLOAT_ORDER, **SETP_BRAIN)
@form("setp.cmp{.bool}.bf16x2 p{|q}, a, b{, {!}c}", cmp=FLOAT_ORDER, **SETP_BRAIN_PAIR)
@computes("comparison")
def setp(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value | tuple[Value, Value]:
    """Compare `a` with `b`, combine the answer with `c`, and put it into predicate `p` and its opposite into `q`.

    Packed types compare both halves: the low one gives `p`, the high one `q`.
    """
    if a.type.lanes == 2:
        p, q = _compare_halves(k, m, a, b)
        return combine(m, p, c), combine(m, q, c)
    holds = compare(k, m, a, b)
    if m.f16 or m.bf16:
        return combine(m, holds, c)
    return combine(m, holds, c), combine(m, ~holds, c)


@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=EQUAL, dtype=WORDS, stype=BITS, **SET)
@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=UNSIGNED_ORDER, dtype=WORDS, stype=UNSIGNED, **SET)
@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=ORDER, dtype=WORDS, stype=SIGNED, **SET)
@form("set.cmp{.bool}{.ftz}.dtype.stype d, a, b{, {!}c}", cmp=FLOAT_ORDER, dtype=WORDS, stype="f32", **SET)
@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=FLOAT_ORDER, dtype=WORDS, stype="f64", **SET)
@form("set.cmp{.bool}{.ftz}.dtype.stype d, a, b{, {!}c}", cmp=FLOAT_ORDER, dtype="f16", stype="f16", since=HALF, **SET)
@form("set.cmp{.bool}{.ftz}.dtype.stype d, a, b{, {!}c}", cmp=FLOAT_ORDER, dtype="u16 s16 u32 s32", stype="f16",
      since="6.5 sm_53", **SET)  # fmt: skip
@form("set.cmp{.bool}{.ftz}.dtype.stype d, a, b{, {!}c}", cmp=FLOAT_ORDER, dtype=("f16x2", ("u32 s32", "6.5 sm_53")),
      stype="f16x2", since=HALF, **SET)  # fmt: skip
@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=EQUAL, dtype="bf16", stype=BITS, **SET_BRAIN)
@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=UNSIGNED_ORDER, dtype="bf16", stype=UNSIGNED, **SET_BRAIN)
@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=ORDER, dtype="bf16", stype=SIGNED, **SET_BRAIN)
@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=FLOAT_ORDER, dtype="bf16", stype="f16 f32 f64", **SET_BRAIN)
@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=FLOAT_ORDER, dtype="u16 s16 u32 s32 bf16", stype="bf16",
      **SET_BRAIN)  # fmt: skip
@form("set.cmp{.bool}.dtype.stype d, a, b{, {!}c}", cmp=FLOAT_ORDER, dtype="u32 s32 bf16x2", stype="bf16x2",
      **SET_BRAIN)  # fmt: skip
@computes("comparison")
def set(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Compare `a` with `b` and combine the answer with `c`; true gives all ones (integers) or 1.0 (floats), false 0."""
    if a.type.lanes == 2:
        one = {"f16x2": ONE["f16"], "bf16x2": ONE["bf16"]}.get(m.dtype, 0xFFFF)
        halves = (combine(m, holds, c) for holds in _compare_halves(k, m, a, b))
        return k.pack([k.select(holds, k.constant("b16", one), 0) for holds in halves], m.dtype)
    return k.select(combine(m, compare(k, m, a, b), c), k.constant(m.dtype, ONE.get(m.dtype, -1)), 0)


@form("set.cmp.type d, a, b", cmp=UNSIGNED_ORDER, type="u8x4 u16x2", since="9.4 sm_107f")
@form("set.cmp.type d, a, b", cmp=ORDER, type="s8x4 s16x2", since="9.4 sm_107f")
@computes("comparison")
def set_lanes(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Compare each of the packed integers; true gives all ones, false 0."""
    return each_lane(k, lambda x, y: k.select(compare(k, m, x, y), k.constant(x.type.name, -1), 0), a, b)


ONE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000}
INTEGERS: dict[str, Callable[[Value, Value], Value]] = {
    **{name: getattr(operator, name) for name in ORDER.split()},
    "lo": operator.lt,
    "ls": operator.le,
    "hi": operator.gt,
    "hs": operator.ge,
}


def compare(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Whether the comparison `.cmp` holds."""
    if a.type.kind != "f":
        return _holds(m.cmp, a, b)
    if m.ftz:
        a, b = flush(k, a), flush(k, b)
    numbers = (a == a) & (b == b)
    if m.cmp in ("num", "nan"):
        return numbers if m.cmp == "num" else ~numbers
    if m.cmp.endswith("u"):
        return _holds(m.cmp[:-1], a, b) | ~numbers
    return _holds(m.cmp, a, b) & numbers


def _holds(name: str, a: Value, b: Value) -> Value:
    found: Value = INTEGERS[name](a, b)
    return found


def _compare_halves(k: Machine, m: Modifiers, a: Value, b: Value) -> tuple[Value, ...]:
    one = a.type.name.removesuffix("x2")
    return tuple(compare(k, m, *pair) for pair in zip(k.unpack(a, one), k.unpack(b, one), strict=True))


def combine(m: Modifiers, holds: Value, c: Value | None) -> Value:
    """The answer of a comparison, joined with `c` where there is a Boolean operation."""
    if c is None:
        return holds
    return {"and": holds & c, "or": holds | c, "xor": holds ^ c}[m.bool]


def flush(k: Machine, a: Value) -> Value:
    """`.ftz`: a subnormal f32 or f16 as a zero of its sign."""
    exponent = {"f32": 0x7F800000, "f16": 0x7C00}[a.type.name]
    bits = k.reinterpret(a, f"b{a.type.bits}")
    sign = bits & 1 << (a.type.bits - 1)
    return k.reinterpret(k.select(bits & exponent == 0, sign, bits), a.type.name)


@form("selp.type d, a, b, {!}c", type=ALL, types={"c": "pred"})
@computes("selection")
def selp(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Give `a` where predicate `c` is true, else `b`."""
    return k.select(c, a, b)


@form("slct.dtype.ctype d, a, b, c", dtype=ALL, ctype="s32", types=SLCT)
@form("slct{.ftz}.dtype.ctype d, a, b, c", dtype=ALL, ctype="f32", types=SLCT)
@computes("selection")
def slct(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Give `a` where `c` is zero or more, else `b`."""
    if m.ctype == "s32":
        return k.select(c >= 0, a, b)
    return k.select((flush(k, c) if m.ftz else c) >= k.constant("f32", 0), a, b)  # a NaN gives `b`
