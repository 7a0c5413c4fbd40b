"""What bulk copies of a recorded launch read and write, piece by piece."""

from __future__ import annotations

from ptxlab.device.trace_format import READ
from ptxlab.emulate.abi.state import Thread, Transfer
from ptxlab.emulate.runtime.memory.recording import is_recording, record_event, record_write
from ptxlab.native import Pointer, native, u8, u32, u64

BULK = 0x80000000  # of the number of an operation: it is a bulk copy, and no `cp.async`


@native(inline=True)
def record_read(
    thread: Pointer[Thread], transfer: Pointer[Transfer], block: u64, address: u64, size: u32, offset: u32
) -> None:
    """A copy has read bytes, to `offset` of its own."""
    if is_recording(thread):
        record_event(thread, READ, block, address, size, BULK | transfer.number, offset, transfer.instruction)


@native(inline=True)
def record_written(
    thread: Pointer[Thread],
    transfer: Pointer[Transfer],
    block: u64,
    address: u64,
    data: Pointer[u8],
    size: u32,
    offset: u32,
) -> None:
    """A copy has written bytes from `offset` of its own, which are at `data` now."""
    if is_recording(thread):
        number: u32 = BULK | transfer.number
        record_write(thread, block, address, data, size, number, offset, transfer.instruction)
