"""What native functions may do besides Python's operators, as plain Python does it.

Where the width matters and Python cannot see it, the type comes first: `leading_zeros(u32, x)`. What touches memory
by address does not work in plain Python and says so.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar, overload

from .types import Float, Integer, Pointer, Type

T = TypeVar("T")


class Table(tuple[int, ...]):
    """Constants of one type."""

    type: Type


def table(type: type[int], values: Iterable[int]) -> Table:
    """A constant table of that type; a plain tuple of integers in a module is one of `u32`."""
    found = Table(values)
    assert isinstance(type, Integer)
    assert all(type.holds(value) for value in found), f"every entry fits {type}"
    found.type = type
    return found


def constants(values: tuple[int, ...]) -> Pointer[int]:
    """A table as a field of a constant record: in machine code, the address of its first element."""
    return values  # type: ignore[return-value]


def array(type: type[T], length: int) -> Pointer[T]:
    """`length` zeros, on the stack: they are gone when the function returns."""
    return [0] * length  # type: ignore[return-value]


def scratch(type: type[T], length: int) -> Pointer[T]:
    """As `array`, for what is written before it is read: in machine code it holds anything."""
    return [0] * length  # type: ignore[return-value]


def count_ones(value: int) -> int:
    """How many bits are one; a `u32`, as the other counts are."""
    return value.bit_count()


def leading_zeros(type: type[int], value: int) -> int:
    """Zero bits above the highest one; all of them for 0."""
    return _width(type) - value.bit_length()


def trailing_zeros(type: type[int], value: int) -> int:
    """Zero bits below the lowest one; all of them for 0."""
    return (value & -value).bit_length() - 1 if value else _width(type)


def reverse_bits(type: type[int], value: int) -> int:
    return int(f"{value:0{_width(type)}b}"[::-1], 2)


def _width(type: object) -> int:
    assert isinstance(type, Integer)
    assert not type.signed, "the type is an unsigned integer"
    return type.bits


def float_bits(type: type[float], value: float) -> int:
    """The pattern of a float, as `u32` or `u64`. Python may make a signalling NaN of 32 bits a quiet one."""
    assert isinstance(type, Float)
    return int(struct.unpack("<I", struct.pack("<f", value))[0] if type.bits == 32 else _pattern(value))


def bits_float(type: type[float], bits: int) -> float:
    """The float of a pattern."""
    assert isinstance(type, Float)
    layout, word = ("<f", "<I") if type.bits == 32 else ("<d", "<Q")
    return float(struct.unpack(layout, struct.pack(word, bits))[0])


def _pattern(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


def truncate(type: type[int], value: float) -> int:
    """A float cut towards zero, which the type holds: unlike a conversion, it is undefined where that is not so."""
    assert isinstance(type, Integer)
    assert type.holds(int(value)), f"{value} fits {type}"
    return int(value)


def sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def fma(type: type[float], a: float, b: float, c: float) -> float:
    """`a * b + c`, rounded once to the type."""
    from fractions import Fraction

    assert isinstance(type, Float)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return c if math.isinf(c) and math.isfinite(a) and math.isfinite(b) else a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
    if type.bits == 64 or Fraction(nearest) == exact:
        return type(nearest)
    # Rounded to odd in 64 bits, the number rounds to 32 bits as the exact one does.
    low = nearest if abs(Fraction(nearest)) < abs(exact) else math.nextafter(nearest, 0.0)
    return type(bits_float(_F64, _pattern(low) | 1))


_F64: Any = Float("f64", "double", 64)


def likely(condition: bool) -> bool:
    """The condition, which usually holds: the code under it is laid out first."""
    return condition


def unlikely(condition: bool) -> bool:
    """The condition, which hardly ever holds."""
    return condition


def trap() -> NoReturn:
    """Stop the process at once: a state that cannot be."""
    raise AssertionError("a native function reached its trap")


def _compiled_only(name: str) -> NoReturn:
    raise NotImplementedError(f"`{name}` works on addresses: it has to be compiled")


def cast(type: type[T], value: object) -> T:
    """A pointer as another one, an address (`u64`) as a pointer, or a pointer as an address. 0 is the null pointer."""
    _compiled_only("cast")


def address_of(pointer: T) -> Pointer[T]:
    """The address of `p[i]` or `p.field`; in plain Python, a variable that holds a structure refers to it already."""
    if isinstance(pointer, int | float):
        _compiled_only("address_of")
    return pointer  # type: ignore[return-value]


def function_pointer(function: Callable[..., object]) -> Pointer[int]:
    """The address of a native function, for `call`."""
    _compiled_only("function_pointer")


@overload
def call(result: None, function: object, *arguments: object) -> None: ...
@overload
def call(result: type[T], function: object, *arguments: object) -> T: ...
def call(result: object, function: object, *arguments: object) -> Any:
    """Call the function at an address; arguments are passed with the types that they have."""
    _compiled_only("call")


def copy_bytes(to: Pointer[Any], source: Pointer[Any], count: int) -> None:
    """Copy bytes between memory that does not overlap."""
    _compiled_only("copy_bytes")


def fill_bytes(to: Pointer[Any], byte: int, count: int) -> None:
    _compiled_only("fill_bytes")


def atomic_load(pointer: Pointer[T]) -> T:
    """The value, in one order with all other atomic operations (as these all are)."""
    _compiled_only("atomic_load")


def atomic_store(pointer: Pointer[T], value: T) -> None:
    _compiled_only("atomic_store")


def atomic_add(pointer: Pointer[int], value: int) -> int:
    """Add, wrapping around; the result is what was there before."""
    _compiled_only("atomic_add")


def atomic_and(pointer: Pointer[int], value: int) -> int:
    _compiled_only("atomic_and")


def atomic_or(pointer: Pointer[int], value: int) -> int:
    _compiled_only("atomic_or")


def atomic_exchange(pointer: Pointer[T], value: T) -> T:
    """Store; the result is what was there before."""
    _compiled_only("atomic_exchange")


def atomic_compare_exchange(pointer: Pointer[T], expected: T, value: T) -> T:
    """Store where `expected` is found; the result is what was there before."""
    _compiled_only("atomic_compare_exchange")
