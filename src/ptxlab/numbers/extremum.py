"""The lesser and the greater of two floats, on patterns; also compiled.

Patterns order as their values do once a negative one has its lower bits turned around, with -0.0 below +0.0.
"""

from ptxlab.native import boolean, native, u32, u64
from ptxlab.numbers.packing import flush, is_nan, result_nan
from ptxlab.numbers.parameters import SIGN


@native(inline=True)
def less(a: u64, b: u64, format: u32) -> boolean:
    """Whether `a` comes before `b`; neither is a NaN."""
    sign: u64 = SIGN[format]
    # Turned around below zero, lifted above it: the order of unsigned integers.
    low: u64 = a ^ (sign + (sign - 1) if a & sign != 0 else sign)
    high: u64 = b ^ (sign + (sign - 1) if b & sign != 0 else sign)
    return low < high


@native(inline=True)
def minimum(a: u64, b: u64, format: u32, modifiers: u32, nan: boolean) -> u64:
    """The lesser of two; a NaN counts only with `nan`."""
    return _extremum(
        a, b, less(flush(a, format, modifiers), flush(b, format, modifiers), format), format, modifiers, nan
    )


@native(inline=True)
def maximum(a: u64, b: u64, format: u32, modifiers: u32, nan: boolean) -> u64:
    """The greater of two; a NaN counts only with `nan`."""
    return _extremum(
        a, b, less(flush(b, format, modifiers), flush(a, format, modifiers), format), format, modifiers, nan
    )


@native(inline=True)
def _extremum(a: u64, b: u64, first: boolean, format: u32, modifiers: u32, nan: boolean) -> u64:
    """`a` if it comes first, else `b`, or the one that is a number."""
    a_nan: boolean = is_nan(a, format)
    b_nan: boolean = is_nan(b, format)
    if (a_nan and b_nan) or (nan and (a_nan or b_nan)):
        return result_nan(b, a, a, format, 0)
    return flush(a if b_nan or (first and not a_nan) else b, format, modifiers)
