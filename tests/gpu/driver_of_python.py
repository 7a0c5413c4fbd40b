"""A CUDA driver in Python: memory is this machine's, a kernel is a function of its parameters.

It replaces `cuda.bindings.driver` in tests of what is done with the driver: what is copied, what is freed, and
what is said when it answers with an error. `fail["cuMemAlloc"] = 2` makes that call fail with that status.
"""

import ctypes
from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

QUIET = ("cuEventQuery", "cuLaunchKernelEx")  # they give a status and nothing else


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701
    CUDA_ERROR_ASSERT = 710
    CUDA_ERROR_MISALIGNED_ADDRESS = 716
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720
    CUDA_ERROR_UNKNOWN = 999


class _Names:
    """Any name, as itself."""

    def __getattr__(self, name: str) -> str:
        return name


class Driver:
    """An H200 as far as the driver reports it; `kernel` is what runs, with the addresses of its parameters."""

    CUresult = CUresult
    CUlaunchConfig = SimpleNamespace
    CUjit_option = CUdevice_attribute = CUfunction_attribute = CUlaunchAttributeID = CUpointer_attribute = _Names()
    CUstreamCaptureMode = _Names()

    def __init__(self, kernel: Callable[[list[int], Any], None] | None = None) -> None:
        self.kernel = kernel
        self.fail: dict[str, int] = {}
        self.memory: dict[int, Any] = {}
        self.calls: list[str] = []
        self.log = b""
        self.image = b""
        self.parameters = 0
        self.attributes: dict[Any, int] = {}
        self.configs: list[Any] = []
        self.variables: dict[bytes, bytearray] = {}
        self.missing: set[bytes] = set()
        self.recorded: list[Any] | None = None
        self.graphs: dict[int, list[Any]] = {}

    def CUlaunchAttribute(self) -> Any:  # noqa: N802
        return SimpleNamespace(value=SimpleNamespace(clusterDim=SimpleNamespace()))

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if not name.startswith("cu"):
            raise AttributeError(name)

        def answer(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append(name)
            if name in self.fail:
                if name == "cuModuleLoadDataEx" and arguments[3]:
                    arguments[3][0][: len(self.log)] = self.log
                return (CUresult(self.fail[name]), *[None] * (name not in QUIET))
            if name == "cuModuleGetGlobal" and arguments[1] in self.missing:
                return (CUresult.CUDA_ERROR_NOT_FOUND, None, None)
            method = getattr(type(self), f"_{name}", None)
            return (CUresult.CUDA_SUCCESS, *(method(self, *arguments) if method else (0,)))

        answer.__name__ = name
        return answer

    def _cuModuleLoadDataEx(self, image: bytes, *options: Any) -> tuple[int]:  # noqa: N802
        self.image = image
        return (1,)

    def _cuInit(self, flags: int) -> tuple[()]:  # noqa: N802
        return ()

    def _cuCtxPopCurrent(self) -> tuple[()]:  # noqa: N802
        return ()

    def _cuDevicePrimaryCtxRetain(self, device: Any) -> tuple[int]:  # noqa: N802
        return (1,)

    def _cuCtxGetCurrent(self) -> tuple[int]:  # noqa: N802
        return (1,)

    def _cuModuleGetGlobal(self, module: Any, name: bytes) -> tuple[int, int]:  # noqa: N802
        memory = self.variables[name]
        return ctypes.addressof((ctypes.c_uint8 * len(memory)).from_buffer(memory)), len(memory)

    def _cuStreamCreate(self, flags: int) -> tuple[int]:  # noqa: N802
        return (77,)

    def _cuStreamBeginCapture(self, stream: int, mode: str) -> tuple[()]:  # noqa: N802
        self.recorded = []
        return ()

    def _cuStreamEndCapture(self, stream: int) -> tuple[int]:  # noqa: N802
        self.graphs[len(self.graphs) + 1], self.recorded = self.recorded or [], None
        return (len(self.graphs),)

    def _cuGraphInstantiate(self, graph: int, flags: int) -> tuple[int]:  # noqa: N802
        return (graph,)

    def _cuGraphLaunch(self, graph: int, stream: int) -> tuple[()]:  # noqa: N802
        for again in self.graphs[graph]:
            again()
        return ()

    def _cuEventQuery(self, event: Any) -> tuple[()]:  # noqa: N802
        return ()

    def _cuDeviceGetCount(self) -> tuple[int]:  # noqa: N802
        return (1,)

    def _cuDeviceGetName(self, length: int, device: Any) -> tuple[bytes]:  # noqa: N802
        return (b"NVIDIA H200\0\0",)

    def _cuDeviceTotalMem(self, device: Any) -> tuple[int]:  # noqa: N802
        return (140 << 30,)

    def _cuDriverGetVersion(self) -> tuple[int]:  # noqa: N802
        return (13000,)

    def _cuDeviceGetAttribute(self, name: str, device: Any) -> tuple[int]:  # noqa: N802
        values = {"MAJOR": 9, "MINOR": 0, "COUNT": 132, "OPTIN": 232448}
        return (values[name.rpartition("_")[2]],)

    def _cuMemAlloc(self, size: int) -> tuple[int]:  # noqa: N802
        block = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(block)] = block
        return (ctypes.addressof(block),)

    def _cuMemFree(self, address: int) -> tuple[()]:  # noqa: N802
        del self.memory[address]
        return ()

    def _copy(self, to: int, source: int, size: int) -> tuple[()]:
        ctypes.memmove(to, source, size)
        return ()

    _cuMemcpyHtoD = _cuMemcpyDtoH = _copy  # noqa: N815

    def _cuFuncSetAttribute(self, function: Any, name: str, value: int) -> tuple[()]:  # noqa: N802
        self.attributes[name] = value
        return ()

    def _cuLaunchKernelEx(self, config: Any, function: Any, parameters: int, extra: int) -> tuple[()]:  # noqa: N802
        self.configs.append(config)
        if self.kernel is None:
            return ()
        places = [place or 0 for place in (ctypes.c_void_p * self.parameters).from_address(parameters)]
        if self.recorded is None or config.hStream != 77:
            self.kernel(places, config)
            return ()
        # What is recorded are the values that the parameters have now.
        kept = [ctypes.create_string_buffer(ctypes.string_at(place, 8)) for place in places]
        self.recorded.append(lambda: self.kernel([ctypes.addressof(one) for one in kept], config))
        return ()
