"""What a training step and a prefill of a short prompt cost the host, by our functions and by torch, both compiled.

    python benchmarks/host_time.py [--old FOLDER] [--seconds 40]   needs a GPU and torch, writes evidence/host_time.json

The block is that of Llama-3-8B of `model.py`, with 300 positions. `--old` is another tree of ptxlab, as `git archive`
writes it, whose functions are a contender, too. Each contender is a process that compiles, all at once, and then waits
for its turn; others do nothing meanwhile. `issue` is the time until the host has started everything, `total` until the
GPU is done, and `gpu` what it takes if all is started while it is kept busy: where `total` is near `issue`, the host is
what limits. Below are the parts of one call of `matmul`, of the form of the output product, in microseconds.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contenders import ROOT, ask, keep, serve, start

MODEL, LENGTH, STEPS, BUSY = "Llama-3-8B", 300, 12, 60_000_000  # BUSY: cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.contender:
        torch: Any = __import__("torch")
        actions, parts = prepare(torch, "torch" if given.contender == "torch" else "ptxlab")
        serve({"ready": dict, "measure": lambda: measure(torch, actions), "parts": parts})
        return
    trees = {"ptxlab": ROOT, **({"old": given.old.resolve()} if given.old else {}), "torch": ROOT}
    running = {name: start(__file__, name, tree) for name, tree in trees.items()}
    found: dict[str, dict[str, list[float]]] = {name: {} for name in running}
    for process in running.values():
        ask(process, "ready")
    end = time.monotonic() + given.seconds
    turn = 0
    while turn < 3 or time.monotonic() < end:
        for name in list(running)[:: 1 if turn % 2 else -1]:
            for what, value in ask(running[name], "measure").items():
                found[name].setdefault(what, []).append(value)
        turn += 1
    parts: dict[str, dict[str, float]] = {}
    for name in [name for name in running if name != "torch"] * 5:
        for what, value in ask(running[name], "parts").items():
            parts.setdefault(name, {}).setdefault(what, value)
            parts[name][what] = min(parts[name][what], value)
    for process in running.values():
        process.communicate("", timeout=30)
    medians = {name: {what: statistics.median(one) for what, one in each.items()} for name, each in found.items()}
    print(f"{turn} turns of {STEPS} steps each; milliseconds, medians")
    print(f"{'':24}" + "".join(f"{name:>10}" for name in medians))
    for what in medians["ptxlab"]:
        print(f"{what:24}" + "".join(f"{each[what]:10.3f}" for each in medians.values()))
    for what in next(iter(parts.values())):
        print(f"{what:24}" + "".join(f"{each[what]:10.2f}" for each in parts.values()))
    keep("host_time.json", {"milliseconds": found, "microseconds": parts})


def prepare(torch: Any, name: str) -> tuple[dict[str, Callable[[], Any]], Callable[[], dict[str, float]]]:
    """What is measured, compiled, and what measures the parts of a call."""
    import model

    block = model.Block(torch, model.MODELS[MODEL])
    x = torch.randn(1, LENGTH, block.model.width, device="cuda").bfloat16()
    cos, sin = model.angles(torch, block.model, torch.arange(LENGTH, device="cuda"))
    function = model.compiled(torch, block.prefill, "default")[name]
    given = x.clone().requires_grad_()
    leaves = [given, *block.weights]

    def prefill() -> None:
        with torch.no_grad():
            function(x, cos, sin)

    def step() -> None:
        for one in leaves:
            one.grad = None
        function(given, cos, sin).float().square().mean().backward()

    actions = {"prefill": prefill, "training step": step}
    for action in actions.values():
        for _ in range(3):
            action()
    torch.cuda.synchronize()
    return actions, lambda: parts_of_a_call(torch, block, x)


def measure(torch: Any, actions: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Milliseconds of each."""
    found = {}
    for name, action in actions.items():
        action()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(STEPS):
            action()
        issued = time.perf_counter()
        torch.cuda.synchronize()
        found[f"{name}, issue"] = (issued - begin) / STEPS * 1e3
        found[f"{name}, total"] = (time.perf_counter() - begin) / STEPS * 1e3
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(BUSY)
        start.record()
        for _ in range(STEPS):
            action()
        end.record()
        end.synchronize()
        found[f"{name}, gpu"] = start.elapsed_time(end) / STEPS
    return found


def parts_of_a_call(torch: Any, block: Any, x: Any) -> dict[str, float]:
    """Microseconds of a call in a compiled graph, of that of the function, and of what it does."""
    from ptxlab import kernels
    from ptxlab.ops import products

    weights = block.o.detach().t()
    operator = torch.ops.ptxlab
    calls = products._calls
    with torch.no_grad():
        kernels.matmul(x, weights)
        (kept,) = [one for key, one in calls.kept.items() if one.new and tuple(one.new[0][1]) == tuple(x.shape)][:1]
        arrays, addresses = [x, weights, None], [x.data_ptr(), weights.data_ptr(), torch.empty_like(x).data_ptr()]
        named = {"bias": None, "activation": None, "residual": None, "allow_tf32": False}
        stream, out = torch.cuda.current_stream().cuda_stream, torch.empty_like(x[0])
        actions: dict[str, Callable[[], Any]] = {
            "with its gradient": lambda: operator.matmul.default(x, weights, **named),
            "in a graph": lambda: operator.matmul_without_gradient.default(x, weights, **named),
            "the function": lambda: products.matmul_of_tensors(x, weights),
            "forms": lambda: calls.describe(arrays, []),
            "a new array": lambda: kept.make(*kept.new[0][1:]),
            "stream": lambda: kept.stream(kept.gpu),
            "start": lambda: kept.ready.start(addresses, stream),
            "torch.mm, out": lambda: torch.mm(x[0], weights, out=out),
        }
        return {name: microseconds(torch, action) for name, action in actions.items()}


def microseconds(torch: Any, action: Callable[[], Any], count: int = 100) -> float:
    """What the host takes for a call, while the GPU has more to do."""
    found = []
    for _ in range(7):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            action()
        found.append((time.perf_counter() - begin) / count * 1e6)
    torch.cuda.synchronize()
    return min(found)


if __name__ == "__main__":
    main()
