"""Races that Triton's compiler makes, which no kernel in Triton can avoid.

Where a tile has fewer elements than the block has threads, several threads compute the same element. One instruction
stores all copies of a sum to one address of shared memory, where with contraction each is rounded differently; in
Triton, unlike Gluon, the compiler alone decides what is in shared memory. (Copies that load what one of them replaces
are not reported in any kernel; see `emulate.translate.dead_loads`.)

For several blocks of a cluster, Triton orders the last wait on an mbarrier and its invalidation by a cluster barrier
whose arrival is relaxed. The wait is over where threads arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ptxlab import ir
from ptxlab.ir.shapes import match_of
from ptxlab.isa.effects import Effects
from ptxlab.report import Diagnostic

RACE = "data-race"
_LANES = 32


def without_copies(found: Iterable[Diagnostic], kernel: ir.Function, is_gluon: bool) -> list[Diagnostic]:
    """The findings, but for races that the compiler makes."""
    diagnostics = list(found)
    if not any(one.code == RACE for one in diagnostics):
        return diagnostics
    copies = _Copies(kernel, is_gluon)
    return [one for one in diagnostics if one.code != RACE or not copies.is_harmless(one)]


class _Copies:
    """A kernel, by the lines of its instructions."""

    def __init__(self, kernel: ir.Function, is_gluon: bool) -> None:
        self.is_gluon = is_gluon
        module = kernel.module
        assert module is not None
        assert module.source is not None
        instructions = list(kernel.instructions())
        matches = [match_of(one) for one in instructions]
        self.effects = [Effects() if match is None else match.effects for match in matches]
        lines = [module.source.position(one.start or 0)[0] for one in instructions]
        self.by_line = {line: number for number, line in enumerate(lines)}

    def is_harmless(self, race: Diagnostic) -> bool:
        """Whether all accesses that a finding is about are of copies."""
        pairs = [race.facts.get("accesses", []), *race.facts.get("others", [])]
        return all(len(pair) == 2 and self._are_copies(*pair) for pair in pairs)

    def _are_copies(self, first: dict[str, Any], second: dict[str, Any]) -> bool:
        numbers = [number for one in (first, second) if (number := self.by_line.get(one["line"])) is not None]
        if first["block"] != second["block"] or len(numbers) < 2:
            return False
        if numbers[0] == numbers[1]:
            in_warp = first["thread"] // _LANES == second["thread"] // _LANES
            return self._is_shared_store(numbers[0]) and (in_warp or not self.is_gluon)
        return self._is_over(*sorted(numbers))

    def _is_over(self, wait: int, invalidation: int) -> bool:
        """Whether an mbarrier is invalidated after a wait on it, with a barrier of the cluster in between."""
        steps = [(step.unit, step.name) for number in (wait, invalidation) for step in self.effects[number].steps]
        between = self.effects[wait + 1 : invalidation]
        has_barrier = any(one.barrier == "cluster" and one.waits for one in between)
        return steps == [("mbarrier", "wait"), ("mbarrier", "invalidate")] and has_barrier

    def _is_shared_store(self, number: int) -> bool:
        found = self.effects[number].accesses
        return [(one.kind, str(one.space).partition("::")[0]) for one in found] == [("store", "shared")]
