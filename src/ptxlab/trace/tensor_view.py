"""What words of tensor memory hold at a step, as far as warps have stored or loaded them.

An MMA leaves its results in tensor memory, where a recording does not follow it. A word is known from a store, or from
a load, as long as no MMA for it is issued between. A load also says what was there before it, back to the last MMA.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxlab.isa.tensor_memory import LANES
from ptxlab.trace import tensor_memory
from ptxlab.trace.finder import Finder
from ptxlab.trace.lanes import Executed, matrices_of, registers_of, words_in
from ptxlab.trace.registers import last_write

if TYPE_CHECKING:
    from ptxlab.trace.trace import Trace

COLUMNS = 512


@dataclass(frozen=True)
class Transfer:
    """A load or store of a warp, or an MMA: when, and the words; of an MMA, their values are not known."""

    key: int
    kind: str
    rows: Any
    columns: Any
    values: Any = None


class TensorMemory:
    """The tensor memory of a block of a recorded launch."""

    def __init__(self, trace: Trace, block: int) -> None:
        self.block = block
        self._finder = Finder(trace)

    @property
    def is_used(self) -> bool:
        """Whether the kernel has instructions that access it."""
        program = self._finder.program
        found = (program.match(number) for number in range(len(program.instructions)))
        return any(match is not None and match.effects.uses("tensor_memory") for match in found)

    def words(self, key: int) -> Any:
        """The words before `key`, by lane and column: a masked array, without those that are not known."""
        values = np.zeros((LANES, COLUMNS), np.uint32)
        known, changed = np.zeros(values.shape, bool), np.zeros(values.shape, bool)
        for one in self._transfers:
            place = one.rows, one.columns
            if one.key < key:
                known[place] = one.values is not None
                if one.values is not None:
                    values[place] = one.values
            elif one.kind == "load":
                seen = ~known[place] & ~changed[place]
                values[one.rows[seen], one.columns[seen]] = one.values[seen]
                known[one.rows[seen], one.columns[seen]] = True
            else:
                changed[place] = True
        return np.ma.array(values, mask=~known)

    @cached_property
    def _transfers(self) -> list[Transfer]:
        """What has accessed it, in order."""
        return sorted([*self._accesses("load"), *self._accesses("store"), *self._products()], key=lambda one: one.key)

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
        return Transfer(step.key, kind, *inside, np.array(values, np.uint32)) if rows else None

    def _products(self) -> Iterator[Transfer]:
        """MMAs: the words of their results."""
        for words in tensor_memory.writers(self._finder, self.block):
            if words.kind != "multiply":
                continue
            found = tensor_memory.tile_of(self._finder, words, self.block)
            if found is None:
                continue
            _, tile = found
            lanes = np.array(tensor_memory.lanes_of(tile)) % LANES
            columns = np.arange(words.address & 0xFFFF, (words.address & 0xFFFF) + tile.width) % COLUMNS
            rows, across = np.meshgrid(lanes, columns, indexing="ij")
            yield Transfer(words.step.key, "multiply", rows.ravel(), across.ravel())
