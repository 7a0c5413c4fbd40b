"""What an execution notes: segments, which are stretches without a barrier, their accesses, and decisions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ptxlab.flow.expressions import Atom, Linear
from ptxlab.prove.terms.predicates import TRUE, conjuncts
from ptxlab.prove.terms.terms import Loop, Symbol

Path = tuple[Linear, ...]
State = dict[int, Linear]
INITIALIZE, ARRIVE = "initialize", "arrive"  # kinds of accesses to mbarriers; a wait is a load
RESULT = "the result of an atomic operation"  # of which nothing is known but what `tickets` shows


class UnsupportedError(Exception):
    """An instruction that the proof knows nothing of."""

    def __init__(self, at: int, reason: str, help: str = "") -> None:
        super().__init__(reason)
        self.at, self.reason, self.help = at, reason, help


@dataclass(eq=False)
class Access:
    """Memory that an instruction reads or writes, by all threads for which `path` holds."""

    at: int
    line: int
    kind: str
    space: str
    bytes: int
    align: int
    element: int
    order: str
    address: Linear
    path: Path
    segment: Segment
    is_collective: bool = False
    """Whether a lane gives the address, and any lane of its warp may be the one that accesses it."""
    unit: str = ""
    """Of an asynchronous operation, which starts at the end of its segment: what completes it.

    `mbarrier`: a phase of one; `phase`: the same, of the bytes of the mbarrier itself; `tensor work`: a phase at which
    its thread arrives by a commit."""
    epoch: int = 0
    """How many events were noted before it."""
    alike: int = 0
    """Of a store, in which bits the numbers of threads may differ that store the same value."""
    form: tuple[object, ...] = ()
    """Of an MMA to tensor memory: its kind and shape."""
    passed: int = 0
    """How many points were noted before it."""
    draw: Draw | None = None
    """Of an atomic addition whose result is used: what it draws."""
    places: frozenset[tuple[Draw, str]] = frozenset()
    """Of which draws of its block it is known that they come after it, or before it: see `tickets`."""

    @property
    def instance(self) -> tuple[object, ...]:
        """Of a store that several threads do alike, or together, which one it is; of others it does not matter."""
        return (self.at, self.segment, self.alike) if self.alike or (self.is_collective and self.writes) else ()

    @property
    def writes(self) -> bool:
        """Whether it changes memory."""
        return self.kind != "load"

    @property
    def is_async(self) -> bool:
        """Whether it is a part of an asynchronous operation."""
        return bool(self.unit)


@dataclass(eq=False)
class Store:
    """A value that is stored in shared memory, at one place."""

    access: Access
    value: Linear


class Handed(NamedTuple):
    """A load that is taken to read what a store left there for all threads, as `handovers` shows."""

    load: Access
    store: Store


@dataclass(eq=False)
class Draw:
    """An atomic addition: the sum of all that was added to a counter before it, any number."""

    access: Access
    first: Linear
    """What the counter held when the kernel started."""
    sum: Symbol
    value: Linear
    """That sum as a term."""
    amount: Linear
    """What it adds to the sum."""
    limit: Linear | None
    """Of `inc`, the number after which the counter is 0 again."""
    is_read: bool
    """Whether it returns what the counter held before."""

    @property
    def atom(self) -> Atom:
        """The sum as an atom."""
        ((atom, _),) = self.value.terms
        return atom


@dataclass(eq=False)
class Point:
    """A fence, or an atomic addition that is one too, in the order of the flow; `orders` are its fences."""

    number: int
    path: Path
    segment: Segment
    orders: Sequence[str]
    draw: Draw | None = None


@dataclass(eq=False)
class Event:
    """Where a thread orders what it does with what others do, by all threads for which `path` holds.

    `init`, `arrive`, `wait` of an mbarrier, and `copy`, which completes bytes of it; `barrier` of the block, `part` of
    it, `warp`; `converge`, where lanes of a warp wait for each other but memory is not ordered; `fence` of the proxies;
    `tensor`, a fence of tensor memory; `group`, a wait for groups of asynchronous operations of its own; `raise` and
    `lower`, where a warp takes registers, or gives some back.
    """

    kind: str
    at: int
    line: int
    number: int
    """In the order of the flow: of two events in one turn of a loop, the second is not before the first."""
    path: Path
    loops: tuple[Loop, ...]
    segment: Segment
    """Of a `group`, the one after it; of others, the one that they are in."""
    address: Linear | None = None
    value: Linear | None = None
    """The count of an `init` or an arrival, the parity of a wait, the number of a barrier."""
    bytes: int = 0
    """Those that an arrival expects, or a copy completes; of a `part`, its threads; of `raise` and `lower`, the
    registers that a thread has then."""
    spaces: frozenset[str] = frozenset()
    """Of a `fence`, the state spaces of the accesses that it orders."""
    covers: int | None = None
    """Of an arrival by `tcgen05.commit`: how many events are before the last MMA that it comes after."""
    starts: int = 0
    """The first turn of its loop that it comes in."""
    left: Loop | None = None
    """Of an event after a loop that depends on its last turn: that loop. It counts as one in the turn after that."""


@dataclass(eq=False)
class TensorAccess:
    """A box of a tensor in global memory that a copy reads or writes, at coordinates, the innermost first."""

    line: int
    map: str
    writes: bool
    coordinates: Sequence[Linear]
    path: Path
    loops: tuple[Loop, ...]


@dataclass(eq=False)
class Decision:
    """A branch or a guard, and the threads that come to it."""

    at: int
    line: int
    condition: Linear
    path: Path
    loops: tuple[Loop, ...]


@dataclass(eq=False)
class Segment:
    """Instructions without a barrier between them; `successors` come after, `back` of a loop if it is its next turn."""

    loops: tuple[Loop, ...]
    barrier: int | None = None
    """The barrier that it starts after; None: what comes before it is not a barrier."""
    is_of_warp: bool = False
    """Whether that is a barrier of the warp only."""
    units: tuple[str, ...] = ()
    """Of which asynchronous operations groups are committed or waited for at its start."""
    condition: Linear = TRUE
    """Under which condition they are."""
    commits: int = 0
    """How many groups are committed at its start."""
    waits: int | None = None
    """At its start, after the commit: for all but how many groups the thread waits."""
    accesses: list[Access] = field(default_factory=list)
    successors: list[tuple[Segment, Loop | None]] = field(default_factory=list)
    exits: list[Path] = field(default_factory=list)
    """Under which conditions threads exit in it."""


def following(start: Segment, is_followed: Callable[[Segment, Loop | None], bool]) -> set[Segment]:
    """A segment and all after it, by the steps that are followed."""
    found, pending = {start}, [start]
    while pending:
        after = {one for one, back in pending.pop().successors if is_followed(one, back)} - found
        found |= after
        pending += after
    return found


class Arrival(NamedTuple):
    """A way to a block: what holds on it, what registers hold, and the segment that it comes from."""

    path: Path
    state: State
    segment: Segment


class Here(NamedTuple):
    """An instruction where it is executed: by threads for which `path` and `guard` hold, in turns of `loops`."""

    at: int
    guard: Linear
    path: Path
    state: State
    segment: Segment
    loops: tuple[Loop, ...]


class Notes:
    """What was noted so far; what a loop that runs again noted is forgotten."""

    def __init__(self, lines: Sequence[int]) -> None:
        self.lines = lines
        self.segments: list[Segment] = []
        self.decisions: list[Decision] = []
        self.loops: list[Loop] = []
        self.collectives: list[Decision] = []
        """Where lanes of a warp wait for each other; the condition is that of the guard."""
        self.events: list[Event] = []
        self.tensors: list[TensorAccess] = []
        self.stores: list[Store] = []
        self.handed: list[Handed] = []
        self.points: list[Point] = []
        """Fences of memory and atomic additions."""
        self.reads_textures = self.elects = False
        self.rounds = 0
        """How often something was forgotten."""

    def segment(self, loops: tuple[Loop, ...], barrier: int | None = None, *, is_of_warp: bool = False) -> Segment:
        """A new segment."""
        self.segments.append(Segment(loops, barrier, is_of_warp))
        return self.segments[-1]

    def after(self, here: Here, barrier: int | None = None, *, is_of_warp: bool = False) -> Segment:
        """A new segment that comes after an instruction."""
        found = self.segment(here.loops, barrier, is_of_warp=is_of_warp)
        here.segment.successors.append((found, None))
        return found

    def decide(self, at: int, condition: Linear, path: Path, loops: tuple[Loop, ...]) -> None:
        """Note a decision."""
        self.decisions.append(Decision(at, self.lines[at], condition, path, loops))

    def collect(self, here: Here) -> None:
        """Note that lanes of a warp wait for each other."""
        self.collectives.append(Decision(here.at, self.lines[here.at], here.guard, here.path, here.loops))

    def event(self, kind: str, here: Here, segment: Segment | None = None, **more: Any) -> None:
        """Note an event."""
        path = joined(here.path, here.guard)
        self.events.append(Event(kind, here.at, self.lines[here.at], len(self.events) + 1, path, here.loops,
                                 segment or here.segment, **more))  # fmt: skip

    def point(self, here: Here, orders: Sequence[str], draw: Draw | None = None) -> None:
        """Note a fence, or an atomic addition that may be one."""
        path = joined(here.path, here.guard)
        self.points.append(Point(len(self.points) + 1, path, here.segment, orders, draw))

    def tensor(self, here: Here, map: str, writes: bool, coordinates: Sequence[Linear]) -> None:
        """Note an access to a box of a tensor."""
        path = joined(here.path, here.guard)
        self.tensors.append(TensorAccess(self.lines[here.at], map, writes, coordinates, path, here.loops))

    def mark(self) -> tuple[int, ...]:
        """How much there is."""
        return tuple(map(len, self._lists()))

    def forget(self, mark: tuple[int, ...]) -> None:
        """Forget what came since."""
        self.rounds += 1
        for one, length in zip(self._lists(), mark, strict=True):
            del one[length:]

    def _lists(self) -> tuple[list[Any], ...]:
        return (self.segments, self.decisions, self.loops, self.collectives, self.events, self.tensors, self.points,
                self.stores, self.handed)  # fmt: skip


def joined(path: Path, condition: Linear) -> Path:
    """A path on which one more predicate holds."""
    fresh = [one for one in conjuncts(condition) if one != TRUE and one not in path]
    return (*path, *dict.fromkeys(fresh))
