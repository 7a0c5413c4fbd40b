"""Finding memory, calling functions, failing: what the code of a kernel asks the runtime for on its slow paths."""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import (
    CLUSTER_SPACE,
    FUNCTION_WINDOW,
    GENERIC_SPACE,
    KIND_SHIFT,
    LOAD,
    LOCAL_SPACE,
    LOCAL_WINDOW,
    OFFSET_MASK,
    PARAMETER_SPACE,
    PARAMETER_WINDOW,
    RANK_SHIFT,
    SHARED_SPACE,
    SHARED_WINDOW,
    SIZE_SHIFT,
    SPACE_SHIFT,
    Allocation,
    Hint,
)
from ptxlab.emulate.abi.code import Callee
from ptxlab.emulate.abi.faults import (
    BAD_CALL,
    EXITED_BLOCK,
    MISALIGNED,
    OUT_OF_BOUNDS,
    READ_ONLY,
    STACK_OVERFLOW,
    CallReason,
)
from ptxlab.emulate.abi.state import Block, Thread
from ptxlab.emulate.abi.thread_parts import FAILED
from ptxlab.isa.undefined import leave_undefined
from ptxlab.native import Pointer, address_of, boolean, call, cast, native, u8, u32, u64

WINDOW = 1 << 56


@native
def fail(thread: Pointer[Thread], kind: u32, instruction: u32, value: u64) -> None:
    """Note what went wrong, and the number that is wrong, unless something did before."""
    fault = thread.worker.fault
    if fault.kind == 0:
        fault.kind = kind
        fault.instruction = instruction
        fault.thread = thread.number
        fault.block = thread.block.number
        fault.value = value
    thread.status = FAILED


@native
def fail_with(thread: Pointer[Thread], kind: u32, instruction: u32, value: u64, limit: u64) -> None:
    """Note what went wrong with a number, and what it may be at most or must agree with."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.limit = limit
    fail(thread, kind, instruction, value)


@native
def fail_because(thread: Pointer[Thread], kind: u32, reason: u32, instruction: u32, value: u64) -> None:
    """Note what went wrong, where the kind of fault has several reasons."""
    if thread.worker.fault.kind == 0:
        thread.worker.fault.reason = reason
    fail(thread, kind, instruction, value)


@native
def fail_access(
    thread: Pointer[Thread], kind: u32, instruction: u32, address: u64, size: u32, space: u32, access: u32
) -> Pointer[u8]:
    """Note a bad access; the null pointer makes the code stop."""
    fault = thread.worker.fault
    if fault.kind == 0:
        fault.address = address
        fault.size = u64(size)
        fault.access = access
        fault.space = space
    fail(thread, kind, instruction, 0)
    return cast(Pointer[u8], 0)


@native
def note_exited(thread: Pointer[Thread], instruction: u32, address: u64, size: u32, access: u32) -> None:
    """Note the first access to shared memory of a block that has exited. It is still there, as it often is on a GPU."""
    late = thread.worker.late
    if late.kind == 0:
        late.kind = EXITED_BLOCK
        late.instruction = instruction
        late.thread = thread.number
        late.block = thread.block.number
        late.address = address
        late.size = u64(size)
        late.access = access


@native
def find_allocation(thread: Pointer[Thread], address: u64) -> Pointer[Allocation]:
    """The allocation that starts at or below an address, or null."""
    low: u32 = 0
    high: u32 = thread.worker.memory.allocation_count
    while low < high:
        middle: u32 = (low + high) // 2
        if thread.worker.memory.allocations[middle].base <= address:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return cast(Pointer[Allocation], 0)
    return thread.worker.memory.allocations + (low - 1)


@native
def find_access(thread: Pointer[Thread], address: u64, access: u64, hint: Pointer[Hint]) -> Pointer[u8]:
    """The host's memory for an access, as `find_memory`; see `packed_access`."""
    size: u32 = u32(access >> SIZE_SHIFT & 0xFFFF)
    space: u32 = u32(access >> SPACE_SHIFT & 0xFF)
    return find_memory(thread, address, size, size, space, u32(access >> KIND_SHIFT), u32(access & 0xFFFF_FFFF), hint)


