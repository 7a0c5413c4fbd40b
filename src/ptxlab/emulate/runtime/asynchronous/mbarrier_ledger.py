"""What arrived at each mbarrier, phase by phase, for the explanation of a hang."""

from __future__ import annotations

from ptxlab.emulate.abi.barriers import RECENT_PHASES, SOURCES, Arrivals, Phase, PhaseRecord
from ptxlab.emulate.abi.state import Thread
from ptxlab.native import Pointer, boolean, cast, fill_bytes, native, size_of, u8, u32, u64

RECORD_SIZE = size_of(PhaseRecord)


@native(inline=True)
def record_of(notes: Pointer[Phase], number: u64) -> Pointer[PhaseRecord]:
    """The record of a phase."""
    return cast(Pointer[PhaseRecord], notes.recent + u32(number % RECENT_PHASES))


@native
def begin_record(notes: Pointer[Phase]) -> None:
    """A phase starts: nothing has arrived in it."""
    record = record_of(notes, notes.completed)
    fill_bytes(cast(Pointer[u8], record), 0, RECORD_SIZE)
    record.number = notes.completed


@native
def record_arrival(notes: Pointer[Phase], thread: Pointer[Thread], count: u32, instruction: u32) -> None:
    """Add the arrival of a thread, or of an operation that it started, to the phase that an mbarrier is in."""
    record = record_of(notes, notes.completed)
    record.arrived += count
    for index in range(SOURCES):
        source = cast(Pointer[Arrivals], record.sources + index)
        is_same: boolean = source.instruction == instruction and source.block == thread.block.number
        if source.count == 0:
            source.instruction = instruction
            source.block = thread.block.number
            source.thread = thread.number
            is_same = True
        if is_same:
            source.count += count
            source.warps = source.warps | u32(1) << (thread.number // 32)
            return


@native(inline=True)
def record_pass(notes: Pointer[Phase]) -> None:
    """A wait has seen the last phase complete."""
    if notes.completed != 0:
        record_of(notes, notes.completed - 1).passed += 1
