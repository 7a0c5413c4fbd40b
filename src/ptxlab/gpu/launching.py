"""A launch on a GPU.

`launch` reads from top to bottom. `Prepared` is a launch whose arguments are parameters already.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from ptxlab import ir
from ptxlab.emulate import layout
from ptxlab.emulate.launch import Result
from ptxlab.emulate.limits import check_launch
from ptxlab.gpu.arrays import LEGACY_STREAM
from ptxlab.gpu.driver import DriverError, bindings, call, current
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.loading import Compiler, Loaded, load
from ptxlab.gpu.output import can_print, captured
from ptxlab.gpu.parameters import Parameters, convert
from ptxlab.gpu.waiting import fail, refuse_broken, run, with_message
from ptxlab.report import KernelError, error

Extents = tuple[int, int, int]
_PLAIN_SHARED = 48 * 1024  # bytes of dynamic shared memory that a kernel gets without asking
_PORTABLE_CLUSTER = 8  # blocks of a cluster that every GPU with clusters has


class Prepared:
    """A kernel with its parameters in place; `launch` starts it and does not wait."""

    def __init__(
        self,
        loaded: Loaded,
        parameters: Parameters,
        grid: Extents,
        block: Extents,
        shared: int,
        cluster: Extents | None,
        cooperative: bool,
        stream: int,
    ) -> None:
        self.loaded = loaded
        self.owners = parameters.memories  # they live as long as this
        kernel, data = parameters.kernel, parameters.placed()
        self.number = loaded.gpu.number
        driver = bindings()
        with current(self.number):
            self.function = loaded.function(kernel.name)
            _allow(self.function, shared, cluster)
        self.data = ctypes.create_string_buffer(data, max(len(data), 1))
        offsets = layout.block_of(kernel.parameters).offsets
        start = ctypes.addressof(self.data)
        places = [start + offsets[id(parameter)] for parameter in kernel.parameters]
        self.pointers = (ctypes.c_void_p * max(len(places), 1))(*places)
        self.parameters = ctypes.addressof(self.pointers)
        self.config = driver.CUlaunchConfig()
        self.config.gridDimX, self.config.gridDimY, self.config.gridDimZ = grid
        self.config.blockDimX, self.config.blockDimY, self.config.blockDimZ = block
        self.config.sharedMemBytes = shared
        self.config.hStream = stream
        attributes = _attributes(cluster, cooperative)
        self.config.attrs, self.config.numAttrs = attributes, len(attributes)
        self._start = driver.cuLaunchKernelEx

    def launch(self) -> None:
        """Start the kernel on its stream, in the context that is current in this thread, and do not wait for it."""
        (status,) = self._start(self.config, self.function, self.parameters, 0)
        if int(status):
            raise DriverError(status.name, "cuLaunchKernelEx")


def _allow(function: Any, shared: int, cluster: Extents | None) -> None:
    """Ask for what a kernel does not get by itself."""
    attribute = bindings().CUfunction_attribute
    if shared > _PLAIN_SHARED:
        call("cuFuncSetAttribute", function, attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared)
    if cluster is not None and cluster[0] * cluster[1] * cluster[2] > _PORTABLE_CLUSTER:
        call("cuFuncSetAttribute", function, attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1)


def _attributes(cluster: Extents | None, cooperative: bool) -> list[Any]:
    driver = bindings()
    found = []
    if cluster is not None:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        one.value.clusterDim.x, one.value.clusterDim.y, one.value.clusterDim.z = cluster
        found.append(one)
    if cooperative:
        one = driver.CUlaunchAttribute()
        one.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        one.value.cooperative = 1
        found.append(one)
    return found


def launch(
    module: ir.Module,
    kernel: ir.Function,
    gpu: Gpu,
    *,
    grid: Extents,
    block: Extents,
    args: Sequence[Any],
    shared: int = 0,
    cluster: Extents | None = None,
    cooperative: bool = False,
    stream: Any = None,
    compile: Compiler | None = None,
    wait: bool = True,
    timeout: float | None = None,
    on_error: str = "raise",
    kept: dict[int, bytearray] | None = None,
) -> Result:
    """Run a kernel on a GPU; with `kept`, arrays of the host stay as they are and what came out is there."""
    refuse_broken()
    check_extents(module, kernel, grid, block)
    parameters = convert(module, kernel, args, gpu)
    copies = parameters.copies
    if copies.regions and not wait:
        raise ValueError("arrays of this machine's memory are copied back when the kernel has ended; "
                         "`wait=False` needs arrays that lie on the GPU")  # fmt: skip
    handle = stream_handle(stream)
    result = Result()
    loaded = load(module, kernel, gpu, compile)
    with current(gpu.number):
        try:
            check_sizes(module, kernel, gpu, loaded, shared, grid, cluster)
            for other in {memory.stream for memory in parameters.memories} - {None, LEGACY_STREAM, handle}:
                call("cuStreamSynchronize", other)
            copies.copy_in()
            prepared = Prepared(loaded, parameters, grid, block, shared, cluster, cooperative, handle)
            if not wait:
                prepared.launch()
                return result
            with captured(can_print(module)) as written:
                try:
                    result.seconds = run(prepared.launch, handle, timeout)
                except DriverError as problem:
                    result.diagnostics.append(fail(problem, module, kernel, gpu))
            result.output = written.output
            if result.diagnostics and written.errors:
                result.diagnostics[0] = with_message(result.diagnostics[0], written.errors)
            if not result.diagnostics:
                copies.copy_out(kept)
        except DriverError as problem:
            result.diagnostics.append(fail(problem, module, kernel, gpu))
        finally:
            copies.free()
    if result.diagnostics and on_error == "raise":
        raise KernelError(result.diagnostics)
    return result


def prepare(
    module: ir.Module,
    kernel: ir.Function,
    gpu: Gpu,
    *,
    grid: Extents,
    block: Extents,
    args: Sequence[Any],
    shared: int = 0,
    cluster: Extents | None = None,
    cooperative: bool = False,
    stream: Any = None,
    compile: Compiler | None = None,
) -> Prepared:
    """A launch to repeat: each `.launch()` is one call of the driver. Its arrays lie on the GPU."""
    refuse_broken()
    check_extents(module, kernel, grid, block)
    parameters = convert(module, kernel, args, gpu)
    if parameters.copies.regions:
        raise ValueError("a prepared launch takes arrays that lie on the GPU; these would be copied each time: "
                         + ", ".join(region.name for region in parameters.copies.regions))  # fmt: skip
    loaded = load(module, kernel, gpu, compile)
    with current(gpu.number):
        check_sizes(module, kernel, gpu, loaded, shared, grid, cluster)
    return Prepared(loaded, parameters, grid, block, shared, cluster, cooperative, stream_handle(stream))


def stream_handle(stream: Any) -> int:
    """The number that the driver knows a stream by: None is the default stream.

    >>> stream_handle(None), stream_handle(7)
    (0, 7)
    """
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    known = getattr(stream, "__cuda_stream__", None)
    if known is not None:
        return int((known() if callable(known) else known)[1])
    for name in ("cuda_stream", "ptr", "handle"):  # torch, CuPy, Numba
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise TypeError(f"{type(stream).__name__} is no stream: pass its number, or an object with `__cuda_stream__`")


def check_extents(module: ir.Module, kernel: ir.Function, grid: Extents, block: Extents) -> None:
    """Refuse what no GPU would take; what was looked at once is not looked at again."""
    fitting = module.memory.setdefault("launches that fit", set())  # no name of a variable has blanks
    if (kernel.name, grid, block) not in fitting:
        check_launch(module, kernel, grid, block, 0, None)
        fitting.add((kernel.name, grid, block))


def check_sizes(
    module: ir.Module,
    kernel: ir.Function,
    gpu: Gpu,
    loaded: Loaded,
    shared: int,
    grid: Extents,
    cluster: Extents | None,
) -> None:
    """Refuse what this GPU has no room for."""
    kind = bindings().CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    static = int(call("cuFuncGetAttribute", kind, loaded.function(kernel.name)))
    span = module.name_span(kernel)
    problems = []
    if shared < 0:
        problems.append(error("bad-launch", f"`{kernel.name}`: {shared} bytes of shared memory", span, "this kernel"))
    elif static + shared > gpu.shared:
        problems.append(
            error(
                "bad-launch",
                f"`{kernel.name}`: {static + shared} bytes of shared memory, {gpu.name} has {gpu.shared} for a block",
                span,
                "this kernel",
                notes=[f"{static} bytes are declared in the module, {shared} are asked for at launch"],
                helps=["use smaller tiles or fewer stages"],
            )
        )
    if cluster is not None and any(size % part for size, part in zip(grid, cluster, strict=True) if part > 0):
        problems.append(
            error(
                "bad-launch",
                f"`{kernel.name}`: a grid of {grid} is no multiple of the cluster {cluster}",
                span,
                "this kernel",
                helps=["round the grid up, and let the blocks beyond do nothing"],
            )
        )
    if problems:
        raise KernelError(problems)
