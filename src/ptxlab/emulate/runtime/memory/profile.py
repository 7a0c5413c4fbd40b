"""What accesses cost the memory system: lanes of a warp that access memory together form a request.

Lanes are taken to run together whenever they can: those form a request that are at the same instruction, in the same
iteration of every loop around it, in the same call. `key` says which iteration and call that is. A request is settled
when all lanes of the warp are in it, when the launch ends, or when its slot is needed for another one; the last is
counted, since lanes that come later then start a request of their own.

- Global memory is read and written in sectors of 32 bytes. The L1 cache looks up one line of 128 bytes after the other;
  `fetched` counts the sectors that are not among those requested shortly before.
- Shared memory has 32 banks, four bytes wide. A wavefront takes one word from each bank, for as many lanes as want it;
  lanes that want different words of one bank need a wavefront each. Accesses of 8 bytes are served half a warp at a
  time, of 16 bytes a quarter at a time.
"""

from __future__ import annotations

from ptxlab.emulate.abi.address_spaces import SHARED_SPACE, SHARED_WINDOW
from ptxlab.emulate.abi.state import Thread, Worker
from ptxlab.emulate.runtime.memory.memory import WINDOW
from ptxlab.isa.memory_system import BANKS, LINE, SECTOR
from ptxlab.native import (
    Array,
    Pointer,
    address_of,
    array,
    boolean,
    cast,
    copy_bytes,
    count_ones,
    native,
    size_of,
    struct,
    u8,
    u32,
    u64,
)

CAPACITY = 1 << 15
WAYS = 8  # slots that a request may have
SPREAD = 0x9E3779B97F4A7C15
CACHED = 1 << 12  # sectors that an SM keeps: half of its L1 cache, the rest is shared memory


@struct
class Request:
    """An access of lanes that run together; without lanes the slot is free."""

    key: u64
    epoch: u64
    site: u32
    lanes: u32
    size: u32
    shared: u32
    addresses: Array[u64, 32]


REQUEST_SIZE = size_of(Request)


@struct
class Tally:
    """What the accesses of one instruction came to."""

    global_requests: u64
    sectors: u64
    ideal_sectors: u64
    cache_lines: u64
    fetched: u64
    shared_requests: u64
    wavefronts: u64
    ideal_wavefronts: u64
    cost: u64  # of the costliest request: 1 more than the wavefronts or sectors that it took
    costliest: Request


@struct
class Profile:
    """The requests that are not settled yet, and a tally for each instruction that accesses memory."""

    requests: Pointer[Request]
    tallies: Pointer[Tally]
    cached: Pointer[u64]  # by a hash of its number, 1 more than the number of the sector that was requested last
    epoch: u64
    split: u64


