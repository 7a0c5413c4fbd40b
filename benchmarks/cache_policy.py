"""What `L2::evict_last` on loads does to a kernel that reads and writes, and to the one after it.

    python benchmarks/cache_policy.py [FILE]        writes JSON, needs a GPU and torch

The gallery's copy of 512 MiB, with and without the policy: the same data again and again, nine sets in turn, and after
the L2 was filled with something else. If the policy were faster only because the cache keeps data from one run to the
next, it would not be so with nine sets. Then a plain copy of other data, alone and right after each of the two.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from ptxlab.gpu.driver import call
from ptxlab.kernels import copy
from ptxlab.measure.data import Device
from ptxlab.measure.interleaving import take_turns
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.session import HEAD_START, together

ROOT = Path(__file__).resolve().parent.parent
N = 1 << 27
SETS = 9
ROUNDS = 21
VARIANTS = {"plain": copy.HINTS["16 bytes a thread"], "evict_last": copy.HINTS["L2::evict_last for loads"]}

Action = Callable[[], Any]


def main() -> None:
    torch = require_torch()
    data = [copy.arrays(Device(torch, seed), N) for seed in range(SETS + 1)]
    *sets, other = data
    filler = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def timed(before: list[Action], runs: list[Action]) -> Callable[[], float]:
        def seconds() -> float:
            call("cuCtxResetPersistingL2Cache")  # every sample begins with a cache that keeps nothing
            torch.cuda._sleep(HEAD_START)
            for action in before:
                action()
            begin.record(stream)
            for action in runs:
                action()
            end.record(stream)
            end.synchronize()
            return float(begin.elapsed_time(end)) / 1e3 / len(runs)

        return seconds

    timers = {}
    with torch.cuda.stream(stream):
        copies = {
            name: [together([copy.by_vectors(**arrays, hints=hints)], stream) for arrays in sets]
            for name, hints in VARIANTS.items()
        }
        after = together([copy.by_vectors(**other)], stream)
        for name, each in copies.items():
            timers[f"{name}: one set again and again"] = timed([], each[:1] * SETS)
            timers[f"{name}: nine sets in turn"] = timed([], each)
            timers[f"{name}: after the cache was filled"] = timed([filler.zero_], each[:1])
            timers[f"a plain copy after: {name}"] = timed(each[:2], [after])
        for timer in timers.values():
            timer()
        samples = take_turns(timers, ROUNDS)
    found = {
        "command": "python benchmarks/cache_policy.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": describe(torch),
        "bytes": 8 * N,
        "median seconds": {name: statistics.median(taken) for name, taken in samples.items()},
        "samples": samples,
    }
    text = json.dumps(found, indent=1) + "\n"
    Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "evidence" / "cache_policy.json").write_text(text)
    for name, seconds in found["median seconds"].items():
        print(f"{name:45s} {seconds * 1e6:7.1f} µs  {8 * N / seconds / 1e9:5.0f} GB/s")


if __name__ == "__main__":
    main()
