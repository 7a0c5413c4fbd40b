"""Structures: passed to kernels and device functions by value and returned by them, laid out as in C."""

import struct as struct_module
from typing import Any

import numpy as np
import pytest

from ptxlab.author import (
    Kernel,
    f16,
    f32,
    f64,
    function,
    kernel,
    pointer,
    ptx,
    s32,
    shared_pointer,
    struct,
    u8,
    u32,
    u64,
)
from ptxlab.report import Diagnostic, PtxError

from ..tools import needs_ptxas


class Scaling(struct):
    factor: f32
    shift: s32


class Ray(struct):
    """Padding after `steps`, and names that a pointer of Python has too."""

    offset: f32
    size: f64
    steps: u8
    half: f16
    how: Scaling
    out: pointer[f32]


@function
def walk(ray: Ray, by: u32) -> Ray:
    size = ptx.fma.rn.f64(ray.size, 2.0, ptx.cvt.rn.f64.u32(by))
    return Ray(ray.offset + 1.0, size, ray.steps + 1, half=ray.half, how=ray.how, out=ray.out)


@function
def walk_twice(ray: Ray, by: u32) -> tuple[u32, Ray]:
    return by + 1, walk(walk(ray, by), by + 1)


@kernel
def walks(fields: struct[32, 8], out: pointer[f32], count: pointer[u64], by: u32):
    """The launch knows where `out` is, so the structure is made here."""
    how = Scaling(fields.field(f32, 20), fields.field(s32, 24))
    steps, half = fields.field(u8, 16), fields.field(f16, 18)
    number, moved = walk_twice(Ray(fields.field(f32, 0), fields.field(f64, 8), steps, half, how, out), by)
    moved.out[0] = moved.offset
    moved.out[1] = ptx.cvt.rn.f32.f64(moved.size)
    moved.out[2] = ptx.cvt.rn.f32.u16(moved.steps)
    moved.out[3] = ptx.cvt.f32.f16(moved.half)
    moved.out[4] = moved.how.factor
    moved.out[5] = ptx.cvt.rn.f32.s32(moved.how.shift)
    count[0] = ptx.cvt.u64.u32(number)


def test_a_structure_goes_through_functions_and_comes_back() -> None:
    assert ".func (.param .align 8 .b8 returned[40]) walk(" in str(walks)
    assert ".func (.param .align 8 .b8 returned[48]) walk_twice(" in str(walks)
    assert str(walks).count(".param .align 8 .b8 ray[40]") == 2
    out, count = np.zeros(6, np.float32), np.zeros(1, np.uint64)
    walks.launch(grid=1, block=1, args=[struct_module.pack("<f4xdBxefi4x", 0.5, 3.0, 7, 1.5, -2.0, 9), out, count, 5])
    assert out.tolist() == [2.5, (3.0 * 2 + 5) * 2 + 6, 9.0, 1.5, -2.0, 9.0]
    assert count[0] == 6


class Twice(struct):
    first: Scaling
    number: u64
    second: Scaling


@function
def scaled(x: f32, how: Scaling) -> f32:
    return x * how.factor + ptx.cvt.rn.f32.s32(how.shift)


@function
def scaled_twice(x: f32, how: Twice) -> f32:
    return scaled(scaled(x, how.first), how.second)


def test_a_parameter_is_passed_on_field_by_field() -> None:
    @kernel
    def k(x: pointer[f32], how: Twice):
        x[ptx.tid.x] = scaled_twice(x[ptx.tid.x], how)

    x = np.arange(4, dtype=np.float32)
    k.launch(grid=1, block=4, args=[x, struct_module.pack("<fiQfi", 2.0, 1, 0, -1.0, 5)])
    assert x.tolist() == [4.0, 2.0, 0.0, -2.0]
    copied = [line.split()[1] for line in str(k).split("\n") if "st.param" in line and "argument_1" in line]
    assert copied == [f"[argument_1{offset}]," for offset in ("", "+4", "", "+4", "", "+4", "+8", "+16", "+20")]


@needs_ptxas
def test_ptxas_takes_them() -> None:
    from ptxlab.toolchain import assemble

    assert assemble(walks.ptx).cubin is not None


