"""What bounds large matrix products on an H200: `python benchmarks/mma_floor.py [FILE] [WORD…]`; needs a Hopper GPU.

A kernel issues the MMAs of a product and does nothing else: each of 132 blocks copies four K tiles to shared memory,
and its two warpgroups multiply them again and again, 64 by 256 by 16 at a time, as many times as the product needs,
shared evenly among all SMs. Nothing else is copied, nothing waits for a stage, no result is stored. The clock is what
the GPU's power allows for these MMAs. No product of so many MMAs can be faster than that.

Beside it, in turns, are the kernels of `ptxlab.kernels`, the libraries, and where `wgmma_gemm` computes it that kernel
with all its copies and barriers, but without the epilogue: its accumulators are never stored. These are the sizes at
which a library is nearest. WORDs choose among them.
"""

from __future__ import annotations

import json
import statistics
import sys
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from ptxlab.author import Kernel, b16, b32, b64, f32, kernel, pointer, ptx, tensor_map, u32
from ptxlab.kernels import wgmma_dual_gemm, wgmma_gemm, wgmma_grouped_gemm
from ptxlab.kernels.parts.formats import Formats
from ptxlab.kernels.parts.operands import Descriptors
from ptxlab.kernels.parts.persistent import run
from ptxlab.kernels.parts.shapes import BLOCKS, Layout, Shape
from ptxlab.kernels.parts.tile_stores import CopyBack, TileStore
from ptxlab.kernels.parts.warpgroups import group_number, multiply
from ptxlab.kernels.wgmma_gemm import launch
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import choose
from ptxlab.kernels.wgmma_gemm.kernel import Product, plan_of
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError
from ptxlab.measure.entry import Entry
from ptxlab.measure.interleaving import take_turns
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.session import Action, draw_sets, timer, together

EVIDENCE = Path(__file__).resolve().parent.parent / "evidence" / "mma_floor.json"
SHAPE = Shape(stages=4)
DEPTH = 64  # elements along k of a K tile of 16 bits
ROUNDS = 9
ALONE, FROM_REGISTERS, UNSTORED = "MMAs alone", "MMAs alone, A in registers", "wgmma, nothing stored"
SQUARE = {"m": 4096, "n": 4096, "k": 4096}
LARGE = {"m": 16384, "n": 16384, "k": 16384}
EIGHT = {"type": "bf16", "groups": 8, "m": 16384, "skew": 0.5}
SIZES: dict[str, tuple[Entry, dict[str, Any]]] = {
    "bias": (wgmma_gemm.entry, {"type": "bf16", **SQUARE, "epilogue": "bias"}),
    "GELU": (wgmma_gemm.entry, {"type": "bf16", **SQUARE, "epilogue": "gelu_tanh"}),
    "f16": (wgmma_gemm.entry, {"type": "f16", **LARGE}),
    "gated": (wgmma_dual_gemm.entry, {"type": "bf16", "m": 8192, "n": 28672, "k": 8192}),
    "grouped, long": (wgmma_grouped_gemm.entry, {**EIGHT, "n": 4096, "k": 14336}),
    "grouped, wide": (wgmma_grouped_gemm.entry, {**EIGHT, "n": 14336, "k": 4096}),
}


@dataclass(frozen=True)
class Stage:
    """Where in shared memory a K tile is, and what says that it has come."""

    index: Any
    barrier: Any = None


