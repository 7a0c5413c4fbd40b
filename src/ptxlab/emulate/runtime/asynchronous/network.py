"""Operations of a network: puts, gets and atomic operations on memory of other GPUs, delivered late and in any order.

One is delivered when no thread of its block can continue, when a thread waits for it by a quiet, or when the block
ends; with a seed, at times when the next one is started. Before it come all that a fence orders before it; it writes
what it copies before it changes its signal. See `runtime.order.network_order` for what the detectors make of that.
"""

from __future__ import annotations

from ptxlab.device.trace_format import NO_BLOCK
from ptxlab.emulate.abi.address_spaces import ATOMIC, GENERIC_SPACE, GLOBAL_SPACE, LOAD, SHARED_WINDOW, STORE, Hint
from ptxlab.emulate.abi.faults import BAD_CALL, NO_MEMORY, CallReason
from ptxlab.emulate.abi.network import (
    ADD,
    AND,
    BLOCKING,
    CHANGE,
    CHANGE_SHIFT,
    COMPARE,
    KEEP,
    OR,
    PEER,
    PEERS,
    SET,
    VALUE,
    WIDTH,
    WIDTH_SHIFT,
    XOR,
    Network,
    NetworkOperation,
)
from ptxlab.emulate.abi.state import Block, Thread, Worker
from ptxlab.emulate.runtime.memory.memory import fail, fail_because, find_memory
from ptxlab.emulate.runtime.memory.recording import is_recording, record_write
from ptxlab.emulate.runtime.order.devices import is_abroad, is_in_team
from ptxlab.emulate.runtime.order.network_order import (
    begin_operation,
    is_fenced_before,
    knows_of,
    learn_started,
    note_copy,
    note_delivery,
    note_fetch,
    note_signal_of,
    note_source,
)
from ptxlab.emulate.runtime.order.shadow import REDUCTION, UNCHANGED
from ptxlab.emulate.runtime.order.vector_clocks import NETWORK_FENCED, forget
from ptxlab.emulate.runtime.schedule.random import next_random
from ptxlab.native import (
    Pointer,
    address_of,
    append,
    boolean,
    calloc,
    cast,
    copy_bytes,
    free,
    free_items,
    native,
    size_of,
    u8,
    u32,
    u64,
)

LIMIT = 4096  # operations that are under way
OPERATION_SIZE = size_of(NetworkOperation)
EVERY_ORDER = PEERS - 1  # as a peer: of operations that only a quiet completes
GET = 1 << 18  # of `how`


@native
def network_of(thread: Pointer[Thread], instruction: u32) -> Pointer[Network]:
    """The network of a node; null, with the fault noted, if there is none, or no memory for it."""
    if not is_in_team(thread.worker):
        fail_because(thread, BAD_CALL, CallReason.NO_NETWORK, instruction, 0)
        return cast(Pointer[Network], 0)
    team = thread.worker.together.team
    if cast(u64, team.network) == 0:
        team.network = calloc(1, size_of(Network))
        if cast(u64, team.network) == 0:
            fail(thread, NO_MEMORY, instruction, 0)
    return cast(Pointer[Network], team.network)


# Starting.


@native
def start_put(
    thread: Pointer[Thread],
    destination: u64,
    source: u64,
    size: u64,
    signal: u64,
    value: u64,
    how: u32,
    instruction: u32,
) -> None:
    """Start to write memory of a peer, and to change a signal there after that."""
    start(thread, destination, source, u32(size), signal, value, how, instruction)


@native
def start_get(thread: Pointer[Thread], destination: u64, source: u64, size: u64, how: u32, instruction: u32) -> None:
    """Start to read memory of a peer."""
    start(thread, destination, source, u32(size), 0, 0, how & ~u32(PEER) | EVERY_ORDER | GET, instruction)


@native
def start_atomic(thread: Pointer[Thread], destination: u64, value: u64, how: u32, instruction: u32) -> None:
    """Start an atomic operation without a result."""
    start(thread, 0, 0, 0, destination, value, how, instruction)


