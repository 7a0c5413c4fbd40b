"""Random small calls of every function of `ptxlab.kernels`, with all options, beside float64 and NumPy.

    python -m tests.ops.random_calls [--count 200] [--seed 1] [--functions matmul,softmax] [--device cuda]

Arrays are of odd sizes, transposed, in wider rows, at other alignments; results are new arrays or `out`. On the CPU the
emulator runs each call with all detectors. On a GPU each is called three times, the last time in a graph that is
replayed with other data.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

from tests.ops import random_attentions, random_products, random_rows
from tests.ops.drawing import Draw, Drawn

FUNCTIONS: dict[str, Callable[[Draw], Drawn]] = {
    name: getattr(module, name)
    for module, names in (
        (random_products, "matmul gated_matmul grouped_matmul scaled_matmul quantized_matvec"),
        (random_attentions, "attention attention_backward decode_attention prefill_attention"),
        (random_rows, "softmax layer_norm rms_norm cross_entropy"),
    )
    for name in names.split()
}


def wrong(found: Any, wanted: Any, rounding: float, most: float, least: float) -> str:
    """How a result differs from the exact one by more than it may; nothing if it does not."""
    if found.shape != wanted.shape:
        return f"{found.shape} instead of {wanted.shape}"
    finite = np.isfinite(wanted)
    given = found.astype(np.float64)
    if not np.array_equal(np.isnan(given[~finite]), np.isnan(wanted[~finite])):
        return "not a number at other places"
    if not finite.any():
        return ""
    size = math.sqrt(float((wanted[finite] ** 2).mean()))
    allowed = rounding * abs(wanted) + most * size + least
    off = np.where(finite, abs(given - wanted), 0) / allowed
    off = np.where(np.isnan(off), np.inf, off)
    if off.max() <= 1:
        return ""
    place = np.unravel_index(off.argmax(), off.shape)
    most_off = f"most at {tuple(map(int, place))}: {given[place]} instead of {wanted[place]}"
    return f"{int((off > 1).sum())} of {off.size} elements, {most_off}, {off.max():.2f} of what is allowed"


def results_of(found: Any) -> list[Any]:
    return [*found] if isinstance(found, tuple) else [found]


def on_emulator(drawn: Drawn) -> Iterator[str]:
    """What is wrong with a call on this machine."""
    wanted = drawn.exact(**drawn.arrays)
    more = {} if drawn.out is None else {"out": drawn.out}
    found = results_of(drawn.function(**drawn.arrays, **drawn.options, **more))
    if drawn.out is not None and found[0] is not drawn.out:
        yield "the result is not `out`"
    yield from differences(drawn, [np.asarray(one) for one in found], wanted)


def on_gpu(drawn: Drawn) -> Iterator[str]:
    """What is wrong with it on a GPU: when it is prepared, when that is used again, and in a graph."""
    torch: Any = import_module("torch")
    wanted = drawn.exact(**drawn.arrays)

    def placed() -> dict[str, Any]:
        given = {name: tensor_of(torch, one) for name, one in drawn.arrays.items()}
        if drawn.out is not None:
            over = [name for name, one in drawn.arrays.items() if one is drawn.out]
            given["out"] = given[over[0]] if over else tensor_of(torch, drawn.out)
        return given

    def problems(when: str, found: Any, given: dict[str, Any]) -> Iterator[str]:
        torch.cuda.synchronize()
        results = results_of(found)
        if "out" in given and results[0] is not given["out"]:
            yield f"{when}: the result is not `out`"
        arrays = [one.detach().double().cpu().numpy() for one in results]
        yield from (f"{when}: {one}" for one in differences(drawn, arrays, wanted))

    for when in ("first call", "second call"):
        given = placed()
        yield from problems(when, drawn.function(**given, **drawn.options), given)
    given = placed()
    kept = {name: one.clone() for name, one in given.items()}
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = drawn.function(**given, **drawn.options)
    for when in ("graph", "graph again"):
        for name, one in kept.items():
            given[name].copy_(one)
        graph.replay()
        yield from problems(when, found, given)


def tensor_of(torch: Any, array: Any) -> Any:
    """A tensor of the GPU with the same numbers, strides and alignment."""
    whole = {1: np.uint8, 2: np.int16, 4: np.int32, 8: np.int64}[array.itemsize]
    numbers = torch.from_numpy(np.ascontiguousarray(array).view(whole)).cuda()
    steps = [step // array.itemsize for step in array.strides]
    first = array.ctypes.data % 64 // array.itemsize
    span = 1 + sum((extent - 1) * step for extent, step in zip(array.shape, steps, strict=True)) if array.size else 1
    found = torch.zeros(first + span, dtype=numbers.dtype, device="cuda").as_strided(array.shape, steps, first)
    return found.copy_(numbers).view(getattr(torch, str(array.dtype)))


def differences(drawn: Drawn, found: list[Any], wanted: list[Any]) -> Iterator[str]:
    if len(found) != len(wanted):
        yield f"{len(found)} results instead of {len(wanted)}"
    for number, (one, exact) in enumerate(zip(found, wanted, strict=False)):
        if problem := wrong(one, exact, drawn.rounding, drawn.most, drawn.least):
            yield f"result {number}: {problem}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    given = parser.parse_args()
    run = on_gpu if given.device == "cuda" else on_emulator
    bad = 0
    for name in given.functions.split(","):
        start, refused, failed = time.process_time(), {}, 0
        for number in range(given.seed, given.seed + given.count):
            drawn = FUNCTIONS[name](Draw(number))
            text = str(drawn)
            try:
                problems = [*run(drawn)]
            except (TypeError, ValueError) as problem:
                refused.setdefault(str(problem).split(":")[0][:100], []).append((number, text))
                continue
            except Exception as problem:  # a finding of a detector, or a failure: all are to be seen
                problems = [f"{type(problem).__name__}: {problem}"[:1500]]
                if not hasattr(problem, "diagnostics"):
                    problems.append(traceback.format_exc()[-1500:])
            for one in problems:
                print(f"{name} {number}: {one}\n    {text}", flush=True)
            failed += bool(problems)
        bad += failed
        print(f"{name:20} {given.count} calls, {failed} wrong, {time.process_time() - start:.0f} s", flush=True)
        for reason, calls in refused.items():
            print(f"    refused {len(calls)}, as {calls[0][0]}: {reason}\n        {calls[0][1]}", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
