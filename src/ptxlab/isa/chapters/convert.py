"""Conversions between types: cvt and cvt.pack (PTX ISA 9.7.9).

The manual gives the scalar conversions two lines and pages of conditions; here each group of types that takes the same
modifiers has a form. Packed formats follow. Of a pair, the first operand or the upper half comes into the upper half.
"""

from collections.abc import Callable, Sequence

from ptxlab.numbers.conversion import (
    convert,
    convert_divided,
    convert_randomly,
    from_s2f6,
    from_signed,
    from_unsigned,
    positive_zero,
    scale,
    to_integer,
    to_s2f6,
    to_whole,
)
from ptxlab.numbers.parameters import BF16, F32, FORMAT, RN, ROUNDING, RS, TF32, modifiers

from ..bits import larger, limits, smaller
from ..floats import bits, is_nan
from ..form import F, Modifiers, Slots, Specification, Values, form
from ..machine import Machine, Value
from ..operation import computes
from ..types import TYPES

_INTEGER = "u8 u16 u32 u64 s8 s16 s32 s64"
_TO_INTEGER = "rni rzi rmi rpi"
_TO_FLOAT = "rn rz rm rp"
_WIDE = {"d": "dtype loose", "a": "atype loose"}
_FTZ = (("ftz", "1.5"),)  # some conversions did not flush subnormal numbers before
_RELU = (("relu", "7.0 sm_80"),)
_SATFINITE = (("satfinite", "8.1 sm_80"),)

# The narrow formats of sm_100, first on single chips, then on their families.
_NARROW = "8.6 sm_100a sm_101a sm_120a | 8.8 sm_100f sm_101f sm_120f"
_FAMILIES = "sm_100f sm_110f sm_120f"
_STOCHASTIC = "8.7 sm_100a | 8.8 sm_103a | 9.4 sm_107a"
_FIXED_POINT = "9.1 sm_100a sm_103a sm_110a sm_120a sm_121a | 9.4 sm_107a"
_RUBIN = "9.4 sm_107f"
_SCALED = {"scale_factor": "scaled_n2_ue8m0"}
_FP8 = "e4m3x2 e5m2x2"
_FP8_SINCE = "7.8 sm_90 | 8.1 sm_89"
_FP6_FP4 = "e2m3x2 e3m2x2 e2m1x2"
_TO_FIXED: Slots = {"rnd": ("rn", ("rz", "9.4 sm_107a")), "present": _SCALED, "since": _FIXED_POINT}


def _can_saturate(m: Modifiers) -> str | None:
    """`.sat` wants values of the source that the result cannot hold."""
    result, source = TYPES[m.dtype], TYPES[m.atype]
    wider = result.bits > source.bits
    holds = wider or result.bits == source.bits if result.kind == source.kind else wider and result.kind == "s"
    return f"every `.{m.atype}` fits in `.{m.dtype}`, so there is no `.sat`" if m.sat and holds else None


def _can_divide(m: Modifiers) -> str | None:
    return "with a scale factor, results are not rounded up" if m.scaled_n1_ue8m0 and m.rnd == "rp" else None


def _to_narrow(dtype: str, source: str, since: str, register: Specification | None = None) -> Callable[[F], F]:
    """A form of conversions to 8, 6 or 4 bits; one scale factor divides both numbers."""
    is_unsigned = dtype == "ue5m3x2"
    head = "cvt.rnd{.satfinite}" if is_unsigned else "cvt.rnd.satfinite{.relu}{.pzo}"
    rnd: Values = "rn rz rp" if is_unsigned else ("rn", ("rz", _RUBIN))
    operands, types = ("a, b", {"a": "f32", "b": "f32"}) if source == "f32" else ("a", {"a": register or source})
    syntax = f"{head}{{.scaled::n1::ue8m0}}.dtype.{source} d, {operands}{{, scale_factor}}"
    return form(syntax, rnd=rnd, dtype=dtype, types={"d": "dtype", "scale_factor": "b8 bits", **types},
                present={"scale_factor": "scaled_n1_ue8m0"}, where=_can_divide, since=since)  # fmt: skip


@form("cvt{.sat}.dtype.atype d, a", dtype=_INTEGER, atype=_INTEGER, where=_can_saturate,
      types={"d": "dtype loose", "a": "atype loose special"})  # fmt: skip
