"""What a GPU can do in a cycle or a second, each figure with where it is from.

Estimates are for the H200 only: its figures were compared with times that were measured. Figures of kind `fitted` were
chosen so that estimates of the kernels in `benchmarks/estimate.py` agree with those times; all others are as published.
Of a `Ceiling`, only what is published is known: it says what a launch takes at least.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from ptxlab.isa.gpus import architecture_for, gpu_of_target
from ptxlab.report import PtxError, error
from ptxlab.report.reader import spell_option


@dataclass(frozen=True)
class Hardware:
    """One GPU. Cycles are of the SM clock, bytes a cycle are of one SM unless a name says otherwise."""

    name: str
    sms: int
    schedulers: int
    clock: float  # Hz
    tensor_clock: float  # Hz, while `wgmma` keeps the tensor cores busy: the power limit lowers it
    mma_cycles: float  # of `mma.sync` m16n8k16 in f16 on the tensor core of one scheduler
    wgmma_columns: float  # columns of an `m64nNkK` that take a cycle
    wgmma_least: float  # cycles of a `wgmma` without columns
    wgmma_slope: float  # cycles that a column adds to it, as long as that is more than its multiplications take
    wgmma_tail: float  # cycles from the last multiplication to the end of a wait for it
    shared_bytes: float
    l1_latency: float
    l2_latency: float
    l2_bytes: float
    dram_latency: float
    dram_read: float  # bytes a second
    dram_write: float
    tma_latency_l2: float  # seconds
    tma_latency_dram: float
    launch: float  # seconds from one launch to the next, for kernels that do nothing
    block_start: float  # cycles until the first warp of a block runs, and from its end until the next block can start
    overlap: float  # the exponent of the norm that combines bounds: infinite where units overlap perfectly


H200 = Hardware(
    name="H200",
    sms=132,
    schedulers=4,
    clock=1.98e9,
    tensor_clock=1.60e9,
    mma_cycles=6.26,
    wgmma_columns=2.0,
    wgmma_least=17.0,
    wgmma_slope=0.25,
    wgmma_tail=65.0,
    shared_bytes=128.0,
    l1_latency=40.0,
    l2_latency=262.0,
    l2_bytes=64.0,
    dram_latency=650.0,
    dram_read=4.52e12,
    dram_write=3.90e12,
    tma_latency_l2=217e-9,
    tma_latency_dram=595e-9,
    launch=1.85e-6,
    block_start=600.0,
    overlap=2.5,
)


def sms_in_clusters(blocks: int) -> int:
    """SMs of an H200 that have clusters of so many blocks at a time, as the driver says: some have no place in any."""
    return {1: H200.sms, 2: H200.sms, 3: 117, 4: 120}.get(blocks, 96)


FITTED = "fitted"
SOURCES = {
    "name": "",
    "sms": "NVIDIA's data sheet",
    "schedulers": "CUDA C++ Programming Guide, compute capability 9.0",
    "clock": "the clock during the measurements in evidence/bench",
    "tensor_clock": "measured: evidence/product_clock.json, random numbers, m = n = k = 4,096",
    "mma_cycles": "github.com/revollllt/flash-vla, hardware-unit-test/sm90/constants.yaml (H100)",
    "wgmma_columns": "the same file: m64n256k16 in 129.3 cycles, m64n64k16 in 32.8",
    "wgmma_least": "a line through the same file's n = 8 (18.9 cycles), 16 (20.7) and 32 (24.7)",
    "wgmma_slope": "the same line",
    "wgmma_tail": "FlashGPU-Sim's configuration of an H100: 64 to 66 cycles",
    "shared_bytes": "arXiv 2402.13499",
    "l1_latency": "arXiv 2402.13499: 39 to 40.7",
    "l2_latency": "arXiv 2402.13499: 260 to 263",
    "l2_bytes": "github.com/deepseek-ai/DeepGEMM, csrc/jit_kernels/heuristics/sm90.hpp",
    "dram_latency": "FlashGPU-Sim's configuration of an H100: 556 for the near half of L2, 744 for the other",
    "dram_read": FITTED,
    "dram_write": FITTED,
    "tma_latency_l2": "github.com/revollllt/flash-vla, hardware-unit-test/sm90/constants.yaml (H100)",
    "tma_latency_dram": "the same file",
    "launch": FITTED,
    "block_start": FITTED,
    "overlap": FITTED,
}
assert SOURCES.keys() == {field.name for field in fields(Hardware)}

KNOWN = {"sm_90": H200, "sm_90a": H200}


@dataclass(frozen=True)
class Ceiling:
    """The most that a GPU does, by its data sheet; cycles are of one SM."""

    name: str
    sms: int
    schedulers: int
    clock: float  # Hz, the highest
    dram: float  # bytes a second
    columns: float  # of `tcgen05.mma` with 128 rows and 32 bytes along k: 8,192 operations of bf16 a cycle


B200 = Ceiling("B200", sms=148, schedulers=4, clock=1.965e9, dram=8.0e12, columns=2.0)
CEILINGS = {"sm_100": B200, "sm_100a": B200, "sm_100f": B200}


def gpu_of(target: str) -> str:
    """The GPU that a target is estimated, or bounded, for; where there is none, `PtxError` says so."""
    return (CEILINGS.get(target) or hardware_of(target)).name


def hardware_of(target: str) -> Hardware:
    """The figures for a target; where there are none, `PtxError` says so."""
    if target in KNOWN:
        return KNOWN[target]
    name = gpu_of_target(target).name
    title = f"`{target}`" if name == target else f"`{target}` ({name})"
    problem = f"there is no estimate for {title}: only an H200 (sm_90, sm_90a) was measured"
    helps = ["for what the kernel takes on an H200, say " + spell_option("--gpu H200", 'target="sm_90"')]
    raise PtxError([error("no-estimate", problem, None, helps=helps if may_run(target) else [])])


def may_run(target: str) -> bool:
    """Whether an H200 can run a module of a target."""
    return architecture_for("sm_90", target) is not None
