"""Which bytes of a parameter each value of an argument becomes.

A structure is given as values in the order of its fields, nested as one likes: `(map, (rows, columns), x, 1.0)`. Fields
are what the kernel reads (see `parameter_fields`); fields that it does not read may be given too, where their count is
clear from the alignment of the parameter. `{0: map, 136: 1.0}` says the offsets itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.parameter_fields import MAP, POINTER, ParameterField
from ptxlab.device.structures import PointerArray, is_container
from ptxlab.device.structures import fields as values_of
from ptxlab.device.tensor_maps import BYTES as MAP_BYTES
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.values import dataclass

POINTER_BYTES = 8
MAP_ALIGNMENT = 64
_MOST_LAYOUTS = 4096


class PlacingError(ValueError):
    """What is wrong with an argument, with the layout that was read as notes."""

    def __init__(self, problem: str, notes: Sequence[str] = (), helps: Sequence[str] = ()) -> None:
        super().__init__(problem)
        self.notes, self.helps = list(notes), list(helps)


@dataclass(frozen=True)
class Encoded:
    """A tensor map as a GPU reads it, for a field of 128 bytes or one that points to it."""

    data: bytes


@dataclass(frozen=True)
class PlacedValue:
    """A value and the bytes of the parameter that it becomes."""

    field: ParameterField
    value: Any


def place(parameter: ir.Variable, fields: Sequence[ParameterField], value: object) -> list[PlacedValue]:
    """The values that an argument for a structure consists of, each with its field."""
    size = layout.size_of_variable(parameter)
    data = _as_bytes(value, size)
    if data is not None:
        return [PlacedValue(ParameterField(0, len(data), "b8"), data)]
    if isinstance(value, dict) and all(isinstance(key, int) for key in value) and value:
        return [one for start, part in value.items() for one in _place_at(fields, start, part, size)]
    values = list(values_of(value))
    if (exact := _matched(fields, values)) is not None:
        return exact
    widest = min(layout.alignment_of(parameter), POINTER_BYTES)
    found = [one for way in _with_gaps(fields, size, widest) if (one := _matched(way, values)) is not None]
    ways = {tuple(number for number, one in enumerate(way) if one.field in fields) for way in found}
    if len(ways) == 1:
        return found[0]
    if len(ways) > 1:
        problem = f"{len(values)} values for `{parameter.title}`, and which of them the kernel reads is not clear"
        raise PlacingError(problem, [describe(parameter, fields)], [_HELP])
    if not values:
        return []  # an empty structure of C++ has a byte that nothing reads
    is_scalar = not (parameter.dimensions or parameter.vector > 1)
    numbers = all(isinstance(one, (int, float)) for one in values)
    is_map = len(fields) == len(values) == 1 and fields[0].kind == MAP and _is_memory(values[0])
    helps = [_MAP_HELP if is_map else _ARRAY_HELP if is_scalar and numbers else _HELP]
    raise PlacingError(_problem(parameter, fields, values), [describe(parameter, fields)], helps)


_HELP = (
    "give one value for each field, in this order; or by offset, `{0: x, 8: 1.0}`, or the bytes of the whole structure"
)

_MAP_HELP = (
    "describe the array and the box that is copied: `ptxlab.tensor_map(x, box=(rows, columns))`, on the command line "
    "`map:f16[64,64]=random,box=8x64`"
)

_ARRAY_HELP = "a list is a structure here; pass an array, as `numpy.array(x, numpy.float32)` makes it"


def describe(parameter: ir.Variable, fields: Sequence[ParameterField]) -> str:
    """The layout of a parameter, as a note."""
    size = layout.size_of_variable(parameter)
    listed = ", ".join(map(str, fields)) or "nothing"
    end, unread = 0, []
    for field in (*fields, ParameterField(size, 0, "b8")):
        if field.offset > end:
            unread.append(f"{end}..{field.offset}")
        end = field.offset + field.size
    rest = f"; bytes {', '.join(unread)} are not read" if unread else ""
    return f"of the {size} bytes of `{parameter.title}`, the kernel reads {listed}{rest}"


def _problem(parameter: ir.Variable, fields: Sequence[ParameterField], values: Sequence[object]) -> str:
    size = layout.size_of_variable(parameter)
    if not fields:
        return f"the parameter is an aggregate of {size} bytes, and the kernel reads none of them: pass `()` or `bytes`"
    if len(values) != len(fields):
        given = f"{len(values)} value{'s' * (len(values) != 1)}"
        return (
            f"{given} for `{parameter.title}`, of which the kernel reads {len(fields)} field{'s' * (len(fields) != 1)}"
        )
    field, value = next(pair for pair in zip(fields, values, strict=True) if not _fits(*pair))
    if field.kind == MAP and len(fields) == 1:
        return f"`{parameter.title}` is a tensor map, and got {_spell(value)}"
    return f"{_spell(value)} for the field at {field} of `{parameter.title}`"


def _spell(value: object) -> str:
    if isinstance(value, (TensorMap, Encoded)):
        return "a tensor map"
    if isinstance(value, PointerArray):
        return "an array of pointers"
    if _is_memory(value):
        return "an array"
    return f"{value!r:.40}" if not isinstance(value, bytes) else f"{len(value)} bytes"


def _as_bytes(value: Any, size: int) -> bytes | None:
    """The whole structure as its bytes, where that is what is given: `bytes`, a record or an array of NumPy's."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
    elif is_record(value) or (_is_array(value) and value.nbytes == size != POINTER_BYTES):
        data = value.tobytes()
    elif hasattr(value, "_fields_") and not isinstance(value, tuple):  # a structure of ctypes
        data = bytes(value)
    else:
        return None
    if len(data) != size:
        raise PlacingError(f"{len(data)} byte{'s' * (len(data) != 1)} for a parameter of {size}")
    return data


