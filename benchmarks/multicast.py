"""What multicast copies need of mbarriers, and what they save: `python benchmarks/multicast.py [FILE]` writes JSON.

`kernels/multicast.ptx` on a GPU, with the right counts and with wrong ones; its waits give up, so none of them hangs.
Then the time of a launch that fills shared memory from the L2 cache, by blocks that each copy all of a tile and by
clusters in which each block copies a part for all.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import ptxlab
from ptxlab.measure import Launch
from ptxlab.measure.interleaving import take_turns
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.session import timer

ROOT = Path(__file__).resolve().parent.parent
KERNEL = Path(__file__).parent / "kernels" / "multicast.ptx"
ROWS = 128  # of a tile of 16 KB
ROUNDS = 21
RUNS = 100
LIMIT = 1 << 16


@dataclass(frozen=True)
class Case:
    """Counts and arrivals; `count` 0 is the size of the cluster."""

    count: int = 1
    everywhere: int = 0
    all_readers: int = 1
    delay: int = 0


CASES = {
    "full: 1 arrival with all bytes; empty: readers of all blocks": Case(),
    "full: an arrival of each block; empty: readers of all blocks": Case(0, everywhere=1),
    "full: the count of the cluster, 1 arrival": Case(0),
    "empty: readers of its own block": Case(all_readers=0),
    "empty: readers of its own block, one block late by 10,000 cycles": Case(all_readers=0, delay=10000),
    "empty: readers of all blocks, one block late by 10,000 cycles": Case(delay=10000),
}


def launch(
    words: Any, found: Any, case: Case, cluster: int, blocks: int, rounds: int, checks: int = 1, limit: int = LIMIT
) -> Launch:
    """The launch of a case; `words` are their own numbers, `found` gets four words a block."""
    map = ptxlab.tensor_map(words, box=(ROWS // cluster, 32))
    tiles = len(words) // ROWS
    counts = [case.count or cluster, case.everywhere, case.all_readers, checks, case.delay, limit]
    kernel = ptxlab.load(KERNEL)["multicast"]
    return Launch(kernel, blocks, 64, [map, found, rounds, tiles, *counts], cluster=cluster)


def outcomes(torch: Any, words: Any, blocks: int) -> dict[str, Any]:
    """What became of runs of each case, for clusters of two and four."""
    kept: dict[str, Any] = {}
    for cluster in (2, 4):
        for name, case in CASES.items():
            runs = []
            for _ in range(RUNS if case.count or case.everywhere else 5):
                found = torch.full((blocks, 4), -1, dtype=torch.int32, device="cuda")
                launch(words, found, case, cluster, blocks, rounds=64).run(device="cuda")
                torch.cuda.synchronize()
                got, wrong, gave_up, size = (column.tolist() for column in found.T)
                assert set(size) == {cluster}
                runs.append([min(got), max(got), sum(wrong), sum(gave_up)])
            kept[f"{cluster} blocks, {name}"] = runs
    return kept


def seconds(torch: Any, words: Any, blocks: int, rounds: int) -> dict[str, list[float]]:
    """Of launches that put the same number of tiles into shared memory, with clusters of 1, 2 and 4 blocks."""
    stream = torch.cuda.Stream()
    found = torch.zeros((blocks, 4), dtype=torch.int32, device="cuda")
    timers: dict[str, Callable[[], float]] = {}
    with torch.cuda.stream(stream):
        for cluster in (1, 2, 4):
            one = launch(words, found, Case(), cluster, blocks, rounds, checks=0, limit=1 << 24)
            timers[str(cluster)] = timer(torch, [one.prepare(stream).launch], stream)
        return take_turns(timers, ROUNDS)


def main() -> None:
    torch = require_torch()
    machine = describe(torch)
    blocks, rounds = 2 * machine["multiprocessors"], 256
    words = torch.arange(512 * ROWS * 32, dtype=torch.int32, device="cuda").reshape(-1, 32)  # 8 MB: in the L2 cache
    found = {
        "command": "python benchmarks/multicast.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": machine,
        "outcomes": ["fewest tiles of a block", "most tiles of a block", "wrong tiles", "blocks that gave up"],
        "rounds": 64,
        "runs": outcomes(torch, words, 8),
        "bytes": blocks * rounds * ROWS * 128,
        "seconds": seconds(torch, words, blocks, rounds),
    }
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "evidence" / "multicast.json"
    path.write_text(json.dumps(found) + "\n", encoding="utf-8")
    for name, runs in found["runs"].items():
        print(f"{name:80} right in {sum(run == [64, 64, 0, 0] for run in runs)} of {len(runs)}; last {runs[-1]}")
    for cluster, taken in found["seconds"].items():
        median = statistics.median(taken)
        print(f"clusters of {cluster}: {median * 1e6:.1f} µs, {found['bytes'] / median / 1e12:.2f} TB/s")


if __name__ == "__main__":
    main()
