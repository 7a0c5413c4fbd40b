"""Matrices times vectors, in bf16 or fp8."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ptxlab.device.array_types import type_of
from ptxlab.kernels.gemv import few
from ptxlab.kernels.gemv.kernel import THREADS, Form, build
from ptxlab.kernels.parts.elements import SIZES, vector_of
from ptxlab.launch.launches import Arrays, Launch, ceil_div
from ptxlab.measure import Draw, Entry, Work

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

AHEAD = 4  # vectors that a thread asks for at a time, where its row has so many
GATE, ADDED, ENDS = 5, (6, 7), 8  # parameters that a form may have: the gate; a bias and a residual; ends of groups
EXTRAS = 5  # parameters from the gate on


def rows_by_blocks(a: Array, x: Array, y: Array) -> Launch:
    """Each block has a row of A."""
    batch, m, k = a.shape
    return by_rows(Form(type_of(a)), (a, x, y), (batch, m, k), vector_of(k, a, x))


def by_rows(form: Form, arrays: tuple[Any, ...], extents: tuple[int, int, int], vector: int, *more: Any) -> Launch:
    """The launch for a batch of vectors, so many elements at a time.

    `more` is a gate, a bias, a residual, and ends of groups and their number.
    """
    batch, m, k = extents
    ahead = min(AHEAD // 2 if form.gated else AHEAD, ceil_div(k, THREADS * vector))
    given = [*arrays, m, k, *more, *[0] * (EXTRAS - len(more))]
    return Launch(build(form, vector, ahead), (m, batch), THREADS, given, overlap=form.overlaps)


def gated_of_few(form: Form, arrays: Sequence[Any], extents: tuple[int, int, int], pitches: Sequence[int]) -> Launch:
    """The launch for two matrices, at most 8 rows of X, and Y, each row so many elements after the one before."""
    count, n, k = extents
    kernel = few.build(form, k % (few.WARPS * few.CHUNK) == 0)
    given = [*arrays, n, k, count, *pitches]
    return Launch(kernel, ceil_div(n, few.ROWS), few.WARPS * few.LANES, given, overlap=True)


def torch_baseline(torch: ModuleType, a: Any, x: Array, y: Array) -> Callable[[], object]:
    """A matrix product with a matrix of one column; fp8 is multiplied by the one function that torch has for it."""
    if a.dtype == torch.bfloat16:
        return lambda: torch.bmm(a, x[:, :, None], out=y[:, :, None])
    one = torch.ones((), device=a.device)

    def run() -> None:
        for matrix, vector, product in zip(a, x, y, strict=True):
            torch._scaled_mm(vector[None], matrix.t(), one, one, out_dtype=torch.bfloat16, out=product[None])

    return run


def arrays(draw: Draw, batch: int, m: int, k: int, type: str) -> Arrays:
    """Matrices, vectors, and space for their products."""
    return {
        "a": draw.normal((batch, m, k), type), "x": draw.normal((batch, k), type), "y": draw.empty((batch, m), "bf16"),
    }  # fmt: skip


def reference(xp: ModuleType, a: Array, x: Array, y: Array) -> Arrays:
    """The product."""
    return {"y": (a @ x[:, :, None])[:, :, 0]}


def work(batch: int, m: int, k: int, type: str) -> Work:
    """Each element of A is read once, and multiplied and added once."""
    return Work(2 * batch * m * k, batch * ((m + 1) * k * SIZES[type] + 2 * m), "f32 arithmetic")


entry = Entry(
    title="y = A x for a batch of matrices, bf16 or fp8 (e4m3)",
    arrays=arrays,
    reference=reference,
    work=work,
    variants={"rows by blocks": rows_by_blocks},
    libraries={"torch": torch_baseline},
    sizes=[
        {"batch": 1, "m": 28672, "k": 8192, "type": "bf16"},
        {"batch": 1, "m": 57344, "k": 7168, "type": "e4m3"},
        {"batch": 1, "m": 28672, "k": 8192, "type": "e4m3"},
        {"batch": 16, "m": 4096, "k": 4096, "type": "e4m3"},
        {"batch": 16, "m": 4096, "k": 4096, "type": "bf16"},
        {"batch": 1, "m": 57344, "k": 7168, "type": "bf16"},
    ],
    small=[
        {"batch": 1, "m": 3, "k": 40, "type": "bf16"},
        {"batch": 2, "m": 9, "k": 1040, "type": "e4m3"},
        {"batch": 1, "m": 2, "k": 77, "type": "e4m3"},
        {"batch": 3, "m": 1, "k": 35, "type": "bf16"},
    ],
    tolerance=4e-3,
)
