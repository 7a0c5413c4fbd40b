"""torch for programs that ask for a GPU: it is that of a target, and tensors have addresses of the emulator.

Where there is no GPU, tensors on `"cuda"` are in the host's memory, and every tensor says that it is on `"cuda"`.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

from ptxlab.frameworks.arrays import Arrays
from ptxlab.isa.gpus import SMS, gpu_named
from ptxlab.isa.targets import target_named

_PROPERTIES = {"get_device_capability", "get_device_properties", "get_device_name"}  # of the target, not of a GPU here


class Machine:
    """The GPUs that torch sees: one, whose launches are complete when they return."""

    count = 1

    def current(self) -> int:
        """The GPU that is chosen."""
        return 0

    def choose(self, device: int) -> None:
        """Choose one."""

    def wait(self) -> None:
        """Wait for what was launched."""

    def owner(self, tensor: object) -> int:
        """The GPU that a tensor is on."""
        return 0

    def functions(self) -> dict[str, object]:
        """What programs see in `torch.cuda` instead of what there is for every machine."""
        return {}

    def call(self, function: Callable[..., Any], args: Any, named: Any, is_for_gpu: bool) -> Any:
        """Call a function of torch; `is_for_gpu` if its arguments name a GPU."""
        return function(*args, **named)

    def to_gpu(self, tensor: object) -> Any:
        """A tensor on a GPU, where every tensor is."""
        return tensor

    def to_host(self, tensor: Any) -> Any:
        """A copy of a tensor on the host."""
        return tensor.clone()

    def record_stream(self, tensor: object, stream: object) -> None:
        """Keep the memory of a tensor until a stream has done with it."""


@contextmanager
def torch_as_cpu(
    arrays: Arrays, target: str, cuda: bool, machine: Machine | None = None
) -> Iterator[Callable[[], Any] | None]:
    """Have `Tensor.data_ptr` give addresses of the emulator, and with `cuda` have torch know GPUs of the target.

    torch is left as it is where it was not imported. Gives what other threads enter to have it, too.
    """
    torch = sys.modules.get("torch")
    is_node, machine = machine is not None, machine or Machine()  # whose GPUs are not those of this computer
    if torch is None or not hasattr(torch, "overrides"):
        yield None
        return
    with ExitStack() as stack:
        redirects = cuda and (is_node or not torch.cuda.is_available())
        if cuda:
            for name, value in _functions(torch, target, machine).items():
                if redirects or name in _PROPERTIES:
                    stack.enter_context(patch.object(torch.cuda, name, value))
            stack.callback(_forget_functions)
        if redirects:  # torch refuses a stream that is not its own before it asks a mode
            stack.enter_context(patch.object(torch.Tensor, "record_stream", lambda *args: machine.record_stream(*args)))
        mode = _mode(torch, arrays, redirects, machine)
        stack.enter_context(mode)
        if hasattr(torch.autograd, _BACKWARD):
            stack.enter_context(
                patch.object(torch.autograd, _BACKWARD, _under(mode, getattr(torch.autograd, _BACKWARD)))
            )
        yield lambda: _mode(torch, arrays, redirects, machine)


_BACKWARD = "_engine_run_backward"


def _under(mode: Any, function: Callable[..., object]) -> Callable[..., object]:
    """A function with a mode on: torch calls `backward` and `grad` as functions of the mode, and then it is off."""

    def run(*args: object, **named: object) -> object:
        with mode:
            return function(*args, **named)

    return run


def _functions(torch: ModuleType, target: str, machine: Machine) -> dict[str, object]:
    """What programs ask of `torch.cuda` before they start kernels."""
    number, gpu = target_named(target).number, gpu_named(target)
    properties = SimpleNamespace(
        name=gpu.name,
        major=number // 10,
        minor=number % 10,
        multi_processor_count=SMS.get(gpu.name, 128),
        warp_size=32,
        regs_per_multiprocessor=65536,
        shared_memory_per_block_optin=target_named(target).shared_memory,
        total_memory=64 << 30,
        max_threads_per_multi_processor=1536 if number // 10 == 12 or number in (86, 89) else 2048,
    )
    stream = SimpleNamespace(
        cuda_stream=0, synchronize=machine.wait, wait_stream=_nothing, wait_event=_nothing, record_event=_nothing
    )
    generator = _Generator(torch)
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda *args, **named: None,
        "device_count": lambda: machine.count,
        "current_device": machine.current,
        "set_device": lambda device: machine.choose(_number(torch, device, machine)),
        "get_device_capability": lambda device=None: (properties.major, properties.minor),
        "get_device_properties": lambda device=None: properties,
        "get_device_name": lambda device=None: properties.name,
        "synchronize": lambda device=None: machine.wait(),
        "empty_cache": lambda *args, **named: None,
        "manual_seed": lambda seed: generator.manual_seed(seed),
        "manual_seed_all": lambda seed: generator.manual_seed(seed),
        "current_stream": lambda device=None: stream,
        "default_stream": lambda device=None: stream,
        "stream": lambda stream=None: nullcontext(),
        "device": lambda device=None: _chosen(torch, device, machine),
        "device_of": lambda tensor=None: _chosen(torch, tensor.device, machine),
        "is_current_stream_capturing": lambda: False,
        "default_generators": (generator,),
        **machine.functions(),
    }


def _number(torch: Any, device: object, machine: Machine) -> int:
    """The number of a device; of one without a number, the one that is chosen."""
    if device is None or isinstance(device, int):
        return machine.current() if device is None else device
    index = torch.device(device).index
    return machine.current() if index is None else int(index)


@contextmanager
def _chosen(torch: object, device: object, machine: Machine) -> Iterator[None]:
    """Another device, for a while."""
    before = machine.current()
    machine.choose(_number(torch, device, machine))
    try:
        yield
    finally:
        machine.choose(before)


class _Generator:
    """The random numbers of a GPU: a state of a seed and an offset, from which kernels compute them."""

    def __init__(self, torch: ModuleType) -> None:
        self._torch = torch
        self._state: tuple[int, ...] = (torch.default_generator.initial_seed(), 0)

    def get_state(self) -> Any:
        return self._torch.frombuffer(bytearray(struct.pack("<QQ", *self._state)), dtype=self._torch.uint8)

    def set_state(self, state: Any) -> _Generator:
        self._state = struct.unpack("<QQ", bytes(state.tolist()))
        return self

    def initial_seed(self) -> int:
        return self._state[0]

    def manual_seed(self, seed: int) -> _Generator:
        self._state = (self._torch.default_generator.manual_seed(seed).initial_seed(), 0)
        return self


def _forget_functions() -> None:
    """Have torch.compile look for its functions again."""
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not None and hasattr(rules.get_torch_obj_rule_map, "cache_clear"):
        rules.get_torch_obj_rule_map.cache_clear()


def _nothing(*args: object, **named: object) -> None:
    """Nothing is to be done: launches are complete when they return."""


def _mode(torch: Any, arrays: Arrays, redirects: bool, machine: Machine) -> Any:
    """What torch asks before each of its functions."""
    tensor = torch.Tensor
    address: Callable[..., Any] = tensor.data_ptr
    # Where every tensor is on the GPU: `.cuda()` is the tensor itself, `.cpu()` is a copy.
    said: dict[Any, Callable[..., Any]] = {
        tensor.is_cuda.__get__: lambda _: True,
        tensor.is_cpu.__get__: lambda _: False,
        tensor.device.__get__: lambda this: torch.device("cuda", machine.owner(this)),
        tensor.get_device: lambda this: machine.owner(this),
        tensor.cuda: lambda this, *_, **__: machine.to_gpu(this),
        tensor.cpu: lambda this, *_, **__: machine.to_host(this),
    }

    # What reads and writes no memory that a kernel may have been given.
    names = (
        "size",
        "stride",
        "numel",
        "dim",
        "element_size",
        "storage_offset",
        "untyped_storage",
        "is_contiguous",
        "view",
    )
    alone = {getattr(tensor, name) for name in names}
    alone |= {getattr(tensor, name).__get__ for name in ("shape", "dtype", "ndim", "layout", "requires_grad", "nbytes")}
    alone |= {getattr(torch, name) for name in ("empty", "zeros", "ones", "full", "empty_like", "tensor", "arange")}

    def here(value: Any) -> Any:
        """A device that is not there as the CPU."""
        if isinstance(value, torch.device):
            return torch.device("cpu") if value.type == "cuda" else value
        if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
            return "cpu"
        return value

    class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, types: object, args: Any = (), named: Any = None) -> Any:
            named = named or {}
            if function == address and args[0].device.type in ("cpu", "cuda"):
                return arrays.address(args[0])
            if not redirects or function is torch.device:
                return function(*args, **named)
            if function in said and args[0].device.type == "cpu":
                return said[function](*args, **named)
            if function not in alone:
                machine.wait()
            device = named.get("device")
            named = {name: here(value) for name, value in named.items()}
            if named.get("device") is None or isinstance(named["device"], int):
                named = (
                    {name: value for name, value in named.items() if name != "device"} if "device" in named else named
                )
            named.pop("pin_memory", None)
            is_for_gpu = device is not None or any(here(value) is not value for value in args)
            result = machine.call(function, tuple(map(here, args)), named, is_for_gpu)
            if machine.count > 1 and device is not None and isinstance(result, tensor):
                with _chosen(torch, device, machine):
                    arrays.address(result)  # it is of that GPU from now on
            return result

    return Mode()
