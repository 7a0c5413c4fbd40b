"""Calls of a function that launches kernels: the first with some arrays from top to bottom, later ones made ready.

`Calls` is such a function but for what differs: how a call is checked and prepared, which gives a `Call`. The key of a
call is all that its launches depend on: the forms of its arrays, and its options. A later call with the same key makes
new arrays for results and writes addresses to the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxlab.gpu.arrays import is_torch
from ptxlab.gpu.driver import current
from ptxlab.gpu.exchange import Describe
from ptxlab.kernels.parts.choices import watched
from ptxlab.launch.launches import Launch, on_emulator
from ptxlab.ops import tuning
from ptxlab.ops.forms import describe_tensors, forms_of
from ptxlab.ops.matrices import Make, Matrix, address_of, capturing, empty, makers, stream_of
from ptxlab.ops.operators import Operator, has_no_memory, is_grad_enabled, no_gradient, register
from ptxlab.ops.ready import Ready, Workspace

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

MOST = 4096  # calls that stay ready


class BoundLaunch(NamedTuple):
    """A launch, which of its parameters are which arrays, the numbers of both, and whether it has the workspace."""

    launch: Launch
    changing: Sequence[tuple[int, int]]
    uses_workspace: bool = True


class Call(NamedTuple):
    """A call that was checked: its results, what to launch if there is something to compute, and on which arrays.

    `arrays` are first what is read and then the results, in the order in which `Calls` has them; then come those of
    `scratch`, memory of so many bytes each that the steps have until they are complete. `in_place` are pairs of arrays
    that may be the same: the number of a result, and of what is read.
    """

    results: Sequence[Any]
    steps: Sequence[BoundLaunch] = ()
    arrays: Sequence[Matrix | None] = ()
    workspace: Workspace | None = None
    scratch: Sequence[int] = ()
    in_place: Sequence[tuple[int, int]] = ()


class _Kept(NamedTuple):
    ready: Ready
    new: Sequence[tuple[int, tuple[int, ...], tuple[int, ...], Any]]
    """The number of each result that is made, its extents, its strides, and its type."""
    apart: Sequence[tuple[int, int, int, int, bool]]
    """Numbers and bytes of two arrays that do not overlap, unless they may be the same."""
    scratch: Sequence[int]
    make: Make
    byte: Any
    stream: Callable[[int], int]
    gpu: int


class Calls:
    """A function of arrays; `prepare(read, written, how)` checks a call, `operator` is what torch knows it as."""

    def __init__(self, prepare: Callable[[Sequence[Any], Sequence[Any], Any], Call], operator: Operator) -> None:
        self.prepare, self.operator = prepare, operator
        self.kept: dict[Any, _Kept] = {}
        self.describe: Describe = forms_of  # until there is a tensor
        tuning.forget.append(self.kept.clear)

    def __call__(
        self, read: Sequence[Any], written: Sequence[Array | None] = (None,), how: Any = None, only_ready: bool = False
    ) -> Sequence[Array | None] | None:
        """Start the work, and return its results: those of `written`, and new arrays where that has None.

        None if torch records or transforms what is computed: then the operator is to be called. With `only_ready` also
        where no call was like this one.
        """
        arrays: list[Any] = [*read, *written]
        addresses: list[int] = []
        try:
            if self.operator.is_recording() and needs_gradient(read):
                self._refuse(written)
                return None
            forms = self.describe(arrays, addresses) or forms_of(arrays, addresses := [])
            key = forms, how
            kept = self.kept.get(key)
        except (AttributeError, RuntimeError, TypeError):  # not all of them are tensors with memory, or options are odd
            return None if only_ready else self._begin(read, written, how, None)
        if kept is None:
            return None if only_ready else self._begin(read, written, how, key)
        ready, new, apart, scratch, make, byte, stream_of_gpu, gpu = kept
        results = [*written]
        for number, extents, strides, type in new:
            results[number] = made = make(extents, strides, type)
            addresses[number - len(results)] = made.data_ptr()
        for one, other, size, other_size, may_be_same in apart:
            start, begin = addresses[one], addresses[other]
            if start < begin + other_size and begin < start + size and not (may_be_same and start == begin):
                return self._begin(read, written, how, None)
        if scratch:
            memory = make((scratch[-1],), (1,), byte)
            first = memory.data_ptr()
            addresses += [first + offset for offset in scratch[:-1]]
        ready.start(addresses, stream_of_gpu(gpu))
        return results

    def compute(
        self, read: Sequence[object], written: Sequence[Array | None] = (None,), how: object = None
    ) -> Sequence[Array | None]:
        """The same where torch records nothing, as in an operator."""
        found = self(read, written, how)
        assert found is not None
        return found

    def _refuse(self, written: Sequence[Array | None]) -> None:
        """Torch is to differentiate a call: return if there is a gradient."""
        name = self.operator.name
        if self.operator.gradient is None:
            raise no_gradient(name)
        if any(one is not None for one in written):
            raise ValueError("a result in `out` has no gradient: leave it out, or call this under `torch.no_grad()`")

    def _begin(
        self, read: Sequence[Any], written: Sequence[Array | None], how: Any, key: Any
    ) -> Sequence[Array | None] | None:
        """A call that is not ready yet."""
        tensors = [one for one in read if is_torch(one.__class__)]
        if tensors:
            register()
            if self.describe is forms_of and (better := describe_tensors()) is not None:
                self.describe = better
                if key is not None and (forms := better([*read, *written], [])):
                    key = forms, how
        if needs_gradient(tensors) and is_grad_enabled():
            self._refuse(written)
            return None
        if any(map(has_no_memory, tensors)):
            return None
        with watched() as asked:
            found = self.prepare(read, written, how)
        if not found.steps:
            return found.results
        gpu = next(one.gpu for one in found.arrays if one is not None)
        if gpu is None:
            tuning.refuse_host()
            on_emulator([step.launch for step in found.steps])
            return found.results
        stream = stream_of(read[0], gpu)
        if asked and tuning.is_wanted(asked) and not capturing(read[0])():
            own = self.prepare(read, [None] * len(written), how).results[: len(written)]
            with current(gpu):
                stopwatch = tuning.on_stream(read[0], stream)
                tuning.measure(asked, lambda: _start(self.prepare(read, own, how), read, gpu, stream)[1], stopwatch)
            found = self.prepare(read, written, how)
        ready, start = _start(found, read, gpu, stream)
        if key is not None:
            if len(self.kept) >= MOST:
                self.kept.clear()
            self.kept[key] = _keep(found, ready, read, written)
        start()
        return found.results


def _start(found: Call, read: Sequence[Array], gpu: int, stream: int) -> tuple[Ready, Callable[[], None]]:
    """The launches of a call, and what starts them on its arrays."""
    ready = Ready(gpu, found.steps, found.workspace)
    memory = empty(read[0], (sum(found.scratch),), "u8") if found.scratch else None

    def start() -> None:
        addresses = [0 if one is None else one.address for one in found.arrays]
        if memory is not None:
            addresses += [address_of(memory) + offset for offset in accumulate([0, *found.scratch[:-1]])]
        ready.start(addresses, stream)

    return ready, start


def needs_gradient(read: Sequence[Any]) -> bool:
    """Whether what is computed of these tensors has a gradient."""
    for one in read:  # noqa: SIM110 - `any` of a generator takes three times as long
        if one is not None and one.requires_grad:
            return True
    return False


def _keep(found: Call, ready: Ready, read: Sequence[Array], written: Sequence[Array | None]) -> _Kept:
    """What later calls need of one with tensors of torch, or arrays of XLA."""
    make, stream, byte = makers(read[0])
    new = [
        (number, tuple(one.shape), tuple(one.stride()), one.dtype)
        for number, one in enumerate(found.results)
        if one is not None and (number >= len(written) or written[number] is None)
    ]
    sizes = [0 if one is None else one.end - one.address for one in found.arrays]
    given = [len(read) + number for number, one in enumerate(written) if one is not None]
    apart = [
        (one, other, sizes[one], sizes[other], (one, other) in found.in_place)
        for one in given
        for other in range(len(sizes))
        if other != one and sizes[other]
    ]
    scratch = list(accumulate([0, *found.scratch])) if found.scratch else []
    return _Kept(ready, new, apart, scratch, make, byte, stream, ready.gpu)
