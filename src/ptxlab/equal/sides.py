"""What is compared: launches of kernels, or a function of arrays; and the arrays that both have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from ptxlab.device.record import Record
from ptxlab.device.tensor_maps import TensorMap
from ptxlab.equal.codes import of_bytes, of_nodes
from ptxlab.equal.memory import Bytes, Placed
from ptxlab.equal.nodes import Ids, Nodes
from ptxlab.equal.replay import Replay
from ptxlab.equal.rules import FORMATS
from ptxlab.equal.verdict import OperationSite, source_of
from ptxlab.measure import Launch
from ptxlab.trace import Trace
from ptxlab.trace.accesses import Region

_ = ml_dtypes  # registers its types with NumPy


@dataclass(frozen=True)
class NamedArray:
    """An array among the arguments: its memory, and the name that it has in messages."""

    name: str
    data: npt.NDArray[Any]

    @property
    def key(self) -> int:
        """Where it is in memory: the same array has the same key on both sides."""
        return int(self.data.__array_interface__["data"][0])

    @property
    def format(self) -> str:
        """The format of its elements; empty if they are not floats."""
        return FORMATS.get(str(self.data.dtype), "")

    def element(self, index: int) -> str:
        """`a[3, 5]`"""
        at = np.unravel_index(index, self.data.shape) if self.data.ndim else ()
        return f"{self.name}[{', '.join(str(int(one)) for one in at)}]"


def slices(arrays: Sequence[NamedArray]) -> Iterator[tuple[NamedArray, slice]]:
    """Arrays, and where their elements are among those of all of them."""
    end = 0
    for array in arrays:
        start, end = end, end + array.data.size
        yield array, slice(start, end)


class Inputs:
    """The arrays of both sides and their nodes: elements of floats are symbols, all others plain numbers."""

    def __init__(
        self, nodes: Nodes, symbols: Sequence[str] | None = None, names: Mapping[str, object] | None = None
    ) -> None:
        self.nodes = nodes
        named = [NamedArray(name, one) for name, given in (names or {}).items() for one in arrays_in(given)]
        self._named = {one.key: one for one in named}
        self._longest: dict[int, NamedArray] = {}
        self.arrays: dict[int, NamedArray] = {}
        self._symbols = symbols
        self.ids: dict[int, Ids] = {}

    def expect(self, launches: Sequence[Launch]) -> None:
        """Note arrays before they are added: of those that start at one place, such as `x[:1]` and `x`, the longest."""
        for array in (one for launch in launches for one in named_arrays(launch)):
            known = self._longest.setdefault(array.key, array)
            if array.data.nbytes > known.data.nbytes:
                self._longest[array.key] = NamedArray(known.name, array.data)

    def add(self, array: NamedArray) -> NamedArray:
        """An array, which may be known already."""
        if array.key in self.arrays:
            return self.arrays[array.key]
        names = [one.name for one in self.arrays.values()]
        array = self._named.get(array.key, self._longest.get(array.key, array))
        if array.name in names:
            array = NamedArray(f"{array.name}#{len(names)}", array.data)
        self.arrays[array.key] = array
        kind = array.format if self._symbols is None or array.format else ""
        if not kind and self._symbols is not None and array.name in self._symbols:
            kind = f"b{8 * array.data.itemsize}"
        if kind:
            width = array.data.itemsize
            self.ids[array.key] = self.nodes.inputs(array.name, array.data.size, kind, width, array)
        return array

    def codes(self, array: NamedArray) -> Bytes:
        """The bytes of an array as it is given."""
        if array.key in self.ids:
            return of_nodes(self.ids[array.key], array.data.itemsize).ravel()
        return of_bytes(np.frombuffer(np.ascontiguousarray(array.data).tobytes(), np.uint8))


def arrays_in(value: object) -> Iterator[Any]:
    """The arrays in an argument."""
    if isinstance(value, TensorMap):
        yield from arrays_in(value.array)
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from arrays_in(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from arrays_in(one)
    elif hasattr(value, "__array_interface__") and np.asarray(value).ndim:
        yield value
    elif hasattr(value, "detach") and hasattr(value, "numpy"):
        yield value.detach().numpy()


def named_arrays(launch: Launch) -> list[NamedArray]:
    """The arrays among the arguments of a launch, by the names of its parameters."""
    found = []
    for parameter, value in zip(launch.function.parameters, launch.args, strict=False):
        own = [np.asarray(one) for one in arrays_in(value)]
        for number, data in enumerate(own):
            found.append(NamedArray(parameter.title if len(own) == 1 else f"{parameter.title}.{number}", data))
    return found


class Kernels:
    """One side that is launches of kernels, one after the other."""

    def __init__(
        self,
        launches: Sequence[Launch],
        inputs: Inputs,
        side: int,
        options: Mapping[str, object],
        *,
        assumes_paths: bool = False,
    ) -> None:
        self.launches = launches
        self.assumes_paths = assumes_paths
        self.assumed: list[int] = []
        """The lines of branches that are taken to go as they did."""
        self.conditions: list[Ids] = []
        """What these branch on."""
        self.side = side
        self.traces: list[Trace] = []
        self.inputs, self.options = inputs, options
        self.arrays = [inputs.add(array) for launch in launches for array in named_arrays(launch)]
        self.memory = {array.key: inputs.codes(array).copy() for array in self.arrays}
        self.sizes: dict[int, int] = {}
        """How many bytes of arrays this side has."""
        for array in (one for launch in launches for one in named_arrays(launch)):
            self.sizes[array.key] = max(self.sizes.get(array.key, 0), array.data.nbytes)
        self.results: dict[int, npt.NDArray[Any]] = {}
        """What the arrays held when the launches had ended."""

    def record(self) -> None:
        """Run the launches; the arrays are as before when that is done."""
        before = {array.key: (array.data, array.data.copy()) for array in self.arrays}
        try:
            for launch in self.launches:
                result = launch.run(record=Record(), device="cpu", **self.options)
                assert result.trace is not None
                result.trace.program.module.origins = launch.module.origins
                self.traces.append(result.trace)
            self.results = {array.key: array.data.copy() for array in self.arrays}
        finally:
            for data, content in before.values():
                data[...] = content

    def replay(self) -> None:
        """Have the memory of arrays hold expressions."""
        for number, (launch, trace) in enumerate(zip(self.launches, self.traces, strict=True)):
            placed = self._placed(launch, trace)
            replay = Replay(trace, self.inputs.nodes, placed, self.side, number, assumes_paths=self.assumes_paths)
            replay.run()
            self.assumed += replay.assumed
            self.conditions += replay.conditions

    def _regions(self, launch: Launch, trace: Trace) -> Iterator[tuple[Region, NamedArray | None]]:
        """The global memory of a launch, and the arrays that are there."""
        own, taken = named_arrays(launch), set[int]()
        for region in trace.accesses.regions:
            fits = [one for one in own if one.key not in taken and one.data.nbytes == region.size
                    and str(one.data.dtype) == region.dtype]  # fmt: skip
            fits.sort(key=lambda one: (one.name != region.short, tuple(one.data.shape) != region.shape))
            taken.update(one.key for one in fits[:1])
            yield region, next(iter(fits), None)

    def _placed(self, launch: Launch, trace: Trace) -> list[Placed]:
        """The arrays at their addresses, and all else that the launch had."""
        return [
            Placed(region.base, of_bytes(np.frombuffer(region.data, np.uint8)) if array is None
                   else self.memory[array.key][: region.size])
            for region, array in self._regions(launch, trace)
        ]  # fmt: skip

    def last_store(self, array: NamedArray, index: int) -> OperationSite | None:
        """What wrote an element last; None if nothing did."""
        size = array.data.itemsize
        for launch, trace in zip(self.launches[::-1], self.traces[::-1], strict=True):
            bases = [region.base for region, own in self._regions(launch, trace) if own and own.key == array.key]
            written = trace.last_write(bases[0] + index * size, size) if bases else None
            if written is not None:
                thread = written.block * trace.accesses.threads_in_block + written.thread
                source = source_of(trace.program.module, written.line)
                return OperationSite(
                    self.side, written.line, written.instruction, thread, (trace, written.step), source
                )
        return None

    def title(self) -> str:
        """The names of the kernels."""
        return ", ".join(launch.function.title for launch in self.launches)

    def line(self, launch: int, instruction: int) -> tuple[int, str, str]:
        """The line of an instruction, its text, and the line that it was compiled from."""
        program = self.traces[launch].program
        line = program.line(instruction)
        return line, program.text(instruction), source_of(program.module, line)
