"""The obligations of a kernel, and how each is discharged: bounds, alignment, barriers, races."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from ptxlab import ir
from ptxlab.flow.expressions import ADDRESS, PARAMETER, Atom, Linear, linear
from ptxlab.flow.symbolic import LONG, WORD

from .execution import Execution
from .integers import Integers, Poly, Space
from .intervals import Pair, Reached, intervals, loops_of
from .segments import Access, Decision, Path, Segment
from .solver import Bits, check, z3
from .terms import AXES, Loop, is_uniform, leaves

BASE_ALIGNMENT = 16  # of array arguments
QUICK, PATIENT = 3_000, 15_000  # milliseconds
DYNAMIC = "dynamic shared memory"
_UNSIGNED = {32: WORD, 64: LONG}


@dataclass(frozen=True)
class Object:
    """Memory that addresses are in: a variable, dynamic shared memory, or an array that a parameter points to."""

    name: str
    space: str
    bytes: int | None
    """None: as many as a contract says."""
    align: int
    key: object


@dataclass(frozen=True)
class Obligation:
    """Something that was to be shown, and whether it was."""

    kind: str
    lines: tuple[int, ...]
    status: str  # "proved", "open"
    about: str
    reason: str = ""
    help: str = ""
    argument: str = ""
    again: Callable[[int], Any] | None = None
    """Asks once more, perhaps with other ranges: a model in which it does not hold, or None."""
    retry: Callable[[], Obligation] | None = None
    """Tries to show it once more, perhaps with other contracts."""


@dataclass(eq=False)
class Group:
    """Accesses of one kind that differ in a constant distance only: offsets from `offset` on."""

    object: Object
    offset: Linear
    distances: list[tuple[int, Access]]
    turns: dict[Loop, int] = field(default_factory=dict)

    @property
    def first(self) -> Access:
        """One of them."""
        return self.distances[0][1]

    @property
    def lines(self) -> tuple[int, ...]:
        """The lines of all of them."""
        return tuple(sorted({access.line for _, access in self.distances}))


class Proof:
    """The proof of one kernel with a block."""

    def __init__(self, execution: Execution, shared: int | None, element_sizes: dict[str, int]) -> None:
        self.execution, self.terms, self.shared = execution, execution.terms, shared
        self.accesses = [access for segment in execution.notes.segments for access in segment.accesses]
        self.sizes = element_sizes
        self.obligations: list[Obligation] = []
        self.ranges: dict[str, tuple[int, int]] = {}
        """The variables of all questions: sizes, lengths and the grid."""
        self.contracts: list[Callable[[Space], Any]] = []
        self._exact: dict[tuple[Path, tuple[Loop, ...]], set[Linear | Atom]] = defaultdict(set)
        self._objects: dict[Linear, tuple[Object, Linear] | None] = {}
        self._pointers = _pointers(self.accesses)
        for access in self.accesses:
            found = self.located(access)
            if found is not None and found[0].bytes is None:
                self.sizes.setdefault(found[0].name, access.element)

    # Objects.

    def located(self, access: Access) -> tuple[Object, Linear] | None:
        """The object that an address is in, and its distance from the start; None if that is not known."""
        if access.address not in self._objects:
            self._objects[access.address] = self._locate(access)
        return self._objects[access.address]

    def _locate(self, access: Access) -> tuple[Object, Linear] | None:
        address, space = access.address, access.space
        bases: list[Atom] = []
        window = None
        for atom, factor in address.terms:
            if atom.kind == "window" and factor == 1:
                window = atom
            elif factor == 1 and (atom.kind == ADDRESS or (atom.kind == PARAMETER and atom in self._pointers)):
                bases.append(atom)
        if len(bases) != 1:
            return None
        (base,) = bases
        offset = address.plus(linear(address.type, 0, {base: 1}), -1)
        if window is not None:
            offset = offset.plus(linear(address.type, 0, {window: 1}), -1)
        if base.kind == PARAMETER:
            assert isinstance(base.detail, tuple)
            variable, place = base.detail
            name = f"{variable.title}+{place}" if place else variable.title
            is_global = space in ("global", "generic") and window is None
            return (Object(name, "global", None, BASE_ALIGNMENT, (id(variable), place)), offset) if is_global else None
        variable = base.detail
        assert isinstance(variable, ir.Variable)
        own = variable.state_space.partition("::")[0]
        if space not in (own, "generic") or (space == "generic") != (window is not None or own == "global"):
            return None
        elements = variable.elements
        if elements is None and own == "shared":
            return Object(DYNAMIC, own, self.shared or 0, variable.align or 1, DYNAMIC), offset
        if elements is None:
            return None
        width = variable.type.width // 8
        align = variable.align or width * variable.vector
        return Object(variable.title, own, elements * width, align, id(variable)), offset

    def forget(self) -> None:
        """Forget what was shown not to wrap: the contracts are others now."""
        self._exact.clear()

    def groups(self, reached: Iterable[Reached]) -> list[Group]:
        """Accesses, those together that differ in a constant distance."""
        found: dict[tuple[Any, ...], Group] = {}
        for one in reached:
            access = one.access
            place = self.located(access)
            if place is None:
                continue
            object, offset = place
            needed = {*access.segment.loops, *loops_of([*access.path, offset])}
            turns = {loop: turn for loop, turn in one.turns.items() if loop in needed}
            key = (object.key, offset.terms, offset.type, access.path, access.kind, access.order, access.bytes,
                   access.align, frozenset(turns.items()), access.segment.loops)  # fmt: skip
            group = found.get(key)
            if group is None:
                group = found[key] = Group(object, offset, [], turns)
            group.distances.append((offset.constant, access))
        for group in found.values():
            group.distances.sort(key=lambda one: one[0])
            group.offset = linear(group.offset.type, group.distances[0][0], dict(group.offset.terms))
        return list(found.values())

    # Translations.

    def space(self) -> Space:
        """The variables of a question, with those that contracts may name."""
        found = Space()
        for name, (low, high) in self.ranges.items():
            found.variable(name, low, high)
        for contract in self.contracts:
            found.facts.append(contract(found))
        return found

    def integers(self, pair: Pair, thread: int, space: Space, access: Access) -> Integers:
        """A translation to integers for one of two threads, at an access."""
        path, loops = access.path, access.segment.loops
        found = Integers(lambda atom: pair.name(atom, thread), space, self._exact[path, loops])
        tag = "" if pair.same_block else f"@{thread}"
        for axis in AXES:
            number = space.variable(f"%ctaid.{axis}{tag}", 0, self.ranges[f"%nctaid.{axis}"][1] - 1)
            found.facts.append(space.at_most(number.plus(Poly.of(1)), Poly({(f"%nctaid.{axis}",): 1})))
        return found

    def bits(self, pair: Pair, thread: int) -> Bits:
        """A translation to bit-vectors for one of two threads."""
        return Bits(lambda atom: pair.name(atom, thread))

    @staticmethod
    def enter(translation: Bits | Integers, pair: Pair, thread: int, path: Path, loops: Sequence[Loop],
              values: Sequence[Linear]) -> None:  # fmt: skip
        """Take for granted what holds for a thread at an access."""
        limits, facts = pair.facts([*path, *values], loops, thread)
        translation.assume([*limits, *path, *facts])

    # Bounds and alignment.

    def show_known(self) -> None:
        """Note the accesses of which not even the array is known."""
        for access in self.accesses:
            if self.located(access) is None:
                why, help = _unknown_address(access, self._pointers)
                self._note("bounds", [access.line], "open", "an access whose array is not known", why, help)

    def show_bounds(self, objects: Callable[[Object], bool], milliseconds: int) -> list[Obligation]:
        """Show that accesses to some objects are in bounds and aligned, for any thread."""
        found = []
        for group in self.groups(Reached(access, {}) for access in self.accesses):
            if objects(group.object):
                found += [self._bound(group, milliseconds), self._alignment(group, milliseconds)]
        return found

    def length(self, object: Object) -> Poly:
        """The bytes of an object."""
        if object.bytes is not None:
            return Poly.of(object.bytes)
        return Poly({(f"len({object.name})",): self.sizes[object.name]})

    def _bound(self, group: Group, milliseconds: int) -> Obligation:
        pair = Pair(None, ({}, {}), same_block=True)
        access, lowest = group.first, group.distances[0][0]
        highest = max(distance + access.bytes for distance, _ in group.distances) - lowest
        about = f"{group.object.name} in bounds"
        low, high = group.offset.bounds
        if group.object.bytes is not None and low >= 0 and high + highest <= group.object.bytes:
            return Obligation("bounds", group.lines, "proved", about, argument="ranges")
        status, _ = self._outside(group, milliseconds)
        if status != "unsat" and group.object.bytes is not None:
            b = self.bits(pair, 0)
            self.enter(b, pair, 0, access.path, access.segment.loops, [group.offset])
            value = z3.ZeroExt(8, b.value(group.offset))
            limit = z3.BitVecVal(group.object.bytes, value.size())
            again, _ = check([*b.facts, z3.UGT(value + highest, limit)], milliseconds)
            if again == "unsat":
                return Obligation("bounds", group.lines, "proved", about, argument="bit-vectors")
        if status == "unsat":
            return Obligation("bounds", group.lines, "proved", about, argument="integers")
        reason, help = self._why(status, [*access.path, group.offset], group.object)
        return Obligation("bounds", group.lines, "open", about, reason, help,
                          again=lambda limit: self._outside(group, limit, True)[1])  # fmt: skip

    def _outside(self, group: Group, milliseconds: int, products: bool = False) -> tuple[str, Any]:
        """Whether a thread can be outside of an object, by integers."""
        pair, access = Pair(None, ({}, {}), same_block=True), group.first
        highest = max(distance for distance, _ in group.distances) + access.bytes - group.distances[0][0]
        space = self.space()
        t = self.integers(pair, 0, space, access)
        self.enter(t, pair, 0, access.path, access.segment.loops, [group.offset])
        start = t.number(group.offset.as_type(_UNSIGNED[group.offset.type.width]))
        inside = space.at_most(start.plus(Poly.of(highest)), self.length(group.object))
        lemmas = space.products() if products else space.lemmas()
        return check([*t.facts, z3.Not(inside), *lemmas, *space.facts], milliseconds)

    def _alignment(self, group: Group, milliseconds: int) -> Obligation:
        access = group.first
        about = f"{group.object.name} aligned to {access.align}"
        numbers = [distance for distance, _ in group.distances]
        factors = [group.object.align, *numbers, *(factor for _, factor in group.offset.terms)]
        if all(factor % access.align == 0 for factor in factors):
            return Obligation("alignment", group.lines, "proved", about, argument="coefficients")
        if group.object.align % access.align:
            reason = f"`{group.object.name}` is aligned to {group.object.align} bytes only"
            return Obligation("alignment", group.lines, "open", about, reason)
        status, _ = self._misaligned(group, milliseconds)
        if status != "unsat":
            pair = Pair(None, ({}, {}), same_block=True)
            b = self.bits(pair, 0)
            self.enter(b, pair, 0, access.path, access.segment.loops, [group.offset])
            value = b.value(group.offset)
            distances = {(number - numbers[0]) % access.align for number in numbers}
            wrong = z3.Or(*((value + distance) & (access.align - 1) != 0 for distance in distances))
            if check([*b.facts, wrong], milliseconds)[0] == "unsat":
                status = "unsat"
        if status == "unsat":
            return Obligation("alignment", group.lines, "proved", about, argument="integers")
        reason, help = self._why(status, [*access.path, group.offset], group.object)
        return Obligation("alignment", group.lines, "open", about, reason, help,
                          again=lambda limit: self._misaligned(group, limit)[1])  # fmt: skip

    def _misaligned(self, group: Group, milliseconds: int) -> tuple[str, Any]:
        """Whether a thread can be at an address that is not a multiple of what it must be, by integers."""
        pair, access = Pair(None, ({}, {}), same_block=True), group.first
        space = self.space()
        t = self.integers(pair, 0, space, access)
        self.enter(t, pair, 0, access.path, access.segment.loops, [group.offset])
        start = t.number(group.offset)
        rests = [space.divided(start.plus(Poly.of(number - group.distances[0][0])), access.align)[1]
                 for number in sorted({distance for distance, _ in group.distances})]  # fmt: skip
        wrong = z3.Or(*(space.formula(rest) != 0 for rest in rests))
        return check([*t.facts, *space.facts, wrong], milliseconds)

    # Barriers.

    def show_barriers(self, milliseconds: int) -> None:
        """Show that all threads of a block take the same decisions on the way to each barrier."""
        execution = self.execution
        if not execution.barriers:
            return
        facts = execution.facts
        blocks = {facts.flow.block_at(at) for at in execution.barriers}
        pending, deciding = list(blocks), set[int]()
        while pending:
            for branch in facts.control.branches.get(pending.pop(), ()):
                if branch not in deciding:
                    deciding.add(branch)
                    pending.append(branch)
        for decision in execution.notes.decisions:
            if facts.flow.block_at(decision.at) in deciding:
                self.obligations.append(self._uniform(decision, milliseconds))

    def _uniform(self, decision: Decision, milliseconds: int) -> Obligation:
        def same(loop: Loop) -> bool:
            return loop in decision.loops or loop.is_uniform or loop.has_barrier

        about = "all threads of a block decide alike on the way to a barrier"
        if is_uniform([decision.condition], same):
            return Obligation("barrier", (decision.line,), "proved", about, argument="uniform by construction")
        turns = dict.fromkeys(decision.loops, 0)
        start = _At(decision.loops)
        pair = Pair(start, (turns, turns), same_block=True)  # type: ignore[arg-type]
        formulas: list[Any] = []
        conditions = []
        for thread in (0, 1):
            b = self.bits(pair, thread)
            self.enter(b, pair, thread, decision.path, decision.loops, [decision.condition])
            conditions.append(b.holds(decision.condition))
            formulas += b.facts
        status, _ = check([*formulas, conditions[0] != conditions[1]], milliseconds)
        if status == "unsat":
            return Obligation("barrier", (decision.line,), "proved", about, argument="bit-vectors, two threads")
        reason, help = self._why(status, [decision.condition], None)
        if status == "sat":
            reason = reason or "threads of one block may decide differently"
        return Obligation("barrier", (decision.line,), "open", about, reason, help,
                          again=lambda limit: self._divided(decision, limit))  # fmt: skip

    def _divided(self, decision: Decision, milliseconds: int) -> Any:
        """A model in which two threads of a block decide differently."""
        turns = dict.fromkeys(decision.loops, 0)
        pair = Pair(_At(decision.loops), (turns, turns), same_block=True)  # type: ignore[arg-type]
        space = self.space()
        formulas: list[Any] = []
        conditions = []
        for thread in (0, 1):
            at = Access(decision.at, decision.line, "load", "", 0, 1, 1, "", decision.condition, decision.path,
                        Segment(decision.loops))  # fmt: skip
            t = self.integers(pair, thread, space, at)
            self.enter(t, pair, thread, decision.path, decision.loops, [decision.condition])
            conditions.append(t.holds(decision.condition))
            formulas += t.facts
        return check([*formulas, conditions[0] != conditions[1], *space.products(), *space.facts], milliseconds)[1]

    # Races.

    def show_races(self, milliseconds: int, deadline: float) -> None:
        """Show that no two accesses of different threads conflict."""
        done: set[tuple[Any, ...]] = set()
        for interval in intervals(self.execution.notes.segments, self.execution.entry):
            groups = [group for group in self.groups(interval.reached) if group.object.space in ("shared", "global")]
            for one, other in _conflicting(groups):
                key = (id(interval.start) if one.turns or other.turns else 0, *_identity(one), *_identity(other))
                if key not in done:
                    done.add(key)
                    pair = Pair(interval.start, (one.turns, other.turns), same_block=True)
                    self.obligations.append(self._race(one, other, pair, milliseconds, deadline))
        groups = [one for one in self.groups(Reached(access, {}) for access in self.accesses)
                  if one.object.space == "global"]  # fmt: skip
        for one, other in _conflicting(groups):
            pair = Pair(None, ({}, {}), same_block=False)
            self.obligations.append(self._race(one, other, pair, milliseconds, deadline))

    def _race(self, one: Group, other: Group, pair: Pair, milliseconds: int, deadline: float) -> Obligation:
        kind = f"race {one.object.space}"
        where = "a block" if pair.same_block else "different blocks"
        about = f"no race on {one.object.name} between threads of {where}"
        lines = tuple(dict.fromkeys((*one.lines, *other.lines)))
        if monotonic() > deadline:
            return Obligation(kind, lines, "open", about, "the time for the proof is over", "raise `--timeout`")
        ways: list[tuple[Callable[..., tuple[str, Any, str]], int]] = [
            (self._race_bits, milliseconds), (self._race_integers, milliseconds)
        ]  # fmt: skip
        if one.object.space != "shared":  # there bits rarely help
            ways = [ways[1], (self._race_bits, milliseconds // 6)]
        status = "unknown"
        for way, limit in ways:
            found, _, argument = way(one, other, pair, limit)
            if found == "unsat":
                return Obligation(kind, lines, "proved", about, argument=argument)
            if found == "sat":
                status = "sat"
        values = [*one.first.path, *other.first.path, one.offset, other.offset]
        reason, help = self._why(status, values, one.object)
        return Obligation(kind, lines, "open", about, reason or "two threads may access the same bytes", help,
                          again=lambda limit: self._race_integers(one, other, pair, limit, True)[1],
                          retry=lambda: self._race(one, other, pair, milliseconds, deadline))  # fmt: skip

    def _race_bits(self, one: Group, other: Group, pair: Pair, milliseconds: int) -> tuple[str, Any, str]:
        formulas: list[Any] = []
        starts = []
        for thread, group in enumerate((one, other)):
            b = self.bits(pair, thread)
            access = group.first
            self.enter(b, pair, thread, access.path, access.segment.loops, [group.offset])
            numbers = [distance for distance, _ in group.distances]
            value = b.value(group.offset)
            starts.append(_one_of(value, [number - numbers[0] for number in numbers], thread, formulas))
            formulas += b.facts
        formulas += self._different_bits(pair)
        a, b_ = starts
        overlap = z3.Or(z3.ULT(a - b_, other.first.bytes), z3.ULT(b_ - a, one.first.bytes))
        status, model = check([*formulas, overlap, *([a != b_] if _is_strong(one, other) else [])], milliseconds)
        return status, model, "bit-vectors, two threads"

    def _race_integers(
        self, one: Group, other: Group, pair: Pair, milliseconds: int, products: bool = False
    ) -> tuple[str, Any, str]:
        formulas: list[Any] = []
        starts: list[Poly] = []
        space = self.space()
        for thread, group in enumerate((one, other)):
            access = group.first
            t = self.integers(pair, thread, space, access)
            self.enter(t, pair, thread, access.path, access.segment.loops, [group.offset])
            numbers = [distance for distance, _ in group.distances]
            start = t.number(group.offset.as_type(_UNSIGNED[group.offset.type.width]))
            highest = numbers[-1] - numbers[0] + access.bytes
            formulas.append(space.at_most(start.plus(Poly.of(highest)), self.length(group.object)))
            chosen = sorted({number - numbers[0] for number in numbers})
            if len(chosen) > 1:
                choice = space.fresh(0, chosen[-1])
                formulas.append(z3.Or(*(space.formula(choice) == number for number in chosen)))
                start = start.plus(choice)
            starts.append(start)
            formulas += t.facts
        a, b = starts
        last = Poly.of(-1)
        overlap = [space.at_most(a, b.plus(Poly.of(other.first.bytes)).plus(last)),
                   space.at_most(b, a.plus(Poly.of(one.first.bytes)).plus(last))]  # fmt: skip
        differ = self._different(pair, space)
        partial = [space.formula(a) != space.formula(b)] if _is_strong(one, other) else []
        lemmas = space.products() if products else [*space.lemmas(), *space.digits(a, b)]
        status, model = check([*formulas, *overlap, differ, *partial, *lemmas, *space.facts], milliseconds)
        return status, model, "integers, two threads"

    def _different(self, pair: Pair, space: Space) -> Any:
        """That two threads are not the same."""
        found = []
        for axis, extent in zip(AXES, self.terms.block, strict=True):
            name, most = (f"%tid.{axis}", extent - 1) if pair.same_block else (
                f"%ctaid.{axis}", self.ranges[f"%nctaid.{axis}"][1] - 1)  # fmt: skip
            one, two = (space.variable(f"{name}@{thread}", 0, most) for thread in (0, 1))
            found.append(z3.Not(space.equal(one, two)))
        return z3.Or(*found)

    def _different_bits(self, pair: Pair) -> list[Any]:
        if not pair.same_block:
            return [z3.Or(*(z3.BitVec(f"%ctaid.{axis}@0", 32) != z3.BitVec(f"%ctaid.{axis}@1", 32) for axis in AXES))]
        found: list[Any] = []
        either = []
        for axis, extent in zip(AXES, self.terms.block, strict=True):
            one, other = (z3.BitVec(f"%tid.{axis}@{thread}", 32) for thread in (0, 1))
            found += [z3.ULT(one, extent), z3.ULT(other, extent)]
            either.append(one != other)
        return [*found, z3.Or(*either)]

    # Words.

    def _why(self, status: str, values: Sequence[Linear], object: Object | None) -> tuple[str, str]:
        """Why something is not shown, and what would help."""
        symbols = sorted({str(atom.detail) for atom in leaves(values) if atom.detail.__class__.__name__ == "Symbol"})
        if symbols:
            return f"it depends on {symbols[0]}", ""
        if status == "unknown":
            return "the solver did not decide it in its time", "raise `--timeout`, or say more with `--assume`"
        if object is not None and object.bytes is None:
            return "", f"say what `len({object.name})` is with `--assume`, or how the grid follows from the sizes"
        return "", ""

    def _note(self, kind: str, lines: Iterable[int], status: str, about: str, reason: str, help: str) -> None:
        self.obligations.append(Obligation(kind, tuple(lines), status, about, reason, help))


@dataclass(eq=False)
class _At:
    """A place in loops, in place of a segment."""

    loops: tuple[Loop, ...]


def _conflicting(groups: Sequence[Group]) -> Iterator[tuple[Group, Group]]:
    by_object: dict[object, list[Group]] = defaultdict(list)
    for group in groups:
        by_object[group.object.key].append(group)
    for alike in by_object.values():
        for number, one in enumerate(alike):
            for other in alike[number:]:
                if one.first.writes or other.first.writes:
                    yield one, other


def _identity(group: Group) -> tuple[Any, ...]:
    return (group.object.key, group.offset, tuple(one for one, _ in group.distances), group.first.path,
            group.first.kind, group.first.order, group.first.bytes, frozenset(group.turns.items()))  # fmt: skip


def _is_strong(one: Group, other: Group) -> bool:
    """Whether two accesses do not race where they overlap completely: strong, of one size, in each other's scope."""
    orders = [group.first.order for group in (one, other)]
    is_strong = all(order.startswith(("relaxed", "acq", "rel", "sc")) for order in orders)
    scopes = {order.rpartition(".")[2] for order in orders}
    is_wide = scopes <= ({"gpu", "sys", "cluster", "cta"} if one.object.space == "shared" else {"gpu", "sys"})
    return is_strong and is_wide and one.first.bytes == other.first.bytes


