"""The `cp.async` of a function, what waits for each of them, and what reads shared memory before that.

A wait covers a copy if the copy is in a closed group and the wait lets only later groups stay pending. How many groups
were closed since is counted on the way that closes most of them, so that a wait that may cover a copy is taken to do
so. What is counted ends where a copy in a loop fills the same bytes again; one that fills others each time goes round
the loop. A copy that an mbarrier counts, or that a called function may wait for, is taken to be waited for; so is one
in a kernel that counts its groups and chooses among waits for many numbers of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Set
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.flow.effort import Effort
from ptxlab.isa import Jump
from ptxlab.isa.effects import Effects

if TYPE_CHECKING:
    from .program import FunctionFacts

OPEN = -1  # in no group yet
CHOICES = 3  # different numbers of groups to wait for, of which one is chosen
COPY, COMMIT, WAIT, WAIT_ALL, READ = "copy commit wait wait_all read".split()


class Copies:
    """The copies of one function, and all that concerns them, by instruction."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._effort = Effort(facts.instructions)
        self.kinds: dict[int, str] = {}
        self.limits: dict[int, int] = {}
        for name in ("start", "commit", "wait", "arrive"):
            for at in facts.doing("async_copy", name):
                self._add(at, name)
        self.copies = sorted(at for at, kind in self.kinds.items() if kind == COPY)
        if self.copies:
            self._add_others()
        self._most = max(self.limits.values(), default=0)
        self._loops: dict[int, frozenset[int]] = {}
        self._waits: dict[tuple[int, int | None, bool], dict[int, int | None]] = {}
        self._inside: dict[int, list[int]] = defaultdict(list)
        for at in sorted(self.kinds):
            self._inside[facts.chains.block_of(at)].append(at)

    def _add(self, at: int, step: str) -> None:
        operands = self._facts.instructions[at].operands
        if step == "start":
            self.kinds[at] = COPY
        elif step == "commit":
            self.kinds[at] = COMMIT
        elif step == "wait" and operands:
            assert isinstance(operands[0], ir.Immediate)
            self.kinds[at], self.limits[at] = WAIT, operands[0].value
        else:  # `wait_all`, which also commits, and an arrival at an mbarrier
            self.kinds[at] = WAIT_ALL

    def _add_others(self) -> None:
        for at, match in enumerate(self._facts.matches):
            if match is not None and _reads_shared(match.effects):
                self.kinds[at] = READ
        for at in self._facts.by_jump.get(Jump.CALL, ()):
            self.kinds[at] = WAIT_ALL

    def waits(self, copy: int) -> dict[int, int | None]:
        """The waits that a copy comes to: None where one covers it, else how many groups were closed since, or OPEN."""
        block = self._facts.chains.block_of(copy)
        event = next((at for at in self._after(block, copy) if self.kinds[at] not in (COPY, READ)), None)
        key = (block, event, self.fills_the_same(copy))
        found = self._waits.get(key)
        if found is None:
            found = self._waits[key] = self._find_waits(block, copy, key[2])
        return found

    def _find_waits(self, block: int, copy: int, same_again: bool) -> dict[int, int | None]:
        found: dict[int, int | None] = {}
        seen: dict[int, int] = {}
        pending = deque([(block, copy, OPEN)])
        while pending:
            number, start, age = pending.popleft()
            for at in self._after(number, start):
                kind = self.kinds[at]
                if kind == COMMIT:
                    age = min(age + 1, self._most)
                elif kind == WAIT_ALL or (kind == WAIT and OPEN < age >= self.limits[at]):
                    found[at] = None
                    break
                elif kind == WAIT:
                    found[at] = age  # ages only grow from one visit to the next
                elif at == copy and same_again:
                    break
            else:
                for successor in self._facts.flow.blocks[number].successors:
                    if age > seen.get(successor, OPEN - 1):
                        seen[successor] = age
                        pending.append((successor, -1, age))
        return found

    def chosen_waits(self) -> frozenset[int]:
        """Waits of which a thread that counts its groups chooses one when it runs, as `cuda::pipeline` does."""
        joined: dict[int, list[int]] = defaultdict(list)
        for at in self.limits:
            after = self._facts.flow.blocks[self._facts.chains.block_of(at)].successors
            if len(after) == 1:
                joined[after[0]].append(at)
        choices = [waits for waits in joined.values() if len({self.limits[at] for at in waits}) >= CHOICES]
        return frozenset(at for waits in choices for at in waits)

    def walk(self, copy: int, stops: Set[int]) -> Iterator[int]:
        """What comes after a copy, the nearest first, on all paths until one of `stops`."""
        blocks = self._facts.flow.blocks
        ends: dict[int, list[int]] = defaultdict(list)
        for at in sorted(stops):
            ends[self._facts.chains.block_of(at)].append(at)
        seen: set[int] = set()
        pending = deque([(self._facts.chains.block_of(copy), copy)])
        while pending:
            number, start = pending.popleft()
            stop = next((at for at in ends.get(number, ()) if at > start), None)
            for at in self._after(number, start):
                if stop is not None and at >= stop:
                    break
                yield at
            if stop is None:
                fresh = [successor for successor in blocks[number].successors if successor not in seen]
                seen.update(fresh)
                pending.extend((successor, -1) for successor in fresh)

    def _after(self, number: int, start: int) -> Iterator[int]:
        """What concerns copies in a block, after instruction `start`."""
        self._effort.spend(1)
        inside = self._inside.get(number, [])
        for index in range(bisect_right(inside, start), len(inside)):
            self._effort.spend(1)
            yield inside[index]

    def repeats(self, copy: int) -> bool:
        """Whether a copy is in a loop, and each time to the same address."""
        return self.fills_the_same(copy) and bool(self._loop(self._facts.chains.block_of(copy)))

    def fills_the_same(self, copy: int) -> bool:
        """Whether a copy, when it runs again in a loop, has the same destination."""
        address = self._facts.instructions[copy].operands[0]
        base = address.base if isinstance(address, ir.Address) else None
        if isinstance(base, ir.VariableReference):
            return True
        if not isinstance(base, ir.Register):
            return False
        values = self._facts.chains
        loop = self._loop(values.block_of(copy))
        writes = values.definitions(copy, base.index)
        return bool(writes) and not any(values.block_of(definition) in loop for definition in writes)

    def _loop(self, block: int) -> frozenset[int]:
        """The blocks on a way from a block back to it."""
        known = self._loops.get(block)
        if known is None:
            blocks = self._facts.flow.blocks
            after = _closure(blocks[block].successors, lambda number: blocks[number].successors)
            before = _closure(blocks[block].predecessors, lambda number: blocks[number].predecessors)
            known = self._loops[block] = after & before
        return known


def _closure(start: Iterable[int], following: Callable[[int], Iterable[int]]) -> frozenset[int]:
    seen: set[int] = set()
    pending = list(start)
    while pending:
        number = pending.pop()
        if number not in seen:
            seen.add(number)
            pending.extend(following(number))
    return frozenset(seen)


def _reads_shared(effects: Effects) -> bool:
    """Whether an instruction reads data, not an mbarrier, from shared memory."""
    if effects.does("wgmma", "start"):
        return True
    loads = [access for access in effects.accesses if access.kind != "store" and not effects.steps]
    return any((access.space or "").startswith("shared") for access in loads)
