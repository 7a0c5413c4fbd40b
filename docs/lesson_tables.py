"""Tables of the lessons, made of what was measured and is kept in `evidence`; the lessons' test keeps the pages so.

A page has a table between `<!-- measured: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from ptxlab.measure import Record

EVIDENCE = Path(__file__).parent.parent / "evidence"
TABLES: dict[str, Callable[[], str]] = {}


def table(function: Callable[[], str]) -> Callable[[], str]:
    """What a page may name."""
    TABLES[function.__name__] = function
    return function


def kept(name: str) -> Any:
    """A file of the evidence."""
    return json.loads((EVIDENCE / f"{name}.json").read_text(encoding="utf-8"))


def source(found: Any) -> str:
    """Where and when something was measured, as a line below its table."""
    machine = found["machine"]
    return (
        f"\n{machine['gpu']}, driver {machine['driver']}, ptxas {machine['ptxas']}, {found['date']}, by "
        f"`{found['command']}`.\n"
    )


@table
def core_matrices() -> str:
    """Tiles whose core matrices are any bytes apart, read with three kinds of descriptors."""
    found = kept("core_matrices")
    tiles = found["tiles"]
    lines = ["| the descriptor has | products that are right | bits as the emulator has them |", "|---|---:|---:|"]
    names = {
        "the same": "the strides that the tile was written with",
        "exchanged": "leading and stride offset exchanged",
        "another stride offset": "another stride offset",
    }
    for key, name in names.items():
        right, same = (sum(tile[key][what] for tile in tiles) for what in ("is right", "as emulated"))
        lines.append(f"| {name} | {right} of {len(tiles)} | {same} of {len(tiles)} |")
    return "\n".join([*lines, source(found)])


@table
def tensor_map_cycles() -> str:
    """What each instruction takes that a change of a tensor map consists of."""
    found = kept("tensor_map_cost")
    (one, alone), (blocks, together) = found["cycles"].items()
    lines = [f"| instruction | {one} block | {blocks} blocks |", "|---|---:|---:|"]
    lines += [f"| {spelled(name)} | {median(alone[name]):.0f} | {median(together[name]):.0f} |" for name in alone]
    return "\n".join([*lines, source(found)])


def spelled(name: str) -> str:
    """A name with its instructions as code."""
    return re.sub(r"(?<!\S)[\w:]+\.[\w.:]+( (release|acquire)\.\w+)?", lambda found: f"`{found[0]}`", name)


@table
def tensor_map_seconds() -> str:
    """A kernel over groups, by where its tensor maps come from; and what a change of three maps adds."""
    found = kept("tensor_map_cost")
    tiles = list(found["seconds"])
    names = list(found["seconds"][tiles[-1]])
    lines = [
        "| maps | "
        + " | ".join(f"{count} tile{'s' * (count != '1')} a group" for count in tiles)
        + " | for each change |",
        "|---" + "|---:" * (len(tiles) + 1) + "|",
    ]
    for name in names:
        times = [median(found["seconds"][count].get(name, [0])) * 1e6 for count in tiles]
        shown = [f"{time:.1f} µs" if time else "" for time in times]
        lines.append(f"| {name} | {' | '.join(shown)} | {change_of(found, name)} |")
    return "\n".join([*lines, source(found)])


def change_of(found: Any, name: str) -> str:
    """Microseconds that each change of three maps adds to what the host's maps take, at most and at least."""
    base, added = "the host's maps", []
    for count, taken in found["seconds"].items():
        if name in taken and name != base:
            changes = found["groups"] * (int(count) if "a tile" in name else 1)
            added.append((median(taken[name]) - median(taken[base])) / changes * 1e6)
    return f"{min(added):.1f} to {max(added):.1f} µs" if added else ""


@table
def conversion_targets() -> str:
    """How many instructions the intrinsics for a pair become, by the target that they are compiled for."""
    found = kept("conversion_targets")
    targets = list(next(iter(found["instructions"].values())))
    lines = [
        f"| intrinsic | {' | '.join(f'`{target}`' for target in targets)} |",
        "|---" + "|---:" * len(targets) + "|",
    ]
    for name, counts in found["instructions"].items():
        lines.append(f"| `{name}` | {' | '.join(str(counts[target]) for target in targets)} |")
    return "\n".join([*lines, f"\nInstructions of PTX, by {found['compiler']}, `{found['command']}`.\n"])


