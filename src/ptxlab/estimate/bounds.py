"""The bounds of a launch: how long each unit of the GPU is busy, and how long its blocks take one after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from ptxlab.estimate.execution import BasicBlock
from ptxlab.estimate.hardware import Ceiling, Hardware
from ptxlab.estimate.latency import durations, latency_of
from ptxlab.estimate.sampling import Work
from ptxlab.estimate.traffic import Traffic
from ptxlab.estimate.units import (
    DRAM,
    FMA,
    ISSUE,
    L1,
    L2,
    LATENCY,
    MULTIPLIER,
    QUARTERS,
    SHARED,
    TENSOR,
    columns_of,
    pipe_of,
)
from ptxlab.toolchain import SassInstruction

Costs = dict[str, dict[int, float]]
WARPGROUP = 4  # warps
_FULL = 0.9  # of all slots: a loop has a few instructions more


@dataclass(frozen=True)
class Shape:
    """A launch as the scheduler of blocks sees it."""

    blocks: int
    warps: int  # of a block
    resident: int  # blocks that an SM holds
    shared: int  # bytes of a block
    slowest: float  # how much longer the longest block takes than the mean


@dataclass(frozen=True)
class Bounds:
    """Seconds that the launch takes at least, by unit; and what each instruction contributes, by its address."""

    seconds: Mapping[str, float]
    costs: Costs
    dram_bytes: tuple[float, float]

    @property
    def largest(self) -> str:
        """The unit that limits the launch; a pipe that each slot is issued to, instead of the slots."""
        longest = max(self.seconds, key=lambda name: self.seconds[name])
        others = [unit for unit in QUARTERS if unit != ISSUE and unit in self.seconds]
        pipe = max(others, key=lambda name: self.seconds[name], default=ISSUE)
        return pipe if longest == ISSUE and self.seconds[pipe] >= _FULL * self.seconds[ISSUE] else longest

    def combined(self, hardware: Hardware) -> float:
        """Seconds of the launch.

        An SM's pipes, tensor cores and data path work at the same time, but not all of the time, since warps wait for
        one after the other; and the more so, the longer a warp's path is. DRAM overlaps with all but that path.
        """
        get = self.seconds.get
        pipes = max(get(unit, 0.0) for unit in QUARTERS if unit != TENSOR)
        data = get(SHARED, 0.0) + get(L1, 0.0)
        inside = norm([pipes, get(TENSOR, 0.0), data, get(L2, 0.0), get(LATENCY, 0.0)], hardware.overlap)
        return max(inside, norm([get(DRAM, 0.0), get(LATENCY, 0.0)], hardware.overlap))


def norm(parts: Sequence[float], power: float) -> float:
    """What parts take together: their sum for a power of 1, the longest for a large one.

    >>> norm([3.0, 4.0], 2), round(norm([3.0, 4.0], 100), 6)
    (5.0, 4.0)
    """
    longest = max(parts)
    return longest * sum((one / longest) ** power for one in parts) ** (1 / power) if longest else 0.0


def bound(blocks: Sequence[BasicBlock], work: Work, traffic: Traffic, shape: Shape, hardware: Hardware) -> Bounds:
    """How long the launch takes at least, by each unit and by latency."""
    costs = _pipe_costs(blocks, hardware)
    read, written = traffic.from_dram(shape.blocks)
    misses = read / (traffic.read * shape.blocks) if traffic.read else 0.0
    waits = _waits(blocks, work, misses, shape.warps, hardware)
    lifetime = _lifetime(sum(waits.values()), work, misses, shape, hardware)
    waves = ceil(shape.blocks / (hardware.sms * shape.resident))
    moved = (traffic.read + traffic.written) * shape.blocks
    cycles = {
        **{unit: sum(cost.values()) / hardware.schedulers for unit, cost in costs.items()},
        SHARED: traffic.shared,
        L1: traffic.l1,
    }
    if TENSOR in cycles:
        cycles[TENSOR] *= _tensor_slowdown(blocks, work, hardware)
    seconds = {
        **{unit: busy * _rounds(shape, hardware) / hardware.clock for unit, busy in cycles.items()},
        L2: moved / (hardware.l2_bytes * hardware.sms * hardware.clock),
        DRAM: read / hardware.dram_read + written / hardware.dram_write,
        LATENCY: lifetime * waves / hardware.clock,
    }
    for number, name in enumerate((SHARED, L1, L2)):
        costs[name] = {address: each[number] for address, each in traffic.by_instruction.items()}
    costs[DRAM], costs[LATENCY] = costs[L2], waits
    return Bounds({name: value for name, value in seconds.items() if value}, costs, (read, written))


def least(blocks: Sequence[BasicBlock], work: Work, traffic: Traffic, shape: Shape, ceiling: Ceiling) -> Bounds:
    """How long units are busy at the rates of a data sheet: no launch is faster, however well all of it overlaps."""
    read, written = traffic.from_dram(shape.blocks)
    issued = {one.address: block.times for block in blocks for one in block.instructions}
    # An MMA whose operands are counted reads 32 bytes of a row and of a column, of at most 128 rows.
    rows = 128 * sum(work.mmas[unit] for unit, size in work.operands.items() if size)
    columns = max(sum(work.operands.values()) / 32 - rows, 0.0)
    cycles = {
        ISSUE: sum(issued.values()) / ceiling.schedulers,
        SHARED: traffic.shared,
        TENSOR: columns / ceiling.columns,
    }
    each = shape.blocks / (ceiling.sms * ceiling.clock)
    seconds = {**{unit: busy * each for unit, busy in cycles.items()}, DRAM: (read + written) / ceiling.dram}
    costs: Costs = {ISSUE: issued, TENSOR: {}}
    costs[SHARED], costs[DRAM] = ({a: one[n] for a, one in traffic.by_instruction.items()} for n in (0, 2))
    return Bounds({name: value for name, value in seconds.items() if value}, costs, (read, written))


def _rounds(shape: Shape, hardware: Hardware) -> float:
    """Blocks of the SM that has most; where all run at once, the launch waits for the longest of them."""
    rounds = ceil(shape.blocks / hardware.sms)
    return rounds * shape.slowest if rounds <= shape.resident else rounds


def _tensor_slowdown(blocks: Sequence[BasicBlock], work: Work, hardware: Hardware) -> float:
    """By what the cycles of tensor cores are wrong if they execute `wgmma`: its clock is lower, its number is known."""
    warps = sum(block.times for block in blocks for one in block.instructions if columns_of(one.opcode))
    if not warps:
        return 1.0
    known = work.mmas.get("wgmma", 0.0) * WARPGROUP
    return known / warps * hardware.clock / hardware.tensor_clock


def _pipe_costs(blocks: Sequence[BasicBlock], hardware: Hardware) -> Costs:
    """Cycles of the pipes of a quarter of an SM, for all warps of a block of threads."""
    found: Costs = {ISSUE: {}}
    for block in blocks:
        for one in block.instructions:
            found[ISSUE][one.address] = block.times
            pipe = pipe_of(one.opcode, hardware)
            if pipe is not None:
                found.setdefault(pipe[0], {})[one.address] = pipe[1] * block.times
                if pipe[0] == MULTIPLIER:  # a part of the FMA pipe, at half its rate
                    found.setdefault(FMA, {})[one.address] = block.times
    return found


def _waits(blocks: Sequence[BasicBlock], work: Work, misses: float, warps: int, hardware: Hardware) -> dict[int, float]:
    """Cycles that each instruction keeps a warp that has the SM to itself."""

    def latency(one: SassInstruction) -> float:
        counted = work.lines.get(one.line or 0, {})
        cold = counted.get("fetched", 0.0) / counted["sectors"] if counted.get("sectors") else 1.0
        beyond = hardware.l2_latency + misses * (hardware.dram_latency - hardware.l2_latency)
        return latency_of(one, hardware, cold * beyond + (1 - cold) * hardware.l1_latency)

    kept = durations([(block.instructions, block.repeats) for block in blocks], hardware, latency)
    found: dict[int, float] = defaultdict(float)
    for block, cycles in zip(blocks, kept, strict=True):
        for address, taken in cycles.items():
            found[address] += taken * block.times / warps
    return dict(found)


def _lifetime(path: float, work: Work, misses: float, shape: Shape, hardware: Hardware) -> float:
    """Cycles of a block of threads: the path of a warp, and copies by TMA, which fill shared memory time after time."""
    wait = hardware.tma_latency_l2 + misses * (hardware.tma_latency_dram - hardware.tma_latency_l2)
    fills = work.loaded / shape.shared if shape.shared else 0.0
    return norm([path, fills * wait * hardware.clock], hardware.overlap) + hardware.block_start