def _one_of(value: Any, distances: Sequence[int], thread: int, formulas: list[Any]) -> Any:
    """A start, or any of several at constant distances."""
    unique = sorted(set(distances))
    if len(unique) == 1:
        return value
    choice = z3.BitVec(f"distance@{thread}", value.size())
    formulas.append(z3.Or(*(choice == one for one in unique)))
    return value + choice


def _pointers(accesses: Sequence[Access]) -> frozenset[Atom]:
    """The parameters that are addresses: each access has at most one that is declared so, or the only one there is."""
    found: set[Atom] = set()
    for access in accesses:
        wide = [atom for atom, factor in access.address.terms
                if atom.kind == PARAMETER and factor == 1 and atom.type.width == 64]  # fmt: skip
        declared = [atom for atom in wide if atom.detail[0].pointer is not None]  # type: ignore[index]
        if len(declared or wide) == 1:
            found.update(declared or wide)
    return frozenset(found)


def _unknown_address(access: Access, pointers: frozenset[Atom]) -> tuple[str, str]:
    symbols = sorted(
        {str(atom.detail) for atom in leaves([access.address]) if atom.detail.__class__.__name__ == "Symbol"}
    )
    if symbols:
        return f"its address depends on {symbols[0]}", ""
    return "its address is not a distance from one array or variable", ""
