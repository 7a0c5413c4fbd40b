"""The pages that `ptxlab explain` shows for what NVIDIA's tools say, and for tools that fail; advisories are apart."""

_OURS = "`ptxlab check` says the same with the form that is legal, and continues with the next mistake."

PAGES = {
    "missing-tool": (
        "An NVIDIA tool that is needed here was not found.\n\n"
        "ptxlab searches the path that an option names, a variable such as `PTXLAB_PTXAS`, PATH, and "
        "the installed packages. `pip install 'ptxlab[toolchain]'` brings ptxas, nvdisasm and NVRTC without a "
        "CUDA install."
    ),
    "ptxas-error": (f"ptxas refuses the module.\n\nThe message is its own, on the line it names. {_OURS}"),
    "ptxas-warning": ("ptxas assembles the module, with a warning.\n\nThe message is its own, on the line it names."),
    "ptxas-info": "ptxas reports something about the module that is not an error.",
    "ptxas-syntax-error": (f"ptxas can't read the text.\n\nIt often stops at the first such place. {_OURS}"),
    "ptxas-unknown-symbol": (
        "ptxas found a name that nothing declares.\n\n"
        "Declare it, or raise the count of a register such as `%r<4>`, which declares `%r0` to `%r3`."
    ),
    "ptxas-unresolved-symbol": (
        "A function or variable is declared `.extern`, and nothing defines it.\n\n"
        "Define it in the module, or make an object to be linked: `ptxlab assemble kernel.ptx -- -c`."
    ),
    "ptxas-unsupported-version": (
        "The module needs a later version of PTX than it states, or than this ptxas reads.\n\n"
        "Raise `.version` in the first case, install a newer ptxas in the second. `ptxlab explain` says for each "
        "instruction which version it needs."
    ),
    "ptxas-unsupported-target": (
        "The module has something that its target lacks, or is assembled for a GPU before it.\n\n"
        "`ptxlab explain` says for each instruction which targets have it."
    ),
    "ptxas-too-many-resources": (
        "A kernel needs more shared memory, constants or parameters than a block can have.\n\n"
        "More than 48 KB of shared memory must be requested at the launch: declare it `.extern .shared`."
    ),
    "ptxas-crash": (
        "ptxas was terminated by a signal: a bug in that release.\n\n"
        "The note has the cause where it is a known one. Otherwise try another release, which `--ptxas` names, or "
        "leave out parts of the kernel until it passes."
    ),
    "ptxas-timeout": (
        "ptxas did not finish within the time limit.\n\n"
        "Some kernels take minutes, most of all very long ones. Assemble fewer functions at once, or give it "
        "options that make it do less: `ptxlab assemble kernel.ptx -- -O1`."
    ),
    "nvdisasm-error": (
        "nvdisasm refuses the object that ptxas made.\n\nMost often it is older than ptxas: take both from one release."
    ),
    "damaged-object": (
        "A program in an object, a library or an executable can't be decompressed.\n\n"
        "The file is damaged, or cut off: build it again. `nvcc --compress-mode=none` compresses nothing."
    ),
    "nvdisasm-crash": "nvdisasm was terminated by a signal: a bug in that release.",
    "nvdisasm-timeout": ("nvdisasm did not finish within the time limit.\n\nAssemble fewer functions at once."),
    "cuda-error": (
        "The CUDA C++ is wrong.\n\n"
        "The message is that of nvcc or NVRTC, on the line it names. A file is compiled by nvcc where there is one and "
        "a compiler for the host; else by NVRTC, which leaves out functions of the host and has only the headers of "
        "CUDA and CCCL. Options for either follow `--`: `ptxlab check gemm.cu -- -Iinclude -DTILE=128`."
    ),
    "cuda-warning": (
        "The compiler of CUDA C++ warns of something in the source.\n\n"
        "The message is that of nvcc or NVRTC, on the line it names. Warnings about headers of the CUDA toolkit are "
        "left out."
    ),
    "nvrtc-error": (
        "NVRTC failed for a reason other than the source: it has no memory left, for example.\n\n"
        "The message is its own."
    ),
}
