"""Times that no kernel is faster than: of a problem, by its bytes and operations, and of a launch, by what it did.

A bound of a launch counts instructions, bytes and MMAs of an emulated run. It says nothing of waiting; a kernel may
take much longer, and none takes less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ptxlab.isa.gpus import SMS, gpu_of_target
from ptxlab.measure import Work

LANES, SCHEDULERS, SECTOR = 32, 4, 32


@dataclass(frozen=True)
class Peak:
    """What a GPU can do in a second, as NVIDIA's data sheets have it: without sparsity."""

    clock: float
    dram: float
    l2: float
    """Bytes from L2: 64 a cycle for each SM."""
    flops: Mapping[str, float]


_HOPPER = {"f64": 67e12, "f32": 67e12, "tf32": 495e12, "f16": 989e12, "bf16": 989e12, "e4m3": 1979e12, "e5m2": 1979e12,
           "s8": 1979e12}  # fmt: skip
_BLACKWELL = {"f64": 40e12, "f32": 80e12, "tf32": 1.1e15, "f16": 2.25e15, "bf16": 2.25e15, "e4m3": 4.5e15,
              "e5m2": 4.5e15, "s8": 4.5e15, "nvfp4": 9e15, "mxf4": 9e15, "mxf8": 4.5e15, "e2m1": 9e15}  # fmt: skip
PEAKS = {
    "H200": Peak(1.98e9, 4.8e12, 132 * 64 * 1.98e9, _HOPPER),
    "H100": Peak(1.98e9, 3.35e12, 132 * 64 * 1.98e9, _HOPPER),
    "B200": Peak(1.965e9, 8.0e12, 148 * 64 * 1.965e9, _BLACKWELL),
}


def of_problem(work: Work, gpu: str) -> float:
    """The least seconds that a problem takes: each byte moved once, or all operations."""
    peak = PEAKS[gpu]
    return max(work.bytes / peak.dram, work.flops / peak.flops.get(work.rate, peak.flops["f32"]))


def of_launch(counters: Mapping[str, Any], gpu: str) -> tuple[float, str]:
    """The least seconds that what a launch did takes, and what that is."""
    peak, sms = PEAKS[gpu], SMS[gpu]
    copied = sum(counters.get("tma", {}).values())
    moved = SECTOR * counters["requests"]["sectors"] + copied
    operations = sum(one["flops"] for one in counters.get("mmas", {}).values())
    bounds = {
        "instructions": counters["instructions"] / LANES / (sms * SCHEDULERS * peak.clock),
        "bytes": moved / peak.l2,
        "MMAs": operations / max(peak.flops.values()),
    }
    limiter = max(bounds, key=lambda name: bounds[name])
    return bounds[limiter], limiter


def gpu_of(target: str) -> str | None:
    """The GPU of a target that has peaks here."""
    found = gpu_of_target(target)
    name = getattr(found, "name", found)
    return name if name in PEAKS else None
