"""Operators write the one instruction that their types name, or say why there is none."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ptxlab.author import b32, f16, f16x2, f32, f64, kernel, pointer, ptx, s32, u32, u64

from .writing import lines, refusal


@pytest.mark.parametrize(
    ("write", "written"),
    [
        (lambda x, n, s, a: n + 1, "add.u32 %r3, %r1, 1;"),
        (lambda x, n, s, a: 7 - s, "sub.s32 %r3, 7, %r2;"),
        (lambda x, n, s, a: n * n, "mul.lo.u32 %r3, %r1, %r1;"),
        (lambda x, n, s, a: n // 3, "div.u32 %r3, %r1, 3;"),
        (lambda x, n, s, a: n % 3, "rem.u32 %r3, %r1, 3;"),
        (lambda x, n, s, a: n // 128, "shr.u32 %r3, %r1, 7;"),
        (lambda x, n, s, a: n % 128, "and.b32 %r3, %r1, 127;"),
        (lambda x, n, s, a: s >> 2, "shr.s32 %r3, %r2, 2;"),
        (lambda x, n, s, a: s << n, "shl.b32 %r3, %r2, %r1;"),
        (lambda x, n, s, a: n & 0xFF0000, "and.b32 %r3, %r1, 0xff0000;"),
        (lambda x, n, s, a: ~n, "not.b32 %r3, %r1;"),
        (lambda x, n, s, a: -s, "neg.s32 %r3, %r2;"),
        (lambda x, n, s, a: a + 1, "add.rn.f32 %f2, %f1, 0f3F800000;"),
        (lambda x, n, s, a: 0.5 * a, "mul.rn.f32 %f2, 0f3F000000, %f1;"),
        (lambda x, n, s, a: abs(a), "abs.f32 %f2, %f1;"),
        (lambda x, n, s, a: n < 5, "setp.lt.u32 %p1, %r1, 5;"),
        (
            lambda x, n, s, a: 5 < s,  # noqa: SIM300
            "setp.gt.s32 %p1, %r2, 5;",
        ),
        (lambda x, n, s, a: a != 0, "setp.neu.f32 %p1, %f1, 0f00000000;"),
        (lambda x, n, s, a: x[3], "ld.global.f32 %f2, [%rd2+12];"),
    ],
)
def test_one_instruction(write: Callable[..., Any], written: str) -> None:
    assert lines(write) == [written]


def test_in_place_writes_the_register_itself() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        n += 1
        s.set(4)
        a *= 2.0

    assert lines(write) == [
        "add.u32 %r1, %r1, 1;",
        "mov.s32 %r2, 4;",
        "mul.rn.f32 %f1, %f1, 0f40000000;",
    ]


def test_bits_take_the_type_of_the_other_side() -> None:
    assert lines(lambda x, n, s, a: a + b32(0))[-1] == "add.rn.f32 %f2, %f1, %r3;"


def test_numbers_of_other_formats() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        f16(1.5)
        f64(0.1)
        u64(1 << 40)

    assert lines(write) == ["mov.b16 %rs1, 15872;", "mov.f64 %fd1, 0d3FB999999999999A;", "mov.u64 %rd3, 0x10000000000;"]


SHIFT_COUNT = "`b` of `shl.b64` is a `u64`, expected a `.u32` register or immediate"


@pytest.mark.parametrize(
    ("write", "code", "message"),
    [
        (lambda x, n, s, a: n + s, "type-clash", "`+` between `u32` and `s32` is not one instruction"),
        (lambda x, n, s, a: n + 1.5, "type-clash", "`+` between `u32` and the float 1.5"),
        (
            lambda x, n, s, a: a / 2,
            "ambiguous-operator",
            "`/` on `f32` could be several instructions: one is exact, the others are fast",
        ),
        (
            lambda x, n, s, a: s // 2,
            "ambiguous-operator",
            "`//` on `s32` could be several instructions: Python rounds down, `div.s32` toward zero",
        ),
        (
            lambda x, n, s, a: b32(0) + 1,
            "ambiguous-operator",
            "`+` on `b32` could be several instructions: bits are not a number",
        ),
        (lambda x, n, s, a: -n, "no-operator", "no instruction computes `-` on `u32`"),
        (lambda x, n, s, a: n < -1, "immediate-range", "-1 is below every `u32`"),
        (lambda x, n, s, a: s < 0xFFFFFFFF, "immediate-range", "4294967295 is above every `s32`"),
        (lambda x, n, s, a: n // -2, "immediate-range", "-2 is below every `u32`"),
        (lambda x, n, s, a: n + (1 << 32), "immediate-range", "4294967296 does not fit into `u32`"),
        (lambda x, n, s, a: a * 1e39, "immediate-range", "1e+39 is beyond every `f32`"),
        (lambda x, n, s, a: f16(-65520.0), "immediate-range", "-65520.0 is beyond every `f16`"),
        (lambda x, n, s, a: n + None, "not-an-operand", "`+` between `u32` and the Python value None"),
        (
            lambda x, n, s, a: np.zeros(2) * a,
            "not-an-operand",
            "`*` between `f32` and the Python value array([0., 0.])",
        ),
        (lambda x, n, s, a: u64(1) << 2 << u64(3), "operand-type", SHIFT_COUNT),
        (lambda x, n, s, a: 1 << u64(3), "no-operator", "no instruction computes `1 << u64`"),
        (lambda x, n, s, a: a**2, "no-operator", "no instruction computes `**` on `f32`"),
        (lambda x, n, s, a: divmod(n, 2), "no-operator", "no instruction computes `divmod` on `u32`"),
        (lambda x, n, s, a: round(a), "no-operator", "no instruction computes `round` on `f32`"),
        (lambda x, n, s, a: math.floor(a), "no-operator", "no instruction computes `round` on `f32`"),
        (
            lambda x, n, s, a: math.sqrt(a),
            "value-needed",
            "Python needs the number in `%f1` (f32), which is known only on the GPU",
        ),
        (lambda x, n, s, a: n + "one", "not-an-operand", "`+` between `u32` and the Python value 'one'"),
        (
            lambda x, n, s, a: 1 if n < 3 else 2,
            "value-needed",
            "Python needs `%p1` now, and its value exists only on the GPU",
        ),
        (
            lambda x, n, s, a: range(n),
            "value-needed",
            "Python needs the number in `%r1` (u32), which is known only on the GPU",
        ),
        (lambda x, n, s, a: x.__setitem__(0, n), "type-clash", "a `u32` is stored as `f32`"),
    ],
)
def test_refused(write: Callable[..., Any], code: str, message: str) -> None:
    found = refusal(write)
    assert (found.code, found.message) == (code, message)


@pytest.mark.parametrize(
    ("write", "suggested", "right"),
    [
        (lambda x, n, s, a: n * a, "`ptx.cvt.rn.f32.u32(x)`", lambda x, n, s, a: ptx.cvt.rn.f32.u32(n) * a),
        (lambda x, n, s, a: n + u64(1), "`ptx.cvt.u64.u32(x)`", lambda x, n, s, a: ptx.cvt.u64.u32(n) + u64(1)),
        (lambda x, n, s, a: f16(1) * a, "`ptx.cvt.f32.f16(x)`", lambda x, n, s, a: ptx.cvt.f32.f16(f16(1)) * a),
        (lambda x, n, s, a: n + (n < 3), "`ptx.selp.u32(1, 0, p)`", lambda x, n, s, a: n + ptx.selp.u32(1, 0, n < 3)),
        (lambda x, n, s, a: ptx.ex2.approx.f32(b32(1).view(f32)), "`ptx.mov.b32(x, out=f32())`",
         lambda x, n, s, a: ptx.ex2.approx.f32(ptx.mov.b32(b32(1), out=f32()))),
        (lambda x, n, s, a: x.__setitem__(0, f64(1)), "`ptx.cvt.rn.f32.f64(x)`",
         lambda x, n, s, a: x.__setitem__(0, ptx.cvt.rn.f32.f64(f64(1)))),
        (lambda x, n, s, a: x.__setitem__(0, n < 3), "`ptx.selp.f32(1, 0, p)`",
         lambda x, n, s, a: x.__setitem__(0, ptx.selp.f32(1, 0, n < 3))),
        (lambda x, n, s, a: x.view(s32).__setitem__(0, a), "`ptx.cvt.rzi.s32.f32(x)`",
         lambda x, n, s, a: x.view(s32).__setitem__(0, ptx.cvt.rzi.s32.f32(a))),
    ],
)  # fmt: skip
def test_what_the_help_suggests_is_legal(write: Callable[..., Any], suggested: str, right: Callable[..., Any]) -> None:
    assert suggested in refusal(write).helps[0].text
    assert lines(right)


def test_halves_beside_numbers() -> None:
    @kernel
    def scale(x: pointer[f16], pairs: pointer[f16x2], large: pointer[u32]):
        i = ptx.tid.x
        large[i] = ptx.selp.u32(1 << i, 0, x[i] > 3.0)
        x[i] = 0.5 * x[i] + 1
        pairs[i] = pairs[i] * 0.25

    x, pairs = np.arange(8).astype(np.float16), np.arange(16).astype(np.float16)
    large = np.zeros(8, np.uint32)
    scale.launch(grid=1, block=8, args=[x, pairs, large])
    assert x.tolist() == (np.arange(8) / 2 + 1).tolist()
    assert pairs.tolist() == (np.arange(16) / 4).tolist()
    assert large.tolist() == [2**i if i > 3 else 0 for i in range(8)]


def test_pointers_that_share_a_register_do_not_move() -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        y = x + 4
        x += 1
        y[0] = a

    assert refusal(write).code == "shared-register"
    assert lines(lambda x, n, s, a: ptx.ld["global"].f32((x + n).copy()))[:2] == [
        "mad.wide.u32 %rd3, %r1, 4, %rd2;",
        "mov.b64 %rd4, %rd3;",
    ]
