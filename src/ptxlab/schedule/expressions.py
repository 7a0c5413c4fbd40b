"""Expressions of an algorithm as instructions, in f32; and which of them are zero where what they read is zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ptxlab.author import f32, s32
from ptxlab.author.emit import emit
from ptxlab.schedule.address import Addresses, Value
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.statements import Applied, Expression, Index, Load, Name, Number

LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453
_SIMPLE = {
    "add": "add.rn.f32", "sub": "sub.rn.f32", "mul": "mul.rn.f32", "div": "div.full.f32", "neg": "neg.f32",
    "max": "max.f32", "min": "min.f32", "sqrt": "sqrt.rn.f32", "rsqrt": "rsqrt.approx.f32", "tanh": "tanh.approx.f32",
    "abs": "abs.f32", "sin": "sin.approx.f32", "cos": "cos.approx.f32",
}  # fmt: skip
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def write_expression(
    value: Expression, addresses: Addresses, number: Callable[[str], Value], load: Callable[[Load], Value]
) -> Value:
    """A register, a predicate, or a Python number; `number` has what names are for, `load` elements of arrays."""

    def of(one: Expression) -> Value:
        return write_expression(one, addresses, number, load)

    match value:
        case Number(constant):
            return constant
        case Name(name):
            return number(name)
        case Load():
            return load(value)
        case Index(sum):
            found = addresses.value(addresses.plan.index(sum))
            return float(found) if isinstance(found, int) else emit("cvt.rn.f32.s32", [found])
        case Applied(name, (left, right)) if name in _COMPARISONS:
            return _compare(name, left, right, addresses, of)
        case Applied(("and" | "or") as name, (left, right)):
            return emit(f"{name}.pred", [of(left), of(right)])
        case Applied("choose", (condition, yes, no)):
            return emit("selp.f32", [of(yes), of(no), of(condition)], out=f32())
        case Applied("exp", (argument,)):
            return emit("ex2.approx.f32", [emit("mul.rn.f32", [register(of(argument)), LOG2_E])])
        case Applied("log", (argument,)):
            return emit("mul.rn.f32", [emit("lg2.approx.f32", [register(of(argument))]), LN_2])
        case Applied(name, operands):
            given = [of(one) for one in operands]
            if len(given) == 1 or all(isinstance(one, float) for one in given):
                given[0] = register(given[0])
            return emit(_SIMPLE[name], given)
    raise AssertionError(value)


def _compare(
    name: str, left: Expression, right: Expression, addresses: Addresses, of: Callable[[Expression], Value]
) -> Value:
    """Indices compare as integers, all else as f32."""
    sides = [_whole(one) for one in (left, right)]
    if all(one is not None for one in sides):
        first, second = (addresses.value(addresses.plan.index(one)) for one in sides if one is not None)
        return emit(f"setp.{name}.s32", [s32(first) if isinstance(first, int) else first, second])
    return emit(f"setp.{name}.f32", [register(of(left)), of(right)])


def _whole(value: Expression) -> Any:
    """An index or a whole number as a sum."""
    if isinstance(value, Index):
        return value.value
    if isinstance(value, Number) and value.value.is_integer():
        return Linear.of(int(value.value))
    if isinstance(value, Applied) and value.name in ("add", "sub", "neg"):
        parts = [_whole(one) for one in value.operands]
        if any(part is None for part in parts):
            return None
        return -parts[0] if value.name == "neg" else parts[0] + parts[1] if value.name == "add" else parts[0] - parts[1]
    return None


def register(value: Value) -> Value:
    """A Python number in a register."""
    return f32(value) if isinstance(value, (int, float)) else value


def is_zero(value: Expression, is_masked: Callable[[Load], bool]) -> bool:
    """Whether an expression is zero where masked loads are, whatever all else is."""
    match value:
        case Number(number):
            return number == 0
        case Load():
            return is_masked(value)
        case Applied("mul", (left, right)):
            both = is_zero(left, is_masked), is_zero(right, is_masked)
            return all(both) or (any(both) and _is_finite(right if both[0] else left))
        case Applied("add" | "sub" | "max" | "min", (left, right)):
            return is_zero(left, is_masked) and is_zero(right, is_masked)
        case Applied("neg" | "abs" | "sqrt" | "tanh" | "sin", (argument,)):
            return is_zero(argument, is_masked)
    return False


def _is_finite(value: Expression) -> bool:
    return isinstance(value, Number) and math.isfinite(value.value)
