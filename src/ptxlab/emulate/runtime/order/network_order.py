"""What orders operations of a network, which are delivered late and in any order: fences, quiets and their own signals.

Each thread has a channel for each peer; the epoch of an access is the number of its operation. A quiet is known as any
end of asynchronous work. A fence is known by an entry of its own, `NETWORK_FENCED`: it says nothing of memory, but an
operation that a thread with that entry starts to the same peer is delivered after those that it names, and hands them
over with its signal. Both are about all that the GPU has started, as far as the thread that fences knows of it.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import GLOBAL_SPACE, LOCAL_WINDOW, SHARED_WINDOW, STORE
from ptxlab.emulate.abi.clocks import VectorClock
from ptxlab.emulate.abi.network import (
    PEERS,
    BlockNetwork,
    Network,
    NetworkOperation,
    Signalling,
    StartedOperations,
    ThreadStarted,
)
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.asynchronous.async_accesses import note_global_work
from ptxlab.emulate.runtime.order.devices import in_history, is_abroad
from ptxlab.emulate.runtime.order.happens_before import is_known
from ptxlab.emulate.runtime.order.races import note, note_generic
from ptxlab.emulate.runtime.order.release_acquire import hand_over
from ptxlab.emulate.runtime.order.shadow import (
    ANY_PROXY,
    ASYNC,
    CLUSTER,
    COPY,
    GENERIC,
    SIZE_SHIFT,
    STRONG,
    SYSTEM,
    WARP_SHIFT,
    WIDE,
)
from ptxlab.emulate.runtime.order.vector_clocks import (
    BLOCK_SHIFT,
    DOUBTS,
    MOST_SIGNALLING,
    MOST_THREADS,
    NETWORK,
    NETWORK_BLOCK,
    NETWORK_FENCED,
    NETWORK_SIGNALS,
    PART_MASK,
    PHASES,
    SIGNALS,
    advance,
    epoch_of,
    exchange_clocks,
    join,
    key_of,
)
from ptxlab.native import (
    Pointer,
    address_of,
    append,
    boolean,
    calloc,
    cast,
    copy_bytes,
    native,
    size_of,
    trailing_zeros,
    u8,
    u32,
    u64,
)

MOST_STARTED = 4096  # of a block, and of each thread to each peer one: of more, those of a thread are one


@native
def block_network(thread: Pointer[Thread], network: Pointer[Network]) -> Pointer[BlockNetwork]:
    """What the block of a thread has started; null if there is no memory for it."""
    block = thread.block
    if block.network == 0:
        found: Pointer[BlockNetwork] = append(network.blocks)
        if cast(u64, found) == 0:
            return found
        found.threads = cast(Pointer[ThreadStarted], calloc(u64(block.count) * PEERS, size_of(ThreadStarted)))
        if cast(u64, found.threads) == 0:
            network.blocks.count -= 1
            return cast(Pointer[BlockNetwork], 0)
        found.block = block.number
        found.device = thread.worker.shape.device
        found.count = block.count
        block.network = network.blocks.count
    return network.blocks.items + (block.network - 1)


@native
def begin_operation(
    thread: Pointer[Thread], network: Pointer[Network], operation: Pointer[NetworkOperation], peer: u32
) -> boolean:  # fmt: skip
    """Give an operation its number and its channel, and note what its thread knows; false if there is no memory."""
    own = block_network(thread, network)
    if cast(u64, own) == 0:
        return False
    network.started += 1
    operation.number = network.started
    operation.epoch = thread.order.epoch
    state = own.threads + (peer * own.count + thread.number)
    number: u32 = peer * MOST_THREADS + thread.number
    operation.channel = NETWORK + number
    if operation.signal != 0 and (state.channels != 0 or own.signalling.count < MOST_SIGNALLING):
        if state.channels == 0:
            signalling: Pointer[Signalling] = append(own.signalling)
            if cast(u64, signalling) == 0:
                return False
            signalling.number = number
            state.channels = own.signalling.count
        operation.channel = NETWORK_SIGNALS + (state.channels - 1) * SIGNALS + state.signals % SIGNALS
        state.signals += 1
    own.latest[peer] = operation.number
    if state.last != 0 and own.started.items[state.last - 1].epoch == thread.order.epoch:
        own.started.items[state.last - 1].number = operation.number
    else:
        if own.started.count == MOST_STARTED + own.count * PEERS:
            merge_started(own)
        started: Pointer[StartedOperations] = append(own.started)
        if cast(u64, started) == 0:
            return False
        started.thread = thread.number
        started.peer = peer
        started.epoch = thread.order.epoch
        started.number = operation.number
        state.last = own.started.count
    if thread.worker.checks != 0:
        hand_over(thread, address_of(operation.known), thread.order.epoch)
        join(address_of(operation.passed), address_of(thread.order.fences.passed_system))
        join(address_of(operation.passed), address_of(thread.block.order.fences.passed_system))
        if operation.signal != 0:
            join(address_of(operation.handed), address_of(thread.order.fenced.system))
            add_fenced(thread, address_of(operation.handed), peer)
            advance(address_of(operation.handed), key_of(thread.block.number, operation.channel), u64(operation.number))
    return True


@native
def merge_started(own: Pointer[BlockNetwork]) -> None:
    """Let all that a thread has started to a peer be one; a quiet may then cover more than it should."""
    kept: u32 = 0
    for index in range(u64(own.count) * PEERS):
        own.threads[index].last = 0
    for index in range(own.started.count):
        one = own.started.items + index
        state = own.threads + (one.peer * own.count + one.thread)
        if state.last != 0:
            own.started.items[state.last - 1].number = one.number
            continue
        copy_bytes(cast(Pointer[u8], own.started.items + kept), cast(Pointer[u8], one), size_of(StartedOperations))
        kept += 1
        state.last = kept
    own.started.count = kept


# What fences order.


@native
def add_fenced(thread: Pointer[Thread], clock: Pointer[VectorClock], peer: u32) -> None:
    """Add what is delivered before an operation that a thread starts to a peer: what fences of its GPU name."""
    add_fenced_of(thread, address_of(thread.order.known), clock, peer)
    add_fenced_of(thread, address_of(thread.block.order.known), clock, peer)


@native
def add_fenced_of(thread: Pointer[Thread], known: Pointer[VectorClock], clock: Pointer[VectorClock], peer: u32) -> None:
    for index in range(known.count):
        key: u64 = known.items[index].key
        part: u32 = u32(key) & PART_MASK
        if part < NETWORK + NETWORK_FENCED or part >= PHASES or key & DOUBTS != 0:
            continue
        part -= NETWORK_FENCED
        own: u32 = part - NETWORK_BLOCK if part >= NETWORK_BLOCK else (part - NETWORK) // MOST_THREADS
        if own == peer and not is_abroad(thread, u32(key >> BLOCK_SHIFT)):
            advance(clock, key - NETWORK_FENCED, known.items[index].epoch)


@native
def is_fenced_before(
    earlier: Pointer[NetworkOperation], known: Pointer[VectorClock], also: Pointer[VectorClock], peer: u32
) -> boolean:  # fmt: skip
    """Whether an operation is delivered before one to a peer that is started with some knowledge."""
    if earlier.how & 255 != peer:
        return False
    block: u64 = earlier.thread.block.number
    number: u64 = u64(earlier.number)
    own: u64 = key_of(block, NETWORK_FENCED + NETWORK + peer * MOST_THREADS + earlier.thread.number)
    whole: u64 = key_of(block, NETWORK_FENCED + NETWORK_BLOCK + peer)
    if number <= epoch_of(known, own) or number <= epoch_of(known, whole):
        return True
    return number <= epoch_of(also, own) or number <= epoch_of(also, whole)


@native
def learn_started(thread: Pointer[Thread], network: Pointer[Network], fence: u32) -> None:
    """A thread knows all to be complete that its GPU has started, as far as it knows of that; or past a `fence`."""
    for index in range(network.blocks.count):
        own = network.blocks.items + index
        if own.device != thread.worker.shape.device:
            continue
        for peer in range(PEERS):
            own.missing[peer] = 0
        for at in range(own.started.count):
            one = own.started.items + at
            if own.missing[one.peer] == 0 and not knows_of(thread, network, own.block, one.thread, one.epoch):
                own.missing[one.peer] = 1
        last: u32 = PEERS if fence == 0 else PEERS - 1
        for peer in range(last):
            if own.latest[peer] != 0 and own.missing[peer] == 0:
                key: u64 = key_of(own.block, fence + NETWORK_BLOCK + peer)
                advance(address_of(thread.order.known), key, u64(own.latest[peer]))
        for at in range(own.started.count):
            one = own.started.items + at
            if own.missing[one.peer] == 0 or one.peer >= last:
                continue
            if knows_of(thread, network, own.block, one.thread, one.epoch):
                part: u32 = NETWORK + one.peer * MOST_THREADS + one.thread
                advance(address_of(thread.order.known), key_of(own.block, fence + part), u64(one.number))


@native
def knows_of(thread: Pointer[Thread], network: Pointer[Network], block: u64, number: u32, epoch: u32) -> boolean:
    """Whether a thread knows what another one did in an epoch."""
    if block == thread.block.number and number == thread.number:
        return True
    probe = address_of(network.probe)
    probe.epoch = epoch
    probe.block = u32(block)
    probe.lanes = u32(1) << (number % 32)
    probe.flags = (number // 32) << WARP_SHIFT
    return is_known(thread, probe)


# Accesses.


@native
def note_source(thread: Pointer[Thread], address: u64, bytes: u32, kind: u32, instruction: u32) -> None:
    """A thread reads what an operation sends, or writes what it has brought."""
    if thread.worker.checks != 0 and address < LOCAL_WINDOW:
        note_generic(thread, address, bytes, kind, instruction, 0)


@native
def note_copy(
    thread: Pointer[Thread], operation: Pointer[NetworkOperation], address: u64, bytes: u32, kind: u32
) -> None:  # fmt: skip
    """An operation reads or writes global memory, some time after it was started."""
    if address < SHARED_WINDOW:
        flags: u32 = kind | GENERIC | ANY_PROXY
        note_global_work(thread, address, bytes, flags, operation.channel, operation.number, operation.instruction)


@native
def note_delivery(
    thread: Pointer[Thread], network: Pointer[Network], operation: Pointer[NetworkOperation], address: u64, bytes: u32
) -> None:  # fmt: skip
    """An operation writes memory of its peer, after all that fences order before it."""
    known = address_of(network.known)
    known.count = 0
    add_fenced(thread, known, operation.how & 255)
    if known.count == 0:
        note_copy(thread, operation, address, bytes, STORE)
        return
    join(known, address_of(thread.order.known))
    exchange_clocks(known, address_of(thread.order.known))
    note_copy(thread, operation, address, bytes, STORE)
    exchange_clocks(known, address_of(thread.order.known))


@native
def note_signal_of(thread: Pointer[Thread], operation: Pointer[NetworkOperation], kind: u32, width: u32) -> None:
    """An operation changes its signal, on behalf of its thread as that was when it started it."""
    if thread.worker.checks == 0:
        return
    history = thread.worker.history
    order = address_of(thread.order)
    stamp = order.fence.block
    cluster = order.fence.cluster
    gpu = order.fence.gpu
    system = order.fence.system
    passed: u32 = order.fences.passed.count
    block_passed: u32 = thread.block.order.fences.passed.count
    block_system: u32 = thread.block.order.fences.passed_system.count
    exchange_clocks(address_of(operation.known), address_of(order.known))
    exchange_clocks(address_of(operation.handed), address_of(order.fenced.system))
    exchange_clocks(address_of(operation.passed), address_of(order.fences.passed_system))
    order.fence.block = 1
    order.fence.cluster = 1
    order.fence.gpu = 1
    order.fence.system = 1
    order.fences.passed.count = 0
    thread.block.order.fences.passed.count = 0
    thread.block.order.fences.passed_system.count = 0
    thread.starting.channel = operation.channel
    thread.starting.number = operation.number
    note(
        thread,
        address_of(history.pages),
        address_of(history.variables),
        in_history(thread, operation.signal),
        width,
        kind | COPY | ASYNC | GENERIC | ANY_PROXY | strong_flags(width),
        operation.instruction,
        GLOBAL_SPACE,
    )
    order.fence.block = stamp
    order.fence.cluster = cluster
    order.fence.gpu = gpu
    order.fence.system = system
    exchange_clocks(address_of(operation.known), address_of(order.known))
    exchange_clocks(address_of(operation.handed), address_of(order.fenced.system))
    exchange_clocks(address_of(operation.passed), address_of(order.fences.passed_system))
    order.fences.passed.count = passed
    thread.block.order.fences.passed.count = block_passed
    thread.block.order.fences.passed_system.count = block_system


@native
def note_fetch(
    thread: Pointer[Thread], network: Pointer[Network], address: u64, kind: u32, width: u32, peer: u32, instruction: u32
) -> None:  # fmt: skip
    """A thread waits for the value of an atomic operation, which comes after all that fences order before it."""
    if thread.worker.checks == 0:
        return
    handed = address_of(network.known)
    order = address_of(thread.order)
    handed.count = 0
    add_fenced(thread, handed, peer)
    flags: u32 = kind | strong_flags(width)
    history = thread.worker.history
    pages = address_of(history.pages)
    variables = address_of(history.variables)
    at: u64 = in_history(thread, address)
    if handed.count == 0:
        note(thread, pages, variables, at, width, flags, instruction, GLOBAL_SPACE)
        return
    stamp = order.fence.block
    system = order.fence.system
    join(handed, address_of(order.fenced.system))
    exchange_clocks(handed, address_of(order.fenced.system))
    order.fence.system = max(system, u32(1))
    order.fence.block = max(stamp, u32(1))
    note(thread, pages, variables, at, width, flags, instruction, GLOBAL_SPACE)
    order.fence.block = stamp
    order.fence.system = system
    exchange_clocks(handed, address_of(order.fenced.system))


@native(inline=True)
def strong_flags(width: u32) -> u32:
    """How an atomic operation of the network accesses memory: as one of a thread with the scope of the system."""
    return STRONG | WIDE | CLUSTER | SYSTEM | trailing_zeros(u32, width) << SIZE_SHIFT
