"""Copies from shared memory to tensor memory, as `tcgen05.cp` makes them: the words, and what they hold then."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxlab.isa.chapters.tcgen05 import SPREAD
from ptxlab.isa.units.descriptor import tensor_chunk_offset
from ptxlab.isa.units.tensor_memory import BAND, LANES
from ptxlab.trace.accesses import SHARED, unwritten
from ptxlab.trace.columns import Numbers
from ptxlab.trace.lanes import Executed
from ptxlab.trace.tensor_memory import COLUMNS, FEW_ROWS, address_of

if TYPE_CHECKING:
    from ptxlab.trace.finder import Finder


class Copied(NamedTuple):
    """A rectangle of words; their values are None for a copy that converts elements."""

    lanes: Numbers
    columns: Numbers
    values: npt.NDArray[np.uint32] | None


def copied(finder: Finder, block: int, step: Executed) -> Copied | None:
    """What a copy writes to tensor memory of a block; None if its operands are not known."""
    match, address = finder.program.match(step.instruction), address_of(finder, step, "taddr")
    descriptor = finder.operand(step.thread, step.instruction, "s_desc", step.key)
    if match is None or address is None or descriptor is None:
        return None
    m = match.candidate.modifiers
    rows, bits = (int(number) for number in m.shape.removesuffix("b").split("x"))
    spread, further, copies = SPREAD[m.multicast]
    group = 1 if rows == FEW_ROWS else BAND
    row = np.arange(rows)
    lanes = [(address >> 16) + row % group + row // group * spread + index * further for index in range(copies)]
    columns = ((address & 0xFFFF) + np.arange(bits // 32)) % COLUMNS
    if getattr(m, "from"):
        return Copied(np.concatenate(lanes) % LANES, columns, None)
    shared = unwritten(0, finder.accesses.shared_size)
    finder.accesses.image(SHARED, block, 0, shared, step.key)
    starts = [
        [int(tensor_chunk_offset(descriptor, r, c // 4, 0)) + c % 4 * 4 for c in range(bits // 32)] for r in range(rows)
    ]
    at = np.minimum(np.array(starts)[:, :, None] + np.arange(4), len(shared) - 1)
    values = np.ascontiguousarray(shared[at]).view("<u4")[:, :, 0]
    return Copied(np.concatenate(lanes) % LANES, columns, np.concatenate([values] * copies))
