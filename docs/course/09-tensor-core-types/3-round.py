"""Chapter 9: f32 numbers for a tensor core that multiplies tf32."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, commented, executes, kernel_on_page

KERNEL = changed(
    kernel_on_page(__file__),
    (".reg .b32 %r<6>, %d<4>;", ".reg .b32 %r<6>, %d<4>;\n    .reg .f32 %f<6>;"),
    ("m16n8k16.row.col.f32.f16.f16.f32", "m16n8k8.row.col.f32.tf32.tf32.f32"),
    *((f"ld.global.b32 %r{i}", f"ld.global.f32 %f{i}") for i in range(6)),
    ("    mov.b32 %d0, 0; ", "".join(f"    mov.b32 %r{i}, %f{i};\n" for i in range(6)) + "\n    mov.b32 %d0, 0; "),
)
WORDS = """
D = A times the transpose of B, for f32 that the tensor core multiplies as tf32: eight numbers in a row, of
which it ignores the low 13 bits.

Cut off like that, all positive numbers become smaller. Round them to the nearest tf32 first.
"""


def cut(x: np.ndarray, half: int) -> np.ndarray:
    """To tf32: `half` is what is added before the low 13 bits are cut off."""
    return ((x.view(np.uint32) + np.uint32(half)) & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)


def launch(random: np.random.Generator) -> Case:
    """Positive numbers, of which nothing cancels."""
    a, b = (random.random((rows, 8), np.float32) + 1 for rows in (16, 8))
    rounded, short = (cut(a, half) @ cut(b, half).T for half in (1 << 12, 0))
    once = cut(a, 1 << 12) @ cut(b, 0).T
    return Case(
        1, 32, {"a": a, "b": b, "d": np.full((16, 8), np.nan, np.float32)}, expected={"d": rounded}, tolerance=1e-6,
        mistakes={
            "all numbers were cut off, and none was rounded": {"d": short},
            "A was rounded, and B was not": {"d": once},
            "B was rounded, and A was not": {"d": cut(a, 0) @ cut(b, 1 << 12).T},
        },
    )  # fmt: skip


EXERCISE = Exercise(
    "round to tf32",
    commented(WORDS, KERNEL),
    commented(WORDS, changed(KERNEL, *((f"mov.b32 %r{i}, %f{i}", f"cvt.rna.tf32.f32 %r{i}, %f{i}") for i in range(6)))),
    Task("tile", launch, ({}, {})),
    hints=(
        "Six `mov.b32` take the numbers as they are to the registers of the mma. Another instruction can do that.",
        "`cvt` converts between types: `ptxlab explain cvt` lists them, tf32 among them.",
        "`cvt.rna.tf32.f32 %r0, %f0;` rounds to nearest, ties away from zero.",
    ),
    needs=(executes("mma", "the product is to come from the tensor core"),),
    advice={"wrong-values": "Each of the six registers needs the rounding.",
            "operand-type": "A tf32 is kept in a `.b32` register."},
)  # fmt: skip
