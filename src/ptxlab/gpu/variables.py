"""Variables of a module on a GPU: set and read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ptxlab import ir
from ptxlab.gpu.driver import DriverError, call, current
from ptxlab.gpu.failures import Subject
from ptxlab.gpu.hardware import Gpu
from ptxlab.gpu.loading import GpuState, Loaded
from ptxlab.gpu.streams import recording
from ptxlab.gpu.waiting import fail, refuse_broken
from ptxlab.report import KernelError


def write_variable(module: ir.Module, state: GpuState, name: str, data: bytes) -> None:
    """Give a variable a value wherever the module is loaded, once all kernels there have ended."""
    for loaded in state.loaded.values():
        with _quiet(module, state, loaded.gpu):
            loaded.write(name, data)


def read_variable(module: ir.Module, state: GpuState, name: str, size: int, gpu: Gpu) -> bytes | None:
    """What a variable holds where a kernel of the module ran last on this GPU; None where there is no such thing."""
    last = state.last.get(gpu.number)
    if last is None:
        return None
    with _quiet(module, state, gpu):
        return last.loaded.read(name, size)


def copy_variables(source: Loaded, target: Loaded, names: Iterable[str]) -> None:
    """Give the variables of a module on a GPU the values that those of another have there, once kernels have ended."""
    with current(source.gpu.number):
        call("cuCtxSynchronize")
        for name in names:
            here, there = source.variable(name), target.variable(name)
            if here is not None and there is not None:
                call("cuMemcpyDtoD", there[0], here[0], min(here[1], there[1]))


@contextmanager
def _quiet(module: ir.Module, state: GpuState, gpu: Gpu) -> Iterator[None]:
    """No kernel runs on the GPU inside; what the driver says is explained."""
    refuse_broken()
    if recording.graph is not None:
        raise ValueError("a graph is being recorded: set and get variables before it or after it")
    try:
        with current(gpu.number):
            call("cuCtxSynchronize")
            yield
    except DriverError as problem:
        last = state.last.get(gpu.number)
        kernel = Subject.of(module, module[module.entries[0]]) if last is None else last.kernel
        raise KernelError([fail(problem, kernel, gpu)]) from None
