"""What the memory instructions of a block move through shared memory, L1, L2 and DRAM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptxlab.estimate.execution import BasicBlock
from ptxlab.estimate.sampling import UNKNOWN, ArrayRegion, Work
from ptxlab.estimate.units import (
    GLOBAL_LOADS,
    GLOBAL_STORES,
    LANE_EXCHANGES,
    LOCAL_ACCESSES,
    SHARED_ACCESSES,
    stem,
    width_of,
)
from ptxlab.isa.memory_system import BANKS, LINE, SECTOR
from ptxlab.toolchain import SassInstruction

TMA_LOADS = ("UTMALDG", "UBLKCP")


@dataclass
class Traffic:
    """Of one block of threads: cycles of the data path of an SM, and bytes beyond it."""

    shared: float = 0.0  # wavefronts, and exchanges between lanes
    conflicts: float = 0.0  # wavefronts beyond the ideal
    l1: float = 0.0  # lines of the L1 cache
    reads: dict[ArrayRegion, float] = field(default_factory=dict)  # bytes from L2, by the array that they are of
    writes: dict[ArrayRegion, float] = field(default_factory=dict)
    by_instruction: dict[int, tuple[float, float, float]] = field(default_factory=dict)
    """Cycles of shared memory and of L1 and bytes, by the address of the instruction."""

    @property
    def read(self) -> float:
        """Bytes from L2."""
        return sum(self.reads.values())

    @property
    def written(self) -> float:
        """Bytes to L2."""
        return sum(self.writes.values())

    def from_dram(self, blocks: int) -> tuple[float, float]:
        """Bytes that all blocks read from DRAM and write there: of each array, no more than it has."""
        return _capped(self.reads, blocks), _capped(self.writes, blocks)


def _capped(moved: Mapping[ArrayRegion, float], blocks: int) -> float:
    return sum(min(bytes * blocks, region.size) for region, bytes in moved.items())


def traffic_of(blocks: Sequence[BasicBlock], work: Work) -> Traffic:
    """What a block of threads moves."""
    found = Traffic()
    if work.loaded or work.stored:
        found.reads[work.mapped] = work.loaded
        found.writes[work.mapped] = work.stored
    found.shared += (work.loaded + work.stored) / LINE
    copies: dict[tuple[int | None, str], float] = {}
    for block in blocks:
        for one in block.instructions:
            key = one.line, stem(one.opcode)
            copies[key] = copies.get(key, 0.0) + block.times
    copying = [one for block in blocks for one in block.instructions if one.opcode.startswith(TMA_LOADS)]
    for one in copying:
        found.by_instruction[one.address] = 0.0, 0.0, work.loaded / len(copying)
    for block in blocks:
        for one in block.instructions:
            whole = copies[one.line, stem(one.opcode)]
            _add(found, one, block.times, block.times / whole if whole else 0.0, work)
    return found


def _add(found: Traffic, one: SassInstruction, times: float, share: float, work: Work) -> None:
    """Add what an instruction moves; it is executed so often, which is this share of its line's executions."""
    name = stem(one.opcode)
    counted = work.lines.get(one.line or 0, {})
    shared = l1 = moved = 0.0
    if name in SHARED_ACCESSES and counted.get("shared_requests"):
        each = counted["wavefronts"] / counted["shared_requests"]
        shared = times * each * correction(one.opcode, work.patterns.get(one.line or 0))
        found.conflicts += times * (counted["wavefronts"] - counted["ideal_wavefronts"]) / counted["shared_requests"]
    elif name in LANE_EXCHANGES:
        shared = times * LANE_EXCHANGES[name]
    elif name in LOCAL_ACCESSES:
        l1 = times * width_of(one.opcode) / 4
        moved = l1 * LINE if name == "STL" else 0.0
        found.writes[UNKNOWN] = found.writes.get(UNKNOWN, 0.0) + moved
    elif name in GLOBAL_LOADS or name in GLOBAL_STORES:
        l1 = share * counted.get("cache_lines", 0.0)
        is_cached = name == "LDG" and "STRONG" not in one.opcode
        moved = share * counted.get("fetched" if is_cached else "sectors", 0.0) * SECTOR
        to = found.reads if name in GLOBAL_LOADS else found.writes
        region = work.region_at(one.line)
        to[region] = to.get(region, 0.0) + moved
        if name == "LDGSTS":
            shared = moved / LINE
    found.shared += shared
    found.l1 += l1
    if shared or l1 or moved:
        found.by_instruction[one.address] = shared, l1, moved


def correction(opcode: str, pattern: Mapping[str, Any] | None) -> float:
    """How many times as many wavefronts an access takes as the emulator counts.

    ptxas makes one of several narrow ones that follow each other in memory, and of wide accesses two groups of lanes
    are served at once where they need no bank twice. `pattern` is the costliest request of the line.
    """
    if pattern is None or pattern["space"] != "shared" or opcode.startswith(("LDSM", "STSM")):
        return 1.0
    size, wide = pattern["size"], max(width_of(opcode), pattern["size"])
    counted = wavefronts(pattern["addresses"], size, LINE // size)
    return wavefronts(pattern["addresses"], wide, 2 * LINE // wide) / counted


def wavefronts(addresses: Sequence[int | None], size: int, together: int) -> int:
    """How many wavefronts lanes need that access `size` bytes each, so many lanes at a time.

    >>> wavefronts([0] * 32, 16, 16), wavefronts(range(0, 512, 16), 16, 8), wavefronts(range(0, 4096, 128), 4, 32)
    (2, 4, 32)
    """
    total = 0
    for first in range(0, len(addresses), max(1, min(32, together))):
        chosen = addresses[first : first + max(1, min(32, together))]
        words = {word for at in chosen if at is not None for word in range(at // 4, (at + size + 3) // 4)}
        banks = [0] * BANKS
        for word in words:
            banks[word % BANKS] += 1
        total += max(banks)
    return total