@native
def start(
    thread: Pointer[Thread],
    destination: u64,
    source: u64,
    size: u32,
    signal: u64,
    value: u64,
    how: u32,
    instruction: u32,
) -> None:
    """Start an operation: check that it can be done, and note what it will access."""
    nowhere = cast(Pointer[Hint], 0)
    if size != 0:
        if cast(u64, find_memory(thread, destination, size, 1, GENERIC_SPACE, STORE, instruction, nowhere)) == 0:
            return
        if how & VALUE == 0 and (
            cast(u64, find_memory(thread, source, size, 1, GENERIC_SPACE, LOAD, instruction, nowhere)) == 0
        ):
            return
    if signal != 0:
        width: u32 = (how & WIDTH) >> WIDTH_SHIFT
        if cast(u64, find_memory(thread, signal, width, width, GLOBAL_SPACE, ATOMIC, instruction, nowhere)) == 0:
            return
    network = network_of(thread, instruction)
    if cast(u64, network) == 0:
        return
    if thread.worker.seed != 0 and next_random(thread.block) & 1 != 0:
        deliver_network(thread.block)
    if network.pending.count >= LIMIT:
        deliver_one(network, 0)
    operation: Pointer[NetworkOperation] = append(network.pending)
    if cast(u64, operation) == 0:
        fail(thread, NO_MEMORY, instruction, 0)
        return
    operation.destination = destination
    operation.source = source
    operation.size = size
    operation.signal = signal
    operation.value = value
    operation.how = how
    operation.instruction = instruction
    operation.thread = thread
    if not begin_operation(thread, network, operation, how & PEER):
        network.pending.count -= 1
        fail(thread, NO_MEMORY, instruction, 0)
        return
    if size == 0:
        return
    if how & GET != 0:
        note_copy(thread, operation, source, size, LOAD)
        note_copy(thread, operation, destination, size, STORE)
        return
    if how & (BLOCKING | VALUE) != 0 or source >= SHARED_WINDOW:
        if how & VALUE == 0:
            note_source(thread, source, size, LOAD, instruction)
        read(operation)
    else:
        note_copy(thread, operation, source, size, LOAD)
    note_delivery(thread, network, operation, destination, size)


# Delivering.


@native
def read(operation: Pointer[NetworkOperation]) -> None:
    """Have an operation read what it copies."""
    thread = operation.thread
    if operation.size == 0 or cast(u64, operation.data) != 0:
        return
    size: u64 = u64(operation.size)
    data = calloc(1, size)
    if cast(u64, data) == 0:
        fail(thread, NO_MEMORY, operation.instruction, 0)
        return
    operation.data = data
    if operation.how & VALUE != 0:
        copy_bytes(data, cast(Pointer[u8], address_of(operation.source)), size)
        return
    nowhere = cast(Pointer[Hint], 0)
    at: u32 = operation.instruction
    found = find_memory(thread, operation.source, operation.size, 1, GENERIC_SPACE, LOAD, at, nowhere)
    if cast(u64, found) != 0:
        copy_bytes(data, found, size)


@native
def write(operation: Pointer[NetworkOperation]) -> None:
    """Have an operation write what it has read."""
    thread = operation.thread
    if operation.size == 0 or cast(u64, operation.data) == 0:
        return
    nowhere = cast(Pointer[Hint], 0)
    at: u32 = operation.instruction
    found = find_memory(thread, operation.destination, operation.size, 1, GENERIC_SPACE, STORE, at, nowhere)
    if cast(u64, found) == 0:
        return
    copy_bytes(found, operation.data, u64(operation.size))
    if is_recording(thread) and operation.destination < SHARED_WINDOW:
        record_write(thread, NO_BLOCK, operation.destination, found, operation.size, 0, 0, at)


