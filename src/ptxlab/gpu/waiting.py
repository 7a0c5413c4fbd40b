"""The wait for a kernel, and what it means when it does not end well."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ptxlab.gpu.driver import DriverError, bindings, broken, call, mark_broken
from ptxlab.gpu.failures import FATAL, Subject, explain, is_fatal
from ptxlab.gpu.hardware import Gpu
from ptxlab.report import Diagnostic, KernelError, error

_SPIN = 200e-6  # seconds: a sleep takes longer than a short kernel
_AFTERWARDS = "the GPU's context is broken now: no kernel runs in this process any more, start it again"


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


def await_event(event: object, timeout: float | None) -> None:
    """Wait for what was recorded; Ctrl-C is handled meanwhile."""
    driver = bindings()
    not_ready = driver.CUresult.CUDA_ERROR_NOT_READY
    started = time.perf_counter()
    while True:
        (status,) = driver.cuEventQuery(event)
        if not int(status):
            return
        if status != not_ready:
            raise DriverError(status.name, "cuEventQuery")
        waited = time.perf_counter() - started
        if timeout is not None and waited > timeout:
            raise OverdueError("CUDA_ERROR_NOT_READY", "cuEventQuery")
        if waited > _SPIN:
            time.sleep(min(waited / 10, 1e-3))


def fail(problem: DriverError, kernel: Subject, gpu: Gpu) -> Diagnostic:
    """What went wrong; a context that is broken is remembered."""
    if isinstance(problem, OverdueError):
        mark_broken("it still runs")
        return error("timeout", f"`{kernel.title}` on {gpu.name} had not ended when its time was up",
                     kernel.span, "this kernel",
                     notes=["nothing stops a kernel on a GPU: it runs until the process ends, and no other meanwhile"],
                     helps=['run it with `device="cpu"` and `timeout`: that says where its threads are'])  # fmt: skip
    if not is_fatal(problem):
        return explain(problem, kernel, gpu)
    mark_broken(FATAL[problem.name].message)
    return explain(problem, kernel, gpu, (_AFTERWARDS,))


def refuse_broken() -> None:
    """Say what to do where an earlier kernel has broken the driver's context."""
    reason = broken()
    if reason is not None:
        raise KernelError([broken_context(reason)])


def broken_context(reason: str) -> Diagnostic:
    """Nothing runs any more, and why."""
    message = "an earlier kernel broke the GPU's context, and nothing runs there in this process any more"
    helps = ['start the process again, or use `device="cpu"`']
    return error("broken-context", message, None, notes=[f"what that kernel did: {reason}"], helps=helps)


def with_message(found: Diagnostic, message: str) -> Diagnostic:
    """The diagnostic with the first line that the driver wrote about it."""
    first = message.strip().splitlines()[:1]
    return replace(found, notes=(*first, *found.notes))
