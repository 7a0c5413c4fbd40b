"""Which of several schedules a product of matrices gets: how long waves of blocks take, without running anything.

```python
fastest = choose([with_tiles(64, 64), with_tiles(128, 256)], m=1000, n=1000, k=500)
```

A wave is as many blocks as fit on all SMs. It takes its iterations along the sum, each as long as the SM needs for all
its blocks, or as one block needs at least, and the end of its tiles.

Where threads multiply, the SM needs as long as its busiest scheduler issues multiplications and copies, and a block
needs the latency of its own; where both are alike, neither hides the other. Each turn of the ring adds a barrier.

With tensor cores, `ptxlab.estimate.products` says it, as for `ptxlab.kernels.matmul`.

The numbers of threads were fitted to every second size of evidence/scheduled_gemm_sizes.json and _judged.json, measured
on an H200. `benchmarks/scheduled_chosen.py` shows how good the choice is, and `--fit` fits them again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil, hypot, prod
from typing import TYPE_CHECKING, NamedTuple

from ptxlab.estimate.hardware import H200, sms_in_clusters
from ptxlab.estimate.products import COSTS, Costs, OperandCopy, Variant, cycles
from ptxlab.schedule.exchange import shared
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.state import OTHER_REGISTERS, REGISTERS, State, illegal_here, quoted
from ptxlab.schedule.statements import Array, Reduce, loads
from ptxlab.schedule.tree import BYTES
from ptxlab.schedule.walk import SECTOR, WARP

if TYPE_CHECKING:
    from ptxlab.schedule.scheduling import Schedule

SHARED, BESIDE = 220_000, 2048  # bytes of an SM that blocks share; of each for mbarriers and for the system
SCHEDULERS = 4  # of an SM
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


RATES = Rates()


@dataclass(frozen=True)
class Counts:
    """What a product by threads takes: blocks, their tiles, and iterations along the sum of so many steps."""

    area: int
    """Elements of a tile."""
    depth: int
    threads: int
    resident: int
    """Blocks that are on an SM."""
    sharing: int
    """Blocks of a cluster, which share the sum."""
    shares_evenly: bool
    """Whether each of them stores a share of the tile; otherwise all read all."""
    copies: float
    """By each thread, for 16 steps along the sum."""
    stored: int
    """Elements that a thread stores at once."""
    blocks: int
    iterations: int

    @property
    def sms(self) -> int:
        """SMs that have blocks at a time."""
        return H200.sms if self.sharing <= 2 else CLUSTERED

    def seconds(self, rates: Rates = RATES) -> float:
        """How long that takes."""
        full, rest = divmod(self.blocks, self.sms * self.resident)
        total = full * self._wave(self.sms * self.resident, rates) + (self._wave(rest, rates) if rest else 0.0)
        return 1e-6 * (rates.launch + total)

    def _wave(self, blocks: int, rates: Rates) -> float:
        """Microseconds of a wave of so many blocks."""
        busy = min(self.resident, ceil(blocks / self.sms))
        warps, multiplied = self.threads / WARP, self.area / self.threads
        most = ceil(busy * warps / SCHEDULERS) * SCHEDULERS
        issued = most * (rates.multiplied * multiplied + rates.copied * self.copies)
        step = self.depth / 16 * hypot(issued, rates.latency * multiplied) + rates.barrier * warps
        exchange = 0.0 if self.sharing == 1 else rates.share if self.shares_evenly else rates.exchange
        return self.iterations * step + busy * self.area * (rates.element + rates.store / self.stored + exchange)


def choose(schedules: Sequence[Schedule], **sizes: int) -> Schedule:
    """The schedule that takes least for these sizes, by waves of blocks."""
    listed = isinstance(schedules, Sequence) and schedules
    if not listed or not all(hasattr(one, "state") for one in schedules):
        illegal_here("`choose` is given no schedules, or something else", "`choose([s, t], m=512, ...)`")
    return min(schedules, key=lambda one: waves(one, sizes))


def waves(one: Schedule, sizes: Mapping[str, int]) -> float:
    """Seconds that a product of matrices takes on an H200; `search` takes it as `by`."""
    return seconds(count(one, sizes))


def seconds(of: Counts | Variant, rates: Rates = RATES, costs: Costs = COSTS) -> float:
    """What is counted, with what it costs."""
    return of.seconds(rates) if isinstance(of, Counts) else cycles(of, costs) / CYCLES


def _sum(one: Schedule) -> Reduce:  # noqa: RET503 - `refuse` does not return
    sums = [s for s in one.algorithm.statements if isinstance(s, Reduce)]
    if len(sums) == 1 and len(sums[0].over) == 1 and len(loads(sums[0])) == 2:
        return sums[0]
    illegal_here(f"waves are counted for products of matrices, and `{one.algorithm.name}` is another algorithm")


def count(one: Schedule, sizes: Mapping[str, int]) -> Counts | Variant:
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
    resident = 1 if state.persistent else state.resident or max(1, min(resident, SHARED // max(used, 1)))
    sharing, length = state.cluster_blocks, state.extent(axis).value(sizes)
    blocks, iterations = max(1, prod(tiles)) * sharing, max(1, -(-length // state.parts[axis][0].weight))
    area, depth = rows * columns, state.parts[axis][0].weight // sharing
    if not state.unit:
        lengths = zip((rows, columns), operands, strict=True)
        copies = sum(n * 16 / _width(state, load.array, sizes) / state.thread_count for n, load in lengths)
        stored = min(_width(state, name, sizes) for name in state.algorithm.outputs)
        return Counts(area, depth, state.thread_count, resident, sharing, evenly, copies, stored, blocks, iterations)
    if state.tensors[0].rows != mapped[-2].axis:
        rows, columns = columns, rows
    operands = sorted(operands, key=lambda load: state.tensors[0].arrays.index(load.array))
    arrays = [state.algorithm.arrays[load.array] for load in operands]
    results = [state.algorithm.arrays[name] for name in state.algorithm.outputs]
    depth *= BYTES[arrays[0].element]
    left, right = (
        OperandCopy(
            bytes=lines * depth,
            sharers=next((m.blocks for m in state.multicast if m.array == one.name), 1),
            across=load.index[-1] != Linear.of(axis),
            in_parts=_row(one, sizes) % SECTOR != 0,
        )
        for lines, load, one in zip((rows, columns), operands, arrays, strict=True)
    )
    together = sharing * left.sharers * right.sharers
    return Variant(
        sides=(left, right),
        mmas=-(-rows // 64),
        columns=columns,
        depth=depth,
        stages=state.pipeline.stages,
        threads=state.thread_count,
        warpgroups=-(-rows // 64),
        blocks=blocks,
        sms=sms_in_clusters(together),
        resident=resident,
        together=together,
        iterations=iterations,
        stored=area * sum(BYTES[one.element] for one in results) / sharing,
        boxes=sum(each.pieces * each.groups for each in made.results.values()),
        read=sum(_bytes(one, sizes) for one in arrays),
        written=sum(_bytes(one, sizes) for one in results),
        is_odd=any(_row(one, sizes) % SECTOR for one in results),
        by_mma=state.unit != "wgmma",
        persistent=state.persistent,
        stream_k=state.stream_k,
        split_k=sharing,
        summed=4 * area,
        share=4 * area / (sharing if evenly else 1),
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