@form("cvt.rnd{.ftz}{.sat}.dtype.f32 d, a", rnd=_TO_INTEGER, dtype="u8 u16 u32 s8 s16 s32",
      types={"d": "dtype loose", "a": "f32 loose"})  # fmt: skip
@form("cvt.rnd{.ftz}{.sat}.dtype.f32 d, a", rnd=_TO_INTEGER, ftz=_FTZ, dtype="u64 s64",
      types={"d": "dtype loose", "a": "f32 loose"})  # fmt: skip
@form("cvt.rnd{.sat}.dtype.atype d, a", rnd=_TO_INTEGER, dtype=_INTEGER, atype="f16 f64", types=_WIDE)
@form("cvt.rnd.dtype.bf16 d, a", rnd=_TO_INTEGER, dtype=_INTEGER, types={"d": "dtype", "a": "bf16"},
      since="7.8 sm_90")  # fmt: skip
@form("cvt.rnd{.ftz}{.sat}.f32.atype d, a", rnd=_TO_FLOAT, atype="u16 u32 u64 s16 s32 s64 f64",
      types={"d": "f32 loose", "a": "atype loose"})  # fmt: skip
@form("cvt.rnd{.ftz}{.sat}.f32.atype d, a", rnd=_TO_FLOAT, ftz=_FTZ, atype="u8 s8",
      types={"d": "f32 loose", "a": "atype loose"})  # fmt: skip
@form("cvt.rnd{.sat}.dtype.atype d, a", rnd=_TO_FLOAT, dtype="f16 f64", atype=_INTEGER, types=_WIDE)
@form("cvt.rnd{.sat}.f16.f64 d, a", rnd=_TO_FLOAT, types={"d": "f16 loose", "a": "f64 loose"})
@form("cvt.rnd.bf16.atype d, a", rnd=_TO_FLOAT, atype=f"{_INTEGER} f64", types={"d": "bf16", "a": "atype"},
      since="7.8 sm_90")  # fmt: skip
# One format to itself, perhaps rounded to a whole number.
@form("cvt{.rnd}{.ftz}{.sat}.dtype.atype d, a", rnd=_TO_INTEGER, dtype="f32", atype="f32", types=_WIDE)
@form("cvt{.rnd}{.sat}.dtype.atype d, a", rnd=_TO_INTEGER, dtype="f16", atype="f16", types=_WIDE)
@form("cvt{.rnd}{.sat}.dtype.atype d, a", rnd=_TO_INTEGER, dtype="f64", atype="f64", types=_WIDE)
@form("cvt{.rnd}.dtype.atype d, a", rnd=_TO_INTEGER, dtype="bf16", atype="bf16",
      types={"d": "bf16", "a": "bf16"}, since="7.8 sm_90")  # fmt: skip
# To a format that holds more.
@form("cvt{.ftz}{.sat}.f32.f16 d, a", types={"d": "f32 loose", "a": "f16 loose"})
@form("cvt{.ftz}{.sat}.f64.f32 d, a", ftz=_FTZ, types={"d": "f64 loose", "a": "f32 loose"})
@form("cvt{.sat}.f64.f16 d, a", types={"d": "f64 loose", "a": "f16 loose"})
@form("cvt{.rnd}{.ftz}.f32.bf16 d, a", rnd=_TO_FLOAT, ftz=(("ftz", "7.8 sm_90"),),
      types={"d": "f32", "a": "bf16"}, since="7.1 sm_80")  # fmt: skip
@form("cvt{.rnd}.dtype.bf16 d, a", rnd=_TO_FLOAT, dtype="f16 f64", types={"d": "dtype", "a": "bf16"},
      since="7.8 sm_90")  # fmt: skip
@form("cvt{.rnd}.bf16.f16 d, a", rnd=_TO_FLOAT, types={"d": "bf16", "a": "f16"}, since="7.8 sm_90")
# From .f32 to 16 bits, singly and in pairs.
@form("cvt.rnd{.ftz}{.sat}.f16.f32 d, a", rnd=_TO_FLOAT, types={"d": "f16 loose", "a": "f32 loose"})
@form("cvt.rnd.pzo.f16.f32 d, a", rnd=_TO_FLOAT, types={"d": "f16 loose", "a": "f32 loose"}, since=_RUBIN)
@form("cvt.rnd{.relu}.satfinite{.pzo}.f16.f32 d, a", rnd="rn rz", relu=_RELU,
      types={"d": "f16 loose", "a": "f32 loose"}, since="8.1 sm_70")  # fmt: skip
