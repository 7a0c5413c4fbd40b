"""The launches of attention: what a kernel is specialized for, its tensor maps, its grid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ptxlab
from ptxlab.kernels.mma_attention import half_of
from ptxlab.kernels.parts.choices import Choice
from ptxlab.kernels.wgmma_attention.kernel import specialize, specialize_packed
from ptxlab.kernels.wgmma_attention.packed import LISTING_THREADS, MAP, RECORD, capacity
from ptxlab.kernels.wgmma_attention.plan import BOX, GROUP_ROWS, Plan
from ptxlab.kernels.wgmma_attention.scoring import Scoring
from ptxlab.launch.launches import Launch, UnsuitedError, ceil_div

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array
    from ptxlab.device.tensor_maps import TensorMap

BLOCKS = 132  # as many as an H200 has SMs
L2 = 32 << 20  # bytes of keys and values that are read together; an H200 has 50 MiB of L2
TOGETHER = 64, 32  # heads at most whose tiles are computed together: of up to 64 elements, and of more
MOST_SIZE = 256  # elements of a head
SHORT = 1024  # up to this length, tiles of 128 queries for heads of 64 elements under a causal mask


def attend(
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    counter: object,
    causal: bool = False,
    window: int = 0,
    plan: Plan | None = None,
    lse: Array | int | None = None,
    softcap: float = 0.0,
    slopes: Array | None = None,
    sinks: Array | None = None,
) -> Launch:
    """The launch; `counter` is one number, 0, which the kernel sets back to 0 when it ends.

    A `window` of so many keys goes with a causal mask; 0 is all of them. `lse`, batch × heads × length in f32, is space
    for the log-sum-exp of each row's scores, which the gradients need. `slopes` and `sinks` are a number of f32 for
    each head, as `Scoring` says.
    """
    check(q, k, v, o, causal, window)
    (batch, heads, queries, size), (_, key_heads, keys, _) = q.shape, k.shape
    chosen = plan or choose(size, half_of(q), causal, bool(window), queries, v.shape[3], batch * heads)
    chosen = replace(chosen, logs=lse is not None, scoring=scoring_of(softcap, slopes, sinks))
    maps = tensor_maps(chosen, q, k, v, o)
    shared_by = heads // key_heads
    together = gather(keys, size, shared_by, causal)
    tiles = batch * heads * ceil_div(queries, chosen.rows)
    args = [*maps, counter, queries, keys, heads, batch * heads, shared_by, together, window]
    args += [0 if one is None else one for one in (lse, slopes, sinks)]
    return Launch(specialize(chosen), min(tiles, BLOCKS), chosen.threads, args, shared=chosen.shared)


def scoring_of(softcap: float, slopes: object, sinks: object = None) -> Scoring:
    """What kernels are specialized for."""
    return Scoring(softcap, slopes is not None, sinks is not None)


def tensor_maps(plan: Plan, q: Array, k: Array, v: Array, o: Array) -> list[TensorMap]:
    """The tensor maps, of boxes whose rows are as wide as the swizzle."""
    return [
        ptxlab.tensor_map(array, box=(1, 1, rows, columns), swizzle=f"{columns * array.itemsize}B", l2_promotion="256B")
        for array, rows, columns in (
            (q, GROUP_ROWS, plan.box),
            (k, plan.key_rows, plan.box),
            (v, plan.key_rows, plan.box),
            (o, GROUP_ROWS, BOX),
        )
    ]


def attend_packed(
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    counter: object,
    starts: tuple[object, object],
    sequences: int,
    memory: tuple[object, object],
    causal: bool = False,
    window: int = 0,
    plan: Plan | None = None,
    lse: Array | int | None = None,
    softcap: float = 0.0,
    slopes: Array | None = None,
    sinks: Array | None = None,
    table: tuple[object, int] | None = None,
) -> list[Launch]:
    """The launches for sequences of unequal lengths: batch is 1, and each head has all of them, one after the other.

    `starts` are two arrays of s32, of where sequences start among the queries and among the keys, and where the last
    one ends. `memory` is for the list of tiles and for tensor maps: see `workspace`. With a `table` of pages, so many
    for each sequence, the batch of keys and values is their pages, and of `starts` the second is how many keys each
    sequence has; queries are the last of these tokens.
    """
    pages, columns = table or (0, 0)
    check(q, k, v, o, causal, window, is_paged=bool(columns))
    (_, heads, queries, size), (_, _, keys, _) = q.shape, k.shape
    page, keys = (keys, keys * columns) if columns else (0, keys)
    mean = ceil_div(queries, sequences)
    chosen = plan or choose(size, half_of(q), causal, bool(window), mean, v.shape[3])
    chosen = replace(chosen, packed=True, logs=lse is not None, scoring=scoring_of(softcap, slopes, sinks), page=page)
    most = capacity(queries, sequences, chosen)
    maps = tensor_maps(chosen, q, k, v, o)
    shared_by = heads // k.shape[1]
    together = gather(keys, size, shared_by, causal)
    sizes = queries, keys, heads, shared_by, together, window
    args = [*maps, counter, *sizes, 0 if lse is None else lse, *starts, sequences, most, *memory]
    args += [*(0 if one is None else one for one in (slopes, sinks)), pages, columns]
    return [
        Launch(specialize_packed(chosen, "list"), 1, LISTING_THREADS, args),
        Launch(specialize_packed(chosen), min(heads * most, BLOCKS), chosen.threads, args, chosen.shared, overlap=True),
    ]


def workspace(shape: tuple[int, ...], sequences: int) -> tuple[int, int]:
    """How many numbers of 4 bytes packed sequences need for tensor maps, at a multiple of 128 bytes, and for the list.

    The list is that of the plan with the smallest tiles.
    """
    most = capacity(shape[2], sequences, Plan(shape[3], "f16"))
    return 2 * MAP // 4 * sequences, RECORD * (most + 1)


def check(q: Array, k: Array, v: Array, o: Array, causal: bool, window: int, is_paged: bool = False) -> None:
    """Refuse what the kernel does not do."""
    check_extents(q, k, v, o, causal, window, is_paged)
    if len({half_of(array) for array in (q, k, v, o)}) > 1:
        raise UnsuitedError("queries, keys, values and the answer are of one type")


def check_extents(q: Array, k: Array, v: Array, o: Array, causal: bool, window: int, is_paged: bool = False) -> None:
    """Refuse arrays that do not fit together, and masks that the kernel does not have."""
    shapes = f"queries {tuple(q.shape)}, keys {tuple(k.shape)}, values {tuple(v.shape)}, answer {tuple(o.shape)}"
    ranks = {len(one.shape) for one in (q, k, v, o)}
    if ranks != {4} or k.shape[:3] != v.shape[:3] or tuple(o.shape) != (*q.shape[:3], v.shape[3]):
        raise UnsuitedError(f"arrays are batch × heads × length × head size, and these do not fit: {shapes}")
    if (q.shape[0] != k.shape[0] and not is_paged) or q.shape[3] != k.shape[3]:
        raise UnsuitedError(f"batch and head size are the same for queries and keys, and here are {shapes}")
    if 0 in (*q.shape, *v.shape):
        raise UnsuitedError(f"there is nothing to compute: {shapes}")
    if q.shape[3] > MOST_SIZE or q.shape[3] % 8 or v.shape[3] % 8:
        sizes = f"{q.shape[3]} elements" if q.shape[3] == v.shape[3] else f"{q.shape[3]} and {v.shape[3]} elements"
        raise UnsuitedError(f"heads of {sizes}: this kernel is for multiples of 8 up to {MOST_SIZE}")
    if v.shape[3] > q.shape[3]:
        raise UnsuitedError(f"heads of {v.shape[3]} elements of values: there are no more than of keys, {q.shape[3]}")
    if q.shape[1] % k.shape[1]:
        raise UnsuitedError(f"{q.shape[1]} heads of queries are not a multiple of {k.shape[1]} heads of keys")
    if window < 0 or (window and not causal):
        raise UnsuitedError(f"a window of {window} keys: it has 1 or more, and goes with a causal mask")


def _chosen(
    size: int, type: str, causal: bool, window: bool, queries: int, values: int = 0, heads: int = BLOCKS
) -> Plan:
    """The plan that was fastest on an H200 for such a problem; more elements of values leave registers for fewer keys.

    That was measured for 64, 128 and 256 elements. Three warpgroups are for heads of few elements, unless two of them
    have more SMs compute, in as many rounds.
    """
    rounds = [ceil_div(heads * ceil_div(queries, groups * GROUP_ROWS), BLOCKS) * groups for groups in (2, 3)]
    is_short = causal and queries <= SHORT
    groups = 3 if size <= 64 and not window and not is_short and rounds[1] <= 1.15 * rounds[0] else 2
    widest = values or size
    keys = 128 if widest <= 128 and size <= 192 else 96 if size <= 192 else 64
    return Plan(size, type, causal, window, groups, keys=keys, values=0 if values == size else values)


def _candidates(*given: Any) -> list[Plan]:
    """The same with other numbers of warpgroups."""
    chosen = _chosen(*given)
    has_few = chosen.size <= 64 and not chosen.window
    return [replace(chosen, groups=groups) for groups in (2, 3)] if has_few else [chosen]


choose = Choice("attention", _chosen, _candidates)


def gather(keys: int, size: int, shared_by: int, causal: bool) -> int:
    """How many heads of queries are computed together, where so many share a head of so many keys.

    Without a mask one after the other: their keys are then read by all blocks at the same time, and from L2 but once.
    Under a mask as many as fit into L2, so that the longest tiles of several come first and the shortest last.
    """
    fitting = L2 // (4 * keys * size) if causal else 1
    return max(1, min(fitting, TOGETHER[size > 64] // shared_by)) * shared_by
