"""The pages that `ptxlab explain` shows for what is found of the host code of programs."""

PAGES = {
    "bad-copy": (
        "A copy or fill by the host reads or writes outside of an allocation.\n\n"
        "The message has the bytes that the call asks for and those that the allocation has. Sizes are in bytes: "
        "`n * sizeof(float)`. CUDA reports `cudaErrorInvalidValue`, or copies what happens to be there."
    ),
    "bad-mapping": (
        "Memory is mapped, bound to a multicast object, or opened by a handle, and a step is missing or too early.\n\n"
        "Memory is created (`cuMemCreate`), mapped (`cuMemMap`) to addresses that are reserved, and made accessible "
        "(`cuMemSetAccess`). All devices are added to a multicast object (`cuMulticastAddDevice`) before memory of any "
        "is bound to it (`cuMulticastBindMem`). A handle of `cudaIpcGetMemHandle` is opened in another process, while "
        "the memory is not freed."
    ),
    "wrong-direction": (
        "A pointer of a copy is on the other side than its `cudaMemcpyKind` says.\n\n"
        "The destination is the first argument. `cudaMemcpyDefault` finds the direction by the pointers."
    ),
    "double-free": "The host frees memory that it has freed before.\n\nLabels show where it was allocated and freed.",
    "host-access": (
        "The host dereferences an address that is the device's.\n\n"
        "Memory of `cudaMalloc` is for kernels and for copies. Copy it to the host by `cudaMemcpy`, or allocate it by "
        "`cudaMallocManaged`, which both sides can access."
    ),
    "missing-synchronize": (
        "The host accesses memory that a kernel or a copy still writes, or writes what a copy still reads.\n\n"
        "Launches and `cudaMemcpyAsync` return before the work is done. Call `cudaDeviceSynchronize`, "
        "`cudaStreamSynchronize` or `cudaEventSynchronize` first. An access is found where the kernel has changed its "
        "bytes, a write also where it has read them; a kernel with `volatile` or system-scope accesses, which may talk "
        "to the host, is not judged. "
        "`cudaEventElapsedTime` has no time before its events are complete: wait for the later one."
    ),
    "unchecked-error": (
        "A launch failed, or a call before it, and the program never asked.\n\n"
        "The kernel has not run. A launch returns nothing: `cudaGetLastError()` after it has the error, for example "
        "of a block with more than 1024 threads, or a stream of a GPU that is not the current one. Of the driver API: "
        "a handle that no call has made, since `cuModuleLoad` or `cuModuleGetFunction` failed before."
    ),
    "failed-launch": (
        "A call that launches a kernel or a graph, or records an event, has returned an error: it has done nothing.\n\n"
        "`cudaLaunchKernel`, `cudaLaunchCooperativeKernel`, `cudaLaunchKernelEx` and `cuLaunchKernel` return what is "
        "wrong, for example that a cooperative grid has more blocks than the GPU holds at a time. Some programs expect "
        "it and launch something else; this is a note. `cudaEventRecord` takes an event and a stream of one GPU; a "
        "graph is not launched again before the memory that it allocates was freed."
    ),
    "missing-device": (
        "The program asks for a GPU that is not there.\n\n"
        "ptxlab has one GPU, or as many as `--gpus` says. The call fails, as on a machine with so many; this is a note."
    ),
    "leak": "Memory of CUDA was not freed when the program ended.\n\nThe system frees it; this is a note.",
    "unsupported-call": (
        "The program calls a function of CUDA that ptxlab does not have.\n\n"
        "It is named, with the line of the call. The program is ended there."
    ),
    "bad-library-call": (
        "A call of cuBLAS or cuRAND is given memory that is too small, or not on the device; or a call of NVSHMEM is "
        "not the same on all PEs.\n\n"
        "The message has the bytes that the call accesses and those that the allocation has. Matrices of cuBLAS are by "
        "columns: `lda` is the number of rows that are allocated, in elements.\n\n"
        "Of NVSHMEM it is a collective where other PEs of the team call another one, or symmetric memory that PEs "
        "allocate with different sizes."
    ),
    "no-ptx": (
        "A program, or a module that it loads, has no PTX.\n\n"
        "The emulator runs PTX. nvcc leaves it out with `code=sm_90` alone: build with "
        "`-gencode arch=compute_90,code=compute_90`, or with `-arch=sm_90`, which has both."
    ),
    "stripped-program": (
        "A program that is linked with `libcudart_static.a`, as by default, has no table of symbols.\n\n"
        "Calls of the CUDA runtime are then jumps within the program, and nothing says where its functions are. Link "
        "it with `-cudart shared`, or don't `strip` it."
    ),
    "low-limit": (
        "A limit of the shell is too low for a program to run: that of the address space or of the size of files.\n\n"
        "Device memory is a file in memory of 4 TB, mapped by the program and by ptxlab; what is not used of it takes "
        "no memory. `ulimit -v unlimited` and `ulimit -f unlimited` lift the limits. A cgroup limits memory that is "
        "used: a container has one, and `systemd-run --user --scope -p MemoryMax=8G` makes one."
    ),
    "program-crash": (
        "The host code of the program was ended by a signal.\n\n"
        "This is a mistake of the program, which would happen without ptxlab too; the line is that of the access."
    ),
}
