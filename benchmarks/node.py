"""Several GPUs on two cores: a large all-reduce with all detectors, and what one GPU's launches pay for the others.

    python benchmarks/node.py [--against SOURCE] [--evidence FILE]

measures `all_reduce` of 1 MB on 8 ranks by each variant, with all detectors, on two workers. SOURCE is the `src` of
another checkout, such as that of the commit before there were several GPUs: the same kernels on one GPU then run in two
processes, one of each, that take turns; the ratios are of processor time, which a busy machine changes least.
"""

import argparse
import inspect
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "benchmarks" / "kernels"
VARIANTS = ("one_shot", "two_shot", "ring", "tree", "multimem")
RANKS, BYTES, BAR = 8, 1 << 20, 10.0
TURNS = 15


def all_reduces() -> list[dict[str, Any]]:
    """Wall and processor seconds of each variant, the second time: the first compiles it."""
    from ptxlab.kernels.collectives import Group, all_reduce

    rows = []
    rng = np.random.default_rng(0)
    data = [rng.integers(-9, 9, BYTES // 4).astype(np.float32) for _ in range(RANKS)]
    for variant in VARIANTS:
        for _ in range(2):
            node = ptxlab.node(RANKS)
            x, total = (
                [device.array(data[device.rank]) for device in node],
                [device.zeros(BYTES // 4) for device in node],
            )
            wall, cpu = time.perf_counter(), time.process_time()
            all_reduce(Group(node), x, total, variant)
            found = node.synchronize(on_error="collect").diagnostics
            row = {"variant": variant, "ranks": RANKS, "bytes": BYTES, "found": len(found)}
            row |= {"wall_seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu, "bar": BAR}
        row["is_right"] = all((one.numpy() == sum(data)).all() for one in total)
        rows.append(row)
    return rows


def launches() -> dict[str, Callable[[], Any]]:
    """Launches on one GPU, each with and without detectors, on one worker."""
    rng = np.random.default_rng(0)
    made: dict[str, Callable[[], Any]] = {}

    def add(name: str, kernel: Any, grid: Any, block: Any, args: list[Any]) -> None:
        without = (
            "detectors" if "detectors" in inspect.signature(kernel.launch).parameters else "checks"
        )  # its old name
        for title, how in ((name, {without: False}), (f"{name}, all detectors", {})):
            made[title] = partial(kernel.launch, grid, block, args, device="cpu", workers=1, **how)

    load = ptxlab.load
    a, b = rng.standard_normal((32, 2048), np.float32), rng.standard_normal((2048, 32), np.float32)
    add("SGEMM block", load(KERNELS / "sgemm.ptx")["sgemm"], 1, (32, 32), [a, b, np.zeros((32, 32), "f4"), 32, 2048])
    count = 1 << 19
    x, values = rng.random(1 << 15, np.float32), rng.integers(0, 1 << 15, count, np.uint32)
    wide = rng.random(count, np.float32)
    add("polynomial", load(KERNELS / "polynomial.ptx")["polynomial"], count // 256, 256, [wide, wide.copy()])
    irregular = load(KERNELS / "irregular.ptx")
    add("gathers", irregular["gather"], count // 256, 256, [x, values, np.zeros(count, "f4")])
    add("atomics", irregular["histogram"], count // 256, 256, [values, np.zeros(1024, "u4")])
    add("divergent loops", irregular["collatz"], count // 256, 256, [values, np.zeros(count, "u4")])
    size = 256
    halves = [rng.standard_normal((size, size)).astype(np.float16) for _ in range(2)]
    product = load(ROOT / "tests" / "emulate" / "kernels" / "ptx" / "mma.sm_80.ptx")["mma_pipelined"]
    add("256³ by mma.sync", product, (size // 32, size // 32), 128, [*halves, np.zeros((size, size), "f4"), size, size])
    return made


def serve() -> None:
    """Do what is asked for by name, line after line, and say how much processor time it took."""
    known = launches()
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        start = time.process_time()
        known[line.strip()]()
        print(time.process_time() - start, flush=True)


def beside(other: Path) -> list[dict[str, Any]]:
    """The same launches by this source and by another, in turns."""
    sources = {"now": ROOT / "src", "before": other}
    children = {
        name: subprocess.Popen(
            [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(source)},
        )
        for name, source in sources.items()
    }  # fmt: skip

    def ask(child: subprocess.Popen[str], name: str) -> float:
        assert child.stdin is not None
        assert child.stdout is not None
        print(name, file=child.stdin, flush=True)
        return float(child.stdout.readline())

    names = {}
    for name, child in children.items():
        assert child.stdout is not None
        names[name] = json.loads(child.stdout.readline())
    assert names["now"] == names["before"]
    rows = []
    for name in names["now"]:
        samples: dict[str, list[float]] = {which: [] for which in children}
        for turn in range(TURNS + 1):
            for which, child in children.items():
                spent = ask(child, name)
                samples[which] += [spent] if turn else []  # the first time it is compiled
        ratio = statistics.median(samples["now"]) / statistics.median(samples["before"])
        least = min(samples["now"]) / min(samples["before"])
        rows.append({"launch": name, "ratio": ratio, "ratio_of_least": least, "samples": samples})
        print(f"{name:32} {ratio:6.2f} times as long as before ({least:.2f} by the least)", flush=True)
    for child in children.values():
        assert child.stdin is not None
        child.stdin.close()
        child.wait()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, metavar="SOURCE")
    parser.add_argument("--evidence", type=Path, metavar="FILE")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    found: dict[str, Any] = {"machine": platform.machine(), "cores": os.cpu_count(), "load": os.getloadavg()}
    found["all_reduces"] = all_reduces()
    for row in found["all_reduces"]:
        print(f"{row['variant']:32} {row['wall_seconds']:6.2f} s, {row['cpu_seconds']:.2f} s of processor time")
    if given.against is not None:
        other = given.against.resolve()
        for name, folder in (("commit", ROOT), ("before", other)):
            asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
            found[name] = asked.stdout.strip()
        found["one_gpu"] = beside(other)
    if given.evidence is not None:
        given.evidence.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
