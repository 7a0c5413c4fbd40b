"""Asynchronous copies as the code of a kernel starts them: one record for each kind; and tensor maps."""

from __future__ import annotations

from ptxlab.native import Array, struct, u32, u64
from ptxlab.values import dataclass

# How a copy cuts elements out of a tensor, by the `.mode` of its instruction.
MODES = {
    None: 0, "tile": 0, "tile::gather4": 1, "tile::scatter4": 1, "im2col": 2, "im2col_no_offs": 2, "im2col::w": 3,
    "im2col::w::128": 4, "im2col_no_offs::w": 3,
}  # fmt: skip
TILE, GATHER, IM2COL, IM2COL_W, IM2COL_W_128 = range(5)


@struct
class TensorMap:
    """A tensor in global memory and what copies cut out of it, read from its 128 bytes; all from the innermost on.

    Interleaved elements are slices of 16 or 32 bytes: they have one more dimension, the innermost one, of one slice.
    """

    address: u64
    strides: Array[u64, 5]  # in bytes, of all dimensions but the innermost
    sizes: Array[u64, 6]
    box: Array[u32, 6]  # in elements; of im2col only the first, the channels of a pixel
    steps: Array[u32, 6]  # along each dimension, only every so many elements are copied
    lower: Array[u32, 3]  # of im2col: where pixels start in each dimension of an image, signed
    upper: Array[u32, 3]  # and where they end, from the end of the image, signed
    pixels: u32  # of im2col: how many are copied
    rank: u32  # as the map has it
    dimensions: u32  # the rank, or one more
    mode: u32  # TILE or IM2COL
    type: u32  # of an element; see `isa.units.tensor_map`
    bits: u32  # of an element, or of a slice
    rounds: u32  # whether f32 becomes tf32
    fills: u32  # whether elements out of bounds are NaNs
    unit: u32  # bytes in global memory that become 16 in shared memory
    interleave: u32
    swizzle: u32  # in shared memory, how many bits of an address it changes
    atom: u32  # as an exponent of two, the bytes that it keeps together
    flip: u32  # whether it swaps 8 bytes in every other 128
    atomicity: u32  # as the map has it
    pitch: u32  # in shared memory, from one row of a box to the next


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
    is_counted: u32  # of a multicast: whether the bytes that it reads were counted, with the first block
    blocks: u32  # of a multicast: the blocks of the cluster that it goes to, a bit for each
    is_pair: u32  # whether the mbarrier may be in the other block of the pair that the destination is in
    rank: u32  # of a box: its dimensions; 0: it is a copy of bytes
    mode: u32  # of a box: how it is cut out of its tensor
    map_tracked: u32  # of a box: whether the kernel may write the memory that its tensor map is in
    counter: u32  # of the bytes written; that of those read follows
    coordinates: Array[u32, 5]  # of a box: where it starts, innermost dimension first
    offsets: Array[u32, 3]  # of im2col: what is added to the coordinates of pixels


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
    mode: u32  # of a box: how it is cut out of its tensor
    map_tracked: u32  # of a box: whether the kernel may write the memory that its tensor map is in
    counter: u32  # of the bytes written; that of those read follows
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
