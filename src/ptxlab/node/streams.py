"""Streams of a GPU: what is launched on one runs in order; what is on several runs at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy
from numpy.typing import NDArray

from ptxlab import ir
from ptxlab.device.options import Extent
from ptxlab.device.structures import leaves
from ptxlab.node.arrays import Array
from ptxlab.node.graphs import Graph
from ptxlab.node.host_lines import host_line
from ptxlab.node.operations import (
    THREADS,
    HostCall,
    StreamOperation,
    after,
    call_kernel,
    copy_kernel,
    fill_kernel,
    read_kernel,
)

if TYPE_CHECKING:
    from ptxlab.author import Kernel
    from ptxlab.node.machine import Device


Bytes = NDArray[Any]


class Box(NamedTuple):
    """Memory of a GPU: so many bytes of a row, rows and slices, with the bytes from one to the next of these."""

    start: int
    extent: tuple[int, int, int]
    steps: tuple[int, int]


class Event:
    """A point of a stream: what was launched on it before."""

    def __init__(self, operations: set[StreamOperation], graph: Graph | None) -> None:
        self.operations, self.graph = operations, graph


class Stream:
    """A queue of operations of one GPU."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.number = len(device.streams)
        device.streams.append(self)
        self._every: dict[Graph | None, set[StreamOperation]] = {}  # what the next operation follows, of each capture

    @property
    def _last(self) -> set[StreamOperation]:
        return self._every.get(self.device.node.capturing, set())

    @_last.setter
    def _last(self, operations: set[StreamOperation]) -> None:
        self._every[self.device.node.capturing] = operations

    def launch(
        self,
        kernel: ir.Function | Kernel,
        grid: Extent,
        block: Extent,
        args: Sequence[object] = (),
        *,
        shared: int = 0,
        cluster: Extent | None = None,
        cooperative: bool = False,
        overlap: bool = False,
    ) -> None:
        """Launch a kernel; it runs when the node is synchronized, with all that may run at the same time.

        With `overlap`, it may start once the kernel right before it on the stream lets it, by
        `griddepcontrol.launch_dependents`, and sees what that one did only after `griddepcontrol.wait`: CUDA's
        programmatic dependent launch.
        """
        function = kernel
        if not isinstance(kernel, ir.Function):
            function, args = kernel.entry, kernel.passed_args(args)
        assert isinstance(function, ir.Function)
        node = self.device.node
        for parameter, value in zip(function.parameters, args, strict=False):
            for leaf in leaves(value):
                if isinstance(leaf, Array):
                    node.refuse_freed(leaf)
                    node.memory.name(leaf.region, parameter.title)
        before = after(self._last)
        follows_kernel = len(before) == 1 and all(one.is_kernel and one.stream is self for one in before)
        own = {"shared": shared, "cluster": cluster, "cooperative": cooperative, "overlap": overlap and follows_kernel}
        self._add(function, grid, block, args, own, f"rank {self.device.rank}", is_kernel=True)

    def copy(self, to: Array, source: Array) -> None:
        """Copy an array to another one, of this GPU or others, as `cudaMemcpyAsync` does."""
        if to.nbytes != source.nbytes:
            raise ValueError(f"a copy of {source.nbytes} bytes to an array of {to.nbytes}")
        for array in (to, source):
            self.device.node.refuse_freed(array)
            if not array.data.flags.c_contiguous:
                raise ValueError("a copy is of contiguous memory, and the array has gaps")
        kernel, size = copy_kernel(to.address, source.address, to.nbytes)
        title = f"the copy to {to.region.name}"
        self._add(kernel, 1, THREADS, [to, source, to.nbytes // size, 0, 0, 0, 0], {}, title, is_kernel=False)

    def fill(self, to: Array, byte: int = 0) -> None:
        """Set every byte of an array to a value, as `cudaMemsetAsync` does."""
        if not 0 <= byte < 256:
            raise ValueError(f"byte={byte}: a byte is from 0 to 255")
        self.device.node.refuse_freed(to)
        kernel, size = fill_kernel(to.address, to.nbytes)
        title = f"the fill of {to.region.name}"
        value = int.from_bytes(numpy.full(4, byte, numpy.uint8).tobytes(), "little")
        self._add(kernel, 1, THREADS, [to, value, to.nbytes // size, 0, 0], {}, title, is_kernel=False)

    def access(self, box: Box, title: str, values: Bytes | None = None) -> None:
        """An operation of a library, known by what it accesses: it reads memory, or writes values to it.

        `values` are all bytes of the box, one row after the other.
        """
        (width, rows, slices), steps = box.extent, box.steps
        args: list[Any]
        if values is None:
            kernel, size = read_kernel(box.start, width, *steps)
            args = [box.start, width // size, *steps]
        else:
            kernel, size = copy_kernel(box.start, width, *steps, int(values.ctypes.data))
            args = [box.start, values, width // size, steps[0], width, steps[1], width * rows]
        self._add(kernel, (rows, slices), THREADS, args, {}, title, is_kernel=False)

    def call(self, function: Callable[[], object]) -> None:
        """Have the host call a function once all is complete that was launched on this stream before.

        What is launched on it next waits until the function has returned, as with `cudaLaunchHostFunc`. Like there, the
        function must not use the node. It is called in each run, of several seeds too.
        """
        made = HostCall(function)
        title = f"`{getattr(function, '__name__', 'a function')}` of the host"
        self._add(call_kernel(), 1, 1, [made.word], {}, title, is_kernel=False, call=made)

    def record(self) -> Event:
        """An event: it is complete when all is that was launched on this stream so far."""
        return Event(after(self._last), self.device.node.capturing)

    def wait(self, event: Event) -> None:
        """Have all that is launched on this stream from now on wait for an event."""
        if event.graph is not self.device.node.capturing:
            raise ValueError("an event of a graph that is captured is waited for there, and only there")
        self._last = after(self._last) | after(event.operations)

    def run(self, graph: Graph) -> None:
        """Run a graph after what was launched on this stream; what is launched next follows it."""
        self._last = graph.run(self._last)

    def _add(
        self,
        kernel: ir.Function,
        grid: Extent,
        block: Extent,
        args: Sequence[object],
        own: dict[str, Any],
        title: str,
        *,
        is_kernel: bool,
        call: HostCall | None = None,
    ) -> None:
        before = after(self._last)
        operation = StreamOperation(
            kernel,
            grid,
            block,
            args,
            own,
            self.device.rank,
            title,
            before,
            host_line(),
            self,
            self.number,
            is_kernel,
            call,
        )
        self._last = {operation}
        self.device.node.add(operation)
