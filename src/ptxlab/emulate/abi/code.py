"""The code of a kernel as the runtime sees it: functions, warp collectives, and the memory that a thread needs."""

from __future__ import annotations

from ptxlab.native import Pointer, struct, u8, u32, u64

WARP = 32
GROUP = (
    16  # lanes that execute a kernel together, where it was translated for that, if not a warp; see `translate.lanes`
)


@struct
class Site:
    """A warp collective: what the lanes of a warp do together at an instruction, and which of them can."""

    code: Pointer[u8]
    key: u32  # lanes converge at sites with the same key
    instruction: u32
    aligned: u32  # whether all lanes of the warp must execute the same instruction
    orders: u32  # whether it orders what its lanes did to memory: only `bar.warp.sync` does


@struct
class Callee:
    """A function that can be called."""

    code: Pointer[u8]
    frame_size: u32  # bytes of a thread's frame that it needs
    local_size: u32  # bytes of local memory that it needs
    signature: u32  # the number of its results and parameters
    unused: u32


@struct
class Program:
    """The kernel that a worker runs."""

    entry: Pointer[u8]  # the code of the kernel
    lanes: Pointer[u8]  # the code of the kernel for several lanes; null if there is none
    sites: Pointer[Site]
    callees: Pointer[Callee]
    counters: Pointer[u64]  # how often parts of the kernel were executed
    steps: Pointer[u32]  # for each counter, how many instructions it counts an execution of
    counter_count: u32
    callee_count: u32
    frame_size: u32  # bytes of a thread's frame
    local_size: u32  # bytes of a thread's local memory
    exchange_words: u32  # of the lane exchange buffer, for each lane
    entry_local: u32  # bytes of local memory that the kernel itself needs
    largest_frame: u32  # bytes of a frame that any one function needs
    largest_local: u32  # bytes of local memory that any one function needs
    registers: u32  # of a thread when it starts, where the header of the kernel says; otherwise 0
    never_waits: u32  # whether lanes together run to the end, unless a loop takes very long
    group: u32  # how many lanes execute it together
