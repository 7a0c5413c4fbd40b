"""Asynchronous copies as the code of a kernel starts them: one record for each kind; and tensor maps."""

from __future__ import annotations

from dataclasses import dataclass

from ptxlab.native import Array, struct, u32, u64


@struct
class TensorMap:
    """A tensor in global memory and a box to cut out of it, as the emulator encodes it; all from the innermost on."""

    mark: u32  # by which a tensor map is recognized
    rank: u32
    address: u64
    strides: Array[u64, 4]  # in bytes, of all dimensions but the innermost
    fill: u64  # the value of elements outside of the tensor
    sizes: Array[u32, 5]
    box: Array[u32, 5]
    steps: Array[u32, 5]  # along each dimension, only every so many elements are copied
    width: u32  # of an element, in bytes
    swizzle: u32  # how many bits of an address it changes
    type: u32  # of an element, where it can be reduced; see `runtime.asynchronous.reductions`


@struct
class BulkLoad:
    """A bulk copy from global to shared memory: of bytes, or of a box of a tensor."""

    destination: u64  # in shared memory of the cluster
    source: u64  # in global memory; of a box, the generic address of its tensor map
    barrier: u64  # the mbarrier that it signals, in shared memory of the cluster
    size: u32  # in bytes; not of a box
    left: u32  # bytes at the start that are not read
    right: u32  # bytes at the end that are not read
    space: u32  # SHARED_SPACE, or CLUSTER_SPACE if the destination may be in another block
    tracked: u32  # whether the kernel may write the memory that it reads
    is_multicast: u32
    blocks: u32  # of a multicast: the blocks of the cluster that it goes to, a bit for each
    is_pair: u32  # whether the mbarrier may be in the other block of the pair that the destination is in
    rank: u32  # of a box: its dimensions; 0: it is a copy of bytes
    coordinates: Array[u32, 5]  # of a box: where it starts, innermost dimension first


@struct
class BulkStore:
    """A bulk copy from shared memory: to global memory, to another block of the cluster, or of a box to a tensor."""

    destination: u64  # in global memory, or in shared memory of the cluster; of a box, the address of its tensor map
    source: u64  # in shared memory of the block
    barrier: u64  # of a copy to another block: the mbarrier that it signals
    size: u32  # in bytes; not of a box
    mask: u32  # the bytes of every 16 that are written, a bit for each
    reduction: (
        u32  # how values are combined with those in memory, see `runtime.asynchronous.reductions`; 0: they replace
    )
    type: u32  # of the values that are reduced
    rank: u32  # of a box: its dimensions; 0: it is a copy of bytes
    coordinates: Array[u32, 5]  # of a box: where it starts, innermost dimension first


@struct
@dataclass
class AsyncStore:
    """A value of up to 16 bytes that is sent to shared memory of the cluster: `st.async`, `red.async`."""

    destination: u64
    barrier: u64  # the mbarrier that it signals
    low: u64  # the first 8 bytes of the value
    high: u64  # the bytes after them
    size: u32  # in bytes
    reduction: u32  # how the value is combined with that in memory; 0: it replaces it
    type: u32  # of a value that is reduced
