"""The kernels that `mutation.py` changes: those of `kernels` that synchronize, and asynchronous ones.

The asynchronous ones are those of the gallery with copies, mbarriers or MMAs in flight, and rings on tensor memory.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

import ptxlab
from ptxlab import ir, kernels
from ptxlab.device.result import Result
from ptxlab.kernels import tcgen05_gemm, wgmma_gemm
from ptxlab.kernels.parts.shapes import Shape as WgmmaShape
from ptxlab.kernels.tcgen05_gemm.parts import Shape
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError
from ptxlab.measure import Host, check
from ptxlab.measure.checking import WrongAnswerError, expect
from ptxlab.measure.entry import Size
from tests.emulate.kernels import CASES, Case
from tests.emulate.tensor_rings import Ring

Run = Callable[[ir.Module, int], tuple[list[Result], bool]]
TIMEOUT = 60


@dataclass(frozen=True)
class Subject:
    """A kernel: its PTX, and what runs a module that was made of it, with a seed: the results, whether it is right."""

    name: str
    text: str = field(repr=False)
    run: Run = field(repr=False)
    file: str = "kernel.ptx"
    is_asynchronous: bool = False
    """Whether what is found of it may be a warning: the original has none, and a fence of tensor memory is one."""
    is_listed: bool = True
    """Whether it is named in this file, with a size that needs all its waits."""

    def parse(self, text: str) -> ir.Module:
        return ptxlab.parse(text, name=self.file)


def subjects() -> Iterator[Subject]:
    """All of them."""
    seen = set()
    for case in CASES:
        kernel = case.name.partition("-")[0]
        again = "mbarrier" in case.synchronizes and case.path.name.endswith("sm_90.ptx")
        if case.synchronizes and (kernel not in seen or again):  # the first build; sm_90 waits by another instruction
            seen.add(kernel)
            yield subject_of(case)
    yield from gallery()
    for ring in RINGS:
        yield Subject(f"ring {ring.name}", ring.text(), partial(_run_ring, ring), "ring.ptx", is_asynchronous=True)


# Cases.


def subject_of(case: Case) -> Subject:
    """A kernel of `tests/emulate/kernels`."""
    is_asynchronous = case.name.startswith("blackwell")
    return Subject(case.name, case.path.read_text(), partial(_run_case, case), case.path.name, is_asynchronous)


def _run_case(case: Case, module: ir.Module, seed: int) -> tuple[list[Result], bool]:
    run = case.make(np.random.default_rng(0))
    results = []
    for launch in run.launches:
        how = {"shared": launch.shared, "cluster": launch.cluster}
        results.append(_launch(module[launch.entry], seed, launch.grid, launch.block, launch.args, **how))
    try:
        for verify in run.checks:
            verify("".join(result.output for result in results))
    except AssertionError:
        return results, False
    return results, True


def _launch(kernel: ir.Function, seed: int, *args: Any, **how: Any) -> Result:
    result: Result = kernel.launch(*args, **how, device="cpu", seed=seed, on_error="collect", timeout=TIMEOUT)
    return result


# The gallery.

SIZES: dict[tuple[str, str], Size] = {
    ("decode_attention", "equal shares"): {  # blocks have a head and a part of one
        "type": "f16", "cache": "f16", "batch": 1, "heads": (24, 6), "length": 1030, "size": 64,
    },
    ("layer_norm", "read once"): {"rows": 1, "columns": 33000, "type": "f32"},
    ("mma_attention", "mma.sync"): {
        "batch": 1, "heads": 1, "length": 130, "size": 64, "type": "bf16", "mask": "causal",
    },
    ("mma_gemm", "mma.sync"): {"type": "bf16", "m": 64, "n": 128, "k": 256},
    ("mma_tile", "PTX"): {"m": 16, "n": 8, "k": 48},
    ("pipelined", "cp.async, 2 stages"): {"n": 200, "terms": 7, "blocks": 2},
    ("pipelined", "cp.async, 4 stages"): {"n": 200, "terms": 7, "blocks": 2},
    ("quantized_gemv", "tensor cores"): {"format": "nvfp4", "n": 20, "k": 1280},
    ("rms_norm", "read once"): {"rows": 1, "columns": 33000, "type": "f32"},
    ("sgemm", "double buffering"): {"m": 40, "n": 72, "k": 40},
    ("softmax", "read once"): {"rows": 1, "columns": 33000, "type": "f32"},
    ("wgmma_attention", "wgmma"): {
        "type": "bf16", "batch": 1, "heads": (3, 1), "length": 200, "size": 64, "causal": True,
    },
    ("wgmma_attention_fp8", "wgmma"): {
        "batch": 1, "heads": (2, 1), "length": 200, "size": 64, "causal": True,
    },
    ("wgmma_attention_backward", "wgmma"): {  # more tiles of queries than stages
        "type": "f16", "batch": 1, "heads": (2, 1), "length": 140, "size": 64, "causal": True,
    },
    ("wgmma_steps", "persistent"): {"type": "bf16", "m": 130, "n": 136, "k": 200},
    ("wgmma_steps", "ping_pong"): {"type": "bf16", "m": 130, "n": 136, "k": 200},
}  # fmt: skip
GRIDS = {
    "wgmma_attention": 1,
    "wgmma_attention_fp8": 1,
    "wgmma_steps": 1,
}  # instead of one block a tile: blocks that have several
ASYNCHRONOUS = re.compile(r"\b(cp\.async|mbarrier|wgmma|tcgen05)\b")

# One block with so many tiles that all accumulators are used twice, and more K tiles than stages: all waits are needed.
SCALED: dict[str, Size] = {
    "nvfp4_gemm": {"format": "nvfp4", "m": 128, "n": 512, "k": 768},
    "nvfp4_dual_gemm": {"m": 128, "n": 384, "k": 768},
    "nvfp4_group_gemm": {"m": "40-130", "n": 136, "k": 768},
    "scaled_gemm": {"m": 128, "n": 32, "k": 400},
    "wgmma_dual_gemm": {"type": "f16", "m": 128, "n": 32, "k": 200},
    "wgmma_formats": {"type": "tf32", "m": 128, "n": 32, "k": 100},
    "wgmma_grouped_gemm": {"type": "f16", "groups": 36, "m": 130, "n": 40, "k": 136, "skew": 3.0},
}


def gallery() -> Iterator[Subject]:
    """The asynchronous kernels of the gallery."""
    for (name, variant), size in SIZES.items():
        yield from _launches_of(name, variant, size)
    text = wgmma_gemm.specialize("f16", wgmma_gemm.SMALL).ptx
    yield Subject("wgmma_gemm wgmma", text, _run_wgmma, "wgmma_gemm.ptx", is_asynchronous=True)
    for step in tcgen05_gemm.STEPS:
        text = ptxlab.format(_tcgen05(step)[0].module)
        yield Subject(f"tcgen05_gemm {step}", text, partial(_run_tcgen05, step), f"{step}.ptx", is_asynchronous=True)

    for name, size in SCALED.items():
        text = ptxlab.format(_scaled(name, size)[0].module)
        yield Subject(name, text, partial(_run_scaled, name, size), f"{name}.ptx", is_asynchronous=True)
    name, size = "nvfp4_group_gemm", SCALED["nvfp4_group_gemm"]
    text = ptxlab.format(_scaled(name, size, changed=True)[0].module)
    run = partial(_run_scaled, name, size, changed=True)
    yield Subject(f"{name} changed maps", text, run, f"{name}.ptx", is_asynchronous=True)
    listed = {*SCALED, "wgmma_gemm", "tcgen05_gemm", *(name for name, _ in SIZES)}
    for name in kernels.names():
        if name not in listed:
            yield from _first_asynchronous(name)


def _first_asynchronous(name: str) -> Iterator[Subject]:
    """Of a kernel that is not named here, the first variant that is asynchronous, at its first small size."""
    entry = kernels.entry(name)
    for variant, size in product(entry.variants, entry.small):
        try:
            found = list(_launches_of(name, variant, size))
        except UnsuitedError:
            continue
        if found:
            yield from (replace(subject, is_listed=False) for subject in found)
            return


def _launches_of(name: str, variant: str, size: Size) -> Iterator[Subject]:
    """The asynchronous ones of the kernels that a variant launches."""
    entry = kernels.entry(name)
    launches = entry.launches(variant, entry.arrays(Host(7), **size))
    for at, launch in enumerate(launches):
        text = ptxlab.format(launch.module)
        if ASYNCHRONOUS.search(text):
            which = f" {launch.function.name}" if len(launches) > 1 else ""
            run = partial(_run_entry, name, variant, size, at)
            yield Subject(f"{name} {variant}{which}", text, run, f"{name}.ptx", is_asynchronous=True)


def _scaled(name: str, size: Size, **how: bool) -> tuple[Launch, Arrays]:
    """A launch by one block with two stages."""
    kernel = import_module(f"ptxlab.kernels.{name}")
    arrays = kernels.entry(name).arrays(Host(7), **size)
    usual = inspect.signature(kernel.product).parameters["shape"].default or WgmmaShape(groups=1, columns=32)
    return kernel.product(**arrays, shape=replace(usual, stages=2), blocks=1, **how), arrays


def _run_scaled(name: str, size: Size, module: ir.Module, seed: int, **how: bool) -> tuple[list[Result], bool]:
    entry = kernels.entry(name)
    launch, arrays = _scaled(name, size, **how)
    expected = _expected(name, tuple(size.items()))
    maps, *others = launch.args
    given = launch.args
    if isinstance(maps, tuple):
        given = [{128 * at: map for at, map in enumerate(maps)}, *others]  # a mutant may not read all of them
    result = _launch(module[launch.function.name], seed, launch.grid, launch.block, given, shared=launch.shared)
    try:
        check(np, entry, size, arrays, expected, next(iter(entry.variants)))
    except WrongAnswerError:
        return [result], False
    return [result], True


def _run_entry(name: str, variant: str, size: Size, at: int, module: ir.Module, seed: int) -> tuple[list[Result], bool]:
    """All launches of a variant, the one at `at` by a module that was made of its own."""
    entry = kernels.entry(name)
    arrays = entry.arrays(Host(7), **size)
    expected = _expected(name, tuple(size.items()))
    results = []
    for number, launch in enumerate(entry.launches(variant, arrays)):
        if number != at:
            launch.run(device="cpu", detectors=False)
            continue
        how = {"shared": launch.shared, "cluster": launch.cluster}
        kernel, grid = module[launch.function.name], GRIDS.get(name, launch.grid)
        results.append(_launch(kernel, seed, grid, launch.block, launch.args, **how))
    try:
        check(np, entry, size, arrays, expected, variant)
    except WrongAnswerError:
        return results, False
    return results, True


@cache
def _expected(name: str, size: tuple[tuple[str, Any], ...]) -> Arrays:
    """The right answers of a kernel of the gallery."""
    entry = kernels.entry(name)
    return expect(np, entry, entry.arrays(Host(7), **dict(size)))


def _run_wgmma(module: ir.Module, seed: int) -> tuple[list[Result], bool]:
    """Two blocks, each with two tiles."""
    a, b, d = _matrices(520)
    launch = wgmma_gemm.product(a, b, d, wgmma_gemm.SMALL)
    result = _launch(module[module.entries[0]], seed, 2, launch.block, launch.args, shared=launch.shared)
    return [result], bool(np.array_equal(d, a @ b.T))


def _run_tcgen05(step: str, module: ir.Module, seed: int) -> tuple[list[Result], bool]:
    launch, (a, b, d) = _tcgen05(step)
    how = {"shared": launch.shared, "cluster": launch.cluster}
    result = _launch(module[launch.function.name], seed, launch.grid, launch.block, launch.args, **how)
    return [result], bool(np.array_equal(d, a @ b.T))


def _tcgen05(step: str) -> tuple[Launch, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """One block with four tiles, or four blocks; or a pair of blocks with four tiles."""
    a, b, d = _matrices(200, 512 if step == "pair" else 256)
    shape = Shape(columns=64, stages=2)
    return tcgen05_gemm.product(a, b, d, step, shape, blocks=2 if step == "pair" else 1), (a, b, d)


def _matrices(depth: int, columns: int = 128) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and room for D, of small integers so that D is exact."""
    random = np.random.default_rng(0)
    a, b = (random.integers(-2, 3, (rows, depth)).astype(np.float16) for rows in (128, columns))
    return a, b, np.zeros((128, columns), np.float16)


# Rings.

RINGS = [
    Ring(stages=2, buffers=1, tiles=5),
    Ring(stages=3, buffers=2, tiles=5, copies=True),
    Ring(stages=2, buffers=2, tiles=5, blocks=2),
    Ring(stages=2, buffers=2, tiles=5, scaled=True),
    Ring(stages=2, buffers=1, scheduled=True, tiles=5),
]


def _run_ring(ring: Ring, module: ir.Module, seed: int) -> tuple[list[Result], bool]:
    is_right, result = ring.launch(module, seed, timeout=TIMEOUT)
    return [result], is_right
