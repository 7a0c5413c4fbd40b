"""Pointers compare and move as numbers do; what no address means is refused on its line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxlab.author import (
    f16,
    f32,
    f64,
    function,
    generic_pointer,
    kernel,
    pointer,
    pred,
    ptx,
    s32,
    shared_pointer,
    u8,
    u32,
)
from ptxlab.report import PtxError

from .writing import lines, refusal


def test_pointers_compare_by_their_addresses() -> None:
    @kernel
    def ends(x: pointer[f32], sums: pointer[f32], n: u32):
        first, end, total = x.copy(), x + n, f32(0.0)
        with ptx.loop():
            ptx.leave_when(first >= end)
            total += first[0]
            first += 1
        last, product = end.copy(), f32(1.0)
        with ptx.loop():
            ptx.leave_when(last == x)
            last -= 1
            product *= last[0]
        sums.v2[0] = (total, product)

    x, sums = np.array([1.5, 2.0, -3.0, 4.0], np.float32), np.zeros(2, np.float32)
    ends.launch(grid=1, block=1, args=[x, sums, 4])
    assert sums.tolist() == [x.sum(), x.prod()]


@pytest.mark.parametrize(
    ("write", "written"),
    [
        (lambda x, n, s, a: x + 4 != x, ["add.u64 %rd3, %rd2, 16;", "setp.ne.u64 %p1, %rd3, %rd2;"]),
        (lambda x, n, s, a: x - 2 < x, ["add.u64 %rd3, %rd2, -8;", "setp.lt.u64 %p1, %rd3, %rd2;"]),
        (lambda x, n, s, a: x.vector(1).store((a,)), ["st.global.f32 [%rd2], %f1;"]),
        (lambda x, n, s, a: x[1 << 30], ["ld.global.f32 %f2, [%rd2+4294967296];"]),
        (
            lambda x, n, s, a: x.generic.v2[0],
            ["cvta.global.u64 %rd3, %rd2;", "ld.v2.f32 {%f2, %f3}, [%rd3];"],
        ),
        (
            lambda x, n, s, a: ptx.shared(f32, np.int64(4))[np.int32(3)],
            [".shared .align 4 .f32 tile[4];", "mov.u32 %r3, tile;", "ld.shared.f32 %f2, [tile+12];"],
        ),
    ],
)
def test_written(write: Callable[..., Any], written: list[str]) -> None:
    assert lines(write) == written


def moved(x: Any, n: Any, s: Any, a: Any) -> None:
    x -= n


@pytest.mark.parametrize(
    ("write", "code", "message"),
    [
        (lambda x, n, s, a: x == n, "type-clash", "a pointer into global memory is compared with a `u32`"),
        (
            lambda x, n, s, a: x < ptx.shared(f32, 4),
            "type-clash",
            "a pointer into shared memory is compared with a pointer into global memory",
        ),
        (lambda x, n, s, a: x - x, "no-operator", "no instruction counts from a pointer to another"),
        (moved, "no-operator", "no instruction subtracts an index from a pointer"),
        (lambda x, n, s, a: x - 1.5, "not-an-index", "1.5 is not an index"),
        (lambda x, n, s, a: x[np.zeros(2, int)], "not-an-index", "array([0, 0]) is not an index"),
        (
            lambda x, n, s, a: x[ptx.tid],
            "not-an-operand",
            "`ptx.tid` has several components, and one number is needed here",
        ),
        (
            lambda x, n, s, a: ptx.ctaid * n,
            "not-an-operand",
            "`ptx.ctaid` has several components, and one number is needed here",
        ),
        (lambda x, n, s, a: x[1 << 61], "immediate-range", f"no two addresses are {1 << 63} bytes apart"),
        (lambda x, n, s, a: len(x), "value-needed", "a pointer does not say how many elements there are"),
        (lambda x, n, s, a: x or a, "value-needed", "whether a pointer is null is known only on the GPU"),
        (lambda x, n, s, a: x.__setitem__(0, [a, a]), "vector-size", "one element is stored here, 2 given"),
        (lambda x, n, s, a: x.v4.__setitem__(0, a), "vector-size", "a vector of 4 is stored here, 1 given"),
        (lambda x, n, s, a: x.vector(3)[0], "vector-size", "no instruction has vectors of 3"),
        (lambda x, n, s, a: x.v8[0], "unavailable-instruction", "`ld.global.v8.f32` needs PTX 8.8 with sm_100"),
        (lambda x, n, s, a: x.view(pred), "missing-type", "`pred` is not a PTX type that memory holds"),
        (lambda x, n, s, a: ptx.shared(float, 4), "missing-type", "`float` is not a PTX type that memory holds"),
        (lambda x, n, s, a: ptx.tile(float, 4, 4), "missing-type", "`float` is not a PTX type that memory holds"),
        (lambda x, n, s, a: ptx.constant(int, [4]), "missing-type", "`int` is not a PTX type that memory holds"),
        (lambda x, n, s, a: pointer[float], "missing-type", "`float` is not a PTX type that memory holds"),
        (lambda x, n, s, a: pointer[f32, "globl"], "missing-type", "no pointer points into 'globl'"),
        (
            lambda x, n, s, a: ptx.local(f32, n),
            "illegal-declaration",
            "an extent of the array is a `u32`, expected a positive Python integer",
        ),
        (
            lambda x, n, s, a: ptx.constant(u32, [1.5]),
            "type-clash",
            "a value of a table of `u32` is the Python float 1.5",
        ),
        (lambda x, n, s, a: ptx.constant(u32, [1 << 32]), "immediate-range", "4294967296 does not fit into `u32`"),
        (
            lambda x, n, s, a: ptx.constant(f32, ["1"]),
            "type-clash",
            "a value of a table of `f32` is the Python str '1'",
        ),
        (
            lambda x, n, s, a: ptx.shared(f64, 4)[np.int64(4)],
            "outside-array",
            "index 4 is outside of `tile`, which has 4 elements",
        ),
        (
            lambda x, n, s, a: ptx.shared(f64, 4, 2)[1, 2],
            "outside-array",
            "index 2 is outside of dimension 1 of `tile`, which has 2 elements",
        ),
    ],
)
def test_refused(write: Callable[..., Any], code: str, message: str) -> None:
    found = refusal(write)
    assert (found.code, found.message, found.file) == (code, message, __file__)


def test_an_array_of_another_kernel() -> None:
    kept: list[Any] = []

    @kernel
    def first(x: pointer[f32]):
        kept.append(ptx.shared(f32, 4))

    @kernel
    def second(x: pointer[f32]):
        x[0] = kept[0][0]

    str(first)
    with pytest.raises(PtxError, match="`tile` is an array of `first`, and this is `second`"):
        str(second)


def test_a_device_function_gets_the_address_of_an_array() -> None:
    arrays: list[Any] = []

    @function
    def first(tile: shared_pointer[f32]) -> f32:
        return tile[0]

    @function
    def captured() -> f32:
        return arrays[0][0]

    @kernel
    def right(x: pointer[f32]):
        tile = ptx.shared(f32, 4)
        tile[0] = 2.5
        x[0] = first(tile)

    @kernel
    def wrong(x: pointer[f32]):
        arrays.append(ptx.shared(f32, 4))
        x[0] = captured()

    x = np.zeros(1, np.float32)
    right.launch(grid=1, block=1, args=[x])
    assert x[0] == 2.5
    with pytest.raises(PtxError, match="`tile` is an array of `wrong`, and this is `captured`"):
        str(wrong)


def test_an_array_where_any_pointer_is_taken() -> None:
    @function
    def double(place: generic_pointer[f32]) -> None:
        place[0] = place[0] * 2.0

    @kernel
    def k(x: pointer[f32]):
        i = ptx.tid.x
        tile = ptx.shared(f32, 32)
        own = ptx.local(f32, 2)
        tile[i] = x[i]
        own[1] = 1.0
        for place in (tile + i, own + 1, x + i):
            double(place.generic)
        x[i] = x[i] + tile[i] + own[1]

    x = np.arange(32, dtype=np.float32)
    k.launch(grid=1, block=32, args=[x])
    assert np.array_equal(x, np.arange(32) * 4 + 2)


def test_the_help_for_an_array_as_a_generic_pointer() -> None:
    @function
    def first(place: generic_pointer[f32]) -> f32:
        return place[0]

    found = refusal(lambda x, n, s, a: first(ptx.shared(f32, 4)))
    assert found.message == "`place` is a pointer into shared memory, expected pointer[f32, generic]"
    assert [help.text for help in found.helps] == ["`x.generic` may point anywhere"]


def test_an_array_has_the_name_of_its_variable() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        parts = ptx.shared(f32, 32)
        parts[0] = a
        both = [ptx.shared(f32, 4), ptx.shared(f32, 4)]
        both[0][0] = a
        x2 = ptx.local(f32, 4, name="own")
        x2[0] = a
        for _ in range(2):
            again = ptx.shared(
                f32,
                8,
            )
            again[0] = a

    declared = [line for line in lines(write) if line.startswith((".shared", ".local"))]
    names = [line.split()[-1].partition("[")[0] for line in declared]
    assert names == ["parts", "tile", "tile_2", "own", "again", "again_2"]


def test_dynamic_shared_memory() -> None:
    @kernel
    def reverse(x: pointer[f32], n: u32):
        tile = ptx.dynamic_shared(f32, 0)
        i = ptx.tid.x
        tile[i] = x[i]
        ptx.bar.sync(0)
        x[i] = tile[n - 1 - i]

    x = np.arange(64, dtype=np.float32)
    reverse.launch(grid=1, block=64, args=[x, 64], shared=256)
    assert np.array_equal(x, np.arange(64)[::-1])


def test_pointers_of_all_kinds() -> None:
    @function
    def accumulate(tile: shared_pointer[f32], count: u32) -> f32:
        total = f32(0.0)
        for i in ptx.range(count):
            total += tile[i]
        return total

    @kernel
    def sums(x: pointer[f16], y: generic_pointer[f64], bytes: pointer[u8], h: f16, delta: s32):
        tile = ptx.shared(f32, 2, 4)
        i = ptx.tid.x
        tile[1, i] = ptx.cvt.f32.f16(x[i] + h)
        ptx.bar.sync(0)
        y[i] = ptx.cvt.f64.f32(accumulate(tile.at(1, 0), 4)) / 4.0
        bytes[i] = bytes[i] + 250
        last = x + 3
        with ptx.when(i == 0):
            (last + delta)[0] = 9.0

    x = np.arange(4, dtype=np.float16)
    y = np.zeros(4)
    data = np.arange(4, dtype=np.uint8) + 3
    sums.launch(grid=1, block=4, args=[x, y, data, 0.5, -1])
    assert y.tolist() == [2.0] * 4
    assert data.tolist() == [253, 254, 255, 0]
    assert x.tolist() == [0, 1, 9, 3]