@native
def change_signal(operation: Pointer[NetworkOperation]) -> None:
    """Have an operation change its signal."""
    if operation.signal == 0:
        return
    how: u32 = operation.how
    width: u32 = (how & WIDTH) >> WIDTH_SHIFT
    change: u32 = (how & CHANGE) >> CHANGE_SHIFT
    note_signal_of(operation.thread, operation, STORE if change == SET else u32(ATOMIC | REDUCTION), width)
    exchange(operation.thread, operation.signal, operation.value, 0, change, width, operation.instruction)


@native
def exchange(
    thread: Pointer[Thread], address: u64, value: u64, compare: u64, change: u32, width: u32, instruction: u32
) -> u64:  # fmt: skip
    """Do an atomic operation; the value that was there."""
    found = find_memory(thread, address, width, width, GLOBAL_SPACE, ATOMIC, instruction, cast(Pointer[Hint], 0))
    if cast(u64, found) == 0:
        return 0
    old: u64 = cast(Pointer[u64], found)[0] if width == 8 else u64(cast(Pointer[u32], found)[0])
    new: u64 = old
    if change == SET:
        new = value
    elif change == ADD:
        new = old + value
    elif change == AND:
        new = old & value
    elif change == OR:
        new = old | value
    elif change == XOR:
        new = old ^ value
    elif change == COMPARE:
        is_same: boolean = old == compare if width == 8 else u32(old) == u32(compare)
        if is_same:
            new = value
    if change == KEEP:
        return old
    if width == 8:
        cast(Pointer[u64], found)[0] = new
    else:
        cast(Pointer[u32], found)[0] = u32(new)
    if is_recording(thread):
        record_write(thread, NO_BLOCK, address, found, width, 0, 0, instruction)
    return old


@native
def deliver_one(network: Pointer[Network], index: u32) -> None:
    """Deliver an operation, and take it off the list; before it, those that must be."""
    at: u32 = index
    before: u32 = first_before(network, at)
    while before != at:
        at = before
        before = first_before(network, at)
    operation = network.pending.items + at
    thread = operation.thread
    read(operation)
    write(operation)
    change_signal(operation)
    drop(operation)
    last: u32 = network.pending.count - 1
    while at < last:
        copy_bytes(
            cast(Pointer[u8], network.pending.items + at),
            cast(Pointer[u8], network.pending.items + (at + 1)),
            OPERATION_SIZE,
        )
        at += 1
    network.pending.count = last
    thread.block.schedule.moves += 1
    thread.worker.progress.deliveries += 1


@native
def first_before(network: Pointer[Network], index: u32) -> u32:
    """An operation under way that is delivered before another one; itself if there is none."""
    operation = network.pending.items + index
    peer: u32 = operation.how & PEER
    for before in range(index):
        earlier = network.pending.items + before
        is_near: boolean = not is_abroad(operation.thread, u32(earlier.thread.block.number))
        if is_near and is_fenced_before(earlier, address_of(operation.known), address_of(operation.known), peer):
            return before
    return index


@native
def deliver_network(block: Pointer[Block]) -> boolean:
    """Deliver one operation that a block has started, the oldest or, with a seed, any; false if there is none."""
    team = block.worker.together.team
    if block.network == 0 or cast(u64, team) == 0 or cast(u64, team.network) == 0:
        return False
    network = cast(Pointer[Network], team.network)
    count: u32 = 0
    for index in range(network.pending.count):
        if network.pending.items[index].thread.block == block:
            count += 1
    if count == 0:
        return False
    skipped: u32 = u32(next_random(block) % u64(count)) if block.worker.seed != 0 else u32(0)
    for index in range(network.pending.count):
        if network.pending.items[index].thread.block == block:
            if skipped == 0:
                deliver_one(network, index)
                return True
            skipped -= 1
    return False


@native
def finish_network(block: Pointer[Block]) -> boolean:
    """Deliver all that a block has started: it ends. Whether there is any."""
    found: boolean = block.network != 0
    while deliver_network(block):
        pass
    return found