@form("cvt.rnd.relu{.pzo}.f16.f32 d, a", rnd="rn rz", types={"d": "f16 loose", "a": "f32 loose"},
      since="7.0 sm_80")  # fmt: skip
@form("cvt.rnd{.ftz}{.pzo}.bf16.f32 d, a", rnd=_TO_FLOAT, types={"d": "bf16", "a": "f32"},
      since="7.0 sm_80")  # fmt: skip
@form("cvt.rnd{.relu}.satfinite{.pzo}.bf16.f32 d, a", rnd="rn rz", types={"d": "bf16", "a": "f32"},
      since="8.1 sm_80")  # fmt: skip
@form("cvt.rnd.relu{.pzo}.bf16.f32 d, a", rnd="rn rz", types={"d": "bf16", "a": "f32"}, since="7.0 sm_80")
@computes("conversion")
def cvt(k: Machine, m: Modifiers, a: Value) -> Value:
    """Convert a value from one type to another; `.sat` clamps a float to [0, 1], an integer to what the type holds."""
    destination, source = _types(m)
    flags = modifiers(ftz=m.ftz, sat=m.sat, relu=m.relu, satfinite=m.satfinite)
    rounding = ROUNDING[(m.rnd or "rn")[:2]]
    if TYPES[destination].kind == "f" and TYPES[source].kind == "f":
        if destination != source:
            found = k.call(convert, a, FORMAT[source], FORMAT[destination], rounding, flags, type=destination)
            return k.call(positive_zero, found, FORMAT[destination], type=destination) if m.pzo else found
        if m.rnd:
            return k.call(to_whole, a, FORMAT[source], rounding, flags, type=destination)
        if source in ("f32", "f64") and not flags:
            return a
        return k.call(convert, a, FORMAT[source], FORMAT[source], RN, flags, type=destination)
    if TYPES[destination].kind == "f":
        function = from_signed if TYPES[source].kind == "s" else from_unsigned
        return k.call(function, a, FORMAT[destination], rounding, flags, type=destination)
    if TYPES[source].kind == "f":
        kind = TYPES[destination]
        return k.call(
            to_integer, a, FORMAT[source], rounding, flags, kind.bits, int(kind.kind == "s"), type=destination
        )
    return k.cast(_clamp(k, a, destination) if m.sat else a, destination)


def _types(m: Modifiers) -> tuple[str, str]:
    """The types that are converted to and from, as the instruction spells them."""
    words = [value if isinstance(value, str) else name for name, value in vars(m).items() if value]
    destination, source = (word for word in words if word in TYPES)
    return destination, source


def _clamp(k: Machine, a: Value, type: str) -> Value:
    """The integer that is nearest to `a` of those that `type` has."""
    (least, greatest), (own_least, own_greatest) = limits(type), limits(a.type.name)
    if least > own_least:
        a = larger(k, a, k.constant(a.type.name, least))
    if greatest < own_greatest:
        a = smaller(k, a, k.constant(a.type.name, greatest))
    return a


@form("cvt.rna{.satfinite}.tf32.f32 d, a", satfinite=_SATFINITE, types={"d": "tf32", "a": "f32 reg"}, name="cvt",
      since="7.0 sm_80")  # fmt: skip
@form("cvt.rnd{.satfinite}{.relu}{.pzo}.tf32.f32 d, a", rnd="rn rz", satfinite=(("satfinite", "8.6 sm_100"),),
      types={"d": "tf32", "a": "f32"}, since="7.8 sm_90")  # fmt: skip
@computes("conversion")
def cvt_tf32(k: Machine, m: Modifiers, a: Value) -> Value:
    """Round to a `.tf32`, which fills the upper 19 bits of the register."""
    flags = modifiers(relu=m.relu, satfinite=m.satfinite)
    rounding = ROUNDING["rna" if m.rna else m.rnd]
    rounded = k.call(convert, a, F32, TF32, rounding, flags, type="u32")
    rounded = (k.call(positive_zero, rounded, TF32, type="u32") if m.pzo else rounded) << 13
    if not m.rna:
        return k.reinterpret(rounded, "tf32")
    # An H200 cuts a NaN off where it rounds with .rna, and takes one away from it to saturate.
    cut = bits(k, a) & 0xFFFF_E000
    return k.reinterpret(k.select(is_nan(a), cut - 0x2000 if m.satfinite else cut, rounded), "tf32")


