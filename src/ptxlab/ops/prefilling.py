"""`prefill_attention`: attention of new tokens to a cache in pages, for arrays of torch, CuPy, JAX and NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ptxlab.device.arrays import Array
from ptxlab.kernels import wgmma_attention
from ptxlab.ops import jax_functions
from ptxlab.ops.attention_launches import check, counter, numbered
from ptxlab.ops.calls import BoundLaunch, Call, Calls
from ptxlab.ops.checks import check_dense, check_extents, check_gpu, require
from ptxlab.ops.matrices import Matrix, argument, empty, filled, look
from ptxlab.ops.operators import Operator, is_traced
from ptxlab.ops.packed_attention import MEMORY, STARTS, check_starts, heads_first
from ptxlab.ops.xla import is_jax

TABLE = 20  # the number of the kernels' parameter
POSITIONS = 16  # of which those of a page are a multiple
_SCHEMA = (
    "(Tensor q, Tensor k_cache, Tensor v_cache, Tensor cu_seqlens_q, Tensor lengths, Tensor block_table,"
    " bool causal=True, int window=0) -> Tensor"
)


def prefill_attention(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    cu_seqlens_q: Array,
    lengths: Array,
    block_table: Array,
    *,
    causal: bool = True,
    window: int = 0,
    out: Any = None,
) -> Any:
    """softmax(q·kᵀ/√d)·v for the last tokens of each sequence, in f16 or bf16 with f32 accumulators.

    `q` is tokens × heads × size, of a multiple of 8 elements up to 256. Sequence i has those from `cu_seqlens_q[i]` up
    to but without `cu_seqlens_q[i + 1]`, and `lengths[i]` keys, among them those of its queries, which are the last:
    with `causal`, the last query attends to all keys, the one before to all but one, and so on, and with a `window` of
    n to the last n of these. Caches are pages × positions × heads × size, with any strides but the last; their heads
    may be fewer, each for as many of `q`, and those of `v_cache` may have fewer elements. Key n of sequence i is in
    page `block_table[i, n // positions]`; pages have a multiple of 16 positions. Numbers are int32. Only the kernel
    reads them, and a call does not wait for the GPU. A query that attends to no key gets 0. What is in a cache after
    the keys of a sequence has no effect. The result is a new array, or `out`. There is no gradient.
    """
    given, how = (q, k_cache, v_cache, cu_seqlens_q, lengths, block_table), (causal, window)
    if out is None and is_traced():
        return _calls.operator(*given, *how)
    if is_jax(q.__class__):
        return jax_functions.prefill_attention(given, how, out)
    found = _calls(given, (out,), how)
    return _calls.operator.differentiate(*given, *how) if found is None else found[0]


def _prepare(given: Sequence[Any], written: Sequence[Any], how: tuple[bool, int]) -> Call:
    q, (causal, window) = given[0], how
    caches = [
        (name, _cache(look(one, name), name)) for name, one in zip(("k_cache", "v_cache"), given[1:], strict=False)
    ]
    read = [("q", heads_first(look(q, "q"), "q")), *caches]
    queries, keys, values = (one for _, one in read)
    starts = look(given[3], "cu_seqlens_q", ("s32",))
    lengths, table = (
        look(one, name, ("s32",)) for one, name in zip(given[4:], ("lengths", "block_table"), strict=True)
    )
    check_starts("cu_seqlens_q", starts, starts, queries)
    _check(read, starts.shape[0] - 1, lengths, table)
    shape = *q.shape[:2], values.shape[3]
    made = empty(q, shape) if written[0] is None else written[0]
    target = heads_first(look(made, "out"), "out")
    require("out", target, (*queries.shape[:3], values.shape[3]), queries.type)
    sequences = starts.shape[0] - 1
    if 0 in (*queries.shape, *keys.shape, *values.shape, *table.shape):
        check_gpu(read[0], [("out", target)])
        return Call([filled(q, shape, 0.0, out=made)])
    check(read, [("out", target)])
    gpu, counts = target.gpu, wgmma_attention.workspace(queries.shape, sequences)
    memory = np.zeros(sum(counts), np.uint32) if gpu is None else None
    launches = wgmma_attention.attend_packed(
        **dict(zip("qkvo", (one.view() for _, one in [*read, ("out", target)]), strict=True)),
        counter=np.zeros(1, np.uint32) if gpu is None else 0,
        starts=(argument(starts), argument(lengths)),
        sequences=sequences,
        memory=(0, 0) if memory is None else (memory[counts[0] :], memory[: counts[0]].view(np.uint8)),
        causal=causal,
        window=window,
        table=(argument(table), table.shape[1]),
    )
    arrays = [*(one for _, one in read), starts, lengths, table, target]
    changing = numbered([0, 1, 2, *STARTS, TABLE, 3, *MEMORY])
    steps = [BoundLaunch(launch, changing) for launch in launches]
    return Call([made], steps, arrays, workspace=counter(q, gpu), scratch=[4 * count for count in counts])


def _cache(one: Matrix, name: str) -> Matrix:
    """A cache as the kernel takes it, with heads before positions: a page is an element of a batch."""
    if len(one.shape) != 4:
        raise ValueError(f"`{name}` has {len(one.shape)} dimensions: a cache is pages × positions × heads × head size")
    shape, strides = ((of[0], of[2], of[1], of[3]) for of in (one.shape, one.strides))
    turned = one.array.transpose(0, 2, 1, 3) if one.gpu is None else one.array
    return Matrix(one.address, shape, strides, one.type, one.gpu, turned)


def _check(read: Sequence[tuple[str, Matrix]], sequences: int, lengths: Matrix, table: Matrix) -> None:
    """Refuse caches and tables that do not go together; numbers on the host must be those of the cache."""
    (_, queries), (_, keys), (_, values) = read
    pages, heads, page, size = keys.shape
    shapes = f"queries of {queries.shape[1]} heads × {queries.shape[3]}, keys of {heads} × {size}"
    if values.shape[:3] != keys.shape[:3]:
        raise ValueError("`k_cache` and `v_cache` differ in pages, positions or heads")
    if not heads or size != queries.shape[3]:
        raise ValueError(f"{shapes}: heads have as many elements, and there is one at least")
    if page % POSITIONS:
        raise ValueError(f"pages of {page} positions: this kernel is for multiples of {POSITIONS}")
    check_extents("lengths", lengths, (sequences,))
    if len(table.shape) != 2 or table.shape[0] != sequences:
        raise ValueError(f"`block_table` is {table.shape}: it is sequences × pages, and sequences are {sequences}")
    for name, one in (("lengths", lengths), ("block_table", table)):
        check_dense(name, one)
        check_gpu(read[0], [(name, one)])
    if lengths.gpu is None and sequences:
        check_table(lengths.array, table.array, page, pages)


def check_table(lengths: Any, table: Any, page: int, pages: int) -> None:
    """Whether sequences of such lengths are in the cache; a table may have any numbers after their last pages."""
    most = table.shape[1] * page
    if (lengths < 0).any() or (lengths > most).any():
        raise ValueError(f"`lengths` are from {lengths.min()} to {lengths.max()}, and the cache has {most} positions")
    used = [table[i, : -(-int(n) // max(page, 1))] for i, n in enumerate(lengths)]
    if any((one < 0).any() or (one >= pages).any() for one in used):
        raise ValueError(f"`block_table` names a page that the cache does not have: it has {pages}")


def _of_tensors(
    q: Array,
    k_cache: Array,
    v_cache: Array,
    cu_seqlens_q: Array,
    lengths: Array,
    block_table: Array,
    causal: bool = True,
    window: int = 0,
) -> object:
    given = q, k_cache, v_cache, cu_seqlens_q, lengths, block_table
    return _calls.compute(given, (None,), (causal, window))[0]


_calls: Calls = Calls(
    _prepare,
    Operator(
        "prefill_attention",
        _SCHEMA,
        _of_tensors,
        lambda q, k, v, *others: q.new_empty((*q.shape[:2], v.shape[3])),
    ),
)
