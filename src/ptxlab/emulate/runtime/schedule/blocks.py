"""Starting and ending a block: its memory, its threads."""

from __future__ import annotations

from ptxlab.emulate.abi.barriers import KNOWN_PHASES, Barrier, Phase
from ptxlab.emulate.abi.state import Block, BlockRegisters, Thread, Worker
from ptxlab.emulate.abi.thread_parts import READY
from ptxlab.emulate.runtime.memory.memory import use_local
from ptxlab.emulate.runtime.memory.recording import choose_recorded, is_launch_recorded
from ptxlab.emulate.runtime.order.shadow import SCATTER
from ptxlab.emulate.runtime.order.synchronization import begin_order, end_order
from ptxlab.emulate.runtime.schedule.random import SPREAD, shuffle
from ptxlab.emulate.runtime.tensor_memory.allocation import end_tensor
from ptxlab.isa.undefined import leave_undefined
from ptxlab.native import Pointer, address_of, calloc, cast, fill_bytes, free, free_items, native, size_of, u8, u32, u64

BLOCK_SIZE = size_of(Block)
THREAD_SIZE = size_of(Thread)
BARRIER_SIZE = size_of(Barrier)
PHASE_SIZE = size_of(Phase)
REGISTERS_SIZE = size_of(BlockRegisters)


@native
def begin_block(worker: Pointer[Worker], number: u64) -> Pointer[Block]:
    """A block with all its threads at their first instruction; null if there is no memory for it."""
    count: u32 = worker.shape.block.x * worker.shape.block.y * worker.shape.block.z
    warps: u32 = (count + 31) // 32
    block = cast(Pointer[Block], calloc(1, BLOCK_SIZE))
    if cast(u64, block) == 0:
        return block
    block.count = count
    block.warps = warps
    block.live = count
    block.worker = worker
    block.memory.shared_size = u64(worker.shared.size)
    name_block(block, number)
    block.threads = cast(Pointer[Thread], calloc(u64(count), THREAD_SIZE))
    block.memory.shared = calloc(1, u64(worker.shared.size) + 256)
    block.memory.exchange = cast(Pointer[u32], calloc(u64(warps), 128 * u64(worker.code.exchange_words)))
    block.memory.frames = calloc(u64(count), u64(worker.code.frame_size))
    block.memory.locals = calloc(u64(count), u64(worker.code.local_size))
    if (
        cast(u64, block.threads) == 0
        or cast(u64, block.memory.shared) == 0
        or cast(u64, block.memory.exchange) == 0
        or cast(u64, block.memory.frames) == 0
        or cast(u64, block.memory.locals) == 0
    ):
        end_block(block)
        return cast(Pointer[Block], 0)
    lay_out_threads(block)
    leave_undefined(block.memory.shared, block.memory.shared_size)
    start_threads(block)
    return block


@native
def restart_block(block: Pointer[Block], number: u64) -> None:
    """Make a block that has ended another one: its memory is used again."""
    block.live = block.count
    drop_transfers(block)
    block.bulk.started = 0
    block.network = 0
    block.order.phase = 0
    name_block(block, number)
    end_tensor(block)
    end_order(block)
    leave_undefined(block.memory.shared, block.memory.shared_size)
    if block.barriers.used != 0:
        fill_bytes(cast(Pointer[u8], block.barriers.numbered), 0, 16 * BARRIER_SIZE)
        block.barriers.used = 0
    if block.barriers.uses_mbarriers != 0:
        fill_bytes(cast(Pointer[u8], block.barriers.phases), 0, (KNOWN_PHASES + 1) * PHASE_SIZE)
        block.barriers.uses_mbarriers = 0
    if block.registers.is_used != 0:
        fill_bytes(cast(Pointer[u8], address_of(block.registers)), 0, REGISTERS_SIZE)
    start_threads(block)


@native
def drop_transfers(block: Pointer[Block]) -> None:
    """Forget bulk copies that are not done."""
    for index in range(block.bulk.pending.count):
        free(block.bulk.pending.items[index].data)
    block.bulk.pending.count = 0


