"""Arithmetic on packed floats of 8, 6 and 4 bits (PTX ISA 9.7.6)."""

from ptxlab.numbers.conversion import convert
from ptxlab.numbers.parameters import E4M3, E5M2, F32, F64, FORMAT, RN, modifiers

from ..floats import is_nan
from ..form import Modifiers, Slots, form
from ..machine import Machine, Value
from ..operation import computes

_RESULT = "e5m2x4 e4m3x4"
_OPERAND = "e5m2x4 e4m3x4 e3m2x4 e2m3x4 e2m1x4 e2m1p4x4 ue8m0x4"
_SUM: Slots = {
    "rnd": "rn", "dtype": _RESULT, "atype": _OPERAND, "since": "9.4 sm_100a sm_103a",
    "types": {"d": "dtype bits", "a": "atype bits", "c": "dtype bits"},
}  # fmt: skip
_FORMAT = {name: FORMAT[name.removesuffix("x4").removesuffix("p4")] for name in _OPERAND.split()}
_MASK = {"e3m2x4": 0x3F, "e2m3x4": 0x3F, "e2m1p4x4": 0x0F}  # of those that do not fill their bytes
_NAN = 0x7F  # of either result


@form("add{.rnd}{.satfinite}.dtype.atype d, a, c", **_SUM)
@computes("sum")
def add(k: Machine, m: Modifiers, a: Value, c: Value) -> Value:
    """Add four numbers to four others, each sum rounded once."""
    return _compute(k, m, "add", _lanes(k, a, m.atype), _lanes(k, c, m.dtype))


@form("sub{.rnd}{.satfinite}.dtype.atype d, a, c", **_SUM)
@computes("difference")
def sub(k: Machine, m: Modifiers, a: Value, c: Value) -> Value:
    """Subtract `c` from `a`, four numbers from four others, each difference rounded once."""
    return _compute(k, m, "sub", _lanes(k, a, m.atype), _lanes(k, c, m.dtype))


@form("mul{.rnd}{.satfinite}.dtype.atype.ctype d, a, c", **_SUM | {"ctype": _OPERAND,
      "types": {"d": "dtype bits", "a": "atype bits", "c": "ctype bits"}})  # fmt: skip
@computes("product")
def mul(k: Machine, m: Modifiers, a: Value, c: Value) -> Value:
    """Multiply four numbers by four others, each product rounded once."""
    return _compute(k, m, "mul", _lanes(k, a, m.atype), _lanes(k, c, m.ctype))


@form("fma{.rnd}{.satfinite}.dtype.atype.btype d, a, b, c", **_SUM | {"btype": _OPERAND,
      "types": {"d": "dtype bits", "a": "atype bits", "b": "btype bits", "c": "dtype bits"}})  # fmt: skip
@computes("product-sum")
def fma(k: Machine, m: Modifiers, a: Value, b: Value, c: Value) -> Value:
    """Multiply four numbers by four others and add `c`, rounded once."""
    return _compute(k, m, "fma", _lanes(k, a, m.atype), _lanes(k, b, m.btype), _lanes(k, c, m.dtype))


def _lanes(k: Machine, value: Value, type: str) -> list[Value]:
    """The four numbers of an operand as `.f64`; `.f32` has all of them, those of `.ue8m0` too."""
    parts = [part & _MASK[type] if type in _MASK else part for part in k.unpack(value, f"b{value.type.width // 4}")]
    single = [k.call(convert, part, _FORMAT[type], F32, RN, 0, type="f32") for part in parts]
    return [k.call(convert, part, F32, F64, RN, 0, type="f64") for part in single]


def _compute(k: Machine, m: Modifiers, operation: str, *operands: list[Value]) -> Value:
    """The operation on each lane.

    What `.f64` rounds off decides nothing: a sum is either far beyond the result's range, or has all of its bits, or is
    nearest to the larger part, which is not between two results.
    """
    flags, found = modifiers(satfinite=m.satfinite), []
    for lane in zip(*operands, strict=True):
        wide = k.arithmetic(operation, *lane)
        narrow = k.call(convert, wide, F64, E5M2 if m.dtype == "e5m2x4" else E4M3, RN, flags, type="u8")
        found.append(k.select(is_nan(wide), k.constant("u8", _NAN), narrow))
    return k.pack(found, m.dtype)
