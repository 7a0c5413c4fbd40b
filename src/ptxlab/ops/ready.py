"""Launches that lack nothing but addresses: what makes a call of a kernel's function cheap.

The first call with some extents, strides and types compiles the kernel, encodes its tensor maps and packs its
parameters. What changes from call to call is a few addresses among them; each stream has memory of its own to count in.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from ptxlab.frameworks.xla_calls import XlaArray
from ptxlab.gpu.driver import bindings, call, current
from ptxlab.gpu.prepared import Prepared
from ptxlab.gpu.starting import Start, joined
from ptxlab.launch.launches import Launch
from ptxlab.ops.matrices import address_of, capturing, memory, zeros

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

PAGE, PAGES = 4096, 256  # bytes of counters for a graph, and how many of these are set to 0 at a time
LARGE = 4  # how many are, of more bytes


class Workspace:
    """Memory that launches need besides their arrays, of so many bytes for each parameter.

    Counters are 0 before and after a launch. A stream has memory of its own for each `role`, which is kept and grows.
    A graph has its own, too: it may run beside work of the stream on which it was recorded. All its launches share it,
    as those of a stream do, so that it is set to 0 once, and nothing is between two launches that overlap.
    """

    kept: ClassVar[dict[tuple[int, int, str], list[Any]]] = {}
    recorded: ClassVar[dict[tuple[int, int, str], tuple[int, list[Any]]]] = {}
    """That of the last graph recorded on each stream, with the graph's number."""
    spare: ClassVar[dict[int, list[Any]]] = {}
    """Counters for graphs on each GPU. They are 0 before one is recorded, which then does not set them when it runs."""

    def __init__(
        self, role: str, like: Any, gpu: int, counters: Mapping[int, int], others: Mapping[int, int] | None = None
    ) -> None:
        self.role, self.like, self.gpu, self.counters = role, like, gpu, counters
        self.bytes = {**counters, **(others or {})}
        self.is_recorded = capturing(like)
        """Whether what is started now becomes part of a graph."""

    def on(self, stream: int) -> tuple[dict[int, int], list[Array]]:
        """Addresses by the number of their parameter, and what keeps the memory."""
        key = self.gpu, stream, self.role
        graph = recording_on(stream) if self.is_recorded() else 0
        number, found = self.recorded.get(key, (0, None)) if graph else (0, self.kept.get(key))
        if number != graph:
            found = None
        sizes = list(self.bytes.values())
        if found is None or any(one.nbytes < size for one, size in zip(found, sizes, strict=True)):
            old = [0] * len(sizes) if found is None else [one.nbytes for one in found]
            found = [
                self._zeros(max(size, least), bool(graph))
                if parameter in self.counters
                else memory(self.like, max(size, least))
                for (parameter, size), least in zip(self.bytes.items(), old, strict=True)
            ]
            if graph:
                self.recorded[key] = graph, found
            else:
                self.kept[key] = found
        return dict(zip(self.bytes, map(address_of, found), strict=True)), found

    def _zeros(self, bytes: int, is_for_graph: bool) -> Any:
        spare = self.spare.setdefault(self.gpu, [])
        fitting = [(one.nbytes, number) for number, one in enumerate(spare) if one.nbytes >= bytes]
        if is_for_graph and fitting:
            return spare.pop(min(fitting)[1])
        if not is_for_graph and not fitting and not isinstance(self.like, XlaArray):
            count, size = (PAGES, PAGE) if bytes <= PAGE else (LARGE, bytes)
            made = zeros(self.like, count * size).reshape(count, size)
            assert int(made[-1, -1]) == 0  # which waits until they are set
            spare.extend(made)
        return zeros(self.like, bytes)


def recording_on(stream: int) -> int:
    """The number of the graph that is being recorded on a stream."""
    third = "cuStreamGetCaptureInfo_v3"  # CUDA 12's plain name is of an older one, which refuses grids that overlap
    return int(call(third if hasattr(bindings(), third) else "cuStreamGetCaptureInfo", stream)[1])


class _OnStream(NamedTuple):
    start: Start
    prepared: Sequence[Prepared]
    memory: Any


class Ready:
    """Launches on a GPU that are given addresses, one after the other.

    Each has numbers of parameters with the numbers of their addresses, and the workspace if it uses that. Such a
    parameter is a pointer, or a tensor map, which begins with its address.
    """

    def __init__(
        self, gpu: int, launches: Sequence[tuple[Launch, Sequence[tuple[int, int]], bool]], workspace: Workspace | None
    ) -> None:
        self.gpu, self.launches, self.workspace = gpu, launches, workspace
        self.on_stream: dict[int, _OnStream] = {}

    def start(self, addresses: list[int], stream: int) -> None:
        """Start them on a stream, and do not wait."""
        found = self.on_stream.get(stream)
        if found is None or (self.workspace is not None and self.workspace.is_recorded()):
            found = self._prepare(stream)
        status = found.start(addresses)
        if status:
            found.prepared[0].start_again(found.start, addresses, status)

    def _prepare(self, stream: int) -> _OnStream:
        memory, owner = ({}, None) if self.workspace is None else self.workspace.on(stream)
        starts, kept = [], []
        for launch, changing, uses_workspace in self.launches:
            with current(self.gpu):
                prepared = launch.prepare(stream, device=f"cuda:{self.gpu}")
            offsets = [offset for offset, _ in prepared.signature.slots]
            template = bytearray(prepared.parameters)
            for number, address in memory.items() if uses_workspace else ():
                struct.pack_into("<Q", template, offsets[number], address)
            places = [(offsets[parameter], number) for parameter, number in changing]
            starts.append(prepared.starter(bytes(template), places))
            kept.append(prepared)
        found = _OnStream(joined(starts), kept, owner)
        if self.workspace is None or not self.workspace.is_recorded():
            self.on_stream[stream] = found
        return found
