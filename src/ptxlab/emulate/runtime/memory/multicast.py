"""Multicast addresses: the memory of each device that one refers to."""

from __future__ import annotations

from ptxlab.emulate.abi.faults import BAD_MULTICAST
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.memory.memory import fail_with
from ptxlab.native import Pointer, native, u32, u64


@native
def locate_replica(thread: Pointer[Thread], address: u64, number: u32, bytes: u32, instruction: u32) -> u64:
    """The address of bytes on the device of that number; 0 where there is none, or the fault is noted."""
    for index in range(thread.worker.memory.multicast_count):
        found = thread.worker.memory.multicasts + index
        if found.base <= address < found.base + found.size:
            if address - found.base + u64(bytes) > found.size:
                break
            if number >= found.count:
                return 0
            return found.replicas[number] + (address - found.base)
    if number == 0:
        if thread.worker.fault.kind == 0:
            thread.worker.fault.address = address
        fail_with(thread, BAD_MULTICAST, instruction, u64(bytes), 0)
    return 0


CALLED = (locate_replica,)
