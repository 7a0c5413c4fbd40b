"""Floating-point instructions on `.f16`, `.bf16` and pairs of them (PTX ISA 9.7.4)."""

from .form import form

_F16 = "f16 f16x2"
_BF16 = "bf16 bf16x2"


@form("add{.rn}{.ftz}{.sat}.type d, a, b", type=_F16, since="4.2 sm_53")
@form("add{.rn}.type d, a, b", type=_BF16, since="7.8 sm_90")
def add() -> None:
    """Add half-precision numbers; `.sat` clamps the result to [0, 1]."""


@form("sub{.rn}{.ftz}{.sat}.type d, a, b", type=_F16, since="4.2 sm_53")
@form("sub{.rn}.type d, a, b", type=_BF16, since="7.8 sm_90")
def sub() -> None:
    """Subtract half-precision numbers; `.sat` clamps the result to [0, 1]."""


@form("mul{.rn}{.ftz}{.sat}.type d, a, b", type=_F16, since="4.2 sm_53")
@form("mul{.rn}.type d, a, b", type=_BF16, since="7.8 sm_90")
def mul() -> None:
    """Multiply half-precision numbers; `.sat` clamps the result to [0, 1]."""


@form("fma.rn{.ftz}{.sat}.type d, a, b, c", type=_F16, since="4.2 sm_53")
@form("fma.rn{.ftz}.relu.type d, a, b, c", type=_F16, since="7.0 sm_80")
# ptxas takes any rounding of .bf16 (the manual: only .rn), and .sat with .oob.
@form("fma.rnd{.relu}.type d, a, b, c", type=_BF16, rnd="rn rz rm rp", since="7.0 sm_80")
@form("fma.rn.oob{.relu}.type d, a, b, c", type=_F16, since="8.1 sm_90")
@form("fma.rn.oob.sat.type d, a, b, c", type=_F16, since="8.1 sm_90")
@form("fma.rnd.oob{.relu}.type d, a, b, c", type=_BF16, rnd="rn rz rm rp", since="8.1 sm_90")
def fma() -> None:
    """Multiply and add half-precision numbers, rounded once; `.relu` makes a negative result zero."""


@form("neg{.ftz}.type d, a", type=_F16, since="5.1 sm_53")
@form("neg.type d, a", type=_BF16, since="7.0 sm_80")
def neg() -> None:
    """Change the sign of half-precision numbers."""


@form("abs{.ftz}.type d, a", type=_F16, since="6.5 sm_53")
@form("abs.type d, a", type=_BF16, since="7.0 sm_80")
def abs() -> None:
    """Take the absolute value of half-precision numbers."""


@form("min{.ftz}{.NaN}.type d, a, b", type=_F16, since="7.0 sm_80")
@form("min{.ftz}{.NaN}.xorsign.abs.type d, a, b", type=_F16, name="min", since="7.2 sm_86")
@form("min{.NaN}.type d, a, b", type=_BF16, since="7.0 sm_80")
@form("min{.NaN}.xorsign.abs.type d, a, b", type=_BF16, name="min", since="7.2 sm_86")
def min() -> None:
    """Take the smaller half-precision number; a NaN counts only with `.NaN`."""


@form("max{.ftz}{.NaN}.type d, a, b", type=_F16, since="7.0 sm_80")
@form("max{.ftz}{.NaN}.xorsign.abs.type d, a, b", type=_F16, name="max", since="7.2 sm_86")
@form("max{.NaN}.type d, a, b", type=_BF16, since="7.0 sm_80")
@form("max{.NaN}.xorsign.abs.type d, a, b", type=_BF16, name="max", since="7.2 sm_86")
def max() -> None:
    """Take the larger half-precision number; a NaN counts only with `.NaN`."""


@form("tanh.approx.type d, a", type=(_F16, (_BF16, "7.8 sm_90")), since="7.0 sm_75")
def tanh() -> None:
    """Take the hyperbolic tangent of half-precision numbers, approximately."""


@form("ex2.approx.type d, a", type=_F16, since="7.0 sm_75")
@form("ex2.approx.ftz.type d, a", type=_BF16, since="7.8 sm_90")
def ex2() -> None:
    """Raise 2 to a half-precision power, approximately."""
