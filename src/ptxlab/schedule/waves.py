"""Which of several schedules a product of matrices gets: how long waves of blocks take, without running anything.

```python
fastest = choose([with_tiles(64, 64), with_tiles(128, 256)], m=1000, n=1000, k=500)
```

A wave is as many blocks as fit on all SMs. It takes its iterations along the sum, each as long as the SM needs for all
its blocks, or as one block needs at least, and the end of its tiles.

Where threads multiply, the SM needs as long as its busiest scheduler issues multiplications and copies, and a block
needs the latency of its own; where both are alike, neither hides the other. Each turn of the ring adds a barrier.

With tensor cores, what takes a block longest is multiplications, what the L2 cache sends, what comes to an SM, or the
latency of a copy, of which as many are in flight as there are stages; together they take more than the longest of them.
All blocks take as long as memory needs at least.

The numbers were fitted to measurements on an H200. Those of tensor cores are the ones of `ptxlab.kernels.matmul`, whose
main loop and stores are the same instructions, and were fitted to its variants at random sizes
(evidence/random_products.json). Those of threads were fitted to every second size of evidence/scheduled_gemm_sizes.json
and _judged.json. `benchmarks/scheduled_chosen.py` shows how good the choice is, and `--fit` fits them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil, hypot, prod
from typing import TYPE_CHECKING, NamedTuple

from ptxlab.estimate.hardware import H200
from ptxlab.estimate.units import wgmma_cycles
from ptxlab.schedule.exchange import shared
from ptxlab.schedule.launching import FEWEST, IN_CLUSTERS, PIECES, SECTOR, SMS
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.state import OTHER_REGISTERS, REGISTERS, State, illegal_here, quoted
from ptxlab.schedule.statements import Array, Reduce, loads
from ptxlab.schedule.tree import BYTES

if TYPE_CHECKING:
    from ptxlab.schedule.scheduling import Schedule

SHARED, BESIDE = 220_000, 2048  # bytes of an SM that blocks share; of each for mbarriers and for the system
WARP, SCHEDULERS = 32, 4  # threads; of an SM
CLUSTERED = 128  # SMs in clusters of four or eight: parts of the chip have 16 or 18
MUCH = 8  # times as large
CYCLES = 1.755e9  # of an SM in a second


class Rates(NamedTuple):
    """What threads that multiply take, in microseconds; a step along the sum is a sixteenth of these."""

    multiplied: float = 2.41e-3
    """A scheduler, for 16 multiplications of each thread of four warps, one on each."""
    copied: float = 1.48e-3
    """The same for a copy by each thread."""
    latency: float = 8.97e-3
    """A warp, for 16 multiplications of each thread: by so much one that is alone takes longer than it issues."""
    barrier: float = 0.0158
    """For each warp of a block, once in a turn of the ring."""
    element: float = 9.43e-5
    """For each element of a tile, at the end."""
    store: float = 1.65e-4
    """For each store of a tile."""
    share: float = 1.65e-4
    """For each element of a tile whose shares the blocks of a cluster add up and store."""
    exchange: float = 1.59e-3
    """For each element of a tile of which each block of a cluster reads all parts."""
    launch: float = 4.55


class TensorRates(NamedTuple):
    """What products by tensor cores take, in cycles of an SM, or bytes in a cycle."""

    start: float = 7158.0
    """Until the first copy, and from the last store to the end."""
    thread: float = 1.055
    """Until each thread of a block runs."""
    stage: float = 102.3
    """Until the mbarriers of a stage are initialized."""
    block: float = 1239.0
    """Until another block of an SM runs."""
    together: float = 120.7
    """Until all blocks of a cluster run."""
    restart: float = 12_570.0
    """Until the next block of an SM multiplies."""
    copy: float = 181.0
    """Bytes that an SM gets from the L2 cache."""
    crowd: float = 58.3
    """The same, while all others do."""
    arrive: float = 90.68
    """Bytes that come to an SM, also those that other blocks of its cluster get."""
    in_parts: float = 1.671
    """Times as much, where rows are not multiples of 32 bytes: each is in two lines."""
    across: float = 1.076
    """Times as much for an operand whose rows are not along the sum."""
    shared: float = 1.156
    """Of what each other block of a cluster copies is copied less."""
    latency: float = 2003.0
    """Of a copy."""
    multiply: float = 0.9275
    """Of what `wgmma` takes at full speed."""
    mma: float = 1.86
    """Times as much by other instructions."""
    alone: float = 1.038
    """Times as much for one warpgroup."""
    large: float = 1.056
    """Times as much for more than 128 rows, with fewer stages."""
    store: float = 19.57
    """Bytes that a block stores by TMA."""
    box: float = 165.3
    """For each box of these."""
    direct: float = 15.0
    """Bytes that threads of a block store."""
    again: float = 0.5095
    """Of a store that is not hidden by the next tile."""
    cluster_sum: float = 121.7
    """For each part of a sum that blocks of a cluster add."""
    cluster_bytes: float = 24.88
    """Bytes of these."""
    memory_sum: float = 1971.0
    """For a sum through global memory."""
    memory_bytes: float = 34.18
    """Bytes of these."""
    read: float = 2062.0
    """Bytes that all SMs get from memory."""
    written: float = 3535.0
    """Bytes that all SMs write."""
    odd: float = 2.144
    """Times as much, where rows are not multiples of 32 bytes."""
    overlap: float = 3.182
    """How well copies, multiplications and latency overlap: the exponent of a norm."""
    hinted: float = 0.96
    """Times as long, where the L2 cache gives up first what is read once, and keeps the other operand."""
    whole: float = 2.028
    """The same for what all SMs move."""


RATES = Rates()
TENSOR_RATES = TensorRates()


@dataclass(frozen=True)
class Counts:
    """What a product takes, whatever that costs: blocks, their tiles, and iterations along the sum of so many steps."""

    unit: str
    size: int
    """Bytes of an element of the operands."""
    rows: int
    """Of a tile; of tensor cores, those of the instruction."""
    columns: int
    depth: int
    stages: int
    threads: int
    resident: int
    """Blocks that are on an SM."""
    sharing: int
    """Blocks of a cluster, which share the sum."""
    shares_evenly: bool
    """Whether each of them stores a share of the tile; otherwise all read all."""
    sharers: Sequence[int]
    """Blocks of a cluster that share what is copied of each operand."""
    across: Sequence[bool]
    """Whether rows of an operand are not along the sum."""
    in_parts: Sequence[bool]
    """Whether they are not multiples of 32 bytes."""
    copies: float
    """By each thread, for 16 steps along the sum."""
    stored: int
    """Elements that a thread stores at once."""
    boxes: int
    """That TMA stores of a tile."""
    tiles: int
    iterations: int
    read: int
    """Bytes of both operands."""
    written: int
    """Bytes of the result, of which an element has `out_size`."""
    out_size: int
    is_odd: bool
    """Whether its rows are not multiples of 32 bytes."""
    persistent: bool
    stream_k: bool
    hinted: int
    """1 where the L2 cache gives up an operand first that is read once and is much larger; -1 where another; or 0."""

    @property
    def area(self) -> int:
        """Elements of a tile."""
        return self.rows * self.columns

    @property
    def together(self) -> int:
        """Blocks of a cluster."""
        return self.sharing * prod(self.sharers)

    @property
    def sms(self) -> int:
        """SMs that have blocks at a time."""
        if not self.unit:
            return SMS if self.sharing <= 2 else CLUSTERED
        return IN_CLUSTERS.get(self.together, FEWEST)


def choose(schedules: Sequence[Schedule], **sizes: int) -> Schedule:
    """The schedule that takes least for these sizes, by waves of blocks."""
    listed = isinstance(schedules, Sequence) and schedules
    if not listed or not all(hasattr(one, "state") for one in schedules):
        illegal_here("`choose` is given no schedules, or something else", "`choose([s, t], m=512, ...)`")
    return min(schedules, key=lambda one: waves(one, sizes))


def waves(one: Schedule, sizes: Mapping[str, int]) -> float:
    """Seconds that a product of matrices takes on an H200; `search` takes it as `by`."""
    return seconds(count(one, sizes))


def seconds(of: Counts, rates: Rates = RATES, tensor: TensorRates = TENSOR_RATES) -> float:
    """What is counted, with what it costs."""
    if of.unit:
        return _cycles(of, tensor) / CYCLES
    full, rest = divmod(of.tiles, of.sms * of.resident)
    total = full * _wave(of, of.sms * of.resident, rates) + (_wave(of, rest, rates) if rest else 0.0)
    return 1e-6 * (rates.launch + total)


def _wave(of: Counts, blocks: int, rates: Rates) -> float:
    """Microseconds of a wave of so many blocks whose threads multiply."""
    busy = min(of.resident, ceil(blocks / of.sms))
    warps, multiplied = of.threads / WARP, of.area / of.threads
    most = ceil(busy * warps / SCHEDULERS) * SCHEDULERS
    issued = most * (rates.multiplied * multiplied + rates.copied * of.copies)
    step = of.depth / 16 * hypot(issued, rates.latency * multiplied) + rates.barrier * warps
    exchange = 0.0 if of.sharing == 1 else rates.share if of.shares_evenly else rates.exchange
    return of.iterations * step + busy * of.area * (rates.element + rates.store / of.stored + exchange)


def _cycles(of: Counts, rates: TensorRates) -> float:
    """Cycles that a product by tensor cores takes."""
    each = ceil(of.tiles / of.sms)  # blocks, or tiles, of the SM that has most
    at_once = min(of.resident, each)
    share = min(1.0, of.tiles / SMS / each)  # of the SMs that are busy
    step = _step(of, at_once, share, rates)
    store = of.area * of.out_size / of.sharing / (rates.store if of.boxes else rates.direct) + rates.box * of.boxes
    busy = each * of.iterations * step
    if of.stream_k and of.tiles % of.sms:  # whole tiles, then equal parts of less than two waves
        blocks = min(of.tiles * min(of.iterations, PIECES), of.sms)
        whole = max(1, of.tiles // blocks) - 1
        part = (of.tiles - whole * blocks) * of.iterations / blocks
        pieces = ceil(of.iterations / part) + 1
        busy = (whole * of.iterations + ceil(part)) * _step(of, 1, min(1.0, blocks / SMS), rates)
        busy += (
            rates.memory_sum + pieces * 4 * of.area / rates.memory_bytes + store * (whole + ceil(part / of.iterations))
        )
    elif of.persistent:
        busy += store * (1 + rates.again * (each - at_once))
    else:
        rounds = ceil(each / at_once)
        busy += rounds * store + rates.restart * (rounds - 1)
    if of.sharing > 1:
        own = 4 * of.area if not of.shares_evenly else 4 * of.area / of.sharing
        busy += rates.cluster_sum * of.sharing + (of.area + own * of.sharing) / rates.cluster_bytes
    start = rates.start + rates.thread * of.threads + rates.stage * of.stages
    start += rates.block * min(of.tiles / SMS, of.resident) + (rates.together if of.together > 1 else 0.0)
    memory = of.read / rates.read + of.written / rates.written * (rates.odd if of.is_odd else 1.0)
    return (start + _norm(rates.whole, busy, memory)) * rates.hinted**of.hinted


def _step(of: Counts, at_once: int, share: float, rates: TensorRates) -> float:
    """Cycles of an SM for an iteration of one of the blocks that it has at once, while a share of all SMs is busy."""
    copied = arrived = 0.0
    for lines, sharers, across, parts in zip((of.rows, of.columns), of.sharers, of.across, of.in_parts, strict=True):
        bytes = lines * of.depth * of.size * (rates.across if across else 1.0)
        arrived += bytes
        copied += bytes * (rates.in_parts if parts else 1.0) / (1 + rates.shared * (sharers - 1))
    multiplied = rates.multiply * ceil(of.rows / 64) * of.depth * of.size / 32 * wgmma_cycles(of.columns, H200)
    multiplied *= rates.mma if of.unit != "wgmma" else 1.0
    multiplied *= rates.alone if of.rows <= 64 and at_once == 1 else rates.large if of.rows > 128 else 1.0
    copies = copied / rates.copy, copied * share / rates.crowd, arrived / rates.arrive
    return _norm(rates.overlap, multiplied, *copies, rates.latency / of.stages / at_once)


def _norm(exponent: float, *times: float) -> float:
    """What takes these times at once: more than the longest, and less than the sum."""
    return float(sum(time**exponent for time in times) ** (1 / exponent))


def _sum(one: Schedule) -> Reduce:  # noqa: RET503 - `refuse` does not return
    sums = [s for s in one.algorithm.statements if isinstance(s, Reduce)]
    if len(sums) == 1 and len(sums[0].over) == 1 and len(loads(sums[0])) == 2:
        return sums[0]
    illegal_here(f"waves are counted for products of matrices, and `{one.algorithm.name}` is another algorithm")


def count(one: Schedule, sizes: Mapping[str, int]) -> Counts:
    """What a schedule has blocks do, for a product of these sizes."""
    state = one.state
    if state.unit == "tcgen05":
        illegal_here("waves were fitted to an H200, which does not have `tcgen05`")
    sizes = {**sizes, **one.sizes}
    if missing := [name for name in one.algorithm.sizes if name not in sizes]:
        illegal_here(f"how large is {quoted(missing)}?", "`choose(kinds, m=512, n=512, k=512)`")
    axis, operands = _sum(one).over[0], loads(_sum(one))
    mapped = [state.part(name) for name in state.blocks]
    if len(mapped) < 2 or len(state.parts[axis]) < 2:
        illegal_here("waves are counted where blocks have tiles of the result, and the sum is tiled")
    rows, columns = (part.weight for part in mapped[-2:])
    tiles = [
        -(-state.extent(p.axis).value(sizes) // (p.weight * together)) * together
        for p in mapped
        if not p.number and (together := state.together(p.name))
    ]
    made = one.plan
    evenly = shared(made) is not None
    few = rows * columns <= 32 * state.thread_count and (evenly or not state.cluster)  # registers of a thread
    used = sum(bytes for _, bytes in made.memory) + (BESIDE if state.unit else 0)
    kept = rows * columns // state.thread_count + OTHER_REGISTERS
    resident = REGISTERS // (kept * state.launched) if state.unit else (1024 if few else 512) // state.thread_count
    copies = sum(
        length * 16 / _width(state, load.array, sizes) / state.thread_count
        for length, load in zip((rows, columns), operands, strict=True)
    )
    if state.tensors and state.tensors[0].rows != mapped[-2].axis:
        rows, columns = columns, rows
    if state.tensors:
        operands = sorted(operands, key=lambda load: state.tensors[0].arrays.index(load.array))
    arrays = [state.algorithm.arrays[load.array] for load in operands]
    size, length = BYTES[arrays[0].element], state.extent(axis).value(sizes)
    results = [state.algorithm.arrays[name] for name in state.algorithm.outputs]
    return Counts(
        unit=state.unit,
        size=size,
        rows=rows,
        columns=columns,
        depth=state.parts[axis][0].weight // state.cluster_blocks,
        stages=state.pipeline.stages,
        threads=state.thread_count,
        resident=1 if state.persistent else state.resident or max(1, min(resident, SHARED // max(used, 1))),
        sharing=state.cluster_blocks,
        shares_evenly=evenly,
        sharers=[next((m.blocks for m in state.multicast if m.array == one.name), 1) for one in arrays],
        across=[load.index[-1] != Linear.of(axis) for load in operands],
        in_parts=[_row(one, sizes) % SECTOR != 0 for one in arrays],
        copies=copies,
        stored=min(_width(state, name, sizes) for name in state.algorithm.outputs),
        boxes=sum(each.pieces * each.groups for each in made.results.values()),
        tiles=max(1, prod(tiles)) * state.cluster_blocks,
        iterations=max(1, -(-length // state.parts[axis][0].weight)),
        read=sum(_bytes(one, sizes) for one in arrays),
        written=sum(_bytes(one, sizes) for one in results),
        out_size=sum(BYTES[one.element] for one in results),
        is_odd=any(_row(one, sizes) % SECTOR for one in results),
        persistent=state.persistent,
        stream_k=state.stream_k,
        hinted=_hinted(state, arrays, sizes),
    )


def _hinted(state: State, arrays: Sequence[Array], sizes: Mapping[str, int]) -> int:
    """Whether an operand that the L2 cache gives up first is read once, and is much larger than the other."""
    for one, other in permutations(arrays):
        if state.policies.get(one.name) == "evict_first":
            again = [p for p in map(state.part, state.blocks) if p.axis not in state.indexing(one.name)]
            once = all(state.iterations(p.name, sizes) <= state.together(p.name) for p in again)
            return 1 if once and _bytes(one, sizes) >= MUCH * _bytes(other, sizes) else -1
    return 0


def _bytes(array: Array, sizes: Mapping[str, int]) -> int:
    """Bytes of an array."""
    return prod(extent.value(sizes) for extent in array.extents) * BYTES[array.element]


def _row(array: Array, sizes: Mapping[str, int]) -> int:
    """Bytes of a row."""
    return array.extents[-1].value(sizes) * BYTES[array.element]


def _width(state: State, array: str, sizes: Mapping[str, int]) -> int:
    """Elements of an array that are accessed at once."""
    if any(stage.array == array and stage.transposed for stage in state.stages):
        return 1  # `cp.async` does not transpose
    length = state.algorithm.arrays[array].extents[-1].value(sizes)
    return next((width for width in state.widths(array) if length % width == 0), 1)
