"""A name that a loop of the GPU reads and then gives another register is refused; one that it only writes is not."""

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxlab.author import f32, kernel, pointer, ptx, u32

from .writing import lines, refusal


def counted(x: Any, n: Any, s: Any, a: Any) -> None:
    i = u32(0)
    with ptx.loop():
        ptx.leave_when(i >= n)
        x[i] = a
        i = i + 1


def largest(x: Any, n: Any, s: Any, a: Any) -> None:
    for i in ptx.range(n):
        a = ptx.max.f32(a, x[i])


def pointers(x: Any, n: Any, s: Any, a: Any) -> None:
    for _ in ptx.range(n):
        x[0] = a
        x = x + 4


def sums(x: Any, n: Any, s: Any, a: Any) -> None:
    totals = [f32(0.0), f32(0.0)]
    for i in ptx.range(n):
        with ptx.when(i != 3):
            totals = [total + x[i] for total in totals]


def swapped(x: Any, n: Any, s: Any, a: Any) -> None:
    other = f32(1.0)
    for _ in ptx.range(n):
        x[0] = other
        other, a = a, other


@pytest.mark.parametrize(
    ("write", "name", "shown"),
    [
        (counted, "i", "i = i + 1"),
        (largest, "a", "a = ptx.max.f32(a, x[i])"),
        (pointers, "x", "x = x + 4"),
        (sums, "totals", "totals = [total + x[i] for total in totals]"),
        (swapped, "other", "other, a = a, other"),
    ],
)
def test_lost(write: Callable[..., Any], name: str, shown: str) -> None:
    found = refusal(write)
    message = f"`{name}` gets another register here, and the next round of the loop reads the old one"
    assert (found.code, found.message) == ("lost-value", message)
    assert linecache.getline(__file__, found.line or 0).strip() == shown


def fresh_in_each_round(x: Any, n: Any, s: Any, a: Any) -> None:
    value = x[0]
    for i in ptx.range(n):
        value = x[i]
        value = value * a
        x[i] = value


def swapped_twice(x: Any, n: Any, s: Any, a: Any) -> None:
    other = f32(1.0)
    for _ in ptx.range(n):
        for _ in range(2):
            x[0] = other
            other, a = a, other


def counted_by_python(x: Any, n: Any, s: Any, a: Any) -> None:
    written = 0
    with ptx.loop():
        x[written] = a
        written = written + 1
        ptx.leave_when(n > 3)


def named_in_a_list(x: Any, n: Any, s: Any, a: Any) -> None:
    part = a
    for i in ptx.range(n):
        products = [part * a for part in (x[i], x[i + 1])]  # another `part`, which ends with the list
        for part in products:
            x[i] = part


@pytest.mark.parametrize("write", [fresh_in_each_round, swapped_twice, counted_by_python, named_in_a_list])
def test_kept(write: Callable[..., Any]) -> None:
    assert lines(write)


def test_what_the_help_suggests_counts() -> None:
    @kernel
    def prefix(x: pointer[f32], n: u32):
        total, i = f32(0.0), u32(0)
        with ptx.loop():
            ptx.leave_when(i >= n)
            total.set(total + x[i])
            x[i] = total
            i += 1

    x = np.arange(8, dtype=np.float32)
    prefix.launch(grid=1, block=1, args=[x, 8])
    assert np.array_equal(x, np.arange(8).cumsum())