@native
def deliver_known(thread: Pointer[Thread], network: Pointer[Network]) -> None:
    """Deliver all that the GPU has started, as far as a thread knows; all of it where nothing says what it knows."""
    index: u32 = 0
    while index < network.pending.count:
        operation = network.pending.items + index
        block = operation.thread.block
        is_near: boolean = not is_abroad(thread, u32(block.number))
        if is_near and (
            thread.worker.checks == 0
            or knows_of(thread, network, block.number, operation.thread.number, operation.epoch)
        ):
            deliver_one(network, index)
            index = 0
        else:
            index += 1


@native
def end_network(worker: Pointer[Worker]) -> None:
    """Give back the memory of all operations of a node."""
    team = worker.together.team
    if cast(u64, team) == 0 or cast(u64, team.network) == 0:
        return
    network = cast(Pointer[Network], team.network)
    for index in range(network.pending.count):
        drop(network.pending.items + index)
    free_items(network.pending)
    for index in range(network.blocks.count):
        free(cast(Pointer[u8], network.blocks.items[index].threads))
        free_items(network.blocks.items[index].started)
        free_items(network.blocks.items[index].signalling)
    free_items(network.blocks)
    forget(address_of(network.known))
    free(team.network)
    team.network = cast(Pointer[u8], 0)


@native
def drop(operation: Pointer[NetworkOperation]) -> None:
    """Give back the memory of an operation."""
    free(operation.data)
    forget(address_of(operation.known))
    forget(address_of(operation.passed))
    forget(address_of(operation.handed))


# Waiting.


@native
def fence_network(thread: Pointer[Thread], instruction: u32) -> None:
    """All that the GPU has started, as far as a thread knows, is delivered to each peer before what it starts next."""
    team = thread.worker.together.team
    if cast(u64, team) == 0 or cast(u64, team.network) == 0:
        return
    if thread.worker.checks == 0:
        deliver_known(thread, cast(Pointer[Network], team.network))
    else:
        learn_started(thread, cast(Pointer[Network], team.network), NETWORK_FENCED)


@native
def quiet_network(thread: Pointer[Thread], instruction: u32) -> None:
    """Wait for all that the GPU has started, as far as a thread knows."""
    team = thread.worker.together.team
    if cast(u64, team) == 0 or cast(u64, team.network) == 0:
        return
    deliver_known(thread, cast(Pointer[Network], team.network))
    if thread.worker.checks != 0:
        learn_started(thread, cast(Pointer[Network], team.network), 0)


@native
def fetch_atomic(
    thread: Pointer[Thread], address: u64, value: u64, compare: u64, how: u32, instruction: u32
) -> u64:  # fmt: skip
    """Do an atomic operation on memory of a peer, and wait for the value that was there."""
    width: u32 = (how & WIDTH) >> WIDTH_SHIFT
    change: u32 = (how & CHANGE) >> CHANGE_SHIFT
    found = find_memory(thread, address, width, width, GLOBAL_SPACE, ATOMIC, instruction, cast(Pointer[Hint], 0))
    if cast(u64, found) == 0:
        return 0
    network = network_of(thread, instruction)
    if cast(u64, network) == 0:
        return 0
    known = address_of(thread.order.known)
    index: u32 = 0
    while index < network.pending.count:
        earlier = network.pending.items + index
        is_near: boolean = not is_abroad(thread, u32(earlier.thread.block.number))
        if is_near and is_fenced_before(earlier, known, address_of(thread.block.order.known), how & PEER):
            deliver_one(network, index)
            index = 0
        else:
            index += 1
    old: u64 = cast(Pointer[u64], found)[0] if width == 8 else u64(cast(Pointer[u32], found)[0])
    kind: u32 = ATOMIC
    is_same: boolean = old == compare if width == 8 else u32(old) == u32(compare)
    if change == KEEP:
        kind = LOAD
    elif change == COMPARE and not is_same:
        kind = LOAD | UNCHANGED
    note_fetch(thread, network, address, kind, width, how & PEER, instruction)
    return exchange(thread, address, value, compare, change, width, instruction)


CALLED = (
    start_put,
    start_get,
    start_atomic,
    fence_network,
    quiet_network,
    fetch_atomic,
)
