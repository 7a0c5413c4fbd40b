"""The sum of all elements of an array."""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.device.array_types import type_of
from ptxlab.kernels.parts.elements import SIZES, vector_of
from ptxlab.kernels.parts.torch_baselines import compiled, eager
from ptxlab.kernels.reduction.kernel import THREADS, sum_shares
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

AHEAD = 8  # vectors that a thread asks for at a time
SHARE = 1 << 19  # bytes that a block sums
BLOCKS = 264  # resident at the same time: 2 on each of 132 SMs
LONG_SHARE = 1 << 20  # bytes that it sums at most if all blocks then run at the same time
SUMS = 4096  # sums of blocks


def last_block(x: Array, sums: Array, ticket: Array, total: Array) -> Launch:
    """One launch; the block that finishes last sums what the others left."""
    n, type, vector = len(x), type_of(x), vector_of(0, x)
    share = ceil_div(n, BLOCKS)
    if share * SIZES[type] > LONG_SHARE:
        share = SHARE // SIZES[type]
    step = THREADS * AHEAD * vector
    share = ceil_div(max(share, ceil_div(n, len(sums)), 1), step) * step
    kernel = sum_shares.specialize(TYPE=type, VECTOR=vector, AHEAD=AHEAD)
    return Launch(kernel, ceil_div(n, share), THREADS, [x, sums, ticket, total, n, share])


def expression(torch: ModuleType, x: Array, sums: Array, ticket: Array, total: Array) -> Any:
    """The same in torch."""
    return torch.sum(x, dim=0, keepdim=True, dtype=torch.float32)


def arrays(draw: Draw, n: int, type: str) -> Arrays:
    """Numbers, space for the sum of each block, a ticket that starts at zero, and space for the sum of all."""
    return {
        "x": draw.uniform(n, type), "sums": draw.empty(SUMS, "f32"), "ticket": draw.integers(1, "u32", 0, 1),
        "total": draw.empty(1, "f32"),
    }  # fmt: skip


def reference(xp: ModuleType, x: Array, sums: Array, ticket: Array, total: Array) -> Arrays:
    """The sum."""
    return {"total": x.sum().reshape(1)}


def work(n: int, type: str) -> Work:
    """Each element is read and added once."""
    return Work(n, n * SIZES[type], "f32 arithmetic")


entry = Entry(
    title="the sum of all elements",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"last block": last_block},
    libraries={"torch.compile": compiled(expression, "total"), "torch": eager(expression, "total")},
    sizes=[{"n": 1 << 26, "type": "f32"}, {"n": 1 << 29, "type": "bf16"}, {"n": 1 << 28, "type": "f32"}],
    small=[
        {"n": 1, "type": "f32"},
        {"n": 5003, "type": "f32"},
        {"n": 20001, "type": "bf16"},
        {"n": 70001, "type": "f32"},
    ],
    tolerance=1e-5,
)
