"""What is known at this point of a kernel that is being written: shared by all that writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptxlab.author import s32, u32
from ptxlab.author.emit import emit
from ptxlab.author.lines import SourcePosition
from ptxlab.author.trace import current
from ptxlab.schedule.address import Addresses, Below, Value
from ptxlab.schedule.elements import NO_HINT, Hint
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.statements import Load, Statement, Store
from ptxlab.schedule.synchronize import BLOCK
from ptxlab.schedule.tree import BYTES, Buffer, Plan
from ptxlab.schedule.walk import WARP


@dataclass(frozen=True)
class Portion:
    """What a thread copies of a box in one turn."""

    box: tuple[Linear, ...]
    """Where in the box it starts, in each dimension."""
    inside: Linear
    """Where in the buffer that is, in elements."""
    number: Linear | None
    """Its number, where some threads have none."""


class Writing:
    """A kernel that is being written, its values by the names of the parameters."""

    def __init__(self, plan: Plan, values: dict[str, Any]) -> None:
        self.plan, self.state = plan, plan.state
        self.algorithm = plan.state.algorithm
        self.values = values
        self.trace = current()
        self.at(self.algorithm.statements[0])  # a line of the user, from the first instruction on
        sizes = {name: values[name] for name in self.algorithm.sizes if name in values}
        pointers = {
            name: values[name] for name in self.algorithm.arrays if name not in plan.mapped | plan.results.keys()
        }
        self.addresses = Addresses(plan, pointers, sizes)
        self.thread: Value = 0
        self.tile: Value = 0  # the number of the block's first tile
        self.fills: list[list[Portion]] = []  # of each buffer, see `copies.py`
        self.kept: dict[str, dict[tuple[Linear, ...], Value]] = {}
        self.held: dict[str, tuple[Buffer, int]] = {}
        self.made: dict[tuple[str, tuple[int, ...]], Value] = {}  # numbers of `Let` and `Reduce`
        self.loaded: dict[Load, Value] = {}  # by the statement that is being written
        self.collected: dict[tuple[str, tuple[Linear, ...]], tuple[Store, Value, list[Below]]] | None = None  # to store
        self.results: dict[str, dict[frozenset[tuple[str, int]], Value]] = {name: {} for name in plan.results}
        self.odd: dict[int, Value] = {}  # whether a bit of the thread's number is set, where lanes exchange
        self.scratch: dict[str, Value] = {}
        self.outs: dict[str, dict[tuple[Linear, ...], Value]] = {}  # registers that loads are to write
        self.ring: tuple[Value, Value] | None = None  # the slots that are read and filled
        self.parity: Value = None  # of the phase of the slot that is read
        self.full: Any = None  # mbarriers of slots that are filled, and with roles `stages` and sides of these
        self.stages: Any = None
        self.filling: Any = None
        self.reading: Any = None
        self.read: Any = None
        self.tensor_memory: Any = None  # see `tensor_memory.py`
        self.done: Any = None  # the mbarrier that says when all multiplications are complete, and `turn` its parity
        self.turn: Value = None
        self.multiplied: Any = None  # those that say it of slots that TMA fills; `vacant` is the parity of the next
        self.vacant: Value = None
        self.sets: Any = None  # of accumulators, and sides of these
        self.summing: Any = None
        self.summed: Any = None
        self.exchange: Any = None  # mbarriers, see `exchange.py`
        self.is_read = False  # whether blocks of a cluster wait, at the end, until all have read what they added up
        self.pieces: Any = None  # of tiles that a block has, see `pieces.py`
        self.policies: dict[str, Value] = {}  # of the L2 cache
        self.first: list[Below] = []  # which of the threads with the same number stores it

    def hint(self, array: str) -> Hint:
        """The modifier and the operand of accesses to an array, where it has a cache policy."""
        kind = self.state.policies.get(array)
        return (".L2::cache_hint", [self.policies[kind]]) if kind else NO_HINT

    def comment(self, text: str, step: int | None = None) -> None:
        """A line of text, with the step that it is from."""
        made = f"{self.state.steps[step]}: " if step is not None and step < len(self.state.steps) else ""
        self.trace.lines.append(f"    // {made}{text}".encode("ascii", "replace").decode())

    def barrier(self, level: int) -> None:
        """All threads that compute wait for each other, or those of a warp."""
        if level < BLOCK:
            emit("bar.warp.sync", [self.warp_mask])
        else:  # a warp that only copies does not take part
            emit("bar.sync", [1, self.state.thread_count] if self.state.specialized else [0])

    @property
    def warp_mask(self) -> int:
        """The lanes of a warp that there are."""
        return -1 if self.state.thread_count >= WARP else (1 << self.state.thread_count) - 1

    def at(self, statement: Statement) -> None:
        """What is written now is from the line of a statement."""
        self.trace.position = SourcePosition(self.algorithm.function.__code__, statement.line, 0)

    def slot(self, buffer: Buffer, number: int) -> Value:
        """Where the slot of a buffer starts that is read now."""
        start = self.addresses.memory[number]
        if buffer.slots == 1 or self.ring is None:
            return start
        return emit("mad.lo.u32", [self.ring[0], buffer.size * BYTES[buffer.element], start], out=u32())

    def count(self, name: str, together: int = 1) -> Value:
        """How many iterations a part has, or groups of so many, in a register."""
        part = self.state.part(name)
        count, every = self.state.count(part), part.weight * together
        if count is not None:
            return s32(-(-count // together))
        extent = self.addresses.value(self.state.extent(part.axis))
        if every == 1:
            return extent
        more = emit("add.s32", [extent, every - 1], out=s32())
        return (more.view(u32) // every).view(s32)
