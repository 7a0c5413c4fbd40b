"""The CUDA functions that compiled host code calls, on the emulator: launches, tensor maps, and what comes before them.

Host code that a compiler made calls these by name. Each is a C function here: `CudaCalls.functions` has them by name.
What happens in a launch is raised when the host code has returned, because nothing can be raised through it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.driver_maps import encode_tiled
from ptxlab.device.host_memory import HostMemory, RawParameter
from ptxlab.device.result import Result
from ptxlab.isa.gpus import SMS, gpu_named
from ptxlab.isa.targets import target_named
from ptxlab.isa.units.tensor_map import ALIGNMENT, BYTES, FLAGS
from ptxlab.node import Device, Stream
from ptxlab.node.arrays import Memory

_CLUSTER, _COOPERATIVE = 4, 2  # launch attributes, as `cudaLaunchAttributeID` numbers them
# Of the flags of a tensor map, bits 1 and 21: the DSL sets them, the driver does not, and copies do not read them.
_MARKS = (1 << 1, 1 << 21 - 16)
_FAILED = 719  # `cudaErrorLaunchFailure`
_ATTRIBUTES = {16: "sms", 75: "major", 76: "minor", 81: "shared", 97: "shared", 10: "warp", 1: "threads"}


class _Dimensions(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]

    def three(self) -> tuple[int, int, int]:
        return self.x, self.y, self.z


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint32), ("padding", ctypes.c_uint32), ("value", ctypes.c_uint32 * 16)]


class _Configuration(ctypes.Structure):
    """`cudaLaunchConfig_t`."""

    _fields_ = [
        ("grid", _Dimensions),
        ("block", _Dimensions),
        ("shared", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("attribute_count", ctypes.c_uint32),
    ]


class CudaCalls:
    """Calls of host code for one module, and what came of its launches."""

    def __init__(
        self, module: ir.Module, memory: HostMemory | Memory, options: dict[str, Any], on: Device | Stream | None = None
    ) -> None:
        """`memory` is what addresses of the host are in; launches are put `on` a GPU of a node, if one is given."""
        self.module, self.memory, self.options, self.on = module, memory, options, on
        self.results: list[Result] = []
        self.problem: BaseException | None = None
        self.names: list[str] = []  # of kernels, by handle
        number = target_named(module.target).number
        self.properties = {
            "sms": SMS.get(gpu_named(module.target).name, 128), "major": number // 10, "minor": number % 10,
            "shared": target_named(module.target).shared_memory, "warp": 32, "threads": 1024,
        }  # fmt: skip
        self._kept: list[Any] = []

    def function(self, name: str) -> Any:
        """A C function of that name; one that is not known stops the host code and says so."""
        plain = name.lstrip("_")
        types, call = self._known().get(plain, ((), None))
        if call is None:
            types, call = (), lambda: self._refuse(plain)
        made = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(self._guarded(call))
        self._kept.append(made)
        return made

    def _known(self) -> dict[str, tuple[tuple[Any, ...], Callable[..., int]]]:
        pointer, word = ctypes.c_void_p, ctypes.c_int32

        def nothing(*args: object) -> int:
            return 0

        return {
            "cudaLibraryLoadData": ((pointer,) * 4 + (word, pointer, pointer, word), lambda into, *_: _put(into, 1)),
            "cudaLibraryGetKernel": ((pointer, pointer, ctypes.c_char_p), self._get_kernel),
            "cudaLibraryUnload": ((pointer,), nothing),
            "cudaKernelSetAttributeForDevice": ((pointer, word, word, word), nothing),
            "cudaFuncSetAttribute": ((pointer, word, word), nothing),
            "cudaGetDevice": ((pointer,), lambda into: _put(into, 0, 4)),
            "cudaSetDevice": ((word,), nothing),
            "cudaGetDeviceCount": ((pointer,), lambda into: _put(into, 1, 4)),
            "cudaGetLastError": ((), nothing),
            "cudaDeviceSynchronize": ((), nothing),
            "cudaStreamSynchronize": ((pointer,), nothing),
            "cudaDeviceGetAttribute": ((pointer, word, word), self._attribute),
            "cuKernelGetAttribute": ((pointer, word, pointer, word), lambda into, *_: _put(into, 0, 4)),
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor": (
                (pointer, pointer, word, ctypes.c_size_t), lambda into, *_: _put(into, 1, 4)),
            "cudaLaunchKernelEx": ((pointer, pointer, pointer), self._launch_extended),
            "cudaLaunchKernel": ((pointer, *[word] * 6, pointer, ctypes.c_size_t, pointer), self._launch),
            "cuTensorMapEncodeTiled": (
                (pointer, word, word, pointer, pointer, pointer, pointer, pointer, *[word] * 4), self._encode),
        }  # fmt: skip

    def _guarded(self, call: Callable[..., int]) -> Callable[..., int]:
        def guarded(*args: object) -> int:
            if self.problem is not None:
                return _FAILED
            try:
                return call(*args)
            except BaseException as problem:
                self.problem = problem
                return _FAILED

        return guarded

    def _refuse(self, name: str) -> int:
        raise NotImplementedError(f"the host code calls `{name}`, which the emulator does not have")

    def _get_kernel(self, into: int, library: int, name: bytes) -> int:
        self.names.append(name.decode())
        return _put(into, len(self.names))

    def _attribute(self, into: int, attribute: int, device: int) -> int:
        if attribute not in _ATTRIBUTES:
            raise NotImplementedError(
                f"the host code asks for attribute {attribute} of the GPU, which is not known here"
            )
        return _put(into, self.properties[_ATTRIBUTES[attribute]], 4)

    def _launch_extended(self, configuration: int, kernel: int, args: int) -> int:
        how = _Configuration.from_address(configuration)
        attributes = {one.id: one.value for one in how.attributes[: how.attribute_count]}
        cluster = attributes[_CLUSTER][:3] if _CLUSTER in attributes else None
        cooperative = bool(_COOPERATIVE in attributes and attributes[_COOPERATIVE][0])
        return self._run(kernel, how.grid.three(), how.block.three(), args, how.shared, cluster, cooperative)

    def _launch(self, kernel: int, *rest: int) -> int:
        *extents, args, shared, _ = rest
        return self._run(kernel, extents[:3], extents[3:], args, shared, None, False)

    def _run(
        self,
        kernel: int,
        grid: Sequence[int],
        block: Sequence[int],
        args: int,
        shared: int,
        cluster: Sequence[int] | None,
        cooperative: bool,
    ) -> int:
        function = self.module[self.names[kernel - 1]]
        pointers = ctypes.cast(args, ctypes.POINTER(ctypes.c_void_p))
        sizes = [layout.size_of_variable(parameter) for parameter in function.parameters]
        given = [self._translated(ctypes.string_at(pointers[number], size)) for number, size in enumerate(sizes)]
        cluster = None if cluster is None or list(cluster) == [1, 1, 1] else tuple(cluster)
        if self.on is not None:  # whose memory its kernels reach without being passed it
            values = [RawParameter(HostMemory(), data) for data in given]
            self.on.launch(
                function, tuple(grid), tuple(block), values, shared=shared, cluster=cluster, cooperative=cooperative
            )
            return 0
        assert isinstance(self.memory, HostMemory)
        values = [RawParameter(self.memory, data) for data in given]
        self.results.append(
            function.launch(
                tuple(grid), tuple(block), values, shared=shared,
                cluster=cluster, cooperative=cooperative, device="cpu", **self.options,
            )
        )  # fmt: skip
        return 0

    def _translated(self, data: bytes) -> bytes:
        """A parameter with addresses of the host as the emulator's."""
        found = bytearray(data)
        for at in range(0, len(data) - 7, 8):
            address = int.from_bytes(data[at : at + 8], "little")
            for region in self.memory.regions.values():
                if region.data <= address < region.data + max(region.size, 1):
                    found[at : at + 8] = (region.base + address - region.data).to_bytes(8, "little")
                    if at % ALIGNMENT == 0 and len(data) - at >= BYTES:
                        found[at + FLAGS] &= ~_MARKS[0]
                        found[at + FLAGS + 2] &= ~_MARKS[1]
        return bytes(found)

    def _encode(self, into: int, type: int, rank: int, address: int, *rest: int) -> int:
        """`cuTensorMapEncodeTiled`: the map has the host's address, which a launch translates."""
        sizes, strides, box, steps, interleave, swizzle, promotion, fill = rest
        extents = (
            _numbers(sizes, rank, 8),
            _numbers(strides, rank - 1, 8),
            _numbers(box, rank, 4),
            _numbers(steps, rank, 4),
        )
        map = encode_tiled(address, type, *extents, (interleave, swizzle, promotion, fill))
        ctypes.memmove(into, map, 128)
        return 0


def _put(into: int, value: int, size: int = 8) -> int:
    """Write a result to where a pointer of C points."""
    ctypes.memmove(into, value.to_bytes(size, "little"), size)
    return 0


def _numbers(at: int, count: int, size: int) -> tuple[int, ...]:
    data = ctypes.string_at(at, count * size)
    return tuple(int.from_bytes(data[size * one : size * one + size], "little") for one in range(count))
