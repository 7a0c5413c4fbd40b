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
UNEVEN = ((1, 0.0), (2, 0.09), (8, 0.54))  # blocks of a cluster; by how much more of them some SMs have than others
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


class TensorRates(NamedTuple):
    """What products by tensor cores take, in microseconds, and bytes in a microsecond."""

    start: float = 4.4
    together: float = 0.5
    """Longer to start and to end, for blocks that share copies."""
    memory: float = 2_600_000.0
    latency: float = 1.03
    """Until a copy by TMA has arrived."""
    iteration: float = 0.148
    """A turn of the ring takes at least, for 128 bytes along the sum."""
    multiplied: float = 1.88e-5
    """For 64 steps of one element, by `wgmma`; other instructions take 1.86 times as long."""
    whole: float = 122_000.0
    """Bytes that an SM copies, where rows are a multiple of 128 bytes."""
    sectors: float = 104_000.0
    """The same where they are one of 32 bytes."""
    parts: float = 83_300.0
    """The same elsewhere."""
    received: float = 98_800.0
    """Bytes that come to an SM, where blocks share copies."""
    cache: float = 6_740_000.0
    """Bytes that all SMs copy."""
    same: float = 11_900_000.0
    """The same where they read the same lines at the same time."""
    stream_k: float = 8_500_000.0
    """The same with stream-K."""
    end: float = 7.6e-5
    """In which an element is stored."""
    piece: float = 6.7e-5
    """In which an element of another block's piece is added."""
    exchange: float = 0.9
    """For blocks of a cluster to add up what they have."""
    share: float = 4.9e-5
    """For each element of a tile of which each of them adds up a share."""


RATES = Rates()
TENSOR_RATES = TensorRates()


@dataclass(frozen=True)
class Counts:
    """What a product takes, whatever that costs: blocks, their tiles, and iterations along the sum of so many steps."""

    unit: str
    size: int
    """Bytes of an element of the operands."""
    rows: int
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
    together: int
    """Blocks of a cluster, which share copies."""
    copied: float
    """Rows and columns that a block copies by TMA: a part of those that blocks of a cluster share."""
    copies: float
    """By each thread, for 16 steps along the sum."""
    stored: int
    """Elements that a thread stores at once."""
    tiles: int
    iterations: int
    pitch: int
    """Bytes of a row along the sum."""
    read: int
    """Bytes of both operands."""
    stream_k: bool

    @property
    def area(self) -> int:
        """Elements of a tile."""
        return self.rows * self.columns

    @property
    def sms(self) -> int:
        """SMs that have blocks at a time."""
        return IN_CLUSTERS[4] if self.together > 2 else SMS if self.sharing <= 2 else CLUSTERED


def choose(schedules: Sequence[Schedule], **sizes: int) -> Schedule:
    """The schedule that takes least for these sizes, by waves of blocks."""
    listed = isinstance(schedules, Sequence) and schedules
    if not listed or not all(hasattr(one, "state") for one in schedules):
        refuse_here("illegal-step", "`choose` is given no schedules, or something else", "`choose([s, t], m=512, ...)`")
    return min(schedules, key=lambda one: waves(one, sizes))


def waves(one: Schedule, sizes: Mapping[str, int]) -> float:
    """Seconds that a product of matrices takes on an H200; `search` takes it as `by`."""
    return seconds(count(one, sizes))