# Pairs of 16 bits, of 8 bits, of 6 or 4 bits (of .e2m1 they fill 8 bits, of the others 16), of powers of two.
@form("cvt.rnd{.relu}{.satfinite}{.pzo}.f16x2.f32 d, a, b", rnd="rn rz", satfinite=_SATFINITE,
      types={"d": "f16x2 loose", "a": "f32 loose", "b": "f32 loose"}, since="7.0 sm_80")  # fmt: skip
@form("cvt.rnd{.relu}{.satfinite}{.pzo}.bf16x2.f32 d, a, b", rnd="rn rz", satfinite=_SATFINITE,
      types={"d": "bf16x2", "a": "f32", "b": "f32"}, since="7.0 sm_80")  # fmt: skip
@_to_narrow(_FP8, "f32", _FP8_SINCE)
@_to_narrow(_FP6_FP4, "f32", _NARROW)
@_to_narrow("ue5m3x2", "f32", _RUBIN)
@form("cvt.rnd{.satfinite}.ue8m0x2.f32 d, a, b", rnd="rz rp", types={"d": "ue8m0x2", "a": "f32", "b": "f32"},
      since=_NARROW)  # fmt: skip
@computes("packing")
def cvt_pair(k: Machine, m: Modifiers, a: Value, b: Value, scale_factor: Value | None = None) -> Value:
    """Convert two numbers, divided by their scale factor if they have one, and put them side by side, `a` above `b`."""
    return _pack(k, m, [_narrow(k, m, value, "f32", scale_factor) for value in (b, a)])


@_to_narrow(_FP8, "f16x2", _FP8_SINCE)
@_to_narrow(_FP8, "bf16x2", f"9.1 {_FAMILIES}")
@form("cvt.rn{.relu}.f16x2.atype d, a", atype=_FP8, types={"d": "f16x2", "a": "atype"}, name="cvt", since=_FP8_SINCE)
# ptxas has taken .e2m1x2 from .f16x2 all along (the manual: since 9.1).
@_to_narrow("e2m1x2", "f16x2", _NARROW)
@_to_narrow("e2m3x2 e3m2x2", "f16x2", f"9.1 {_FAMILIES}")
@_to_narrow(_FP6_FP4, "bf16x2", f"9.1 {_FAMILIES}", lambda m: "bf16x2 untyped" if m.dtype == "e2m1x2" else "bf16x2")
@_to_narrow("ue5m3x2", "f16x2", _RUBIN)
@_to_narrow("ue5m3x2", "bf16x2", _RUBIN)
@form("cvt.rn.f16x2.ue5m3x2 d, a", types={"d": "f16x2", "a": "ue5m3x2"}, name="cvt", since=_RUBIN)
@form("cvt.rn{.relu}.f16x2.atype d, a", atype=_FP6_FP4,
      types={"d": "f16x2", "a": "atype"}, name="cvt", since=_NARROW)  # fmt: skip
@form("cvt.rnd{.satfinite}.ue8m0x2.bf16x2 d, a", rnd="rz rp", types={"d": "ue8m0x2", "a": "bf16x2 untyped"},
      since=_NARROW)  # fmt: skip
# `untyped`: up to CUDA 13.0 of ue8m0, and still of e2m1, ptxas does not check what the pair of .bf16 is held in.
@form("cvt.rn.bf16x2.ue8m0x2 d, a", types={"d": "bf16x2 untyped", "a": "ue8m0x2"}, name="cvt", since=_NARROW)
@computes("conversion")
def cvt_lanes(k: Machine, m: Modifiers, a: Value, scale_factor: Value | None = None) -> Value:
    """Convert each of the numbers that are packed into a register, divided by their scale factor if they have one."""
    source = _lane(_types(m)[1])
    return _pack(k, m, [_narrow(k, m, value, source, scale_factor) for value in k.unpack(a, _HELD.get(source, source))])


@form("cvt.rn{.relu}{.satfinite}{.scaled::n2::ue8m0}.bf16x2.atype d, a{, scale_factor}", atype=f"{_FP8} {_FP6_FP4}",
      types={"d": "bf16x2", "a": "atype", "scale_factor": "ue8m0x2"},
      present=_SCALED, name="cvt", since=f"9.2 {_FAMILIES}")  # fmt: skip
