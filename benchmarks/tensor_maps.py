"""What it costs to change a tensor map in a kernel: `python benchmarks/tensor_maps.py [FILE]` writes JSON; needs a GPU.

Two questions. What does each instruction take, in cycles, issued again and again by one warp: of one block, and of a
block on each SM at the same time? And what does a kernel over several groups of matrices take (`kernels/grouped.ptx`)
if its maps are the host's, or are changed for each group, or for each tile?
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import ptxlab
from ptxlab.measure import Launch
from ptxlab.measure.interleaving import take_turns
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.session import timer

ROOT = Path(__file__).resolve().parent.parent
HERE = Path(__file__).parent / "kernels"
ROUNDS = 21
GROUPS = 8
ROWS, WIDTH = 64, 32  # of a tile, in words
MAKE = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{}.sync.aligned [%made], [map], 128;"
RELEASE = "fence.proxy.tensormap::generic.release.gpu;"
ACQUIRE = "fence.proxy.tensormap::generic.acquire.gpu [%made], 128;"
WARP = "bar.warp.sync 0xffffffff;"
COPY = """@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
    @%first cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [{}, {{0, 0}}], [full];
$wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p, [full], %parity;
    @!%p bra $wait;
    xor.b32 %parity, %parity, 1;"""
INSTRUCTIONS = {
    "nothing": "",
    "bar.sync of 32 threads": "bar.sync 0;",
    "fence.proxy.async.shared::cta": "fence.proxy.async.shared::cta;",
    "tensormap.replace of an address, in shared memory":
        "@%first tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], %array;",
    "tensormap.replace of an address, in global memory":
        "@%first tensormap.replace.tile.global_address.global.b1024.b64 [%made], %array;",
    "store and fence.acq_rel.gpu": "@%first st.global.u32 [%other], 0;\n    fence.acq_rel.gpu;",
    "store and fence.proxy.tensormap release.gpu": f"@%first st.global.u32 [%other], 0;\n    {RELEASE}",
    "fence.proxy.tensormap acquire.gpu": ACQUIRE,
    "tensormap.cp_fenceproxy release.cta": MAKE.format("cta"),
    "tensormap.cp_fenceproxy release.cluster": MAKE.format("cluster"),
    "tensormap.cp_fenceproxy release.gpu": MAKE.format("gpu"),
    "tensormap.cp_fenceproxy release.sys": MAKE.format("sys"),
    "tensormap.cp_fenceproxy release.gpu, acquire": f"{MAKE.format('gpu')}\n    {ACQUIRE}",
    "copy of 128 bytes, the host's map": COPY.format("%given"),
    "cp_fenceproxy, acquire, copy of 128 bytes":
        f"{MAKE.format('gpu')}\n    {ACQUIRE}\n    {WARP}\n    {COPY.format('%made')}\n    {WARP}",
}  # fmt: skip
VARIANTS = {  # every, in_place, ahead; every is in tiles, 0 for the host's maps, None for as many as a group has
    "the host's maps": (0, 0, 0),
    "3 maps a group, cp_fenceproxy": (None, 0, 0),
    "3 maps a group, in place": (None, 1, 0),
    "3 maps a group, made ahead by another warp": (None, 0, 1),
    "3 maps a tile, cp_fenceproxy": (1, 0, 0),
    "3 maps a tile, in place": (1, 1, 0),
}


def instruction(text: str, xp: Any, blocks: int, steps: int) -> tuple[Launch, Any]:
    """The launch that times an instruction, and the cycles it writes, of each block."""
    source = (HERE / "instruction.ptx").read_text(encoding="utf-8").replace("    INSTRUCTION;", f"    {text}")
    array, made, cycles = (xp((rows, width)) for rows, width in ((64, 32), (blocks, 64), (blocks, 2)))
    map = ptxlab.tensor_map(array, box=(1, 32))
    return Launch(ptxlab.parse(source)["instruction"], blocks, 32, [map, array, made, cycles, steps]), cycles


def grouped(xp: Any, variant: str, together: int, blocks: int, matrices: Any = None) -> tuple[Launch, Any]:
    """The launch over all groups by a variant, and A, B and C of each group."""
    every, in_place, ahead = VARIANTS[variant]
    every = together if every is None else every
    rows = together * blocks * ROWS
    matrices = matrices or [[xp((rows, WIDTH)) for _ in "abc"] for _ in range(GROUPS)]
    flat = [matrix for group in matrices for matrix in group]
    given = {128 * number: ptxlab.tensor_map(matrix, box=(ROWS, WIDTH)) for number, matrix in enumerate(flat)}
    given |= {3072 + 8 * number: matrix for number, matrix in enumerate(flat)}
    args = [given, xp((blocks * 9, 32)), GROUPS, together, every, in_place, ahead, rows]
    return Launch(ptxlab.load(HERE / "grouped.ptx")["grouped"], blocks, 160, args), matrices


def cycles_of_instructions(torch: Any, blocks: Iterable[int]) -> dict[str, Any]:
    """Cycles of each instruction, medians of the blocks of each launch."""

    def zeros(extents: tuple[int, int]) -> Any:
        return torch.zeros(extents, dtype=torch.int32, device="cuda")

    found: dict[str, Any] = {}
    steps = 256
    for count in blocks:
        launches = {name: instruction(text, zeros, count, steps) for name, text in INSTRUCTIONS.items()}
        samples: dict[str, list[float]] = {name: [] for name in launches}
        for turn in range(ROUNDS + 1):
            for name, (launch, cycles) in launches.items():
                launch.run(device="cuda")
                torch.cuda.synchronize()
                if turn:
                    samples[name].append(float(cycles[:, 0].double().median()) / steps)
        found[str(count)] = samples
    return found


def seconds_of_groups(torch: Any, blocks: int, tiles: Iterable[int]) -> dict[str, Any]:
    """Seconds of each variant, for so many tiles a block and group; all answers are checked."""
    generator = torch.Generator(device="cuda").manual_seed(0)

    def drawn(extents: tuple[int, int]) -> Any:
        return torch.randint(0, 1 << 20, extents, dtype=torch.int32, device="cuda", generator=generator)

    found: dict[str, Any] = {}
    stream = torch.cuda.Stream()
    for together in tiles:
        matrices, timers = None, {}
        with torch.cuda.stream(stream):
            for name, (_, _, ahead) in VARIANTS.items():
                if ahead and together == 1:  # there is no tile left in whose time to make the next maps
                    continue
                launch, matrices = grouped(drawn, name, together, blocks, matrices)
                for _, _, c in matrices:
                    c.fill_(-1)
                torch.cuda.synchronize()
                action = launch.prepare(stream).launch
                action()
                torch.cuda.synchronize()
                assert all(bool((a + b == c).all()) for a, b, c in matrices), f"{name} computes something else"
                timers[name] = timer(torch, [action], stream)
            for each in timers.values():
                each()
            found[str(together)] = take_turns(timers, ROUNDS)
    return found


def main() -> None:
    torch = require_torch()
    machine = describe(torch)
    blocks = machine["multiprocessors"]
    found = {
        "command": "python benchmarks/tensor_maps.py",
        "date": date.today().isoformat(),
        "commit": commit(),
        "machine": machine,
        "cycles": cycles_of_instructions(torch, (1, blocks)),
        "groups": GROUPS,
        "seconds": seconds_of_groups(torch, blocks, (1, 4, 16)),
    }
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "evidence" / "tensor_map_cost.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for count, samples in found["cycles"].items():
        for name, taken in samples.items():
            print(f"{count:>4} blocks  {name:55} {statistics.median(taken):8.0f} cycles")
    for together, samples in found["seconds"].items():
        for name, taken in samples.items():
            print(f"{together:>3} tiles a group  {name:45} {statistics.median(taken) * 1e6:8.2f} µs")


if __name__ == "__main__":
    main()
