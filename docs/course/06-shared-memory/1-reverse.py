"""Chapter 6: a barrier between what one thread writes and another reads."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// Each block reverses its 128 numbers: what thread t loads, thread 127 - t stores. They pass through
// shared memory, which all threads of a block can read.
//
// Now and then the result is right. But nothing makes a thread wait until the number that it
// reads was written: the other thread may be in a warp that has not come so far. Mend it.

.version 8.0
.target sm_80
.address_size 64

.visible .entry reverse(.param .u64 x)
{
    .shared .align 4 .b8 buffer[512];  // 128 numbers
    .reg .u32 %t, %i, %a, %b, %place;
    .reg .u64 %x, %offset;
    .reg .f32 %value;

    mov.u32 %t, %tid.x;
    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mad.lo.u32 %i, %a, %b, %t;
    ld.param.u64 %x, [x];
    mul.wide.u32 %offset, %i, 4;
    add.u64 %x, %x, %offset;
    ld.global.f32 %value, [%x];

    mov.u32 %b, buffer;                // its address: 32 bits
    mad.lo.u32 %place, %t, 4, %b;
    st.shared.f32 [%place], %value;    // buffer[t]

    sub.u32 %a, 127, %t;
    mad.lo.u32 %place, %a, 4, %b;
    ld.shared.f32 %value, [%place];    // buffer[127 - t]

    st.global.f32 [%x], %value;
    ret;
}
"""
SOLUTION = changed(START, ("// buffer[t]\n", "// buffer[t]\n    bar.sync 0;\n"))


def launch(random: np.random.Generator, blocks: int) -> Case:
    """Blocks of 128."""
    x = random.standard_normal(128 * blocks).astype(np.float32)
    return Case(
        blocks,
        128,
        {"x": x},
        expected={"x": x.reshape(blocks, 128)[:, ::-1].reshape(-1).copy()},
        mistakes={
            "nothing is reversed: each thread reads what it wrote": {"x": x.copy()},
            "the whole array is reversed: each block is to reverse its own 128 numbers": {"x": x[::-1].copy()},
        },
    )


EXERCISE = Exercise(
    "a barrier",
    START,
    SOLUTION,
    Task("reverse", launch, ({"blocks": 1}, {"blocks": 3}, {"blocks": 2})),
    hints=(
        "The finding names two lines: one thread writes at the first, another reads at the second, and nothing orders "
        "them.",
        "`bar.sync 0;` is a barrier: no thread of the block continues before all have arrived. What was written to "
        "shared memory before it can be read after it.",
        "Between the `st.shared` and the `ld.shared`, executed by all threads.",
    ),
    advice={
        "data-race": "A barrier of the whole block belongs between the two lines that are shown. One of a warp does "
        "not "
        "reach the partner, which is in another warp.",
        "divergent-barrier": "All threads of the block have to arrive at the barrier: no predicate in front of it.",
        "hang": "All threads of the block have to arrive at the same barrier: no predicate in front of it, and no "
        "`ret` "
        "before it.",
        "wrong-values": "Thread t is to store what thread 127 - t has loaded.",
        "uninitialized-read": "The element that is read was not written by any thread: thread t writes buffer[t].",
    },
)
