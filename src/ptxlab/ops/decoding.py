"""`decode_attention`: attention of one query token to a cache, for arrays of torch, CuPy, JAX and NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ptxlab.device.arrays import Array, Tensor
from ptxlab.kernels.decode_attention import HOST_BLOCKS, SIZES, attend, workspace_of
from ptxlab.kernels.decode_attention.plan import KEYS
from ptxlab.launch.launches import Launch
from ptxlab.ops import jax_functions
from ptxlab.ops.callees import Argument, CalledKernel, calls_of
from ptxlab.ops.calls import Calls
from ptxlab.ops.matrices import HALVES, ROW, Matrix
from ptxlab.ops.operators import Operator, is_traced
from ptxlab.ops.prefilling import check_table
from ptxlab.ops.ready import Workspace
from ptxlab.ops.xla import is_jax

_PARTIAL = 6  # the number of the parameter
_CACHES = (*HALVES, "e4m3")
_SCHEMA = (
    "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor lengths, Tensor? block_table, float? scale, float scale_k,"
    " float scale_v) -> Tensor"
)


def decode_attention(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    lengths: Array,
    block_table: Array | None = None,
    *,
    scale: float | None = None,
    scale_k: float = 1.0,
    scale_v: float = 1.0,
    out: Any = None,
) -> Any:
    """softmax(q·kᵀ·scale)·v for one token of each sequence, in f16 or bf16 with f32 accumulators.

    `q` is batch × heads × size, of 64, 128 or 256 elements. Each cache is batch × positions × heads × size, with any
    strides but the last; its heads may be fewer, each for as many of `q`. Sequence i has `lengths[i]` keys, an int32;
    of no keys the result is 0. With a `block_table` of batch × pages, int32, caches are pages × positions × heads ×
    size, and key n of sequence i is in page `block_table[i, n // positions]`; pages have a multiple of 16 positions.
    Caches of e4m3 are multiplied by `scale_k` and `scale_v`. `scale` is 1/√size unless given. The result is a new
    array, or `out`. There is no gradient.
    """
    how = scale, float(scale_k), float(scale_v)
    given = q, k_cache, v_cache, lengths, block_table
    if out is None and is_traced():
        return _calls.operator(*given, *how)
    if is_jax(q.__class__):
        return jax_functions.decode_attention(*given, *how, out=out)
    found = _calls(given, (out,), how)
    return _calls.operator.differentiate(*given, *how) if found is None else found[0]


def _make(
    q: Array,
    k: Array,
    v: Array,
    lengths: Array,
    table: Array,
    o: Array,
    scale: float | None,
    scale_k: float,
    scale_v: float,
) -> Launch:
    """The launch, with memory for parts of results where it runs on the emulator."""
    pages = None if isinstance(table, int) else table
    is_host = isinstance(q, np.ndarray)
    blocks = HOST_BLOCKS if is_host else None
    partial: Any = 0
    if is_host:
        _check_lengths(k, lengths, pages)
        partial = np.zeros(workspace_of(q, k, 0 if pages is None else k.shape[1], HOST_BLOCKS), np.float32)
    return attend(q, k, v, o, lengths, partial, pages, scale, (scale_k, scale_v), blocks=blocks)


def _workspace(
    like: object, gpu: int, q: Array, k: Array, v: Array, lengths: Array, table: Array, o: Array
) -> Workspace:
    numbers = workspace_of(q, k, 0 if isinstance(table, int) else k.shape[1])
    return Workspace("decode", like, gpu, {_PARTIAL: 4 * numbers})


def _check(
    q: Matrix, k: Matrix, v: Matrix, lengths: Matrix, table: Matrix | None, scale: float | None, *factors: float
) -> None:
    """Refuse what the kernel does not do."""
    shapes = f"queries {q.shape}, keys {k.shape}, values {v.shape}"
    if len(q.shape) != 3 or len(k.shape) != 4 or k.shape != v.shape or q.shape[2] != k.shape[3]:
        raise ValueError(
            f"queries are batch × heads × size, caches batch (or pages) × positions × heads × size; these are {shapes}"
        )
    if 0 in (q.shape[1], k.shape[2]):
        raise ValueError(f"there are no heads: {shapes}")
    if q.shape[2] not in SIZES:
        raise ValueError(f"heads of {q.shape[2]} elements: this kernel is for 64, 128 and 256")
    if q.shape[1] % k.shape[2]:
        raise ValueError(f"{q.shape[1]} heads of queries are not a multiple of {k.shape[2]} heads of keys")
    if lengths.shape != (q.shape[0],):
        raise ValueError(f"`lengths` is {lengths.shape}, and must be ({q.shape[0]},): one for each sequence")
    if k.type != v.type or k.type not in (q.type, "e4m3"):
        raise TypeError(f"queries of {q.type}, keys of {k.type}, values of {v.type}: keys and values are of the type of"
                        " queries, or of e4m3")  # fmt: skip
    if scale is not None and not 0 < scale < math.inf:
        raise ValueError(f"scale={scale}: it is a positive number")
    for name, one in (("k_cache", k), ("v_cache", v)):
        steps = [step * one.size % ROW or step < 0 for step in one.strides[:3]]
        if one.strides[3] != 1 or any(steps) or one.address % ROW:
            raise ValueError(f"`{name}` is not in rows that begin at multiples of {ROW} bytes: pass a contiguous array")
    if table is None:
        if k.shape[0] != q.shape[0]:
            raise ValueError(
                f"{q.shape[0]} queries and {k.shape[0]} sequences in the cache: pass a `block_table`, or as many"
            )
    else:
        if len(table.shape) != 2 or table.shape[0] != q.shape[0]:
            raise ValueError(f"`block_table` is {table.shape}: it is batch × pages, and the batch is {q.shape[0]}")
        if k.shape[1] % KEYS:
            raise ValueError(f"pages of {k.shape[1]} positions: this kernel is for multiples of {KEYS}")


def _finish(out: Tensor) -> None:
    """Nothing is attended to."""
    out[...] = 0


def _check_lengths(k: Any, lengths: Any, table: Any) -> None:
    own = np.arange(k.shape[0])[:, None] if table is None else table
    check_table(lengths, own, k.shape[1], k.shape[0])


_DECLARED = CalledKernel(
    {
        "q": Argument(HALVES, 0, is_aligned=True),
        "k_cache": Argument(_CACHES, 1, is_dense=False),
        "v_cache": Argument(_CACHES, 2, is_dense=False),
        "lengths": Argument(("s32",), 4),
        "block_table": Argument(("s32",), 5),
    },
    {"out": Argument(HALVES, 3, is_aligned=True)},
    _check,
    lambda q, *others: [(q.shape, q.type)],
    _make,
    _workspace,
    _finish,
)
_calls: Calls = calls_of(
    _DECLARED,
    Operator(
        "decode_attention",
        _SCHEMA,
        lambda *given: _calls.compute(given[:5], (None,), given[5:])[0],
        lambda q, *others: q.new_empty(q.shape),
    ),
)
