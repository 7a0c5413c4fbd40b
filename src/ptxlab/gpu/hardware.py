"""The GPUs of this machine, and what each of them can run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ptxlab.gpu.driver import absence, bindings, call
from ptxlab.isa.gpus import architecture_for
from ptxlab.isa.targets import TARGETS, Version

# The newest PTX that the compiler inside a driver reads, by the version of CUDA that the driver states (the release
# notes of the PTX manual); a driver newer than all of these reads at least as much as the last.
_PTX_OF_CUDA: dict[Version, Version] = {
    (11, 0): (7, 0), (11, 1): (7, 1), (11, 2): (7, 2), (11, 3): (7, 3), (11, 4): (7, 4), (11, 5): (7, 5),
    (11, 6): (7, 6), (11, 7): (7, 7), (11, 8): (7, 8), (12, 0): (8, 0), (12, 1): (8, 1), (12, 2): (8, 2),
    (12, 3): (8, 3), (12, 4): (8, 4), (12, 5): (8, 5), (12, 6): (8, 5), (12, 7): (8, 6), (12, 8): (8, 7),
    (12, 9): (8, 8), (13, 0): (9, 0), (13, 1): (9, 1), (13, 2): (9, 2), (13, 3): (9, 3), (13, 4): (9, 4),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: `target` is what it is, such as `sm_90`; `shared` the bytes of shared memory that a block can have."""

    number: int
    name: str
    target: str
    memory: int
    sm_count: int
    shared: int
    cuda: Version

    @property
    def newest_ptx(self) -> Version:
        """The newest version of PTX that the driver's own compiler reads."""
        return newest_ptx(self.cuda)

    def architecture_for(self, target: str) -> str | None:
        """What to compile a module of this target for, or None where this GPU can't run it.

        >>> h200 = Gpu(0, "NVIDIA H200", "sm_90", 0, 132, 232448, (13, 0))
        >>> [h200.architecture_for(target) for target in ("sm_80", "sm_90a", "sm_100a", "sm_120f")]
        ['sm_90', 'sm_90a', None, None]
        """
        return architecture_for(self.target, target)

    @property
    def targets(self) -> list[str]:
        """Every target whose modules this GPU can run."""
        return [name for name in TARGETS if self.architecture_for(name) is not None]


def newest_ptx(cuda: Version) -> Version:
    """The newest PTX that a driver of this CUDA version reads."""
    return max((ptx for since, ptx in _PTX_OF_CUDA.items() if since <= cuda), default=(1, 0))


def devices() -> list[Gpu]:
    """The GPUs of this machine, in the driver's order; none where there is no driver, or no package to reach it."""
    if absence() is not None:
        return []
    return [gpu(number) for number in range(call("cuDeviceGetCount"))]


@cache
def gpu(number: int = 0) -> Gpu:
    """The GPU of that number; raises `KernelError` where there is no GPU at all, `ValueError` for a wrong number."""
    attribute = bindings().CUdevice_attribute
    count = call("cuDeviceGetCount")
    if number >= count:
        raise ValueError(f"device 'cuda:{number}': this machine has {count} GPU{'s' * (count != 1)}, counted from 0")
    device = call("cuDeviceGet", number)

    def ask(name: str) -> int:
        return int(call("cuDeviceGetAttribute", getattr(attribute, f"CU_DEVICE_ATTRIBUTE_{name}"), device))

    stated = int(call("cuDriverGetVersion"))
    return Gpu(
        number,
        call("cuDeviceGetName", 256, device).split(b"\0")[0].decode(),
        f"sm_{ask('COMPUTE_CAPABILITY_MAJOR')}{ask('COMPUTE_CAPABILITY_MINOR')}",
        int(call("cuDeviceTotalMem", device)),
        ask("MULTIPROCESSOR_COUNT"),
        ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
        (stated // 1000, stated % 1000 // 10),
    )


def driver_release() -> str | None:
    """The release of the driver, such as `580.159.03`, where the system says."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\s", text)
    return found[1] if found else None
