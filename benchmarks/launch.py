"""What a launch costs the program that makes it, beside others who launch kernels from Python.

`python benchmarks/launch.py` needs a GPU and prints a line for each way to launch; `--evidence` also writes what it
measured to evidence/launch.json. The ways take turns, each with a row of launches of one small kernel that is not
waited for before the row has ended; what is reported is the time that one launch keeps its caller.
"""

import argparse
import json
import random
import statistics
import time
from collections.abc import Callable
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import ptxlab
from ptxlab import gpu
from ptxlab.cli.samples import SAXPY
from ptxlab.device.options import LaunchOptions
from ptxlab.gpu.loading import compile_text
from ptxlab.launch import prepare
from ptxlab.measure.machine import commit, describe, require_torch

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "launch.json"
COUNT = 1024  # elements
GRID, BLOCK = COUNT // 256, 256
ROW = 200  # launches in a row
PARTS = 10  # launches of a longer graph

Action = Callable[[], Any]


def plain(x: Any, y: Any) -> Action:
    """`kernel.launch` as a user writes it."""
    kernel = ptxlab.parse(SAXPY)["saxpy"]
    return lambda: kernel.launch(GRID, BLOCK, [x, y, 2.0, COUNT], device="cuda", wait=False)


def prepared(x: Any, y: Any) -> Action:
    """The same with its arguments in place."""
    module = ptxlab.parse(SAXPY)
    options = LaunchOptions(GRID, BLOCK)
    return prepare(module["saxpy"], [x, y, 2.0, COUNT], options).launch


def replay(x: Any, y: Any, parts: int = 1) -> Action:
    """A graph that has one launch, or several."""
    kernel = ptxlab.parse(SAXPY)["saxpy"]
    with gpu.graph() as recorded:
        for _ in range(parts):
            kernel.launch(GRID, BLOCK, [x, y, 2.0, COUNT], device="cuda")
    return recorded.launch


def cuda_core(x: Any, y: Any) -> Action:
    """NVIDIA's own library for Python."""
    import numpy as np

    try:
        from cuda import core
    except ImportError:
        from cuda.core import experimental as core
    if not hasattr(core, "launch"):
        from cuda.core import experimental as core
    device = core.Device()
    device.set_current()
    code = core.ObjectCode.from_cubin(compile_text(SAXPY, "sm_90", None))
    kernel = code.get_kernel("saxpy")
    stream = device.default_stream
    config = core.LaunchConfig(grid=GRID, block=BLOCK)
    arguments = x.data_ptr(), y.data_ptr(), np.float32(2.0), np.uint32(COUNT)
    return lambda: core.launch(stream, config, kernel, *arguments)


def triton(x: Any, y: Any) -> Action:
    """The same kernel by Triton."""
    saxpy = import_module("kernels.triton_saxpy").saxpy  # Triton reads its kernels from files
    return lambda: saxpy[(GRID,)](x, y, 2.0, COUNT, SIZE=BLOCK)


def measure(rounds: int) -> dict[str, Any]:
    """Check what each way computes, then time them in turns, in another order each time."""
    torch = require_torch()
    x = torch.randn(COUNT, device="cuda")

    def torch_op(x: Any, y: Any) -> Action:
        return lambda: y.add_(x, alpha=2.0)

    ways: dict[str, tuple[Callable[[Any, Any], Action], int]] = {
        "cuda.core.launch": (cuda_core, 1),
        "prepared.launch()": (prepared, 1),
        "kernel.launch(wait=False)": (plain, 1),
        "graph of 1 launch": (replay, 1),
        f"graph of {PARTS} launches": (lambda x, y: replay(x, y, PARTS), PARTS),
        "torch add_": (torch_op, 1),
        "Triton": (triton, 1),
    }
    actions: dict[str, Action] = {}
    missing: dict[str, str] = {}
    for name, (make, parts) in ways.items():
        y = torch.ones(COUNT, device="cuda")
        try:
            action = make(x, y)
        except (ImportError, AttributeError, TypeError) as problem:
            missing[name] = f"{type(problem).__name__}: {problem}"
            continue
        y.fill_(1)
        torch.cuda.synchronize()
        action()
        torch.cuda.synchronize()
        expected = 1 + 2.0 * parts * x.double()
        assert torch.allclose(y.double(), expected, rtol=1e-5, atol=1e-5), f"{name} computes something else"
        actions[name] = action
    samples: dict[str, list[float]] = {name: [] for name in actions}
    order = list(actions)
    for number in range(rounds + 2):
        random.Random(number).shuffle(order)
        for name in order:
            action = actions[name]
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(ROW):
                action()
            taken = time.perf_counter() - started
            if number >= 2:  # the first two warm up
                samples[name].append(taken / ROW * 1e6)
    torch.cuda.synchronize()
    return {
        "about": {
            "date": date.today().isoformat(),
            "commit": commit(),
            "rounds": rounds,
            "row": ROW,
            **describe(torch),
        },
        "missing": missing,
        "ways": {name: row(taken, ways[name][1]) for name, taken in samples.items()},
    }


def row(samples: list[float], parts: int) -> dict[str, Any]:
    """Microseconds of a call, as median and quartiles."""
    low, median, high = statistics.quantiles(samples, n=4)
    return {
        "microseconds": round(median, 3),
        "quartiles": [round(low, 3), round(high, 3)],
        "launches": parts,
        "samples": [round(sample, 3) for sample in samples],
    }


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--evidence", action="store_true")
    parser.add_argument("--output", type=Path, default=EVIDENCE)
    options = parser.parse_args()
    found = measure(options.rounds)
    for name, problem in found["missing"].items():
        print(f"{name:28} {problem}")
    for name, way in found["ways"].items():
        low, high = way["quartiles"]
        print(f"{name:28} {way['microseconds']:8.2f} us ({low:.2f} to {high:.2f})")
    if options.evidence:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
