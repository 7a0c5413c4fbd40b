"""The PTX memory consistency model: its relations and axioms, as chapter 8 of the PTX ISA (9.1) defines them.

Read from top to bottom: what is known of the events of a program (`Static`), what follows once each read has its write,
fences have their order and barriers their phases (`Order`), and which coherence orders satisfy the axioms
(`coherence_orders`). An atomic operation is one event that reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import combinations

from ptxlab.litmus.budget import Budget
from ptxlab.litmus.events import Event
from ptxlab.litmus.program import GENERIC
from ptxlab.litmus.relation import Relation, members


class Static:
    """Events of an execution, and the relations that depend on nothing else; those of a thread are in its order."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = tuple(events)
        self.count = len(self.events)

    def set_of(self, holds: Sequence[bool]) -> int:
        """The set of the events for which it holds."""
        return sum(1 << number for number, one in enumerate(holds) if one)

    def _where(self, name: str) -> int:
        return self.set_of([bool(getattr(event, name)) for event in self.events])

    def _pairs(self, related: object) -> Relation:
        assert callable(related)
        numbered = list(enumerate(self.events))
        return Relation.of(self.count, ((a, b) for a, x in numbered for b, y in numbered if a != b and related(x, y)))

    @cached_property
    def all(self) -> int:
        """All events."""
        return (1 << self.count) - 1

    @cached_property
    def initial(self) -> int:
        """The writes of initial values (8.2.6)."""
        return self.set_of([event.thread < 0 for event in self.events])

    @cached_property
    def reads(self) -> int:
        """Read operations, and the reads that are part of reductions."""
        return self._where("reads")

    @cached_property
    def writes(self) -> int:
        """Write operations: atomic ones too, if they result in a write (8.4)."""
        return self._where("writes")

    @cached_property
    def memory(self) -> int:
        """Memory operations (8.4)."""
        return self.reads | self.writes

    @cached_property
    def strong(self) -> int:
        """Strong operations (8.4)."""
        return self._where("strong")

    @cached_property
    def fences(self) -> int:
        """Memory fences."""
        return self._where("fence")

    @cached_property
    def sc_fences(self) -> int:
        """The fences that are `fence.sc`."""
        return self.fences & self.set_of([event.order == "sc" for event in self.events])

    @cached_property
    def program_order(self) -> Relation:
        """8.9.1."""
        numbered = list(enumerate(self.events))
        return Relation.of(
            self.count, ((a, b) for a, x in numbered for b, y in numbered[a + 1 :] if x.thread == y.thread >= 0)
        )

    @cached_property
    def same_location(self) -> Relation:
        """Memory operations on one memory location, by whatever address."""
        return self._pairs(
            lambda x, y: (
                x.variable is not None and y.variable is not None and x.variable.location == y.variable.location
            )
        )

    @cached_property
    def overlap(self) -> Relation:
        """8.2.1: memory operations on one location by one virtual address; here all overlap is complete."""
        return self._pairs(
            lambda x, y: x.variable is not None and y.variable is not None and x.variable.address == y.variable.address
        )

    @cached_property
    def same_proxy(self) -> Relation:
        """8.6. A memory fence is of the generic proxy."""
        return self._pairs(lambda x, y: x.proxy == y.proxy)

    @cached_property
    def same_cta(self) -> Relation:
        """Operations of threads of one CTA."""
        return self._pairs(
            lambda x, y: bool(x.position and y.position and x.position.at("cta") == y.position.at("cta"))
        )

    @cached_property
    def in_scope(self) -> Relation:
        """8.5: both have a scope, and each scope includes the thread of the other."""

        def includes(x: Event, y: Event) -> bool:
            if x.scope is None or x.position is None or y.position is None:
                return False
            return x.position.at(x.scope) == y.position.at(x.scope)

        return self._pairs(lambda x, y: includes(x, y) and includes(y, x))

    @cached_property
    def morally_strong(self) -> Relation:
        """8.7: of one thread, or both strong and in each other's scope; by one proxy; with complete overlap."""
        together = self.program_order | self.program_order.inverse() | self.in_scope.within(self.strong, self.strong)
        others = self.all & ~self.memory
        same_barrier = (
            self.overlap | self._everything.within(others, self.all) | self._everything.within(self.all, others)
        )
        return together & self.same_proxy & same_barrier

    @cached_property
    def _everything(self) -> Relation:
        return Relation((self.all,) * self.count)

    @cached_property
    def release_patterns(self) -> Relation:
        """8.8: from the first operation of a release pattern to its write.

        A release operation, alone or followed by a strong write on the same location; or a fence followed by one.
        """
        releases = self._where("releases")
        strong_writes = self.writes & self.strong
        on_location = (self.program_order & self.overlap).optional()
        operations = on_location.within(releases & self.memory, strong_writes)
        return operations | self.program_order.within(releases & self.fences, strong_writes)

    @cached_property
    def acquire_patterns(self) -> Relation:
        """8.8: from the read of an acquire pattern to its last operation; reductions form none (8.11.1)."""
        acquires = self._where("acquires")
        strong_reads = self.reads & self.strong & ~self._where("reduces")
        on_location = (self.program_order & self.overlap).optional()
        operations = on_location.within(strong_reads, acquires & self.memory & self.reads)
        return operations | self.program_order.within(strong_reads, acquires & self.fences)

    @cached_property
    def starts(self) -> Relation:
        """8.2.6: initial values are written before any thread starts."""
        return self._everything.within(self.initial, self.all & ~self.initial)

    @cached_property
    def conflicts(self) -> Relation:
        """8.7.1: operations on one location, at least one of which writes."""
        either = self.same_location
        return either.within(self.writes, self.memory) | either.within(self.memory, self.writes)


