"""Several GPUs: on which one a block runs, and what the grids before its own did.

Grids that run together have blocks with different numbers: each has a range of them, of as many steps as it needs.
A grid that starts after another is complete, by the order of streams and events, knows all that the other did: by a
clock entry of a block that no grid has, and by what the threads of the other knew when they exited. A grid that may
overlap with the one before it runs after it here, too, but knows that only once it has waited: `griddepcontrol.wait`.
"""

from __future__ import annotations

from ptxlab.emulate.abi.clocks import VectorClock
from ptxlab.emulate.abi.state import Block, Thread, Worker
from ptxlab.emulate.runtime.order.vector_clocks import WHOLE_GRID, advance, epoch_of, join, key_of
from ptxlab.native import Pointer, address_of, boolean, cast, native, u32, u64, unlikely

STEP_SHIFT = 10  # numbers of blocks are given to grids in steps of so many
MOST_STEPS = 1 << (32 - STEP_SHIFT)  # of all grids that run together
MOST_GRIDS = 4096
DEVICE_SHIFT = 48  # in the history: of what each GPU has for itself at the same address
OWN_MEMORY = 0x7000_0000_0000  # below it are variables of modules, and what grids synchronize through


@native(inline=True)
def is_in_team(worker: Pointer[Worker]) -> boolean:
    """Whether other grids run at the same time."""
    return cast(u64, worker.together.team) != 0


@native(inline=True)
def is_abroad(thread: Pointer[Thread], number: u32) -> boolean:
    """Whether a block runs on another GPU than a thread."""
    worker = thread.worker
    if not unlikely(is_in_team(worker)):
        return False
    team = worker.together.team
    return u64(team.devices[team.grids[number >> STEP_SHIFT]]) != worker.shape.device


@native(inline=True)
def launch_of(thread: Pointer[Thread], number: u32) -> u32:
    """Which launch a block is of: the same for all that one line of the host launches of one kernel."""
    if not unlikely(is_in_team(thread.worker)):
        return 0
    team = thread.worker.together.team
    return team.launches[team.grids[number >> STEP_SHIFT]]


@native(inline=True)
def in_history(thread: Pointer[Thread], address: u64) -> u64:
    """The address by which the history knows memory, some of which each GPU has for itself."""
    if unlikely(is_in_team(thread.worker)) and address < OWN_MEMORY:
        return address | (thread.worker.shape.device + 1) << DEVICE_SHIFT
    return address


@native(inline=True)
def grid_key(grid: u32) -> u64:
    """The key of all that a grid did."""
    return key_of(WHOLE_GRID | u64(grid), 0)


@native(inline=True)
def comes_after_grid(thread: Pointer[Thread], number: u32) -> boolean:
    """Whether the whole grid of a block was complete before what a thread does now."""
    if not unlikely(is_in_team(thread.worker)):
        return False
    grids = thread.worker.together.team.grids
    grid: u32 = grids[number >> STEP_SHIFT]
    if grid == grids[u32(thread.block.number) >> STEP_SHIFT]:
        return False
    return knows_grid(address_of(thread.order.known), grid) or knows_grid(address_of(thread.block.order.known), grid)


@native(inline=True)
def starts_after_grid(thread: Pointer[Thread], number: u32) -> boolean:
    """Whether the whole grid of a block was complete before that of a thread started."""
    if not unlikely(is_in_team(thread.worker)):
        return False
    return knows_grid(address_of(thread.worker.together.known), thread.worker.together.team.grids[number >> STEP_SHIFT])


@native
def knows_grid(known: Pointer[VectorClock], grid: u32) -> boolean:
    return epoch_of(known, grid_key(grid)) != 0


@native
def begin_in_team(block: Pointer[Block]) -> None:
    """The threads of a block know what the grids before theirs did and knew."""
    worker = block.worker
    known = address_of(worker.together.known)
    if worker.together.is_ordered == 0:
        worker.together.is_ordered = 1
        for index in range(worker.together.before_count):
            number: u32 = worker.together.before[index]
            before = worker.together.team.workers[number]
            if worker.together.overlaps != 0 and before.together.triggers != 0:
                join(known, address_of(before.together.known))
                if before.together.early_triggers == 0:
                    join(known, address_of(before.together.awaited))
                follow(address_of(worker.together.awaited), before, number)
            else:
                join(known, address_of(before.together.awaited))  # nor does a stream continue before that
                follow(known, before, number)
    join(address_of(block.order.known), known)


@native
def follow(known: Pointer[VectorClock], grid: Pointer[Worker], number: u32) -> None:
    """Add all that a grid did and knew."""
    join(known, address_of(grid.together.left))
    advance(known, grid_key(number), 1)


@native
def wait_in_team(thread: Pointer[Thread]) -> None:
    """What a thread does from here on comes after all that the grids did that its own overlaps with."""
    if is_in_team(thread.worker):
        join(address_of(thread.order.known), address_of(thread.worker.together.awaited))


@native
def trigger_in_team(thread: Pointer[Thread]) -> None:
    """A grid lets the next one start; if it has not waited for the grids before, these may be running still."""
    if not is_in_team(thread.worker):
        return
    together = address_of(thread.worker.together)
    together.triggers += 1
    for index in range(together.before_count):
        number: u32 = together.before[index]
        if knows_grid(address_of(thread.order.known), number):
            continue
        if not knows_grid(address_of(thread.block.order.known), number):
            together.early_triggers += 1
            return


@native
def end_in_team(block: Pointer[Block]) -> None:
    """All threads of a block have exited: the grids after theirs know what they knew, and have read."""
    if block.worker.checks == 0 or not is_in_team(block.worker):
        return
    known = address_of(block.worker.together.left)
    join(known, address_of(block.order.known))
    for index in range(block.count):
        order = address_of(block.threads[index].order)
        join(known, address_of(order.known))
        join(known, address_of(order.pending.block))
        join(known, address_of(order.pending.cluster))
        join(known, address_of(order.pending.gpu))
        join(known, address_of(order.pending.system))
