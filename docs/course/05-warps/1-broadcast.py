"""Chapter 5: every lane reads lane 0."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, avoids_space, changed, executes

START = """\
// Each warp has 32 numbers, a lane one of them. y[i] = x[i] - the number of lane 0 of its warp.
//
// A lane reads a register of another by `shfl.sync`:
//
//     shfl.sync.idx.b32 d, a, lane, 31, 0xffffffff;
//
// d is what the register a holds in that lane. The mask names the lanes that take part, all 32. Write the
// line; `.b32` takes registers of type f32, too.

.version 8.0
.target sm_80
.address_size 64

.visible .entry first(.param .u64 x, .param .u64 y)
{
    .reg .u32 %i, %a, %b;
    .reg .u64 %x, %y, %offset;
    .reg .f32 %value, %first;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mov.u32 %i, %tid.x;
    mad.lo.u32 %i, %a, %b, %i;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    add.u64 %y, %y, %offset;
    ld.global.f32 %value, [%x];

    mov.f32 %first, %value;            // <- the value of lane 0

    sub.f32 %value, %value, %first;
    st.global.f32 [%y], %value;
    ret;
}
"""
SOLUTION = changed(
    START,
    ("mov.f32 %first, %value;            // <- the value of lane 0",
     "shfl.sync.idx.b32 %first, %value, 0, 31, 0xffffffff;"),
)  # fmt: skip


def launch(random: np.random.Generator, n: int, block: int) -> Case:
    """Whole warps."""
    x = random.integers(-99, 99, n).astype(np.float32)
    warps = x.reshape(-1, 32)
    before = np.concatenate([warps[:, :1], warps[:, :-1]], axis=1)
    of_block = np.repeat(x.reshape(-1, block)[:, :1], block, axis=1).reshape(-1)
    return Case(
        n // block,
        block,
        {"x": x, "y": np.full(n, np.nan, np.float32)},
        expected={"y": (warps - warps[:, :1]).reshape(-1)},
        mistakes={
            "all are 0: each lane subtracts its own number": {"y": x * 0},
            "each lane subtracts the number of the lane before it: `.up` with 1 is that; `.idx` reads a lane by its "
            "number": {"y": (warps - before).reshape(-1)},
            "each lane subtracts the number of lane 1: lanes count from 0": {"y": (warps - warps[:, 1:2]).reshape(-1)},
            "each lane subtracts the number of lane 31": {"y": (warps - warps[:, 31:]).reshape(-1)},
            "each thread subtracts the number of the first thread of its block: each warp has a lane 0 of its own": {
                "y": x - of_block
            },
        },
    )


EXERCISE = Exercise(
    "the number of lane 0",
    START,
    SOLUTION,
    Task("first", launch, ({"n": 32, "block": 32}, {"n": 256, "block": 64}, {"n": 192, "block": 96})),
    hints=(
        "`shfl.sync.idx`: the third operand is the lane to read from. Here it is the same for all: 0.",
        "The fourth operand, 31, is the last lane that may be read; the fifth is the mask of lanes that take part.",
        "`shfl.sync.idx.b32 %first, %value, 0, 31, 0xffffffff;`",
    ),
    needs=(
        executes("shfl", "the lanes of a warp exchange registers by `shfl.sync`, without memory"),
        avoids_space("shared", "registers of other lanes are read by `shfl.sync`, without memory"),
    ),
    advice={
        "wrong-values": "The number that lane 5 subtracts is the one that lane 0 of the same warp loaded.",
        "divergent-collective": "All lanes of the mask have to execute the `shfl.sync`: no guard in front of it.",
        "hang": "The mask names lanes that never execute the `shfl.sync`: all lanes of it have to.",
    },
)
