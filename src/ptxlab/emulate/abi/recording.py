"""What a recorded launch writes down: segments that threads executed, their payload, and events of the runtime.

A segment is a part of a kernel that a thread runs through without waiting. The code of a kernel that is recorded says
which segment it starts, and writes results and addresses to the segment's payload, at offsets known at translation; see
`translate.recording`. What happens beside the code of threads is an event.
"""

from __future__ import annotations

from ptxlab.native import Pointer, struct, u8, u32, u64
from ptxlab.values import dataclass


@struct
@dataclass
class RecordedEvent:
    """Something that happened beside the code of threads."""

    time: u64 = 0  # how many segments had started before
    thread: u64 = 0  # counted through the grid
    block: u64 = 0  # whose shared memory `address` is in
    address: u64 = 0
    kind: u32 = 0
    instruction: u32 = 0
    size: u32 = 0
    operation: u32 = 0  # the number of the asynchronous operation, of the barrier, or of the phase
    offset: u32 = 0  # in the bytes of the operation; of a barrier, the arrivals that are missing, or have been
    unused: u32 = 0


@struct
class Recorder:
    """The buffers of a recorded launch; the host empties them when one is full."""

    entries: Pointer[u64]
    payload: Pointer[u8]
    events: Pointer[RecordedEvent]
    data: Pointer[u8]  # that asynchronous operations have written, in the order of events
    sink: Pointer[u8]  # what threads write that are not recorded
    entry_count: u64
    payload_size: u64
    event_count: u64
    data_size: u64
    entry_capacity: u64
    payload_capacity: u64
    event_capacity: u64
    data_capacity: u64
    emptied: u64  # entries that the host has taken
    is_over: u32  # whether no more is to be recorded
    unused: u32
    blocks: Pointer[u64]  # that are recorded, `block_count` of them; null: all
    block_count: u64
    warps: u64  # that are recorded, a bit for each
    turn: u64  # of launches that run together: the last that was noted