def seconds(of: Counts, rates: Rates = RATES, tensor: TensorRates = TENSOR_RATES) -> float:
    """What is counted, with what it costs."""
    most = of.sms * of.resident
    full, rest = divmod(of.tiles, most)

    def wave(blocks: int, iterations: int, cache: float = tensor.same) -> float:
        return _tensor_wave(of, blocks, iterations, cache, tensor) if of.unit else _wave(of, blocks, iterations, rates)

    total = full * wave(most, of.iterations) + (wave(rest, of.iterations) if rest else 0.0)
    if not of.unit:
        return 1e-6 * (rates.launch + total)
    if of.stream_k and of.tiles % most:  # whole tiles, then equal parts of less than two waves
        blocks = min(of.tiles * min(of.iterations, PIECES), SMS)
        whole = max(1, of.tiles // blocks) - 1
        part = (of.tiles - whole * blocks) * of.iterations / blocks
        added = ceil(of.iterations / part) * tensor.piece if of.tiles % blocks else 0.0
        ends = of.area * ((ceil(part / of.iterations) - 1) * tensor.end + added)
        total = whole * wave(blocks, of.iterations) + wave(blocks, ceil(part), tensor.stream_k) + ends
    start = tensor.start + (tensor.together if of.together > 1 else 0.0)
    return 1e-6 * (start + max(total, of.read / tensor.memory))


def _busy(of: Counts, blocks: int) -> float:
    """Blocks of tensor cores on the SM that has most of them."""
    even = blocks / SMS
    more = next(more for most, more in UNEVEN if of.sharing <= most) if even > 1 else 0.0
    return min(of.resident, max(-(-blocks // SMS), even + more))


def _wave(of: Counts, blocks: int, iterations: int, rates: Rates) -> float:
    """Microseconds of a wave of so many blocks whose threads multiply."""
    busy = min(of.resident, ceil(blocks / of.sms))
    warps, multiplied = of.threads / WARP, of.area / of.threads
    most = ceil(busy * warps / SCHEDULERS) * SCHEDULERS
    issued = most * (rates.multiplied * multiplied + rates.copied * of.copies)
    step = of.depth / 16 * hypot(issued, rates.latency * multiplied) + rates.barrier * warps
    exchange = 0.0 if of.sharing == 1 else rates.share if of.shares_evenly else rates.exchange
    return iterations * step + busy * of.area * (rates.element + rates.store / of.stored + exchange)


def _tensor_wave(of: Counts, blocks: int, iterations: int, cache: float, rates: TensorRates) -> float:
    """The same for tensor cores; `cache` is what all SMs copy in a microsecond."""
    busy = _busy(of, blocks)
    exchange = (rates.exchange + of.area * (rates.share if of.shares_evenly else 1.7e-3)) if of.sharing > 1 else 0.0
    received, copied = (of.size * of.depth * some for some in (of.rows + of.columns, of.copied))
    limit = rates.cache if of.pitch % 32 or of.sharing > 1 else cache
    own = rates.parts if of.pitch % 32 else rates.sectors if of.pitch % 128 else rates.whole
    multiplied = rates.multiplied * (1.0 if of.unit == "wgmma" else 1.86) * of.size / 2
    each = max(of.area * multiplied * of.depth / 64, copied / min(limit / max(1, min(blocks, SMS)), own))
    if copied < received:
        each = max(each, received / rates.received)
    step = max(rates.iteration * of.size * of.depth / 128, rates.latency / of.stages, busy * each)
    return iterations * step + busy * (of.area * rates.end + exchange)


def _sum(one: Schedule) -> Reduce:  # noqa: RET503 - `refuse` does not return
    sums = [s for s in one.algorithm.statements if isinstance(s, Reduce)]
    if len(sums) == 1 and len(sums[0].over) == 1 and len(loads(sums[0])) == 2:
        return sums[0]
    refuse_here(
        "illegal-step", f"waves are counted for products of matrices, and `{one.algorithm.name}` is another algorithm"
    )


def count(one: Schedule, sizes: Mapping[str, int]) -> Counts:
    """What a schedule has blocks do, for a product of these sizes."""
    state = one.state
    if state.unit == "tcgen05":
        refuse_here("illegal-step", "waves were fitted to an H200, which does not have `tcgen05`")
    sizes = {**sizes, **one.sizes}
    if missing := [name for name in one.algorithm.sizes if name not in sizes]:
        refuse_here("illegal-step", f"how large is {quoted(missing)}?", "`choose(kinds, m=512, n=512, k=512)`")
    axis, operands = _sum(one).over[0], loads(_sum(one))
    mapped = [state.part(name) for name in state.blocks]
    if len(mapped) < 2 or len(state.parts[axis]) < 2:
        refuse_here("illegal-step", "waves are counted where blocks have tiles of the result, and the sum is tiled")
    rows, columns = (part.weight for part in mapped[-2:])
    tiles = [
        -(-state.extent(p.axis).value(sizes) // (p.weight * together)) * together
        for p in mapped
        if not p.number and (together := state.together(p.name))
    ]
    plan, _ = one.written({})
    evenly = shared(plan) is not None
    few = rows * columns <= 32 * state.thread_count and (evenly or not state.cluster)  # registers of a thread
    used = max(sum(buffer.bytes for buffer in plan.buffers), 1)
    resident = min(3 if state.unit else (1024 if few else 512) // state.thread_count, SHARED // used)
    copied = copies = 0.0
    for length, load in zip((rows, columns), operands, strict=True):
        copies += length * 16 / _width(state, load.array, sizes) / state.thread_count
        copied += length / next((each.blocks for each in state.multicast if each.array == load.array), 1)
    arrays = [state.algorithm.arrays[load.array] for load in operands]
    size, length = BYTES[arrays[0].element], state.extent(axis).value(sizes)
    return Counts(
        unit=state.unit,
        size=size,
        rows=rows,
        columns=columns,
        depth=state.parts[axis][0].weight // state.cluster_blocks,
        stages=state.pipeline.stages,
        threads=state.thread_count,
        resident=1 if state.persistent else max(1, resident),
        sharing=state.cluster_blocks,
        shares_evenly=evenly,
        together=state.together(),
        copied=copied,
        copies=copies,
        stored=min(_width(state, name, sizes) for name in state.algorithm.outputs),
        tiles=max(1, prod(tiles)) * state.cluster_blocks,
        iterations=max(1, -(-length // state.parts[axis][0].weight)),
        pitch=length * size,
        read=sum(prod(extent.value(sizes) for extent in one.extents) * BYTES[one.element] for one in arrays),
        stream_k=state.stream_k,
    )


def _width(state: State, array: str, sizes: Mapping[str, int]) -> int:
    """Elements of an array that are accessed at once."""
    if any(stage.array == array and stage.transposed for stage in state.stages):
        return 1  # `cp.async` does not transpose
    length = state.algorithm.arrays[array].extents[-1].value(sizes)
    return next((width for width in state.widths(array) if length % width == 0), 1)
