"""All candidate executions of a litmus test, and which final states the model allows.

Every thread takes every path; every read takes its value from every write of its location; what then follows of values
must fit the paths. `fence.sc` operations have every order, barriers every grouping into phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from ptxlab.litmus.barriers import barrier_phases
from ptxlab.litmus.budget import MOST, Budget
from ptxlab.litmus.events import COMPARE, COMPUTE, Computed, Constraint, Event, Path, Paths, Read, Value, reads_of
from ptxlab.litmus.model import Order, Static, fence_sc_orders
from ptxlab.litmus.program import Litmus
from ptxlab.litmus.relation import Relation, members


@dataclass(frozen=True)
class Final:
    """A final state: the registers of each thread, and the locations, all as sorted pairs of name and value."""

    registers: tuple[tuple[tuple[str, int], ...], ...]
    memory: tuple[tuple[str, int], ...]


@dataclass
class Allowed:
    """What the model says of the executions that end in one final state."""

    executions: int = 0
    racy: int = 0
    clearly_racy: int = 0  # without races after an observed write of the same thread
    racy_but_for_fence_sc: int = 0  # those that only the order of two `fence.sc` keeps from a race count as well


@dataclass
class Judgement:
    """The final states that the model allows, and others that only the axioms forbid.

    `cut` says that loops were left after some iterations, `hangs` that a run may wait at a barrier for ever.
    """

    finals: dict[Final, Allowed]
    candidates: set[Final] = field(default_factory=set)
    cut: bool = False
    hangs: bool = False

    @property
    def forbidden(self) -> set[Final]:
        """Final states of candidate executions, none of which satisfies the axioms."""
        return self.candidates - self.finals.keys()


def judge(test: Litmus, bound: int = 1, observed: Final | None = None, most: int = MOST) -> Judgement:
    """All final states of a test that satisfy the axioms, with loops of at most `bound` further iterations.

    With a final state that was observed, only of executions that end in it. Raises `TooManyError` where there are more
    than `most`, whole or in part.
    """
    paths = [Paths(number, thread, test.variables, bound) for number, thread in enumerate(test.threads)]
    found = Judgement({})
    budget = Budget(most)
    for chosen in product(*[list(one) for one in paths]):
        known = chosen if observed is None else [_ending(*one) for one in zip(chosen, observed.registers, strict=True)]
        _judge_paths(test, known, found, budget)
    if observed is not None:
        found.finals = {final: about for final, about in found.finals.items() if final == observed}
    found.cut = any(one.cut for one in paths)
    return found


def _ending(path: Path, registers: Iterable[tuple[str, int]]) -> Path:
    """A path that is taken only if its registers end with these values."""
    end = len(path.events)
    ends = [Constraint("==", path.registers[name], value, end) for name, value in registers]
    return replace(path, constraints=(*path.constraints, *ends))


def _judge_paths(test: Litmus, chosen: Sequence[Path], found: Judgement, budget: Budget) -> None:
    candidate = Candidate(test, chosen, budget)
    none = Relation.of(candidate.static.count, ())
    for reads_from in candidate.reads_from():
        values = candidate.evaluate(reads_from)
        if values is None:
            continue
        relation = Relation.of(candidate.static.count, ((write, read) for read, write in reads_from.items()))
        found.candidates.update(candidate.finals(values, candidate.no_order))
        phases, hangs = barrier_phases(candidate.static.events, values.resolve, budget)
        found.hangs |= hangs
        for barriers in phases:
            for fence_sc in candidate.fence_orders:
                order = Order(candidate.static, relation, fence_sc, barriers)
                for coherence in order.coherence_orders(budget):
                    racy = bool(order.races)
                    unfenced = racy or (
                        bool(fence_sc) and bool(Order(candidate.static, relation, none, barriers).races)
                    )
                    for final in candidate.finals(values, coherence):
                        about = found.finals.setdefault(final, Allowed())
                        about.executions += 1
                        about.racy += racy
                        about.clearly_racy += bool(order.clear_races)
                        about.racy_but_for_fence_sc += unfenced


@dataclass
class Values:
    """What each event reads and writes, by its number."""

    read: dict[int, int]
    first: Sequence[int]

    def resolve(self, value: Value, thread: int) -> int:
        """A value of a thread as a number."""
        match value:
            case Read():
                return self.read[self.first[thread] + value.event]
            case Computed():
                return COMPUTE[value.operation](self.resolve(value.left, thread), self.resolve(value.right, thread))
        return value


class Candidate:
    """The events of one choice of paths: initial writes first, then the threads, one after another."""

    def __init__(self, test: Litmus, paths: Sequence[Path], budget: Budget) -> None:
        self.paths, self.budget = paths, budget
        initial = [
            Event(-1, None, f"{name}={variable.initial}", writes=True, variable=variable, value=variable.initial)
            for name, variable in test.variables.items()
            if variable.location == name
        ]
        events = list(initial)
        self.first: list[int] = []
        for path in paths:
            self.first.append(len(events))
            events.extend(path.events)
        self.static = Static(events)
        self.fence_orders = list(fence_sc_orders(self.static, budget))
        self.no_order = Relation.of(self.static.count, self._initial_pairs())
        self._dependencies = self._find_dependencies()

    def _initial_pairs(self) -> Iterator[tuple[int, int]]:
        """From initial values to the other writes of the location."""
        static = self.static
        return ((a, b) for a, b in static.same_location.within(static.initial, static.writes & ~static.initial))

    def _find_dependencies(self) -> Relation:
        """From reads to the events whose value, or whether they happen, depends on what was read."""
        pairs: list[tuple[int, int]] = []
        for first, path in zip(self.first, self.paths, strict=True):
            for number, event in enumerate(path.events):
                pairs.extend((first + read, first + number) for read in reads_of(event.value) if read != number)
            for constraint in path.constraints:
                for read in (*reads_of(constraint.left), *reads_of(constraint.right)):
                    later = range(constraint.before, len(path.events))
                    pairs.extend((first + read, first + number) for number in later if number > read)
        return Relation.of(self.static.count, pairs)

    def reads_from(self) -> Iterator[dict[int, int]]:
        """All choices of a write for every read that fit the paths, as far as values are known."""
        reads = list(members(self.static.reads))
        yield from self._choose(reads, [list(self._sources(read)) for read in reads], {})

    def _choose(self, reads: list[int], sources: list[list[int]], chosen: dict[int, int]) -> Iterator[dict[int, int]]:
        at = len(chosen)
        if at == len(reads):
            yield dict(chosen)
            return
        for write in sources[at]:
            self.budget.spend()
            chosen[reads[at]] = write
            if self._may_fit(chosen):
                yield from self._choose(reads, sources, chosen)
            del chosen[reads[at]]

    def _may_fit(self, chosen: dict[int, int]) -> bool:
        """Whether no constraint of a path is violated by the values that follow from the choices so far."""
        known: dict[int, int | None] = {}

        def find(value: Value, thread: int) -> int | None:
            match value:
                case Read():
                    read = self.first[thread] + value.event
                    if read not in known:
                        known[read] = None  # as long as it is being found: values from thin air stay unknown
                        if read in chosen:
                            source = self.static.events[chosen[read]]
                            known[read] = find(source.value, source.thread)
                    return known[read]
                case Computed():
                    left, right = find(value.left, thread), find(value.right, thread)
                    return None if left is None or right is None else COMPUTE[value.operation](left, right)
            return value

        for thread, path in enumerate(self.paths):
            for one in path.constraints:
                left, right = find(one.left, thread), find(one.right, thread)
                if left is not None and right is not None and not COMPARE[one.comparison](left, right):
                    return False
        return True

    def _sources(self, read: int) -> Iterator[int]:
        static = self.static
        event = static.events[read]
        assert event.variable is not None
        for write in members(static.writes):
            variable = static.events[write].variable
            assert variable is not None
            later = (read, write) in static.program_order and (read, write) in static.morally_strong
            if write != read and variable.location == event.variable.location and not later:
                yield write

    def evaluate(self, reads_from: dict[int, int]) -> Values | None:
        """What is read; none if values come out of thin air (8.10.4), or do not fit the paths."""
        static = self.static
        flow = self._dependencies | Relation.of(static.count, ((write, read) for read, write in reads_from.items()))
        if not flow.acyclic():
            return None
        values = Values({}, self.first)

        def find(read: int) -> int:
            if read not in values.read:
                source = static.events[reads_from[read]]
                for needed in reads_of(source.value):
                    find(self.first[source.thread] + needed)
                values.read[read] = values.resolve(source.value, source.thread)
            return values.read[read]

        for read in reads_from:
            find(read)
        for thread, path in enumerate(self.paths):
            for one in path.constraints:
                left, right = values.resolve(one.left, thread), values.resolve(one.right, thread)
                if not COMPARE[one.comparison](left, right):
                    return None
        return values

    def finals(self, values: Values, coherence: Relation) -> Iterator[Final]:
        """The final states: a location holds a write that no other follows in coherence order; mbarriers have none."""
        static = self.static
        registers = tuple(
            tuple(sorted((name, values.resolve(value, thread)) for name, value in path.registers.items()))
            for thread, path in enumerate(self.paths)
        )
        last: dict[str, set[int]] = {}
        for write in members(static.writes):
            event = static.events[write]
            assert event.variable is not None
            if not coherence.rows[write] and event.variable.expected is None:
                last.setdefault(event.variable.location, set()).add(values.resolve(event.value, event.thread))
        names = sorted(last)
        for combination in product(*[sorted(last[name]) for name in names]):
            yield Final(registers, tuple(zip(names, combination, strict=True)))
