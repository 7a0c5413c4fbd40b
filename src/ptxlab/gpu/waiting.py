"""The wait for a kernel, and what it means when it does not end well."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ptxlab import ir
from ptxlab.gpu.devices import Gpu
from ptxlab.gpu.driver import DriverError, bindings, call, reset
from ptxlab.gpu.failures import explain, is_fatal
from ptxlab.report import Diagnostic, error

_LIBRARIES = ("torch", "cupy", "jax", "numba")  # they share the context with us


class OverdueError(DriverError):
    """The kernel had not ended when its time was up."""


def run(start: Callable[[], None], stream: int, timeout: float | None) -> float:
    """Start a kernel and wait for it; the seconds that it took on the GPU."""
    begin, end = call("cuEventCreate", 0), call("cuEventCreate", 0)
    try:
        call("cuEventRecord", begin, stream)
        start()
        call("cuEventRecord", end, stream)
        await_event(end, timeout)
        call("cuStreamSynchronize", stream)  # only now the driver writes what the kernel has printed
        return float(call("cuEventElapsedTime", begin, end)) / 1000
    finally:
        for event in (begin, end):
            bindings().cuEventDestroy(event)


def await_event(event: Any, timeout: float | None) -> None:
    """Wait for what was recorded; Ctrl-C is heard meanwhile."""
    driver = bindings()
    not_ready = driver.CUresult.CUDA_ERROR_NOT_READY
    begun = time.perf_counter()
    pause = 0.0
    while True:
        (status,) = driver.cuEventQuery(event)
        if not int(status):
            return
        if status != not_ready:
            raise DriverError(status.name, "cuEventQuery")
        if timeout is not None and time.perf_counter() - begun > timeout:
            raise OverdueError("CUDA_ERROR_NOT_READY", "cuEventQuery")
        time.sleep(pause)
        pause = min(pause + 5e-6, 1e-3)


def fail(problem: DriverError, module: ir.Module, kernel: ir.Function, gpu: Gpu) -> Diagnostic:
    """What went wrong; a context that is broken is begun anew where nobody else uses it."""
    if isinstance(problem, OverdueError):
        return error("timeout", f"`{kernel.name}` on {gpu.name} had not ended when its time was up",
                     module.name_span(kernel), "this kernel",
                     notes=["nothing stops a kernel on a GPU: it runs on until the process ends"],
                     helps=['run it with `device="cpu"` and `timeout`: that says where its threads are'])  # fmt: skip
    if not is_fatal(problem):
        return explain(problem, module, kernel, gpu)
    return explain(problem, module, kernel, gpu, (recover(gpu),))


def recover(gpu: Gpu) -> str:
    """Begin a new context after one was broken; says what came of it."""
    others = [name for name in _LIBRARIES if name in sys.modules]
    if others:
        return f"the GPU's context is broken, and {' and '.join(others)} may use it: start the process again"
    if reset(gpu.number):
        return "the GPU's context was begun anew: all that lay on the GPU is gone, the next launch works again"
    return "the GPU's context is broken and can't be begun anew: start the process again"


def with_message(found: Diagnostic, message: str) -> Diagnostic:
    """The diagnostic with the first line that the driver wrote about it."""
    first = message.strip().splitlines()[:1]
    return replace(found, notes=(*first, *found.notes))
