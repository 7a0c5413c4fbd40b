"""Tensor memory of a block: which warp allocated, wrote or loaded which lanes and columns, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ptxlab.isa import Match
from ptxlab.isa.units.tensor_memory import LANES
from ptxlab.lab.encoding import packed
from ptxlab.trace.accesses import SHARED
from ptxlab.trace.lanes import Executed, matrices_of
from ptxlab.trace.tensor_memory import address_of, routed
from ptxlab.trace.tensor_words import TensorUse
from ptxlab.trace.warp_steps import WarpSteps
from ptxlab.values import Json

WORDS = {
    "allocate": "allocates", "free": "frees", "multiply": "multiplies", "load": "loads", "store": "stores",
    "copy": "copies",
}  # fmt: skip


class TensorView:
    """What the instructions of a launch do to tensor memory."""

    def __init__(self, steps: WarpSteps) -> None:
        self.steps = steps
        self.recorded = steps.trace.tensor_words
        self.finder = self.recorded.finder

    def uses(self, block: int) -> list[Json]:
        """All uses in a block, by their steps."""
        return [use for one in self.recorded.uses(block) for use in self._use(one)]

    def words(self, block: int, step: int) -> Json:
        """What is known of the words of a block after the use of a step."""
        return _packed(self.recorded.after(block, step))

    def _use(self, use: TensorUse) -> Iterator[dict[str, object]]:
        executed, word = use.executed, use.kind
        match = self.steps.trace.program.match(executed.instruction)
        assert match is not None
        extent = self._extent(executed, match, word)
        if extent is not None:
            lane, lanes, column, count = extent
            yield {
                "step": use.step, "kind": WORDS[word], "warp": self.steps.warp_of(executed.thread),
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


def _packed(words: Any) -> dict[str, object]:
    """The columns from the first to the last that has a known word."""
    values, known = words.data, ~np.ma.getmaskarray(words)
    some = np.flatnonzero(known.any(axis=0))
    first, past = (int(some[0]), int(some[-1]) + 1) if len(some) else (0, 0)
    return {
        "column": first, "columns": past - first, "data": packed(values[:, first:past]),
        "known": packed(np.packbits(known[:, first:past], bitorder="little")),
    }  # fmt: skip
