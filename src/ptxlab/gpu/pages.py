"""The pages that `ptxlab explain` shows for what prevents a launch on a GPU, and for errors that only a GPU reports."""

_PLACE = 'A GPU reports neither the instruction nor the thread; the same launch with `device="cpu"` may.'

PAGES = {
    "no-gpu": (
        "There is no GPU to run a kernel on.\n\n"
        "The note says what is missing: the package `cuda-bindings`, the driver, or the GPU itself. `ptxlab "
        "devices` lists what there is; the emulator needs none of it."
    ),
    "wrong-target": (
        "The module is for another GPU than the one that is there.\n\n"
        "A module for `sm_80` runs on that GPU and all later ones, one for `sm_100f` on its family, one for "
        "`sm_90a` on that chip alone."
    ),
    "unsupported-version": (
        "The version of PTX is too new for the compiler in the driver.\n\n"
        'A ptxas that is new enough makes code that an older driver runs: `compile="ptxas"`.'
    ),
    "invalid-ptx": (
        "The compiler in the driver refuses the module.\n\nIts message is in the notes; `ptxlab check` says more."
    ),
    "driver-error": (
        "The driver fails with an error that ptxlab does not explain.\n\n"
        "The message has its name and the call that failed."
    ),
    "broken-context": (
        "An earlier kernel caused an error after which the driver refuses all work in this process.\n\n"
        'The note says what that was. Start the process again, and look for the mistake with `device="cpu"`.'
    ),
    "broken-memory": ("The memory of the GPU has an uncorrectable error.\n\n`nvidia-smi -q -d ECC` counts them."),
    "illegal-instruction": (f"The GPU refuses an instruction with the operands it has.\n\n{_PLACE}"),
    "wrong-state-space": (
        "An instruction for one state space has an address of another.\n\n"
        f"Use its generic form, or make the address with `cvta.to`. {_PLACE}"
    ),
    "unfreed-tensor-memory": (
        "A kernel ended before it had freed its tensor memory.\n\n"
        "Each `tcgen05.alloc` needs its `tcgen05.dealloc` on every path to the end."
    ),
    "bad-stream": "The stream of a launch does not exist any more, or belongs to another GPU.",
    "disagreement": (
        'With `device="both"`, the GPU and the emulator give different results.\n\n'
        "The message has the first element that differs. A kernel whose result depends on the schedule, such "
        "as a sum by atomic operations on floats, may differ; so may approximate instructions on other GPUs than "
        "an H200. Anything else is a bug of the emulator."
    ),
}
