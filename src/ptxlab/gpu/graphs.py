"""Launches recorded once and started together, by one call of the driver: CUDA's graphs."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ptxlab.gpu.driver import DriverError, bindings, broken, call, current
from ptxlab.gpu.prepared import Prepared
from ptxlab.gpu.streams import recording, stream_handle
from ptxlab.gpu.waiting import fail, refuse_broken
from ptxlab.report import Diagnostic, KernelError, error


class Graph:
    """Launches in the order in which they were recorded; `launch` starts them all and does not wait."""

    def __init__(self, number: int, stream: int) -> None:
        self.number = number
        self.stream = stream
        self.parts: list[Prepared] = []
        self.owners: list[Any] = []  # arrays, which live as long as the graph
        self._executable: Any = None

    def add(self, part: Prepared, owners: Sequence[object]) -> None:
        """Remember a launch that the driver has recorded, and keep what it works on."""
        self.parts.append(part)
        self.owners += owners

    def close(self, graph: object) -> None:
        """Make what was recorded ready to be started."""
        try:
            self._executable = call("cuGraphInstantiate", graph, 0)
        finally:
            bindings().cuGraphDestroy(graph)
        weakref.finalize(self, _destroy, bindings(), self._executable).atexit = False

    def launch(self, stream: object = None) -> None:
        """Start everything on a stream, the default one unless another is named; arrays hold then what they hold."""
        if self._executable is None:
            raise ValueError("the graph is still being recorded: launch it after the `with` block")
        try:
            with current(self.number):
                call("cuGraphLaunch", self._executable, stream_handle(stream))
        except DriverError as problem:
            raise KernelError([self.explain(problem)]) from None

    def explain(self, problem: DriverError) -> Diagnostic:
        """What went wrong when it was recorded or started."""
        if not self.parts:
            return error("driver-error", f"an empty graph: the driver says {problem.name} in {problem.call}", None)
        first = self.parts[0]
        found = fail(problem, first.kernel, first.loaded.gpu)
        if len(self.parts) == 1:
            return found
        names = ", ".join(dict.fromkeys(f"`{part.kernel.title}`" for part in self.parts))
        return replace(found, notes=(f"it may be any launch of the graph, which has {names}", *found.notes[-1:]))


def _destroy(driver: Any, executable: object) -> None:
    """Destroy a graph; an error of the driver is ignored, because nothing could handle it."""
    if broken() is None:
        driver.cuGraphExecDestroy(executable)


@contextmanager
def graph(number: int = 0, stream: object = None) -> Iterator[Graph]:
    """Record the launches on a GPU inside, instead of running them.

        with gpu.graph() as steps:
            blur.launch(64, 256, [image, blurred, n])
            sharpen.launch(64, 256, [blurred, image, n])
        steps.launch()

    They take arrays on the GPU. With `stream`, what other libraries do on that stream is recorded too.
    """
    refuse_broken()
    if recording.graph is not None:
        raise ValueError("a graph is being recorded already")
    driver = bindings()
    with current(number):
        own = None if stream is not None else call("cuStreamCreate", 1)  # it waits for no other stream
        made = Graph(number, stream_handle(stream) if own is None else int(own))
        try:
            # Relaxed: a kernel may be loaded while it is recorded.
            call("cuStreamBeginCapture", made.stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED)
            recording.graph = made
            try:
                yield made
            finally:
                recording.graph = None
                status, recorded = driver.cuStreamEndCapture(made.stream)
                if not int(status):
                    made.close(recorded)
            if int(status):
                raise DriverError(status.name, "cuStreamEndCapture")
        except DriverError as problem:
            raise KernelError([made.explain(problem)]) from None
        finally:
            if own is not None:
                driver.cuStreamDestroy(own)
