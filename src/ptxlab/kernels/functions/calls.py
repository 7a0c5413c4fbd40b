"""Calls of a function that launches kernels: the first with some arrays from top to bottom, later ones made ready.

`Calls` is such a function but for what differs: how a call is checked and prepared, which gives a `Call`. The key of a
call is all that its launch depends on: the forms of its arrays, and its options. A later call with the same key only
writes addresses to the parameters. `Operator` makes a function an operator of torch, so that `torch.compile` knows it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ptxlab.gpu.arrays import is_torch
from ptxlab.gpu.driver import call, current
from ptxlab.kernels.functions.matrices import ROW, Matrix, dense, look, stream_of
from ptxlab.kernels.functions.ready import Ready
from ptxlab.measure import Launch

MOST = 4096  # calls that stay ready


def no_memory(stream: int) -> tuple[dict[int, int], Any]:
    """Nothing that a stream needs besides."""
    return {}, None


class Call(NamedTuple):
    """A call that was checked: its results, the launch if there is something to compute, and what the launch is given.

    `arrays` are those that parameters number `changing` point to: first what is read and then the results, in the order
    in which `Calls` has them. A copy may take the place of one, and then the call is not kept: a later one cannot use
    its launch. `apart` are pairs of them that must not overlap in later calls; by default each result that is given
    with all others.
    """

    results: Sequence[Any]
    launch: Launch | None = None
    arrays: Sequence[Matrix | None] = ()
    changing: Sequence[int] = ()
    is_kept: bool = True
    memory: Callable[[int], tuple[dict[int, int], Any]] = no_memory
    """What a stream needs besides, as `Ready` takes it."""
    apart: Sequence[tuple[int, int]] | None = None


class _Kept(NamedTuple):
    ready: Ready
    recipes: Sequence[tuple[tuple[int, ...], Any]]  # extents and type of each result
    apart: Sequence[tuple[int, int]]


class Calls:
    """A function of arrays; `prepare(read, written, how)` checks a call.

    `same` are pairs of numbers of arrays that may be the same array.
    """

    def __init__(
        self, prepare: Callable[[Sequence[Any], Sequence[Any], Any], Call], same: Sequence[tuple[int, int]] = ()
    ) -> None:
        self.prepare, self.same = prepare, same
        self.kept: dict[Any, _Kept] = {}

    def __call__(self, read: Sequence[Any], written: Sequence[Any] = (None,), how: Any = None) -> Sequence[Any]:
        """Start the work, and return its results: those of `written`, and new arrays where that has None."""
        first = read[0]
        if not is_torch(first.__class__) or not first.is_cuda:
            return self._begin(read, written, how, None)
        try:
            key, addresses = self._forms(read, written, how)
        except AttributeError:  # not all of them are tensors: `prepare` says which
            return self._begin(read, written, how, None)
        kept = self.kept.get(key)
        if kept is None:
            return self._begin(read, written, how, key)
        results = [*written]
        for number, (extents, dtype) in enumerate(kept.recipes):
            if results[number] is None:
                results[number] = first.new_empty(extents, dtype=dtype)
                addresses[number - len(results)] = results[number].data_ptr()
        for pair in kept.apart:
            if overlap(addresses, kept.ready.bytes, pair):
                return self._begin(read, written, how, key)
        kept.ready.start(addresses, stream_of(first, kept.ready.gpu))
        return results

    def _forms(self, read: Sequence[Any], written: Sequence[Any], how: Any) -> tuple[Any, list[int]]:
        """All that a launch depends on, and the addresses of tensors, of which only the alignment counts."""
        key, addresses = [how], []
        for one in (*read, *written):
            if one is None:
                key.append(None)
                addresses.append(0)
            else:
                address = one.data_ptr()
                key += one.shape, one.stride(), one.dtype, one.get_device(), address % ROW
                addresses.append(address)
        for one, other in self.same:
            key.append(addresses[one] == addresses[other])
        return tuple(key), addresses

    def _begin(self, read: Sequence[Any], written: Sequence[Any], how: Any, key: Any) -> Sequence[Any]:
        """A call that is not ready yet."""
        results, launch, arrays, changing, is_kept, memory, apart = self.prepare(read, written, how)
        if launch is None:
            return results
        gpu = next(one.gpu for one in arrays if one is not None)
        if gpu is None:
            launch.run(device="cpu")
            return results
        bytes = [0 if one is None else one.end - one.address for one in arrays]
        ready = Ready(launch, gpu, changing, bytes, len(arrays) - 1, memory)
        if key is not None and is_kept:
            if len(self.kept) >= MOST:
                self.kept.clear()
            given = [len(read) + number for number, one in enumerate(written) if one is not None]
            pairs = [(one, other) for one in given for other in range(len(arrays)) if other != one]
            recipes = [(tuple(one.shape), one.dtype) for one in results]
            self.kept[key] = _Kept(ready, recipes, pairs if apart is None else apart)
        ready.start([0 if one is None else one.address for one in arrays], stream_of(read[0], gpu))
        if hasattr(read[0], "unsafe_buffer_pointer"):  # JAX does not know of this work: it is completed now
            with current(gpu):
                call("cuStreamSynchronize", 0)
        return results


def overlap(addresses: Sequence[int], bytes: Sequence[int], pair: tuple[int, int]) -> bool:
    """Whether two arrays have memory in common."""
    one, other = pair
    return addresses[one] < addresses[other] + bytes[other] and addresses[other] < addresses[one] + bytes[one]


Named = tuple[str, Matrix]


def check_type(first: Named, others: Sequence[Named]) -> None:
    """Whether arrays have the type of the first one."""
    for name, one in others:
        if one.type != first[1].type:
            raise TypeError(f"`{name}` is of type {one.type}, and `{first[0]}` of {first[1].type}")


def check_gpu(first: Named, others: Sequence[Named]) -> None:
    """Whether arrays are where the first one is."""
    for name, one in others:
        if one.gpu != first[1].gpu:
            places = ["the host" if gpu is None else f"GPU {gpu}" for gpu in (one.gpu, first[1].gpu)]
            raise ValueError(f"`{name}` is on {places[0]}, and `{first[0]}` on {places[1]}")


def check_extents(name: str, one: Matrix, shape: tuple[int, ...]) -> None:
    """Whether an array has the extents that it must have."""
    if one.shape != shape:
        raise ValueError(f"`{name}` is {times(one.shape)}, and must be {times(shape)}")


def scales_of(first: Named, scales: Sequence[tuple[str, Any, tuple[int, ...]]]) -> list[Matrix]:
    """The scales of arrays of 8-bit floats, each with the extents that it must have; other arrays have none."""
    if first[1].size > 1:
        for name, scale, _ in scales:
            if scale is not None:
                raise ValueError(f"`{name}` is for arrays of float8_e4m3fn, and `{first[0]}` is of {first[1].type}")
        return []
    found = []
    for name, scale, shape in scales:
        if scale is None:
            raise ValueError(f"`{first[0]}` is of float8_e4m3fn, which needs `{name}`")
        one = look(scale, name, ("f32",))
        if shape != (1,) or one.shape not in ((), (1,), (1, 1)):
            check_extents(name, one, shape)
        check_gpu(first, [(name, one)])
        if one.shape and one.strides != dense(one.shape):
            raise ValueError(f"elements of `{name}` have gaps: pass a contiguous array")
        found.append(one)
    return found


def argument(matrix: Matrix) -> Any:
    """What a launch is given for a pointer."""
    return matrix.array if matrix.gpu is None else matrix.address


def check_apart(target: Matrix, others: Sequence[tuple[str, Matrix]]) -> None:
    """Whether what is written is not read."""
    for name, read in others:
        if read.address < target.end and target.address < read.end:
            raise ValueError(f"`out` overlaps `{name}`: what is written would be read")


def times(shape: Sequence[int]) -> str:
    """Extents in words."""
    return " by ".join(map(str, shape)) + (" long" if len(shape) == 1 else "")


class Operator:
    """A function as an operator of torch, `torch.ops.ptxlab.NAME`.

    It is registered by itself where torch was imported before, and at the first call with a tensor.
    """

    def __init__(self, name: str, schema: str, function: Callable[..., Any], describe: Callable[..., Any]) -> None:
        self.name, self.schema, self.function, self.describe = name, schema, function, describe
        self.made: Any = None
        self.library: Any = None
        self.is_compiling: Callable[[], bool] = bool
        if hasattr(sys.modules.get("torch"), "compiler"):
            self.register()

    def register(self) -> Any:
        """The operator.

        `torch.library.custom_op` would wrap the function for gradients, which costs more than a launch.
        """
        if self.made is None:
            torch = import_module("torch")
            self.library = torch.library.Library("ptxlab", "FRAGMENT")  # operators are gone with their library
            self.library.define(self.name + self.schema, tags=(torch.Tag.pt2_compliant_tag,))
            for device in ("CUDA", "CPU"):
                self.library.impl(self.name, self.function, device)
            torch.library.register_fake(f"ptxlab::{self.name}", self.describe, lib=self.library)
            self.made, self.is_compiling = getattr(torch.ops.ptxlab, self.name), torch.compiler.is_compiling
        return self.made

    def check(self, tensor: Any) -> None:
        """Register it if this is a tensor; one that needs a gradient is refused: there is none."""
        if not is_torch(tensor.__class__):
            return
        self.register()
        if tensor.requires_grad and import_module("torch").is_grad_enabled():
            raise ValueError(f"`{self.name}` has no gradient: call it under `torch.no_grad()`, or detach its arguments")