@table
def conversions() -> str:
    """A product with e4m3, by how these become f16."""
    found = Record.read(EVIDENCE / "conversions.json")
    names = {
        "cvt": "`cvt.rn.f16x2.e4m3x2`",
        "intrinsic, sm_90a": "the intrinsic, compiled for `sm_90a`",
        "shifts": "four operations on bits and a multiplication",
        "intrinsic, sm_80": "the intrinsic, compiled for `sm_80`",
    }
    lines = [
        "| conversion | " + " | ".join(f"{one.size['m']} x {one.size['k']}" for one in found.sizes) + " |",
        "|---" + "|---:" * len(found.sizes) + "|",
    ]
    for name, text in names.items():
        shown = [f"{one[name].median * 1e6:.1f} µs, {1 / one.ratio(name, 'cvt'):.2f}×" for one in found.sizes]
        lines.append(f"| {text} | {' | '.join(shown)} |")
    return "\n".join([*lines, source(about(found, "python benchmarks/conversions.py"))])


def about(found: Record, command: str) -> dict[str, Any]:
    """Where and when a record was made."""
    return {"machine": found.machine, "date": found.date, "command": command}


@table
def multicast() -> str:
    """What became of runs with each choice of counts."""
    found = kept("multicast")
    lines = ["| cluster | counts | runs | all tiles right | what happened otherwise |", "|---|---|---:|---:|---|"]
    for name, runs in found["runs"].items():
        cluster, _, counts = name.partition(" blocks, ")
        right = sum(wrong == gave_up == 0 for _, _, wrong, gave_up in runs)
        wrong = [run[2] for run in runs if run[2]]
        least, most = min(wrong, default=0), max(wrong, default=0)
        otherwise = f"{least} to {most} tiles wrong" if least < most else f"{most} tiles wrong" if most else ""
        if any(run[3] for run in runs):
            otherwise = "no wait ended"
        lines.append(f"| {cluster} | {counts} | {len(runs)} | {right} | {otherwise} |")
    return "\n".join([*lines, source(found)])


@table
def multicast_seconds() -> str:
    """What it takes to fill shared memory, with and without multicast."""
    found = kept("multicast")
    lines = ["| blocks that share a tile | time | bytes into shared memory |", "|---|---:|---:|"]
    for cluster, samples in found["seconds"].items():
        taken = median(samples)
        lines.append(f"| {cluster} | {taken * 1e6:.0f} µs | {found['bytes'] / taken / 1e12:.1f} TB/s |")
    return "\n".join([*lines, source(found)])


@table
def timeline_cost() -> str:
    """A product with and without a timeline."""
    found = Record.read(EVIDENCE / "timeline" / "cost.json")
    lines = ["| product | stages | without | with a timeline | ratio | cuBLAS |", "|---|---:|---:|---:|---:|---:|"]
    for one in found.sizes:
        for stages in (2, 3):
            plain, timed = f"{stages} stages", f"{stages} stages, timeline"
            times = [f"{one[name].median * 1e6:.1f} µs" for name in (plain, timed)]
            ratio, cublas = 1 / one.ratio(timed, plain), one["cuBLAS"].median * 1e6
            lines.append(f"| {one.size['m']}³ | {stages} | {' | '.join(times)} | {ratio:.3f} | {cublas:.1f} µs |")
    return "\n".join([*lines, source(about(found, "python benchmarks/timeline.py"))])


@table
def timeline_clocks() -> str:
    """What a span takes, and how fine the clocks are."""
    found = kept("timeline/clocks")
    cycles, step = (median(found[one][two]) for one, two in (("empty spans", "clock64"), ("reads", "clock64")))
    ticks = median(found["globaltimer changes by"])
    lines = [
        "| | |",
        "|---|---:|",
        f"| from one span with nothing in it to the next, in a loop | {cycles:.0f} cycles |",
        f"| from one read of `%clock64` to the next | {step:.0f} cycles |",
        f"| `%globaltimer` advances by | {ticks:.0f} ns |",
    ]
    return "\n".join([*lines, source(found)])


@table
def timeline_profiler() -> str:
    """What Nsight Compute counts in the product with two stages, and with three."""
    with (EVIDENCE / "timeline" / "ncu.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    metrics = {
        "Achieved Occupancy": "achieved occupancy",
        "Active Warps Per Scheduler": "active warps of a scheduler, of 16",
        "Eligible Warps Per Scheduler": "eligible warps of a scheduler",
        "No Eligible": "cycles without an eligible warp",
        "Issue Slots Busy": "issue slots that are busy",
        "SM Busy": "the busiest pipeline: tensor cores",
        "Elapsed Cycles": "cycles",
    }
    lines = ["| metric | 2 stages | 3 stages |", "|---|---:|---:|"]
    for metric, text in metrics.items():
        values = [row for row in rows if row["Metric Name"] == metric]
        shown = [f"{one['Metric Value']}{' %' if one['Metric Unit'] == '%' else ''}" for one in values]
        lines.append(f"| {text} | {' | '.join(shown)} |")
    found = kept("timeline/spans")
    command = "ncu, with python benchmarks/timeline.py --once"
    return "\n".join([*lines, source({**found, "command": command})])
