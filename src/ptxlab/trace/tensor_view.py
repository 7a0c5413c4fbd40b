"""What words of tensor memory hold at a step, as far as that is known.

A word is known from a store or a copy, or from a load, which also says what was there before it, back to the last MMA.
What MMAs leave besides, such as partial sums, is computed again (`tensor_products`): it is not recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.isa.units.tensor_memory import LANES
from ptxlab.trace import tensor_memory
from ptxlab.trace.finder import Finder
from ptxlab.trace.lanes import Executed, matrices_of, registers_of, words_in
from ptxlab.trace.registers import last_write
from ptxlab.trace.tensor_copies import Copied, copied
from ptxlab.trace.tensor_products import Products

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace

COLUMNS = 512
_APART = 128  # transfers between states that are kept


@dataclass(frozen=True)
class Transfer:
    """A load or store of a warp, a copy, or an MMA: when, and the words; of an MMA, their values are not recorded."""

    step: Executed
    kind: str
    rows: Any
    columns: Any
    values: Any = None

    @property
    def key(self) -> int:
        """When it was executed."""
        return self.step.key


class TensorMemory:
    """The tensor memory of a block of a recorded launch."""

    def __init__(self, trace: Trace, block: int) -> None:
        self.block = block
        self._finder = Finder(trace)
        self._products = Products(self._finder)
        self._states: dict[int, tuple[Any, Any]] = {}

    @property
    def is_used(self) -> bool:
        """Whether the kernel has instructions that access it."""
        program = self._finder.program
        found = (program.match(number) for number in range(len(program.instructions)))
        return any(match is not None and match.effects.uses("tensor_memory") for match in found)

    def words(self, key: int) -> Any:
        """The words before `key`, by lane and column: a masked array, without those that are not known."""
        past = next((index for index, one in enumerate(self._transfers) if one.key >= key), len(self._transfers))
        values, known = self._after(past)
        changed = np.zeros(values.shape, bool)
        for one in self._transfers[past:]:
            place = one.rows, one.columns
            if one.kind == "load":
                seen = ~known[place] & ~changed[place]
                values[one.rows[seen], one.columns[seen]] = one.values[seen]
                known[one.rows[seen], one.columns[seen]] = True
            else:
                changed[place] = True
        return np.ma.array(values, mask=~known)

    def _after(self, count: int) -> tuple[Any, Any]:
        """The words after the first transfers, and which of them are known; some states are kept."""
        start = max((at for at in self._states if at <= count), default=0)
        values, known = np.zeros((LANES, COLUMNS), np.uint32), np.zeros((LANES, COLUMNS), bool)
        if start:
            values, known = (one.copy() for one in self._states[start])
        for index, one in enumerate(self._transfers[start:count], start):
            place = one.rows, one.columns
            is_done = one.kind == "multiply" and self._products.multiply(one.step, self.block, values, known)
            if not is_done:
                known[place] = one.values is not None
            if one.values is not None:
                values[place] = one.values
            if (index + 1) % _APART == 0:
                self._states[index + 1] = values.copy(), known.copy()
        return values, known

    @cached_property
    def _transfers(self) -> list[Transfer]:
        """What has accessed it, in order."""
        return sorted([*self._accesses("load"), *self._accesses("store"), *self._others()], key=lambda one: one.key)

    def _accesses(self, kind: str) -> Iterator[Transfer]:
        """Loads or stores, each of a warp."""
        finder, count = self._finder, self._finder.accesses.threads_in_block
        for number in range(len(finder.program.instructions)):
            match = finder.program.match(number)
            if match is None or not match.effects.does("tensor_memory", kind):
                continue
            for thread in finder.columns.threads:
                if thread // count == self.block and thread % count % 32 == 0:
                    for key in finder.completions(thread, number):
                        entry, _ = finder.columns.locate(key // 2)
                        found = self._access(Executed(thread, entry, number, key), kind)
                        if found is not None:
                            yield found

    def _access(self, step: Executed, kind: str) -> Transfer | None:
        finder = self._finder
        address = tensor_memory.address_of(finder, step, "taddr")
        if address is None:
            return None
        operand = "d" if kind == "load" else "a"
        layout = matrices_of(finder.program.match(step.instruction))[operand].layout
        registers = registers_of(finder, step.instruction, operand)
        first, column = tensor_memory.routed(finder, step, address) >> 16, address & 0xFFFF
        peers = [finder.peer(step, lane) for lane in range(32)]
        rows, columns, values = [], [], []
        for lane, register, row, right in words_in(layout):
            peer, name = peers[lane], registers.get(register)
            if peer is None or name is None:
                continue
            written = last_write(finder.columns, peer[0], name, peer[1] + (kind == "load"))
            if written is not None:
                data = int.from_bytes(finder.columns.bytes_at(written.entry, written.slot), "little")
                rows.append(first + row)
                columns.append(column + right)
                values.append(data & 0xFFFFFFFF)
        inside = np.array(rows) % LANES, np.array(columns) % COLUMNS
        return Transfer(step, kind, *inside, np.array(values, np.uint32)) if rows else None

    def _others(self) -> Iterator[Transfer]:
        """Copies, and MMAs: the words of their results."""
        for words in tensor_memory.writers(self._finder, self.block):
            found = {"multiply": self._multiplied, "copy": self._copied}.get(words.kind, lambda _: None)(words)
            if found is not None:
                rows, across = np.meshgrid(found.lanes, found.columns, indexing="ij")
                values = None if found.values is None else found.values.ravel()
                yield Transfer(words.step, words.kind, rows.ravel(), across.ravel(), values)

    def _multiplied(self, words: tensor_memory.Words) -> Copied | None:
        found = tensor_memory.tile_of(self._finder, words, self.block)
        if found is None:
            return None
        _, tile = found
        columns = np.arange(words.address & 0xFFFF, (words.address & 0xFFFF) + tile.width) % COLUMNS
        return Copied(np.array(tensor_memory.lanes_of(tile)) % LANES, columns, None)

    def _copied(self, words: tensor_memory.Words) -> Copied | None:
        return copied(self._finder, self.block, words.step)
