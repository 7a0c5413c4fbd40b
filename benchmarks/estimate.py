"""Estimates beside measured times: kernels of the gallery on an H200; `--evidence` writes evidence/estimate.json.

No GPU is needed, but a ptxas and an nvdisasm are: the times are those of evidence/bench. The figures that are fitted
(`ptxlab.estimate.hardware`) were chosen on the kernels in `FITTED`. The model itself (which bounds overlap, and how)
was made with those and others in view; the rows of `UNSEEN` were added when both were fixed.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from importlib import import_module
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any

from ptxlab.device.options import LaunchOptions
from ptxlab.estimate import H200, Hardware
from ptxlab.estimate.prediction import Estimate, Observation, observe, predict
from ptxlab.kernels.wgmma_formats import FORMATS
from ptxlab.kernels.wgmma_formats import problem_of as problem_of_format
from ptxlab.kernels.wgmma_gemm.candidates import Problem
from ptxlab.kernels.wgmma_gemm.choice import choose
from ptxlab.measure import Record
from ptxlab.measure.data import Blank
from ptxlab.toolchain import find

ROOT = Path(__file__).resolve().parent.parent
FITTED = {"copy", "reduction", "transpose", "sgemm", "wgmma_steps", "mma_tile", "registers", "layer_norm"}
UNSEEN = {"cross_entropy", "quantized_gemv", "wgmma_formats", "prefetch", "mma_variants", "rms_norm_fp8"}
MMA_ATTENTION = {"batch": 4, "heads": 16, "length": 4096, "size": 64, "type": "bf16", "mask": "none"}
ATTENTION = {"type": "bf16", "batch": 4, "heads": [16, 16], "length": 4096, "size": 128, "causal": False}
ROWS: list[tuple[str, str, dict[str, Any], str]] = [  # kernel, variant, size, the limiter where it is known
    ("copy", "4 bytes a thread", {"n": 67108864}, "latency"),
    ("copy", "16 bytes a thread", {"n": 4194304}, "DRAM"),
    ("copy", "16 bytes a thread", {"n": 67108864}, "DRAM"),
    ("copy", "persistent", {"n": 67108864}, "DRAM"),
    ("reduction", "last block", {"n": 67108864, "type": "f32"}, "DRAM"),
    ("transpose", "elements", {"rows": 8192, "columns": 8192, "type": "f32"}, ""),
    ("transpose", "squares", {"rows": 16384, "columns": 16384, "type": "bf16"}, "DRAM"),
    ("layer_norm", "read once", {"rows": 16384, "columns": 8192, "type": "bf16"}, "DRAM"),
    ("registers", "nothing said", {"rows": 4194304}, ""),
    ("registers", ".maxnreg 24", {"rows": 4194304}, ""),
    ("sgemm", "naive", {"m": 2048, "n": 2048, "k": 2048}, "L1 cache"),
    ("sgemm", "coalesced", {"m": 2048, "n": 2048, "k": 2048}, ""),
    ("sgemm", "shared memory", {"m": 2048, "n": 2048, "k": 2048}, "shared memory"),
    ("sgemm", "1-D tiling", {"m": 2048, "n": 2048, "k": 2048}, ""),
    ("sgemm", "2-D tiling", {"m": 4096, "n": 4096, "k": 4096}, ""),
    ("sgemm", "warp tiling", {"m": 4096, "n": 4096, "k": 4096}, ""),
    ("sgemm", "double buffering", {"m": 4096, "n": 4096, "k": 4096}, ""),
    ("mma_tile", "PTX", {"m": 2048, "n": 2048, "k": 2048}, ""),
    ("wgmma_steps", "one_tile", {"type": "bf16", "m": 4096, "n": 4096, "k": 4096}, ""),
    ("wgmma_steps", "ring", {"type": "bf16", "m": 4096, "n": 4096, "k": 4096}, "tensor cores"),
    ("wgmma_steps", "persistent", {"type": "bf16", "m": 4096, "n": 4096, "k": 4096}, "tensor cores"),
    ("wgmma_steps", "ping_pong", {"type": "bf16", "m": 2048, "n": 2048, "k": 2048}, "tensor cores"),
    ("vector_addition", "one element a thread", {"n": 16777216}, ""),
    ("vector_addition", "four elements a thread", {"n": 1048576}, ""),
    ("vector_addition", "four elements a thread", {"n": 268435456}, "DRAM"),
    ("softmax", "read once", {"rows": 65536, "columns": 1024, "type": "f32"}, "DRAM"),
    ("softmax", "read once", {"rows": 16384, "columns": 8192, "type": "bf16"}, "DRAM"),
    ("rms_norm", "read once", {"rows": 4096, "columns": 32768, "type": "bf16"}, "DRAM"),
    ("rms_norm", "read once", {"rows": 256, "columns": 262144, "type": "f32"}, "DRAM"),
    ("warp_reduction", "shared memory", {"rows": 4194304, "columns": 32, "type": "f32"}, ""),
    ("warp_reduction", "shfl", {"rows": 131072, "columns": 1024, "type": "f32"}, "DRAM"),
    ("pipelined", "plain loads", {"n": 67108864, "terms": 16, "blocks": 264}, "latency"),
    ("pipelined", "cp.async, 4 stages", {"n": 67108864, "terms": 16, "blocks": 264}, ""),
    ("pipelined", "plain loads", {"n": 67108864, "terms": 64, "blocks": 1056}, ""),
    ("gemv", "rows by blocks", {"batch": 1, "m": 28672, "k": 8192, "type": "bf16"}, "DRAM"),
    ("attention_tile", "WMMA, an element a lane", {"queries": 1048576, "keys": 256}, ""),
    ("attention_tile", "mma in registers", {"queries": 1048576, "keys": 256}, ""),
    ("mma_gemm", "mma.sync", {"type": "bf16", "m": 4096, "n": 4096, "k": 4096}, "tensor cores"),
    ("mma_gemm", "mma.sync", {"type": "s8", "m": 8192, "n": 8192, "k": 8192}, "tensor cores"),
    ("mma_attention", "mma.sync", MMA_ATTENTION, ""),
    ("wgmma_gemm", "wgmma", {"type": "bf16", "m": 2048, "n": 2048, "k": 2048}, "tensor cores"),
    ("wgmma_gemm", "wgmma", {"type": "bf16", "m": 4096, "n": 4096, "k": 4096}, "tensor cores"),
    ("wgmma_gemm", "wgmma", {"type": "bf16", "m": 64, "n": 8192, "k": 8192, "layout": "NT"}, "DRAM"),
    ("wgmma_attention", "wgmma", ATTENTION, "tensor cores"),
    ("cross_entropy", "read once", {"rows": 65536, "columns": 1024, "type": "f32"}, "DRAM"),
    ("rms_norm_fp8", "read once", {"rows": 65536, "columns": 2048, "type": "bf16"}, "DRAM"),
    ("mma_variants", "one tile a warp", {"type": "f16", "accumulator": "f32", "tiles": 131072}, ""),
    ("prefetch", "plain loads", {"n": 67108864, "terms": 64, "blocks": 264}, ""),
    ("prefetch", "prefetch.L2, 4 ahead", {"n": 67108864, "terms": 16, "blocks": 1056}, ""),
    ("quantized_gemv", "tensor cores", {"format": "fp8", "n": 8192, "k": 28672}, "DRAM"),
    ("quantized_gemv", "tensor cores", {"format": "int4", "n": 4096, "k": 4096}, ""),
    ("wgmma_formats", "wgmma", {"type": "e4m3", "m": 4096, "n": 4096, "k": 4096}, "tensor cores"),
    ("wgmma_formats", "wgmma", {"type": "tf32", "m": 2048, "n": 2048, "k": 2048}, "tensor cores"),
]  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A launch, what it was measured to take, and what is known of it otherwise."""

    kernel: str
    variant: str
    size: dict[str, Any]
    known: str
    measured: float
    launches: list[Observation]

    def predict(self, hardware: Hardware = H200) -> tuple[float, str, list[Estimate]]:
        """Seconds of all launches together, and what limits the longest."""
        found = [predict(one, hardware) for one in self.launches]
        # Launches that follow each other in a graph overlap in part: what a launch takes is counted once.
        seconds = sum(one.seconds for one in found) - hardware.launch * (len(found) - 1) / 2
        return seconds, max(found, key=lambda one: one.seconds).limiter, found