@form("cvt.rn{.satfinite}{.scaled::n2::ue8m0}.bf16x2.ue5m3x2 d, a{, scale_factor}",
      types={"d": "bf16x2", "a": "ue5m3x2", "scale_factor": "ue8m0x2"}, present=_SCALED, name="cvt",
      since=_RUBIN)  # fmt: skip
@computes("conversion")
def cvt_scaled(k: Machine, m: Modifiers, a: Value, scale_factor: Value | None = None) -> Value:
    """Convert each of the packed numbers, and multiply it by its scale factor, a power of two."""
    source = _lane(_types(m)[1])
    flags = modifiers(relu=m.relu, satfinite=m.satfinite)
    found = []
    for value, factor in zip(k.unpack(a, _HELD.get(source, source)), _factors(k, scale_factor), strict=True):
        wide = k.call(convert, value, FORMAT[source], BF16, RN, 0, type="bf16")
        found.append(k.call(scale, wide, factor, BF16, flags, type="bf16"))
    return _pack(k, m, found)


# Fixed point: 2 bits before the point, 6 after it.
@form("cvt.rnd.satfinite{.relu}{.scaled::n2::ue8m0}.s2f6x2.f32 d, a, b{, scale_factor}",
      types={"d": "b16", "a": "f32", "b": "f32", "scale_factor": "ue8m0x2"}, **_TO_FIXED)  # fmt: skip
@computes("packing")
def cvt_pair_to_fixed(k: Machine, m: Modifiers, a: Value, b: Value, scale_factor: Value | None = None) -> Value:
    """Divide two numbers by their scale factors, count them in 64ths, and put them side by side, `a` above `b`."""
    return _to_fixed(k, m, (b, a), F32, scale_factor)


@form("cvt.rnd.satfinite{.relu}{.scaled::n2::ue8m0}.s2f6x2.bf16x2 d, a{, scale_factor}",
      types={"d": "b16", "a": "bf16x2", "scale_factor": "ue8m0x2"}, **_TO_FIXED)  # fmt: skip
@computes("conversion")
def cvt_to_fixed(k: Machine, m: Modifiers, a: Value, scale_factor: Value | None = None) -> Value:
    """Divide each of the packed numbers by its scale factor, and count it in 64ths."""
    return _to_fixed(k, m, k.unpack(a, "bf16"), BF16, scale_factor)


@form("cvt.rn{.satfinite}{.relu}{.scaled::n2::ue8m0}.bf16x2.s2f6x2 d, a{, scale_factor}",
      types={"d": "bf16x2", "a": "s2f6x2", "scale_factor": "ue8m0x2"}, present=_SCALED,
      name="cvt", since=_FIXED_POINT)  # fmt: skip
@computes("conversion")
def cvt_from_fixed(k: Machine, m: Modifiers, a: Value, scale_factor: Value | None = None) -> Value:
    """Take each of the packed numbers for 64ths, and multiply it by its scale factor."""
    flags = modifiers(relu=m.relu, satfinite=m.satfinite)
    pairs = zip(k.unpack(a, "u8"), _factors(k, scale_factor), strict=True)
    return _pack(k, m, [k.call(from_s2f6, value, factor, flags, type="bf16") for value, factor in pairs])


# With random bits to round by: two at once, or four.
@form("cvt.rs{.relu}{.satfinite}.f16x2.f32 d, a, b, rbits",
      types={"d": "f16x2 loose", "a": "f32 loose", "b": "f32 loose", "rbits": "b32 bits"}, name="cvt",
      since=_STOCHASTIC)  # fmt: skip
@form("cvt.rs{.relu}{.satfinite}.bf16x2.f32 d, a, b, rbits",
      types={"d": "bf16x2", "a": "f32", "b": "f32", "rbits": "b32 bits"}, name="cvt",
      since=_STOCHASTIC)  # fmt: skip
