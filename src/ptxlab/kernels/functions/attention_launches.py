"""Launches of attention and of its gradients on arrays of torch, CuPy, JAX and NumPy.

A first call with some extents, strides and types compiles kernels and encodes tensor maps. What is ready then costs a
launch: only addresses change.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from ptxlab.gpu.arrays import is_torch
from ptxlab.gpu.driver import call, current
from ptxlab.kernels import wgmma_attention, wgmma_attention_backward
from ptxlab.kernels.functions.matrices import ROW, Matrix, empty, framework, look, stream_of, zeros
from ptxlab.kernels.functions.ready import Ready
from ptxlab.measure import Launch

_MOST = 4096  # launches that stay ready
_RESULT, _COUNTER, _LOGS = 3, 4, 12  # parameters of the kernel: the answer, what counts tiles, log-sum-exp
_CHANGING = range(7), [*range(9), 16], range(2)  # parameters of the three kernels of the gradients: addresses
_ready: dict[Any, Ready] = {}
_gradients: dict[Any, Gradients] = {}
_counters: dict[tuple[int, int], tuple[int, Any]] = {}


class Gradients(NamedTuple):
    """The launches of the gradients, and how many numbers of 4 bytes they need memory for, by its parts."""

    ready: list[Ready]
    counts: list[int]

    def start(self, given: Sequence[int], lse: int, made: Sequence[int], memory: int, stream: int) -> None:
        """Start them; all but the stream are addresses: of q, k, v, o and do, of dq, dk and dv, of memory."""
        q, k, v, o, do = given
        dq, dk, dv = made
        sums, offsets, totals, turns = (memory + 4 * start for start in accumulate([0, *self.counts[:-1]]))
        first = [o, do, lse, offsets, totals, sums, turns]
        changing = first, [q, k, v, do, dk, dv, sums, offsets, totals, turns], [sums, dq]
        for ready, addresses in zip(self.ready, changing, strict=True):
            ready.start(addresses, stream)


def attend(given: Sequence[Any], out: Any, causal: bool, window: int, logs: bool) -> tuple[Any, Any]:
    """The answer, a new array or `out`, and the log-sum-exp of each row if it is asked for."""
    q = given[0]
    lse = space(q, tuple(q.shape[:3])) if logs else None
    if not is_torch(q.__class__) or not q.is_cuda:
        return _attend_first(given, out, lse, causal, window, None), lse
    key = *map(form, given), causal, window, logs, None if out is None else form(out)
    ready = _ready.get(key)
    made = q.new_empty(q.shape) if out is None else out
    addresses = [one.data_ptr() for one in (*given, made)]
    if ready is None or any(address % ROW for address in addresses) or (out is not None and ready.overlaps(addresses)):
        return _attend_first(given, made, lse, causal, window, key), lse
    ready.start(addresses if lse is None else [*addresses, lse.data_ptr()], stream_of(q, ready.gpu))
    return made, lse


def form(tensor: Any) -> Any:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def _attend_first(given: Sequence[Any], out: Any, lse: Any, causal: bool, window: int, key: Any) -> Any:
    """A call that is not ready yet, from top to bottom."""
    q = given[0]
    sides = [look(one, name) for one, name in zip(given, "qkv", strict=True)]
    made = empty(q, sides[0].shape) if out is None else out
    target = look(made, "out")
    check(dict(zip("qkv", sides, strict=True)), {"out": target})
    gpu = target.gpu
    counter = np.zeros(1, np.uint32) if gpu is None else 0
    views = dict(zip("qkvo", (one.view() for one in (*sides, target)), strict=True))
    logs = None if lse is None else argument(lse, gpu)
    launch = wgmma_attention.attend(**views, counter=counter, causal=causal, window=window, lse=logs)
    if gpu is None:
        launch.run(device="cpu")
        return made
    addresses = [one.address for one in (*sides, target)]
    changing = list(range(4))
    bytes = [one.end - one.address for one in (*sides, target)]
    if lse is not None:
        addresses, changing, bytes = [*addresses, address_of(lse)], [*changing, _LOGS], [*bytes, 0]
    ready = Ready(launch, gpu, changing, bytes, _RESULT, lambda stream: counter_of(q, gpu, stream))
    keep(_ready, key, ready)
    ready.start(addresses, stream_of(q, gpu))
    complete(q, gpu)
    return made


def differentiate(do: Any, given: Sequence[Any], lse: Any, **how: Any) -> tuple[Any, Any, Any]:
    """The gradients of q, k and v; `given` are these and the answer, `how` is `causal`, `window` and `ordered`."""
    q, k, v, _ = given
    arrays = [*given, do]
    if not is_torch(q.__class__) or not q.is_cuda:
        return _differentiate_first(arrays, lse, None, **how)
    key = *map(form, arrays), form(lse), *how.values()
    ready = _gradients.get(key)
    addresses = [one.data_ptr() for one in arrays]
    if ready is None or any(address % ROW for address in addresses):
        return _differentiate_first(arrays, lse, key, **how)
    made = q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)
    memory = space(q, (sum(ready.counts),))
    stream = stream_of(q, q.get_device())
    ready.start(addresses, lse.data_ptr(), [one.data_ptr() for one in made], memory.data_ptr(), stream)
    return made


def _differentiate_first(
    arrays: Sequence[Any], lse: Any, key: Any, causal: bool, window: int, ordered: bool
) -> tuple[Any, Any, Any]:
    """Gradients that are not ready yet, from top to bottom."""
    q = arrays[0]
    sides = dict(zip(("q", "k", "v", "o", "do"), (look(one, "an array") for one in arrays), strict=True))
    made = [empty(q, sides[name].shape) for name in "qkv"]
    results = dict(zip(("dq", "dk", "dv"), (look(one, "a gradient") for one in made), strict=True))
    check(sides, results)
    _check_answer(sides, lse)
    gpu, (_, _, queries, size) = sides["q"].gpu, sides["q"].shape
    rows = wgmma_attention_backward.choose(size, sides["q"].type, causal, bool(window), queries).rows
    counts = wgmma_attention_backward.workspace(sides["q"].shape, rows)
    memory = space(q, (sum(counts),))
    views = {name: one.view() for name, one in (sides | results).items()}
    starts = accumulate([0, *counts])
    parts = [argument(memory[a:b] if gpu is None else memory, gpu) for a, b in pairwise(starts)]
    named = dict(zip(("sums", "offsets", "totals", "turns"), parts, strict=True))
    launches = wgmma_attention_backward.differentiate(
        **views, lse=argument(lse, gpu), **named, causal=causal, window=window, ordered=ordered
    )
    if gpu is None:
        for launch in launches:
            launch.run(device="cpu")
        return made[0], made[1], made[2]
    ready = Gradients([_ready_of(one, gpu, numbers) for one, numbers in zip(launches, _CHANGING, strict=True)], counts)
    keep(_gradients, key, ready)
    addresses = [one.address for one in sides.values()], [one.address for one in results.values()]
    ready.start(addresses[0], address_of(lse), addresses[1], address_of(memory), stream_of(q, gpu))
    complete(q, gpu)
    return made[0], made[1], made[2]


def _ready_of(launch: Launch, gpu: int, numbers: Sequence[int]) -> Ready:
    """A launch of which parameters with these numbers change; results are new arrays, which overlap nothing."""
    return Ready(launch, gpu, numbers, [0] * len(numbers), 0, lambda stream: ({}, None))


def keep(kept: dict[Any, Any], key: Any, ready: Any) -> None:
    if key is not None:
        if len(kept) >= _MOST:
            kept.clear()
        kept[key] = ready


def complete(like: Any, gpu: int) -> None:
    if hasattr(like, "unsafe_buffer_pointer"):  # JAX does not know of this work: it is completed now
        with current(gpu):
            call("cuStreamSynchronize", 0)


def space(like: Any, shape: tuple[int, ...]) -> Any:
    """A new array of f32, of the same framework and device."""
    if is_torch(like.__class__):
        return like.new_empty(shape, dtype=import_module("torch").float32)
    xp = framework(like)
    if xp.__name__ == "jax.numpy":
        return import_module("jax").device_put(xp.empty(shape, "float32"), next(iter(like.devices())))
    return xp.empty(shape, "float32")


def argument(array: Any, gpu: int | None) -> Any:
    """An array of f32 as a launch takes it: as NumPy has it, or on a GPU 0, for which each call has the address."""
    if gpu is not None:
        return 0
    return array.detach().numpy() if is_torch(array.__class__) else np.asarray(array)


def address_of(array: Any) -> int:
    """Where an array begins."""
    if is_torch(array.__class__):
        return int(array.data_ptr())
    if hasattr(array, "unsafe_buffer_pointer"):
        return int(array.unsafe_buffer_pointer())
    return int(array.data.ptr if hasattr(array, "__cuda_array_interface__") else array.ctypes.data)


def counter_of(like: Any, gpu: int, stream: int, parameter: int = _COUNTER) -> tuple[dict[int, int], Any]:
    """The counter of a stream: kernels that run at the same time do not share one."""
    found = _counters.get((gpu, stream))
    if found is None:
        memory = zeros(like, ROW)
        found = _counters[gpu, stream] = look(memory, "counter").address, memory
    return {parameter: found[0]}, found[1]


def check(read: dict[str, Matrix], written: dict[str, Matrix]) -> None:
    """Whether the kernels can read and write all of them, where they are."""
    q = read["q"]
    for name, one in (read | written).items():
        if one.gpu != q.gpu:
            where = ["the host" if gpu is None else f"GPU {gpu}" for gpu in (one.gpu, q.gpu)]
            raise ValueError(f"`{name}` is on {where[0]}, and `q` on {where[1]}")
        steps = [2 * step % ROW for extent, step in zip(one.shape[:-1], one.strides, strict=False) if extent > 1]
        if one.strides[-1:] != (1,) or any(steps) or one.address % ROW:
            raise ValueError(f"`{name}` is not in rows that begin at multiples of {ROW} bytes: pass a contiguous array")
    for target, result in written.items():
        for name, one in read.items():
            if one.address < result.end and result.address < one.end:
                raise ValueError(f"`{target}` overlaps `{name}`: what is written would be read")


def _check_answer(sides: dict[str, Matrix], lse: Any) -> None:
    """Whether the answer, its gradient and the log-sum-exp fit the queries."""
    q = sides["q"]
    for name in ("o", "do"):
        if sides[name].shape != q.shape or sides[name].type != q.type:
            raise ValueError(f"`{name}` is {sides[name].shape} of {sides[name].type}, and `q` {q.shape} of {q.type}")
    shape, type = tuple(lse.shape), str(lse.dtype).removeprefix("torch.")
    if shape != q.shape[:3] or type != "float32":
        raise ValueError(f"`lse` is {shape} of {type}, and must be {q.shape[:3]} of float32")