def test_bytes_without_names_are_copied() -> None:
    @function
    def third(bytes: struct[13, 4]) -> f32:
        return bytes.field(f32, 8) + ptx.cvt.rn.f32.u16(bytes.field(u8, 12))

    @kernel
    def k(x: pointer[f32], bytes: struct[13, 4]):
        x[0] = third(bytes)

    x = np.zeros(1, np.float32)
    k.launch(grid=1, block=1, args=[x, struct_module.pack("<fffB", 1, 2, 3, 4)])
    assert x[0] == 7.0
    copied = [line.split()[0] for line in str(k).split("\n") if "st.param" in line and "argument_0" in line]
    assert copied == ["st.param.b32"] * 3 + ["st.param.b8"]


class Window(struct):
    tile: shared_pointer[f32]
    count: u32


@function
def next_window(window: Window) -> Window:
    return Window(window.tile + window.count, window.count)


def test_a_pointer_into_shared_memory_in_a_structure_is_generic() -> None:
    @kernel
    def k(x: pointer[f32]):
        tile = ptx.shared(f32, 8)
        i = ptx.tid.x
        tile[i] = x[i]
        ptx.bar.sync(0)
        with ptx.when(i < 4):
            x[i] = next_window(Window(tile + i, 4)).tile[0]

    x = np.arange(8, dtype=np.float32)
    k.launch(grid=1, block=8, args=[x])
    assert x.tolist() == [4, 5, 6, 7, 4, 5, 6, 7]
    assert "cvta.shared.u64" in str(k)
    assert "cvta.to.shared.u64" in str(k)


class Other(struct):
    factor: f32
    shift: s32


class Wrong(struct):
    factor: float


@function
def returns_another(how: Scaling) -> Scaling:
    return Other(how.factor, how.shift)


@function
def returns_bytes(how: Scaling) -> struct[8, 4]:
    return how


@function
def takes_wrong(how: Wrong) -> None:
    pass


def _assign(how: Any) -> None:
    how.factor = 2.0


@pytest.mark.parametrize(
    ("write", "code", "message"),
    [
        (lambda x, how: scaled(x, Other(x, 1)), "operand-type", "`how` is a `Other`, expected a `Scaling`"),
        (lambda x, how: scaled(x, 1.0), "operand-type", "`how` is the Python float 1.0, expected a `Scaling`"),
        (lambda x, how: scaled(how, how), "operand-type", "`x` is a `Scaling`, expected a `f32`"),
        (lambda x, how: Scaling(x), "operand-count", "`Scaling` lacks `shift`"),
        (lambda x, how: Scaling(x, 1, 2), "operand-count", "`Scaling` has 2 fields, 3 given"),
        (lambda x, how: Scaling(x, 1, factor=x), "unknown-argument", "`factor` is given twice"),
        (lambda x, how: Scaling(x, 1, by=x), "unknown-argument", "`by` is not a field of `Scaling`"),
        (lambda x, how: Scaling(x, x), "operand-type", "`shift` of `Scaling` is a `f32`, expected a `s32`"),
        (lambda x, how: how.by, "unknown-name", "`Scaling` has no field `by`"),
        (
            lambda x, how: _assign(how),
            "read-only-parameter",
            "`factor` of `Scaling` is in parameter memory, which is read-only",
        ),
        (
            lambda x, how: returns_another(how),
            "operand-type",
            "what `returns_another` returns is a `Other`, expected a `Scaling`",
        ),
        (
            lambda x, how: returns_bytes(how),
            "missing-type",
            "a device function returns numbers and structures with fields, not struct[8, 4]",
        ),
        (
            lambda x, how: takes_wrong(how),
            "missing-type",
            "the field `factor` of `Wrong` is not of a PTX type: <class 'float'>",
        ),
    ],
)
def test_refused_on_the_line(write: Any, code: str, message: str) -> None:
    found = _refusal(write)
    assert (found.code, found.message, found.file) == (code, message, __file__)


def _refusal(write: Any) -> Diagnostic:
    @kernel
    def k(x: f32, how: Scaling):
        write(x, how)

    assert isinstance(k, Kernel)
    with pytest.raises(PtxError) as raised:
        str(k)
    (found,) = raised.value.diagnostics
    return found
