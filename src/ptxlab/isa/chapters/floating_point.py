"""Floating-point instructions on `.f32`, `.f32x2` and `.f64` (PTX ISA 9.7.3).

PTX 1.0 to 1.3 had no modifiers that say how exact a result is (`.approx`, `.full`, rounding of `div`, `rcp`, `sqrt`);
such spellings have forms of their own, which end with PTX 1.4, and are approximate where there is a choice.
"""

from math import pi

from ptxlab.numbers import approximate
from ptxlab.numbers.extremum import maximum, minimum

from ..bound import Bound
from ..floats import ONE, bits, compute, extremum, is_nan, magnitude, settle, sign_of
from ..form import Modifiers, form
from ..machine import Machine, Value
from ..operation import computes

_ROUNDING = "rn rz rm rp"
_ROUNDING_F32 = ("rn rz", ("rm rp", "1.0 sm_20"))
_ROUNDING_F64 = ("rn rz", ("rm rp", "1.0 sm_13"))
_BEFORE_1_4 = "1.0 until 1.4"

# Bounds of the approximate instructions, from the notes of the manual.
_DIV = (Bound("ulp", 2),)
_RCP = (Bound("ulp", 1),)
_SQRT = (Bound("relative", 2**-23),)
_RSQRT = (Bound("relative", 2**-22.9),)
_WAVE = (Bound("absolute", 2**-20.5, -2 * pi, 2 * pi), Bound("absolute", 2**-14.7, -100 * pi, 100 * pi))
_LG2 = (Bound("absolute", 2**-22, 0.5, 2.0), Bound("relative", 2**-22))
_EX2 = (Bound("ulp", 2),)
_TANH = (Bound("relative", 2**-11),)


def _flushes(m: Modifiers) -> int:
    """Whether an approximate instruction flushes subnormal numbers, as all of them did before PTX 1.4."""
    return int(bool(m.ftz or not m.approx))


@form("testp.op.type p, a", op="finite infinite number notanumber normal subnormal", type="f32 f64",
      types={"p": "pred"}, writes="p", since="2.0 sm_20")  # fmt: skip
def testp(k: Machine, m: Modifiers, a: Value) -> Value:
    """Return whether a number is of the kind that `op` names; zero is a normal number."""
    size = bits(k, magnitude(k, a))
    infinity = {"f32": 0x7F80_0000, "f64": 0x7FF0_0000_0000_0000}[m.type]
    least = {"f32": 0x0080_0000, "f64": 0x0010_0000_0000_0000}[m.type]
    match m.op:
        case "finite":
            return size < infinity
        case "infinite":
            return size == infinity
        case "number":
            return size <= infinity
        case "notanumber":
            return size > infinity
        case "normal":
            return (size < infinity) & ((size >= least) | (size == 0))
    return (size < least) & (size != 0)


