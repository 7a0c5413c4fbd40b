"""`attention`: attention for arrays of torch, CuPy and JAX on a Hopper GPU, and of NumPy on the emulator."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ptxlab.gpu.arrays import is_torch
from ptxlab.gpu.driver import call, current
from ptxlab.kernels import wgmma_attention
from ptxlab.kernels.matrices import ROW, Matrix, empty, look, stream_of, zeros
from ptxlab.kernels.ready import Ready

_MOST = 4096  # launches that stay ready
_RESULT, _COUNTER = 3, 4  # parameters of the kernel: the answer, and what counts tiles
_ready: dict[Any, Ready] = {}
_counters: dict[tuple[int, int], tuple[int, Any]] = {}


def attention(q: Any, k: Any, v: Any, out: Any = None, *, causal: bool = False, window: int = 0) -> Any:
    """softmax(q·kᵀ/√d)·v in f16 or bf16 with f32 accumulators, for heads of 64, 128 or 256 elements.

    Arrays are batch × heads × length × head size, with any strides but the last, which is 1; k and v may have fewer
    heads, each for as many of q. With `causal`, a query attends to the keys up to its own, and with a `window` of n to
    the last n of these. The result is a new array, or `out`. Work starts on the stream that the framework uses now;
    arrays of the host run on the emulator. There is no gradient.
    """
    given = [q, k, v]
    if not is_torch(q.__class__) or not q.is_cuda:
        return _first(given, out, causal, window, None)
    _refuse_gradients(given)
    key = *((one.shape, one.stride(), one.dtype, one.device) for one in given), causal, window
    if out is not None:
        key = *key, (out.shape, out.stride(), out.dtype, out.device)
    ready = _ready.get(key)
    addresses = [one.data_ptr() for one in given]
    made = q.new_empty(q.shape) if out is None else out
    addresses.append(made.data_ptr())
    if ready is None or any(address % ROW for address in addresses) or (out is not None and ready.overlaps(addresses)):
        return _first(given, made, causal, window, key)
    ready.start(addresses, stream_of(q, ready.gpu))
    return made


def _refuse_gradients(tensors: Sequence[Any]) -> None:
    torch = import_module("torch")
    if torch.is_grad_enabled() and any(one.requires_grad for one in tensors):
        raise ValueError("`attention` has no gradient: call it under `torch.no_grad()`, or detach its arguments")


def _first(given: Sequence[Any], out: Any, causal: bool, window: int, key: Any) -> Any:
    """A call that is not ready yet, from top to bottom."""
    q = given[0]
    sides = [look(one, name) for one, name in zip(given, "qkv", strict=True)]
    made = empty(q, sides[0].shape) if out is None else out
    target = look(made, "out")
    _check([*sides, target])
    gpu = target.gpu
    counter = np.zeros(1, np.uint32) if gpu is None else 0
    views = dict(zip("qkvo", (one.view() for one in (*sides, target)), strict=True))
    launch = wgmma_attention.attend(**views, counter=counter, causal=causal, window=window)
    if gpu is None:
        launch.run(device="cpu")
        return made
    arrays = *sides, target
    bytes = [one.end - one.address for one in arrays]
    ready = Ready(launch, gpu, range(len(arrays)), bytes, _RESULT, lambda stream: _counter(q, gpu, stream))
    if key is not None:
        if len(_ready) >= _MOST:
            _ready.clear()
        _ready[key] = ready
    ready.start([one.address for one in arrays], stream_of(q, gpu))
    if hasattr(q, "unsafe_buffer_pointer"):  # JAX does not know of this work: it is completed now
        with current(gpu):
            call("cuStreamSynchronize", 0)
    return made


def _counter(like: Any, gpu: int, stream: int) -> tuple[dict[int, int], Any]:
    """The counter of a stream: kernels that run at the same time do not share one."""
    found = _counters.get((gpu, stream))
    if found is None:
        memory = zeros(like, ROW)
        found = _counters[gpu, stream] = look(memory, "counter").address, memory
    return {_COUNTER: found[0]}, found[1]


def _check(arrays: Sequence[Matrix]) -> None:
    """Whether the kernel can read and write all of them, where they are."""
    target = arrays[-1]
    for name, one in zip(("q", "k", "v", "out"), arrays, strict=True):
        if one.gpu != arrays[0].gpu:
            where = ["the host" if gpu is None else f"GPU {gpu}" for gpu in (one.gpu, arrays[0].gpu)]
            raise ValueError(f"`{name}` is on {where[0]}, and `q` on {where[1]}")
        steps = [2 * step % ROW for extent, step in zip(one.shape[:-1], one.strides, strict=False) if extent > 1]
        if one.strides[-1:] != (1,) or any(steps) or one.address % ROW:
            raise ValueError(f"`{name}` is not in rows that begin at multiples of {ROW} bytes: pass a contiguous array")
        if one is not target and one.address < target.end and target.address < one.end:
            raise ValueError(f"`out` overlaps `{name}`: what is written would be read")
