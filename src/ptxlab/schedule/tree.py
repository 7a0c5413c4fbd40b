"""What each thread runs, in which order, as a tree: loops, statements, copies, waits; and what is known of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from ptxlab.isa.units.swizzle import SWIZZLES, Swizzle
from ptxlab.measure.block_scaled import FORMATS
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.state import Part, Stage, State
from ptxlab.schedule.statements import Load, Reduce, Statement, gathered, loads

if TYPE_CHECKING:
    from ptxlab.schedule.results import StagedResult

READING = ("update", "multiply", "let", "store")  # what leaves do that evaluate their statement
BYTES = {"f32": 4, "s32": 4, "f16": 2, "bf16": 2, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, **dict.fromkeys(FORMATS, 1)}


@dataclass(eq=False)
class Loop:
    """A loop over a part."""

    part: Part
    body: list[Node]


@dataclass(eq=False)
class Leaf:
    """One thing that a thread does: `init`, `update`, `let`, `store`.

    With others: `multiply`, with `tcgen05` `load` from tensor memory, and for a number that they share `combine`,
    `gather` and `exchange`. Of one pass: `factor`, by how much weights have become less, and `rescale`, of a sum.
    """

    kind: str
    statement: Statement
    loops: list[str] = field(default_factory=list)
    """Of `combine`, `gather` and `exchange`: the loops around, which they do at once."""


@dataclass(eq=False)
class Buffer:
    """A stage in shared memory: a box of the array, which starts at `origin` and is `shape` large."""

    stage: Stage
    element: str
    origin: tuple[Linear, ...]
    shape: tuple[int, ...]
    slots: int = 1
    guarded: tuple[bool, ...] = ()
    """The dimensions in which the box may reach beyond the array, or start before it."""

    @property
    def swizzle(self) -> Swizzle | None:
        """How addresses are swizzled."""
        return SWIZZLES[self.stage.swizzle] if self.stage.swizzle else None

    @property
    def columns(self) -> int:
        """Elements of a row in memory: of a swizzled box those of a panel; rows continue in the next."""
        if self.stage.swizzle:
            return int(self.stage.swizzle[:-1]) // BYTES[self.element]
        return self.shape[-1] + self.stage.pad

    @property
    def panels(self) -> int:
        """Pieces of so many columns, one after the other in memory."""
        return self.shape[-1] // self.columns if self.stage.swizzle else 1

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from an index to the next, in each dimension."""
        order = list(range(len(self.shape)))
        if self.stage.transposed:
            order[-2:] = order[-1], order[-2]
        found, step = [0] * len(order), 1
        for dimension in reversed(order):
            found[dimension] = step
            step *= self.shape[dimension] + (self.stage.pad if dimension == order[-1] else 0)
        return tuple(found)

    @property
    def size(self) -> int:
        """Elements of one slot, a multiple of 16 bytes, or of what the swizzle repeats after."""
        if self.swizzle is not None:
            every = self.swizzle.period // BYTES[self.element]
            return -(-prod(self.shape[:-1]) * self.columns // every) * every * self.panels
        last = -2 if self.stage.transposed else -1
        extents = [n + (self.stage.pad if d == len(self.shape) + last else 0) for d, n in enumerate(self.shape)]
        return -(-prod(extents) // 8) * 8

    @property
    def bytes(self) -> int:
        """Bytes of all slots."""
        return self.size * self.slots * BYTES[self.element]


@dataclass(eq=False)
class Fill:
    """All threads copy a box to shared memory: of this iteration, or of one that follows, or of one before the loop."""

    buffer: Buffer
    ahead: int = 0
    iteration: int | None = None


@dataclass(eq=False)
class Keep:
    """A thread loads what it reads in an iteration to registers."""

    stage: Stage
    leaves: list[Leaf]
    buffer: Buffer | None = None
    """The buffer that is read, before a pipelined loop starts."""


@dataclass(eq=False)
class Ahead:
    """An unrolled loop in which each iteration starts with the loads of the next one.

    The last starts with those of the first iteration of the next tile, after `turn`.
    """

    part: Part
    keeps: list[Keep]
    turn: list[Node]
    body: list[Node]


@dataclass(eq=False)
class Sync:
    """Order among threads and asynchronous operations. It is one of:

    `turn`: from here on, the next slots of a ring are those of the current iteration.
    `commit`: the end of a group of copies. `wait`: until all but `pending` groups have arrived.
    `vacancy`: until the slot that is filled next has been read; the warp that copies waits for it.
    `release before`: a warp has read the slot of the iteration before; `release last`, after a loop, that of the last
    one; `release now`, that of this one; `release multiplied`: when tensor cores have read it.
    `free`: the warp that multiplies waits for a set of accumulators in tensor memory; `complete`: when all is
    multiplied, those that read it continue; `read`: they have.
    `multiplied`: until all but `pending` groups of asynchronous multiplications are complete.
    `fence`: what this thread wrote to shared memory is visible to asynchronous operations. `fence waited`: its loads
    from tensor memory are after what it has waited for.
    """

    kind: str
    pending: int = 0

    @staticmethod
    def of(node: Node) -> str:
        """The kind of a node that is one."""
        return node.kind if isinstance(node, Sync) else ""


@dataclass(eq=False)
class Transfer:
    """One thread has TMA copy the boxes of an iteration; an mbarrier counts their bytes."""

    fills: list[Fill]

    @property
    def bytes(self) -> int:
        """That arrive, those beyond the array included."""
        return sum(prod(fill.buffer.shape) * BYTES[fill.buffer.element] for fill in self.fills)


@dataclass(eq=False)
class Arrival:
    """Until the boxes of this iteration have arrived."""

    buffers: list[Buffer]


@dataclass(eq=False)
class Barrier:
    """All threads of a block, or of a warp, wait for each other; derived, see `synchronize.py`."""

    level: int
    reason: str
    tensor: bool = False
    """Whether it is for tensor memory, too."""


@dataclass(eq=False)
class Shared:
    """What follows a sum that several blocks have pieces of: one of them adds these, and computes the rest."""

    body: list[Node]


Node = Loop | Leaf | Fill | Keep | Ahead | Barrier | Shared | Sync | Transfer | Arrival


@dataclass(eq=False)
class Plan:
    """The tree, and what is known of it."""

    state: State
    multiples: Mapping[str, int]
    """What sizes are multiples of; 0 where some loop has no iterations."""
    tree: list[Node]
    unrolled: set[str]
    buffers: list[Buffer]
    results: dict[str, StagedResult] = field(default_factory=dict)
    """The arrays that are stored through shared memory."""
    producer: list[Node] = field(default_factory=list)
    """What a warp that only copies runs, where there is one."""
    multiplier: list[Node] = field(default_factory=list)
    """What a warp that only multiplies runs, where there is one."""
    _indices: dict[Linear, Linear] = field(default_factory=dict)

    @property
    def mapped(self) -> dict[str, Buffer]:
        """The arrays that TMA copies, by their tensor maps."""
        if self.state.pipeline.by != "tma":
            return {}
        return {buffer.stage.array: buffer for buffer in self.buffers if buffer.slots > 1}

    @property
    def memory(self) -> list[tuple[str, int]]:
        """Arrays, and bytes of shared memory that copies of them and boxes of results have."""
        kept: list[Buffer | StagedResult] = [*self.buffers, *self.results.values()]
        return [(one.stage.array, one.bytes) for one in kept]

    @property
    def described(self) -> list[str]:
        """The arrays that tensor maps describe."""
        return [*self.mapped, *self.results]

    def sharing(self, buffer: Buffer) -> int:
        """Blocks that share a box: each copies a part of it, for all, or of a pair for itself."""
        return next((one.blocks for one in self.state.multicast if one.array == buffer.stage.array), 1)

    @property
    def reuses_memory(self) -> bool:
        """Whether what blocks of a cluster exchange is where the ring was: nothing reads the ring after the sum."""
        sums = [one for one in self.state.algorithm.statements if isinstance(one, Reduce)]
        staged = {buffer.stage.array for buffer in self.buffers}
        others = [one for one in self.state.algorithm.statements if not isinstance(one, Reduce)]
        return (
            bool(self.state.cluster and self.buffers)
            and len(sums) == 1
            and all(buffer.slots > 1 for buffer in self.buffers)
            and not any(load.array in staged for one in others for load in loads(one))
        )

    def axis(self, name: str) -> Linear:
        """The index of an axis as a sum of its parts."""
        found = Linear()
        for part in self.state.parts[name]:
            found = found + Linear(((part.name, part.weight),))
        return found

    def index(self, value: Linear) -> Linear:
        """A sum of axes as one of parts, with sizes that are known in it."""
        if value not in self._indices:
            parts = value.replaced({axis: self.axis(axis) for axis in self.state.parts})
            self._indices[value] = parts.replaced(self.state.fixed)
        return self._indices[value]

    def is_exact(self, axis: str) -> bool:
        """Whether tiles cover an axis exactly, so that nothing is masked."""
        outermost = self.state.parts[axis][0]
        every = outermost.weight * self.state.together(outermost.name)
        is_empty = 0 in self.multiples.values() or self.state.is_empty({})
        return not is_empty and (every == 1 or self.state.extent(axis).is_multiple(every, self.multiples))

    def axes_of(self, value: Linear) -> list[str]:
        """The axes that a sum of axes, and of elements that these index, depends on."""
        names = value.names.union(*(load.names for load in gathered(value)))
        return [name for name in self.state.parts if name in names]

    def extents(self, array: str) -> tuple[Linear, ...]:
        """Those of an array, with sizes that are known in them."""
        return tuple(one.replaced(self.state.fixed) for one in self.state.algorithm.arrays[array].extents)


def walk(nodes: Sequence[Node], path: tuple[Loop, ...] = ()) -> Iterator[tuple[Node, tuple[Loop, ...]]]:
    """All nodes, each with the loops around it."""
    for node in nodes:
        yield node, path
        if isinstance(node, Loop):
            yield from walk(node.body, (*path, node))
        elif isinstance(node, Shared):
            yield from walk(node.body, path)
        elif isinstance(node, Ahead):
            around = (*path, Loop(node.part, node.body))
            yield from walk([*node.keeps, *node.turn, *node.body], around)


def reads(leaf: Leaf) -> list[Load]:
    """What a leaf reads of arrays."""
    return loads(leaf.statement) if leaf.kind in READING else []


def readers(nodes: Sequence[Node], array: str) -> list[Leaf]:
    """The leaves that read an array."""
    return [n for n, _ in walk(nodes) if isinstance(n, Leaf) and any(load.array == array for load in reads(n))]
