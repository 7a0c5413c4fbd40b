"""Chapter 14: a kernel that computes in f16 where f32 was asked for."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, names_on_page

PAGE = names_on_page(__file__)
WORDS = """
y[i] = x[i] / 2 for all i below n, in f32. With small whole numbers the result is right. With others it is off by up
to 1 of 2000, and large ones become infinite: the kernel rounds to f16 on the way, which saves nothing here.
"""
NARROW = changed(
    PAGE["KERNEL"],
    (".reg .f32 %value;", ".reg .f32 %value;\n    .reg .f16 %h;"),
    ("    mul.f32", "    cvt.rn.f16.f32 %h, %value;\n    cvt.f32.f16 %value, %h;\n    mul.f32"),
)


def launch(random: np.random.Generator, n: int, is_small: bool) -> Case:
    """Small whole numbers first, then numbers that f16 does not have."""
    x = random.integers(-9, 10, n).astype(np.float32) if is_small else random.normal(0, 1e5, n).astype(np.float32)
    with np.errstate(over="ignore"):
        rounded = x.astype(np.float16).astype(np.float32) / 2
    mistakes = {} if is_small else {"these are the numbers rounded to f16, halved": {"y": rounded}}
    return Case(-(-n // 64), 64, {"x": x, "y": np.full(n, np.nan, np.float32), "n": np.uint32(n)},
                expected={"y": x / 2}, mistakes=mistakes)  # fmt: skip


EXERCISE = Exercise(
    "f32 was asked for",
    commented(WORDS, NARROW),
    commented(WORDS, PAGE["KERNEL"]),
    Task("halve", launch, ({"n": 64, "is_small": True}, {"n": 100, "is_small": False})),
    hints=(
        "Which instruction rounds, and to which type?",
        "`cvt.rn.f16.f32` rounds to 11 bits, and to infinity from 65520 on.",
        "Leave out both conversions: `%value` is f32 all the way.",
    ),
    advice={"wrong-values": "How many bits of each number are right? f16 has 11, f32 has 24."},
)
