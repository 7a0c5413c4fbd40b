"""What Numba sees instead of a GPU and its driver while a session is open.

Numba has a simulator of its own, which interprets kernels in Python. Its half for the host serves here: device arrays
that are arrays of NumPy, streams and events that do nothing. Kernels are compiled as for a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from ptxlab.isa.gpus import SMS, gpu_named
from ptxlab.isa.targets import target_named

_FROM_API = (
    "close", "default_stream", "defer_cleanup", "event", "external_stream", "legacy_default_stream",
    "per_thread_default_stream", "select_device", "stream", "synchronize",
)  # fmt: skip
_FROM_ARRAYS = (
    "device_array", "device_array_like", "managed_array", "mapped_array", "pinned", "pinned_array",
    "pinned_array_like", "to_device",
)  # fmt: skip


class Device:
    """A GPU of the target, with the properties that Numba and its users ask for."""

    id = 0
    WARP_SIZE = 32
    MAX_THREADS_PER_BLOCK = MAX_BLOCK_DIM_X = MAX_BLOCK_DIM_Y = 1024
    MAX_BLOCK_DIM_Z = 64
    MAX_GRID_DIM_X = 2**31 - 1
    MAX_GRID_DIM_Y = MAX_GRID_DIM_Z = 65535
    uuid = "GPU-00000000-0000-0000-0000-000000000000"

    def __init__(self, target: str) -> None:
        found = target_named(target)
        self.compute_capability: Any = _capability()(*divmod(found.number, 10))
        self.name = str(gpu_named(target).name)
        self.MULTIPROCESSOR_COUNT = SMS.get(self.name, 128)
        self.MAX_SHARED_MEMORY_PER_BLOCK = 48 * 1024
        self.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = found.shared_memory
        self.supports_float16 = self.supports_bfloat16 = True
        self.device = self

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def get_primary_context(self) -> Context:
        """The only context."""
        return Context(self)

    def reset(self) -> None:
        """There is nothing to reset."""


class Context:
    """The context of a device."""

    def __init__(self, device: Device) -> None:
        self.device, self.id = device, 0

    def synchronize(self) -> None:
        """A launch has ended when it returns."""


def capability(target: str) -> tuple[int, int, str]:
    """A target as Numba's compilers name it."""
    found = target_named(target)
    return (*divmod(found.number, 10), str(found).lstrip("sm_0123456789"))


def _capability() -> Callable[..., object]:
    """Numba's type for a compute capability, where it has one."""
    driver = import_module("numba.cuda.cudadrv.driver")
    found: Callable[..., Any] = getattr(driver, "ComputeCapability", lambda major, minor: (major, minor))
    return found


def instead_of_a_gpu(stack: ExitStack, device: Device) -> None:
    """Set all of it in the modules of Numba, until the stack is closed."""
    context = Context(device)
    cuda, api = import_module("numba.cuda"), import_module("numba.cuda.api")
    simulated = import_module("numba.cuda.simulator.api")
    arrays = import_module("numba.cuda.simulator.cudadrv.devicearray")
    names = {name: getattr(simulated, name) for name in _FROM_API}
    names |= {name: getattr(arrays, name) for name in _FROM_ARRAYS}
    names |= {
        "is_available": lambda: True, "cuda_error": lambda: None, "get_current_device": lambda: device,
        "current_context": lambda devnum=None: context, "gpus": [device], "list_devices": lambda: [device],
        "is_cuda_array": arrays.is_cuda_ndarray, "_auto_device": arrays.auto_device,
        "is_float16_supported": lambda: True, "is_bfloat16_supported": lambda: True,
    }  # fmt: skip
    for module in (cuda, api):
        for name, value in names.items():
            if hasattr(module, name):
                stack.enter_context(patch.object(module, name, value))
    devices = import_module("numba.cuda.cudadrv.devices")
    stack.enter_context(patch.object(devices, "get_context", lambda devnum=None: context))
    for name in ("dispatcher", "compiler", "codegen", "decorators", "target", "cudaimpl", "vectorizers"):
        module = import_module(f"numba.cuda.{name}")
        for asked, value in (("get_current_device", lambda: device), ("get_context", lambda devnum=None: context)):
            if hasattr(module, asked):
                stack.enter_context(patch.object(module, asked, value))
    config = import_module("numba.cuda.dispatcher").config
    for name in ("CUDA_LOW_OCCUPANCY_WARNINGS", "CUDA_WARN_ON_IMPLICIT_COPY"):  # of a GPU's speed
        stack.enter_context(patch.object(config, name, 0, create=True))
    driver = import_module("numba.cuda.dispatcher").driver
    if hasattr(driver, "_to_core_stream"):
        stack.enter_context(patch.object(driver, "_to_core_stream", lambda stream: SimpleNamespace(handle=0)))
