"""Chapter 2: a kernel from an empty body."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// y[i] = a * x[i] + y[i] for each i below n: the kernel is yours to write.
//
// Declare the registers you need, load the parameters, compute i, keep threads beyond the end
// out. `fma.rn.f32 d, a, b, c;` is d = a * b + c, rounded once.

.version 8.0
.target sm_80
.address_size 64

.visible .entry saxpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 n)
{
    ret;
}
"""
SOLUTION = changed(
    START,
    (
        "    ret;\n",
        """\
    .reg .pred %beyond;
    .reg .u32 %i, %block, %size, %n;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %a, %xi, %yi;

    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %block, %size, %i;
    ld.param.u32 %n, [n];
    setp.ge.u32 %beyond, %i, %n;
    @%beyond ret;

    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.f32 %a, [a];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    add.u64 %y, %y, %offset;
    ld.global.f32 %xi, [%x];
    ld.global.f32 %yi, [%y];
    fma.rn.f32 %yi, %a, %xi, %yi;
    st.global.f32 [%y], %yi;
    ret;
""",
    ),
)


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """Blocks that cover n."""
    x, y = (random.standard_normal(n).astype(np.float32) for _ in "xy")
    a = np.float32(random.uniform(1.5, 3))
    exact_x, exact_y, exact_a = x.astype(np.float64), y.astype(np.float64), float(a)
    return Case(
        -(-n // block),
        block,
        {"x": x, "y": y, "a": a, "n": np.uint32(n)},
        expected={"y": exact_a * exact_x + exact_y},
        tolerance=1e-6,
        mistakes={
            "y has a * x: what y held before is not added": {"y": exact_a * exact_x},
            "y has x + y: `a` is missing": {"y": exact_x + exact_y},
            "x and y have changed places: this is a * y + x": {"y": exact_a * exact_y + exact_x},
            "y has not changed: no thread stores a result": {"y": exact_y},
        },
    )


EXERCISE = Exercise(
    "saxpy from nothing",
    START,
    SOLUTION,
    Task("saxpy", launch, ({"n": 64, "block": 32}, {"n": 100, "block": 64}, {"n": 777, "block": 128})),
    hints=(
        "Begin with the kernels of the two exercises before: index, guard, addresses are the same.",
        "Registers: one `.pred`, four `.u32`, three `.u64`, three `.f32`. The parameter `a` is loaded by "
        "`ld.param.f32 %a, [a];`.",
        "After the guard: load x[i] and y[i], `fma.rn.f32 %yi, %a, %xi, %yi;`, store to the address of y[i].",
    ),
    advice={
        "out-of-bounds": "Is there a guard before the first access, and is it right for i = n? Is the offset 4 * i "
        "bytes?",
        "unknown-name": "A register is declared before it is used: `.reg .f32 %a;` or several, `.reg .f32 %xi, %yi;`.",
        "unwritten-register": "A register holds nothing until an instruction writes it: parameters are loaded by "
        "`ld.param`.",
        "wrong-values": "Compute the element that is named by hand, and follow what your instructions do with x, y and "
        "a.",
        "changed-input": "The result belongs to y; x is only read.",
    },
)