@form("copysign.type d, a, b", type="f32 f64", since="2.0 sm_20")
def copysign(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Take the sign of `a` and the magnitude of `b`."""
    return k.reinterpret(bits(k, a) & sign_of(a) | bits(k, b) & (sign_of(b) - 1), m.type)


@form("add{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=_ROUNDING_F32)
@form("add{.rnd}{.ftz}.f32x2 d, a, b", rnd=_ROUNDING, since="8.6 sm_100")
@form("add{.rnd}.f64 d, a, b", rnd=_ROUNDING_F64)
@computes("sum")
def add(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Add; `.sat` clamps the result to [0, 1]."""
    return compute(k, m, "add", a, b)


@form("sub{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=_ROUNDING_F32)
@form("sub{.rnd}{.ftz}.f32x2 d, a, b", rnd=_ROUNDING, since="8.6 sm_100")
@form("sub{.rnd}.f64 d, a, b", rnd=_ROUNDING_F64)
@computes("difference")
def sub(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Subtract `b` from `a`; `.sat` clamps the result to [0, 1]."""
    return compute(k, m, "sub", a, b)


@form("mul{.rnd}{.ftz}{.sat}.f32 d, a, b", rnd=_ROUNDING_F32)
@form("mul{.rnd}{.ftz}.f32x2 d, a, b", rnd=_ROUNDING, since="8.6 sm_100")
@form("mul{.rnd}.f64 d, a, b", rnd=_ROUNDING_F64)
@computes("product")
def mul(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Multiply; `.sat` clamps the result to [0, 1].

    Without a rounding modifier, ptxas may contract it with an `add` to one `fma`; the emulator does so if `contract`
    asks for it.
    """
    return compute(k, m, "mul", a, b)


@form("fma.rnd{.ftz}{.sat}.f32 d, a, b, c", rnd=_ROUNDING, since="2.0 sm_20")
@form("fma.rnd{.ftz}.f32x2 d, a, b, c", rnd=_ROUNDING, since="8.6 sm_100")
@form("fma.rnd.f64 d, a, b, c", rnd=_ROUNDING_F64, since="1.4")
@computes("product-sum")
def fma(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply `a` by `b` and add `c`, rounded once."""
    return compute(k, m, "fma", a, b, c)


@form("mad.rnd{.ftz}{.sat}.f32 d, a, b, c", rnd=_ROUNDING, since="2.0 sm_20")
@form("mad{.ftz}{.sat}.f32 d, a, b, c", since="1.0 until 3.1 sm_20")
@form("mad.rnd.f64 d, a, b, c", rnd=_ROUNDING_F64)
@form("mad.f64 d, a, b, c", since=_BEFORE_1_4)
@computes("product-sum")
def mad(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply `a` by `b` and add `c`; from sm_20 on the same as `fma`."""
    return compute(k, m, "fma", a, b, c)


@form("div.approx{.ftz}.f32 d, a, b", since="1.4", bounds=_DIV)
@form("div.rnd{.ftz}.f32 d, a, b", rnd=_ROUNDING, since="1.4 sm_20")
@form("div.rnd.f64 d, a, b", rnd=("rn", ("rz rm rp", "1.4 sm_20")))
@form("div.type d, a, b", type="f32 f64", since=_BEFORE_1_4)
@computes("quotient")
def div(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Divide `a` by `b`: rounded as IEEE 754 says, or faster and within a few units in the last place."""
    if m.rnd or a.type.name == "f64":
        return compute(k, m, "div", a, b)
    return k.call(approximate.quotient, a, b, _flushes(m), 0, type="f32")


@form("div.full{.ftz}.f32 d, a, b", name="div.full", since="1.4", bounds=_DIV)
@computes("quotient")
def div_full(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Divide `a` by `b`, approximately, for divisors of any size."""
    return k.call(approximate.quotient, a, b, int(bool(m.ftz)), 1, type="f32")


@form("abs{.ftz}.f32 d, a")
@form("abs.f64 d, a")
@computes("magnitude")
def abs(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the absolute value."""
    return k.select(is_nan(a), settle(k, m, a), settle(k, m, magnitude(k, a)))


@form("neg{.ftz}.f32 d, a")
@form("neg.f64 d, a")
@computes("negation")
def neg(k: Machine, m: Modifiers, a: Value) -> Value:
    """Change the sign."""
    changed = k.reinterpret(bits(k, a) ^ sign_of(a), a.type.name)
    return k.select(is_nan(a), settle(k, m, a), settle(k, m, changed))


@form("min{.ftz}{.nan}.f32 d, a, b", nan=(("NaN", "7.0 sm_80"),))
@form("min{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", name="min", since="7.2 sm_86")
@form("min{.ftz}{.NaN}{.abs}.f32 d, a, b, c", name="min", since="8.8 sm_100")
@form("min.f64 d, a, b")
@computes("minimum")
def min(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Take the smaller of two or three numbers; a NaN counts only with `.NaN`."""
    return extremum(k, m, minimum, *(value for value in (a, b, c) if value is not None))


@form("max{.ftz}{.nan}.f32 d, a, b", nan=(("NaN", "7.0 sm_80"),))
@form("max{.ftz}{.NaN}.xorsign.abs.f32 d, a, b", name="max", since="7.2 sm_86")
@form("max{.ftz}{.NaN}{.abs}.f32 d, a, b, c", name="max", since="8.8 sm_100")
@form("max.f64 d, a, b")
@computes("maximum")
def max(k: Machine, m: Modifiers, a: Value, b: Value, c: Value | None = None) -> Value:
    """Take the larger of two or three numbers; a NaN counts only with `.NaN`."""
    return extremum(k, m, maximum, *(value for value in (a, b, c) if value is not None))


@form("rcp.approx{.ftz}.f32 d, a", since="1.4", bounds=_RCP)
@form("rcp.rnd{.ftz}.f32 d, a", rnd=_ROUNDING, since="1.4 sm_20")
@form("rcp.rnd.f64 d, a", rnd=("rn", ("rz rm rp", "1.4 sm_20")), since="1.4")
@form("rcp.f32 d, a", since=_BEFORE_1_4)
@form("rcp.approx.ftz.f64 d, a", since="2.1 sm_20")
@computes("function")
def rcp(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the reciprocal 1/`a`."""
    if m.rnd:
        return compute(k, m, "div", k.constant(a.type.name, ONE[a.type.name]), a)
    if a.type.name == "f64":
        return k.call(approximate.high_reciprocal, a, type="f64")
    return k.call(approximate.reciprocal, a, _flushes(m), type="f32")


@form("sqrt.approx{.ftz}.f32 d, a", since="1.4", bounds=_SQRT)
@form("sqrt.rnd{.ftz}.f32 d, a", rnd=_ROUNDING, since="1.4 sm_20")
@form("sqrt.rnd.f64 d, a", rnd=("rn", ("rz rm rp", "1.4 sm_20")))
@form("sqrt.type d, a", type="f32 f64", since=_BEFORE_1_4)
@computes("function")
def sqrt(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the square root."""
    if m.rnd or a.type.name == "f64":
        return compute(k, m, "sqrt", a)
    return k.call(approximate.square_root, a, _flushes(m), type="f32")


@form("rsqrt.approx{.ftz}.f32 d, a", since="1.4", bounds=_RSQRT)
@form("rsqrt.approx.f64 d, a", since="1.4")
@form("rsqrt.type d, a", type="f32 f64", since=_BEFORE_1_4)
@form("rsqrt.approx.ftz.f64 d, a", since="4.0 sm_20")
@computes("function")
def rsqrt(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the reciprocal of the square root, approximately."""
    if a.type.name == "f32":
        return k.call(approximate.reciprocal_root, a, _flushes(m), type="f32")
    return k.call(approximate.high_reciprocal_root if m.ftz else approximate.reciprocal_root_f64, a, type="f64")


@form("sin.approx{.ftz}.f32 d, a", since="1.4", bounds=_WAVE)
@form("sin.f32 d, a", since=_BEFORE_1_4)
@computes("function")
def sin(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the sine of an angle in radians, approximately."""
    return k.call(approximate.sine, a, type="f32")


@form("cos.approx{.ftz}.f32 d, a", since="1.4", bounds=_WAVE)
@form("cos.f32 d, a", since=_BEFORE_1_4)
@computes("function")
def cos(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the cosine of an angle in radians, approximately."""
    return k.call(approximate.cosine, a, type="f32")


@form("lg2.approx{.ftz}.f32 d, a", since="1.4", bounds=_LG2)
@form("lg2.f32 d, a", since=_BEFORE_1_4)
@computes("function")
def lg2(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the logarithm to base 2, approximately."""
    return k.call(approximate.logarithm, a, _flushes(m), type="f32")


@form("ex2.approx{.ftz}.f32 d, a", since="1.4", bounds=_EX2)
@form("ex2.f32 d, a", since=_BEFORE_1_4)
@computes("function")
def ex2(k: Machine, m: Modifiers, a: Value) -> Value:
    """Raise 2 to the power `a`, approximately."""
    return k.call(approximate.power, a, _flushes(m), type="f32")


@form("tanh.approx.f32 d, a", since="7.0 sm_75", bounds=_TANH)
@computes("function")
def tanh(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the hyperbolic tangent, approximately."""
    return k.call(approximate.tangent, a, type="f32")
