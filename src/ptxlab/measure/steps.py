"""What each optimization step of a kernel costs and saves, without a GPU: a table for its README.

The emulator counts bytes, MMAs and columns of tensor memory, ptxas says what registers and shared memory a kernel
takes, and from both follows how many blocks an SM holds. None of it is a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

from ptxlab.isa.gpus import SMS, gpu_of_target
from ptxlab.isa.units.tensor_memory import COLUMNS
from ptxlab.launch.launches import Launch
from ptxlab.syntax import format
from ptxlab.toolchain import Resources, assemble, occupancy

KIB = 1024
# The versions of PTX in which ptxas first knows these targets.
VERSIONS = {"sm_103a": "8.8"}


@dataclass(frozen=True)
class OptimizationStep:
    """One way to compute something: its launches on small data, which the emulator runs, and those on large data."""

    name: str
    launches: Sequence[Launch]
    large: Sequence[Launch] = ()
    """Only their grids matter; they are not run."""


@dataclass(frozen=True)
class Steps:
    """The steps of a kernel: what the emulator runs them on, and what their grids are counted for besides."""

    rows: Sequence[OptimizationStep]
    small: str
    large: str = ""
    targets: Sequence[str] = ("sm_100a", "sm_103a")

    def __str__(self) -> str:
        """The table, with a sentence on where its numbers come from."""
        gpu = gpu_of_target(self.targets[0]).name
        large = f"; grids are those of {self.large} on {spell_gpu(gpu)}" if self.large else ""
        table = as_markdown([self.row(step) for step in self.rows])
        return (
            f"Modelled, not measured: the emulator counts {self.small}, ptxas says what a kernel takes for "
            f"{' and '.join(self.targets)}{large}. Bytes are in KiB.\n\n{table}"
        )

    def row(self, step: OptimizationStep) -> dict[str, str]:
        """What is known of a step, by the name of the column; what it does not do is empty."""
        counted = [launch.run(device="cpu").counters for launch in step.launches]
        tma = _sum(counted, "tma")
        moved = _sum([counters["bytes"] for counters in counted], "global")
        mmas = [done for counters in counted for done in counters.get("mmas", {}).values()]
        columns = max(_sum([counters], "tensor_memory").get("columns", 0) for counters in counted)
        return {
            "step": step.name,
            "launches": str(len(counted)) if len(counted) > 1 else "",
            "TMA loads": _kib(tma.get("loaded", 0)),
            "TMA stores": _kib(tma.get("stored", 0)),
            "global reads": _kib(moved.get("read", 0)),
            "writes": _kib(moved.get("written", 0)),
            "MMAs": _number(sum(done["count"] for done in mmas)),
            "MFLOP": _number(round(sum(done["flops"] for done in mmas) / 1e6)),
            "TMEM columns": _number(columns),
            **dict(_resources(step, self.targets)),
            **dict(_waves(step, self.targets[0], columns)),
        }


def as_markdown(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows as a table: a column that is empty in all of them is left out."""
    columns = [name for name in rows[0] if any(row[name] for row in rows)]
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)]]
    lines += [[row[name] or "-" for name in columns] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def spell_size(m: int, n: int, k: int) -> str:
    """The extents of a product."""
    return f"m {m:,}, n {n:,}, k {k:,}"


def spell_gpu(name: str) -> str:
    """A GPU with its article: `a B200`, `an H200`."""
    return f"{'an' if name[0] in 'AHLR' else 'a'} {name}"


def _resources(step: OptimizationStep, targets: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What ptxas says of the last launch of a step, for each target."""
    launch = step.launches[-1]
    found = [resources_of(launch, target) for target in targets]
    yield "shared memory", _kib(launch.shared + found[0].shared)
    yield "registers", _same([str(one.registers) for one in found])
    yield "bytes spilled", _same([str(one.spill_stores + one.spill_loads) for one in found])


def _waves(step: OptimizationStep, target: str, columns: int) -> Iterator[tuple[str, str]]:
    """How many blocks an SM holds, and how often all SMs are filled with large data."""
    launch = step.launches[-1]
    needs = resources_of(launch, target)
    held = occupancy(target, prod(_extents(launch.block)), needs.registers or 0, launch.shared + needs.shared)
    if held is None:
        return
    resident = min(held.blocks, COLUMNS // columns if columns else held.blocks)
    yield "blocks an SM", str(resident)
    if step.large:
        blocks = [prod(_extents(one.grid)) for one in step.large]
        waves = [f"{count / (resident * SMS[gpu_of_target(target).name]):.2f}" for count in sorted(blocks)]
        yield "blocks", f"{sum(blocks):,}"
        yield "waves", waves[0] if len(waves) == 1 else f"{_same([waves[0], waves[-1]], ' to ')} each"


def resources_of(launch: Launch, target: str) -> Resources:
    """What ptxas says of a kernel for a target."""
    text = format(launch.module)
    text = re.sub(r"(?m)^\.target .*", f".target {target}", text, count=1)
    if target in VERSIONS:
        text = re.sub(r"(?m)^\.version .*", f".version {VERSIONS[target]}", text, count=1)
    return _assembled(text, launch.function.name)


@cache
def _assembled(text: str, name: str) -> Resources:
    (found,) = [one for one in assemble(text).resources if one.function == name]
    return found


def _same(texts: Sequence[str], between: str = ", ") -> str:
    """Texts, or the one that all of them are."""
    return between.join(dict.fromkeys(texts))


def _extents(extent: int | Sequence[int]) -> Sequence[int]:
    return (extent,) if isinstance(extent, int) else extent


def _sum(counted: Sequence[Mapping[str, Any]], name: str) -> dict[str, int]:
    """The sum of a group of counters over several launches."""
    found: dict[str, int] = {}
    for counters in counted:
        for key, count in counters.get(name, {}).items():
            found[key] = found.get(key, 0) + count
    return found


def _kib(bytes: int) -> str:
    return f"{bytes / KIB:,.0f}" if bytes >= 10 * KIB else f"{bytes / KIB:.1f}" if bytes else ""


def _number(count: int) -> str:
    return f"{count:,}" if count else ""