def rows(chosen: str = "") -> Iterator[Row]:
    """The launches, each run on the emulator in part."""
    for kernel, variant, size, known in ROWS:
        if chosen in kernel:
            entry = import_module(f"ptxlab.kernels.{kernel}").entry
            launches = []
            arrays = entry.arrays(Blank(), **size)
            if kernel in ("wgmma_gemm", "wgmma_formats"):  # for NumPy they take a variant that is quick to emulate
                arrays["shape"] = choose(problem_of(size["type"], size["m"], size["n"], size["k"]))
            for one in entry.launches(variant, arrays):
                own = one.module.target
                options = LaunchOptions(one.grid, one.block, shared=one.shared, cluster=one.cluster)
                launches.append(observe(one.function, one.args, options, own if own == "sm_90a" else "sm_90"))
            yield Row(kernel, variant, size, known, measured(kernel, variant, size), launches)


def problem_of(type: str, m: int, n: int, k: int) -> Problem:
    """A product, as the kernels with `wgmma` choose a variant for it."""
    return problem_of_format(type, m, n, k) if type in FORMATS else Problem(m, n, k)


def measured(kernel: str, variant: str, size: dict[str, Any]) -> float:
    """The median of the times in evidence/bench, in seconds."""
    record = Record.read(ROOT / "evidence" / "bench" / f"{kernel}.json")
    (found,) = [sized for sized in record.sizes if sized.size == size]
    return median(found[variant].samples)


