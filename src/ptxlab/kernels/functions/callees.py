"""Calls of a kernel with arrays of any framework: checked once, then ready for arrays that are alike.

Arrays are given by name, in the order of the kernel's first parameters; one that is left out is None. What changes from
call to call is their addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab.gpu.arrays import is_torch
from ptxlab.gpu.driver import call, current
from ptxlab.kernels.functions.matrices import ROW, Matrix, dense, look, stream_of
from ptxlab.kernels.functions.ready import Ready
from ptxlab.measure import Launch

MOST = 4096  # launches that stay ready

Memory = Callable[[Any, int, int], tuple[dict[int, int], Any]]
"""What a stream needs besides, for an array like this one, on a GPU, on a stream: see `Ready`."""


@dataclass(frozen=True)
class Argument:
    """What a kernel wants an array to be."""

    types: Sequence[str]
    is_written: bool = False
    in_place: str = ""
    """The array that this one may be: each thread then reads what it writes over."""
    is_dense: bool = True
    """Whether it must be without gaps, the last dimension's elements after each other."""


class Callee:
    """A function that starts one kernel, which `make` makes of arrays and options once `check` has not refused them."""

    def __init__(
        self,
        arguments: Mapping[str, Argument],
        make: Callable[..., Launch],
        check: Callable[..., None],
        memory: Memory | None = None,
    ) -> None:
        self.arguments, self.make, self.check, self.memory = arguments, make, check, memory
        names = list(arguments)
        self.same = [
            (number, names.index(one.in_place)) for number, one in enumerate(arguments.values()) if one.in_place
        ]
        self.ready: dict[Hashable, tuple[Ready, list[tuple[int, int]]]] = {}

    def start(self, arrays: Sequence[Any], **options: Any) -> None:
        """Start it on the stream that the framework uses now; arrays of the host run on the emulator."""
        first = arrays[0]
        if not all(one is None or is_torch(one.__class__) for one in arrays) or not first.is_cuda:
            self._first(arrays, options, None)
            return
        addresses = [0 if one is None else one.data_ptr() for one in arrays]
        forms = (None if one is None else form(one) for one in arrays)
        key = *forms, *options.items(), *(addresses[one] == addresses[other] for one, other in self.same)
        found = self.ready.get(key)
        if found is None or any(overlap(addresses, found[0].bytes, pair) for pair in found[1]):
            self._first(arrays, options, key)
            return
        found[0].start(addresses, stream_of(first, found[0].gpu))

    def _first(self, arrays: Sequence[Any], options: Mapping[str, Any], key: Hashable) -> None:
        """A call that is not ready yet, from top to bottom."""
        named = zip(self.arguments.items(), arrays, strict=True)
        seen = [None if one is None else look(one, name, wanted.types) for (name, wanted), one in named]
        for (name, wanted), one in zip(self.arguments.items(), seen, strict=True):
            if one is not None and wanted.is_dense:
                require_dense(one, name)
        self.check(*seen, **options)
        pairs = self._check(seen)
        if any(0 in one.shape for one in seen if one is not None):
            return
        gpu = seen[0].gpu if seen[0] is not None else None
        launch = self.make(*(0 if one is None else one.view() for one in seen), **options)
        if gpu is None:
            launch.run(device="cpu")
            return
        bytes = [0 if one is None else one.end - one.address for one in seen]
        memory = self.memory
        ready = Ready(launch, gpu, range(len(seen)), bytes, 0,
                      lambda stream: ({}, None) if memory is None else memory(arrays[0], gpu, stream))  # fmt: skip
        if key is not None:
            if len(self.ready) >= MOST:
                self.ready.clear()
            self.ready[key] = ready, pairs
        ready.start([0 if one is None else one.address for one in seen], stream_of(arrays[0], gpu))
        if hasattr(arrays[0], "unsafe_buffer_pointer"):  # JAX does not know of this work: it is completed now
            with current(gpu):
                call("cuStreamSynchronize", 0)

    def _check(self, seen: Sequence[Matrix | None]) -> list[tuple[int, int]]:
        """Refuse arrays on different devices, and results over what is read; which pairs of arrays must not overlap."""
        names = list(self.arguments)
        pairs = []
        for number, (name, one) in enumerate(zip(names, seen, strict=True)):
            if one is None:
                continue
            if one.gpu != seen[0].gpu:  # type: ignore[union-attr]
                where = ["the host" if m.gpu is None else f"GPU {m.gpu}" for m in (one, seen[0])]  # type: ignore[union-attr]
                raise ValueError(f"`{name}` is on {where[0]}, and `{names[0]}` on {where[1]}")
            if not self.arguments[name].is_written:
                continue
            for other, against in enumerate(seen):
                if other == number or against is None or (self.arguments[names[other]].is_written and other < number):
                    continue
                is_same = (against.address, against.end) == (one.address, one.end)
                if is_same and self.arguments[name].in_place == names[other]:
                    continue
                pairs.append((number, other))
                if one.address < against.end and against.address < one.end:
                    raise ValueError(f"`{name}` overlaps `{names[other]}`: what is written would be read")
        return pairs


def require_dense(one: Matrix, name: str) -> None:
    """Refuse an array with gaps, or with its dimensions in another order."""
    pairs = zip(one.shape, one.strides, dense(one.shape), strict=True)
    if 0 not in one.shape and any(extent > 1 and step != wanted for extent, step, wanted in pairs):
        raise ValueError(f"`{name}` has gaps between its elements, or is transposed: pass a contiguous array")


def form(tensor: Any) -> Hashable:
    """All of a tensor that a launch depends on but its address, of which only the alignment counts."""
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.data_ptr() % ROW


def overlap(addresses: Sequence[int], bytes: Sequence[int], pair: tuple[int, int]) -> bool:
    """Whether two arrays have memory in common."""
    one, other = pair
    return addresses[one] < addresses[other] + bytes[other] and addresses[other] < addresses[one] + bytes[one]
