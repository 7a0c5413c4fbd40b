"""Floating-point instructions on `.f16`, `.bf16` and pairs of them (PTX ISA 9.7.4)."""

from ptxlab.numbers import approximate
from ptxlab.numbers.extremum import maximum, minimum
from ptxlab.numbers.parameters import FORMAT

from ..bound import Bound
from ..floats import bits, compute, each_float, extremum, magnitude, settle, sign_of
from ..form import Modifiers, Specification, form, unknown
from ..machine import Machine, Value
from ..operation import computes

_F16 = "f16 f16x2"
_BF16 = "bf16 bf16x2"

_OUTSIDE = 0x7FF7  # the manual's OOB-NaN; found on an H200, for .f16 and .bf16 alike, of either sign

# Of these ptxas takes pairs apart by `mov`, which sees what is a vector.
_WHOLE_PAIR: dict[str, Specification] = {
    name: lambda m: "type scalar" if m.type == "bf16x2" else "type" for name in ("d", "a")
}
_TANH_F16 = (Bound("absolute", 2**-10.987),)
_TANH_BF16 = (Bound("absolute", 2**-8),)
_EX2_F16 = (Bound("relative", 2**-9.9),)
_EX2_BF16 = (Bound("relative", 2**-7),)


@form("add{.rn}{.ftz}{.sat}.type d, a, b", type=_F16, since="4.2 sm_53")
@form("add{.rn}.type d, a, b", type=_BF16, since="7.8 sm_90")
@computes("sum")
def add(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Add half-precision numbers; `.sat` clamps the result to [0, 1]."""
    return compute(k, m, "add", a, b)


@form("sub{.rn}{.ftz}{.sat}.type d, a, b", type=_F16, since="4.2 sm_53")
@form("sub{.rn}.type d, a, b", type=_BF16, since="7.8 sm_90")
@computes("difference")
def sub(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Subtract half-precision numbers; `.sat` clamps the result to [0, 1]."""
    return compute(k, m, "sub", a, b)


@form("mul{.rn}{.ftz}{.sat}.type d, a, b", type=_F16, since="4.2 sm_53")
@form("mul{.rn}.type d, a, b", type=_BF16, since="7.8 sm_90")
@computes("product")
def mul(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Multiply half-precision numbers; `.sat` clamps the result to [0, 1]."""
    return compute(k, m, "mul", a, b)


@form("fma.rn{.ftz}{.sat}.type d, a, b, c", type=_F16, since="4.2 sm_53")
@form("fma.rn{.ftz}.relu.type d, a, b, c", type=_F16, since="7.0 sm_80")
@form("fma.rn{.relu}.type d, a, b, c", type=_BF16, since="7.0 sm_80")
@form("fma.rn.oob{.relu}.type d, a, b, c", type=_F16, since="8.1 sm_90")
@form("fma.rn.oob.sat.type d, a, b, c", type=_F16, since="8.1 sm_90")  # the manual knows no .sat with .oob
@form("fma.rn.oob{.relu}.type d, a, b, c", type=_BF16, since="8.1 sm_90")
@computes("product-sum")
def fma(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply and add half-precision numbers, rounded once; `.relu` makes a negative result zero.

    With `.oob`, the result is zero if a factor is the NaN that a bulk copy fills in beyond the ends of a tensor.
    """

    def one(a: Value, b: Value, c: Value) -> Value:
        result = compute(k, m, "fma", a, b, c)
        if not m.oob:
            return result
        outside = (bits(k, magnitude(k, a)) == _OUTSIDE) | (bits(k, magnitude(k, b)) == _OUTSIDE)
        return k.select(outside, k.constant(a.type.name, 0), result)

    return each_float(k, one, a, b, c)


@form("fma.rnd{.relu}.type d, a, b, c", type=_BF16, rnd="rz rm rp", since="7.0 sm_80")
@form("fma.rnd.oob{.relu}.type d, a, b, c", type=_BF16, rnd="rz rm rp", since="8.1 sm_90")
@unknown("it is not in the manual, and on an H200 it computes `.bf16` as `.f16` and ignores the rounding of `.bf16x2`")
@computes("product-sum")
def fma_rounded() -> None:
    """Taken by ptxas, but not in the manual, and not what it says: on an H200, `.bf16` is then computed as `.f16`."""


@form("neg{.ftz}.type d, a", type=_F16, since="5.1 sm_53")
@form("neg.type d, a", type=_BF16, since="7.0 sm_80")
@computes("negation")
def neg(k: Machine, m: Modifiers, a: Value) -> Value:
    """Change the sign of half-precision numbers."""

    def one(a: Value) -> Value:
        return settle(k, m, k.reinterpret(bits(k, a) ^ sign_of(a), a.type.name))

    return each_float(k, one, a)


@form("abs{.ftz}.type d, a", type=_F16, since="6.5 sm_53")
@form("abs.type d, a", type=_BF16, since="7.0 sm_80")
@computes("magnitude")
def abs(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the absolute value of half-precision numbers."""
    return each_float(k, lambda a: settle(k, m, magnitude(k, a)), a)


@form("min{.ftz}{.NaN}.type d, a, b", type=_F16, since="7.0 sm_80")
@form("min{.ftz}{.NaN}.xorsign.abs.type d, a, b", type=_F16, name="min", since="7.2 sm_86")
@form("min{.NaN}.type d, a, b", type=_BF16, since="7.0 sm_80")
@form("min{.NaN}.xorsign.abs.type d, a, b", type=_BF16, name="min", since="7.2 sm_86")
@computes("minimum")
def min(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Take the smaller half-precision number; a NaN counts only with `.NaN`."""
    return extremum(k, m, minimum, a, b)


@form("max{.ftz}{.NaN}.type d, a, b", type=_F16, since="7.0 sm_80")
@form("max{.ftz}{.NaN}.xorsign.abs.type d, a, b", type=_F16, name="max", since="7.2 sm_86")
@form("max{.NaN}.type d, a, b", type=_BF16, since="7.0 sm_80")
@form("max{.NaN}.xorsign.abs.type d, a, b", type=_BF16, name="max", since="7.2 sm_86")
@computes("maximum")
def max(k: Machine, m: Modifiers, a: Value, b: Value) -> Value:
    """Take the larger half-precision number; a NaN counts only with `.NaN`."""
    return extremum(k, m, maximum, a, b)


@form("tanh.approx.type d, a", type=_F16, since="7.0 sm_75", bounds=_TANH_F16)
@form("tanh.approx.type d, a", type=_BF16, types=_WHOLE_PAIR, since="7.8 sm_90", bounds=_TANH_BF16)
@computes("function")
def tanh(k: Machine, m: Modifiers, a: Value) -> Value:
    """Take the hyperbolic tangent of half-precision numbers, approximately."""

    def one(a: Value) -> Value:
        return k.call(approximate.half_tangent, a, FORMAT[a.type.name], type=a.type.name)

    return each_float(k, one, a)


@form("ex2.approx.type d, a", type=_F16, since="7.0 sm_75", bounds=_EX2_F16)
@form("ex2.approx.ftz.type d, a", type=_BF16, types=_WHOLE_PAIR, since="7.8 sm_90", bounds=_EX2_BF16)
@computes("function")
def ex2(k: Machine, m: Modifiers, a: Value) -> Value:
    """Raise 2 to a half-precision power, approximately."""

    def one(a: Value) -> Value:
        return k.call(approximate.half_power, a, FORMAT[a.type.name], type=a.type.name)

    return each_float(k, one, a)
