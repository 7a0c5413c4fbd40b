"""Who does what: masks of the threads of a cluster, and values that each thread computes."""

from __future__ import annotations

from math import prod

from ptxlab.flow.expressions import ADDRESS, Atom, Linear
from ptxlab.prove.terms.terms import Terms, is_own_rank, is_thread_index, is_uniform, leaves

from .segments import Path, UnsupportedError


class Threads:
    """The threads of a cluster, each a bit of a mask."""

    def __init__(self, terms: Terms) -> None:
        self.terms, self.own, self.count = terms, prod(terms.block), prod(terms.block) * terms.ranks
        self.everyone = (1 << self.count) - 1
        self._known: dict[Linear, int] = {}

    def mask(self, path: Path, at: int | None = None) -> tuple[int, tuple[Linear, ...]]:
        """The threads that take a path, and what else holds on it, which is the same in all of them.

        Of an event, at an instruction, these must be all that do; of others, they may be fewer than that.
        """
        mask, others = self.everyone, []
        for one in path:
            if is_uniform([one], lambda _: True):
                others.append(one)
                continue
            if any(not is_thread_index(atom) for atom in leaves([one])):
                if at is None:
                    continue
                raise UnsupportedError(at, "which threads come here depends on more than their numbers")
            if one not in self._known:
                found = (bool(self.evaluate(one, thread)) << thread for thread in range(self.count))
                self._known[one] = sum(found)
            mask &= self._known[one]
        return mask, tuple(others)

    def exact(self, path: Path) -> tuple[int, tuple[Linear, ...]] | None:
        """The same, if these are all threads that take the path where all else holds."""
        mask, others = self.mask(path)
        is_known = all(one in others or all(map(is_thread_index, leaves([one]))) for one in path)
        return (mask, others) if is_known else None

    def evaluate(self, value: Linear, thread: int, counter: Atom | None = None, turn: int = 0) -> int:
        """A term as a number; the addresses of variables are 0."""
        rank, own = divmod(thread, self.own)
        places = self.terms.place(own)

        def of(atom: Atom) -> int:
            if is_thread_index(atom):
                return rank if is_own_rank(atom) else places[str(atom.detail)[-1]]
            if atom.kind == ADDRESS:
                return 0
            if atom is counter:
                return turn
            raise LookupError

        return value.evaluate(of)

    def by_rank(self, mask: int) -> list[int]:
        """Threads, those of each block by themselves."""
        parts = (mask & self.of_rank(rank) for rank in range(self.terms.ranks))
        return [part for part in parts if part] or [0]

    def of_rank(self, rank: int) -> int:
        """The threads of a block."""
        return (1 << self.own) - 1 << rank * self.own

    def rank(self, mask: int) -> int:
        """The block of threads of one."""
        return (mask.bit_length() - 1) // self.own

    def warps(self, mask: int) -> int:
        """All threads of the warps that threads of a mask are in."""
        lanes = (1 << 32) - 1
        return sum(lanes << first for first in range(0, self.count, 32) if mask >> first & lanes) & self.everyone
