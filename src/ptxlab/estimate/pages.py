"""The page that `ptxlab explain` shows for what can't be estimated."""

PAGES = {
    "no-estimate": (
        "There is no estimate of a launch on this GPU.\n\n"
        "An estimate needs figures of the hardware that were compared with measured times. There are such figures of "
        "the H200 (sm_90 and sm_90a) only, and none are guessed for other GPUs; of a B200 (sm_100a) it is said what a "
        "launch takes at least. A kernel for an earlier target runs on "
        "an H200 as well: `ptxlab run --estimate --gpu H200` says how long."
    ),
}
