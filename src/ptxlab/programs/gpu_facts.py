"""What a program may ask of the GPU that it sees, as `cudaGetDeviceProperties` and its relatives answer it."""

from ptxlab.device.limits import available
from ptxlab.isa.gpus import SMS, GpuModel
from ptxlab.isa.occupancy import limits_of
from ptxlab.isa.targets import target_named

# Gigabytes of memory, clock in kHz, bits of the memory's bus, megabytes of L2: by NVIDIA's data sheets.
_MODELS = {
    "V100": (32, 1_530_000, 4096, 6), "T4": (16, 1_590_000, 256, 4), "A100": (80, 1_410_000, 5120, 40),
    "H100": (80, 1_980_000, 5120, 50), "H200": (141, 1_980_000, 6144, 50), "B200": (180, 1_965_000, 8192, 126),
    "RTX 4090": (24, 2_520_000, 384, 72), "RTX 5090": (32, 2_407_000, 512, 96), "L4": (24, 2_040_000, 192, 48),
}  # fmt: skip


def facts_of(gpu: GpuModel) -> dict[str, int]:
    """Numbers by the names that `runtime/` has for them."""
    target, limits = target_named(gpu.target), limits_of(gpu.target)
    memory, clock, bus, l2 = _MODELS.get(gpu.name, (24, 1_500_000, 384, 40))
    return {
        "major": target.number // 10, "minor": target.number % 10, "sms": SMS.get(gpu.name, 128),
        "shared_block": target.shared_memory, "shared_sm": 65536 if limits is None else limits.shared,
        "blocks_sm": 16 if limits is None else limits.blocks,
        "threads_sm": 1024 if limits is None else 32 * limits.warps,
        "memory": memory << 10, "memory_available": min(memory << 30, available() // 2), "clock": clock,
        "memory_clock": 2_600_000, "bus": bus, "l2": l2 << 20, "clusters": int(target.number >= 90),
    }  # fmt: skip
