"""Chapter 7: wait for a copy."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, executes

START = """\
// y[i] = x[i] + 1: each thread copies its number to shared memory by cp.async, and reads it there.
//
// The copy runs on its own, and nothing waits for it. Close a group and wait for it.

.version 8.0
.target sm_80
.address_size 64

.visible .entry increment(.param .u64 x, .param .u64 y)
{
    .shared .align 16 .b8 buffer[512];
    .reg .u32 %t, %i, %a, %b, %place;
    .reg .u64 %x, %y;
    .reg .f32 %value;

    mov.u32 %t, %tid.x;
    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mad.lo.u32 %i, %a, %b, %t;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    mad.wide.u32 %x, %i, 4, %x;
    mad.wide.u32 %y, %i, 4, %y;
    mov.u32 %b, buffer;
    mad.lo.u32 %place, %t, 4, %b;

    cp.async.ca.shared.global [%place], [%x], 4;
    // <- here

    ld.shared.f32 %value, [%place];
    add.f32 %value, %value, 0f3F800000;
    st.global.f32 [%y], %value;
    ret;
}
"""
SOLUTION = changed(START, ("    // <- here\n", "    cp.async.commit_group;\n    cp.async.wait_group 0;\n"))


def launch(random: np.random.Generator, blocks: int) -> Case:
    """Blocks of 128."""
    x = random.integers(-99, 99, 128 * blocks).astype(np.float32)
    return Case(blocks, 128, {"x": x, "y": np.full_like(x, np.nan)}, expected={"y": x + 1.0})


EXERCISE = Exercise(
    "wait for a copy",
    START,
    SOLUTION,
    Task("increment", launch, ({"blocks": 1}, {"blocks": 3})),
    hints=(
        "Two instructions: one closes the group of copies, one waits for groups.",
        "`cp.async.commit_group;` closes it. `cp.async.wait_group N;` waits until at most N groups are in flight.",
        "All groups are to be complete: `cp.async.wait_group 0;`",
    ),
    needs=(executes("cp", "the numbers are copied by `cp.async`"),),
    advice={
        "data-race": "The number is read while the copy is in flight. Is the copy in a group, and how many groups does "
        "the wait leave in flight?",
        "unwaited-copy": "The copy is waited for only if it is in a group: `cp.async.commit_group` before the wait.",
    },
)
