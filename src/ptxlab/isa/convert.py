"""Conversions between types: cvt and cvt.pack (PTX ISA 9.7.9).

The manual gives the scalar conversions two lines and pages of conditions; here each group of types that takes the same
modifiers has a form. Packed formats follow, by the format that is converted to.
"""

from .form import Modifiers, form
from .types import TYPES

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
_STOCHASTIC = "8.7 sm_100a | 8.8 sm_103a"
_FIXED_POINT = "9.1 sm_100a sm_103a sm_110a sm_120a sm_121a"
_SCALED = {"scale_factor": "scaled_n2_ue8m0"}
_FP8 = "e4m3x2 e5m2x2"
_FP8_SINCE = "7.8 sm_90 | 8.1 sm_89"
_FP6_FP4 = "e2m3x2 e3m2x2 e2m1x2"


def _can_saturate(m: Modifiers) -> str | None:
    """`.sat` wants values of the source that the result cannot hold."""
    result, source = TYPES[m.dtype], TYPES[m.atype]
    wider = result.bits > source.bits
    holds = wider or result.bits == source.bits if result.kind == source.kind else wider and result.kind == "s"
    return f"every `.{m.atype}` fits in `.{m.dtype}`, so there is no `.sat`" if m.sat and holds else None


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
@form("cvt.rnd{.relu}.satfinite.f16.f32 d, a", rnd="rn rz", relu=_RELU, types={"d": "f16 loose", "a": "f32 loose"},
      since="8.1 sm_70")  # fmt: skip
@form("cvt.rnd.relu.f16.f32 d, a", rnd="rn rz", types={"d": "f16 loose", "a": "f32 loose"}, since="7.0 sm_80")
@form("cvt.rnd{.ftz}.bf16.f32 d, a", rnd=_TO_FLOAT, types={"d": "bf16", "a": "f32"},
      since="7.0 sm_80")  # fmt: skip
@form("cvt.rnd{.relu}.satfinite.bf16.f32 d, a", rnd="rn rz", types={"d": "bf16", "a": "f32"}, since="8.1 sm_80")
@form("cvt.rnd.relu.bf16.f32 d, a", rnd="rn rz", types={"d": "bf16", "a": "f32"}, since="7.0 sm_80")
@form("cvt.rnd{.relu}{.satfinite}.f16x2.f32 d, a, b", rnd="rn rz", satfinite=_SATFINITE,
      types={"d": "f16x2 loose", "a": "f32 loose", "b": "f32 loose"}, since="7.0 sm_80")  # fmt: skip
@form("cvt.rnd{.relu}{.satfinite}.bf16x2.f32 d, a, b", rnd="rn rz", satfinite=_SATFINITE,
      types={"d": "bf16x2", "a": "f32", "b": "f32"}, since="7.0 sm_80")  # fmt: skip
@form("cvt.rs{.relu}{.satfinite}.f16x2.f32 d, a, b, rbits",
      types={"d": "f16x2 loose", "a": "f32 loose", "b": "f32 loose", "rbits": "b32 bits"}, name="cvt",
      since=_STOCHASTIC)  # fmt: skip
@form("cvt.rs{.relu}{.satfinite}.bf16x2.f32 d, a, b, rbits",
      types={"d": "bf16x2", "a": "f32", "b": "f32", "rbits": "b32 bits"}, name="cvt",
      since=_STOCHASTIC)  # fmt: skip
@form("cvt.rna{.satfinite}.tf32.f32 d, a", satfinite=_SATFINITE, types={"d": "tf32", "a": "f32 reg"}, name="cvt",
      since="7.0 sm_80")  # fmt: skip
@form("cvt.rnd{.satfinite}{.relu}.tf32.f32 d, a", rnd="rn rz", satfinite=(("satfinite", "8.6 sm_100"),),
      types={"d": "tf32", "a": "f32"}, since="7.8 sm_90")  # fmt: skip
# 8 bits.
@form("cvt.rn.satfinite{.relu}.dtype.f32 d, a, b", dtype=_FP8, types={"d": "dtype", "a": "f32", "b": "f32"},
      name="cvt", since=_FP8_SINCE)  # fmt: skip
@form("cvt.rn.satfinite{.relu}.dtype.f16x2 d, a", dtype=_FP8, types={"d": "dtype", "a": "f16x2"}, name="cvt",
      since=_FP8_SINCE)  # fmt: skip
@form("cvt.rn.satfinite{.relu}.dtype.bf16x2 d, a", dtype=_FP8, types={"d": "dtype", "a": "bf16x2"}, name="cvt",
      since=f"9.1 {_FAMILIES}")  # fmt: skip
