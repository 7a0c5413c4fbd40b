"""o = softmax(q·kᵀ)·v by tiles of 16 × 16: WMMA through shared memory against `mma` in registers."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError, ceil_div
from ptxlab.measure import Draw, Entry, Work
from ptxlab.syntax import load

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

BLOCK = 256
TILE = 16  # queries that a warp has, keys that it takes at a time, and halves of each
QUERIES = TILE * BLOCK // 32  # that a block has
_HERE = Path(__file__).parent


@cache
def kernel(way: str) -> ir.Function:
    """The kernel of `way`.ptx."""
    return load(_HERE / f"{way}.ptx")["attention"]


def attend(q: Array, k: Array, v: Array, o: Array, way: str = "registers") -> Launch:
    """A warp for each 16 queries, in one of three ways: registers, wmma_rows, wmma_elements."""
    queries, keys = len(q), len(k)
    if way != "registers" and min(queries, keys) < TILE:
        raise UnsuitedError(f"WMMA loads whole tiles: at least {TILE} queries and {TILE} keys")
    return Launch(kernel(way), ceil_div(queries, QUERIES), BLOCK, [q, k, v, o, queries, keys])


def torch_baseline(torch: ModuleType, q: Array, k: Array, v: Array, o: Any) -> Callable[[], object]:
    """What torch does, and a copy to where the answer belongs."""
    heads = [matrix[None, None] for matrix in (q, k, v)]
    return lambda: o.copy_(torch.nn.functional.scaled_dot_product_attention(*heads, scale=1.0)[0, 0])


def arrays(draw: Draw, queries: int, keys: int) -> Arrays:
    """Queries, keys and values of one head, and space for the answer."""
    q, k, v = (draw.normal((rows, TILE), "f16") for rows in (queries, keys, keys))
    return {"q": q, "k": k, "v": v, "o": draw.empty((queries, TILE), "f16")}


def reference(xp: ModuleType, q: Array, k: Array, v: Array, o: Array) -> Arrays:
    """Weights that sum to one, times the values."""
    weights = xp.exp(q @ k.T)
    return {"o": weights @ v / weights.sum(1)[:, None]}


def work(queries: int, keys: int) -> Work:
    """Two products; keys and values are read once."""
    return Work(flops=4 * queries * keys * TILE, bytes=4 * TILE * (queries + keys), rate="f16")


entry = Entry(
    title="o = softmax(q·kᵀ)·v for rows of 16 halves",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={
        "WMMA, an element a lane": partial(attend, way="wmma_elements"),
        "WMMA, half a row a lane": partial(attend, way="wmma_rows"),
        "mma in registers": attend,
    },
    libraries={"torch": torch_baseline},
    baseline="WMMA, an element a lane",
    sizes=[{"queries": 1 << 20, "keys": 16}, {"queries": 1 << 16, "keys": 256}, {"queries": 1 << 20, "keys": 256}],
    small=[{"queries": 1, "keys": 1}, {"queries": 16, "keys": 16}, {"queries": 275, "keys": 53}],
    tolerance=2e-3,
)
