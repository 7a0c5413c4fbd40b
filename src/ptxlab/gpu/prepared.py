"""A launch that the driver can be given: the kernel, the sizes that were checked, and a buffer for its parameters.

Making one takes far longer than starting it, so `ready` keeps those of a module by all that they are made from. Only
the bytes of the parameters change from launch to launch.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple

from ptxlab import ir
from ptxlab.device.limits import check_launch
from ptxlab.device.options import Extents
from ptxlab.gpu.driver import DriverError, bindings, call, current
from ptxlab.gpu.failures import Subject
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.loading import Compiler, GpuState, Loaded, identity, load
from ptxlab.gpu.output import can_print
from ptxlab.gpu.parameters import Signature
from ptxlab.gpu.starting import WRONG_CONTEXT, Start, can_start, starting
from ptxlab.gpu.waiting import fail
from ptxlab.report import KernelError, error


class Kind(NamedTuple):
    """What kind of launch it is: all blocks at once, and perhaps before the grid before it is complete."""

    cooperative: bool = False
    overlap: bool = False


How = tuple[Extents, Extents, int, Extents | None, Kind, int]
"""How a kernel is launched: grid, block, shared memory, cluster, the kind of launch, and the stream's handle."""
_KEPT = 256  # launches of a module that stay ready
_PLAIN_SHARED = 48 * 1024  # bytes of shared memory, declared and dynamic together, that a kernel gets without asking
_PORTABLE_CLUSTER = 8  # blocks of a cluster that every GPU with clusters has


class Prepared:
    """A kernel with its parameters in place; `launch` starts it and does not wait."""

    def __init__(
        self,
        module: ir.Module,
        kernel: ir.Function,
        loaded: Loaded,
        how: How,
    ) -> None:
        grid, block, shared, cluster, kind, stream = how
        self.kernel, self.loaded = Subject.of(module, kernel), loaded
        self.can_print = can_print(module)
        self.signature = Signature(kernel)
        self.owners: Any = ()  # of the memory that the parameters point to
        driver = bindings()
        self._current = driver.cuCtxGetCurrent
        with current(loaded.gpu.number):
            self._context = int(call("cuCtxGetCurrent"))
            check_sizes(module, kernel, loaded, shared, grid, cluster)
            self.function = loaded.function(kernel.name)
            _allow(loaded, kernel, shared, cluster)
        size = self.signature.size
        data = (ctypes.c_uint8 * max(size, 1))()
        addresses = [ctypes.addressof(data) + offset for offset, _ in self.signature.slots]
        self._data = memoryview(data).cast("B")[:size]
        self._pointers = (ctypes.c_void_p * max(len(addresses), 1))(*addresses)
        self._parameters = ctypes.addressof(self._pointers)
        self._lock = threading.Lock()
        self.config = driver.CUlaunchConfig()
        self.config.gridDimX, self.config.gridDimY, self.config.gridDimZ = grid
        self.config.blockDimX, self.config.blockDimY, self.config.blockDimZ = block
        self.config.sharedMemBytes = shared
        self.config.hStream = stream
        attributes = _attributes(cluster, kind)
        self.config.attrs, self.config.numAttrs = attributes, len(attributes)
        self._start = driver.cuLaunchKernelEx

    def fill(self, data: bytes) -> None:
        """Put the parameters in place."""
        self._data[:] = data

    @property
    def parameters(self) -> bytes:
        """The parameters that are in place."""
        return bytes(self._data)

    def start(self, data: bytes | bytearray) -> None:
        """Start the kernel with these parameters; the driver has taken them when the call returns."""
        if int(self._current()[1]) == self._context:  # as nearly always, and asking is cheaper than making it so
            self._start_here(data)
        else:
            with current(self.loaded.gpu.number):
                self._start_here(data)

    def _start_here(self, data: bytes | bytearray) -> None:
        with self._lock:
            self._data[:] = data
            (status,) = self._start(self.config, self.function, self._parameters, 0)
        if status:
            raise DriverError(status.name, "cuLaunchKernelEx")

    def starter(self, data: bytes, changing: Sequence[tuple[int, int]]) -> Start:
        """What starts the kernel with these parameters but for some addresses: where each goes, and its number."""
        offsets = [offset for offset, _ in self.signature.slots]
        driver = bindings()
        most = max((number for _, number in changing), default=0)
        if isinstance(driver, ModuleType) and can_start(len(data), len(offsets), most + 1):
            launch = self._context, int(self.config.getPtr()), int(self.function)
            return starting(launch, offsets, data, changing)

        def start(addresses: list[int]) -> int:
            filled = bytearray(data)
            for place, number in changing:
                struct.pack_into("<Q", filled, place, addresses[number])
            self.start(filled)
            return 0

        return start

    def start_again(self, start: Start, addresses: list[int], status: int) -> None:
        """Start it in its own context where another one was current; other errors are the driver's."""
        if status == WRONG_CONTEXT:
            with current(self.loaded.gpu.number):
                status = start(addresses)
        if status:
            raise DriverError(bindings().CUresult(status).name, "cuLaunchKernelEx")

    def launch(self) -> None:
        """Start the kernel on its stream, in the context that is current in this thread, and do not wait for it."""
        (status,) = self._start(self.config, self.function, self._parameters, 0)
        if status:
            problem = DriverError(status.name, "cuLaunchKernelEx")
            raise KernelError([fail(problem, self.kernel, self.loaded.gpu)])


