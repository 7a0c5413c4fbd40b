"""Structures, records and pointers of native functions."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy
from tests.native.agreement import agree

from ptxlab.native import (
    Array,
    Pointer,
    address_of,
    boolean,
    cast,
    f64,
    native,
    offset_of,
    s64,
    size_of,
    struct,
    u8,
    u16,
    u32,
    u64,
)
from ptxlab.native.engine import compiled


@struct
class Item:
    kind: u8
    weight: u64
    small: u16
    flag: boolean
    next: Pointer[Item]


@struct
class Box:
    counts: Array[u16, 3]
    items: Array[Item, 2]
    best: Item
    owner: Pointer[Box]
    scale: f64


class CItem(ctypes.Structure):
    pass


CItem._fields_ = [
    ("kind", ctypes.c_uint8),
    ("weight", ctypes.c_uint64),
    ("small", ctypes.c_uint16),
    ("flag", ctypes.c_bool),
    ("next", ctypes.POINTER(CItem)),
]


class CBox(ctypes.Structure):
    _fields_ = (
        ("counts", ctypes.c_uint16 * 3),
        ("items", CItem * 2),
        ("best", CItem),
        ("owner", ctypes.c_void_p),
        ("scale", ctypes.c_double),
    )


def test_structures_are_laid_out_as_in_c() -> None:
    assert size_of(Item) == ctypes.sizeof(CItem)
    assert size_of(Box) == ctypes.sizeof(CBox)
    for name in ("kind", "weight", "small", "flag", "next"):
        assert offset_of(Item, name) == getattr(CItem, name).offset
    for name in ("counts", "items", "best", "owner", "scale"):
        assert offset_of(Box, name) == getattr(CBox, name).offset


@native
def visit(box: Pointer[Box], by_reference: Box) -> u64:
    box.counts[1] = 7
    box.counts[2] += box.counts[1]
    box.best.weight = 1 << 40
    box.best.flag = True
    box.items[0].next = address_of(box.items[1])
    box.items[1].weight = 5
    box.items[1].next = cast(Pointer[Item], 0)
    box.owner = box
    box.owner.owner.scale = box.scale * 2 + 0.25
    total: u64 = 0
    item = address_of(box.items[0])
    while item:
        total += item.weight
        item = item.next
    best = by_reference.best
    if best.flag and box.owner == box and box.best.next == 0:
        total += best.weight
    return total + size_of(Item) * 1000 + offset_of(Box, "scale")


def test_fields_are_read_and_written() -> None:
    box = CBox(scale=1.5)
    box.items[0].weight = 3
    box.counts[2] = 1
    expected = 3 + 5 + (1 << 40) + ctypes.sizeof(CItem) * 1000 + CBox.scale.offset
    assert compiled(visit)(box, box) == expected
    assert (list(box.counts), box.best.flag, box.scale) == ([0, 7, 8], True, 3.25)


@struct
@dataclass
class Range:
    first: u32 = 0
    past: u32 = 1


@struct
@dataclass
class Cut:
    is_reversed: boolean
    weight: u64
    range: Range


@native
def sum_of_cut(values: Pointer[u32], cut: Cut) -> u64:
    total: u64 = 0
    for at in range(cut.range.first, cut.range.past):
        total += cut.weight * u64(values[at])
    cut.weight += 1
    return total if not cut.is_reversed else total + 1_000_000


@native
def sum_of_cuts(values: Pointer[u32], count: u32) -> u64:
    total: u64 = 0
    for first in range(count):
        whole = Range(first=first, past=count)
        cut = Cut(weight=u64(first) + 2, range=whole, is_reversed=first == 1)
        total += sum_of_cut(values, cut) + sum_of_cut(values, cut)
        total += sum_of_cut(values, Cut(is_reversed=False, weight=1 << 40, range=Range()))
    return total


def test_records_are_made_on_the_stack() -> None:
    agree(sum_of_cuts, ([3, 5, 7, 11], 4), ([1], 1), ([2, 3], 2))


@native
def walk(values: Pointer[u32], count: u32) -> s64:
    end = values + count
    at = end - 1
    while at > values:
        at[0] = at[0] + at[-1]
        at = at - 1
    bytes = cast(Pointer[u8], values)
    bytes[1] = 0xAB
    same = cast(Pointer[u32], cast(u64, bytes) + 4)
    same[0] += 1
    return (end - at) * 100 + (same - values)


def test_pointers_move_by_elements() -> None:
    values = numpy.array([1, 2, 3, 4], dtype=numpy.uint32)
    assert compiled(walk)(values, 4) == 401
    assert values.tolist() == [0xAB01, 4, 5, 7]
