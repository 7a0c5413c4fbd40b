"""Which branches decide whether a block runs: control dependence, through post-dominators.

A block depends on a branch if one way out of the branch leads to the block for certain and another may miss it. Leaving
the function is a way like any other: `@%p1 ret` is a branch whose other side is the end, `END`. A way that can only end
in `trap`, or in a call that does not return, is left out: what an assertion guards does not depend on it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ptxlab.isa import Jump

from .effort import Effort

if TYPE_CHECKING:
    from .facts import Facts

END = -1  # the end of the function, as a successor


class Control:
    """The branches of one function and the blocks that depend on them."""

    def __init__(self, facts: Facts, effort: Effort) -> None:
        self._facts = facts
        self._effort = effort
        self._blocks = facts.flow.blocks
        self.order = facts.flow.ordered()
        aborting = self._aborting()
        self.successors: dict[int, list[int]] = {}
        for number in self.order:
            ways = self._ways_out(number)
            self.successors[number] = ways if number in aborting else [way for way in ways if way not in aborting]
        self._next = self._post_dominators()
        self._reach: dict[int, frozenset[int]] = {}
        self._all: dict[int, frozenset[int]] = {}

    def _ways_out(self, number: int) -> list[int]:
        block = self._blocks[number]
        jump = self._facts.instructions[block.end - 1].opcode.jump
        leaves = not block.successors or (jump is not None and jump.ends and jump is not Jump.TRAP)
        return [*block.successors, END] if leaves else list(block.successors)

    def _aborting(self) -> set[int]:
        """The blocks after which the kernel can only be aborted."""
        found: set[int] = set()
        pending = [number for number in self.order if self._aborts(number)]
        while pending:
            number = pending.pop()
            if number in found:
                continue
            found.add(number)
            before = [other for other in self._blocks[number].predecessors if END not in self._ways_out(other)]
            pending += [other for other in before if found.issuperset(self._blocks[other].successors)]
        self._effort.spend(len(found))
        return found

    def _aborts(self, number: int) -> bool:
        block = self._blocks[number]
        return not block.successors and self._facts.instructions[block.end - 1].opcode.jump in (Jump.TRAP, Jump.CALL)

    def _post_dominators(self) -> dict[int, int]:
        """For each block the nearest one that every way from it to the end goes through."""
        before: dict[int, list[int]] = {END: []}
        for number in self.order:
            before.setdefault(number, [])
        for number, ways in self.successors.items():
            for successor in ways:
                before[successor].append(number)
        order = self._from_the_end(before)
        rank = {number: at for at, number in enumerate(order)}
        after = {number: [s for s in self.successors.get(number, ()) if s in rank] for number in order}
        for number in self._endless:
            after[number] = [*after[number], END]
        found: dict[int, int] = {END: END}
        changed = True
        while changed:
            changed = False
            self._effort.spend(len(order))
            for number in order[1:]:
                nearest = None
                for successor in after[number]:
                    if successor not in found:
                        continue
                    nearest = successor if nearest is None else self._meet(nearest, successor, found, rank)
                assert nearest is not None
                if found.get(number) != nearest:
                    found[number] = nearest
                    changed = True
        return found

    def _from_the_end(self, before: dict[int, list[int]]) -> list[int]:
        """All blocks, each after one of its successors; of a loop without an end the last block counts as leaving."""
        self._endless: list[int] = []
        finished: list[int] = []
        seen = {END}
        roots = [END, *reversed(self.order)]
        for root in roots:
            if root in seen and root != END:
                continue
            if root != END:
                self._endless.append(root)
                seen.add(root)
            group: list[int] = []
            stack = [(root, iter(before[root]))]
            while stack:
                number, previous = stack[-1]
                for one in previous:
                    if one not in seen:
                        seen.add(one)
                        stack.append((one, iter(before[one])))
                        break
                else:
                    group.append(number)
                    stack.pop()
            finished.extend(reversed(group))
        return finished

    def post_dominates(self, block: int, other: int) -> bool:
        """Whether every way from `other` to the end goes through `block`."""
        steps = 0
        while other != block and other != END:
            other = self._next[other]
            steps += 1
        self._effort.spend(steps)
        return other == block

    def merge(self, branch: int) -> int:
        """Where the ways out of a branch come together again."""
        return self._next[branch]

    @cached_property
    def branches(self) -> dict[int, list[int]]:
        """For each block the blocks whose branch at the end decides whether it runs."""
        found: dict[int, list[int]] = {number: [] for number in self.order}
        for number, after in self.successors.items():
            if len(after) < 2:
                continue
            for successor in after:
                at, steps = successor, 0
                while at != END and at != self._next[number]:
                    if not found[at] or found[at][-1] != number:
                        found[at].append(number)
                    at = self._next[at]
                    steps += 1
                self._effort.spend(steps)
        return found

    def deciding(self, block: int) -> frozenset[int]:
        """The branches that decide whether a block runs, and those that decide whether these are reached, and so on."""
        known = self._all.get(block)
        if known is None:
            pending = list(self.branches.get(block, ()))
            seen = set(pending)
            while pending:
                more = [b for b in self.branches[pending.pop()] if b not in seen]
                seen.update(more)
                pending.extend(more)
            self._effort.spend(len(seen))
            known = self._all[block] = frozenset(seen)
        return known

    def reachable(self, start: int) -> frozenset[int]:
        """The blocks that execution can get to from a block, itself included."""
        known = self._reach.get(start)
        if known is None:
            known = self._reach[start] = self.region(start, END)
        return known

    def region(self, start: int, stop: int) -> frozenset[int]:
        """The blocks that execution can get to from a block before it comes to `stop`."""
        seen: set[int] = set()
        pending = [start]
        while pending:
            number = pending.pop()
            if number not in seen and number not in (stop, END):
                seen.add(number)
                pending.extend(self.successors[number])
        self._effort.spend(len(seen))
        return frozenset(seen)

    def _meet(self, a: int, b: int, found: dict[int, int], rank: dict[int, int]) -> int:
        steps = 0
        while a != b:
            while rank[a] > rank[b]:
                a = found[a]
                steps += 1
            while rank[b] > rank[a]:
                b = found[b]
                steps += 1
        self._effort.spend(steps)
        return a
