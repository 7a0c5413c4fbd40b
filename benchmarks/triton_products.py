"""Triton's product of two f16 matrices without a GPU: for each generation of tensor cores, with detectors and without.

    python benchmarks/triton_products.py [FILE] [--size 1024] [--workers 2] [--times 5]

needs Triton. The kernel is that of a tutorial: tiles of 128 x 128 x 64 in three stages, by `mma.sync` on sm_80, `wgmma`
on sm_90a and `tcgen05` on sm_100a. Times are those of the processor, by all cores, and by the clock: the least of
several runs, after one that compiles. Every answer is compared with NumPy's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from datetime import date
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np

import ptxlab
from ptxlab.measure.machine import commit

BARS = {False: 1.0, True: 2.5}  # seconds by the clock on two cores: without and with detectors
WARPS = {"sm_80": 4, "sm_90a": 8, "sm_100a": 4}
TILE, DEPTH, STAGES, GROUP = 128, 64, 3, 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((given.size, given.size)).astype(np.float16) for _ in range(2))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    rows = []
    for target in WARPS:
        for detectors in (False, True):
            samples = []
            for _ in range(given.times + 1):
                c = np.full_like(a, np.nan)
                samples.append(measure(given, target, detectors, a, b, c))
            assert np.allclose(c.astype(np.float64), expected, rtol=2e-3, atol=0.1)
            core, clock = (min(times) for times in zip(*samples[1:], strict=True))
            bar = BARS[detectors] if given.workers == 2 and given.size == 1024 else None
            rows.append({"target": target, "detectors": detectors, "bar": bar, "seconds": samples[1:]})
            what = f"{target}, {'all' if detectors else 'no'} detectors"
            print(f"{what:24} {core:6.2f} s of a core, {clock:6.2f} s" + (f" (bar {bar})" if bar else ""), flush=True)
    if given.file is not None:
        about = {"date": date.today().isoformat(), "commit": commit(), "machine": platform.machine()}
        about |= {"cores": os.cpu_count(), "load": os.getloadavg(), "triton": version("triton")}
        about |= {"size": given.size, "workers": given.workers, "seconds": "of a core, by the clock"}
        given.file.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


def measure(
    given: argparse.Namespace, target: str, detectors: bool, a: np.ndarray, b: np.ndarray, c: np.ndarray
) -> tuple[float, float]:
    """The seconds of a core and by the clock that one launch takes."""
    blocks = (given.size // TILE) ** 2
    core, clock = time.process_time(), time.perf_counter()
    product = import_module("kernels.triton_product").product
    ptxlab.triton.run(
        product, (blocks,), a, b, c, given.size, TILE=TILE, DEPTH=DEPTH, GROUP=GROUP, num_stages=STAGES,
        num_warps=WARPS[target], target=target, detectors=detectors, workers=given.workers,
    )  # fmt: skip
    return time.process_time() - core, time.perf_counter() - clock


if __name__ == "__main__":
    main()
