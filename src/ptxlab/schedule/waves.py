"""Which of several schedules a product of matrices gets: how long waves of blocks take, without running anything.

```python
fastest = choose([with_tiles(64, 64), with_tiles(128, 256)], m=1000, n=1000, k=500)
```

A wave is as many blocks as fit on all SMs. It takes its iterations along the sum, each as long as the SM needs for all
its blocks, or as one block needs at least, and the end of its tiles.

Where threads multiply, the SM needs as long as its busiest scheduler issues multiplications and copies, and a block
needs the latency of its own; where both are alike, neither hides the other. Each turn of the ring adds a barrier.

With tensor cores, a block waits for the latency of a copy, of which as many are in flight as there are stages, and all
waves take as long as memory needs for the operands at least. Copies are limited twice: by what an SM receives, and by
what the L2 cache sends to all of them. It sends more where SMs read the same lines at the same time: not where rows
are out of step with its sectors of 32 bytes, where blocks of a cluster are at other places of a sum, or with stream-K.

The numbers were fitted to measurements on an H200: to every second size of evidence/scheduled_*gemm_sizes.json and
evidence/scheduled_*gemm_judged.json; those of blocks that share copies to evidence/scheduled_tensor_gemm_shared.json.
`benchmarks/scheduled_chosen.py` shows how good the choice is for both halves, and `--fit` fits those of threads again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, hypot, prod
from typing import TYPE_CHECKING, NamedTuple

from ptxlab.schedule.exchange import shared
from ptxlab.schedule.launching import IN_CLUSTERS, PIECES, SMS
from ptxlab.schedule.state import State, quoted, refuse_here
from ptxlab.schedule.statements import Reduce, loads
from ptxlab.schedule.tree import BYTES

if TYPE_CHECKING:
    from ptxlab.schedule.scheduling import Schedule

SHARED = 220_000  # bytes of an SM that blocks share
WARP, SCHEDULERS = 32, 4  # threads; of an SM
MEMORY = 2_600_000.0  # bytes that are read in a us
LATENCY = 1.03  # us until a copy by TMA has arrived
ITERATION = 0.148  # us that a turn of the ring takes at least, for 128 bytes along the sum
UNEVEN = ((1, 0.0), (2, 0.09), (8, 0.54))  # blocks of a cluster; by how much more of them some SMs have than others
ALIGNED = (
    (128, 122_000.0),
    (32, 104_000.0),
    (1, 83_300.0),
)  # bytes that rows are a multiple of; bytes an SM copies in a us
CACHE = 6_740_000.0  # the same for all SMs
SAME, STREAM_K = 11_900_000.0, 8_500_000.0  # where SMs read the same lines at the same time; with stream-K
END = 7.6e-5  # us in which an element is stored
PIECE = 6.7e-5  # us in which an element of another block's piece is added
RECEIVED = 98_800.0  # bytes that an SM receives in a us, where blocks share copies
TOGETHER = 0.5  # us that such blocks take longer to start and to end
CLUSTERED = 128  # SMs in clusters of four or eight: parts of the chip have 16 or 18


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


RATES = Rates()


@dataclass(frozen=True)
class Block:
    """What a block does: its tile, iterations along the sum of so many steps, and how many are on an SM."""

    rows: int
    columns: int
    depth: int
    stages: int
    threads: int
    shared: int
    resident: int
    sharing: int
    """Blocks of a cluster, which share the sum."""
    shares_evenly: bool
    """Whether each of them stores a share of the tile; otherwise all read all."""
    copied: float
    """Rows and columns that it copies by TMA: a part of those that blocks of a cluster share."""
    copies: float
    """By each thread, for 16 steps along the sum."""
    stored: int
    """Elements that a thread stores at once."""


def choose(schedules: Sequence[Schedule], **sizes: int) -> Schedule:
    """The schedule that takes least for these sizes, by waves of blocks."""
    listed = isinstance(schedules, Sequence) and schedules
    if not listed or not all(hasattr(one, "state") for one in schedules):
        refuse_here("illegal-step", "`choose` is given no schedules, or something else", "`choose([s, t], m=512, ...)`")
    return min(schedules, key=lambda one: waves(one, sizes))


def waves(one: Schedule, sizes: Mapping[str, int], rates: Rates = RATES) -> float:
    """Seconds that a product of matrices takes on an H200; `search` takes it as `by`."""
    state = one.state
    if state.unit == "tcgen05":
        refuse_here("illegal-step", "waves were fitted to an H200, which does not have `tcgen05`")
    sizes = {**sizes, **one.sizes}
    if missing := [name for name in one.algorithm.sizes if name not in sizes]:
        refuse_here("illegal-step", f"how large is {quoted(missing)}?", "`choose(kinds, m=512, n=512, k=512)`")
    block, axis = _block(one, sizes)
    counts = [
        -(-state.extent(p.axis).value(sizes) // (p.weight * together)) * together
        for p in map(state.part, state.blocks)
        if not p.number and (together := state.together(p.name))
    ]
    tiles, length = max(1, prod(counts)) * block.sharing, state.extent(axis).value(sizes)
    iterations = max(1, -(-length // (block.depth * block.sharing)))
    operands = [state.algorithm.arrays[load.array] for load in loads(_sum(one))]
    pitch = length * BYTES[operands[0].element]
    most = (IN_CLUSTERS[4] if state.together() > 2 else _sms(block)) * block.resident
    full, rest = divmod(tiles, most)

    def wave(blocks: int, iterations: int, cache: float = SAME) -> float:
        if state.unit:
            return _tensor_wave(block, blocks, iterations, pitch, state, cache)
        return _wave(block, blocks, iterations, rates)

    total = full * wave(most, iterations) + (wave(rest, iterations) if rest else 0.0)
    if state.stream_k and tiles % most:  # whole tiles, then equal parts of less than two waves
        blocks = min(tiles * min(iterations, PIECES), SMS)
        whole = max(1, tiles // blocks) - 1
        part = (tiles - whole * blocks) * iterations / blocks
        added = ceil(iterations / part) * PIECE if tiles % blocks else 0.0
        ends = block.rows * block.columns * ((ceil(part / iterations) - 1) * END + added)
        total = whole * wave(blocks, iterations) + wave(blocks, ceil(part), STREAM_K) + ends
    if not state.unit:
        return 1e-6 * (rates.launch + total)
    read = sum(prod(extent.value(sizes) for extent in array.extents) * BYTES[array.element] for array in operands)
    return 1e-6 * (4.4 + (TOGETHER if state.together() > 1 else 0.0) + max(total, read / MEMORY))


def _sms(block: Block) -> int:
    return SMS if block.sharing <= 2 else CLUSTERED


def _busy(block: Block, blocks: int) -> float:
    """Blocks of tensor cores on the SM that has most of them."""
    even = blocks / SMS
    more = next(more for most, more in UNEVEN if block.sharing <= most) if even > 1 else 0.0
    return min(block.resident, max(-(-blocks // SMS), even + more))


def _wave(block: Block, blocks: int, iterations: int, rates: Rates) -> float:
    """Microseconds of a wave of so many blocks whose threads multiply."""
    busy = min(block.resident, ceil(blocks / _sms(block)))
    area, warps = block.rows * block.columns, block.threads / WARP
    multiplied, most = area / block.threads, ceil(busy * warps / SCHEDULERS) * SCHEDULERS
    issued = most * (rates.multiplied * multiplied + rates.copied * block.copies)
    step = block.depth / 16 * hypot(issued, rates.latency * multiplied) + rates.barrier * warps
    exchange = 0.0 if block.sharing == 1 else rates.share if block.shares_evenly else rates.exchange
    return iterations * step + busy * area * (rates.element + rates.store / block.stored + exchange)


def _tensor_wave(block: Block, blocks: int, iterations: int, pitch: int, state: State, cache: float) -> float:
    """The same for tensor cores; `pitch` is the bytes of a row along the sum."""
    busy, area = _busy(block, blocks), block.rows * block.columns
    exchange = (0.9 + area * (4.9e-5 if block.shares_evenly else 1.7e-3)) if block.sharing > 1 else 0.0
    size = BYTES[state.algorithm.arrays[state.tensors[0].left].element]
    received, copied = (size * block.depth * some for some in (block.rows + block.columns, block.copied))
    limit = CACHE if pitch % 32 or block.sharing > 1 else cache
    speed = min(limit / max(1, min(blocks, SMS)), next(rate for multiple, rate in ALIGNED if pitch % multiple == 0))
    rate = (1.88e-5 if state.unit == "wgmma" else 3.5e-5) * size / 2  # for 64 steps of one element
    each = max(area * rate * block.depth / 64, copied / speed)
    if copied < received:
        each = max(each, received / RECEIVED)
    step = max(ITERATION * size * block.depth / 128, LATENCY / block.stages, busy * each)
    return iterations * step + busy * (area * END + exchange)


def _sum(one: Schedule) -> Reduce:  # noqa: RET503 - `refuse` does not return
    sums = [s for s in one.algorithm.statements if isinstance(s, Reduce)]
    if len(sums) == 1 and len(sums[0].over) == 1 and len(loads(sums[0])) == 2:
        return sums[0]
    refuse_here(
        "illegal-step", f"waves are counted for products of matrices, and `{one.algorithm.name}` is another algorithm"
    )


def _block(one: Schedule, sizes: Mapping[str, int]) -> tuple[Block, str]:
    """What a block of a schedule does, and the axis of the sum."""
    state, axis = one.state, _sum(one).over[0]
    mapped = [state.part(name) for name in state.blocks]
    if len(mapped) < 2 or len(state.parts[axis]) < 2:
        refuse_here("illegal-step", "waves are counted where blocks have tiles of the result, and the sum is tiled")
    rows, columns = (part.weight for part in mapped[-2:])
    depth = state.parts[axis][0].weight // state.cluster_blocks
    plan, _ = one.written({})
    used = sum(buffer.bytes for buffer in plan.buffers)
    evenly = shared(plan) is not None
    few = rows * columns <= 32 * state.thread_count and (evenly or not state.cluster)  # registers of a thread
    fit = min(3 if state.unit else (1024 if few else 512) // state.thread_count, SHARED // max(used, 1))
    resident = 1 if state.persistent else max(1, fit)
    copied = copies = 0.0
    for length, load in zip((rows, columns), loads(_sum(one)), strict=True):
        copies += length * 16 / _width(state, load.array, sizes) / state.thread_count
        copied += length / next((one.blocks for one in state.multicast if one.array == load.array), 1)
    stored = min(_width(state, name, sizes) for name in state.algorithm.outputs)
    return Block(
        rows,
        columns,
        depth,
        state.pipeline.stages,
        state.thread_count,
        used,
        resident,
        state.cluster_blocks,
        evenly,
        copied,
        copies,
        stored,
    ), axis


def _width(state: State, array: str, sizes: Mapping[str, int]) -> int:
    """Elements of an array that are accessed at once."""
    if any(stage.array == array and stage.transposed for stage in state.stages):
        return 1  # `cp.async` does not transpose
    length = state.algorithm.arrays[array].extents[-1].value(sizes)
    return next((width for width in state.widths(array) if length % width == 0), 1)
