"""Calls of every function of `ptxlab.kernels`, and what can be unusual about each of their arrays.

Tests without a GPU and those with one go through all of them: a call is refused in words that name the array, or it
computes what it computes of a plain copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from ptxlab import kernels

BF16, E4M3 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


class Usual(NamedTuple):
    """A function, its arrays by name, and what else it is given; `out` is the form of its result if that is given."""

    function: Callable[..., Any]
    arrays: dict[str, Any]
    options: dict[str, Any]
    out: tuple[tuple[int, ...], Any] | None = None


def multiply(x: Any, weights: Any, scales: Any, out: Any = None) -> Any:
    packed = kernels.Packed(MATRIX.format, MATRIX.rows, MATRIX.columns, weights, scales, MATRIX.factor)
    return kernels.quantized_matvec(packed, x, out=out)


def drawn(*shape: int, type: Any = BF16) -> Any:
    return np.random.default_rng(1).standard_normal(shape).astype(type)


def usual() -> dict[str, Usual]:
    """A small call of each."""
    f32, one = np.float32, np.ones(1, np.float32)
    a, b, q = drawn(16, 64), drawn(64, 32), drawn(1, 2, 24, 64)
    ends, starts = np.array([4, 16], np.int32), np.array([0, 10, 24], np.int32)
    x, w, packed = drawn(8, 64), drawn(64), drawn(24, 2, 64)
    lse, cache = np.zeros((1, 2, 24), f32), drawn(2, 32, 2, 64)
    columns = np.ascontiguousarray(drawn(64, 32, type=E4M3).T).T
    return {
        "matmul": Usual(kernels.matmul, {"a": a, "b": b}, {}, ((16, 32), BF16)),
        "matmul with more": Usual(
            kernels.matmul, {"a": a, "b": b, "bias": drawn(32), "residual": drawn(16, 32)},
            {"activation": "silu"}, ((16, 32), BF16),
        ),
        "matmul in 3 dimensions": Usual(kernels.matmul, {"a": a.reshape(2, 8, 64), "b": b}, {}, ((2, 8, 32), BF16)),
        "scaled_matmul": Usual(
            kernels.scaled_matmul,
            {"a": a.astype(E4M3), "b": columns, "scale_a": one, "scale_b": one + 1}, {}, ((16, 32), BF16),
        ),
        "scaled_matmul by blocks": Usual(
            kernels.scaled_matmul,
            {"a": drawn(16, 256, type=E4M3), "b": np.ascontiguousarray(drawn(256, 160, type=E4M3).T).T,
             "scale_a": abs(drawn(16, 2, type=f32)), "scale_b": abs(drawn(2, 2, type=f32))},
            {}, ((16, 160), BF16),
        ),
        "grouped_matmul": Usual(
            kernels.grouped_matmul, {"a": a, "b": drawn(2, 64, 32), "offsets": ends}, {}, ((16, 32), BF16)
        ),
        "grouped_matmul along k": Usual(
            kernels.grouped_matmul, {"a": drawn(64, 16).T.copy().T, "b": drawn(16, 32), "offsets": ends},
            {}, ((2, 64, 32), f32),
        ),
        "gated_matmul": Usual(kernels.gated_matmul, {"x": a, "w1": b, "w2": drawn(64, 32) + b}, {}, ((16, 32), BF16)),
        "quantized_matvec": Usual(
            multiply, {"x": drawn(2, 256), "weights": MATRIX.weights, "scales": MATRIX.scales}, {}, ((2, 4), BF16)
        ),
        "attention": Usual(kernels.attention, {"q": q, "k": q + q, "v": q - 1}, {"causal": True}, (q.shape, BF16)),
        "packed attention": Usual(
            kernels.attention, {"q": packed, "k": packed + 1, "v": packed, "cu_seqlens_q": starts},
            {}, (packed.shape, BF16),
        ),
        "attention_backward": Usual(
            kernels.attention_backward, {"do": q, "q": q + 1, "k": q, "v": q, "o": q, "lse": lse}, {}
        ),
        "decode_attention": Usual(
            kernels.decode_attention,
            {"q": drawn(2, 4, 64), "k_cache": cache, "v_cache": cache + 1, "lengths": np.array([3, 30], np.int32)},
            {}, ((2, 4, 64), BF16),
        ),
        "softmax": Usual(kernels.softmax, {"x": x}, {}, ((8, 64), BF16)),
        "layer_norm": Usual(kernels.layer_norm, {"x": x, "weight": w, "bias": w + 1}, {}, ((8, 64), BF16)),
        "rms_norm": Usual(kernels.rms_norm, {"x": x, "weight": w}, {}, ((8, 64), BF16)),
        "rms_norm with a residual": Usual(
            kernels.rms_norm, {"x": x, "weight": w, "residual": x + 1}, {}, ((8, 64), BF16)
        ),
        "rms_norm to 8 bits": Usual(
            kernels.rms_norm, {"x": x, "weight": w, "quantize": one}, {}, ((8, 64), E4M3)
        ),
        "cross_entropy": Usual(
            kernels.cross_entropy, {"x": x, "targets": np.arange(8)}, {"reduction": "none"}
        ),
    }  # fmt: skip


MATRIX = kernels.quantize(np.linspace(-3, 3, 1024, dtype=np.float32).reshape(4, 256), "int4").pack()


def moved(array: Any, elements: int) -> Any:
    """The same after so many elements of other memory: at another alignment."""
    memory = np.zeros(array.size + elements + 64, array.dtype)
    first = -(memory.ctypes.data // array.itemsize) % (64 // array.itemsize) + elements
    found = memory[first : first + array.size].reshape(array.shape)
    found[...] = array
    return found


def spread(array: Any, step: int) -> Any:
    """The same with gaps between elements."""
    memory = np.zeros((*array.shape[:-1], step * array.shape[-1]), array.dtype)
    memory[..., ::step] = array
    return memory[..., ::step]


def in_wider_rows(array: Any, more: int) -> Any:
    """The same as a part of a wider array."""
    memory = np.zeros((*array.shape[:-1], array.shape[-1] + more), array.dtype)
    memory[..., : array.shape[-1]] = array
    return memory[..., : array.shape[-1]]


def repeated(array: Any) -> Any:
    """One row again and again, which is in memory once."""
    return np.lib.stride_tricks.as_strided(array, array.shape, (0, *array.strides[1:]))


ALIKE: dict[str, Callable[[Any], Any]] = {
    "misaligned by an element": lambda x: moved(x, 1),
    "after 8 bytes": lambda x: moved(x, max(1, 8 // x.itemsize)),
    "with gaps between elements": lambda x: spread(x, 2),
    "in rows that are 1 longer": lambda x: in_wider_rows(x, 1),
    "in rows that are 32 longer": lambda x: in_wider_rows(x, 32),
    "by columns": lambda x: np.ascontiguousarray(x.T).T,
}
"""The same numbers elsewhere in memory."""
WRONG: dict[str, Callable[[Any], Any]] = {
    "a list": lambda x: x.tolist(),
    "of float64": lambda x: x.astype(np.float64),
    "of int16": lambda x: x.astype(np.int16),
    "of float16": lambda x: x.astype(np.float16),
    "without rows": lambda x: x[:0],
    "without columns": lambda x: x[..., :0],
    "of a dimension more": lambda x: x[None],
    "of a dimension less": lambda x: x[0],
    "one row longer": lambda x: np.concatenate([x, x[:1]]),
    "one column shorter": lambda x: np.ascontiguousarray(x[..., :-1]),
    "one number": lambda x: x.reshape(-1)[0:1].reshape(()),
    "a text": lambda x: "x",
}
"""Not what is expected; it may be possible nevertheless."""


def with_result(usual: Usual, make: Callable[[Any], Any]) -> dict[str, Any]:
    assert usual.out is not None
    return {**usual.arrays, **usual.options, "out": make(np.zeros(*usual.out))}


def unusual(one: Usual) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Which array is unusual, how, and all arguments."""
    given = {**one.arrays, **one.options}
    for what, change in {**ALIKE, **WRONG}.items():
        for name, array in one.arrays.items():
            yield name, what, {**given, name: change(array)}
        if one.out is not None:
            yield "out", what, with_result(one, change)
    if one.out is not None:
        for name, array in one.arrays.items():
            shape, type = one.out
            if array.size * array.itemsize >= np.zeros(shape, type).nbytes:
                bytes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
                over = bytes[: np.zeros(shape, type).nbytes].view(type).reshape(shape)
                same = bytes.view(array.dtype).reshape(array.shape)
                yield "out", f"over `{name}`", {**given, name: same, "out": over}
        yield "out", "of rows that are one row", with_result(one, repeated)
