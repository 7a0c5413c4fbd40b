"""Calls of a function that launches a kernel: the first with some arrays from top to bottom, later ones made ready.

`Calls` is such a function but for what differs: how a call is checked and prepared. `Operator` makes it an operator of
torch, so that `torch.compile` knows it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ptxlab.gpu.arrays import is_torch
from ptxlab.gpu.driver import call, current
from ptxlab.kernels.functions.matrices import Matrix, dense, look, stream_of
from ptxlab.kernels.functions.ready import Ready
from ptxlab.measure import Launch

_MOST = 4096  # launches that stay ready


class Call(NamedTuple):
    """A call that was checked: its result, the launch if there is something to compute, and what the launch is given.

    `arrays` are those that parameters number `changing` point to, in the order of the function's arguments, and then
    the result. `is_kept` is whether a later call with such arrays can use the same launch.
    """

    made: Any
    launch: Launch | None
    arrays: Sequence[Matrix]
    changing: Sequence[int]
    is_kept: bool = True
    memory: Callable[[int], tuple[dict[int, int], Any]] = lambda stream: ({}, None)
    """What a stream needs besides, as `Ready` takes it."""


class Calls:
    """A function of arrays; `prepare(given, out, how)` checks a call."""

    def __init__(self, prepare: Callable[[Sequence[Any], Any, Any], Call]) -> None:
        self.prepare = prepare
        self.ready: dict[Any, tuple[Ready, tuple[int, ...], Any]] = {}  # and the extents and the type of the result

    def __call__(self, given: Sequence[Any], out: Any, how: Any = None) -> Any:
        """Start the work, and return its result: a new array, or `out`."""
        first = given[0]
        if not is_torch(first.__class__) or not first.is_cuda:
            return self._begin(given, out, how, None)
        try:
            key = how, *map(_form, given if out is None else (*given, out))
        except AttributeError:  # not all of them are tensors: `prepare` says which
            return self._begin(given, out, how, None)
        found = self.ready.get(key)
        if found is None:
            return self._begin(given, out, how, key)
        ready, extents, dtype = found
        made = first.new_empty(extents, dtype=dtype) if out is None else out
        addresses = [one.data_ptr() for one in (*given, made)]
        if out is not None and ready.overlaps(addresses):
            return self._begin(given, out, how, key)
        ready.start(addresses, stream_of(first, ready.gpu))
        return made

    def _begin(self, given: Sequence[Any], out: Any, how: Any, key: Any) -> Any:
        """A call that is not ready yet."""
        made, launch, arrays, changing, is_kept, memory = self.prepare(given, out, how)
        if launch is None:
            return made
        target = arrays[-1]
        if target.gpu is None:
            launch.run(device="cpu")
            return made
        bytes = [one.end - one.address for one in arrays]
        ready = Ready(launch, target.gpu, changing, bytes, len(arrays) - 1, memory)
        if key is not None and is_kept:
            if len(self.ready) >= _MOST:
                self.ready.clear()
            self.ready[key] = ready, target.shape, made.dtype
        ready.start([one.address for one in arrays], stream_of(given[0], target.gpu))
        if hasattr(given[0], "unsafe_buffer_pointer"):  # JAX does not know of this work: it is completed now
            with current(target.gpu):
                call("cuStreamSynchronize", 0)
        return made


def _form(tensor: Any) -> Any:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device, tensor.data_ptr() & 15


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
