"""Beginning and ending a block: its memory, its threads."""

from __future__ import annotations

from ptxlab.emulate.abi.state import KNOWN_PHASES, READY, Barrier, Block, Phase, Thread, Worker
from ptxlab.emulate.runtime.order.shadow import SCATTER
from ptxlab.emulate.runtime.order.synchronization import begin_order, end_order
from ptxlab.emulate.runtime.schedule.random import SPREAD, shuffle
from ptxlab.emulate.runtime.tensor_memory.allocation import end_tensor
from ptxlab.native import Pointer, calloc, cast, fill_bytes, free, free_items, native, size_of, u8, u32, u64

BLOCK_SIZE = size_of(Block)
THREAD_SIZE = size_of(Thread)
BARRIER_SIZE = size_of(Barrier)
PHASE_SIZE = size_of(Phase)


@native
def begin_block(worker: Pointer[Worker], number: u64) -> Pointer[Block]:
    """A block with all its threads at their beginning; null if there is no memory for it."""
    count: u32 = worker.block_x * worker.block_y * worker.block_z
    warps: u32 = (count + 31) // 32
    block = cast(Pointer[Block], calloc(1, BLOCK_SIZE))
    if cast(u64, block) == 0:
        return block
    block.count = count
    block.warps = warps
    block.live = count
    block.worker = worker
    block.shared_size = u64(worker.shared_size)
    name_block(block, number)
    block.threads = cast(Pointer[Thread], calloc(u64(count), THREAD_SIZE))
    block.shared = calloc(1, u64(worker.shared_size) + 256)
    block.mail = cast(Pointer[u32], calloc(u64(warps), 128 * u64(worker.mail_words)))
    block.frames = calloc(u64(count), u64(worker.frame_size))
    block.locals = calloc(u64(count), u64(worker.local_size))
    if (
        cast(u64, block.threads) == 0
        or cast(u64, block.shared) == 0
        or cast(u64, block.mail) == 0
        or cast(u64, block.frames) == 0
        or cast(u64, block.locals) == 0
    ):
        end_block(block)
        return cast(Pointer[Block], 0)
    place_threads(block)
    start_threads(block)
    return block


@native
def restart_block(block: Pointer[Block], number: u64) -> None:
    """Make a block that has ended another one: its memory is used again."""
    block.live = block.count
    drop_transfers(block)
    block.transfers_begun = 0
    block.met = 0
    name_block(block, number)
    end_tensor(block)
    end_order(block)
    fill_bytes(block.shared, 0, block.shared_size)
    if block.barriers_used != 0:
        fill_bytes(cast(Pointer[u8], block.barriers), 0, 16 * BARRIER_SIZE)
        block.barriers_used = 0
    if block.uses_mbarriers != 0:
        fill_bytes(cast(Pointer[u8], block.phases), 0, (KNOWN_PHASES + 1) * PHASE_SIZE)
        block.uses_mbarriers = 0
    start_threads(block)


@native
def drop_transfers(block: Pointer[Block]) -> None:
    """Forget bulk copies that are not done."""
    for index in range(block.transfers.count):
        free(block.transfers.items[index].data)
    block.transfers.count = 0


@native
def name_block(block: Pointer[Block], number: u64) -> None:
    """Say which block of the grid it is, and with which random numbers it begins."""
    worker = block.worker
    block.number = number
    block.x = u32(number % u64(worker.grid_x))
    block.y = u32(number // u64(worker.grid_x) % u64(worker.grid_y))
    block.z = u32(number // u64(worker.grid_x) // u64(worker.grid_y))
    mixed: u64 = u64(worker.seed * SCATTER) + u64(number * SPREAD) + 1
    mixed = u64((mixed ^ (mixed >> 30)) * SPREAD)
    block.random = mixed ^ (mixed >> 27) | 1
    block.asleep = 0
    if worker.seed != 0:
        shuffle(block, block.warp_order, block.warps)
        shuffle(block, block.lane_order, 32)


@native
def place_threads(block: Pointer[Block]) -> None:
    """Give every thread of new memory its place in the block and its own memory: these stay for all blocks to come."""
    worker = block.worker
    x: u32 = 0
    y: u32 = 0
    z: u32 = 0
    for index in range(block.count):
        thread = block.threads + index
        thread.block = block
        thread.worker = worker
        thread.hints = worker.hints
        thread.counters = worker.counters
        thread.mail = block.mail + (index // 32 * 32 * worker.mail_words + index % 32)
        thread.shared = block.shared
        thread.shared_size = block.shared_size
        thread.local = block.locals + u64(index) * u64(worker.local_size)
        thread.local_size = u64(worker.local_size)
        thread.number = index
        thread.lane = index % 32
        thread.x = x
        thread.y = y
        thread.z = z
        x += 1
        if x == worker.block_x:
            x = 0
            y += 1
            if y == worker.block_y:
                y = 0
                z += 1


@native
def start_threads(block: Pointer[Block]) -> None:
    """Put every thread at the beginning of the kernel."""
    worker = block.worker
    if worker.checks != 0:
        begin_order(block)
    frame = block.frames
    for index in range(block.count):
        thread = block.threads + index
        thread.status = READY
        thread.resume = 0
        thread.code = worker.entry
        thread.instruction = 0
        thread.fuel = worker.quantum
        thread.frame = frame
        frame = frame + worker.frame_size
        thread.frame_limit = frame
        if thread.local_used != 0:
            fill_bytes(thread.local, 0, thread.local_used)  # nothing is to depend on which block was here before
        thread.local_base = 0
        thread.local_top = u64(worker.entry_local)
        thread.local_used = thread.local_top
        thread.call_depth = 0
        thread.copy_group = 0
        thread.product_group = 0
        thread.product_mark = 0
        thread.closed_mark = 0
        thread.rank = 0
        thread.bulk_group = 0
        thread.arrival = 0
        thread.copies.count = 0


@native
def move_block(block: Pointer[Block], worker: Pointer[Worker]) -> None:
    """Have another worker run a block."""
    block.worker = worker
    for index in range(block.count):
        thread = block.threads + index
        thread.worker = worker
        thread.hints = worker.hints
        thread.counters = worker.counters


@native
def end_block(block: Pointer[Block]) -> None:
    """Give the memory of a block back."""
    end_tensor(block)
    end_order(block)
    if cast(u64, block.threads) != 0:
        for index in range(block.count):
            free_items(block.threads[index].copies)
    drop_transfers(block)
    free_items(block.transfers)
    free(cast(Pointer[u8], block.threads))
    free(block.shared)
    free(cast(Pointer[u8], block.mail))
    free(block.frames)
    free(block.locals)
    free(cast(Pointer[u8], block))
