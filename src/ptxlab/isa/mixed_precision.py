"""Floating-point instructions that take half-precision operands and compute in `.f32` (PTX ISA 9.7.5)."""

from ptxlab.numbers.conversion import convert
from ptxlab.numbers.parameters import F32, FORMAT, RN

from .floats import compute
from .form import Modifiers, form
from .machine import Machine, Value
from .operation import computes

_ROUNDING = "rn rz rm rp"


def _narrow(m: Modifiers) -> str:
    return "f16" if m.atype == "f16" else "u16"  # ptxas takes a .bf16 here for an integer: registers and immediates


@form("add{.rnd}{.sat}.f32.atype d, a, c", rnd=_ROUNDING, atype="f16 bf16",
      types={"d": "f32", "a": _narrow, "c": "f32"}, since="8.6 sm_100")  # fmt: skip
@computes("sum")
def add(k: Machine, m: Modifiers, a: Value, c: Value) -> Value:
    """Widen `a` to `.f32` and add `c`."""
    return compute(k, m, "add", _widen(k, m, a), c)


@form("sub{.rnd}{.sat}.f32.atype d, a, c", rnd=_ROUNDING, atype="f16 bf16",
      types={"d": "f32", "a": _narrow, "c": "f32"}, since="8.6 sm_100")  # fmt: skip
@computes("difference")
def sub(k: Machine, m: Modifiers, a: Value, c: Value) -> Value:
    """Widen `a` to `.f32` and subtract `c`."""
    return compute(k, m, "sub", _widen(k, m, a), c)


@form("fma.rnd{.sat}.f32.atype d, a, b, c", rnd=_ROUNDING, atype="f16 bf16",
      types={"d": "f32", "a": _narrow, "b": _narrow, "c": "f32"}, since="8.6 sm_100")  # fmt: skip
@computes("product-sum")
def fma(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Widen `a` and `b` to `.f32`, multiply them and add `c`, rounded once."""
    return compute(k, m, "fma", _widen(k, m, a), _widen(k, m, b), c)


def _widen(k: Machine, m: Modifiers, a: Value) -> Value:
    return k.call(convert, a, FORMAT[m.atype], F32, RN, 0, type="f32")
