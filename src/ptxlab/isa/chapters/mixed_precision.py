"""Floating-point instructions that take half-precision operands and compute in `.f32` (PTX ISA 9.7.5).

Those on pairs of `.f32` may also have half-precision results, which are cut: rounded towards zero.
"""

from ptxlab.numbers.conversion import convert
from ptxlab.numbers.parameters import BF16, F32, FORMAT, RN, RZ

from ..floats import compute
from ..form import Modifiers, Slots, form, unknown
from ..machine import Machine, Value
from ..operation import computes

_ROUNDING = "rn rz rm rp"
_SINCE = "9.4 sm_107f"
_THREE = {"d": "dtype", "a": "atype", "c": "ctype"}
_PAIRS: Slots = {
    "rnd": _ROUNDING, "dtype": "f32x2", "atype": "f16x2 bf16x2", "ctype": "f32x2", "types": _THREE,
    "since": _SINCE,
}  # fmt: skip
_CUT = _PAIRS | {"rnd": "rz", "dtype": "bf16x2", "atype": "f32x2"}
_FLUSHED = _CUT | {"dtype": "f16x2"}


def _narrow(m: Modifiers) -> str:
    return "f16" if m.atype == "f16" else "u16"  # ptxas takes a .bf16 here for an integer: registers and immediates


@form("add{.rnd}{.sat}.f32.atype d, a, c", rnd=_ROUNDING, atype="f16 bf16",
      types={"d": "f32", "a": _narrow, "c": "f32"}, since="8.6 sm_100")  # fmt: skip
@form("add{.rnd}.dtype.atype.ctype d, a, c", **_PAIRS)
@form("add.rnd.dtype.atype.ctype d, a, c", **_CUT)
@computes("sum")
def add(k: Machine, m: Modifiers, a: Value, c: Value) -> Value:
    """Widen `a` to `.f32` and add `c`."""
    return _cut(k, m, compute(k, m, "add", _widen(k, m, a), c))


@form("sub{.rnd}{.sat}.f32.atype d, a, c", rnd=_ROUNDING, atype="f16 bf16",
      types={"d": "f32", "a": _narrow, "c": "f32"}, since="8.6 sm_100")  # fmt: skip
@form("sub{.rnd}.dtype.atype.ctype d, a, c", **_PAIRS)
@form("sub.rnd.dtype.atype.ctype d, a, c", **_CUT)
@computes("difference")
def sub(k: Machine, m: Modifiers, a: Value, c: Value) -> Value:
    """Widen `a` to `.f32` and subtract `c`."""
    return _cut(k, m, compute(k, m, "sub", _widen(k, m, a), c))


@form("mul.rnd.dtype.atype.ctype d, a, c", **_CUT)
@computes("product")
def mul(k: Machine, m: Modifiers, a: Value, c: Value) -> Value:
    """Multiply pairs of `.f32`, and cut the products to `.bf16`."""
    return _cut(k, m, compute(k, m, "mul", a, c))


@form("fma.rnd{.sat}.f32.atype d, a, b, c", rnd=_ROUNDING, atype="f16 bf16",
      types={"d": "f32", "a": _narrow, "b": _narrow, "c": "f32"}, since="8.6 sm_100")  # fmt: skip
@computes("product-sum")
def fma(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Widen `a` and `b` to `.f32`, multiply them and add `c`, rounded once."""
    return compute(k, m, "fma", _widen(k, m, a), _widen(k, m, b), c)


@form("fma.rnd.dtype.atype.btype.ctype d, a, b, c", **_PAIRS | {"btype": "f32x2", "types": _THREE | {"b": "btype"}})
@computes("product-sum")
def fma_pairs(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Widen the pair `a` to `.f32`, multiply it by `b` and add `c`, rounded once."""
    return compute(k, m, "fma", _widen(k, m, a), b, c)


@form("mul.dtype.atype.ctype d, a, c", dtype="f16x2", atype="f16x2", ctype="bf16x2", types=_THREE, since=_SINCE)
@form("mul.dtype.atype.ctype d, a, c", dtype="bf16x2", atype="bf16x2", ctype="f16x2", types=_THREE, since=_SINCE)
@unknown("the manual does not say how `c` and the product are rounded")
def mul_halves() -> None:
    """Convert `c` to the type of `a`, and multiply."""


@form("add.rnd.ftz.dtype.atype.ctype d, a, c", **_FLUSHED)
@form("sub.rnd.ftz.dtype.atype.ctype d, a, c", **_FLUSHED)
@form("mul.rnd.ftz.dtype.atype.ctype d, a, c", **_FLUSHED)
@unknown("the manual does not say whether `.ftz` is about the operands, the results or both")
def cut_to_f16() -> None:
    """Add, subtract or multiply pairs of `.f32`, and cut the results to `.f16`."""


def _widen(k: Machine, m: Modifiers, a: Value) -> Value:
    """A number, or a pair of them, as `.f32`."""
    half, _, pair = m.atype.partition("x")
    if half == "f32":
        return a
    lanes = [
        k.call(convert, one, FORMAT[half], F32, RN, 0, type="f32") for one in (k.unpack(a, half) if pair else (a,))
    ]
    return k.pack(lanes, "f32x2") if pair else lanes[0]


def _cut(k: Machine, m: Modifiers, result: Value) -> Value:
    """A result as it is, or, where it is to be of 16 bits, cut."""
    if m.dtype != "bf16x2":
        return result
    return k.pack([k.call(convert, one, F32, BF16, RZ, 0, type="bf16") for one in k.unpack(result, "f32")], "bf16x2")
