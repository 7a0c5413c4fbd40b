"""Operations of a network between GPUs, which a kernel starts and which are delivered later, in any order."""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import Access, VectorClock
from ptxlab.emulate.abi.state import Thread
from ptxlab.native import Array, Growable, Pointer, struct, u8, u32, u64

PEERS = 17  # the most GPUs of a node, and one more: operations that no fence orders, but only a quiet

# What a kernel can call without a body: the function of the runtime, and the number of the arguments.
NETWORK = {
    "ptxlab_network_put": ("start_put", 6),
    "ptxlab_network_get": ("start_get", 4),
    "ptxlab_network_atomic": ("start_atomic", 3),
    "ptxlab_network_fetch": ("fetch_atomic", 4),
    "ptxlab_network_fence": ("fence_network", 0),
    "ptxlab_network_quiet": ("quiet_network", 0),
}

# How an operation is made: the peer in the lowest bits, then these.
PEER = 255
CHANGE_SHIFT = 8
CHANGE = 15 << CHANGE_SHIFT  # how it changes its signal, or the value of an atomic operation
WIDTH_SHIFT = 12
WIDTH = 15 << WIDTH_SHIFT  # of that, in bytes
BLOCKING = 1 << 16  # of a put: its source is read at once
VALUE = 1 << 17  # of a put: what it writes is given in place of the address of the source

# What an atomic operation makes of a value.
KEEP, SET, ADD, AND, OR, XOR, COMPARE = range(7)


@struct
class NetworkOperation:
    """An operation that is not delivered yet: what it copies, and the signal that it changes after that."""

    destination: u64
    source: u64
    data: Pointer[u8]  # what it has read; null: nothing yet
    signal: u64
    value: u64
    size: u32  # of what it copies
    how: u32
    instruction: u32
    number: u32
    channel: u32
    epoch: u32  # of its thread, when it was started
    thread: Pointer[Thread]
    known: VectorClock  # what its thread knew when it was started
    passed: VectorClock  # what was before a `fence.sc.sys` then
    handed: VectorClock  # what its signal hands over


@struct
class StartedOperations:
    """Operations that a thread has started in one epoch, to one peer: the last of them."""

    thread: u32
    peer: u32
    epoch: u32
    number: u32


@struct
class ThreadStarted:
    """What a thread has started to one peer."""

    last: u32  # 1 + the position of the last in `started`
    signals: u32  # how many with a signal
    channels: u32  # 1 + the position in `signalling`
    unused: u32


@struct
class Signalling:
    """Who has the channels of operations with a signal: a thread, by its peer."""

    number: u32
    unused: u32


@struct
class BlockNetwork:
    """What the threads of a block have started."""

    block: u64
    device: u64
    threads: Pointer[ThreadStarted]  # by peers, then by threads
    count: u32  # how many threads it has
    unused: u32
    started: Growable[StartedOperations]
    signalling: Growable[Signalling]
    latest: Array[u32, 17]  # by peers: the last operation
    missing: Array[u32, 17]  # by peers: whether some are not known to the thread that asks


@struct
class Network:
    """All operations of a node."""

    pending: Growable[NetworkOperation]
    blocks: Growable[BlockNetwork]
    started: u32  # how many operations so far
    unused: u32
    known: VectorClock  # of a thread that starts an operation, with what fences order before that
    probe: Access
