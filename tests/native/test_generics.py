"""Generic structures and functions: one per type that they are used with. `Growable` is both."""

from __future__ import annotations

import ctypes
from typing import Generic, TypeVar

import pytest

from ptxlab.native import (
    Growable,
    Pointer,
    address_of,
    append,
    cast,
    free_items,
    native,
    offset_of,
    reserve,
    resize,
    size_of,
    struct,
    u8,
    u16,
    u32,
    u64,
)
from ptxlab.native.engine import build, compiled
from ptxlab.native.translate import TranslationError, emit

T = TypeVar("T")
S = TypeVar("S")


@struct
class Point:
    x: u32
    y: u32
    z: u32


@struct
class Pair(Generic[S, T]):
    first: S
    second: T


@struct
class Arrays:
    before: u8
    numbers: Growable[u64]
    points: Growable[Point]


@native
def fill(arrays: Pointer[Arrays], count: u32) -> u64:
    for index in range(count):
        number: Pointer[u64] = append(arrays.numbers)
        number[0] = u64(index)
        point: Pointer[Point] = append(address_of(arrays.points))
        point.y = index * 2
    total: u64 = 0
    for index in range(arrays.numbers.count):
        point = arrays.points.items + index
        total += arrays.numbers.items[index] + u64(point.x) + u64(point.y) + u64(point.z)
    return total


@native
def empty(arrays: Pointer[Arrays]) -> None:
    free_items(arrays.numbers)
    free_items(arrays.points)


@native
def capacities(arrays: Pointer[Arrays], seen: Pointer[u32]) -> u32:
    seen[0] = u32(reserve(arrays.points, 10))
    seen[1] = arrays.points.capacity
    seen[2] = u32(reserve(arrays.points, 20))
    seen[3] = arrays.points.capacity
    seen[4] = u32(resize(arrays.points, 100))
    seen[5] = arrays.points.capacity
    count: u32 = arrays.points.count
    free_items(arrays.points)
    return count


@native
def swap(pair: Pointer[Pair[T, T]]) -> None:
    first = pair.first
    pair.first = pair.second
    pair.second = first


@native
def swap_both(narrow: Pointer[Pair[u16, u16]], wide: Pointer[Pair[u64, u64]]) -> None:
    swap(narrow)
    swap(wide)


@native
def swap_different(pair: Pointer[Pair[u16, u64]]) -> None:
    swap(pair)


@native
def first_of(items: Pointer[T]) -> T:
    return items[0]


@native
def first_null() -> u32:
    return u32(first_of(0))  # type: ignore[arg-type]


@native
def first_u16(items: Pointer[u16]) -> u16:
    return first_of(items)


def test_an_array_grows_and_new_items_are_zero() -> None:
    memory = ctypes.create_string_buffer(size_of(Arrays))
    library = build([fill, empty])
    assert library.function(fill)(memory, 1000) == sum(3 * index for index in range(1000))
    library.function(empty)(memory)
    assert memory.raw == bytes(size_of(Arrays)), "an empty array is all zeros"


def test_reserve_grows_by_half_and_only_when_it_must() -> None:
    seen = [0] * 6
    assert compiled(capacities)(ctypes.create_string_buffer(size_of(Arrays)), seen) == 0
    assert seen == [1, 10 + 5 + 8, 1, 23, 1, 100]


def test_each_instance_has_a_layout_of_its_own() -> None:
    assert size_of(Growable[Point]) == 16
    assert (size_of(Pair[u8, u64]), size_of(Pair[u8, u16])) == (16, 4)
    assert (offset_of(Arrays, "numbers"), offset_of(Arrays, "points")) == (8, 24)


def test_a_generic_function_is_translated_for_each_type() -> None:
    narrow, wide = (ctypes.c_uint16 * 2)(1, 2), (ctypes.c_uint64 * 2)(3, 4)
    compiled(swap_both)(narrow, wide)
    assert (*narrow, *wide) == (2, 1, 4, 3)
    text = emit([swap_both])
    assert all(f"swap[{name}]" in text for name in ("u16", "u64"))
    assert compiled(first_u16)([7, 8]) == 7


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (swap_different, "`swap`: `pair` is Pointer[Pair[T, T]], and Pointer[Pair[u16, u64]] is given"),
        (first_null, "`first_of`: no argument says what `T` is"),
        (swap, "`swap` is generic: it is translated where it is called"),
    ],
)
def test_types_that_do_not_fit_are_refused(function: object, message: str) -> None:
    with pytest.raises(TranslationError) as caught:
        emit([function])
    assert str(caught.value).endswith(message)


def test_python_does_not_allocate() -> None:
    with pytest.raises(NotImplementedError, match="it has to be compiled"):
        cast(Pointer[u8], 0)
