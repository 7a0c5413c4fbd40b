"""Writing down what a recorded launch does; see `abi.recording`."""

from __future__ import annotations

from ptxlab.device.trace_format import NO_BLOCK, SEGMENT_BITS, TURN, WRITTEN
from ptxlab.emulate.abi.recording import RecordedEvent, Recorder
from ptxlab.emulate.abi.services import FLUSH
from ptxlab.emulate.abi.state import Block, Thread, Worker
from ptxlab.native import Pointer, boolean, call, cast, copy_bytes, native, u8, u32, u64

MOST_DATA = 1 << 16  # bytes of one event: longer ones are several


@native
def begin_segment(thread: Pointer[Thread], segment: u32, size: u32) -> Pointer[u8]:
    """A thread starts a segment; where its payload goes."""
    recorder = thread.worker.recorder
    if thread.is_recorded == 0 or recorder.is_over != 0:
        return recorder.sink
    note_turn(thread)
    if recorder.entry_count == recorder.entry_capacity or recorder.payload_size + u64(size) > recorder.payload_capacity:
        empty(thread)
        if recorder.is_over != 0:
            return recorder.sink
    recorder.entries[recorder.entry_count] = number_of(thread) << SEGMENT_BITS | u64(segment)
    recorder.entry_count += 1
    found = recorder.payload + recorder.payload_size
    recorder.payload_size += u64(size)
    return found


@native
def note_turn(thread: Pointer[Thread]) -> None:
    """Write down the time of all launches that run together, where others may have had turns since the last time."""
    recorder = thread.worker.recorder
    team = thread.worker.together.team
    if cast(u64, team) != 0 and recorder.turn != team.time:
        recorder.turn = team.time
        write_event(thread, RecordedEvent(block=u64(NO_BLOCK), address=team.time, kind=u32(TURN)), cast(Pointer[u8], 0))


@native
def empty(thread: Pointer[Thread]) -> None:
    """Have the host take what is in the buffers."""
    call(u64, thread.worker.host, cast(Pointer[u8], thread), u32(FLUSH), u64(0), u64(0), u64(0), u64(0), u64(0))


@native(inline=True)
def number_of(thread: Pointer[Thread]) -> u64:
    """The number of a thread in the grid."""
    block: u64 = thread.block.number - thread.worker.shape.first_block
    return block * u64(thread.block.count) + u64(thread.number)


@native(inline=True)
def is_launch_recorded(worker: Pointer[Worker]) -> boolean:
    """Whether anything of the launch is recorded; the runtime of other launches is compiled with False here."""
    return cast(u64, worker.recorder) != 0


@native(inline=True)
def is_recording(thread: Pointer[Thread]) -> boolean:
    """Whether what the block of a thread does is recorded."""
    return is_launch_recorded(thread.worker) and thread.block.is_recorded != 0


@native
def record(thread: Pointer[Thread], event: RecordedEvent, data: Pointer[u8]) -> None:
    """Write down an event, and as many bytes of data as it has; null: none."""
    if thread.worker.recorder.is_over == 0:
        note_turn(thread)
        write_event(thread, event, data)


@native
def write_event(thread: Pointer[Thread], event: RecordedEvent, data: Pointer[u8]) -> None:
    """Add an event to the buffers."""
    recorder = thread.worker.recorder
    if recorder.is_over != 0:
        return
    size: u64 = u64(event.size) if event.kind == WRITTEN else u64(0)
    if recorder.event_count == recorder.event_capacity or recorder.data_size + size > recorder.data_capacity:
        empty(thread)
        if recorder.is_over != 0:
            return
    place = recorder.events + recorder.event_count
    recorder.event_count += 1
    place.time = recorder.emptied + recorder.entry_count
    place.thread = number_of(thread)
    place.block = event.block if event.block == NO_BLOCK else event.block - thread.worker.shape.first_block
    place.address = event.address
    place.kind = event.kind
    place.instruction = event.instruction
    place.size = event.size
    place.operation = event.operation
    place.offset = event.offset
    place.unused = 0
    if size != 0:
        copy_bytes(recorder.data + recorder.data_size, data, size)
        recorder.data_size += size


@native
def record_bytes(thread: Pointer[Thread], event: RecordedEvent, data: Pointer[u8]) -> None:
    """Write down bytes that were written, in pieces that fit the buffer."""
    left: u32 = event.size
    while left != 0:
        event.size = min(left, u32(MOST_DATA))
        record(thread, event, data)
        data = data + event.size
        event.address += u64(event.size)
        event.offset += event.size
        left -= event.size


@native
def record_event(
    thread: Pointer[Thread],
    kind: u32,
    block: u64,
    address: u64,
    size: u32,
    operation: u32,
    offset: u32,
    instruction: u32,
) -> None:
    """An asynchronous operation was issued, or has read, or something has happened to a barrier."""
    event = RecordedEvent(
        block=block, address=address, kind=kind, instruction=instruction, size=size, operation=operation, offset=offset
    )
    record(thread, event, cast(Pointer[u8], 0))


@native
def record_write(
    thread: Pointer[Thread],
    block: u64,
    address: u64,
    data: Pointer[u8],
    size: u32,
    operation: u32,
    offset: u32,
    instruction: u32,
) -> None:
    """An asynchronous operation has written bytes, which are at `data` now."""
    event = RecordedEvent(
        block=block,
        address=address,
        kind=WRITTEN,
        instruction=instruction,
        size=size,
        operation=operation,
        offset=offset,
    )
    record_bytes(thread, event, data)


@native
def choose_recorded(block: Pointer[Block]) -> None:
    """Say of a block that starts which of its threads are recorded."""
    recorder = block.worker.recorder
    block.is_recorded = u32(is_chosen(recorder, block.number - block.worker.shape.first_block))
    for index in range(block.count):
        warp: u32 = index // 32
        is_in: boolean = warp >= 64 or recorder.warps >> u64(warp) & 1 != 0
        block.threads[index].is_recorded = block.is_recorded & u32(is_in)


@native
def is_chosen(recorder: Pointer[Recorder], number: u64) -> boolean:
    """Whether a block is to be recorded."""
    if cast(u64, recorder.blocks) == 0:
        return True
    for index in range(recorder.block_count):  # noqa: SIM110 - native functions know no generators
        if recorder.blocks[index] == number:
            return True
    return False


CALLED = (begin_segment,)
