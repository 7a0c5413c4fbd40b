"""Floating-point arithmetic as LLVM IR: the host's own instructions where they give the GPU's bits.

Rounded to nearest, f32 and f64 of every host agree with a GPU's, but for NaNs and what `.ftz` flushes. The rest is a
call: of `numbers.half` for f16 and bf16, of `numbers.soft` for everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ptxlab.native.text import Builder
from ptxlab.numbers import half, soft
from ptxlab.numbers.parameters import FORMAT, FTZ, ROUNDING, SAT, modifiers

# A native function and its arguments (numbers are the same at every such call), to the text of a call.
Call = Callable[[Callable[..., Any], Sequence[str | int]], str]

_WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_HOST = {
    "add": "fadd {type} {0}, {1}",
    "sub": "fsub {type} {0}, {1}",
    "mul": "fmul {type} {0}, {1}",
    "div": "fdiv {type} {0}, {1}",
    "fma": "call {type} @llvm.fma.{name}({type} {0}, {type} {1}, {type} {2})",
    "sqrt": "call {type} @llvm.sqrt.{name}({type} {0})",
}
RAW = ("add", "sub", "mul", "div", "fma")
_NAN = "0x7FFFFFFFE0000000"  # the canonical NaN of f32, 0x7FFFFFFF, as LLVM spells it
_LEAST_NORMAL = 0x0080_0000


def arithmetic(
    b: Builder,
    operation: str,
    type: str,
    operands: Sequence[str],
    *,
    call: Call,
    rounding: str = "rn",
    ftz: bool = False,
    sat: bool = False,
    relu: bool = False,
) -> str:
    """Write `add sub mul fma div sqrt` on patterns, given and returned as integers of the type's width."""
    flags = modifiers(ftz=ftz, sat=sat, relu=relu)
    if rounding == "rn" and type == "f32" and not relu:
        return _f32(b, operation, operands, flags, call)
    if rounding == "rn" and type == "f64" and not flags:
        return _f64(b, operation, operands, call)
    if rounding == "rn" and _WIDTHS[type] == 16 and hasattr(half, operation):
        return _call(b, getattr(half, operation), type, operands, 32, [FORMAT[type], flags], call)
    return _soft(b, operation, type, operands, rounding, flags, call)


def raw(b: Builder, operation: str, operands: Sequence[str]) -> tuple[str, str]:
    """Write one of `RAW` on values of LLVM's type `float`: the pattern, and the value before NaNs became canonical.

    A sum of many terms needs the second alone, so that its steps do not wait for what only the last one needs.
    """
    result = b.value(_HOST[operation].format(*operands, type="float", name="f32"))
    invalid = b.value(f"fcmp uno float {result}, {result}")
    canonical = b.value(f"select i1 {invalid}, float {_NAN}, float {result}")
    return b.value(f"bitcast float {canonical} to i32"), result


def _f32(b: Builder, operation: str, operands: Sequence[str], flags: int, call: Call) -> str:
    if flags & FTZ:
        operands = [_flush(b, operand) for operand in operands]
    numbers = [b.value(f"bitcast i32 {operand} to float") for operand in operands]
    result = b.value(_HOST[operation].format(*numbers, type="float", name="f32"))
    if flags & SAT:
        # Not greater than zero is a NaN, too, and -0.0.
        positive = b.value(f"fcmp ogt float {result}, 0.0")
        result = b.value(f"select i1 {positive}, float {result}, float 0.0")
        small = b.value(f"fcmp olt float {result}, 1.0")
        result = b.value(f"select i1 {small}, float {result}, float 1.0")
    else:
        invalid = b.value(f"fcmp uno float {result}, {result}")
        if operation == "sqrt":  # of floats, LLVM takes this choice for no choice
            pattern = b.value(f"bitcast float {result} to i32")
            return b.value(f"select i1 {invalid}, i32 {0x7FFF_FFFF}, i32 {pattern}")
        result = b.value(f"select i1 {invalid}, float {_NAN}, float {result}")
    pattern = b.value(f"bitcast float {result} to i32")
    if not flags & FTZ:
        return pattern
    flushed = _flush(b, pattern)
    if operation in ("add", "sub"):  # sums that small are exact
        return flushed
    # The least normal number may be rounded up from what is to be flushed.
    magnitude = b.value(f"and i32 {pattern}, {0x7FFF_FFFF}")
    doubtful = b.value(f"icmp eq i32 {magnitude}, {_LEAST_NORMAL}")
    return _unless(b, doubtful, "i32", flushed, lambda: _soft(b, operation, "f32", operands, "rn", flags, call))


def _f64(b: Builder, operation: str, operands: Sequence[str], call: Call) -> str:
    numbers = [b.value(f"bitcast i64 {operand} to double") for operand in operands]
    result = b.value(_HOST[operation].format(*numbers, type="double", name="f64"))
    pattern = b.value(f"bitcast double {result} to i64")
    invalid = b.value(f"fcmp uno double {result}, {result}")
    return _unless(b, invalid, "i64", pattern, lambda: _soft(b, operation, "f64", operands, "rn", 0, call))


def _flush(b: Builder, pattern: str) -> str:
    """An f32 that is a zero of its sign if it is subnormal."""
    exponent = b.value(f"and i32 {pattern}, {0x7F80_0000}")
    zero = b.value(f"and i32 {pattern}, {0x8000_0000}")
    small = b.value(f"icmp eq i32 {exponent}, 0")
    return b.value(f"select i1 {small}, i32 {zero}, i32 {pattern}")


def _unless(b: Builder, condition: str, type: str, usual: str, write: Callable[[], str]) -> str:
    """`usual`, or in the rare case of `condition` what `write` writes a block for."""
    rare, after = b.new_label("rare"), b.new_label("known")
    is_rare = b.any(condition)
    here = b.label_here
    b.branch(is_rare, rare, after, likely=False)
    b.label(rare)
    other = b.where(condition, type, write(), usual)
    last = b.label_here
    b.jump(after)
    b.label(after)
    return b.phi(type, (usual, here), (other, last))


def _soft(b: Builder, operation: str, type: str, operands: Sequence[str], rounding: str, flags: int, call: Call) -> str:
    function = getattr(soft, operation)
    return _call(b, function, type, operands, 64, [FORMAT[type], ROUNDING[rounding], flags], call)


def _call(
    b: Builder,
    function: Callable[..., object],
    type: str,
    operands: Sequence[str],
    width: int,
    constants: Sequence[int],
    call: Call,
) -> str:
    """A call of a function that takes and returns patterns in integers of `width` bits."""
    narrow = _WIDTHS[type]
    if narrow != width:
        operands = [b.value(f"zext i{narrow} {operand} to i{width}") for operand in operands]
    result = b.value(call(function, [*operands, *constants]))
    return result if narrow == width else b.value(f"trunc i{width} {result} to i{narrow}")