@native
def name_block(block: Pointer[Block], number: u64) -> None:
    """Say which block of the grid it is, and with which random numbers it starts."""
    worker = block.worker
    block.number = worker.shape.first_block + number
    block.index.x = u32(number % u64(worker.shape.grid.x))
    block.index.y = u32(number // u64(worker.shape.grid.x) % u64(worker.shape.grid.y))
    block.index.z = u32(number // u64(worker.shape.grid.x) // u64(worker.shape.grid.y))
    mixed: u64 = u64(worker.seed * SCATTER) + u64(block.number * SPREAD) + 1
    mixed = u64((mixed ^ (mixed >> 30)) * SPREAD)
    block.schedule.random = mixed ^ (mixed >> 27) | 1
    block.schedule.asleep = 0
    if worker.seed != 0:
        shuffle(block, block.schedule.warp_order, block.warps)
        shuffle(block, block.schedule.lane_order, 32)


@native
def lay_out_threads(block: Pointer[Block]) -> None:
    """Give every thread of new memory its index in the block and its own memory: these stay for all blocks to come."""
    worker = block.worker
    x: u32 = 0
    y: u32 = 0
    z: u32 = 0
    for index in range(block.count):
        thread = block.threads + index
        thread.block = block
        thread.worker = worker
        thread.hints = worker.memory.hints
        thread.counters = worker.code.counters
        thread.memory.exchange = block.memory.exchange + (index // 32 * 32 * worker.code.exchange_words + index % 32)
        thread.memory.shared = block.memory.shared
        thread.memory.shared_size = block.memory.shared_size
        thread.memory.local = block.memory.locals + u64(index) * u64(worker.code.local_size)
        thread.memory.local_size = u64(worker.code.local_size)
        thread.number = index
        thread.lane = index % 32
        thread.index.x = x
        thread.index.y = y
        thread.index.z = z
        x += 1
        if x == worker.shape.block.x:
            x = 0
            y += 1
            if y == worker.shape.block.y:
                y = 0
                z += 1


@native
def start_threads(block: Pointer[Block]) -> None:
    """Put every thread at the start of the kernel."""
    worker = block.worker
    if worker.checks != 0 and block.is_quick == 0:  # otherwise nothing has changed
        begin_order(block)
    if is_launch_recorded(worker):
        choose_recorded(block)
    if block.is_quick != 0:
        return
    if block.is_fresh != 0:
        for index in range(block.count):
            block.threads[index].status = READY
            block.threads[index].resume = 0
        return
    block.is_fresh = u32(cast(u64, worker.code.lanes) != 0 and worker.code.entry_local == 0)
    frame = block.memory.frames
    for index in range(block.count):
        thread = block.threads + index
        thread.status = READY
        thread.resume = 0
        thread.code = worker.code.entry
        thread.waiting.instruction = 0
        thread.fuel = worker.turns.quantum
        thread.memory.frame = frame
        frame = frame + worker.code.frame_size
        thread.memory.frame_limit = frame
        thread.memory.local_base = 0
        thread.memory.local_top = u64(worker.code.entry_local)
        thread.memory.local_used = 0  # nothing is to depend on which block was here before
        use_local(thread, thread.memory.local_top)
        thread.call_depth = 0
        thread.copies.group = 0
        thread.wgmma.group = 0
        thread.wgmma.mark = 0
        thread.wgmma.closed_mark = 0
        thread.rank = 0
        thread.copies.bulk_group = 0
        thread.arrival.phase = 0
        thread.copies.pending.count = 0
    if block.is_fresh != 0 and worker.code.never_waits != 0:
        block.is_quick = u32(block.count % worker.code.group == 0)


@native
def move_block(block: Pointer[Block], worker: Pointer[Worker]) -> None:
    """Have another worker run a block."""
    block.worker = worker
    for index in range(block.count):
        thread = block.threads + index
        thread.worker = worker
        thread.hints = worker.memory.hints
        thread.counters = worker.code.counters


@native
def end_block(block: Pointer[Block]) -> None:
    """Give the memory of a block back."""
    end_tensor(block)
    end_order(block)
    if cast(u64, block.threads) != 0:
        for index in range(block.count):
            free_items(block.threads[index].copies.pending)
    drop_transfers(block)
    free_items(block.bulk.pending)
    free(cast(Pointer[u8], block.threads))
    free(block.memory.shared)
    free(cast(Pointer[u8], block.memory.exchange))
    free(block.memory.frames)
    free(block.memory.locals)
    free(cast(Pointer[u8], block))
