"""The parts of a worker that name no block or thread, by subject; `state.Worker` holds them."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import Allocation, Hint
from ptxlab.emulate.abi.multicast import MulticastObject
from ptxlab.emulate.abi.textures import TextureObject
from ptxlab.emulate.abi.thread_parts import Index
from ptxlab.native import Pointer, struct, u8, u32, u64


@struct
class LaunchShape:
    """The extents of a launch."""

    block: Index
    grid: Index
    cluster: Index
    cluster_size: u32  # how many blocks a cluster has
    is_explicit_cluster: u32  # whether the launch or the kernel named the size of a cluster
    first_block: u64  # the number of its first block: grids that run together have different ones
    device: u64  # the GPU that it runs on, of a node


@struct
class WorkerMemory:
    """The memory of a launch."""

    allocations: Pointer[Allocation]
    hints: Pointer[Hint]
    parameters: Pointer[u8]
    parameter_size: u64
    tracked: u64  # the parameters that point to memory which the kernel may write, a bit for each
    heap: u64  # where the memory of `malloc` starts that this launch allocates
    allocation_count: u32
    workspace_low: u32  # the address of the memory by which the blocks of a cooperative launch synchronize
    workspace_high: u32  # the upper half of that address
    texture_count: u32
    texture_variables: u32  # how many of them are what variables of the module refer to
    textures: Pointer[TextureObject]  # by the numbers in handles
    multicasts: Pointer[MulticastObject]
    multicast_count: u32


@struct
class SharedMemorySizes:
    """Bytes of shared memory of a block."""

    size: u32  # all bytes of it
    dynamic: u32  # that the launch asked for
    reserved: u32  # at its start, which the system keeps
    user: u32  # all but those reserved


@struct
class Turns:
    """How long threads and clusters run before others do."""

    quantum: u32  # backward jumps of a thread
    rounds: u32  # of all warps of a block without progress, until other blocks have a turn
    most_rounds: u32  # until other blocks have a turn even so


@struct
class ThreadEvent:
    """What a thread did in a run that the host directs; see `runtime.schedule.steps`."""

    thread: u32
    kind: u32
    address: u64
    size: u32
    extra: u32


@struct
class Directed:
    """A run in which the host chooses the thread that takes the next step; see `runtime.schedule.directed`."""

    choose: Pointer[u8]  # a function of the host that returns the number of a thread
    states: Pointer[u8]  # by thread: whether it is at a preemption point
    marks: Pointer[u64]  # by thread: a hash of the state it is in there
    events: Pointer[ThreadEvent]  # since the launch started; null unless the host directs it
    count: u32  # how many events there are
    capacity: u32  # for events
    at_points: u32  # threads that are at a preemption point
    has_ended: u32  # whether all threads have exited
    first_thread: u32  # of grids that run together: the number of the first thread of this one
    unused: u32
