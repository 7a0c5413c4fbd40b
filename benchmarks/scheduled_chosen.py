"""How good the schedules are that `choose` takes: what was measured at random sizes, judged without a GPU.

    python benchmarks/scheduled_chosen.py

Of the products of f32 and bf16 matrices in `evidence/scheduled_*_judged.json`: how much of cuBLAS's speed the chosen
schedule has, how much the best one, and how much of the best the chosen one; for every second size, to which
`ptxlab.schedule.waves` was fitted, for the others, and for all.
"""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path

import scheduled_gemm as of_threads
import scheduled_tensor_gemm as of_tensor_cores

from ptxlab.schedule import Schedule, waves

EVIDENCE = Path(__file__).parent.parent / "evidence"
PRODUCTS = {
    "bf16": (
        "scheduled_tensor_gemm_judged.json",
        {n: of_tensor_cores.make(*t) for n, t in of_tensor_cores.TILES.items()},
    ),
    "f32": ("scheduled_gemm_judged.json", {name: made() for name, made in of_threads.TILES.items()}),
}


def judged(file: str, schedules: dict[str, Schedule]) -> list[tuple[float, float, float]]:
    """For each size: the chosen and the best beside cuBLAS, and the chosen beside the best."""
    found = []
    for row in json.loads((EVIDENCE / file).read_text())["rows"]:
        if row["what"] == "random":
            sizes = {size: row[size] for size in "mnk"}
            times = {name: statistics.median(each) for name, each in row["us"].items()}
            library = times.pop("cuBLAS")
            chosen = times[min(times, key=lambda name: waves(schedules[name], sizes))]
            found.append((library / chosen, library / min(times.values()), min(times.values()) / chosen))
    return found


def main() -> None:
    for type, (file, schedules) in PRODUCTS.items():
        found = judged(file, schedules)
        for what, some in {"fitted": found[::2], "others": found[1::2], "all": found}.items():
            chosen, best, both = (
                math.exp(statistics.mean(map(math.log, column))) for column in zip(*some, strict=True)
            )
            print(f"{type} {what:6} {len(some)} sizes: {chosen:.3f} of cuBLAS, best {best:.3f}; {both:.3f} of the best")


if __name__ == "__main__":
    main()
