"""Floating-point instructions on `.f32`, `.f32x2` and `.f64` (PTX ISA 9.7.3).

PTX 1.0 to 1.3 had no modifiers that say how exact a result is (`.approx`, `.full`, rounding of `div`, `rcp`, `sqrt`);
such spellings have forms of their own, which end with PTX 1.4.
"""

from .form import form

_ROUNDING = "rn rz rm rp"
_ROUNDING_F32 = ("rn rz", ("rm rp", "1.0 sm_20"))
_ROUNDING_F64 = ("rn rz", ("rm rp", "1.0 sm_13"))
_BEFORE_1_4 = "1.0 until 1.4"


@form("testp.op.type p, a", op="finite infinite number notanumber normal subnormal", type="f32 f64",
      types={"p": "pred"}, writes="p", since="2.0 sm_20")  # fmt: skip
def testp() -> None:
    """Tell whether a number is of the kind that `op` names."""


@form("copysign.type d, a, b", type="f32 f64", since="2.0 sm_20")
def copysign() -> None:
    """Take the sign of `a` and the magnitude of `b`."""


@form("add{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=_ROUNDING_F32)
@form("add{.rnd}{.ftz}.f32x2 d, a, b", rnd=_ROUNDING, since="8.6 sm_100")
@form("add{.rnd}.f64 d, a, b", rnd=_ROUNDING_F64)
def add() -> None:
    """Add; `.sat` clamps the result to [0, 1]."""


@form("sub{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=_ROUNDING_F32)
@form("sub{.rnd}{.ftz}.f32x2 d, a, b", rnd=_ROUNDING, since="8.6 sm_100")
@form("sub{.rnd}.f64 d, a, b", rnd=_ROUNDING_F64)
def sub() -> None:
    """Subtract `b` from `a`; `.sat` clamps the result to [0, 1]."""


@form("mul{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=_ROUNDING_F32)
@form("mul{.rnd}{.ftz}.f32x2 d, a, b", rnd=_ROUNDING, since="8.6 sm_100")
@form("mul{.rnd}.f64 d, a, b", rnd=_ROUNDING_F64)
def mul() -> None:
    """Multiply; `.sat` clamps the result to [0, 1]."""


@form("fma.rnd{.ftz}{.sat}.f32 d, a, b, c", rnd=_ROUNDING, since="2.0 sm_20")
@form("fma.rnd{.ftz}.f32x2 d, a, b, c", rnd=_ROUNDING, since="8.6 sm_100")
@form("fma.rnd.f64 d, a, b, c", rnd=_ROUNDING_F64, since="1.4")
def fma() -> None:
    """Multiply `a` by `b` and add `c`, rounded once."""


@form("mad.rnd{.ftz}{.sat}.f32 d, a, b, c", rnd=_ROUNDING, since="2.0 sm_20")
@form("mad{.ftz}{.sat}.f32 d, a, b, c", since="1.0 until 3.1 sm_20")
@form("mad.rnd.f64 d, a, b, c", rnd=_ROUNDING_F64)
@form("mad.f64 d, a, b, c", since=_BEFORE_1_4)
def mad() -> None:
    """Multiply `a` by `b` and add `c`; from sm_20 on the same as `fma`."""


@form("div.approx{.ftz}.f32 d, a, b", since="1.4")
@form("div.full{.ftz}.f32 d, a, b", name="div.full", since="1.4")
@form("div.rnd{.ftz}.f32 d, a, b", rnd=_ROUNDING, since="1.4 sm_20")
@form("div.rnd.f64 d, a, b", rnd=("rn", ("rz rm rp", "1.4 sm_20")))
@form("div.type d, a, b", type="f32 f64", since=_BEFORE_1_4)
def div() -> None:
    """Divide `a` by `b`: rounded as IEEE 754 says, or faster and within a few units in the last place."""


@form("abs{.ftz}.f32 d, a")
@form("abs.f64 d, a")
def abs() -> None:
    """Take the absolute value."""


@form("neg{.ftz}.f32 d, a")
@form("neg.f64 d, a")
def neg() -> None:
    """Change the sign."""


@form("min{.ftz}{.nan}.f32 d, a, b", nan=(("NaN", "7.0 sm_80"),))
@form("min{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", name="min", since="7.2 sm_86")
@form("min{.ftz}{.NaN}{.abs}.f32 d, a, b, c", name="min", since="8.8 sm_100")
@form("min.f64 d, a, b")
def min() -> None:
    """Take the smaller of two or three numbers; a NaN counts only with `.NaN`."""


@form("max{.ftz}{.nan}.f32 d, a, b", nan=(("NaN", "7.0 sm_80"),))
@form("max{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", name="max", since="7.2 sm_86")
@form("max{.ftz}{.NaN}{.abs}.f32 d, a, b, c", name="max", since="8.8 sm_100")
@form("max.f64 d, a, b")
def max() -> None:
    """Take the larger of two or three numbers; a NaN counts only with `.NaN`."""


@form("rcp.approx{.ftz}.f32 d, a", since="1.4")
@form("rcp.rnd{.ftz}.f32 d, a", rnd=_ROUNDING, since="1.4 sm_20")
@form("rcp.rnd.f64 d, a", rnd=("rn", ("rz rm rp", "1.4 sm_20")), since="1.4")
@form("rcp.f32 d, a", since=_BEFORE_1_4)
@form("rcp.approx.ftz.f64 d, a", since="2.1 sm_20")
def rcp() -> None:
    """Take the reciprocal 1/`a`."""


@form("sqrt.approx{.ftz}.f32 d, a", since="1.4")
@form("sqrt.rnd{.ftz}.f32 d, a", rnd=_ROUNDING, since="1.4 sm_20")
@form("sqrt.rnd.f64 d, a", rnd=("rn", ("rz rm rp", "1.4 sm_20")))
@form("sqrt.type d, a", type="f32 f64", since=_BEFORE_1_4)
def sqrt() -> None:
    """Take the square root."""


@form("rsqrt.approx{.ftz}.f32 d, a", since="1.4")
@form("rsqrt.approx.f64 d, a", since="1.4")
@form("rsqrt.type d, a", type="f32 f64", since=_BEFORE_1_4)
@form("rsqrt.approx.ftz.f64 d, a", since="4.0 sm_20")
def rsqrt() -> None:
    """Take the reciprocal of the square root, approximately."""


@form("sin.approx{.ftz}.f32 d, a", since="1.4")
@form("sin.f32 d, a", since=_BEFORE_1_4)
def sin() -> None:
    """Take the sine of an angle in radians, approximately."""


@form("cos.approx{.ftz}.f32 d, a", since="1.4")
@form("cos.f32 d, a", since=_BEFORE_1_4)
def cos() -> None:
    """Take the cosine of an angle in radians, approximately."""


@form("lg2.approx{.ftz}.f32 d, a", since="1.4")
@form("lg2.f32 d, a", since=_BEFORE_1_4)
def lg2() -> None:
    """Take the logarithm to base 2, approximately."""


@form("ex2.approx{.ftz}.f32 d, a", since="1.4")
@form("ex2.f32 d, a", since=_BEFORE_1_4)
def ex2() -> None:
    """Raise 2 to the power `a`, approximately."""


@form("tanh.approx.f32 d, a", since="7.0 sm_75")
def tanh() -> None:
    """Take the hyperbolic tangent, approximately."""