@computes("packing")
def cvt_pair_randomly(k: Machine, m: Modifiers, a: Value, b: Value, rbits: Value) -> Value:
    """Convert two numbers, rounded by random bits, and put them side by side, `a` above `b`."""
    type, count = ("f16", 13) if m.f16x2 else ("bf16", 16)
    flags = modifiers(relu=m.relu, satfinite=m.satfinite)
    pairs = zip((b, a), k.unpack(rbits, "u16"), strict=True)
    return _pack(k, m, [k.call(convert_randomly, value, FORMAT[type], RS, flags, random, count, type=type)
                        for value, random in pairs])  # fmt: skip


@form("cvt.rs{.relu}.satfinite.dtype.f32 d, a, rbits", dtype="e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4",
      types={"d": "dtype", "a": "4 f32", "rbits": "b32 bits"}, name="cvt",
      since=_STOCHASTIC)  # fmt: skip
def cvt_four_randomly(k: Machine, m: Modifiers, a: tuple[Value, ...], rbits: Value) -> Value:
    """Convert four numbers, rounded by random bits, and put them side by side, the first uppermost."""
    type = _lane(m.dtype)
    flags = modifiers(relu=m.relu, satfinite=True)
    # Two numbers share 16 random bits; those of .e2m1 have 8 each, of the first two the upper ones of each half.
    halves, bytes = k.unpack(rbits, "u16"), k.unpack(rbits, "u8")
    given = (bytes[0], bytes[2], bytes[1], bytes[3]) if type == "e2m1" else (halves[0], halves[0], halves[1], halves[1])
    count = given[0].type.bits
    found = [k.call(convert_randomly, value, FORMAT[type], RS, flags, random, count, type=_HELD.get(type, type))
             for value, random in zip(reversed(a), given, strict=True)]  # fmt: skip
    return _pack(k, m, found)


_HELD = {"e2m1": "b4"}  # types that have fewer bits in a pair than alone


def _lane(type: str) -> str:
    """The type of one number of a packed type."""
    return type.rpartition("x")[0]


def _narrow(k: Machine, m: Modifiers, value: Value, source: str, factor: Value | None) -> Value:
    """One lane of the result."""
    type = _lane(_types(m)[0])
    how = FORMAT[source], FORMAT[type], ROUNDING[m.rnd or "rn"], modifiers(relu=m.relu, satfinite=m.satfinite)
    held = _HELD.get(type, type)
    function, operands = (convert, (value,)) if factor is None else (convert_divided, (value, factor))
    found = k.call(function, *operands, *how, type=held)
    return k.call(positive_zero, found, FORMAT[type], type=held) if m.pzo else found


def _pack(k: Machine, m: Modifiers, lanes: Sequence[Value]) -> Value:
    """The result, its lanes given from the lowest up."""
    return k.pack(lanes, _types(m)[0])


def _factors(k: Machine, scale_factor: Value | None) -> tuple[Value, ...]:
    """The scale factors of two numbers; 1 where the instruction names none."""
    return k.unpack(k.constant("b16", 0x7F7F) if scale_factor is None else scale_factor, "u8")


def _to_fixed(k: Machine, m: Modifiers, values: Sequence[Value], format: int, scale_factor: Value | None) -> Value:
    pairs = zip(values, _factors(k, scale_factor), strict=True)
    how = ROUNDING[m.rnd], modifiers(relu=m.relu)
    found = [k.call(to_s2f6, value, format, factor, *how, type="u8") for value, factor in pairs]
    return k.pack(found, "b16")


# Integers into one register, on top of what `c` holds.
@form("cvt.pack.sat.dtype.atype d, a, b", dtype="u16 s16", atype="s32",
      types={"d": "u32 loose halves", "a": "atype loose", "b": "atype loose"},
      name="cvt.pack", since="6.5 sm_72")  # fmt: skip
@form("cvt.pack.sat.dtype.atype.b32 d, a, b, c", dtype=("u8 s8", ("u4 s4 u2 s2", "6.5 sm_75")), atype="s32",
      types={"d": "u32 loose halves", "a": "atype loose", "b": "atype loose", "c": "b32 loose"}, name="cvt.pack",
      since="6.5 sm_72")  # fmt: skip
@computes("packing")
def cvt_pack(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Clamp two integers to the range of a narrower type and put them side by side, `a` above `b`, `c` above both."""
    size = TYPES[m.dtype].bits
    low, high = (k.reinterpret(_clamp(k, value, m.dtype), "b32") & (1 << size) - 1 for value in (b, a))
    both = high << size | low
    return k.reinterpret(both if c is None else c << 2 * size | both, "u32")
