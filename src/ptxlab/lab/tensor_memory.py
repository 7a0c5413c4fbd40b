"""Tensor memory of a block: which warp allocated, wrote or loaded which lanes and columns, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ptxlab.isa import Match
from ptxlab.isa.tensor_memory import LANES
from ptxlab.lab.warp_steps import WarpSteps
from ptxlab.trace.accesses import SHARED
from ptxlab.trace.finder import Finder
from ptxlab.trace.lanes import Executed, matrices_of
from ptxlab.trace.tensor_memory import address_of, routed

WORDS = {
    "allocate": "allocates", "free": "frees", "multiply": "multiplies", "load": "loads", "store": "stores",
    "copy": "copies",
}  # fmt: skip
MOST = 20_000  # uses that are listed


class TensorMemory:
    """What the instructions of a launch do to tensor memory."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self.finder = Finder(steps.trace)

    def uses(self, block: int) -> list[dict[str, Any]]:
        """All uses in a block, by their steps."""
        found: list[dict[str, Any]] = []
        program = self.steps.trace.program
        own = range(block * self.steps.warps_in_block, (block + 1) * self.steps.warps_in_block)
        for number, table in enumerate(self.steps.tables):
            for index, instruction in enumerate(table.tolist()):
                match = program.match(instruction)
                word = None if match is None else does(match)
                if match is None or word is None:
                    continue
                for group in np.flatnonzero(self.steps.segment == number).tolist():
                    warp = int(self.steps.warp[group])
                    if warp in own and len(found) < MOST:
                        found += self._use(group, index, instruction, match, word)
        return sorted(found, key=lambda one: one["step"])

    def _use(self, group: int, index: int, instruction: int, match: Match, word: str) -> Iterator[dict[str, Any]]:
        columns = self.steps.trace.columns
        _, guard = columns.segments[int(self.steps.segment[group])].steps[index]
        entries = columns.held(self.steps.entries(group), guard)
        if not len(entries):
            return
        entry = int(entries[0])
        key = 2 * (int(columns.first_step[entry]) + index) + 1
        step = Executed(int(columns.thread[entry]), entry, instruction, key)
        extent = self._extent(step, match, word)
        if extent is not None:
            lane, lanes, column, count = extent
            yield {
                "step": int(self.steps.first[group]) + index, "kind": WORDS[word], "warp": int(self.steps.warp[group]),
                "line": self.steps.trace.program.line(instruction), "lane": lane, "lanes": lanes, "column": column,
                "columns": count,
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
