"""The page that `ptxlab explain` shows for a litmus test that can't be read."""

PAGES = {
    "bad-litmus": (
        "The text is not a litmus test as the public tests of PTX are written.\n\n"
        "It has a name, initial values, a row of threads with their places, rows of instructions with one column for "
        "each thread, and a condition on the final state:\n\n"
        "    PTX MP\n"
        "    { x = 0; y = 0; }\n"
        "     P0@cta 0,gpu 0      | P1@cta 1,gpu 0       ;\n"
        "     st.weak x, 1        | ld.acquire.gpu r0, y ;\n"
        "     st.release.gpu y, 1 | ld.weak r1, x        ;\n"
        "    ~exists (P1:r0 == 1 /\\ P1:r1 == 0)\n\n"
        "Instructions are `ld`, `st`, `atom`, `red`, `fence`, `bar.sync`, `barrier.cluster`, `mbarrier`, arithmetic "
        "such as `add r0, r1, 1`, and branches such as `bne r0, 1, LC00`."
    ),
}
