"""Blocks that exit while bulk copies are in flight: `python benchmarks/bulk_at_exit.py [FILE]`; needs a Hopper GPU.

One block fits on an SM, and the next one there writes to the same shared memory as soon as it starts. If an SM did not
keep the shared memory of a block until its bulk copies are done, stores would copy words of the next block, and loads
would overwrite them (`kernels/bulk_at_exit.ptx`). Both are counted.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

import ptxlab
from ptxlab.measure.machine import commit, describe, require_torch

ROOT = Path(__file__).resolve().parent.parent
KERNELS = Path(__file__).parent / "kernels" / "bulk_at_exit.ptx"
BYTES = 196608  # of shared memory
BLOCKS, ROUNDS = 2000, 10


def wrong_words(torch: Any, device: str, entry: str, wait: int, blocks: int) -> int:
    """How many words are not as they should be, after one launch."""
    how: dict[str, Any] = {"grid": blocks, "block": 128, "shared": BYTES, "device": device, "on_error": "raise"}
    kernel, where = ptxlab.load(KERNELS)[entry], "cuda" if device == "cuda" else "cpu"
    if entry == "loads":
        data, changed = (torch.full((n,), 0, dtype=torch.int32, device=where) for n in (BYTES // 4, 1))
        kernel.launch(args=[data - 7, changed], **how)
        return int(changed[0])
    out = torch.full((blocks, BYTES // 4), -1, dtype=torch.int32, device=where)
    kernel.launch(args=[out, wait], **how)
    wanted = torch.arange(blocks, dtype=torch.int32, device=where)[:, None]
    return int((out != wanted).sum())


def main() -> None:
    torch = require_torch()
    found: dict[str, Any] = {
        "command": "python benchmarks/bulk_at_exit.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": describe(torch),
        "blocks": BLOCKS,
        "bytes a block": BYTES,
        "wrong words of each launch": {},
    }
    cases = {"stores, no wait": ("stores", 0), "stores, wait_group.read": ("stores", 1), "loads, no wait": ("loads", 0)}
    for name, (entry, wait) in cases.items():
        counts = [wrong_words(torch, "cuda", entry, wait, BLOCKS) for _ in range(ROUNDS)]
        found["wrong words of each launch"][name] = counts
        print(f"{name}: {sum(counts)} wrong words in {ROUNDS} launches of {BLOCKS} blocks")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "evidence" / "bulk_at_exit.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
