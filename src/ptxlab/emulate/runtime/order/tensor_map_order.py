"""Tensor maps that a kernel changes: copies read them through a proxy of their own (PTX ISA 8.3, 9.7.13.4).

What threads write to a map reaches copies in two steps. A release, by the writer or by a thread after it, doubles the
clock of its thread, as a proxy fence does: as entries past a release. An acquire of the map, by a thread of the block
that copies, is good for what was released before it; it is remembered with a digest of the writes it found there.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import GENERIC_SPACE, GLOBAL_SPACE, LOAD, SHARED_WINDOW, STORE, Hint
from ptxlab.emulate.abi.clocks import Access, History, MapAcquire, MapUse, Page
from ptxlab.emulate.abi.state import Thread
from ptxlab.emulate.runtime.memory.memory import find_memory
from ptxlab.emulate.runtime.order.happens_before import are_covered, is_known
from ptxlab.emulate.runtime.order.map_uses import is_over
from ptxlab.emulate.runtime.order.proxies import fence_all
from ptxlab.emulate.runtime.order.races import note_global
from ptxlab.emulate.runtime.order.release_acquire import CLUSTER_SCOPE, FAR, GPU_SCOPE, NEAR, distance_of
from ptxlab.emulate.runtime.order.reports import report_race, report_stale_map, report_unchanged_map
from ptxlab.emulate.runtime.order.shadow import (
    ANY_PROXY,
    ASYNC,
    COPY,
    PAGE_SHIFT,
    SCATTER,
    SIZE_SHIFT,
    WARP_SHIFT,
    WIDE,
    cell_in,
    slot_of,
)
from ptxlab.emulate.runtime.order.vector_clocks import (
    BLOCK_ONLY,
    BULK_READS,
    CLUSTER_ONLY,
    MAP_RELEASE,
    epoch_of_everyone,
)
from ptxlab.isa.units.tensor_map import ALIGNMENT, BYTES
from ptxlab.native import Pointer, address_of, append, array, boolean, cast, native, u32, u64

WORD = 4

# What is missing between a write and a copy.
COMPLETE = 0
NO_RELEASE = 1
NO_ACQUIRE = 2
NARROW_RELEASE = 3  # the scope of the release does not include the block that copies


@native
def release_maps(thread: Pointer[Thread], scope: u32) -> None:
    """A thread releases all that it knows was written, for acquires of tensor maps by threads in the scope."""
    if thread.worker.checks != 0:
        narrow: u64 = 0
        if scope < GPU_SCOPE:
            narrow = CLUSTER_ONLY if scope == CLUSTER_SCOPE else u64(BLOCK_ONLY)
        fence_all(thread, MAP_RELEASE, narrow)
        thread.order.epoch += 1
        thread.block.order.releases_maps = 1


@native
def acquire_map(thread: Pointer[Thread], address: u64, scope: u32, instruction: u32) -> None:
    """A thread acquires a tensor map in global memory, as threads in the scope have released it.

    Nothing is accessed: an H200 takes any address, and idle warps of CUTLASS's kernels pass a null pointer.
    """
    if address < SHARED_WINDOW and (thread.worker.checks == 0 or digest_of(thread.worker.history, address) == 0):
        return
    nowhere = cast(Pointer[Hint], 0)
    space: u32 = GENERIC_SPACE if address < SHARED_WINDOW else u32(GLOBAL_SPACE)
    bytes = find_memory(thread, address, BYTES, ALIGNMENT, space, LOAD, instruction, nowhere)
    if cast(u64, bytes) == 0 or thread.worker.checks == 0:
        return
    digest: u64 = digest_of(thread.worker.history, address)
    if digest == 0 or cast(u64, find_unreleased(thread, address)) != 0 or not is_in_scope(thread, address, scope):
        return
    content: u64 = content_of(cast(Pointer[u64], bytes))
    note_content(thread, address, digest, content, instruction)
    acquires = thread.block.order.acquires
    for index in range(acquires.count):
        found = acquires.items + index
        if found.address == address and found.thread == thread.number:
            found.digest = digest
            found.epoch = thread.order.epoch
            return
    acquired: Pointer[MapAcquire] = append(acquires)
    if cast(u64, acquired) != 0:
        acquired.address = address
        acquired.thread = thread.number
        acquired.digest = digest
        acquired.latest = digest
        acquired.content = content
        acquired.epoch = thread.order.epoch


@native
def content_of(words: Pointer[u64]) -> u64:
    """A number for the bytes of a map."""
    content: u64 = 0
    for number in range(BYTES // 8):
        content = u64((content ^ words[number]) * SCATTER)
        content ^= content >> 29
    return content


@native
def note_content(thread: Pointer[Thread], address: u64, digest: u64, content: u64, instruction: u32) -> None:
    """Report a map that this block has written again with the bytes that one of its threads has acquired before."""
    is_again: boolean = False
    acquires = thread.block.order.acquires
    for index in range(acquires.count):
        found = acquires.items + index
        if found.address == address:
            if found.latest != digest and found.content == content:
                is_again = True
            found.latest = digest
            found.content = content
    if is_again:
        written = last_write(thread.worker.history, address)
        if written.block == u32(thread.block.number):
            report_unchanged_map(thread, written, address, instruction)


@native
def note_map(thread: Pointer[Thread], address: u64, instruction: u32) -> None:
    """Check that a copy sees a tensor map in global memory as it is now."""
    if thread.worker.checks == 0 or address >= SHARED_WINDOW:
        return
    history = thread.worker.history
    digest: u64 = digest_of(history, address)
    note_global(thread, address, BYTES, LOAD | 2 << SIZE_SHIFT, instruction, 0)
    if digest == 0 or is_racing(thread, address) or is_acquired(thread, address, digest):
        return
    missing: u32 = NO_RELEASE
    written = find_unreleased(thread, address)
    if cast(u64, written) == 0:
        missing = NO_ACQUIRE
        written = last_write(history, address)
    elif are_covered(thread, written, MAP_RELEASE | CLUSTER_ONLY) or are_covered(
        thread, written, MAP_RELEASE | BLOCK_ONLY
    ):
        missing = NARROW_RELEASE
    report_stale_map(thread, written, address, missing, instruction)


@native
def is_acquired(thread: Pointer[Thread], address: u64, digest: u64) -> boolean:
    """Whether an acquire by a thread of this block, of the map as it is now, happened before."""
    block = thread.block
    event = array(Access, 1)
    for index in range(block.order.acquires.count):
        found = block.order.acquires.items + index
        if found.address == address and found.digest == digest:
            event.epoch = found.epoch
            event.block = u32(block.number)
            event.lanes = u32(1) << (found.thread % 32)
            event.flags = found.thread // 32 << WARP_SHIFT
            if found.thread == thread.number or is_known(thread, event):
                return True
    return False


# Copies that may still read a map when it is changed.


@native
def note_use(thread: Pointer[Thread], address: u64, channel: u32, number: u32, instruction: u32) -> None:
    """Remember a copy by a map until it has read it: its group is waited for, or its mbarrier (`channel`) completes."""
    if thread.worker.checks == 0 or address >= SHARED_WINDOW:
        return
    uses = thread.block.order.uses
    use = cast(Pointer[MapUse], 0)
    for index in range(uses.count):
        found = uses.items + index
        if found.address == address and found.thread == thread.number and found.channel == channel:
            use = found
    if cast(u64, use) == 0:
        use = append(uses)
    if cast(u64, use) != 0:
        use.address = address
        use.thread = thread.number
        use.instruction = instruction
        use.group = thread.copies.bulk_group + 1
        use.channel = channel
        use.number = number


@native
def change_map(thread: Pointer[Thread], address: u64, is_warp: u32, instruction: u32) -> None:
    """Check that no copy reads a map that a thread, or (once for all its lanes) a warp, is about to change."""
    if thread.worker.checks == 0 or address >= SHARED_WINDOW or (is_warp != 0 and thread.lane != 0):
        return
    uses = thread.block.order.uses
    for index in range(uses.count):
        use = uses.items + index
        if use.address == address and not is_over(thread, use, is_warp):
            access = array(Access, 1)
            access.block = u32(thread.block.number)
            access.instruction = use.instruction
            access.flags = LOAD | COPY | ASYNC | WIDE | use.thread << WARP_SHIFT
            access.lanes = use.channel if use.channel != 0 else BULK_READS + use.thread
            access.epoch = use.number if use.channel != 0 else use.group
            report_race(thread, access, address, BYTES, STORE | 2 << SIZE_SHIFT, instruction, GLOBAL_SPACE)
            return


# The last writes to the words of a map.


@native
def write_at(history: Pointer[History], address: u64) -> Pointer[Access]:
    """The last write to a word of global memory; null if there was none."""
    nothing = cast(Pointer[Access], 0)
    if history.pages.capacity == 0:
        return nothing
    number: u64 = (address >> PAGE_SHIFT) + 1
    page: Pointer[Page] = history.pages.slots + slot_of(address_of(history.pages), number)
    if page.number != number:
        return nothing
    cell = cell_in(page, address)
    return cell if cell.epoch != 0 else nothing


@native
def digest_of(history: Pointer[History], address: u64) -> u64:
    """A number for the last writes to all words of a map: others have another one; 0: no thread wrote there."""
    digest: u64 = 0
    for word in range(BYTES // WORD):
        written = write_at(history, address + u64(word) * WORD)
        if cast(u64, written) != 0:
            who: u64 = u64(written.block) << 32 | u64(written.epoch)
            what: u64 = u64(written.link) << 32 | u64(written.instruction)
            digest = u64((digest ^ who) * SCATTER)
            digest = u64((digest ^ what ^ u64(written.lanes) << 16 ^ u64(word)) * SCATTER) | 1
    return digest


@native
def last_write(history: Pointer[History], address: u64) -> Pointer[Access]:
    """The write to a word of a map that came last in the program."""
    found = cast(Pointer[Access], 0)
    for word in range(BYTES // WORD):
        written = write_at(history, address + u64(word) * WORD)
        if cast(u64, written) != 0 and (cast(u64, found) == 0 or written.epoch > found.epoch):
            found = written
    return found


@native
def find_unreleased(thread: Pointer[Thread], address: u64) -> Pointer[Access]:
    """A write to a map that was not released before what a thread does now; null if all were."""
    for word in range(BYTES // WORD):
        written = write_at(thread.worker.history, address + u64(word) * WORD)
        if cast(u64, written) != 0 and not is_released(thread, written):
            return written
    return cast(Pointer[Access], 0)


@native
def is_released(thread: Pointer[Thread], written: Pointer[Access]) -> boolean:
    """Whether a write was released before what a thread does now; of copies nothing is known."""
    if written.flags & (COPY | ANY_PROXY) != 0:
        return True
    if not is_known(thread, written):
        return False
    if (
        epoch_of_everyone(address_of(thread.order.known)) != 0
        or epoch_of_everyone(address_of(thread.block.order.known)) != 0
    ):
        return True
    if are_covered(thread, written, MAP_RELEASE):
        return True
    reach: u32 = NEAR if has_released(thread) else distance_of(thread, written.block)
    if reach != FAR and are_covered(thread, written, MAP_RELEASE | CLUSTER_ONLY):
        return True
    return reach == NEAR and are_covered(thread, written, MAP_RELEASE | BLOCK_ONLY)


@native
def has_released(thread: Pointer[Thread]) -> boolean:
    """Whether a block of the cluster has released maps itself: then it is not known whose release a narrow one is."""
    cluster = thread.block.cluster
    for rank in range(cluster.count):  # noqa: SIM110 - native functions have no `any`
        if cluster.blocks[rank].order.releases_maps != 0:
            return True
    return False


@native
def is_in_scope(thread: Pointer[Thread], address: u64, scope: u32) -> boolean:
    """Whether a scope includes all threads that wrote a map last, or a release by a block of the cluster is between."""
    if scope >= GPU_SCOPE or has_released(thread):
        return True
    for word in range(BYTES // WORD):
        written = write_at(thread.worker.history, address + u64(word) * WORD)
        if cast(u64, written) != 0 and distance_of(thread, written.block) >= scope:
            return False
    return True


@native
def is_racing(thread: Pointer[Thread], address: u64) -> boolean:
    """Whether a write to a map did not happen before what a thread does now: then that is reported as a race."""
    for word in range(BYTES // WORD):
        written = write_at(thread.worker.history, address + u64(word) * WORD)
        if cast(u64, written) != 0 and not is_known(thread, written):
            return True
    return False


CALLED = (release_maps, acquire_map, change_map)
