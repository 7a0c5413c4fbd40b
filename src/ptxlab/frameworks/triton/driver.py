"""What Triton sees instead of a GPU's driver: a GPU of a target, whose kernels are launched on the emulator."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from ptxlab.frameworks.triton.cubin import needs_of
from ptxlab.isa.gpus import SMS, gpu_named
from ptxlab.isa.targets import target_named

_DEVICES = 1000  # numbers of these GPUs start here: Triton keeps compiled kernels by them


class UnknownPropertyError(KeyError):
    """A program asks for a property that only a GPU of silicon has."""


class Properties(dict[str, int]):
    """What a program may ask of a GPU."""

    def __missing__(self, name: str) -> int:
        raise UnknownPropertyError(f"{name}: the emulator has no clocks and no bandwidth; it knows {', '.join(self)}")


class Utilities:
    """Triton's `driver.active.utils`."""

    def __init__(self, target: str) -> None:
        self.target = target

    def get_device_properties(self, device: object = 0) -> Properties:
        """Of the GPU that the target names."""
        gpu = gpu_named(self.target)
        return Properties(
            max_shared_mem=target_named(self.target).shared_memory,
            max_num_regs=65536,
            multiprocessor_count=SMS.get(gpu.name, 128),
            warpSize=32,
        )

    def load_binary(self, name: str, cubin: bytes, shared: int, device: object) -> tuple[None, int, int, int, int]:
        """No module and no function, then registers, spilled words and the most threads of a block."""
        return None, 0, *needs_of(cubin, name)

    def unload_module(self, module: object) -> None:
        """There is none."""


class EmulatorDriver:
    """Triton's driver of a GPU of this target."""

    def __init__(self, target: str, launcher: Callable[..., object], benchmark: Callable[..., object]) -> None:
        self.number = target_named(target).number
        self.utils = Utilities(target)
        self.launcher_cls = launcher
        self._benchmark = benchmark

    @staticmethod
    def is_active() -> bool:
        """Only while it is set."""
        return False

    def get_current_target(self) -> Any:
        """What kernels are compiled for."""
        return import_module("triton.backends.compiler").GPUTarget("cuda", self.number, 32)

    def get_current_device(self) -> int:
        """A number that no GPU has."""
        return _DEVICES + self.number

    def set_current_device(self, device: object) -> None:
        """There is one."""

    def get_device_capability(self, device: object = None) -> tuple[int, int]:
        """Major and minor number."""
        return divmod(self.number, 10)

    def get_current_stream(self, device: object = None) -> int:
        """The default stream: every launch is complete when the next one starts."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Where tensors are, as they say it."""
        torch = import_module("torch")
        return torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")

    def get_device_interface(self) -> Any:
        """torch's module of functions for the device."""
        return import_module("torch").cpu

    def get_benchmarker(self) -> Callable[..., object]:
        """What autotuning measures by."""
        return self._benchmark

    def get_empty_cache_for_benchmark(self) -> Any:
        """Nothing needs to be evicted."""
        return import_module("torch").empty(0)

    def clear_cache(self, cache: object) -> None:
        """There is none."""

    def map_python_to_cpp_type(self, type: str) -> str:
        """For launchers in C++, of which there are none here."""
        raise NotImplementedError(f"the emulator has no launcher in C++ ({type})")

    def assemble_tensormap_to_arg(self, tensormaps_info: object, args: object) -> Any:
        """As it is."""
        return args

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: object) -> Any:
        """Memory that profiling writes into."""
        return import_module("numpy").zeros(size, "uint8")


def no_device(*args: object, **named: object) -> nullcontext[None]:
    """A context that does nothing, for a program that chooses its GPU."""
    return nullcontext()
