"""Which of several schedules a product of matrices gets: how long waves of blocks take, without running anything.

```python
fastest = choose([with_tiles(64, 64), with_tiles(128, 256)], m=1000, n=1000, k=500)
```

A wave is as many blocks as fit on all SMs. It takes its iterations along the sum, each as long as the SM needs for all
its blocks, or as one block needs at least, and the end of its tiles. The numbers were fitted to measurements on an H200
(evidence/scheduled_gemm_sizes.json, evidence/scheduled_tensor_gemm_sizes.json).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from ptxlab.author.lines import refuse
from ptxlab.schedule.launching import SMS
from ptxlab.schedule.state import State, here
from ptxlab.schedule.statements import Reduce, loads
from ptxlab.schedule.tree import BYTES

if TYPE_CHECKING:
    from ptxlab.schedule.scheduling import Schedule

SHARED = 220_000  # bytes of an SM that blocks share
THREADS = ((32, 755), (1024, 512))  # elements of a thread at most; threads of an SM, by the registers that these need
ALIGNED = ((128, 98_700.0), (32, 90_000.0), (1, 82_000.0))  # bytes that rows are a multiple of; bytes copied in a us


@dataclass(frozen=True)
class Block:
    """What a block does: its tile, iterations along the sum of so many steps, and how many are on an SM."""

    rows: int
    columns: int
    depth: int
    threads: int
    shared: int
    resident: int
    sharing: int
    """Blocks of a cluster, which share the sum."""
    shares_evenly: bool
    """Whether each of them stores a share of the tile; otherwise all read all."""
    aligned: bool
    """Whether rows of arrays are a multiple of 16 bytes."""


def choose(schedules: Sequence[Schedule], **sizes: int) -> Schedule:
    """The schedule that takes least for these sizes, by waves of blocks."""
    if not schedules:
        refuse("illegal-step", "`choose` is given no schedule", position=here())
    return min(schedules, key=lambda one: waves(one, sizes))


def waves(one: Schedule, sizes: Mapping[str, int]) -> float:
    """Seconds that a product of matrices takes on an H200; `search` takes it as `by`."""
    state = one.state
    sizes = {**sizes, **one.sizes}
    block, axis = _block(one, sizes)
    counts = [-(-state.extent(p.axis).value(sizes) // p.weight) for p in map(state.part, state.blocks) if not p.number]
    tiles, length = prod(counts) * block.sharing, state.extent(axis).value(sizes)
    iterations = -(-length // (block.depth * block.sharing))
    full, rest = divmod(tiles, SMS * block.resident)
    pitch = length * BYTES[state.algorithm.arrays[_sum(one).value.parts[0].array].element]  # type: ignore[attr-defined]
    each = [_wave(state, block, count, iterations, pitch) for count in (SMS * block.resident, rest)]
    start = 7.3 if not state.unit else 3.8
    return 1e-6 * (start + full * each[0] + (each[1] if rest else 0.0))


def _wave(state: State, block: Block, blocks: int, iterations: int, pitch: int) -> float:
    """Microseconds of a wave of so many blocks."""
    busy = min(block.resident, -(-blocks // SMS))
    area = block.rows * block.columns
    if not state.unit:
        elements, warps = area / block.threads, busy * block.threads / 32
        copies = 1.0 if block.aligned else 1 + 0.6 * (block.rows + block.columns) / area  # single elements
        rate = (0.0034 + 0.00266 * elements) * (1 + 4.6 / block.depth) * copies  # a barrier for each iteration
        step = max(0.107 + 0.009 * elements, warps * rate)
        exchange = area * 2e-4 if block.sharing > 1 else 0.0
        return iterations * block.depth / 16 * step + warps * 0.01 + busy * exchange
    exchange = (1.27 + area * (1e-4 if block.shares_evenly else 1.7e-3)) if block.sharing > 1 else 0.0
    copied = 2 * block.depth * (block.rows + block.columns)
    speed = next(rate for multiple, rate in ALIGNED if pitch % multiple == 0)
    rate = 1.77e-5 if state.unit == "wgmma" else 3.5e-5  # for 64 steps of one element
    step = max(0.33, busy * max(area * rate, copied / speed) * block.depth / 64)
    return iterations * step + busy * (area * 9.4e-5 + exchange)


def _sum(one: Schedule) -> Reduce:  # noqa: RET503 - `refuse` does not return
    sums = [s for s in one.algorithm.statements if isinstance(s, Reduce)]
    if len(sums) == 1 and len(sums[0].over) == 1 and len(loads(sums[0])) == 2:
        return sums[0]
    refuse(
        "illegal-step", f"waves are counted for products of matrices, and `{one.algorithm.name}` is another algorithm"
    )


def _block(one: Schedule, sizes: Mapping[str, int]) -> tuple[Block, str]:
    """What a block of a schedule does, and the axis of the sum."""
    state, axis = one.state, _sum(one).over[0]
    mapped = [state.part(name) for name in state.blocks]
    if len(mapped) < 2 or len(state.parts[axis]) < 2:
        refuse("illegal-step", "waves are counted where blocks have tiles of rows and columns, and the sum is tiled")
    rows, columns = (part.weight for part in mapped[-2:])
    depth = state.parts[axis][0].weight // state.cluster_blocks
    plan, _ = one.written({})
    shared = sum(buffer.bytes for buffer in plan.buffers)
    each = rows * columns // state.thread_count
    threads = next(count for most, count in THREADS if each <= most)
    fit = SHARED // max(shared, 1) if state.unit else min(threads // state.thread_count, SHARED // max(shared, 1))
    resident = 1 if state.persistent else max(1, min(3 if state.unit else 16, fit))
    together = max([4, *(state.vectors.get(name, 1) for name in state.algorithm.outputs)])
    aligned = all(a.extents[-1].value(sizes) * BYTES[a.element] % 16 == 0 for a in state.algorithm.arrays.values())
    evenly = each % (state.cluster_blocks * together) == 0
    return Block(
        rows, columns, depth, state.thread_count, shared, resident, state.cluster_blocks, evenly, aligned
    ), axis
