"""Where memory is: windows of the generic address space, state spaces, kinds of accesses, allocations."""

from __future__ import annotations

from ptxlab.native import Pointer, struct, u8, u32, u64

# Where the windows of shared and local memory, parameters and functions start in the generic address space. Global and
# constant memory are below, at the addresses that the launch chose.
SHARED_WINDOW = 1 << 56
LOCAL_WINDOW = 2 << 56
PARAMETER_WINDOW = 3 << 56
FUNCTION_WINDOW = 4 << 56
# Where global memory may be the host's own, at the host's addresses; what kernels allocate is below.
HOST_MEMORY = 0x7C00_0000_0000
# An address in shared memory may name a block of the cluster: its rank plus 1 is above the offset; 0: its own.
RANK_SHIFT = 24
OFFSET_MASK = (1 << RANK_SHIFT) - 1
NO_RANK = 255

# Where an access goes.
GENERIC_SPACE = 0
GLOBAL_SPACE = 1
CONSTANT_SPACE = 2
SHARED_SPACE = 3
LOCAL_SPACE = 4
PARAMETER_SPACE = 5
CLUSTER_SPACE = 6  # shared memory of any block of the cluster
TENSOR_SPACE = 7

# How an access is made.
LOAD = 0
STORE = 1
ATOMIC = 2

# Where the parts of an access are in one number, above the number of its instruction.
SIZE_SHIFT, SPACE_SHIFT, KIND_SHIFT = 32, 48, 56


def packed_access(instruction: int, bytes: int, space: int, kind: int) -> int:
    """An access of so many bytes, aligned to them, as one number."""
    return instruction | bytes << SIZE_SHIFT | space << SPACE_SHIFT | kind << KIND_SHIFT


@struct
class Allocation:
    """Memory that a kernel may touch: `size` bytes at the address `base`, which are at `data` on the host."""

    base: u64
    size: u64
    data: Pointer[u8]
    kept: Pointer[u8]  # pages as they were before the launch; see `runtime.memory.block_independence`
    marks: Pointer[u32]  # which pages are in `kept`, one entry for each; null: nothing has to be kept
    writable: u32
    unused: u32


@struct
class Hint:
    """Where an instruction found memory last: `count` aligned pieces of its size, from the address `base` on."""

    base: u64
    count: u64
    data: Pointer[u8]
