"""The words of tensor memory of a block at any time.

Stores, loads and copies of warps say what some words hold, a load also back to the MMA that wrote them. What MMAs leave
besides, such as partial sums, is computed again (`trace.tensor_products`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ptxlab.isa.units.instruction_descriptor import PAIR
from ptxlab.isa.units.tensor_memory import LANES
from ptxlab.lab.encoding import packed
from ptxlab.lab.registers import Registers
from ptxlab.trace.columns import Numbers
from ptxlab.trace.finder import Finder
from ptxlab.trace.lanes import Executed, matrices_of, registers_of, words_in
from ptxlab.trace.tensor_copies import copied
from ptxlab.trace.tensor_memory import COLUMNS, address_of, lanes_of, routed
from ptxlab.trace.tensor_products import Products, started, tile_of
from ptxlab.trace.warp_steps import WarpSteps

MOST = 4000  # uses that are inspected for one answer
REPLAYED = 256  # uses: from the last multiple of it but one on, MMAs are computed again
KEPT = 64  # states of tensor memory, of 320 KB each
Values = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Transfer:
    """What an instruction does to a rectangle of words; the values of an MMA are not recorded."""

    step: int
    loads: bool
    lanes: Numbers
    columns: Numbers
    values: Values | None

    @property
    def place(self) -> Any:
        """Its words in an array of all."""
        return np.ix_(self.lanes, self.columns)


class TensorWords:
    """What the tensor memory of blocks holds."""

    def __init__(self, steps: WarpSteps, registers: Registers, finder: Finder) -> None:
        self.steps = steps
        self.registers = registers
        self.finder = finder
        self._known: dict[tuple[int, int, int], Transfer | None] = {}
        self._products = Products(finder)
        self._states: dict[tuple[int, int, int], tuple[Values, Any]] = {}

    def after(self, block: int, step: int, uses: list[tuple[int, Executed, str]]) -> dict[str, Any]:
        """The words of a block after the step of a use: the columns that have any that is known, and which are.

        `uses` are all instructions that access tensor memory: the step, the instruction, and what it does.
        """
        values, known = np.zeros((LANES, COLUMNS), np.uint32), np.zeros((LANES, COLUMNS), np.bool_)
        unseen = np.ones(known.shape, np.bool_)  # what none of those inspected has accessed
        at = next((index for index, one in enumerate(uses) if one[0] > step), len(uses))
        computed, is_computed = self._computed(block, uses, at)
        is_open = np.zeros(known.shape, np.bool_)  # what an MMA has written last
        for use in reversed(uses[max(at - MOST, 0) : at]):
            self._take(block, use, unseen, values, known, is_open)
        is_open |= unseen
        for use in uses[at : at + MOST]:
            if not is_open.any():
                break
            one = self._transfer(block, *use)
            if one is None:
                continue
            fresh = is_open[one.place]
            if one.loads and one.values is not None:
                values[one.place] = np.where(fresh, one.values, values[one.place])
                known[one.place] |= fresh
            is_open[one.place] = False
        return _packed(np.where(known, values, computed), known | is_computed)

    def _computed(self, block: int, uses: list[tuple[int, Executed, str]], at: int) -> tuple[Values, Any]:
        """The words after the first uses, with the results of MMAs, and which of them are known.

        Starts early enough for an accumulator of many MMAs, and from what is known of the last answers.
        """
        start = max(at // REPLAYED - 1, 0) * REPLAYED
        first = max((index for of, since, index in self._states if (of, since) == (block, start) and index <= at),
                    default=start)  # fmt: skip
        values, known = self._states.get((block, start, first)) or (
            np.zeros((LANES, COLUMNS), np.uint32), np.zeros((LANES, COLUMNS), np.bool_)
        )  # fmt: skip
        values, known = values.copy(), known.copy()
        for use in uses[first:at]:
            one = self._transfer(block, *use)
            if one is None:
                continue
            is_done = one.values is None and use[2] == "multiply" and self._products.multiply(
                use[1], block, values, known)  # fmt: skip
            if not is_done:
                known[one.place] = one.values is not None
            if one.values is not None:
                values[one.place] = one.values
        self._states[block, start, at] = values, known
        while len(self._states) > KEPT:
            del self._states[next(iter(self._states))]
        return values, known

    def _take(self, block: int, use: Any, unseen: Any, values: Values, known: Any, is_open: Any) -> None:
        """What is known of words by a use before, unless a later one has said it."""
        one = self._transfer(block, *use)
        if one is None:
            return
        fresh = unseen[one.place]
        if not fresh.any():
            return
        unseen[one.place] = False
        if one.values is None:
            is_open[one.place] |= fresh
            return
        values[one.place] = np.where(fresh, one.values, values[one.place])
        known[one.place] |= fresh

    def _transfer(self, block: int, step: int, executed: Executed, kind: str) -> Transfer | None:
        key = block, step, executed.instruction
        if key not in self._known:
            make = {"load": self._moved, "store": self._moved, "multiply": self._multiplied, "copy": self._copied}
            self._known[key] = make[kind](block, step, executed) if kind in make else None
        return self._known[key]

    def _moved(self, block: int, step: int, executed: Executed) -> Transfer | None:
        """A load or a store of a warp: its registers, as words."""
        finder = self.finder
        address, match = address_of(finder, executed, "taddr"), finder.program.match(executed.instruction)
        warp, held = executed.thread, matrices_of(match)
        count = self.steps.trace.accesses.threads_in_block
        warp = warp // count * self.steps.warps_in_block + warp % count // 32
        if address is None or warp // self.steps.warps_in_block != block:
            return None
        loads = "d" in held
        layout = held["d" if loads else "a"].layout
        names = registers_of(finder, executed.instruction, "d" if loads else "a")
        when = max(step + 1, self.steps.around(warp, step + 1)[1]) if loads else step
        found = self.registers.named(warp, list(names.values()), when)
        values = np.zeros((layout.rows, layout.columns), np.uint32)
        for lane, register, row, column in words_in(layout):
            name = names.get(register)
            if name in found:
                values[row, column] = found[name][lane]
        lanes = ((routed(finder, executed, address) >> 16) + np.arange(layout.rows)) % LANES
        return Transfer(step, loads, lanes, _columns(address, layout.columns), values)

    def _multiplied(self, block: int, step: int, executed: Executed) -> Transfer | None:
        """An MMA: the words of its results."""
        mma = started(self.finder, executed)
        own = executed.thread // self.steps.trace.accesses.threads_in_block
        if mma is None or (own != block and mma.form != PAIR):
            return None
        tile = tile_of(mma)
        return Transfer(step, False, np.array(lanes_of(tile)) % LANES, _columns(mma.d, tile.width), None)

    def _copied(self, block: int, step: int, executed: Executed) -> Transfer | None:
        """A copy of shared memory, as scale factors are: its words."""
        found = copied(self.finder, block, executed)
        return None if found is None else Transfer(step, False, *found)


def _columns(address: int, count: int) -> Numbers:
    found: Numbers = ((address & 0xFFFF) + np.arange(count)) % COLUMNS
    return found


def _packed(values: Values, known: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """The columns from the first to the last that has a known word."""
    some = np.flatnonzero(known.any(axis=0))
    first, past = (int(some[0]), int(some[-1]) + 1) if len(some) else (0, 0)
    return {
        "column": first, "columns": past - first, "data": packed(values[:, first:past]),
        "known": packed(np.packbits(known[:, first:past], bitorder="little")),
    }  # fmt: skip
