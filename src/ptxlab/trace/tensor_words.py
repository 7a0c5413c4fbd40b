"""The words of tensor memory of a block at any time.

Stores, loads and copies of warps say what some words hold, a load also back to the MMA that wrote them. What MMAs leave
besides, such as partial sums, is computed again (`tensor_products`): it is not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ptxlab.isa import Match
from ptxlab.isa.units.instruction_descriptor import PAIR
from ptxlab.isa.units.tensor_memory import LANES, TWO_BLOCKS
from ptxlab.trace.columns import Numbers
from ptxlab.trace.finder import Finder
from ptxlab.trace.lanes import Executed, matrices_of, registers_of, words_in
from ptxlab.trace.tensor_copies import copied
from ptxlab.trace.tensor_memory import COLUMNS, address_of, lanes_of, routed
from ptxlab.trace.tensor_products import Products, started, tile_of
from ptxlab.trace.warp_registers import WarpRegisters
from ptxlab.trace.warp_steps import WarpSteps

KINDS = ("allocate", "free", "multiply", "load", "store", "copy")
MOST_USES = 20_000  # of a block
MOST = 4000  # uses that are inspected for one answer
REPLAYED = 256  # uses: from the last multiple of it but one on, MMAs are computed again
KEPT = 64  # states of tensor memory, of 320 KB each
Values = npt.NDArray[np.uint32]


class TensorUse(NamedTuple):
    """An instruction that uses tensor memory: the warp step, the first lane that executes it, and what it does."""

    step: int
    executed: Executed
    kind: str
    """One of `KINDS`."""


@dataclass(frozen=True)
class WordTransfer:
    """What an instruction does to a rectangle of words; the values of an MMA are not recorded."""

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

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self.finder = Finder(steps.trace)
        self.uses = lru_cache(maxsize=16)(self._find_uses)
        self._registers = WarpRegisters(steps)
        self._products = Products(self.finder)
        self._known: dict[tuple[int, int, int], WordTransfer | None] = {}
        self._states: dict[tuple[int, int, int], tuple[Values, Any]] = {}

    def after(self, block: int, step: int) -> Any:
        """The words after a warp step, by lane and column: a masked array, without those that are not known."""
        return self._words(block, sum(use.step <= step for use in self.uses(block)))

    def before(self, block: int, key: int) -> Any:
        """The same before `key`; see `Columns.keys`."""
        return self._words(block, sum(use.executed.key < key for use in self.uses(block)))

    # The uses.

    def _find_uses(self, block: int) -> list[TensorUse]:
        """What uses the tensor memory of a block, in order."""
        found: list[TensorUse] = []
        program = self.steps.trace.program
        near = self.steps.warps_in_block
        own = range((block & ~1) * near, (block | 1) * near + near)  # an MMA of a pair writes both
        for number, table in enumerate(self.steps.tables):
            for index, instruction in enumerate(table.tolist()):
                match = program.match(instruction)
                kind = None if match is None else kind_of(match)
                if kind is None:
                    continue
                is_pair = TWO_BLOCKS in program.instructions[instruction][1].opcode.modifiers
                for group in np.flatnonzero(self.steps.segment == number).tolist():
                    warp = int(self.steps.warp[group])
                    is_own = warp // near == block or (is_pair and kind in ("multiply", "copy"))
                    if warp in own and is_own and len(found) < MOST_USES:
                        found += self._use(group, index, instruction, kind)
        return sorted(found, key=lambda use: use.step)

    def _use(self, group: int, index: int, instruction: int, kind: str) -> Iterator[TensorUse]:
        columns = self.steps.trace.columns
        _, guard = columns.segments[int(self.steps.segment[group])].steps[index]
        entries = columns.held(self.steps.entries(group), guard)
        if len(entries):
            entry = int(entries[0])
            key = 2 * (int(columns.first_step[entry]) + index) + 1
            executed = Executed(int(columns.thread[entry]), entry, instruction, key)
            yield TensorUse(int(self.steps.first[group]) + index, executed, kind)

    # The words.

    def _words(self, block: int, count: int) -> Any:
        """The words after the first uses."""
        uses = self.uses(block)
        values, known = np.zeros((LANES, COLUMNS), np.uint32), np.zeros((LANES, COLUMNS), np.bool_)
        unseen = np.ones(known.shape, np.bool_)  # what none of those inspected has accessed
        is_open = np.zeros(known.shape, np.bool_)  # what an MMA has written last
        for one in self._transfers(block, uses[max(count - MOST, 0) : count][::-1]):
            fresh = unseen[one.place]
            unseen[one.place] = False
            if one.values is None:
                is_open[one.place] |= fresh
            else:
                values[one.place] = np.where(fresh, one.values, values[one.place])
                known[one.place] |= fresh
        is_open |= unseen
        for one in self._transfers(block, uses[count : count + MOST]):
            if not is_open.any():
                break
            fresh = is_open[one.place]
            if one.loads and one.values is not None:
                values[one.place] = np.where(fresh, one.values, values[one.place])
                known[one.place] |= fresh
            is_open[one.place] = False
        computed, is_computed = self._computed(block, count)
        return np.ma.array(np.where(known, values, computed), mask=~(known | is_computed))

    def _computed(self, block: int, count: int) -> tuple[Values, Any]:
        """The words after the first uses, with the results of MMAs, and which of them are known.

        Starts early enough for an accumulator of many MMAs, and from what is known of the last answers.
        """
        start = max(count // REPLAYED - 1, 0) * REPLAYED
        first = max((index for of, since, index in self._states if (of, since) == (block, start) and index <= count),
                    default=start)  # fmt: skip
        values, known = self._states.get((block, start, first)) or (
            np.zeros((LANES, COLUMNS), np.uint32), np.zeros((LANES, COLUMNS), np.bool_)
        )  # fmt: skip
        values, known = values.copy(), known.copy()
        for use in self.uses(block)[first:count]:
            one = self._transfer(block, use)
            if one is None:
                continue
            is_mma = one.values is None and use.kind == "multiply"
            if not (is_mma and self._products.multiply(use.executed, block, values, known)):
                known[one.place] = one.values is not None
            if one.values is not None:
                values[one.place] = one.values
        self._states[block, start, count] = values, known
        while len(self._states) > KEPT:
            del self._states[next(iter(self._states))]
        return values, known

    def _transfers(self, block: int, uses: list[TensorUse]) -> Iterator[WordTransfer]:
        for use in uses:
            found = self._transfer(block, use)
            if found is not None:
                yield found

    def _transfer(self, block: int, use: TensorUse) -> WordTransfer | None:
        key = block, use.step, use.executed.instruction
        if key not in self._known:
            make = {"load": self._moved, "store": self._moved, "multiply": self._multiplied, "copy": self._copied}
            self._known[key] = make[use.kind](block, use) if use.kind in make else None
        return self._known[key]

    def _moved(self, block: int, use: TensorUse) -> WordTransfer | None:
        """A load or a store of a warp: its registers, as words."""
        finder, executed = self.finder, use.executed
        address, held = address_of(finder, executed, "taddr"), matrices_of(finder.program.match(executed.instruction))
        warp, loads = self.steps.warp_of(executed.thread), "d" in held
        if address is None or warp // self.steps.warps_in_block != block:
            return None
        layout = held["d" if loads else "a"].layout
        names = registers_of(finder, executed.instruction, "d" if loads else "a")
        when = max(use.step + 1, self.steps.around(warp, use.step + 1)[1]) if loads else use.step
        found = self._registers.named(warp, list(names.values()), when)
        values = np.zeros((layout.rows, layout.columns), np.uint32)
        for lane, register, row, column in words_in(layout):
            name = names.get(register)
            if name in found:
                values[row, column] = found[name][lane]
        lanes = ((routed(finder, executed, address) >> 16) + np.arange(layout.rows)) % LANES
        return WordTransfer(loads, lanes, _columns(address, layout.columns), values)

    def _multiplied(self, block: int, use: TensorUse) -> WordTransfer | None:
        """An MMA: the words of its results."""
        mma = started(self.finder, use.executed)
        own = use.executed.thread // self.steps.trace.accesses.threads_in_block
        if mma is None or (own != block and mma.form != PAIR):
            return None
        tile = tile_of(mma)
        return WordTransfer(False, np.array(lanes_of(tile)) % LANES, _columns(mma.d, tile.width), None)

    def _copied(self, block: int, use: TensorUse) -> WordTransfer | None:
        """A copy of shared memory, as scale factors are: its words."""
        found = copied(self.finder, block, use.executed)
        return None if found is None else WordTransfer(False, *found)


def kind_of(match: Match) -> str | None:
    """What an instruction does to tensor memory, one of `KINDS`."""
    return next((kind for kind in KINDS if match.effects.does("tensor_memory", kind)), None)


def _columns(address: int, count: int) -> Numbers:
    found: Numbers = ((address & 0xFFFF) + np.arange(count)) % COLUMNS
    return found
