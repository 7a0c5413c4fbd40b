"""The lesser and the greater of two floats, on patterns; also compiled. A NaN counts only with `nan`."""

from ptxlab.native import boolean, native, u32, u64
from ptxlab.numbers.conversion import to_f64
from ptxlab.numbers.packing import flush, is_nan, result_nan


@native(inline=True)
def minimum(a: u64, b: u64, format: u32, modifiers: u32, nan: boolean) -> u64:
    """The lesser of two, -0.0 below +0.0."""
    a = flush(a, format, modifiers)
    b = flush(b, format, modifiers)
    if is_nan(a, format) or is_nan(b, format):
        return _number(a, b, format, nan)
    # Of equal numbers the patterns are equal, but for the sign of zero.
    either: u64 = a | b if to_f64(a, format) == to_f64(b, format) else b
    return a if to_f64(a, format) < to_f64(b, format) else either


@native(inline=True)
def maximum(a: u64, b: u64, format: u32, modifiers: u32, nan: boolean) -> u64:
    """The greater of two, +0.0 above -0.0."""
    a = flush(a, format, modifiers)
    b = flush(b, format, modifiers)
    if is_nan(a, format) or is_nan(b, format):
        return _number(a, b, format, nan)
    either: u64 = a & b if to_f64(a, format) == to_f64(b, format) else b
    return a if to_f64(a, format) > to_f64(b, format) else either


@native(inline=True)
def _number(a: u64, b: u64, format: u32, nan: boolean) -> u64:
    """The one of two that is a number, or a NaN."""
    if nan or (is_nan(a, format) and is_nan(b, format)):
        return result_nan(b, a, a, format, 0)
    return b if is_nan(a, format) else a