def is_record(value: Any) -> bool:
    """Whether a value is one record of NumPy's, not an array of them."""
    names = getattr(getattr(value, "dtype", None), "names", None)
    return names is not None and value.shape == () and not hasattr(value, "ctypes")


def _is_memory(value: object) -> bool:
    """Whether a value is an array, or one of pointers, which a pointer points to."""
    return isinstance(value, PointerArray) or (
        hasattr(value, "__array_interface__") and getattr(value, "shape", ()) != ()
    )


def _is_address(value: object) -> bool:
    """Whether a pointer is what a value becomes: memory, or `None`, the null pointer."""
    return value is None or _is_memory(value)


def _is_array(value: object) -> bool:
    if isinstance(value, PointerArray):
        return False
    return _is_memory(value) or getattr(getattr(value, "dtype", None), "names", None) is not None


def _place_at(fields: Sequence[ParameterField], start: int, value: object, size: int) -> Iterator[PlacedValue]:
    """Values from an offset on, one after the other; a field that is not read is as large as its value."""
    at = start
    for leaf in values_of(value):
        field = next((one for one in fields if one.offset >= at), None)
        if is_container(value) and field is not None:
            at = field.offset
        if field is None or field.offset != at or _says_its_size(leaf, field, size):
            field = _field_of(leaf, at)
        if not 0 <= at <= at + field.size <= size:
            raise PlacingError(f"{_spell(leaf)} at offset {at} is not within the {size} bytes of the parameter")
        if not _fits(field, leaf):
            raise PlacingError(f"{_spell(leaf)} for the field at {field}")
        yield PlacedValue(field, leaf)
        at += field.size


def _says_its_size(value: object, field: ParameterField, size: int) -> bool:
    """Whether a value is as large as it says, however the kernel reads it: bytes, a copied tensor map, a pointer.

    Of structures in an array that a register indexes, only the user knows which bytes are pointers.
    """
    if isinstance(value, (TensorMap, Encoded)):
        is_aligned = field.offset % MAP_ALIGNMENT == 0 and field.offset + MAP_BYTES <= size
        return field.kind != POINTER and is_aligned
    return isinstance(value, (bytes, bytearray, memoryview)) or (_is_address(value) and field.size != POINTER_BYTES)


def _field_of(value: object, at: int) -> ParameterField:
    """The field of a value at an offset where the kernel reads none, so that only the value says how large it is."""
    if isinstance(value, (TensorMap, Encoded)):
        return ParameterField(at, MAP_BYTES, MAP)
    if _is_address(value):
        return ParameterField(at, POINTER_BYTES, POINTER)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return ParameterField(at, len(value), "b8")
    width = int(getattr(getattr(value, "dtype", None), "itemsize", 4))
    return ParameterField(at, width, f"b{8 * width}")


def _with_gaps(fields: Sequence[ParameterField], size: int, widest: int) -> Iterator[list[ParameterField]]:
    """Layouts of the fields and of words between them that are not read; a gap may be padding, and have none."""
    gaps: list[list[list[ParameterField]]] = []
    at = 0
    for field in (*fields, ParameterField(size, 0, "b8")):
        words = [_words(at, field.offset, min(widest, most)) for most in (8, 4)]
        aligned = field.size or widest
        if 0 < field.offset - at < aligned and field.offset % aligned == 0:
            words += [[], _words(at, -(-at // 4) * 4 + 4, 4)] if field.offset - at > 4 else [[]]
        gaps.append([ways for number, ways in enumerate(words) if ways not in words[:number]])
        at = field.offset + field.size
    for chosen in islice(product(*gaps), _MOST_LAYOUTS):
        parts = zip(chosen, [*([field] for field in fields), []], strict=True)
        yield [field for gap, own in parts for field in (*gap, *own)]


def _words(start: int, end: int, width: int) -> list[ParameterField]:
    """Words from here to there, as large as their alignment allows."""
    found = []
    while start < end:
        size = width
        while start % size or start + size > end:
            size //= 2
        found.append(ParameterField(start, size, f"b{8 * size}"))
        start += size
    return found


def _matched(fields: Sequence[ParameterField], values: Sequence[object]) -> list[PlacedValue] | None:
    """Each value with its field, if there are as many and each fits."""
    if len(fields) != len(values) or not values:
        return None
    pairs = list(zip(fields, values, strict=True))
    return [PlacedValue(*pair) for pair in pairs] if all(_fits(*pair) for pair in pairs) else None


def _fits(field: ParameterField, value: object) -> bool:
    """Whether a value can be what a field holds; numbers are checked when they become bytes."""
    if isinstance(value, (TensorMap, Encoded)):
        return field.kind in (MAP, POINTER) or field.size == POINTER_BYTES
    if isinstance(value, (bytes, bytearray, memoryview)):
        return len(value) == field.size
    if field.kind == MAP:
        return False
    if _is_address(value):
        return field.size == POINTER_BYTES
    return not (isinstance(value, float) and field.kind == POINTER)
