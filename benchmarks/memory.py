"""How long a load takes on the GPU, and what shared memory moves: `python benchmarks/memory.py [FILE]` writes JSON.

Cycles are those of the SM's own clock. A step of the chain in global memory has an addition of addresses besides the
load, a few cycles.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab import gpu
from ptxlab.measure.machine import commit

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
        "L1 cache, cycles": chase(1 << 14, 1 << 10, device),
        "L2 cache, cycles": chase(1 << 22, 1 << 15, device),
        "memory, cycles": chase(1 << 30, 1 << 12, device),
        "shared memory, cycles": chase_shared(1 << 12, device),
        "shared memory, bytes a cycle and SM": stream_shared(1 << 10, device),
    }


def main() -> None:
    first = gpu.gpu(0)
    found = {
        "command": "python benchmarks/memory.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "gpu": first.name,
        "multiprocessors": first.sm_count,
        "measured": measure(),
    }
    text = json.dumps(found, indent=1) + "\n"
    Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "evidence" / "memory.json").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
