"""What `timeline=True` costs on a GPU, and whether kernels that record compute the same bits.

    PYTHONPATH=src:. python3 -m tests.gpu.timelines --evidence

Each kernel runs as it is and as one that records, in turns, on the same arrays; the times are those of the GPU, the
least of each. `--evidence` writes evidence/timelines.json, `--device cpu` tries it with small sizes on the emulator.
"""

import argparse
import re
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab import kernels
from ptxlab.launch.launches import Launch
from ptxlab.measure import Host
from ptxlab.measure.data import Device
from ptxlab.timelines import Timeline
from tests.corpus import produced
from tests.gpu.triton import LAUNCHES, SHARED, arguments, keep

ROOT = Path(__file__).resolve().parents[2]
TURNS = 5
SPANS = 128
# Of each kernel of the gallery, its variant and the size that a GPU runs.
LONG = {"type": "bf16", "batch": 4, "heads": (16, 16), "length": 4096, "size": 128, "causal": False}
MEASURED: list[tuple[str, str, dict[str, Any]]] = [
    ("wgmma_gemm", "wgmma", {"type": "bf16", "m": 4096, "n": 4096, "k": 4096}),
    ("mma_gemm", "mma.sync", {"type": "f16", "m": 4096, "n": 4096, "k": 4096}),
    ("wgmma_attention", "wgmma", LONG),
    ("wgmma_attention", "wgmma", LONG | {"batch": 1, "heads": (8, 8), "length": 1024, "causal": True}),
]
TRITON = ("matmul.f16.sm_90a", "attention.forward.sm_90a")


def gallery(name: str, variant: str, size: dict[str, Any], device: str) -> dict[str, Any]:
    """A kernel of the gallery, with and without a timeline."""
    entry = kernels.entry(name)
    if device == "cpu":
        data: Any = Host(3)
        size = dict(entry.small[0])
    else:
        data = Device(import_module("torch"), 3)
    arrays = entry.arrays(data, **size)
    launches = entry.launches(variant, arrays)
    results = [one for one in arrays.values() if hasattr(one, "shape")]
    return {"kernel": name, "size": size} | compare(launches, results, device)


def triton(name: str, device: str) -> dict[str, Any]:
    """A kernel that Triton compiled."""
    (case,) = (case for case in produced() if case.name == name and "triton" in case.producer)
    module = ptxlab.parse(re.sub(r"\.version 9\.\d", ".version 8.8", case.text(), count=1), name=f"{name}.ptx")
    kernel = module[module.entries[0]]
    required = kernel.directive("reqntid")
    assert required is not None
    grid, args = arguments(LAUNCHES[name.rpartition(".")[0]])
    launch = Launch(kernel, grid, int(required.arguments[0]), args, SHARED)
    arrays = [one for one in args if isinstance(one, np.ndarray)]
    return {"kernel": f"{name}, by Triton", "size": {}} | compare([launch], arrays, device)


def compare(launches: Sequence[Launch], arrays: Sequence[Any], device: str) -> dict[str, Any]:
    """Run launches in turns, with and without a timeline."""
    before = [_copy(one) for one in arrays]
    times: dict[bool, list[float]] = {False: [], True: []}
    left: dict[bool, list[bytes]] = {}
    timeline: Timeline | None = None
    for _ in range(TURNS if device != "cpu" else 1):
        for timed in (False, True):
            for array, content in zip(arrays, before, strict=True):
                array[...] = content
            found = [
                launch.run(device=device, detectors=False, timeline=SPANS if timed else False) for launch in launches
            ]
            times[timed].append(sum(one.seconds for one in found))
            if timed not in left:
                left[timed] = [_bytes(array) for array in arrays]
            last = max(found, key=lambda one: one.seconds)
    started = time.perf_counter()
    timeline = last.timeline
    assert timeline is not None
    seconds = {timed: min(each[1:] or each) for timed, each in times.items()}
    return {
        "equal": left[False] == left[True],
        "microseconds": round(seconds[False] * 1e6, 1),
        "with_timeline": round(seconds[True] * 1e6, 1),
        "ratio": round(seconds[True] / seconds[False], 3),
        "spans": len(timeline.spans),
        "lost": timeline.lost,
        "unit": timeline.unit,
        "seconds_to_read": round(time.perf_counter() - started, 1),
        "roles": sorted({span.role for span in timeline.spans}),
    }


def _copy(array: Any) -> Any:
    return array.clone() if hasattr(array, "clone") else array.copy()


def _bytes(array: Any) -> bytes:
    if hasattr(array, "clone"):
        array = array.contiguous().reshape(-1).view(import_module("torch").uint8).cpu().numpy()
    return bytes(array.tobytes())


def main() -> int:
    """Run all of them, print a line for each, and keep the evidence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--evidence", action="store_true", help="write evidence/timelines.json")
    parser.add_argument("--output", type=Path, default=ROOT / "evidence" / "timelines.json")
    options = parser.parse_args()
    started = time.perf_counter()
    rows = []
    for name, variant, size in MEASURED:
        rows.append(gallery(name, variant, size, options.device))
        print(rows[-1], flush=True)
    for name in TRITON:
        rows.append(triton(name, options.device))
        print(rows[-1], flush=True)
    if options.evidence:
        seconds = time.perf_counter() - started
        keep(options.output, "python -m tests.gpu.timelines", seconds, {"kernels": len(rows), "spans": SPANS}, rows)
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