def make(
    module: ir.Module, kernel: ir.Function, gpu: Gpu, state: GpuState, how: How, compile: Compiler | None
) -> Prepared:
    """A launch whose sizes fit the kernel and the GPU; only its parameters are missing."""
    grid, block, *_ = how
    check_launch(module, kernel, grid, block, 0, None)
    return Prepared(module, kernel, load(module, kernel, gpu, state, compile), how)


def ready(
    module: ir.Module, kernel: ir.Function, gpu: Gpu, state: GpuState, how: How, compile: Compiler | None
) -> Prepared:
    """The same, as it was made for the last launch that was like this one."""
    key = kernel.name, gpu.number, how, compile if compile is None else identity(compile)
    found = state.ready.get(key)
    if found is None:
        found = make(module, kernel, gpu, state, how, compile)
        if len(state.ready) >= _KEPT:
            state.ready.pop(next(iter(state.ready)), None)
        state.ready[key] = found
    return found


def note_run(state: GpuState, prepared: Prepared) -> None:
    """Remember where a kernel of a module ran last: there its variables are looked up."""
    number = prepared.loaded.gpu.number
    state.host.ran_on = number
    state.last[number] = prepared


def _allow(loaded: Loaded, kernel: ir.Function, shared: int, cluster: Extents | None) -> None:
    """Ask for what a kernel does not get by itself; as much as there is, so that no launch takes it from another."""
    attribute = bindings().CUfunction_attribute
    function = loaded.function(kernel.name)
    declared = loaded.static_shared(kernel.name)
    if shared and shared + declared > _PLAIN_SHARED:
        most = loaded.gpu.shared - declared
        call("cuFuncSetAttribute", function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most)
    cluster = cluster or kernel.required_cluster
    if cluster is not None and cluster[0] * cluster[1] * cluster[2] > _PORTABLE_CLUSTER:
        call("cuFuncSetAttribute", function, attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)


def _attributes(cluster: Extents | None, kind: Kind) -> list[object]:
    driver = bindings()
    found = []
    if cluster is not None:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        one.value.clusterDim.x, one.value.clusterDim.y, one.value.clusterDim.z = cluster
        found.append(one)
    if kind.cooperative:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        one.value.cooperative = 1
        found.append(one)
    if kind.overlap:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        one.value.programmaticStreamSerializationAllowed = 1
        found.append(one)
    return found


def check_sizes(
    module: ir.Module, kernel: ir.Function, loaded: Loaded, shared: int, grid: Extents, cluster: Extents | None
) -> None:
    """Refuse what this GPU has no memory for."""
    gpu, static = loaded.gpu, loaded.static_shared(kernel.name)
    span = module.name_span(kernel)
    problems = []
    if shared < 0:
        problems.append(error("bad-launch", f"`{kernel.title}`: {shared} bytes of shared memory", span, "this kernel"))
    elif static + shared > gpu.shared:
        problems.append(
            error(
                "bad-launch",
                f"`{kernel.title}`: {static + shared} bytes of shared memory, {gpu.name} has {gpu.shared} for a block",
                span,
                "this kernel",
                notes=[f"{static} bytes are declared in the module, {shared} are asked for at launch"],
                helps=["use smaller tiles or fewer stages"],
            )
        )
    if kernel.directive("blocksareclusters") is not None:
        cluster = None  # then the grid counts clusters
    if cluster is not None and any(size % part for size, part in zip(grid, cluster, strict=True) if part > 0):
        problems.append(
            error(
                "bad-launch",
                f"`{kernel.title}`: a grid of {grid} is not a multiple of the cluster {cluster}",
                span,
                "this kernel",
                helps=["round the grid up, and let the blocks beyond do nothing"],
            )
        )
    if problems:
        raise KernelError(problems)
