"""What the semantics of the floating-point chapters share: lanes, signs, modifiers, the lesser and the greater."""

from collections.abc import Callable

from ptxlab.numbers.parameters import FORMAT, modifiers

from .form import Modifiers
from .machine import Machine, Value

ONE = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F80_0000, "f64": 0x3FF0_0000_0000_0000}


def each_float(k: Machine, function: Callable[..., Value], *values: Value) -> Value:
    """The function of each lane of packed floats, or of plain floats as they are."""
    type = values[0].type
    if type.lanes == 1:
        return function(*values)
    lanes = zip(*(k.unpack(value, type.name.rpartition("x")[0]) for value in values), strict=True)
    return k.pack([function(*lane) for lane in lanes], type.name)


def compute(k: Machine, m: Modifiers, operation: str, *operands: Value) -> Value:
    """The operation with the modifiers of the instruction, to nearest if it does not say."""

    def one(*lane: Value) -> Value:
        flags = {"ftz": bool(m.ftz), "sat": bool(m.sat), "relu": bool(m.relu)}
        return k.arithmetic(operation, *lane, rounding=m.rnd or "rn", **flags)

    return each_float(k, one, *operands)


def bits(k: Machine, a: Value) -> Value:
    """The pattern of a float as an unsigned integer."""
    return k.reinterpret(a, f"u{a.type.bits}")


def sign_of(a: Value) -> int:
    """The sign bit of the type of `a`."""
    return 1 << (a.type.bits - 1)


def magnitude(k: Machine, a: Value) -> Value:
    """`a` without its sign."""
    return k.reinterpret(bits(k, a) & (sign_of(a) - 1), a.type.name)


def is_nan(a: Value) -> Value:
    """Whether `a` is a NaN."""
    return a != a


def settle(k: Machine, m: Modifiers, a: Value) -> Value:
    """`a` plus -0.0, which changes no number: `.ftz` flushes it, and a NaN becomes the one that additions return."""
    return k.arithmetic("add", a, k.constant(a.type.name, sign_of(a)), ftz=bool(m.ftz))


def extremum(k: Machine, m: Modifiers, function: Callable[..., int], *operands: Value) -> Value:
    """The least or greatest of two or three; `.abs` is about magnitudes, `.xorsign` combines the signs."""

    def pair(a: Value, b: Value) -> Value:
        type = a.type.name
        nan = int(bool(m.nan))
        return k.call(function, a, b, FORMAT[type], modifiers(ftz=m.ftz), nan, type=type)

    def one(first: Value, *rest: Value) -> Value:
        signs = bits(k, first)
        found = magnitude(k, first) if m.abs else first
        for other in rest:
            signs = signs ^ bits(k, other)
            found = pair(found, magnitude(k, other) if m.abs else other)
        if not m.xorsign:
            return found
        signed = k.reinterpret(bits(k, found) | signs & sign_of(first), first.type.name)
        return k.select(is_nan(found), found, signed)

    return each_float(k, one, *operands)
