"""Races between threads that hold copies of one value, which Triton's layouts make and no kernel in Triton can avoid.

Where a tile has fewer elements than the block has threads, several threads load and compute the same element. They are
found to race, and that is of no consequence, in two cases. One instruction stores all copies of a sum to one address of
shared memory, where with contraction each is rounded differently; in Triton, unlike Gluon, the compiler alone decides
what is in shared memory. And a copy loads an element that another thread then replaces, while its own store of it is
predicated off, with all others that depend on what it loaded (`dependents.py`), also where that decides a branch: by
the same predicate, or in all threads of its warp, with whose lanes it exchanges what it loaded.

A third race is the compiler's too: for several blocks of a cluster, Triton orders the last wait on an mbarrier and its
invalidation by a cluster barrier whose arrival is relaxed. The wait is over where threads arrive.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

from ptxlab import ir
from ptxlab.check.active_threads import Presence
from ptxlab.check.control import Control
from ptxlab.check.effort import Effort
from ptxlab.check.program import FunctionFacts
from ptxlab.frameworks.triton.dependents import Dependents
from ptxlab.ir.shapes import match_of
from ptxlab.report import Diagnostic

RACE = "data-race"
_LANES = 32


def without_copies(found: Iterable[Diagnostic], kernel: ir.Function, is_gluon: bool) -> list[Diagnostic]:
    """The findings, but for races that are only between copies of a value."""
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
        self.instructions = list(kernel.instructions())
        self.matches = [match_of(one) for one in self.instructions]
        self.facts = facts = FunctionFacts(kernel, self.instructions, self.matches)
        self.effects = facts.effects
        self.dependents = Dependents(facts)
        lines = [module.source.position(one.start or 0)[0] for one in self.instructions]
        self.by_line = {line: number for number, line in enumerate(lines)}

    @cached_property
    def presence(self) -> Presence:
        """Which threads can reach an instruction."""
        effort = Effort(self.instructions)
        return Presence(self.facts, Control(self.facts, effort), effort)

    def is_harmless(self, race: Diagnostic) -> bool:
        """Whether all accesses that a finding is about are of copies."""
        pairs = [race.facts.get("accesses", []), *race.facts.get("others", [])]
        return all(len(pair) == 2 and self._are_copies(*pair) for pair in pairs)

    def _are_copies(self, first: dict[str, Any], second: dict[str, Any]) -> bool:
        if first["block"] != second["block"]:
            return False
        numbers = [self.by_line.get(one["line"]) for one in (first, second)]
        if numbers[0] is not None and numbers[0] == numbers[1]:
            in_warp = first["thread"] // _LANES == second["thread"] // _LANES
            return self._is_shared_store(numbers[0]) and (in_warp or not self.is_gluon)
        if None in numbers:
            return False
        threads = dict(zip(numbers, (first["thread"], second["thread"]), strict=True))
        low, high = sorted(number for number in numbers if number is not None)
        return self._replaces(low, high, threads[low] // _LANES) or self._is_over(low, high)

    def _is_over(self, wait: int, invalidation: int) -> bool:
        """Whether an mbarrier is invalidated after a wait on it, with a barrier of the cluster in between."""
        steps = [self._step(number) for number in (wait, invalidation)]
        between = self.matches[wait + 1 : invalidation]
        has_barrier = any(one is not None and one.effects.barrier == "cluster" and one.effects.waits for one in between)
        return steps == [("mbarrier", "wait"), ("mbarrier", "invalidate")] and has_barrier

    def _step(self, number: int) -> tuple[str, str] | None:
        match = self.matches[number]
        steps = () if match is None else match.effects.steps
        return (steps[0].unit, steps[0].name) if len(steps) == 1 else None

    def _replaces(self, load: int, store: int, warp: int) -> bool:
        """Whether a store replaces what a load read, and is off where all that depends on the load is off.

        It may be a store of another iteration, or of a later statement: what the load read is then used by none.
        `warp` is that of the thread which loads.
        """
        guard = self.instructions[store].guard
        if self._accesses(load) != ["load"] or self._accesses(store) != ["store"] or guard is None:
            return False
        address = self._address(load)
        if address is None or address != self._address(store):
            return False
        found = self.dependents.stores(load, store)
        if found is None:
            return False
        reached, is_exchanged = found
        guards = [self.instructions[one].guard for one in reached]
        if not is_exchanged and all(one is not None and one.register == guard.register for one in guards):
            return True
        lanes = self.presence.lanes_of(frozenset([warp]))
        return not any(self.presence.of_guard(one).true & lanes for one in reached)

    def _is_shared_store(self, number: int) -> bool:
        match = self.matches[number]
        found = () if match is None else match.effects.accesses
        return [(one.kind, str(one.space).partition("::")[0]) for one in found] == [("store", "shared")]

    def _accesses(self, number: int) -> list[str]:
        match = self.matches[number]
        return [] if match is None else [one.kind for one in match.effects.accesses]

    def _address(self, number: int) -> tuple[str, int] | None:
        """The register and the offset of an address that nothing changes."""
        for operand in self.instructions[number].operands:
            if isinstance(operand, ir.Address) and isinstance(operand.base, ir.Register):
                written = sum(operand.base.index in writes for writes in self.effects.writes)
                return (operand.base.name, operand.offset) if written == 1 else None
        return None