@native
def note_request(thread: Pointer[Thread], site: u32, key: u64, address: u64, size: u32, space: u32) -> None:
    """Add an access of a thread to the request that its warp makes."""
    if size == 0:
        return
    shared: u32 = 0
    if space == SHARED_SPACE:
        shared = 1
    elif address >= SHARED_WINDOW:
        if address // WINDOW * WINDOW != SHARED_WINDOW:
            return
        address = address - SHARED_WINDOW
        shared = 1
    profile = cast(Pointer[Profile], thread.worker.profile)
    warp: u64 = u64(thread.number // 32)
    mixed: u64 = u64(u64(thread.block.number * 32 + warp) * SPREAD)
    mixed = u64((mixed ^ key) * SPREAD)
    mixed = u64((mixed ^ u64(site)) * SPREAD)
    request = find_request(profile, mixed, site, thread.lane)
    profile.epoch += 1
    if request.lanes == 0:
        request.key = mixed
        request.site = site
        request.size = size
        request.shared = shared
    request.epoch = profile.epoch
    request.lanes = request.lanes | (u32(1) << thread.lane)
    request.addresses[thread.lane] = address
    left: u32 = thread.block.count - thread.number // 32 * 32
    everyone: u32 = 0xFFFFFFFF
    if left < 32:
        everyone = (u32(1) << left) - 1
    if request.lanes == everyone:
        settle(profile, request)


@native
def find_request(profile: Pointer[Profile], key: u64, site: u32, lane: u32) -> Pointer[Request]:
    """The request of that key, or a free slot for it; the one that was not used for the longest time goes."""
    first: u64 = key >> 40
    chosen: Pointer[Request] = profile.requests + first % CAPACITY
    for way in range(WAYS):
        request: Pointer[Request] = profile.requests + (first + u64(way)) % CAPACITY
        if request.lanes != 0 and request.key == key and request.site == site:
            if request.lanes >> lane & 1 != 0:  # the same lane again: another request
                settle(profile, request)
            return request
        if request.lanes == 0:
            if chosen.lanes != 0:
                chosen = request
        elif chosen.lanes != 0 and request.epoch < chosen.epoch:
            chosen = request
    if chosen.lanes != 0:
        profile.split += 1
        settle(profile, chosen)
    return chosen


@native
def settle(profile: Pointer[Profile], request: Pointer[Request]) -> None:
    """Count what a request takes, and free its slot."""
    tally = profile.tallies + request.site
    before: u64 = tally.sectors + tally.wavefronts
    if request.shared != 0:
        tally.shared_requests += 1
        count_wavefronts(request, tally)
    else:
        sectors: u64 = count_sectors(request)
        ideal: u64 = (u64(count_ones(request.lanes)) * u64(request.size) + SECTOR - 1) // SECTOR
        tally.global_requests += 1
        tally.sectors += sectors
        tally.fetched += fetch(profile, request)
        for lane in range(32):
            if request.lanes >> lane & 1 != 0:
                tally.cache_lines += count_new(request, 0, lane, LINE)
        tally.ideal_sectors += min(ideal, sectors)
    cost: u64 = tally.sectors + tally.wavefronts - before + 1
    if tally.cost < cost:
        tally.cost = cost
        copy_bytes(cast(Pointer[u8], address_of(tally.costliest)), cast(Pointer[u8], request), REQUEST_SIZE)
    request.lanes = 0


@native
def count_sectors(request: Pointer[Request]) -> u64:
    """How many sectors the lanes touch; one that several touch counts once."""
    total: u64 = 0
    for lane in range(32):
        if request.lanes >> lane & 1 != 0:
            total += count_new(request, 0, lane, SECTOR)
    return total


@native
def fetch(profile: Pointer[Profile], request: Pointer[Request]) -> u64:
    """How many sectors of a request are not in the cache; they are afterwards."""
    found: u64 = 0
    for lane in range(32):
        if request.lanes >> lane & 1 != 0:
            sector: u64 = request.addresses[lane] // SECTOR
            last: u64 = (request.addresses[lane] + u64(request.size) - 1) // SECTOR
            while sector <= last:
                slot: u64 = u64(sector * SPREAD) >> 40
                if profile.cached[slot % CACHED] != sector + 1:
                    profile.cached[slot % CACHED] = sector + 1
                    found += 1
                sector += 1
    return found


@native
def count_new(request: Pointer[Request], first: u32, lane: u32, unit: u64) -> u64:
    """How many stretches of `unit` bytes a lane touches that lanes from `first` on before it do not."""
    found: u64 = 0
    stretch: u64 = request.addresses[lane] // unit
    last: u64 = (request.addresses[lane] + u64(request.size) - 1) // unit
    while stretch <= last:
        if not is_touched(request, first, lane, unit, stretch):
            found += 1
        stretch += 1
    return found


@native
def is_touched(request: Pointer[Request], first: u32, lane: u32, unit: u64, stretch: u64) -> boolean:
    """Whether a lane from `first` on before `lane` touches a stretch of `unit` bytes."""
    other: u32 = first
    while other < lane:
        if request.lanes >> other & 1 != 0:
            low: u64 = request.addresses[other] // unit
            high: u64 = (request.addresses[other] + u64(request.size) - 1) // unit
            if low <= stretch and stretch <= high:
                return True
        other += 1
    return False


@native
def count_wavefronts(request: Pointer[Request], tally: Pointer[Tally]) -> None:
    """Add the wavefronts that a request to shared memory takes, and those that it would take without conflicts."""
    together: u32 = 32
    while together * request.size > 128 and together > 1:
        together = together // 2
    first: u32 = 0
    while first < 32:
        most: u32 = 0
        banks = array(u32, BANKS)
        for step in range(together):
            lane: u32 = first + step
            if request.lanes >> lane & 1 != 0:
                word: u64 = request.addresses[lane] // 4
                last: u64 = (request.addresses[lane] + u64(request.size) - 1) // 4
                while word <= last:
                    if not is_touched(request, first, lane, 4, word):
                        bank: u64 = word % BANKS
                        banks[bank] += 1
                        if banks[bank] > most:
                            most = banks[bank]
                    word += 1
        if most != 0:
            tally.wavefronts += u64(most)
            tally.ideal_wavefronts += 1
        first += together


@native
def settle_all(worker: Pointer[Worker]) -> None:
    """Settle what is left at the end of a launch."""
    profile = cast(Pointer[Profile], worker.profile)
    for index in range(CAPACITY):
        if profile.requests[index].lanes != 0:
            settle(profile, profile.requests + index)


CALLED = (note_request,)
