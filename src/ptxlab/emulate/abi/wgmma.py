"""What `wgmma` reads of shared memory, as the code of a kernel reports it."""

from __future__ import annotations

from ptxlab.native import struct, u32, u64


@struct
class MatrixChunks:
    """Chunks of 16 bytes of some rows of a matrix in shared memory."""

    descriptor: u64  # the matrix descriptor
    major: u32  # K_MAJOR or MN_MAJOR
    is_b: u32  # whether the matrix is B, and not A
    bits: u32  # the width of an element
    type: u32  # of an element, as a tensor map would have it, where only that is right; 0: any may be
    first: u32  # the first row
    rows: u32
    first_chunk: u32  # the first chunk of each row
    chunks: u32  # how many chunks of each row
