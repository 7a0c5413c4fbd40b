"""Chapter 7: what another thread copied."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed, executes

START = """\
// Each block reverses 128 numbers, which its threads copy to shared memory by cp.async: thread t
// copies number t, and reads number 127 - t.
//
// Each thread waits for its own copy. Is that enough for what it reads?

.version 8.0
.target sm_80
.address_size 64

.visible .entry reverse(.param .u64 x, .param .u64 y)
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
    cp.async.commit_group;
    cp.async.wait_group 0;

    sub.u32 %a, 127, %t;
    mad.lo.u32 %place, %a, 4, %b;
    ld.shared.f32 %value, [%place];
    st.global.f32 [%y], %value;
    ret;
}
"""
SOLUTION = changed(START, ("wait_group 0;\n", "wait_group 0;\n    bar.sync 0;\n"))


def launch(random: np.random.Generator, blocks: int) -> Case:
    """Blocks of 128."""
    x = random.standard_normal(128 * blocks).astype(np.float32)
    right = x.reshape(blocks, 128)[:, ::-1].reshape(-1)
    return Case(
        blocks, 128, {"x": x, "y": np.full_like(x, np.nan)}, expected={"y": right}, mistakes={"y is x": {"y": x}}
    )


EXERCISE = Exercise(
    "what another thread copied",
    START,
    SOLUTION,
    Task("reverse", launch, ({"blocks": 1}, {"blocks": 3})),
    hints=(
        "`wait_group` waits for the copies of the thread that executes it.",
        "When all threads have waited for theirs, all numbers are there. How does a thread know that all have?",
        "`bar.sync 0;` after the wait, not before it.",
    ),
    needs=(executes("cp", "the numbers are copied by `cp.async`"),),
    advice={
        "data-race": "The copy that is named belongs to another thread. A barrier says that all threads have come "
        "so far: "
        "after which line is it to be?",
        "unwaited-copy": "The wait must stay, before the barrier.",
    },
)
