"""Where wgmma looks for core matrices: `python benchmarks/core_matrices.py [FILE]` writes JSON; needs a Hopper GPU.

One wgmma (`kernels/core_matrices.ptx`) of tiles that are written with random strides between their core matrices, and
read with the same strides, with leading and stride offset exchanged, and with another stride offset. What the GPU
computes is compared with the product in float64, and with the emulator, bit by bit.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import date
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.isa.units.descriptor import Descriptor
from ptxlab.measure.machine import commit, describe, require_torch

ROOT = Path(__file__).resolve().parent.parent
KERNEL = Path(__file__).parent / "kernels" / "core_matrices.ptx"
CORE = 128  # bytes: 8 rows of 16
TILES = 300
NAMED = {"columns of core matrices, as the text has it": (1024, 128), "rows of core matrices": (128, 256)}
READ = ("the same", "exchanged", "another stride offset")


def are_apart(leading: int, stride: int) -> bool:
    """Whether no two of the 8 by 2 core matrices of A share bytes, and all are in its 32 KB."""
    starts = sorted(row * stride + column * leading for row in range(8) for column in range(2))
    return starts[-1] + CORE <= 32768 and all(b - a >= CORE for a, b in pairwise(starts))


def strides(count: int, seed: int = 0) -> list[tuple[int, int]]:
    """Pairs of leading and stride offset: the two named ones, then random ones."""
    draw, found = random.Random(seed), list(NAMED.values())
    while len(found) < count:
        pair = 16 * draw.randint(1, 252), 16 * draw.randint(1, 252)
        if are_apart(*pair):
            found.append(pair)
    return found


def product(a: Any, b: Any, written: tuple[int, int], read: tuple[int, int], device: str) -> Any:
    """What the kernel computes of tiles that are written with these strides and read with those."""
    d = np.zeros((64, 16), np.float32)
    bits = Descriptor(0, *read).encode()
    ptxlab.load(KERNEL)["core_matrices"].launch(1, 128, [a, b, d, *written, bits], device=device, on_error="collect")
    return d


def compare(device: str = "cuda", count: int = TILES) -> list[dict[str, Any]]:
    """A row for each tile: its strides, and what came of reading it in each way."""
    rng = np.random.default_rng(0)
    found = []
    for leading, stride in strides(count):
        a, b = rng.normal(size=(64, 16)).astype(np.float16), rng.normal(size=(16, 16)).astype(np.float16)
        wanted = a.astype(np.float64) @ b.astype(np.float64).T
        other = stride + 16 * int(rng.integers(1, 64))
        row: dict[str, Any] = {"leading": leading, "stride": stride, "other stride": other}
        for name, read in zip(READ, ((leading, stride), (stride, leading), (leading, other)), strict=True):
            ours, theirs = (product(a, b, (leading, stride), read, where) for where in ("cpu", device))
            row[name] = {
                "is right": bool(np.allclose(theirs, wanted, rtol=1e-3, atol=1e-3)),
                "as emulated": ours.tobytes() == theirs.tobytes(),
            }
        found.append(row)
    return found


def main() -> None:
    machine = describe(require_torch())
    tiles = compare()
    found = {
        "command": "python benchmarks/core_matrices.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": machine,
        "tiles": tiles,
    }
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "evidence" / "core_matrices.json"
    path.write_text(json.dumps(found) + "\n", encoding="utf-8")
    for name in READ:
        counts = [sum(tile[name][what] for tile in tiles) for what in ("is right", "as emulated")]
        print(f"read with {name}: {counts[0]} of {len(tiles)} right, {counts[1]} as emulated")


if __name__ == "__main__":
    main()
