"""Multicast addresses as machine code reads them."""

from __future__ import annotations

from ptxlab.native import Array, struct, u32, u64


@struct
class MulticastObject:
    """One address for the memory of several devices."""

    base: u64
    size: u64
    replicas: Array[u64, 8]  # addresses in global memory
    count: u32
    unused: u32
