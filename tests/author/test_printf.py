"""`ptx.printf`: what is printed, and formats that would misread their arguments."""

from typing import Any

import numpy as np
import pytest

from ptxlab.author import (
    f16,
    f32,
    kernel,
    pointer,
    ptx,
    u32,
)

from .writing import refusal


def test_printf_constants_and_globals() -> None:
    @kernel
    def talk(x: pointer[f32]):
        table = ptx.constant(f32, [1.0, 2.5, -3.0, 0.25], name="table")
        counter = ptx.global_(u32, 1, name="counter")
        i = ptx.tid.x
        x[i] = table[i]
        before = ptx.atom.global_.add.u32(counter, 1)
        with ptx.when(i == 0):
            ptx.printf("lane %u saw %u, %.2f, %s%%\n".replace("%s", "%d"), i, before, table[1], -7)

    x = np.zeros(4, np.float32)
    result = talk.launch(grid=1, block=4, args=[x])
    assert x.tolist() == [1.0, 2.5, -3.0, 0.25]
    assert result.output.startswith("lane 0 saw ")
    assert result.output.endswith(", 2.50, -7%\n")


@pytest.mark.parametrize(
    ("format", "arguments", "message"),
    [
        ("%d %d", [1], "'%d %d' prints 2 values, 1 given"),
        ("100%%", [1], "'100%%' prints 0 values, 1 given"),
        ("%*d", [1], "'%*d' prints 2 values, 1 given"),
        ("100%", [], "'%' is not a conversion"),
        ("%q", [1], "'%q' is not a conversion"),
        ("%f", ["n"], "`%f` prints a float, and is given a `u32`"),
        ("%5.1d", ["a"], "`%5.1d` prints a whole number of 32 bits, and is given a `f32`"),
        ("%llu", ["n"], "`%llu` prints a whole number of 64 bits, and is given a `u32`"),
        ("%d", [1.5], "`%d` prints a whole number of 32 bits, and is given the Python float 1.5"),
        ("%s", ["text"], "`%s` prints text, by its generic address of 64 bits, and is given the Python str 'text'"),
    ],
)
def test_what_printf_would_misread(format: str, arguments: list[Any], message: str) -> None:
    def write(x: Any, n: Any, s: Any, a: Any) -> None:
        ptx.printf(format, *({"n": n, "a": a}.get(one, one) for one in arguments))

    found = refusal(write)
    assert (found.message, found.file) == (message, __file__)


def test_printf_of_wide_and_narrow_numbers() -> None:
    @kernel
    def talk(x: pointer[f16], n: u32):
        big = ptx.mul.wide.u32(n, 1 << 31)
        ptx.printf("%u %llu %d %lld %*d %g %d|", n, big, -1, -(1 << 40), 5, n, x[0], n == 3)

    result = talk.launch(grid=1, block=1, args=[np.array([0.5], np.float16), 3])
    assert result.output == f"3 {3 << 31} -1 {-(1 << 40)} {3:5d} 0.5 1|"
