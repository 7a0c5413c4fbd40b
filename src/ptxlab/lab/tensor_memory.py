"""Tensor memory of a block: which warp allocated, wrote or loaded which lanes and columns, and when."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from ptxlab.isa import Match
from ptxlab.isa.units.tensor_memory import LANES, TWO_BLOCKS
from ptxlab.lab.registers import Registers
from ptxlab.lab.tensor_words import TensorWords
from ptxlab.trace.accesses import SHARED
from ptxlab.trace.finder import Finder
from ptxlab.trace.lanes import Executed, matrices_of
from ptxlab.trace.tensor_memory import address_of, routed
from ptxlab.trace.warp_steps import WarpSteps

WORDS = {
    "allocate": "allocates", "free": "frees", "multiply": "multiplies", "load": "loads", "store": "stores",
    "copy": "copies",
}  # fmt: skip
MOST = 20_000  # uses that are listed


class TensorMemory:
    """What the instructions of a launch do to tensor memory."""

    def __init__(self, steps: WarpSteps, registers: Registers) -> None:
        self.steps = steps
        self.finder = Finder(steps.trace)
        self._words = TensorWords(steps, registers, self.finder)
        self._executed = lru_cache(maxsize=16)(self._find_executed)

    def uses(self, block: int) -> list[dict[str, Any]]:
        """All uses in a block, by their steps."""
        return [use for one in self._executed(block) for use in self._use(*one)]

    def words(self, block: int, step: int) -> dict[str, Any]:
        """What is known of the words of a block after the use of a step."""
        return self._words.after(block, step, self._executed(block))

    def _find_executed(self, block: int) -> list[tuple[int, Executed, str]]:
        """The instructions that access the tensor memory of a block: the step, the first lane, and what it does."""
        found: list[tuple[int, Executed, str]] = []
        program = self.steps.trace.program
        near = self.steps.warps_in_block
        own = range((block & ~1) * near, (block | 1) * near + near)  # an MMA of a pair writes both
        for number, table in enumerate(self.steps.tables):
            for index, instruction in enumerate(table.tolist()):
                match = program.match(instruction)
                word = None if match is None else does(match)
                if match is None or word is None:
                    continue
                is_pair = TWO_BLOCKS in program.instructions[instruction][1].opcode.modifiers
                for group in np.flatnonzero(self.steps.segment == number).tolist():
                    warp = int(self.steps.warp[group])
                    is_own = warp // near == block or (is_pair and word in ("multiply", "copy"))
                    if warp in own and is_own and len(found) < MOST:
                        found += self._step(group, index, instruction, word)
        return sorted(found, key=lambda one: one[0])

    def _step(self, group: int, index: int, instruction: int, word: str) -> Iterator[tuple[int, Executed, str]]:
        columns = self.steps.trace.columns
        _, guard = columns.segments[int(self.steps.segment[group])].steps[index]
        entries = columns.held(self.steps.entries(group), guard)
        if len(entries):
            entry = int(entries[0])
            key = 2 * (int(columns.first_step[entry]) + index) + 1
            executed = Executed(int(columns.thread[entry]), entry, instruction, key)
            yield int(self.steps.first[group]) + index, executed, word

    def _use(self, step: int, executed: Executed, word: str) -> Iterator[dict[str, Any]]:
        match = self.steps.trace.program.match(executed.instruction)
        assert match is not None
        extent = self._extent(executed, match, word)
        if extent is not None:
            lane, lanes, column, count = extent
            yield {
                "step": step, "kind": WORDS[word], "warp": self.steps.warp_of(executed.thread),
                "line": self.steps.trace.program.line(executed.instruction), "lane": lane, "lanes": lanes,
                "column": column, "columns": count,
            }  # fmt: skip

    def _extent(self, step: Executed, match: Match, word: str) -> tuple[int, int, int, int] | None:
        """The first lane and how many, the first column and how many."""
        if word in ("allocate", "free"):
            count = self.finder.operand(step.thread, step.instruction, "columns", step.key)
            address = self._allocated(step) if word == "allocate" else self._given(step)
            return None if count is None or address is None else (0, LANES, address & 0xFFFF, count)
        operand = "d" if word == "multiply" else "taddr"
        address = address_of(self.finder, step, operand)
        if address is None:
            return None
        if word == "multiply":
            bits = self.finder.operand(step.thread, step.instruction, "idesc", step.key) or 0
            return address >> 16, min((bits >> 24 & 31) << 4, LANES), address & 0xFFFF, (bits >> 17 & 63) << 3
        held = matrices_of(match)
        layout = held["d" if word == "load" else "a"].layout if held else None
        if layout is None:
            return address >> 16, LANES, address & 0xFFFF, 4
        return routed(self.finder, step, address) >> 16, layout.rows, address & 0xFFFF, layout.columns

    def _given(self, step: Executed) -> int | None:
        return self.finder.operand(step.thread, step.instruction, "taddr", step.key)

    def _allocated(self, step: Executed) -> int | None:
        """The address that an allocation wrote to shared memory."""
        accesses = self.steps.trace.accesses
        rows, block = accesses.writes, step.thread // accesses.threads_in_block
        own = np.flatnonzero((rows.instruction == step.instruction) & (rows.space == SHARED) & (rows.owner == block))
        return int.from_bytes(accesses.bytes_of(rows, int(own[0])), "little") if len(own) else None


def does(match: Match) -> str | None:
    """What an instruction does to tensor memory, in one word."""
    return next((word for word in WORDS if match.effects.does("tensor_memory", word)), None)
