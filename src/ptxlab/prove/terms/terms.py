"""Terms: what registers hold, as exact expressions of the thread, the block, the parameters and the turns of loops.

They are the sums of `flow.expressions`, built by the steps of the table. Here is what a proof adds: the block is fixed,
so `%ntid` is a number; what no expression is known for is a `Symbol`, any value at all, which knows in which loops it
was made and whether all threads of a block have the same one; predicates are simplified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from ptxlab import ir
from ptxlab.flow import Facts
from ptxlab.flow.expressions import ADDRESS, COUNTER, HELD, PARAMETER, SPECIAL, Atom, Linear, linear
from ptxlab.flow.ranges import DECISIONS, Bounds
from ptxlab.flow.steps import PREDICATE, Step
from ptxlab.flow.symbolic import LONG, MOST_BLOCKS, WORD, Symbolic
from ptxlab.isa.types import Type, type_named

from .choices import by_bit, compared, multiple, quotient
from .predicates import FALSE, TRUE, joined

SHARED_BYTES = 1 << 20  # more than any GPU has
MOST_TURNS = 1 << 31  # of a loop: an assumption of every proof
LARGEST = (1 << 31) - 1  # that an integer parameter is: another one
AXES = "xyz"
OWN_RANK = "%cluster_ctarank"
RANK = "rank"  # of a sum that is an address in shared memory: an operation that is the block of a rank
CONTENT = "content"  # an operation on an address: what memory holds there when the kernel starts
MOST = (MOST_BLOCKS, 65535, 65535)  # blocks, by axis
INTEGER = type_named("s64")
UNSIGNED = {16: type_named("u16"), 32: WORD, 64: LONG}


@dataclass(frozen=True)
class CopiedBox:
    """What a copy by a tensor map moves: its extents, the innermost first, and its bytes."""

    extents: tuple[int, ...]
    bytes: int


@dataclass(eq=False)
class Loop:
    """A loop in its place: its turns are counted by one atom, 0 in the first."""

    head: int
    line: int
    outer: tuple[Loop, ...]
    has_barrier: bool = False
    leaving: tuple[Linear, ...] | None = None
    """What decides where it is left, once that is known."""
    changes: list[tuple[Symbol, Linear, Linear | None]] = field(default_factory=list)
    """Of each register without a form: its symbol, what it is at first, and after a turn."""
    limits: list[Linear] = field(default_factory=list)
    """How many turns there can be at most: in every turn, and after the loop."""
    guesses: list[Linear] = field(default_factory=list)
    """What may limit them in place of that, as it does if it is shown."""
    needed: list[Linear] = field(default_factory=list)
    """Those of the limits with which it is known in which turn the loop was left."""
    facts: list[Linear] = field(default_factory=list)
    """What else holds in every turn, and after the loop."""
    rooms: list[Linear] = field(default_factory=list)
    """That its end and one more step fit their type, where that is not so for all sizes."""
    counter: Linear = FALSE
    base: Linear = FALSE
    """Of a loop in a loop, if a ring continues in it: how many turns it has made in the turns before of that loop."""
    entry: tuple[Linear, ...] = ()
    """What holds where it is entered."""
    stays: tuple[Linear, ...] = ()
    """What holds at the end of each turn that another one follows."""
    repeats: bool = False
    """Whether any turn can follow another."""
    forms: list[tuple[Linear, Linear, Linear | None]] = field(default_factory=list)
    """Of each register that has one: its form in any turn, what it is at first, and after a turn."""
    totals: dict[Atom, tuple[Linear, Linear]] = field(default_factory=dict)
    """Numbers of turns that loops in it have made so far; what each is at first, and after a turn."""
    group: tuple[int, int] | None = None
    """Of a loop that groups of threads take each by itself: which group this is, and how many there are."""
    passed: Linear | None = None
    """Of such a loop, if groups take turns: how many turns the inner loop of each is taken to make in one turn of it.
    Those of other groups are counted in `totals`."""
    exits: tuple[tuple[Linear, ...], ...] = ()
    """What holds where it is left, by each way out of it."""
    returns: bool = False
    """Whether a thread may exit in it."""

    @property
    def ends(self) -> tuple[Linear, ...]:
        """What holds after it as it has ended, if there is one way out of it."""
        return self.exits[0] if len(self.exits) == 1 else ()

    def __repr__(self) -> str:
        return f"turn of the loop at line {self.line}"

    @property
    def turn(self) -> Atom:
        """The number of a turn, as an atom."""
        ((atom, _),) = self.counter.terms
        return atom

    def later(self, turns: int) -> Linear:
        """The number of the turn that comes so many turns later; of a negative number, earlier."""
        return self.counter.plus(linear(LONG, turns))

    @property
    def is_uniform(self) -> bool:
        """Whether all threads of a block that enter it leave it in the same turn."""
        return self.leaving is not None and is_uniform(self.leaving, self.is_around)

    def is_around(self, other: Loop) -> bool:
        """Whether threads in one turn of this are in one turn of another, or left it in the same."""
        return other is self or other in self.outer or other.is_uniform


@dataclass(eq=False)
class Symbol:
    """A value of which nothing is known but where it comes from."""

    reason: str
    line: int
    loops: tuple[Loop, ...]
    is_uniform: bool = False
    address: Linear | None = None
    """Where it was loaded from: it is the same only in threads that have the same address."""
    columns: int = 0
    """Of the address of tensor memory: how many are allocated."""
    later: Symbol | None = None
    """Of a value in the turn before: that of this turn, which is the same in all threads if this is."""
    first: Linear | None = None
    """Of a register that a loop changes: what it is before that, if it is a constant."""
    cycle: tuple[int, tuple[int, ...]] | None = None
    """Of such a register: the head of a loop in that loop in which it goes round, and its values there."""
    head: int | None = None
    """Of the number of turns that a loop has made in the turns before of a loop around it: its head."""
    facts: list[Linear] = field(default_factory=list)
    """What else is known of it, wherever a thread has it."""

    def __repr__(self) -> str:
        return f"{self.reason} (line {self.line})"

    def is_same(self, is_counter: Callable[[Loop], bool]) -> bool:
        """Whether all threads of a block have it, in the turns of loops for which `is_counter` says so."""
        is_known = (self.later or self).is_uniform and all(is_counter(loop) for loop in self.loops)
        return is_known and (self.address is None or is_uniform([self.address], is_counter))


class Terms(Symbolic):
    """Builds the terms of one kernel with a block of given extents."""

    def __init__(
        self, facts: Facts, block: tuple[int, int, int], shared: int = 0, boxes: Mapping[str, CopiedBox] | None = None,
        ranges: Mapping[str, Bounds] | None = None, cluster: tuple[int, int, int] = (1, 1, 1),
    ) -> None:  # fmt: skip
        super().__init__(facts)
        self.block, self.shared, self._ranges, self.cluster = block, shared, ranges or {}, cluster
        self._most = (LARGEST // block[0], *MOST[1:])
        self.ranks = prod(cluster)
        """The blocks of a cluster. What is said of a block in a proof holds of all threads of its cluster."""
        self.boxes = boxes or {}
        """What a copy by each tensor map moves."""

    # Atoms.

    def of_rank(self, rank: Linear) -> Linear:
        """What is added to the address of a block's own shared memory for that of the block of a rank."""
        step, key = Step(RANK, LONG, (0,), WORD), (RANK, rank)
        if key not in self._atoms:
            most = self.ranks * SHARED_BYTES
            self._atoms[key] = Atom(RANK, None, LONG, 0, most, step, (rank,), 1 + rank.depth)
        return linear(LONG, 0, {self._atoms[key]: 1})

    def content(self, address: Linear, type: Type) -> Linear:
        """What memory holds at an address when the kernel starts, as a type."""
        return self._operation(Step(CONTENT, type, (0,), LONG), (address.as_type(LONG),))

    def placed(self, address: Linear) -> Linear:
        """An address in shared memory with the rank of its block: its own block where nothing is said."""
        is_said = self.ranks == 1 or any(atom.kind == RANK for atom in atoms_of([address]))
        return address if is_said else address.plus(self.of_rank(self.rank()).as_type(address.type))

    def symbol(self, symbol: Symbol, type: Type, bounds: Bounds | None = None) -> Linear:
        """A value that is a symbol, perhaps between bounds."""
        return self._atom(HELD, symbol, type, bounds, key=id(symbol))

    def counter(self, loop: Loop, most: int = MOST_TURNS - 1) -> Linear:
        """The number of a turn of a loop, which is at most so much."""
        return self._atom(COUNTER, loop, LONG, (0, most), key=(id(loop), most))

    def bounds_of_parameter(self, variable: ir.Variable, offset: int, type: Type) -> Bounds | None:
        """What an integer parameter is between: an assumption of every proof."""
        is_whole = not offset and not variable.dimensions and type.width == variable.type.width == 32
        if not is_whole or variable.type.kind not in "usb":
            return None  # of 64 bits, it may be an array
        low, high = self._ranges.get(variable.title, (0, LARGEST))
        return (low, high) if 0 <= low <= high <= LARGEST else (0, LARGEST)

    def bounded(self, atom: Atom, most: int) -> Linear:
        """A number that is at most so much, for what is known of an atom."""
        return self._atom("number", atom, LONG, (0, most), key=(id(atom), most))

    def leaf(self, operand: ir.Operand, type: Type) -> Linear:
        """A constant, what a thread is given, or the address of a variable."""
        if isinstance(operand, ir.VariableReference):
            space = operand.variable.state_space.partition("::")[0]
            most = SHARED_BYTES if space == "shared" else (1 << 32) - 1 if space != "global" else (1 << 63) - 1
            found = self._atom(ADDRESS, operand.variable, LONG, (0, most), key=id(operand.variable))
            return found.as_type(type).plus(linear(type, operand.offset))
        return super().leaf(operand, type)

    def special(self, operand: ir.SpecialRegister, type: Type) -> Linear | None:
        """A register that is the same as long as a thread runs; None: it is not one that a proof knows."""
        axis = AXES.find(operand.component or "-")
        whole: dict[str, Callable[[], Linear]] = {
            "%laneid": self.lane,
            OWN_RANK: self.rank,
            "%cluster_nctarank": lambda: linear(WORD, self.ranks),
        }
        by_axis: dict[str, Callable[[], Sequence[Linear]]] = {
            "%ntid": lambda: [linear(WORD, extent) for extent in self.block],
            "%tid": self.threads,
            "%ctaid": self.blocks,
            "%nctaid": self.grid,
            "%cluster_ctaid": self._in_cluster,
            "%cluster_nctaid": lambda: [linear(WORD, extent) for extent in self.cluster],
            "%clusterid": self.clusters,
            "%nclusterid": lambda: list(map(self._quotient, self.grid(), self.cluster)),
        }
        if operand.name in whole:
            return self._fit(whole[operand.name](), WORD, type)
        if operand.name in by_axis and axis >= 0:
            return self._fit(by_axis[operand.name]()[axis], WORD, type)
        return None

    def grid(self) -> list[Linear]:
        """The extents of the grid, in blocks."""
        return [self._named(f"%nctaid.{axis}", (1, most)) for axis, most in zip(AXES, self._most, strict=True)]

    def threads(self) -> list[Linear]:
        """The numbers of the thread in its block, by axis."""
        return [self._named(f"%tid.{axis}", (0, extent - 1)) if extent > 1 else linear(WORD, 0)
                for axis, extent in zip(AXES, self.block, strict=True)]  # fmt: skip

    def rank(self) -> Linear:
        """The number of the block in its cluster."""
        return self._named(OWN_RANK, (0, self.ranks - 1)) if self.ranks > 1 else linear(WORD, 0)

    def clusters(self) -> list[Linear]:
        """The numbers of the cluster in its grid, by axis; without clusters, those of the block."""
        return [self._named(f"{self.cluster_name}.{axis}", (0, most // extent - 1))
                for axis, most, extent in zip(AXES, self._most, self.cluster, strict=True)]  # fmt: skip

    @property
    def cluster_name(self) -> str:
        """The register that has the number of the cluster."""
        return "%clusterid" if self.ranks > 1 else "%ctaid"

    def blocks(self) -> list[Linear]:
        """The numbers of the block in its grid, by axis."""
        parts = zip(self._in_cluster(), self.clusters(), self.cluster, strict=True)
        return [own.plus(cluster, extent) for own, cluster, extent in parts]

    def _in_cluster(self) -> list[Linear]:
        """The numbers of the block in its cluster, by axis."""
        (x, y, _), rank = self.cluster, self.rank()
        return [self._modulo(rank, x), self._modulo(self._quotient(rank, x), y), self._quotient(rank, x * y)]

    def linear_thread(self) -> Linear:
        """The number of the thread in its block."""
        found, pitch = linear(WORD, 0), 1
        for number, extent in zip(self.threads(), self.block, strict=True):
            found, pitch = found.plus(number, pitch), pitch * extent
        return found

    def place(self, thread: int) -> dict[str, int]:
        """The numbers of a thread in its block, by axis."""
        x, y, _ = self.block
        return dict(zip(AXES, (thread % x, thread // x % y, thread // x // y), strict=True))

    def lane(self) -> Linear:
        """The number of the thread in its warp."""
        return self._modulo(self.linear_thread(), 32)

    def warp(self) -> Linear:
        """The number of the warp in its block."""
        return self._quotient(self.linear_thread(), 32)

    def is_of_warp(self, value: Linear, loops: Sequence[Loop]) -> bool:
        """Whether all lanes of a warp have the same value, in the same turns of loops: by quotients of their number."""

        def is_known(value: Linear) -> bool:
            return all(
                self.is_warp_quotient(atom)
                or (bool(atom.parts) and all(map(is_known, atom.parts)))
                or is_certain([term(atom)], loops)
                for atom, _ in value.terms
            )

        return prod(self.block) % 32 == 0 and is_known(value)

    def is_warp_quotient(self, atom: Atom) -> bool:
        """Whether it is a quotient of the number of the thread which all lanes of a warp have."""
        if atom.kind not in ("//", ">>") or atom.parts[0] != self.linear_thread() or not atom.parts[1].is_constant:
            return False
        number = atom.parts[1].constant
        return number % 32 == 0 if atom.kind == "//" else number >= 5

    def thread_bits(self, mask: int) -> list[Linear]:
        """The bits of a mask in the number of the thread, neighbours together."""
        found: list[Linear] = []
        first = 0
        while mask >> first:
            if not mask >> first & 1:
                first += 1
                continue
            last = first + (~(mask >> first) & -~(mask >> first)).bit_length() - 1
            found.append(self._modulo(self._quotient(self.linear_thread(), 1 << first), 1 << last - first))
            first = last
        return found

    def dominates(self, one: int, other: int) -> bool:
        """Whether all paths to a block lead through another."""
        return self._dominates(one, other)

    def _named(self, name: str, bounds: Bounds) -> Linear:
        return self._atom(SPECIAL, name, WORD, bounds)

    def _quotient(self, value: Linear, divisor: int) -> Linear:
        return self.apply(Step("//", WORD, (0, 1), WORD), [value, linear(WORD, divisor)])

    def _modulo(self, value: Linear, divisor: int) -> Linear:
        return self.apply(Step("%", WORD, (0, 1), WORD), [value, linear(WORD, divisor)])

    # What steps make of terms.

    def apply(self, step: Step, parts: list[Linear]) -> Linear:
        """What a step makes of terms, simplified."""
        if step.operation == "window" and step.detail == "global":
            return linear(step.type, 0)  # a generic address in global memory is the address there
        if step.operation == "select":
            return self._select(step, parts)
        if step.operation == RANK:
            return self.of_rank(parts[0])
        if step.operation == CONTENT:
            return self.content(parts[0], step.type)
        if step.operation == "peer":
            own = [atom for atom, _ in parts[0].terms if atom.kind == RANK]
            return super().apply(step, parts) if own else parts[0].plus(self.of_rank(parts[1]).as_type(step.type))
        if step.type.kind == "p" and step.of.kind == "p" and len(parts) == 2:
            if parts[0].is_constant:
                parts = parts[::-1]
            simple = joined(step.operation, parts[0], parts[1])
            return super().apply(step, parts) if simple is None else simple
        if step.operation == "^" and len(parts) == 2:
            for one, other in (parts, parts[::-1]):
                if one.is_constant and one.constant == -1 and step.type.width == one.type.width:  # all bits are changed
                    return one.as_type(step.type).plus(other.as_type(step.type), -1)
            parts, base = self._without_base(parts)
            if base is not None:
                return self.apply(step, parts).as_type(step.type).plus(base)
        if step.operation == "==" and step.of.kind in "usb":
            for one, other in (parts, parts[::-1]):
                either = joined_bits(one) if other.is_constant and not other.constant else None
                if either is not None and either.type.width == step.of.width:  # `if (i == 0 && j == 0)`
                    return self.every(self.apply(step, [part, linear(step.of, 0)]) for part in either.parts)
        if step.operation == "cast" and step.type.kind in "usb" and step.type.width <= step.of.width:
            parts = [_narrowed(parts[0], step.type)]
        found = super().apply(step, parts)
        decide = DECISIONS.get(step.operation)
        if decide is not None and step.of.kind in "usb" and not found.is_constant:
            given = [self._as(part, step.of) for part in parts]
            if all(one.fits(step.of) for one in given):
                decided = decide(step, [_Range(*one.bounds) for one in given])
                return found if decided is None else linear(PREDICATE, int(decided))
            if step.operation == "==" and given[0] == given[1]:
                return TRUE
        return found

    @staticmethod
    def _without_base(parts: list[Linear]) -> tuple[list[Linear], Linear | None]:
        """Parts whose bits differ below the alignment of a variable, without its address; and that address."""
        for one, other in (parts, parts[::-1]):
            bases = [atom for atom, factor in one.terms if atom.kind == ADDRESS and factor == 1]
            align = bases[0].detail.align if len(bases) == 1 and isinstance(bases[0].detail, ir.Variable) else None
            if align and 0 <= other.bounds[0] <= other.bounds[1] < align and one.type.width == other.type.width:
                return [without(one, bases[0]), other], term(bases[0]).as_type(one.type)
        return parts, None

    def _select(self, step: Step, parts: list[Linear]) -> Linear:
        condition, yes, no = parts
        if condition.is_constant:
            return yes if condition.constant else no
        if yes == no:
            return yes
        if step.type.kind == "p" and yes.is_constant and no.is_constant:
            return condition if yes.constant else self.negated(condition)
        yes, no = self._as(yes, step.type), self._as(no, step.type)
        base = linear(step.type, 0, dict(one for one in yes.terms & no.terms if one[0].kind in _BASES))
        if step.type.kind == "p":
            return super().apply(step, [condition, yes, no])
        if not base.terms:
            simple = compared(condition, yes, no) or quotient(self, condition, yes, no)
            simple = simple or by_bit(self, condition, yes, no) or multiple(self, condition, yes, no)
            return super().apply(step, [condition, yes, no]) if simple is None else simple
        found = self._select(step, [condition, yes.plus(base, -1), no.plus(base, -1)])
        return found.plus(base)  # an address in either is an address in both

    def choose(self, condition: Linear, yes: Linear, no: Linear) -> Linear:
        """One of two terms of a type."""
        return self.apply(Step("select", yes.type, (0, 1, 2), yes.type), [condition, yes, no.as_type(yes.type)])

    def negated(self, condition: Linear) -> Linear:
        """Whether a predicate does not hold."""
        return self.apply(_XOR, [condition, TRUE])

    def bit(self, value: Linear, number: int) -> Linear:
        """Whether a bit of a number is set."""
        one = linear(value.type, 1 << number)
        return self.equal(self.apply(Step("&", value.type, (0, 1), value.type), [value, one]), one)

    def every(self, conditions: Iterable[Linear]) -> Linear:
        """Whether all predicates hold."""
        found = TRUE
        for one in conditions:
            found = self.apply(_AND, [found, one])
        return found

    def some(self, conditions: Iterable[Linear]) -> Linear:
        """Whether one of some predicates holds."""
        found = FALSE
        for one in conditions:
            found = self.apply(_OR, [found, one])
        return found

    def equal(self, one: Linear, other: Linear) -> Linear:
        """Whether two terms of a type are equal."""
        return self.apply(Step("==", PREDICATE, (0, 1), one.type), [one, other])

    def at_most(self, one: Linear, other: Linear) -> Linear:
        """Whether one term is at most another of its type."""
        return self.apply(Step("<=", PREDICATE, (0, 1), one.type), [one, other])

    def product(self, one: Linear, other: Linear) -> Linear:
        """One term times another of the same type."""
        return self.apply(Step("*", one.type, (0, 1), one.type), [one, other])

    def fit(self, value: Linear, own: Type, type: Type) -> Linear:
        """A value of one type, read as another."""
        return self._fit(value, own, type)

    @property
    def loops(self) -> dict[int, frozenset[int]]:
        """The blocks of each loop, by its head."""
        return self._loops

    # Questions.

    def in_turn(self, value: Linear, loop: Loop, turn: Linear) -> Linear:
        """What a term is in another turn of a loop, as far as it says so by the number of the turn."""
        return self.substitute(value, {loop.turn: turn})

    def substitute(
        self, value: Linear, replaced: Mapping[Atom, Linear], known: dict[Atom, Linear] | None = None
    ) -> Linear:
        """A term with other terms in place of atoms; `known` keeps what becomes of operations."""
        known = {} if known is None else known
        found = linear(value.type, value.constant)
        for atom, factor in value.terms:
            if atom not in known:
                known[atom] = self._substituted(atom, replaced, known)
            part = known[atom] if value.type.width >= atom.type.width else _narrowed(known[atom], value.type)
            if value.type.width > atom.type.width and not part.fits(atom.type):
                part = self._operation(Step("cast", value.type, (0,), atom.type), (part,))
            found = found.plus(part, factor) if value.type.kind != "p" else part
        return found

    def numbers_by(self, condition: Linear) -> dict[Atom, Linear]:
        """The parameter that is a number where a predicate holds: where the predicate is that it is."""
        atoms = [atom for atom, _ in condition.terms if atom.kind == "==" and not condition.constant]
        if len(atoms) != 1 or atoms[0].parts[0].type.kind not in "usb":
            return {}
        one, other = atoms[0].parts if atoms[0].parts[1].is_constant else atoms[0].parts[::-1]
        parameters = [atom for atom, factor in one.terms if atom.kind == PARAMETER and factor == 1]
        value = other.constant - one.constant
        if not other.is_constant or len(one.terms) != 1 or not parameters or not 0 <= value < 1 << 31:
            return {}
        (parameter,) = parameters
        return {parameter: linear(parameter.type, value)} if parameter.type.width == one.type.width else {}

    def _substituted(self, atom: Atom, replaced: Mapping[Atom, Linear], known: dict[Atom, Linear]) -> Linear:
        if atom in replaced:
            return replaced[atom]
        unchanged = term(atom)
        if atom.step is None:
            return unchanged
        parts = [self.substitute(part, replaced, known) for part in atom.parts]
        return unchanged if tuple(parts) == atom.parts else self.apply(atom.step, parts)


def term(atom: Atom) -> Linear:
    """An atom as a term."""
    return linear(atom.type, 0, {atom: 1})


def without(value: Linear, atom: Atom) -> Linear:
    """A sum without an atom that is once in it, such as an address without its base."""
    return value.plus(term(atom), -1)


def leaves(values: Iterable[Linear]) -> set[Atom]:
    """The atoms of terms that are not operations."""
    return {atom for atom in atoms_of(values) if atom.step is None or not atom.parts}


def atoms_of(values: Iterable[Linear]) -> set[Atom]:
    """The atoms of terms, and those that operations among them are made of."""
    seen: set[Atom] = set()
    pending = [atom for value in values for atom, _ in value.terms]
    while pending:
        atom = pending.pop()
        if atom not in seen:
            seen.add(atom)
            pending += [one for part in atom.parts for one, _ in part.terms]
    return seen


def is_thread_index(atom: Atom) -> bool:
    """Whether it is an index of the thread in its block, or of the block in its cluster."""
    return atom.kind == SPECIAL and str(atom.detail).startswith(("%tid.", OWN_RANK))


def is_own_rank(atom: Atom) -> bool:
    """Whether it is the rank of the thread's own block in its cluster."""
    return atom.detail == OWN_RANK


def without_rank(address: Linear) -> tuple[Linear, Linear | None]:
    """An address in shared memory as one of a block, and the rank of that block in its cluster."""
    ranks = [(atom, factor) for atom, factor in address.terms if atom.kind == RANK]
    if len(ranks) != 1 or ranks[0][1] != 1:
        return address, None
    ((atom, _),) = ranks
    return without(address, atom), atom.parts[0]


def is_integer(variable: ir.Variable) -> bool:
    """Whether a parameter is an integer, and not a struct."""
    return variable.type.kind in "usb" and not variable.dimensions


def is_size(atom: Atom) -> bool:
    """Whether it is a number that all threads of a grid have: a parameter, or an extent of the grid."""
    return atom.kind == PARAMETER or (atom.kind == SPECIAL and str(atom.detail).startswith("%nctaid"))


def is_uniform(values: Iterable[Linear], is_counter: Callable[[Loop], bool]) -> bool:
    """Whether all threads of a block have the same value, in the turns of loops for which `is_counter` says so."""
    for atom in leaves(values):
        detail = atom.detail
        if is_thread_index(atom):
            return False
        if isinstance(detail, Loop) and not is_counter(detail):
            return False
        if isinstance(detail, Symbol) and not detail.is_same(is_counter):
            return False
        if atom.kind not in (SPECIAL, PARAMETER, ADDRESS, COUNTER, "window") and not isinstance(detail, Symbol):
            return False
    return True


def is_certain(values: Sequence[Linear], loops: Sequence[Loop]) -> bool:
    """Whether threads in the same turns of loops have the same value, without what is not known before the end."""
    has_symbol = any(isinstance(atom.detail, Symbol) for atom in leaves(values))
    return not has_symbol and is_uniform(values, lambda loop: loop in loops)


def _narrowed(value: Linear, type: Type) -> Linear:
    """A sum of which only the low bits are wanted: what was extended is as it was before."""
    found = linear(value.type, value.constant)
    for atom, factor in value.terms:
        inner = atom.parts[0] if atom.kind == "cast" and atom.parts[0].type.kind in "usb" else None
        is_kept = inner is None or inner.type.width < type.width
        part = linear(value.type, 0, {atom: 1}) if inner is None or is_kept else inner.as_type(value.type)
        found = found.plus(part, factor)
    return found


def joined_bits(value: Linear) -> Atom | None:
    """The operation that a term is, if it is `|` of two numbers."""
    atoms = [atom for atom, factor in value.terms if factor == 1 and atom.kind == "|" and atom.type.kind != "p"]
    return atoms[0] if len(value.terms) == len(atoms) == 1 and not value.constant else None


def signed(type: Type) -> Type:
    """The type of numbers with a sign of the same width."""
    return type_named(f"s{type.width}")


@dataclass(frozen=True)
class _Range:
    low: int
    high: int


_BASES = (ADDRESS, PARAMETER, "window")
_AND, _OR, _XOR = (Step(sign, PREDICATE, (0, 1), PREDICATE) for sign in "&|^")
