"""y = A x for each of a batch, in Python: a block has a row of A, and reads each of its bytes once.

What functions of products need besides is written if a `Form` asks for it: a bias, an activation, a residual, the
product with a second matrix that gates the first one, and a start before the kernel before it has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ptxlab.author import Kernel, Pointer, Scalar, b32, f32, kernel, pointer, ptx, u32
from ptxlab.kernels.parts.elements import element_pointer, load, load_bits, store, widened
from ptxlab.kernels.parts.finishing import Activation, activation_of
from ptxlab.kernels.parts.reductions import add, over_block

THREADS, RESIDENT, LANES = 128, 8, 32  # of a block; blocks on an SM; threads of a warp
NEVER = 0xFFFFFFFF


@dataclass(frozen=True)
class Form:
    """What is computed, and when it may start."""

    type: str
    bias: bool = False
    activation: str | Activation | None = None
    residual: bool = False
    gated: bool = False
    """Whether the activation is multiplied with the product of a second matrix."""
    grouped: bool = False
    """Whether vectors are in groups, each of which has a matrix of its own."""
    overlaps: bool = False
    """Whether it starts before the kernel before it has ended."""

    @property
    def result(self) -> str:
        """The type of y."""
        return "bf16" if self.type == "e4m3" else self.type


@cache
def build(form: Form, vector: int, ahead: int) -> Kernel:
    """The kernel; what its form has not is 0.

    One instruction loads `vector` elements; a thread asks for so many `ahead` of each row before the first is used.
    """

    @kernel(target="sm_90" if form.overlaps else "sm_89", maxntid=THREADS, minnctapersm=RESIDENT)
    def gemv(
        a: pointer[b32],
        x: pointer[b32],
        y: pointer[b32],
        m: u32,
        k: u32,
        gate: pointer[b32],
        bias: pointer[b32],
        residual: pointer[b32],
        ends: pointer[u32],
        groups: u32,
    ) -> None:
        type, thread, batch = form.type, ptx.tid.x, ptx.ctaid.y
        # `.nc` is for what stays as it is as long as the kernel runs; one that starts early runs beside its writer
        load_x = ptx.ld.global_ if form.overlaps else ptx.ld.global_.nc
        load_a = load_x["L1::no_allocate"]  # read once: leave the cache to x
        number = ptx.mad.lo.u32(batch, m, ptx.ctaid.x)
        if form.overlaps:
            overlap()
        group = group_of(batch, ends, groups) if form.grouped else batch
        place = ptx.mad.lo.u32(ptx.min.u32(group, groups - 1), m, ptx.ctaid.x) if form.grouped else number
        rows = [row_of(matrix, place, k, form) for matrix in ((a, gate) if form.gated else (a,))]
        source = row_of(x, batch, k, form)
        added = what_is_added(form, load_x, (bias, ptx.ctaid.x), (residual, number))
        totals = [f32(0.0) for _ in rows]
        step = THREADS * vector
        for column in ptx.range(thread * vector, k, step * ahead):
            inside = [None if number == 0 else column + number * step < k for number in range(ahead)]
            factors = read(load_x, source, column, type, vector, inside)
            loaded = [read(load_a, row, column, type, vector, inside) for row in rows]
            for total, values in zip(totals, loaded, strict=True):
                for value, factor in zip(values, factors, strict=True):
                    for one, other in zip(widened(value, type), widened(factor, type), strict=True):
                        ptx.fma.rn.f32(one, other, total, out=total)
        sums = [over_block(total, add, THREADS) for total in totals]
        with ptx.when((thread == 0) & (group < groups) if form.grouped else thread == 0):
            store(element_pointer(y, form.result, 1, number), form.result, [finished(form, sums, added)])

    return gemv


def overlap() -> None:
    """Let the next kernel start, and wait until the one before has ended."""
    ptx.griddepcontrol.launch_dependents()
    ptx.griddepcontrol.wait()  # from here on, what earlier kernels wrote is read


def group_of(number: u32, ends: Pointer, groups: u32) -> u32:
    """The group that a vector is in, from the vector after the last one of each; that many if it is in none."""
    found = u32(0)
    for first in ptx.range(u32(0), groups, LANES):
        end = u32(NEVER)
        ptx.ld.global_.u32(ends + (first + ptx.laneid), out=end, when=first + ptx.laneid < groups)
        found += ptx.popc.b32(ptx.vote.sync.ballot.b32(end <= number, NEVER), out=u32())
    return found


def what_is_added(form: Form, load_one: object, bias: tuple[Pointer, u32], residual: tuple[Pointer, Any]) -> list[f32]:
    """The elements of a bias and of a residual at these places, if the form has them."""
    given = [place for place, is_given in ((bias, form.bias), (residual, form.residual)) if is_given]
    return [load(load_one, element_pointer(array, form.result, 1, at), form.result, 1)[0] for array, at in given]


def finished(form: Form, sums: Sequence[f32], added: Sequence[f32]) -> f32:
    """The result of a product, or of two of which the first one is the gate."""
    found, *others = sums
    if form.bias:
        found = found + added[0]
    if form.activation is not None:
        found = activation_of(form.activation)(found)
    for other in others:
        found = found * other
    return found + added[-1] if form.residual else found


def row_of(matrix: Pointer, number: u32, k: u32, form: Form) -> Any:
    """Where a row starts."""
    return element_pointer(matrix, form.type, 1, ptx.mul.wide.u32(number, k))


def read(load: object, row: Pointer, column: u32, type: str, vector: int, inside: list[object]) -> list[list[Scalar]]:
    """Vectors of a row from a column on, as far apart as the block has threads."""
    start = (row + column).vector(vector)
    return [
        load_bits(load, start + number * THREADS, type, vector, inside=within) for number, within in enumerate(inside)
    ]