class Order:
    """The relations of an execution in which each read has its write, fences have an order and barriers phases.

    `reads_from` relates a write to a read that returns its value, `fence_sc` is the Fence-SC order (8.9.3), and
    `barriers` relates arrivals at a barrier to the waits of the same phase.
    """

    def __init__(self, static: Static, reads_from: Relation, fence_sc: Relation, barriers: Relation) -> None:
        self.static, self.reads_from, self.fence_sc, self.barriers = static, reads_from, fence_sc, barriers

    @cached_property
    def observation(self) -> Relation:
        """8.9.2: a write to a morally strong read of its value, perhaps through atomic operations in between."""
        return (self.reads_from & self.static.morally_strong).closure()

    @cached_property
    def synchronizes(self) -> Relation:
        """8.9.4: by the order of `fence.sc`, by barriers, and from release patterns to acquire patterns."""
        static = self.static
        patterns = static.release_patterns @ self.observation @ static.acquire_patterns
        return self.fence_sc | self.barriers | (patterns & static.morally_strong)

    @cached_property
    def base_causality(self) -> Relation:
        """8.9.5: program order and synchronization, and both in turns."""
        return (self.static.program_order | self.synchronizes).closure()

    @cached_property
    def proxy_preserved(self) -> Relation:
        """8.9.5: what of base causality order holds between memory operations, given their addresses and proxies."""
        static, base = self.static, self.base_causality
        generic = static.memory & static.set_of([event.proxy == GENERIC for event in static.events])
        direct = (base & static.overlap).within(generic, generic)
        same = base & static.overlap & static.same_proxy & static.same_cta
        if not static._where("proxy_fence"):
            return direct | same
        # An operation by another proxy counts from, or up to, a fence of that proxy in its own CTA along the path.
        fences = static._pairs(lambda x, y: x.memory and y.proxy_fence == x.proxy != GENERIC) & static.same_cta
        here = Relation(tuple(1 << number if generic >> number & 1 else 0 for number in range(static.count)))
        out_of = here | (base & fences)
        into = here | (base & fences.inverse())
        fenced = (out_of @ base @ into) & static.overlap
        alias = static.set_of([event.proxy_fence == "alias" for event in static.events])
        by_alias = (out_of @ base.within(static.all, alias) @ base @ into) & static.same_location
        return direct | same | fenced | by_alias

    @cached_property
    def causality(self) -> Relation:
        """8.9.5: proxy-preserved base causality order, perhaps after a step in observation order."""
        preserved = self.proxy_preserved
        return preserved | (self.observation @ preserved) | self.static.starts

    @cached_property
    def races(self) -> list[tuple[int, int]]:
        """8.7.1: conflicting operations that causality order does not relate and that are not morally strong."""
        related = self.causality | self.causality.inverse() | self.static.morally_strong
        return [(a, b) for a, b in self.static.conflicts - related if a < b]

    @cached_property
    def clear_races(self) -> list[tuple[int, int]]:
        """The races but those of operations that the same thread followed by a write there, which was then observed.

        By the letter of 8.9.5, what follows an observation in causality order follows the observed write alone.
        """
        static = self.static
        earlier = static.program_order & static.overlap
        hidden = earlier @ self.observation @ self.proxy_preserved
        return [(a, b) for a, b in self.races if (a, b) not in hidden and (b, a) not in hidden]

    def satisfies_fence_sc(self) -> bool:
        """8.10.2: Fence-SC order does not contradict causality order.

        Causality order relates memory operations; between fences it is base causality order that is meant.
        """
        return (self.fence_sc @ self.base_causality).irreflexive()

    def coherence_orders(self, budget: Budget) -> Iterator[Relation]:
        """The coherence orders (8.9.6) with which the execution satisfies all other axioms.

        Writes are related if they are morally strong or related in causality order, and otherwise only as far as
        transitivity asks for it: more would allow nothing that this does not.
        """
        static = self.static
        if not self.satisfies_fence_sc() or not (self.reads_from @ self.causality).irreflexive():
            return  # the second is 8.10.6, point 1: a read does not read from a write that it precedes
        # 8.10.1; and an atomic operation follows what it reads from, else both contradict 8.10.5.
        forced = (self.causality & static.same_location) | (self.reads_from & static.morally_strong)
        forced = forced.within(static.writes, static.writes).closure()
        free = [
            (a, b)
            for a, b in combinations(members(static.writes), 2)
            if (a, b) in static.morally_strong and (a, b) not in forced and (b, a) not in forced
        ]
        yield from (order for order in _orientations(forced, free, budget) if self._allows(order))

    def _allows(self, coherence: Relation) -> bool:
        static = self.static
        strong = static.morally_strong
        # 8.9.7: a read precedes a write if it reads from one that this follows.
        from_reads = self.reads_from.inverse() @ coherence
        from_reads -= Relation(tuple(1 << number for number in range(static.count)))
        # 8.10.3: no morally strong write comes between what an atomic operation reads and what it writes.
        if from_reads & strong & coherence.inverse():
            return False
        # 8.10.6, point 2: a read does not read from a write older than one that precedes it in causality order.
        if not (from_reads @ self.causality).irreflexive():
            return False
        # 8.10.5: sequential consistency per location, among operations that are pairwise morally strong.
        communication = (self.reads_from | coherence | from_reads) & strong
        return (communication | (static.program_order & static.overlap & static.same_proxy)).acyclic()


def _orientations(order: Relation, free: Sequence[tuple[int, int]], budget: Budget) -> Iterator[Relation]:
    """All ways to extend an order, transitively, so that it relates each of the free pairs."""
    budget.spend()
    if not order.irreflexive():
        return
    if not free:
        yield order
        return
    (a, b), *rest = free
    if (a, b) in order or (b, a) in order:
        yield from _orientations(order, rest, budget)
        return
    count = len(order.rows)
    for pair in ((a, b), (b, a)):
        yield from _orientations((order | Relation.of(count, [pair])).closure(), rest, budget)


def fence_sc_orders(static: Static, budget: Budget) -> Iterator[Relation]:
    """The partial orders that relate every pair of morally strong `fence.sc` operations, in program order too."""
    between = static.morally_strong.within(static.sc_fences, static.sc_fences)
    forced = static.program_order & between
    free = [(a, b) for a, b in between if a < b and (a, b) not in forced and (b, a) not in forced]
    for order in _orientations(forced.closure(), free, budget):
        yield order & between
