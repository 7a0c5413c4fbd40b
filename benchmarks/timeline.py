"""What a timeline costs, and what it shows of a warp-specialized kernel: the wgmma product with two and three stages.

    python benchmarks/timeline.py [FOLDER]        writes evidence/timeline, needs a Hopper GPU and torch

`cost.json`: the product with and without a timeline, taking turns, each answer checked. `spans.json`: the spans of one
block. `clocks.json`: what a span costs that has nothing in it, and how fine the two clocks are.

    ncu --csv --page details SECTIONS -k regex:wgmma python benchmarks/timeline.py --once > evidence/timeline/ncu.csv

`--once` launches the product without a timeline, with two stages and with three, for Nsight Compute; SECTIONS are
`--section Occupancy --section SchedulerStats --section WarpStateStats --section SpeedOfLight
--section ComputeWorkloadAnalysis`. What is kept of it are the rows with a metric, without the names of the machine.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab.author import kernel, pointer, ptx, u64
from ptxlab.kernels import wgmma_gemm
from ptxlab.kernels.parts.shapes import Shape
from ptxlab.kernels.wgmma_gemm import product
from ptxlab.measure import measure
from ptxlab.measure.data import Device
from ptxlab.measure.machine import commit, describe, require_torch

ROOT = Path(__file__).resolve().parent.parent
SPANS = 160  # of a warp: two of each K tile, so one tile of D of 4096
KEPT = 1  # blocks whose spans are written
SHAPES = {
    f"{stages} stages{', timeline' if spans else ''}": Shape(stages=stages, spans=spans)
    for stages in (2, 3)
    for spans in (0, SPANS)
}
READS = 64


def main() -> None:
    if sys.argv[1:] == ["--once"]:
        once()
        return
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "evidence" / "timeline"
    folder.mkdir(parents=True, exist_ok=True)
    torch = require_torch()
    about = {"command": "python benchmarks/timeline.py", "date": date.today().isoformat(), "commit": commit()}
    about["machine"] = describe(torch)
    for name, found in (("clocks", clocks()), ("spans", spans(torch))):
        (folder / f"{name}.json").write_text(json.dumps({**about, **found}) + "\n", encoding="utf-8")
    variants = {name: lambda a, b, d, shape=shape: product(a, b, d, shape) for name, shape in SHAPES.items()}
    entry = replace(wgmma_gemm.entry, variants=variants)
    sizes = [{"type": "bf16", "m": extent, "n": extent, "k": extent} for extent in (2048, 4096, 8192)]
    measure("timeline", entry, sizes, rounds=21).write(folder / "cost.json")


def once() -> None:
    """Launch the product with two stages, then with three."""
    arrays = wgmma_gemm.arrays(Device(require_torch(), 1), "bf16", 4096, 4096, 4096)
    for shape in SHAPES.values():
        if not shape.spans:
            product(**arrays, shape=shape).run(device="cuda")


def spans(torch: Any) -> dict[str, Any]:
    """The spans of the first block, of a product of 4096."""
    found: dict[str, Any] = {"size": 4096}
    for name, shape in SHAPES.items():
        if not shape.spans:
            continue
        arrays = wgmma_gemm.arrays(Device(torch, 1), "bf16", 4096, 4096, 4096)
        launch = product(**arrays, shape=shape)
        for _ in range(3):  # the first ones find cold caches and slow clocks
            launch.run(device="cuda")
        timeline = launch.kernel.timeline()
        kept = [asdict(span) for span in timeline.spans if span.block < KEPT]
        fields = list(kept[0])
        found[name] = {
            "unit": timeline.unit,
            "lost": timeline.lost,
            "fields": fields,
            "spans": [[span[field] for field in fields] for span in kept],
        }
    return found


@kernel(target="sm_90")
def empty_spans(*, clock: str = "clock64") -> None:
    """Spans with nothing in them, one after the other."""
    timeline = ptx.timeline(blocks=1, warps=1, spans=READS, clock=clock)
    for _ in ptx.range(READS, unroll=False):
        with timeline.span("nothing"):
            pass


@kernel(target="sm_90")
def reads(times: pointer[u64], *, clock: str = "clock64") -> None:
    """Reads of a clock, one after the other."""
    found = [getattr(ptx, clock) for _ in range(READS)]
    for number, time in enumerate(found):
        times[number] = time


@kernel(target="sm_90")
def changes(times: pointer[u64]) -> None:
    """The times at which `%globaltimer` is seen to change."""
    last = ptx.globaltimer
    for number in range(READS):
        with ptx.loop():
            now = ptx.globaltimer
            ptx.repeat_when(now == last)
        times[number] = now
        last.set(now)


def clocks() -> dict[str, Any]:
    """What reading a clock and recording a span takes, in its own unit, and the steps of the nanosecond clock."""
    import numpy as np

    found: dict[str, Any] = {"reads": {}, "empty spans": {}}
    for clock in ("clock64", "globaltimer"):
        times = np.zeros(READS, np.uint64)
        for _ in range(3):
            reads.specialize(clock=clock).launch(grid=1, block=1, args=[times], device="cuda")
            empty = empty_spans.specialize(clock=clock)
            empty.launch(grid=1, block=32, args=[], device="cuda")
        found["reads"][clock] = np.diff(times).tolist()
        starts = [span.start for span in empty.timeline().spans]
        found["empty spans"][clock] = np.diff(starts).tolist()
    times = np.zeros(READS, np.uint64)
    changes.launch(grid=1, block=1, args=[times], device="cuda")
    found["globaltimer changes by"] = np.diff(times).tolist()
    return found


if __name__ == "__main__":
    main()
