"""What a launch executes and moves, from an emulated run of a few of its blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import Any, NamedTuple

from ptxlab.device.arguments import pack
from ptxlab.device.options import Extents, LaunchOptions
from ptxlab.device.structures import leaves
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.ir import Function
from ptxlab.launch import launch
from ptxlab.values import Json

MOST = 4  # blocks of a grid that are run
_LONG = 20_000_000  # instructions of threads after which two blocks are enough


class ArrayRegion(NamedTuple):
    """An array, by its address on the emulator."""

    base: int
    size: float


UNKNOWN = ArrayRegion(0, inf)


@dataclass(frozen=True)
class Work:
    """What one block does on average, by PTX line and by unit; `slowest` is the part that the longest has more."""

    lines: Mapping[int, Mapping[str, float]]
    patterns: Mapping[int, Mapping[str, Any]]
    loaded: float  # bytes by TMA from L2: of a multicast, the share of a block
    stored: float
    mmas: Mapping[str, float]  # how many, by the unit
    operands: Mapping[str, float]  # bytes that these read
    sampled: Sequence[Extents]
    slowest: float
    regions: Sequence[ArrayRegion]
    mapped: ArrayRegion  # what TMA copies

    def region_at(self, line: int | None) -> ArrayRegion:
        """The array that the instruction at a line of PTX accesses."""
        pattern = self.patterns.get(line or 0)
        address = next((one for one in pattern["addresses"] if one is not None), 0) if pattern else 0
        return next((one for one in self.regions if one.base <= address < one.base + one.size), UNKNOWN)


def sample(kernel: Function, args: Sequence[object], options: LaunchOptions, gpu: str) -> Work:
    """Run some blocks of a launch on the emulator, each by itself; by default a few, far from each other."""
    cluster = prod(options.cluster or kernel.required_cluster or (1, 1, 1))
    found: list[tuple[Extents, Json]] = []
    executed = 0
    for block in options.blocks or spread(options.grid):
        if options.blocks is None and executed > _LONG and len(found) >= 2:
            break
        one = {**vars(options), "blocks": [block], "device": "cpu", "detectors": False, "profile": True, "gpu": gpu}
        counters = launch(kernel, args, LaunchOptions.of(one)).counters
        executed += counters["instructions"]
        found.append((block, counters))
    return _mean(found, cluster, _regions(kernel, args), _mapped(args))


def spread(grid: Extents) -> list[Extents]:
    """A few blocks of a grid: the first, the last, and some between them."""
    total = prod(grid)
    count = min(total, MOST)
    numbers = [round(at * (total - 1) / max(count - 1, 1)) for at in range(count)]
    x, y, _ = grid
    return [(number % x, number // x % y, number // (x * y)) for number in dict.fromkeys(numbers)]


def _regions(kernel: Function, args: Sequence[object]) -> list[ArrayRegion]:
    """Where the emulator has the arrays among arguments."""
    assert kernel.module is not None
    return [ArrayRegion(one.base, one.size) for one in pack(kernel.module, kernel, args).regions]


def _mapped(args: Sequence[object]) -> ArrayRegion:
    """All arrays that tensor maps describe, as if they were one."""
    arrays = [leaf.array for leaf in leaves(tuple(args)) if isinstance(leaf, TensorMap)]
    bytes = sum({id(array): int(array.nbytes) for array in arrays}.values())
    return ArrayRegion(1, bytes) if bytes else UNKNOWN


def _mean(
    found: Sequence[tuple[Extents, Json]], cluster: int, regions: Sequence[ArrayRegion], mapped: ArrayRegion
) -> Work:
    lines: dict[int, Counter[str]] = {}
    mmas: Counter[str] = Counter()
    operands: Counter[str] = Counter()
    patterns: dict[int, Mapping[str, Any]] = {}
    tma: Counter[str] = Counter()
    for _, counters in found:
        for line, counted in counters["lines"].items():
            lines.setdefault(line, Counter()).update(counted)
        for unit, done in counters.get("mmas", {}).items():
            mmas[unit] += done["count"]
            operands[unit] += done.get("operand_bytes", 0)  # of registers they are not counted
        patterns = counters["patterns"] | patterns
        tma.update(counters.get("tma", {}))
    count = len(found) * cluster
    executed = [counters["instructions"] for _, counters in found]
    shared = tma["multicast"] * (1 - 1 / cluster)
    return Work(
        {line: {name: value / count for name, value in counted.items()} for line, counted in lines.items()},
        patterns,
        (tma["loaded"] - shared) / count,
        tma["stored"] / count,
        {unit: value / count for unit, value in mmas.items()},
        {unit: value / count for unit, value in operands.items()},
        [block for block, _ in found],
        max(executed) * len(executed) / max(sum(executed), 1),
        regions,
        mapped,
    )
