"""Plain numbers as elements of a field: exact, but for constants that are known to be rounded.

A float is a whole number times a power of two, and so it is in a field. A constant within a rounding of log2 e, ln 2,
√2 (times a power of two), products of these, or of 1/n, is taken for that number: kernels write `1.442695` for log2 e.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptxlab.equal.nodes import Words
from ptxlab.equal.primes import root_of_two

_DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32, "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "ue8m0": ml_dtypes.float8_e8m0fnu,
    "ue4m3": ml_dtypes.float8_e4m3fn, "e2m1": ml_dtypes.float4_e2m1fn, "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
}  # fmt: skip
_PRECISION = {"f16": 11, "bf16": 8, "f32": 24, "tf32": 11, "f64": 53}
_LEAST_PRECISION = 11  # bits: shorter constants are numbers of their own
_MOST_PARTS = 4096  # n of 1/n


def floats_of(bits: Words, format: str) -> npt.NDArray[np.float64]:
    """Numbers of a format by their bits."""
    kind = np.dtype(_DTYPES[format])
    raw = np.ascontiguousarray(bits, "<u8").view(np.uint8).reshape(-1, 8)[:, : kind.itemsize]
    with np.errstate(invalid="ignore"):
        found: npt.NDArray[np.float64] = np.ascontiguousarray(raw).view(kind)[:, 0].astype(np.float64)
    return found


def bits_of(numbers: npt.NDArray[np.float64], format: str) -> Words:
    """The bits of numbers, rounded to a format."""
    kind = np.dtype(_DTYPES[format])
    wide = np.zeros((len(numbers), 8), np.uint8)
    wide[:, : kind.itemsize] = numbers.astype(kind).view(np.uint8).reshape(-1, kind.itemsize)
    return wide.view("<u8")[:, 0]


@cache
def _known(precision: int) -> dict[float, tuple[int, int, int]]:
    """Mantissas that a product has once it is rounded: its exponent, the power of log2 e in it, and that of √2."""
    found: dict[float, tuple[int, int, int]] = {}
    for logs in (-1, 0, 1):
        for roots in (0, 1):
            if logs or roots:
                mantissa, exponent = math.frexp(math.log2(math.e) ** logs * math.sqrt(2) ** roots)
                found[_rounded(mantissa, precision)] = exponent, logs, roots
    return found


def elements(numbers: npt.NDArray[np.float64], prime: int, log2e: int, format: str) -> Words:
    """Finite numbers as elements of the field of a prime, in which log2 e is some element."""
    unique, back = np.unique(numbers, return_inverse=True)
    precision = _PRECISION.get(format, 0)
    found = np.array([_element(number, prime, log2e, precision) for number in unique.tolist()], np.uint64)
    return found[back]


def _element(number: float, prime: int, log2e: int, precision: int) -> int:
    if not number or abs(number) == _rest(precision):
        return 0
    mantissa, exponent = math.frexp(abs(number))
    sign = 1 if number > 0 else -1
    if precision >= _LEAST_PRECISION:
        known = _known(precision).get(mantissa)
        if known is not None:
            shift, logs, roots = known
            product = pow(log2e, logs, prime) * pow(root_of_two(prime), roots, prime)
            return sign * product * pow(2, exponent - shift, prime) % prime
    top, bottom = _ratio(number, precision)
    return top * pow(bottom, -1, prime) % prime


def _ratio(number: float, precision: int) -> tuple[int, int]:
    """A number as a quotient: 1/n where it is that, rounded."""
    parts = round(1 / abs(number)) if abs(number) > 1 / (_MOST_PARTS + 1) else 0
    if precision >= _LEAST_PRECISION and parts > 2 and _rounded(1 / parts, precision) == abs(number):
        return (1 if number > 0 else -1), parts
    return number.as_integer_ratio()


def exact(number: float, format: str) -> Fraction | None:
    """The rational number that a constant is taken for; None if it is not one."""
    precision = _PRECISION.get(format, 0)
    if not math.isfinite(number):
        return None
    if not number:
        return Fraction(0)
    is_known = precision >= _LEAST_PRECISION and math.frexp(abs(number))[0] in _known(precision)
    return None if is_known or abs(number) == _rest(precision) else Fraction(*_ratio(number, precision))


@cache
def _rest(precision: int) -> float:
    """What rounding takes away from log2 e: kernels that multiply by log2 e in two parts add it again."""
    exact = math.log2(math.e)
    return _rounded(exact - _rounded(exact, precision), precision) if _LEAST_PRECISION <= precision < 53 else -1.0


def _rounded(number: float, precision: int) -> float:
    mantissa, exponent = math.frexp(number)
    return math.ldexp(round(mantissa * 2**precision) / 2**precision, exponent)
