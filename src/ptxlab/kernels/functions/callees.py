"""Functions that are declared by their arguments: each starts one kernel, with arrays in the order of its parameters.

Results are among the arrays, and may be given or new; one that is left out is None. How calls are kept and started is
in `calls.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ptxlab.kernels.functions.calls import Call, Calls, check_gpu, no_memory
from ptxlab.kernels.functions.matrices import Matrix, dense, look
from ptxlab.measure import Launch

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


class Callee(Calls):
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
        pairs = enumerate(arguments.values())
        super().__init__(self._prepare, [(number, names.index(one.in_place)) for number, one in pairs if one.in_place])

    def start(self, arrays: Sequence[Any], **options: Any) -> None:
        """Start it on the stream that the framework uses now; arrays of the host run on the emulator."""
        self(arrays, (), tuple(options.items()))

    def _prepare(self, arrays: Sequence[Any], _: Sequence[Any], options: Any) -> Call:
        """A call that was checked, and its launch."""
        how = dict(options)
        named = zip(self.arguments.items(), arrays, strict=True)
        seen = [None if one is None else look(one, name, wanted.types) for (name, wanted), one in named]
        for (name, wanted), one in zip(self.arguments.items(), seen, strict=True):
            if one is not None and wanted.is_dense:
                require_dense(one, name)
        self.check(*seen, **how)
        pairs = self._check(seen)
        first = seen[0]
        if first is None or any(0 in one.shape for one in seen if one is not None):
            return Call([])
        gpu, memory = first.gpu, self.memory
        launch = self.make(*(0 if one is None else one.view() for one in seen), **how)
        of_stream = no_memory if memory is None or gpu is None else lambda stream: memory(arrays[0], gpu, stream)
        return Call([], launch, seen, range(len(seen)), memory=of_stream, apart=pairs)

    def _check(self, seen: Sequence[Matrix | None]) -> list[tuple[int, int]]:
        """Refuse arrays on different devices, and results over what is read; which pairs of arrays must not overlap."""
        names = list(self.arguments)
        given = [(name, one) for name, one in zip(names, seen, strict=True) if one is not None]
        check_gpu(given[0], given[1:])
        pairs = []
        for number, (name, one) in enumerate(zip(names, seen, strict=True)):
            if one is None or not self.arguments[name].is_written:
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