@cache
def specialize(type: str, in_registers: bool) -> Kernel:
    """The kernel. `total` K tiles are shared among the blocks; accumulators start anew after every `along` of them.

    It stores its sums where `total` is 0, which it never is: ptxas would leave out MMAs whose results are not used.
    """
    left, right = SHAPE.operands(Layout())
    product = Formats.of(type).product(SHAPE.columns)

    @kernel(target="sm_90a", maxntid=SHAPE.consumers)
    def mmas(a: tensor_map, b: tensor_map, total: u32, along: u32, unused: pointer[f32]) -> None:
        thread, block = ptx.tid.x, ptx.ctaid.x
        memory = ptx.dynamic_shared(b16, align=1024)
        tiles = left.tile(memory), right.tile(memory + SHAPE.stages * left.stage_bytes // 2)
        full = ptx.shared(b64, 1, name="full").at(0)
        with ptx.when(thread == 0):
            ptx.mbarrier.init.shared.b64(full, 1)
            ptx.fence.mbarrier_init.release.cluster()
        ptx.bar.sync(0)
        ptx.griddepcontrol.launch_dependents()
        ptx.griddepcontrol.wait()
        with ptx.when(thread == 0):
            ptx.mbarrier.arrive.expect_tx.shared.b64(full, SHAPE.stages * SHAPE.stage_bytes(Layout()))
            for number in range(SHAPE.stages):
                for operand, source, tile in zip((left, right), (a, b), tiles, strict=True):
                    first = block % 16 * operand.rows
                    operand.copy([source.generic], tile, Stage(u32(number), full), first, u32(number * DEPTH), None)
        with ptx.loop():
            ptx.repeat_when(~ptx.mbarrier.try_wait.parity.shared.b64(full, 0))
        own = group_number()
        sides = Descriptors(left, tiles[0], own), Descriptors(right, tiles[1])
        fragments = [ptx.ld.shared.v4.b32(memory.view(b32) + (thread * 16 + 4 * step)) for step in range(4)]
        sums, adds = [f32(0) for _ in range(SHAPE.columns // 2)], ptx.setp.ne.u32(own, own)
        first, end = (total * at // BLOCKS for at in (block, block + 1))
        done = u32(0)
        for number in ptx.range(first, end, 1):
            stage = Stage(number % SHAPE.stages)
            if in_registers:
                multiply_registers(product, stage, sides[1], fragments, sums, adds)
            else:
                multiply(product, stage, sides, [sums], adds)
            ptx.wgmma.wait_group.sync.aligned(1)
            ptx.add.u32(done, 1, out=done)
            with ptx.when(done == along):
                ptx.setp.ne.u32(own, own, out=adds)
                ptx.mov.u32(0, out=done)
        ptx.wgmma.wait_group.sync.aligned(0)
        with ptx.when(total == 0):
            for number, value in enumerate(sums):
                unused[thread + number * SHAPE.consumers] = value

    return mmas


def multiply_registers(product: Any, stage: Stage, side: Descriptors, fragments: Any, sums: Any, adds: Any) -> None:
    """The MMAs of a K tile with rows of A that are in registers, always the same."""
    columns = side.stage(stage.index)
    ptx.wgmma.fence.sync.aligned()
    for step, fragment in enumerate(fragments):
        product(sums, fragment, side.at(columns, 16 * step), adds, 1, 1, 0)
        ptx.setp.eq.u64(columns, columns, out=adds)
    ptx.wgmma.commit_group.sync.aligned()


def alone(torch: Any, stream: Any, entry: Entry, size: dict[str, Any], data: Arrays, in_registers: bool) -> Action:
    """A run of the MMAs of a product, on some of its numbers."""
    right = data["g"] if "g" in data else data["b"]
    matrices = data["a"], right if right.ndim == 2 else right[0]
    total = round(entry.work(**size).flops / (2 * SHAPE.rows * SHAPE.columns * DEPTH))
    maps = [one.map(matrix) for one, matrix in zip(SHAPE.operands(Layout()), matrices, strict=True)]
    unused = torch.empty(SHAPE.consumers * SHAPE.columns // 2, device="cuda")
    args = [*maps, total, size["k"] // DEPTH, unused]
    shared = SHAPE.stages * SHAPE.stage_bytes(Layout())
    made = Launch(specialize(size["type"], in_registers), BLOCKS, SHAPE.consumers, args, shared, overlap=True)
    return made.prepare(stream).launch


class Unstored(TileStore):
    """Stores tiles only where `extent` is 0, which it never is."""

    extent: Any = None

    def write(self, accumulators: list[list[Any]], row: Any, column: Any) -> None:
        """Store no tile."""
        with ptx.when(self.extent == 0):
            super().write(accumulators, row, column)


class UnstoredProduct(Product):
    """A product that is computed and not stored."""

    def store(self, memory: Any, residual: Any) -> TileStore:
        """How tiles are not stored."""
        found = Unstored(self.plan.formats.out, self.plan.boxes, memory, self.target)
        found.extent = self.extents[0]
        return found


@cache
def without_stores(type: str, shape: Shape) -> Kernel:
    """The product, without its epilogue."""
    plan = plan_of(Formats.of(type), shape, Layout())

    @kernel(**plan.directives)
    def product(a: tensor_map, b: tensor_map, d: tensor_map, m: u32, n: u32, k: u32) -> None:
        run(plan, [[a.generic], [b.generic]], UnstoredProduct(plan, CopyBack(d.generic), (m, n, k)))

    return product


def unstored(stream: Any, size: dict[str, Any], data: Arrays) -> Action:
    """A run of the product that `wgmma_gemm` chooses for a size, without its epilogue."""
    extents = size["m"], size["n"], size["k"]
    shape = choose(Problem(*extents))
    plain = launch(size["type"], (data["a"], data["b"], data["d"]), extents, shape)
    return replace(plain, kernel=without_stores(size["type"], shape)).prepare(stream).launch


def seconds(torch: Any, entry: Entry, size: dict[str, Any]) -> dict[str, list[float]]:
    """Samples of each contender: of one run among several in a row."""
    stream = torch.cuda.Stream()
    sets = draw_sets(torch, entry, size, 0)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        actions = {
            name: [alone(torch, stream, entry, size, sets[0], in_registers)]
            for name, in_registers in ((ALONE, False), (FROM_REGISTERS, True))
        }
        if entry is wgmma_gemm.entry:
            actions[UNSTORED] = [unstored(stream, size, one) for one in sets]
        for name in entry.variants:
            actions[name] = [together(entry.launches(name, one), stream) for one in sets]
        for name, library in entry.libraries.items():
            try:
                actions[name] = [library(torch, **one) for one in sets]
            except UnsuitedError:
                continue  # this library does not compute this
        timers = {name: timer(torch, each, stream) for name, each in actions.items()}
        for warm in timers.values():
            warm()
        return take_turns(timers, ROUNDS)


def main() -> None:
    torch = require_torch()
    path, *words = sys.argv[1:] or [str(EVIDENCE)]
    chosen = {name: one for name, one in SIZES.items() if not words or any(word in name for word in words)}
    found: dict[str, Any] = {
        "command": "python benchmarks/mma_floor.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": describe(torch),
        "sizes": {name: size for name, (_, size) in chosen.items()},
        "seconds": {},
    }
    for name, (entry, size) in chosen.items():
        samples = found["seconds"][name] = seconds(torch, entry, size)
        Path(path).write_text(json.dumps(found) + "\n", encoding="utf-8")
        least = statistics.median(samples[ALONE])
        for contender, times in samples.items():
            median = statistics.median(times)
            print(f"{name:14} {contender:28} {median * 1e6:9.1f} us {median / least:6.3f}", flush=True)


if __name__ == "__main__":
    main()
