"""Floating-point instructions that take half-precision operands and compute in `.f32` (PTX ISA 9.7.5)."""

from .form import Modifiers, form

_ROUNDING = "rn rz rm rp"


def _narrow(m: Modifiers) -> str:
    return "f16" if m.atype == "f16" else "u16"  # ptxas takes a .bf16 here for an integer: registers and immediates


@form("add{.rnd}{.sat}.f32.atype d, a, c", rnd=_ROUNDING, atype="f16 bf16",
      types={"d": "f32", "a": _narrow, "c": "f32"}, since="8.6 sm_100")  # fmt: skip
def add() -> None:
    """Widen `a` to `.f32` and add `c`."""


@form("sub{.rnd}{.sat}.f32.atype d, a, c", rnd=_ROUNDING, atype="f16 bf16",
      types={"d": "f32", "a": _narrow, "c": "f32"}, since="8.6 sm_100")  # fmt: skip
def sub() -> None:
    """Widen `a` to `.f32` and subtract `c`."""


@form("fma.rnd{.sat}.f32.atype d, a, b, c", rnd=_ROUNDING, atype="f16 bf16",
      types={"d": "f32", "a": _narrow, "b": _narrow, "c": "f32"}, since="8.6 sm_100")  # fmt: skip
def fma() -> None:
    """Widen `a` and `b` to `.f32`, multiply them and add `c`, rounded once."""
