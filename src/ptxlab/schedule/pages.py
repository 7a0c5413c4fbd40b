"""The pages that `ptxlab explain` shows for what is refused in an algorithm or a schedule."""

PAGES = {
    "not-an-algorithm": (
        "A Python function is not an algorithm, or is one whose iterations depend on each other.\n\n"
        "The text of the function is read, it never runs. An algorithm is one loop nest over `range` and `grid`, with "
        "names for numbers, stores to arrays, and `sum`, `max` and `min` of generators. Indices are sums of loop "
        "variables and sizes. All iterations may run at once: each writes its own elements, and reads none that "
        "another writes. What may be out of bounds is chosen by a condition: `x[i - 1] if i > 0 else 0.0`."
    ),
    "illegal-step": (
        "A step of a schedule is not possible in this state, or with these arguments.\n\n"
        "Loops are cut by `tile` first, then run by `blocks` and `threads`, then put in order, and then data is staged "
        "in them. The schedule is as it was before the step."
    ),
    "carried-dependence": (
        "A loop that is reduced over cannot be run by blocks.\n\n"
        "Its iterations add to the same number, which is in the registers of one block. Threads of a block can share "
        "such a loop: they combine their parts by shuffles and shared memory. Blocks of a cluster can, too: `cluster`."
    ),
    "unknown-extent": (
        "A number of threads, a stage or an array of registers would depend on a size that is not known yet.\n\n"
        "The outermost part of a loop has as many iterations as the size says. Tile the loop: the iterations of a tile "
        "are a number. Or fix the size, as in `schedule(softmax, n=4096)`: the kernel is then for that size alone."
    ),
    "schedule-limit": (
        "A schedule asks for more than a block, a thread or a launch can have.\n\n"
        "A block has 1024 threads and up to 227 KB of shared memory (163 KB on `sm_80`), a thread 255 registers, and a "
        "grid 65,535 blocks in its second and third dimension. Smaller tiles need less; larger ones need fewer blocks."
    ),
    "wrong-schedule": (
        "`check` found that a schedule computes something else than its algorithm.\n\n"
        "This is a defect of ptxlab: each step keeps what is computed. Please report the schedule and the sizes that "
        "the message names."
    ),
}
