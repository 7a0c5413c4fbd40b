"""Variables of a module on a GPU: set and read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ptxlab import ir
from ptxlab.gpu.driver import DriverError, call, current
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.loading import Loaded
from ptxlab.gpu.streams import recording
from ptxlab.gpu.waiting import fail, refuse_broken
from ptxlab.report import KernelError


def write_variable(module: ir.Module, name: str, data: bytes) -> None:
    """Give a variable a value wherever the module is loaded, once all kernels there have ended."""
    for loaded in [part for part in module.on_gpu.values() if isinstance(part, Loaded)]:
        with _quiet(module, loaded.gpu):
            loaded.write(name, data)


def read_variable(module: ir.Module, name: str, size: int, gpu: Gpu) -> bytes | None:
    """What a variable holds where a kernel of the module ran last on this GPU; None where there is no such thing."""
    last = module.on_gpu.get(("last", gpu.number))
    if last is None:
        return None
    with _quiet(module, gpu):
        found: bytes | None = last.loaded.read(name, size)
    return found


@contextmanager
def _quiet(module: ir.Module, gpu: Gpu) -> Iterator[None]:
    """No kernel runs on the GPU inside; what the driver says is told in words."""
    refuse_broken()
    if recording.graph is not None:
        raise ValueError("a graph is being recorded: set and get variables before it or after it")
    try:
        with current(gpu.number):
            call("cuCtxSynchronize")
            yield
    except DriverError as problem:
        last = module.on_gpu.get(("last", gpu.number))
        kernel = module[module.entries[0]] if last is None else last.kernel
        raise KernelError([fail(problem, module, kernel, gpu)]) from None