@native
def find_memory(
    thread: Pointer[Thread],
    address: u64,
    size: u32,
    alignment: u32,
    space: u32,
    access: u32,
    instruction: u32,
    hint: Pointer[Hint],
) -> Pointer[u8]:
    """The host's memory for an address, and the hint for next time; null, with the fault noted, if there is none."""
    if address & (u64(alignment) - 1) != 0:
        if thread.worker.fault.kind == 0:
            thread.worker.fault.alignment = alignment
        return fail_access(thread, MISALIGNED, instruction, address, size, space, access)
    offset: u64 = address
    if space == GENERIC_SPACE and address >= SHARED_WINDOW:
        window: u64 = address // WINDOW * WINDOW
        offset = address - window
        if window == SHARED_WINDOW:
            space = CLUSTER_SPACE
        elif window == LOCAL_WINDOW:
            space = LOCAL_SPACE
        elif window == PARAMETER_WINDOW:
            space = PARAMETER_SPACE
        else:
            return fail_access(thread, OUT_OF_BOUNDS, instruction, address, size, space, access)
        if space == PARAMETER_SPACE and access != LOAD:
            return fail_access(thread, READ_ONLY, instruction, address, size, space, access)
    if space == CLUSTER_SPACE:
        if offset >> RANK_SHIFT != 0:
            return find_in_cluster(thread, offset, size, access, instruction)
        space = SHARED_SPACE
    if space == SHARED_SPACE:
        if thread.memory.shared_size >= u64(size) and offset <= thread.memory.shared_size - u64(size):
            return thread.memory.shared + offset
        return fail_access(thread, OUT_OF_BOUNDS, instruction, offset, size, space, access)
    if space == LOCAL_SPACE:
        if thread.memory.local_size >= u64(size) and offset <= thread.memory.local_size - u64(size):
            return thread.memory.local + offset
        return fail_access(thread, OUT_OF_BOUNDS, instruction, offset, size, space, access)
    if space == PARAMETER_SPACE:
        if thread.worker.memory.parameter_size >= u64(size) and offset <= thread.worker.memory.parameter_size - u64(
            size
        ):
            return thread.worker.memory.parameters + offset
        return fail_access(thread, OUT_OF_BOUNDS, instruction, offset, size, space, access)
    found = find_allocation(thread, address)
    if found == cast(Pointer[Allocation], 0):
        return fail_access(thread, OUT_OF_BOUNDS, instruction, address, size, space, access)
    inside: u64 = address - found.base
    if found.size < u64(size) or inside > found.size - u64(size):
        return fail_access(thread, OUT_OF_BOUNDS, instruction, address, size, space, access)
    if access != LOAD and found.writable == 0:
        return fail_access(thread, READ_ONLY, instruction, address, size, space, access)
    if hint != cast(Pointer[Hint], 0):
        hint.base = found.base
        hint.count = found.size // u64(size)
        hint.data = found.data
    return found.data + inside


@native
def find_in_cluster(thread: Pointer[Thread], address: u64, size: u32, access: u32, instruction: u32) -> Pointer[u8]:
    """The host's memory for an address that names a block of the cluster."""
    cluster = thread.block.cluster
    rank: u64 = (address >> RANK_SHIFT) - 1
    offset: u64 = address & OFFSET_MASK
    if rank >= u64(cluster.count):
        return fail_access(thread, OUT_OF_BOUNDS, instruction, address, size, CLUSTER_SPACE, access)
    block = cluster.blocks[rank]
    if block.live == 0:
        note_exited(thread, instruction, address, size, access)
    if block.memory.shared_size < u64(size) or offset > block.memory.shared_size - u64(size):
        return fail_access(thread, OUT_OF_BOUNDS, instruction, address, size, CLUSTER_SPACE, access)
    return block.memory.shared + offset


@native
def owner_of(thread: Pointer[Thread], address: u64) -> Pointer[Block]:
    """The block of the cluster whose shared memory contains an address, which has been found to be there."""
    if address >> RANK_SHIFT == 0:
        return thread.block
    return thread.block.cluster.blocks[(address >> RANK_SHIFT) - 1]


@native(inline=True)
def in_block(address: u64, rank: u32) -> u64:
    """The address that names the same offset in shared memory of the block of a rank."""
    return address & OFFSET_MASK | (u64(rank) + 1) << RANK_SHIFT


@native(inline=True)
def rank_in(thread: Pointer[Thread], address: u64) -> u32:
    """The rank of the block that an address in shared memory of the cluster names."""
    named: u64 = address >> RANK_SHIFT
    return thread.block.rank if named == 0 else u32(named) - 1


@native
def without_own_rank(thread: Pointer[Thread], address: u64) -> u64:
    """An address in shared memory, as an offset if it names the thread's own block."""
    if address >> RANK_SHIFT == u64(thread.block.rank) + 1:
        return address & OFFSET_MASK
    return address


