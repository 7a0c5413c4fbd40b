"""Chapter 7: the last tile."""

import numpy as np

from ptxlab.learn import Case, Exercise, Task, changed

START = """\
// Each thread adds the numbers x[t], x[128 + t], x[256 + t], ... of a number of tiles, with two
// buffers: while a tile is added, the next one is copied.
//
// In the last iteration there is no next tile. The wait is the same, and too short then: why?

.version 8.0
.target sm_80
.address_size 64

.visible .entry add(.param .u64 x, .param .u64 y, .param .u32 tiles)
{
    .shared .align 1024 .b8 buffer[1024];
    .reg .pred %more;
    .reg .u32 %t, %tile, %tiles, %place, %other;
    .reg .u64 %x, %y;
    .reg .f32 %value, %sum;

    mov.u32 %t, %tid.x;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u32 %tiles, [tiles];
    mad.wide.u32 %x, %t, 4, %x;
    mad.wide.u32 %y, %t, 4, %y;
    mov.u32 %place, buffer;
    mad.lo.u32 %place, %t, 4, %place;
    mov.f32 %sum, 0f00000000;

    cp.async.ca.shared.global [%place], [%x], 4;   // tile 0
    cp.async.commit_group;
    mov.u32 %tile, 1;
$next:
    setp.lt.u32 %more, %tile, %tiles;              // is there another tile?
    add.u64 %x, %x, 512;
    xor.b32 %other, %place, 512;                   // the other buffer
    @%more cp.async.ca.shared.global [%other], [%x], 4;
    @%more cp.async.commit_group;
    cp.async.wait_group 1;
    ld.shared.f32 %value, [%place];
    add.f32 %sum, %sum, %value;
    mov.u32 %place, %other;
    add.u32 %tile, %tile, 1;
    @%more bra $next;
    st.global.f32 [%y], %sum;
    ret;
}
"""
SOLUTION = changed(
    START,
    ("@%more cp.async.commit_group;", "cp.async.commit_group;                         // an empty group counts, too"),
)


def launch(random: np.random.Generator, tiles: int) -> Case:
    """Whole numbers, whose sums are exact."""
    x = random.integers(-99, 99, (tiles, 128)).astype(np.float32)
    return Case(
        1, 128, {"x": x, "y": np.full(128, np.nan, np.float32), "tiles": np.uint32(tiles)},
        expected={"y": x.sum(0)},
        mistakes={
            "the last tile is missing": {"y": x[:-1].sum(0)},
            "this is the first tile only": {"y": x[0]},
            "the first tile is missing": {"y": x[1:].sum(0)},
        },
    )  # fmt: skip


EXERCISE = Exercise(
    "the last tile",
    START,
    SOLUTION,
    Task("add", launch, ({"tiles": 4}, {"tiles": 1}, {"tiles": 7})),
    hints=(
        "`wait_group 1` leaves the youngest group in flight. Which group is the youngest in the last iteration?",
        "No copy was started, so the youngest group is the tile that is about to be read. Either it waits for all "
        "groups "
        "then, or there is a younger group.",
        "A group may be empty: commit in every iteration, without the predicate. (Or wait with `wait_group 0` where "
        "there is no next tile.)",
    ),
    advice={
        "data-race": "In which iteration is it, and how many groups were committed until then? The wait leaves one.",
        "out-of-bounds": "There is no tile after the last: the copy keeps its predicate.",
        "wrong-values": "How often is each tile copied, and how often added?",
        "unwaited-copy": "A copy needs a group, and a wait before its number is read.",
    },
)
