"""How long a product of matrices takes the tensor cores of an H200, from what its variant has blocks do.

`ptxlab.kernels.matmul` describes each `Shape` by a `Variant`, `ptxlab.schedule.choose` each schedule; both take the one
for which `cycles` are fewest. Both have the same main loop and the same stores.

What takes a block longest is multiplications, what the L2 cache sends, what comes to an SM, or the latency of a copy,
of which as many are in flight as there are stages; together they take more than the longest of them. All blocks take
as long as memory needs at least.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from ptxlab.estimate.hardware import H200
from ptxlab.estimate.units import wgmma_cycles

MMA = 32  # bytes along k that one multiplies
PIECES = 8  # of a tile that blocks share: more of them take longer to add than they save


class Costs(NamedTuple):
    """What things cost, in cycles of an SM, or bytes a cycle.

    `benchmarks/fit_products.py` fits them to the times of variants of random products
    (evidence/random_products.json): to seven of eight sizes, and judges them by the others. `direct`, `mma` and
    `hinted` were fitted to those of schedules, by which `benchmarks/scheduled_chosen.py` judges all of these.
    """

    start: float = 7158.0  # until the first copy, and from the last store to the end
    thread: float = 1.055  # until each thread of a block runs
    stage: float = 102.3  # until the barriers of a stage are initialized
    block: float = 1239.0  # until another block of an SM runs
    together: float = 120.7  # until all blocks of a cluster run
    copy: float = 181.0  # bytes that an SM gets from the L2 cache
    crowd: float = 58.3  # the same, while all others do
    arrive: float = 90.68  # bytes that come to an SM, also those that other blocks of its cluster get
    in_parts: float = 1.671  # times as much, where rows are not multiples of 32 bytes: each is in two lines
    across: float = 1.076  # times as much for an operand across k
    narrow: float = 1.442  # times as much in boxes of 32 columns
    shared: float = 1.156  # of what each other block of a cluster copies is copied less
    latency: float = 2003.0  # of a copy, of which a ring has as many in flight as stages
    multiply: float = 0.9275  # of what `wgmma` takes at full speed
    mma: float = 1.86  # times as much by other instructions
    alone: float = 1.038  # times as much for one warpgroup
    large: float = 1.056  # times as much for more than two rows of MMAs, with fewer stages
    turns: float = 0.9701  # times as much for warpgroups that multiply in turns
    store: float = 19.57  # bytes of D that a block stores by TMA
    box: float = 165.3  # for each box of D
    direct: float = 15.0  # bytes of D that threads of a block store
    again: float = 0.5095  # of a store that is not hidden by the next tile
    in_turns: float = 1.349  # times as long for two warpgroups that store in turns
    gate: float = 5.0  # times as long for a gated product
    restart: float = 12_570.0  # until the next block of an SM multiplies
    cluster_sum: float = 121.7  # for each part of k that blocks of a cluster add
    cluster_bytes: float = 24.88  # bytes of these
    memory_sum: float = 1971.0  # for a sum through global memory
    memory_bytes: float = 34.18  # bytes of these
    read: float = 2062.0  # bytes that all SMs get from memory
    written: float = 3535.0  # bytes of D that all SMs write
    odd: float = 2.144  # times as much, where rows of D are not multiples of 32 bytes
    hinted: float = 0.96  # times as long, where the L2 cache gives up first what is read once, and keeps the rest
    overlap: float = 3.182  # how well copies, MMAs and latency overlap: the exponent of a norm
    whole: float = 2.028  # the same for what all SMs move


COSTS = Costs()


class OperandCopy(NamedTuple):
    """What a block has of an operand for one iteration along k."""

    bytes: int
    sharers: int  # blocks of a cluster, each of which copies a part
    across: bool = False  # rows are not along k
    narrow: bool = False  # these are in boxes of 32 columns
    in_parts: bool = False  # rows are not multiples of 32 bytes


class Variant(NamedTuple):
    """What a kernel has blocks do for a product of certain sizes."""

    sides: tuple[OperandCopy, OperandCopy]
    mmas: int  # rows of MMAs of a block, each of 64 rows
    columns: int  # of an MMA
    depth: int  # bytes of a row of an operand in an iteration
    stages: int
    threads: int  # of a block
    warpgroups: int  # that multiply
    blocks: int  # of all tiles
    sms: int  # that have blocks at a time
    resident: int  # blocks that an SM has at a time
    together: int  # blocks of a cluster
    iterations: int  # of a block for a tile
    stored: float  # bytes of a tile of D that a block stores
    boxes: int  # of these, by TMA; 0: threads store them
    read: int  # bytes of both operands
    written: int  # bytes of D
    is_odd: bool  # rows of D are not multiples of 32 bytes
    by_mma: bool = False  # in place of `wgmma`
    gated: bool = False
    persistent: bool = False
    pingpong: bool = False
    stream_k: bool = False
    split_k: int = 1  # blocks that compute a tile together
    clustered: bool = True  # these are a cluster
    summed: int = 0  # bytes of what a block computes
    share: float = 0.0  # of these, what a block gets from each other one
    hinted: int = 0  # 1 where the L2 cache gives up first what is read once and is much larger; -1 where anything else

    @property
    def each(self) -> int:
        """Blocks of the SM that has most, or tiles of its block."""
        return ceil(self.blocks / self.sms)


def cycles(of: Variant, costs: Costs = COSTS) -> float:
    """Cycles that a variant is estimated to take."""
    memory = of.read / costs.read + of.written / costs.written * (costs.odd if of.is_odd else 1.0)
    start = costs.start + costs.thread * of.threads + costs.stage * of.stages
    start += costs.block * min(of.blocks / H200.sms, of.resident) + (costs.together if of.together > 1 else 0.0)
    return (start + _norm(costs.whole, _busy(of, costs), memory) + _sum(of, costs)) * costs.hinted**of.hinted


def _busy(of: Variant, costs: Costs) -> float:
    """Cycles in which an SM multiplies and stores."""
    each, at_once = of.each, min(of.resident, of.each)
    store = of.stored / (costs.store if of.boxes else costs.direct) + costs.box * of.boxes
    store *= costs.gate if of.gated else 1.0
    if of.stream_k and of.blocks % of.sms:  # whole tiles, then equal parts of less than two waves
        blocks = min(of.blocks * min(of.iterations, PIECES), of.sms)
        whole = max(1, of.blocks // blocks) - 1
        part = (of.blocks - whole * blocks) * of.iterations / blocks
        pieces = ceil(of.iterations / part) + 1
        tiles = (whole * of.iterations + ceil(part)) * _step(of, 1, min(1.0, blocks / H200.sms), costs)
        added = costs.memory_sum + pieces * of.summed / costs.memory_bytes
        return tiles + added + store * (whole + ceil(part / of.iterations))
    tile = of.iterations * _step(of, at_once, min(1.0, of.blocks / H200.sms / each), costs)
    if not of.persistent:
        rounds = ceil(each / at_once)
        return each * tile + rounds * store + costs.restart * (rounds - 1)
    if of.pingpong:
        return each * max(costs.turns * tile, (tile + costs.in_turns * store) / 2) + store
    return each * tile + store * (1 + costs.again * (each - at_once))


def _step(of: Variant, at_once: int, busy: float, costs: Costs) -> float:
    """Cycles of an SM for an iteration of one of the blocks that it has at once, while a part of all SMs is busy."""
    copied = arrived = 0.0
    for bytes, sharers, across, narrow, in_parts in of.sides:
        here = bytes * (costs.across * (costs.narrow if narrow else 1.0) if across else 1.0)
        arrived += here
        copied += here * (costs.in_parts if in_parts else 1.0) / (1 + costs.shared * (sharers - 1))
    multiplied = costs.multiply * of.mmas * (of.depth / MMA) * wgmma_cycles(of.columns, H200)
    multiplied *= costs.mma if of.by_mma else 1.0
    multiplied *= costs.alone if of.warpgroups == 1 and at_once == 1 else 1.0
    multiplied *= costs.large if of.mmas * (of.warpgroups if of.pingpong else 1) > 2 else 1.0
    copies = copied / costs.copy, copied * busy / costs.crowd, arrived / costs.arrive
    return _norm(costs.overlap, multiplied, *copies, costs.latency / of.stages / at_once)


def _sum(of: Variant, costs: Costs) -> float:
    """Cycles that the sum over blocks takes: barriers, and numbers written and read."""
    if of.split_k == 1:
        return 0.0
    if of.clustered:
        return costs.cluster_sum * of.split_k + (of.summed / 4 + of.share * of.split_k) / costs.cluster_bytes
    return costs.memory_sum + (of.summed + of.share * (of.split_k - 2)) / costs.memory_bytes


def _norm(exponent: float, *times: float) -> float:
    """What takes these times at once: more than the longest, and less than the sum."""
    return float(sum(time**exponent for time in times) ** (1 / exponent))