@native
def find_callee(thread: Pointer[Thread], address: u64, signature: u32, instruction: u32) -> Pointer[Callee]:
    """The function of this signature at a generic address; null, with the fault noted, if there is none."""
    number: u64 = (address - FUNCTION_WINDOW) // 16
    if (
        address < FUNCTION_WINDOW
        or address % 16 != 0
        or number >= u64(thread.worker.code.callee_count)
        or cast(u64, thread.worker.code.callees[number].code) == 0
    ):
        thread.worker.fault.address = address
        fail_because(thread, BAD_CALL, CallReason.NOT_A_FUNCTION, instruction, 0)
        return cast(Pointer[Callee], 0)
    if thread.worker.code.callees[number].signature != signature:
        thread.worker.fault.address = address
        fail_because(thread, BAD_CALL, CallReason.OTHER_SIGNATURE, instruction, number)
        return cast(Pointer[Callee], 0)
    return thread.worker.code.callees + number


@native
def enter(thread: Pointer[Thread], own_size: u64, callee: Pointer[Callee], resume: u32, instruction: u32) -> boolean:
    """Reserve both stacks for a callee, note where the caller continues, and turn to the callee."""
    frame = thread.memory.frame + own_size
    base: u64 = thread.memory.local_top
    if (
        cast(u64, frame) + u64(callee.frame_size) > cast(u64, thread.memory.frame_limit)
        or base + u64(callee.local_size) > thread.memory.local_size
    ):
        fail(thread, STACK_OVERFLOW, instruction, u64(thread.call_depth))
        return False
    thread.waiting.instruction = instruction
    header = cast(Pointer[u64], frame)
    header[0] = cast(u64, thread.code)
    header[1] = cast(u64, thread.memory.frame)
    header[2] = thread.memory.local_base
    header[3] = u64(resume)
    thread.code = callee.code
    thread.memory.frame = frame
    thread.memory.local_base = base
    thread.memory.local_top = base + u64(callee.local_size)
    use_local(thread, thread.memory.local_top)
    thread.resume = 0
    thread.call_depth += 1
    return True


@native
def use_local(thread: Pointer[Thread], top: u64) -> None:
    """A function reaches so far in local memory: what none has used before holds nothing that was written."""
    used: u64 = thread.memory.local_used
    if top > used:
        leave_undefined(thread.memory.local + used, top - used)
        thread.memory.local_used = top


@native
def leave(thread: Pointer[Thread]) -> None:
    """Turn back to the caller."""
    header = cast(Pointer[u64], thread.memory.frame)
    thread.memory.local_top = thread.memory.local_base
    thread.code = cast(Pointer[u8], header[0])
    thread.memory.frame = cast(Pointer[u8], header[1])
    thread.memory.local_base = header[2]
    thread.resume = u32(header[3])
    thread.call_depth -= 1


@native
def grow_stack(thread: Pointer[Thread], size: u64, alignment: u64, instruction: u32) -> u64:
    """Bytes of local memory for `alloca`: where they start."""
    start: u64 = (thread.memory.local_top + alignment - 1) // alignment * alignment
    if size > thread.memory.local_size or start + size > thread.memory.local_size:
        fail(thread, STACK_OVERFLOW, instruction, u64(thread.call_depth))
        return 0
    thread.memory.local_top = (start + size + 15) // 16 * 16
    use_local(thread, start + size)
    return start


@native
def restore_stack(thread: Pointer[Thread], top: u64) -> None:
    """Give back what was allocated since `stacksave`."""
    if top >= thread.memory.local_base and top <= thread.memory.local_top:
        thread.memory.local_top = top


@native
def read_clock(thread: Pointer[Thread], ahead: u64) -> u64:
    """The instructions that the worker's threads have executed, and time that was leapt over: the same in every run.

    The whole basic block is counted when it starts; `ahead` of its instructions are still to come.
    """
    worker = thread.worker
    code = address_of(worker.code)
    time: u64 = worker.leapt - ahead
    for index in range(code.counter_count):
        time += code.counters[index] * u64(code.steps[index])
    worker.clock = max(worker.clock + 1, time)
    thread.block.schedule.times += 1
    return worker.clock


@native
def call_host(thread: Pointer[Thread], service: u32, instruction: u32, a: u64, b: u64, c: u64, d: u64, e: u64) -> u64:
    """Ask the host for what machine code cannot do: print, allocate, fail an assertion."""
    thread.waiting.instruction = instruction
    return call(u64, thread.worker.host, thread, service, a, b, c, d, e)


CALLED = (
    fail,
    find_access,
    owner_of,
    without_own_rank,
    find_callee,
    enter,
    leave,
    grow_stack,
    restore_stack,
    read_clock,
    call_host,
)