@form("cvt.rn{.relu}.f16x2.atype d, a", atype=_FP8, types={"d": "f16x2", "a": "atype"}, name="cvt", since=_FP8_SINCE)
# 6 and 4 bits: a pair of .e2m1 fills 8 bits, pairs of the others 16.
@form("cvt.rn.satfinite{.relu}.dtype.f32 d, a, b", dtype=_FP6_FP4,
      types={"d": "dtype", "a": "f32", "b": "f32"}, name="cvt", since=_NARROW)  # fmt: skip
# ptxas has taken .e2m1x2 from .f16x2 all along (the manual: since 9.1).
@form("cvt.rn.satfinite{.relu}.e2m1x2.f16x2 d, a", types={"d": "e2m1x2", "a": "f16x2"}, name="cvt", since=_NARROW)
@form("cvt.rn.satfinite{.relu}.dtype.f16x2 d, a", dtype="e2m3x2 e3m2x2", types={"d": "dtype", "a": "f16x2"}, name="cvt",
      since=f"9.1 {_FAMILIES}")  # fmt: skip
@form("cvt.rn.satfinite{.relu}.dtype.bf16x2 d, a", dtype=_FP6_FP4,
      types={"d": "dtype", "a": "bf16x2"}, name="cvt", since=f"9.1 {_FAMILIES}")  # fmt: skip
@form("cvt.rn{.relu}.f16x2.atype d, a", atype=_FP6_FP4,
      types={"d": "f16x2", "a": "atype"}, name="cvt", since=_NARROW)  # fmt: skip
@form("cvt.rn{.relu}{.satfinite}{.scaled::n2::ue8m0}.bf16x2.atype d, a{, scale_factor}", atype=f"{_FP8} {_FP6_FP4}",
      types={"d": "bf16x2", "a": "atype", "scale_factor": "ue8m0x2"},
      present=_SCALED, name="cvt", since=f"9.2 {_FAMILIES}")  # fmt: skip
# Four at once, with random bits to round by.
@form("cvt.rs{.relu}.satfinite.dtype.f32 d, a, rbits", dtype="e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4",
      types={"d": "dtype", "a": "4 f32", "rbits": "b32 bits"}, name="cvt",
      since=_STOCHASTIC)  # fmt: skip
# Powers of two, as scale factors are.
@form("cvt.rnd{.satfinite}.ue8m0x2.f32 d, a, b", rnd="rz rp", types={"d": "ue8m0x2", "a": "f32", "b": "f32"},
      since=_NARROW)  # fmt: skip
@form("cvt.rnd{.satfinite}.ue8m0x2.bf16x2 d, a", rnd="rz rp", types={"d": "ue8m0x2", "a": "bf16x2"}, since=_NARROW)
@form("cvt.rn.bf16x2.ue8m0x2 d, a", types={"d": "bf16x2", "a": "ue8m0x2"}, name="cvt", since=_NARROW)
# Fixed point: 2 bits before the point, 6 after it.
@form("cvt.rn.satfinite{.relu}{.scaled::n2::ue8m0}.s2f6x2.f32 d, a, b{, scale_factor}",
      types={"d": "b16", "a": "f32", "b": "f32", "scale_factor": "ue8m0x2"}, present=_SCALED,
      name="cvt", since=_FIXED_POINT)  # fmt: skip
@form("cvt.rn.satfinite{.relu}{.scaled::n2::ue8m0}.s2f6x2.bf16x2 d, a{, scale_factor}",
      types={"d": "b16", "a": "bf16x2", "scale_factor": "ue8m0x2"}, present=_SCALED,
      name="cvt", since=_FIXED_POINT)  # fmt: skip
@form("cvt.rn{.satfinite}{.relu}{.scaled::n2::ue8m0}.bf16x2.s2f6x2 d, a{, scale_factor}",
      types={"d": "bf16x2", "a": "s2f6x2", "scale_factor": "ue8m0x2"}, present=_SCALED,
      name="cvt", since=_FIXED_POINT)  # fmt: skip
# Two integers into one register, on top of what `c` holds.
@form("cvt.pack.sat.dtype.atype d, a, b", dtype="u16 s16", atype="s32",
      types={"d": "u32 loose", "a": "atype loose", "b": "atype loose"},
      name="cvt.pack", since="6.5 sm_72")  # fmt: skip
@form("cvt.pack.sat.dtype.atype.b32 d, a, b, c", dtype=("u8 s8", ("u4 s4 u2 s2", "6.5 sm_75")), atype="s32",
      types={"d": "u32 loose", "a": "atype loose", "b": "atype loose", "c": "b32 loose"}, name="cvt.pack",
      since="6.5 sm_72")  # fmt: skip
def cvt() -> None:
    """Convert a value, or several packed into a register, from one type to another."""
