"""Time `scaled_gemm` beside DeepGEMM's own kernel of the same products, in one run and in turns.

`python benchmarks/deepgemm.py FOLDER [FILE]` needs an H200 and torch. FOLDER has cubins of DeepGEMM's
`sm90_fp8_gemm_1d2d_impl`, compiled with its flags for the tiles that its heuristics choose, and `configs.json`, a list:
m, n, k, the tile `bm` by `bn`, blocks of a cluster that are one below the other (`cm`) or side by side (`cn`), bytes of
shared memory (`smem`), the swizzle of D (`swd`), threads that multiply (`math`), and the `cubin`. Every answer is
checked against float64 first, with scales that differ. Times go to FILE, by default evidence/deepgemm.json.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import ptxlab
from ptxlab.kernels.scaled_gemm import entry
from ptxlab.launch.launches import Launch, UnsuitedError
from ptxlab.measure.checking import check, expect
from ptxlab.measure.data import Device
from ptxlab.measure.machine import require_torch
from ptxlab.measure.session import measure

ROOT = Path(__file__).resolve().parent.parent
SMS = 132
COPIERS = 128  # threads besides those that multiply
DECLARATION = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry {name}(
    .param .u64 sfb, .param .u64 layout, .param .u32 m, .param .u32 n, .param .u32 k,
    .param .align 64 .b8 a[128], .param .align 64 .b8 b[128], .param .align 64 .b8 d[128], .param .align 64 .b8 sfa[128]
) .maxntid {threads} {{ ret; }}
"""  # what the cubin's kernel takes; its code is in the cubin


@cache
def declared(cubin: Path, threads: int) -> Any:
    """The kernel of a cubin, as the launch needs it: its name and its parameters."""
    found = re.search(rb"_ZN9deep_gemm\w+sm90_fp8_gemm_1d2d_impl\w+", cubin.read_bytes())
    if found is None:
        raise ValueError(f"{cubin} has no kernel of DeepGEMM")
    name = found.group().decode()
    return ptxlab.parse(DECLARATION.format(name=name, threads=threads))[name]


def by_deepgemm(
    folder: Path, overlap: bool, torch: Any, a: Any, b: Any, scale_a: Any, scale_b: Any, d: Any
) -> Callable[[], Any]:
    """DeepGEMM's kernel with the tile that it would choose; with `overlap` it starts early, as ours does."""
    (m, k), n = a.shape, b.shape[0]
    found = [one for one in configurations(folder) if (one["m"], one["n"], one["k"]) == (m, n, k)]
    if not found:
        raise UnsuitedError("not compiled")
    one, swizzle = found[0], found[0]["swd"]
    maps = (
        ptxlab.tensor_map(a, box=(one["bm"], 128), swizzle="128B", l2_promotion="256B"),
        ptxlab.tensor_map(b, box=(one["bn"], 128), swizzle="128B", l2_promotion="256B"),
        ptxlab.tensor_map(d, box=(one["bm"], swizzle // 2), swizzle=f"{swizzle}B", l2_promotion="256B"),
        ptxlab.tensor_map(scale_a.T, box=(1, one["bm"]), l2_promotion="256B"),
    )
    threads, cubin = COPIERS + one["math"], folder / one["cubin"]
    blocks = one["cm"] * one["cn"]
    launch = Launch(
        declared(cubin, threads), SMS, threads, [scale_b, 0, m, n, k, *maps], one["smem"],
        cluster=(blocks, 1, 1) if blocks > 1 else None, overlap=overlap,
    )  # fmt: skip
    prepared = launch.prepare(torch.cuda.current_stream(), cubin)
    prepared.owners = (a, b, scale_a, scale_b, d)
    return prepared.launch


@cache
def configurations(folder: Path) -> list[dict[str, Any]]:
    """What was compiled."""
    found: list[dict[str, Any]] = json.loads((folder / "configs.json").read_text(encoding="utf-8"))
    return found


def compare(torch: Any, libraries: Any, size: Any) -> dict[str, float]:
    """Relative errors of both kernels, with scales that differ."""
    arrays = entry.arrays(Device(torch, 5), **size)
    expected = expect(torch, entry, arrays)
    runs = {"wgmma": lambda: entry.launches("wgmma", arrays)[0].prepare(torch.cuda.current_stream()).launch()}
    runs |= {name: libraries[name](torch, **arrays) for name in libraries if name.startswith("DeepGEMM")}
    errors = {}
    for name, run in runs.items():
        arrays["d"].fill_(float("nan"))
        run()
        torch.cuda.synchronize()
        errors[name] = check(torch, entry, size, arrays, expected, name).relative
    return errors


def main() -> None:
    """Check and time each product that was compiled."""
    torch, folder = require_torch(), Path(sys.argv[1])
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "evidence" / "deepgemm.json"
    libraries = {
        **entry.libraries,
        "DeepGEMM": partial(by_deepgemm, folder, False),
        "DeepGEMM, early start": partial(by_deepgemm, folder, True),
    }
    sizes = [{name: one[name] for name in "mnk"} for one in configurations(folder)]
    for size in sizes:
        print(size, compare(torch, libraries, size), flush=True)
    beside = replace(entry, libraries=libraries, sizes=[{**size, "scales": "ones"} for size in sizes])
    record = measure("deepgemm", beside, rounds=int(os.environ.get("ROUNDS", "9")), keep=target)
    for sized in record.sizes:
        times = {one.name: statistics.median(one.samples) for one in sized.contenders if one.samples}
        print(sized.size, {name: round(times[name] / times["wgmma"], 3) for name in times}, flush=True)


if __name__ == "__main__":
    main()