def part_of(kernel: str) -> str:
    """Whether figures were fitted on a kernel, the model was made with it in view, or neither."""
    return "fitted" if kernel in FITTED else "unseen" if kernel in UNSEEN else "others"


def summary(ratios: list[float]) -> dict[str, float]:
    """How far estimates are from what was measured."""
    errors = [exp(abs(log(ratio))) for ratio in ratios]
    return {
        "launches": len(errors),
        "geometric mean": round(exp(sum(map(log, errors)) / len(errors)), 3),
        "worst": round(max(errors), 2),
        "within 1.3": round(sum(error <= 1.3 for error in errors) / len(errors), 2),
    }


def main() -> None:
    started = time.process_time()
    chosen = next((word for word in sys.argv[1:] if not word.startswith("--")), "")
    kept = []
    for row in rows(chosen):
        seconds, limiter, found = row.predict()
        ratio = seconds / row.measured
        units = ", ".join(f"{unit.name} {unit.seconds * 1e6:.0f}" for unit in found[-1].units[:5])
        size = " ".join(str(value) for value in row.size.values())
        title = f"{row.kernel:16}{row.variant:24.24}{size:32.32}"
        times = f"{seconds * 1e6:10.1f}{row.measured * 1e6:10.1f}{ratio:6.2f}"
        print(f"{title}{times}  {limiter:16}{row.known:14}{units}", flush=True)
        kept.append({
            "kernel": row.kernel, "variant": row.variant, "size": row.size, "predicted, us": round(seconds * 1e6, 1),
            "measured, us": round(row.measured * 1e6, 1), "ratio": round(ratio, 3), "limiter": limiter,
            "known limiter": row.known, "part": part_of(row.kernel),
        })  # fmt: skip
    ratios: dict[str, list[float]] = {}
    for one in kept:
        ratios.setdefault(one["part"], []).append(one["ratio"])
        ratios.setdefault("all", []).append(one["ratio"])
    summaries = {name: summary(found) for name, found in ratios.items()}
    known = [row["limiter"] == row["known limiter"] for row in kept if row["known limiter"]]
    for name, errors in summaries.items():
        print(f"{name:8}", errors)
    print(f"limiters: {sum(known)} of {len(known)} as known; {time.process_time() - started:.0f} CPU seconds")
    if "--evidence" in sys.argv:
        evidence = {
            "command": "python benchmarks/estimate.py --evidence", "date": date.today().isoformat(),
            "ptxas": find("ptxas").version, "hardware": asdict(H200), "summary": summaries,
            "limiters": {"known": len(known), "right": sum(known)}, "rows": kept,
        }  # fmt: skip
        path = ROOT / "evidence" / "estimate.json"
        path.write_text(json.dumps(evidence, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
