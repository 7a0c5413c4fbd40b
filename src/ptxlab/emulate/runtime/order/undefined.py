"""Undefined values that are used: the code of a kernel follows them from where they come to where that matters.

Beside each register that may hold one there is a set of the instructions that it may come from, a bit each. Here is
what each lane got last by instructions of each bit, so that a use can name the read; and what each lane stored last in
shared memory, by the number of the instruction, so that a thread that reads it there gets that.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import LOAD
from ptxlab.emulate.abi.clocks import SOURCES, STORES, UndefinedValue
from ptxlab.emulate.abi.faults import APART
from ptxlab.emulate.abi.findings import SHUFFLED, UNWRITTEN
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.order.reports import add_first
from ptxlab.native import Pointer, cast, copy_bytes, native, size_of, trailing_zeros, u8, u32, u64

VALUE_SIZE = size_of(UndefinedValue)

NEVER_STORED = 1  # what a note of a read returns if nothing was stored there; more: see `stored_number`


@native(inline=True)
def stored_number(instruction: u32, lane: u32) -> u32:
    """A number for what a lane stored by an instruction."""
    return NEVER_STORED + 1 + (SOURCES + instruction % STORES) * 32 + lane


@native
def note_undefined(
    thread: Pointer[Thread], stored: u32, source: u32, address: u64, bytes: u32, space: u32, instruction: u32
) -> u32:
    """A thread reads what no thread has written, or (no bytes) what `shfl` takes from a lane that takes no part.

    If an undefined value was `stored` there, it is that one; with 0, or without a bit `source`, there is nothing.
    """
    if stored == 0 or source == 0:
        return 0
    if thread.worker.history.is_together != 0 and thread.worker.fault.kind == 0:
        thread.worker.fault.kind = APART  # lanes together do not follow it
    found = thread.worker.history.undefined + (trailing_zeros(u32, source) * 32 + thread.lane)
    if stored > NEVER_STORED and thread.worker.history.undefined[stored - NEVER_STORED - 1].instruction != 0:
        copy_value(found, thread.worker.history.undefined + (stored - NEVER_STORED - 1))
        return source
    found.instruction = instruction + 1
    found.thread = thread.number
    found.block = thread.block.number
    found.address = address
    found.bytes = bytes
    found.space = space
    return source


@native(inline=True)
def copy_value(to: Pointer[UndefinedValue], source: Pointer[UndefinedValue]) -> None:
    copy_bytes(cast(Pointer[u8], to), cast(Pointer[u8], source), VALUE_SIZE)


@native
def store_undefined(thread: Pointer[Thread], sources: u32, instruction: u32) -> None:
    """A thread stores an undefined value in shared memory, where it is as undefined."""
    number: u32 = stored_number(instruction, thread.lane) - NEVER_STORED - 1
    copy_value(thread.worker.history.undefined + number, source_of(thread, trailing_zeros(u32, sources)))


@native
def use_undefined(thread: Pointer[Thread], sources: u32, instruction: u32) -> None:
    """A thread uses an undefined value: report the reads that it comes from, unless they were reported."""
    for source in range(SOURCES):
        if sources >> source & 1 == 0:
            continue
        found = source_of(thread, source)
        kind: u32 = SHUFFLED if found.bytes == 0 else u32(UNWRITTEN)
        if found.instruction == 0:
            continue
        new = add_first(thread, kind, found.address, found.bytes, LOAD, found.instruction - 1, found.space)
        if cast(u64, new) != 0:
            new.access.thread = found.thread
            new.access.block = found.block
            new.used_at = instruction + 1


@native
def source_of(thread: Pointer[Thread], source: u32) -> Pointer[UndefinedValue]:
    """What the thread itself got by an instruction of that bit; else what a lane of the block did, or any lane."""
    first = thread.worker.history.undefined + source * 32
    own = first + thread.lane
    if own.instruction != 0 and own.thread == thread.number and own.block == thread.block.number:
        return own
    found = own
    for lane in range(32):
        other = first + lane
        if other.instruction != 0 and (found.instruction == 0 or other.block == thread.block.number):
            found = other
    return found


CALLED = (
    note_undefined,
    use_undefined,
)
