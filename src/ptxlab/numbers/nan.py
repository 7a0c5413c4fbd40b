"""NaNs that keep their payload: what the manual leaves unspecified, as sm_90 does it.

Operations on f64 hand on a NaN they are given; all others return the canonical NaN of their format.
"""

from ptxlab.numbers.formats import BF16, F32, F64, Format, Special, decode


def quiet(format: Format, bits: int) -> int:
    """A NaN with its highest mantissa bit set."""
    return bits | 1 << (format.mantissa_bits + format.padding - 1)


def result_nan(format: Format, *operands: int) -> int:
    """The NaN that an operation returns: in f64 the first of `operands` that is one, else the canonical one."""
    assert format.nan is not None
    given = [bits for bits in operands if format is F64 and decode(format, bits) is Special.NAN]
    return quiet(format, given[0]) if given else format.nan


def converted_nan(source: Format, destination: Format, bits: int) -> int:
    """The NaN that `cvt` between fundamental types, or from bf16 to f32, makes of a NaN.

    >>> from ptxlab.numbers import F16
    >>> hex(converted_nan(F32, F16, 0xFFC0_0005)), hex(converted_nan(F32, F64, 0xFFC0_0005))
    ('0x7fff', '0xfff80000a0000000')
    """
    assert destination.nan is not None
    if source is BF16 and destination is F32:
        return bits << 16
    if F64 not in (source, destination):
        return destination.nan
    sign = destination.sign_bit if bits & source.sign_bit else 0
    mantissa = bits & ((1 << source.mantissa_bits) - 1)
    shift = destination.mantissa_bits - source.mantissa_bits
    return quiet(destination, sign | destination.infinity | (mantissa << shift if shift > 0 else mantissa >> -shift))
