"""How threads share work on shared memory: who copies which part of a box, and how they combine a reduction."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from ptxlab.schedule.linear import Linear
from ptxlab.schedule.state import State
from ptxlab.schedule.statements import Reduce, Statement
from ptxlab.schedule.tree import BYTES, Buffer, Plan

SECTOR = 32  # bytes that memory moves at least
LINE = 128  # bytes that a warp asks for at once, at best
WARP = 32


@dataclass(frozen=True)
class Walk:
    """A box as numbered chunks: extents from the slowest, each along a dimension in steps of so many elements."""

    extents: tuple[int, ...]
    steps: tuple[tuple[int, int], ...]
    vector: int
    """Elements of a chunk, along the last dimension."""
    stored: int
    """How many of them are stored at once in shared memory."""

    @property
    def count(self) -> int:
        """How many chunks there are."""
        return prod(self.extents)


def digits(state: State) -> dict[str, NDArray[np.int64]]:
    """The iteration that each thread has of each part that threads run."""
    found, rest = {}, np.arange(state.thread_count)
    for name in reversed(state.threads):
        found[name], rest = rest % (state.count(state.part(name)) or 1), rest // (state.count(state.part(name)) or 1)
    return found


def places(state: State, index: Linear) -> NDArray[np.int64]:
    """What an index is for each thread, and each iteration of the loops that it runs: a row a thread."""
    own = digits(state)
    own |= {name: own[other] for name, other in state.aliases.items()}
    found = np.full((state.thread_count, 1), index.constant)
    for name, coefficient in index.terms:
        if name in own:
            found = found + coefficient * own[name][:, None]
        elif (count := state.count(state.part(name))) is not None:
            found = (found[:, :, None] + coefficient * np.arange(count)).reshape(state.thread_count, -1)
    return found


def chunks(plan: Plan, buffer: Buffer) -> Walk:
    """The chunks of a box; thread t copies number t, and each that is a block of threads further on."""
    vector = vector_of(plan, buffer)
    shape = buffer.shape
    steps: list[tuple[int, int]] = [(dimension, 1) for dimension in range(len(shape) - 1)]
    extents = list(shape[:-1])
    along = shape[-1] // vector
    # Where a vector is stored in parts, lanes take a part of a row each, so that what they store is in all banks: a
    # line where rows of shared memory are of an odd number of elements, else a sector.
    apart = gcd(*(stride for stride in buffer.strides if stride > 1))
    stored = gcd(vector, apart) if buffer.strides[-1] == 1 else 1
    part = (LINE if apart % 2 else SECTOR) // (BYTES[buffer.element] * vector)
    if stored < vector and 1 < part < along and along % part == 0:
        extents, steps = (
            [along // part, *extents, part],
            [(len(shape) - 1, part * vector), *steps, (len(shape) - 1, vector)],
        )
    else:
        extents, steps = [*extents, along], [*steps, (len(shape) - 1, vector)]
    return Walk(tuple(extents), tuple(steps), vector, stored)


def vector_of(plan: Plan, buffer: Buffer) -> int:
    """How many elements of a box are copied at once: what was asked for, or half of it, where all is aligned."""
    if buffer.slots > 1 and buffer.stage.transposed:
        return 1  # `cp.async` writes what it reads as it is
    parts = dict.fromkeys(buffer.origin[-1].names, 1) | dict(plan.multiples)
    pitch = plan.extents(buffer.stage.array)[-1]
    rows = list(buffer.strides[:-1]) if buffer.slots > 1 else []
    for width in plan.state.widths(buffer.stage.array):
        if (
            buffer.shape[-1] % width == 0
            and buffer.origin[-1].is_multiple(width, parts)
            and pitch.is_multiple(width, plan.multiples)
            and all(stride % width == 0 for stride in rows)
        ):
            return width
    return 1


def runs_ahead(plan: Plan, buffer: Buffer) -> bool:
    """Whether threads copy a box by `cp.async`, which takes 4 bytes at least; others are loaded and stored."""
    return buffer.slots > 1 and vector_of(plan, buffer) * BYTES[buffer.element] >= 4


@dataclass(frozen=True)
class Combination:
    """How threads combine a reduction: by shuffles over these distances, then by shared memory over the rest."""

    shuffles: tuple[int, ...]
    scratch: tuple[tuple[int, int], ...]
    """Threads apart, and how many, of each loop that shared memory combines."""
    within: int
    """Threads that are combined are in one group of so many."""


def combination(state: State, statement: Statement) -> Combination:
    """How a reduction is combined among the threads of a block."""
    assert isinstance(statement, Reduce)
    total = state.thread_count
    whole = total % WARP == 0 or (total < WARP and total & (total - 1) == 0)
    apart, shuffles, scratch, within = 1, [], [], 1
    for name in reversed(state.threads):
        count = state.count(state.part(name)) or 1
        if state.part(name).axis in statement.over:
            low = 1
            while whole and count % (low * 2) == 0 and apart * low * 2 <= WARP and apart & (apart - 1) == 0:
                shuffles.append(apart * low)
                low *= 2
            if count > low:
                scratch.append((apart * low, count // low))
                within = apart * count
        apart *= count
    return Combination(tuple(shuffles), tuple(scratch), within)
