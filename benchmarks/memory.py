"""How long a load takes on the GPU, and what shared memory moves: `python benchmarks/memory.py [FILE]` writes JSON.

Cycles are those of the SM's own clock. A step of the chain in global memory has an addition of addresses besides the
load, a few cycles. `cp.async` with `.ca` and with `.cg` take turns, over memory and over what is in the L2 cache.
"""

from __future__ import annotations

import json
import statistics
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.measure import Launch
from ptxlab.measure.interleaving import take_turns
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.session import timer

ROOT = Path(__file__).resolve().parent.parent
KERNELS = Path(__file__).parent / "kernels" / "memory.ptx"
LINE = 128  # bytes from one link of a chain to the next


def chain(length: int, seed: int = 0) -> Any:
    """Offsets that lead through `length` bytes in random order and back, a link for each line of a cache."""
    links = length // LINE
    order = np.random.default_rng(seed).permutation(links).astype(np.uint64) * LINE
    memory = np.zeros(length // 8, np.uint64)
    memory[order // 8] = np.roll(order, -1)
    return memory


def chase(length: int, steps: int, device: str) -> float:
    """Cycles for one load, of a chain through so many bytes."""
    cycles = np.zeros(2, np.uint64)
    ptxlab.load(KERNELS)["chase"].launch(1, 1, [chain(length), steps, cycles], device=device)
    return float(cycles[0]) / steps


def chase_after_another_warp(length: int, steps: int, device: str) -> float:
    """Cycles for one load of what another warp of the same SM has just read."""
    cycles = np.zeros(3, np.uint64)
    kernel = ptxlab.load(KERNELS)["chase_after_another_warp"]
    kernel.launch(1, 64, [chain(length), steps, cycles], device=device)
    return float(cycles[0]) / steps


def chase_shared(steps: int, device: str) -> float:
    """Cycles for one load from shared memory."""
    cycles = np.zeros(2, np.uint64)
    ptxlab.load(KERNELS)["chase_shared"].launch(1, 1, [steps, cycles], device=device)
    return float(cycles[0]) / steps


def stream_shared(steps: int, device: str) -> float:
    """Bytes that an SM reads from its shared memory in a cycle."""
    cycles = np.zeros((1024, 2), np.uint64)
    ptxlab.load(KERNELS)["stream_shared"].launch(1, 1024, [steps, cycles], device=device)
    return 1024 * 64 * steps / float(cycles[:, 0].max())


def measure(device: str = "cuda") -> dict[str, float]:
    """Cycles a load, where it finds its data; and bytes a cycle."""
    return {
        "L1 cache, cycles": chase(1 << 14, 1 << 7, device),
        "L1 cache, filled by another warp, cycles": chase_after_another_warp(1 << 14, 1 << 7, device),
        "L2 cache, cycles": chase(1 << 22, 1 << 15, device),
        "memory, cycles": chase(1 << 30, 1 << 12, device),
        "shared memory, cycles": chase_shared(1 << 12, device),
        "shared memory, bytes a cycle and SM": stream_shared(1 << 10, device),
    }


def copy_async(caching: str, source: Any, sums: Any, blocks: int, steps: int) -> Launch:
    """The launch that copies 4096 bytes a block and step to shared memory, by `.ca` or `.cg`."""
    text = KERNELS.read_text(encoding="utf-8").replace("cp.async.cg", f"cp.async.{caching}")
    return Launch(ptxlab.parse(text)["copy_async"], blocks, 256, [source, steps, sums])


def copies(torch: Any, blocks: int) -> dict[str, Any]:
    """Bytes that copies to shared memory move in a second, by caching; samples and medians."""
    stream = torch.cuda.Stream()
    found: dict[str, Any] = {}
    for place, steps, again in (("memory", 1024, 1), ("L2 cache", 16, 16)):
        length = blocks * steps * 4096
        source = torch.zeros(length, dtype=torch.uint8, device="cuda")
        sums = torch.zeros(blocks * 256, dtype=torch.int32, device="cuda")
        timers = {}
        with torch.cuda.stream(stream):
            for caching in ("ca", "cg"):
                action = copy_async(caching, source, sums, blocks, steps).prepare(stream).launch
                timers[caching] = timer(torch, [action] * again, stream)
            for caching, taken in take_turns(timers, 21).items():
                rates = [length / seconds for seconds in taken]
                found[f"cp.async.{caching} from {place}"] = {"median": statistics.median(rates), "samples": rates}
    return found


def main() -> None:
    torch = require_torch()
    machine = describe(torch)
    found = {
        "command": "python benchmarks/memory.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "gpu": machine["gpu"],
        "multiprocessors": machine["multiprocessors"],
        "machine": machine,
        "measured": measure(),
        "bytes a second": copies(torch, 4 * machine["multiprocessors"]),
    }
    text = json.dumps(found, indent=1) + "\n"
    Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "evidence" / "memory.json").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
