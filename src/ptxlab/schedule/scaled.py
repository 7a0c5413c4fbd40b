"""Arrays of numbers with scale factors: `nvfp4`, `mxf4` and `mxf8`, which `tcgen05` multiplies.

An argument is a pair: the numbers, two in a byte where they have four bits, and their factors, as
`ptxlab.measure.block_scaled` arranges them. TMA copies both; a block of 512 bytes has four factors of each of 128 rows.
Before a multiplication, the thread that starts it has them copied to tensor memory, to columns after the accumulators.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ptxlab.author import b32, ptx
from ptxlab.launch.launches import UnsuitedError
from ptxlab.measure.block_scaled import BLOCK, FORMATS, Format, check, numbers
from ptxlab.schedule.address import Value
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.state import Tensor, illegal_here, refuse_here
from ptxlab.schedule.statements import Algorithm, Array
from ptxlab.schedule.tree import Buffer
from ptxlab.schedule.writing import Writing

BLOCK_BYTES = 512  # of factors of 128 rows, four of each
CELLS = 4  # columns of tensor memory that they take


def factors_of(array: str) -> str:
    """The name of the parameter for the factors of an array."""
    return f"{array}_factors"


def packed(element: str) -> int:
    """Numbers in what is one element of memory."""
    return 8 // FORMATS[element].bits if element in FORMATS else 1


class Scaled:
    """An argument: numbers and their factors."""

    def __init__(self, array: Array, given: Any) -> None:
        pair = tuple(given) if isinstance(given, (tuple, list, Scaled)) else ()
        if len(pair) != 2:
            said = f"`{array.name}` is {type(given).__name__}, expected a pair: numbers and scale factors"
            refuse_here("bad-argument", said, "`ptxlab.measure.block_scaled` has the layout")
        self.stored, self.factors = pair
        self.format: Format = FORMATS[array.element]
        try:
            self.shape = check(f"`{array.name}`", self.format, self.stored, self.factors)
        except (UnsuitedError, TypeError, AttributeError, IndexError) as problem:
            refuse_here("bad-argument", f"`{array.name}`: {problem}")
        if not self.shape[0]:
            refuse_here("bad-argument", f"`{array.name}` has no elements, which TMA does not copy")

    def __iter__(self) -> Any:
        return iter((self.stored, self.factors))

    @property
    def numbers(self) -> Any:
        """In float64."""
        return numbers(np, self.format, *(np.asarray(one).astype(np.float64) for one in self))

    @property
    def mapped(self) -> list[Any]:
        """The arrays of its tensor maps: blocks of factors have rows of 16 bytes."""
        return [self.stored, self.factors.reshape(*self.factors.shape[:3], 16)]


def refuse_scaled(algorithm: Algorithm, mapped: Collection[str] = (), why: str = "") -> None:
    """Refuse a kernel in which threads would read an array with factors."""
    for name, array in algorithm.arrays.items():
        if array.element in FORMATS and name not in mapped:
            said = f"`{name}` is of {array.element}, which `tcgen05` multiplies, after copies by TMA{why}"
            help = '`tensorize("tcgen05")`, `stage(..., swizzle="128B")`, `pipeline(by="tma")`, for `sm_100a`'
            illegal_here(said, help)


def packed_box(box: Buffer) -> Buffer:
    """A box in bytes, along rows."""
    every = packed(box.element)
    *outer, last = box.origin
    return replace(box, origin=(*outer, last // every), shape=(*box.shape[:-1], box.shape[-1] // every))


def factors_box(box: Buffer) -> Buffer:
    """The factors of a box whose rows are not packed yet."""
    every = 4 * FORMATS[box.element].group
    row, column = box.origin
    stage = replace(box.stage, array=factors_of(box.stage.array), swizzle="")
    shape = box.shape[0] // BLOCK, box.shape[1] // every, 32, 16
    return Buffer(stage, box.element, (row // BLOCK, column // every, Linear(), Linear()), shape)


def copy_factors(w: Writing, tensor: Tensor, number: int) -> list[int]:
    """Have the factors for some multiplications copied to tensor memory: the first columns for both operands."""
    first, found = w.state.tensor_columns * w.state.accumulators, []
    for array, columns in zip(tensor.arrays, w.state.factor_columns, strict=True):
        box, place = w.held[factors_of(array)]
        blocks, steps = box.shape[:2]
        at = ptx.pointer_to(b32, "shared", w.slot(box, place))
        source = ptx.descriptor(ptx.tile(b32, 32, 4, copies=blocks * steps, at=at))
        found.append(first + CELLS * number * blocks)
        for each in range(blocks):
            target = w.tensor_memory.at(found[-1] + CELLS * each)
            copy = ptx.tcgen05.cp[f"cta_group::{w.state.pair}"]["32x128b"].warpx4
            copy(target, source + (each * steps + number) * BLOCK_BYTES // 16)
        first += columns
    return found


def scales_at(w: Writing, columns: Sequence[int], *places: int) -> list[Value]:
    """The addresses of factors from some rows of both operands on."""
    return [w.tensor_memory.at(c + CELLS * (n // BLOCK)) for c, n in zip(columns, places, strict=True)]
