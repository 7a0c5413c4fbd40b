"""From a state to a tree of loops: what each thread runs, in which order, and what is copied where.

Each statement is nested in its own loops, in the order of the state; statements that start with the same loop over
independent iterations share it. A number that is made in one loop and read in another is in a register for each
iteration, so that such loops are unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from ptxlab.isa.units.swizzle import SWIZZLES, Swizzle
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.state import Part, Stage, State
from ptxlab.schedule.statements import Let, Load, Reduce, Statement, loads, names

MOST_UNROLLED = 4096  # iterations of nested loops that are written out
MOST_REGISTERS = 224  # elements that a thread keeps of one array
SHARED_BYTES = {"sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99}  # KB a block can have; others have 227
BYTES = {"f32": 4, "f16": 2, "bf16": 2}


@dataclass(eq=False)
class Loop:
    """A loop over a part."""

    part: Part
    body: list[Node]


@dataclass(eq=False)
class Leaf:
    """One thing that a thread does: `init`, `update`, `let`, `store`.

    With others: `multiply`, and for a number that they share `combine`, `gather` and `exchange`.
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
class Turn:
    """From here on, the next slots of a ring are those of the current iteration."""


@dataclass(eq=False)
class Commit:
    """The end of a group of copies."""


@dataclass(eq=False)
class Wait:
    """Until all but so many groups of copies have arrived."""

    pending: int


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
class Vacancy:
    """Until the slot that is filled next has been read; the warp that copies waits for it."""


@dataclass(eq=False)
class Release:
    """A warp has read the slot of the iteration before, or after a loop of the last one."""

    after: bool = False


@dataclass(eq=False)
class Multiplied:
    """Until all but so many groups of asynchronous multiplications are complete."""

    pending: int


@dataclass(eq=False)
class Fence:
    """What this thread wrote to shared memory is visible to asynchronous operations."""


@dataclass(eq=False)
class Barrier:
    """All threads of a block, or of a warp, wait for each other; derived, see `synchronize.py`."""

    level: int
    reason: str


Asynchronous = Transfer | Arrival | Vacancy | Release | Multiplied | Fence
Node = Loop | Leaf | Fill | Keep | Ahead | Turn | Commit | Wait | Barrier | Asynchronous


@dataclass(eq=False)
class Plan:
    """The tree, and what is known of it."""

    state: State
    multiples: Mapping[str, int]
    """What sizes are multiples of."""
    tree: list[Node]
    unrolled: set[str]
    buffers: list[Buffer]
    producer: list[Node] = field(default_factory=list)
    """What a warp that only copies runs, where there is one."""
    _indices: dict[Linear, Linear] = field(default_factory=dict)

    @property
    def mapped(self) -> dict[str, Buffer]:
        """The arrays that TMA copies, by their tensor maps."""
        if self.state.pipeline is None or self.state.pipeline.by != "tma":
            return {}
        return {buffer.stage.array: buffer for buffer in self.buffers if buffer.slots > 1}

    @property
    def reuses_memory(self) -> bool:
        """Whether what blocks of a cluster exchange is where the ring was: nothing reads the ring after the sum."""
        sums = [one for one in self.state.algorithm.statements if isinstance(one, Reduce)]
        staged = {buffer.stage.array for buffer in self.buffers}
        others = [one for one in self.state.algorithm.statements if not isinstance(one, Reduce)]
        return (
            bool(self.state.cluster)
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
        return outermost.weight == 1 or self.state.extent(axis).is_multiple(outermost.weight, self.multiples)

    def axes_of(self, value: Linear) -> list[str]:
        """The axes in a sum of axes."""
        return [name for name in value.names if name in self.state.parts]

    def extents(self, array: str) -> tuple[Linear, ...]:
        """Those of an array, with sizes that are known in them."""
        return tuple(one.replaced(self.state.fixed) for one in self.state.algorithm.arrays[array].extents)


def plan(state: State, multiples: Mapping[str, int]) -> Plan:
    """The tree of a state. `multiples` says what sizes are multiples of, where that is known."""
    made = Plan(state, multiples, [], set(), [])
    made.tree = _nest(state, _leaves(state))
    made.unrolled = _unrolled(made)
    _stage(made, made.tree, ())
    for one in state.stages:
        keeps = [node.stage for node, _ in walk(made.tree) if isinstance(node, Keep)]
        if not any(stage is one for stage in [*keeps, *(buffer.stage for buffer in made.buffers)]):
            where = f"in `{one.at}`" if one.at else "in the kernel"
            state.refuse("illegal-step", f"step {one.step + 1} stages `{one.array}` {where}, where nothing reads it")
    _check_sizes(made)
    return made


def walk(nodes: Sequence[Node], path: tuple[Loop, ...] = ()) -> Iterator[tuple[Node, tuple[Loop, ...]]]:
    """All nodes, each with the loops around it."""
    for node in nodes:
        yield node, path
        if isinstance(node, Loop):
            yield from walk(node.body, (*path, node))
        elif isinstance(node, Ahead):
            around = (*path, Loop(node.part, node.body))
            yield from walk([*node.keeps, *node.turn, *node.body], around)


def _leaves(state: State) -> list[Leaf]:
    found = []
    for one in state.algorithm.statements:
        loops = state.serial(one.axes)
        if isinstance(one, Reduce):
            found.append(Leaf("init", one, loops))
            inner = state.serial((*one.axes, *one.over))
            if state.tensor is not None and state.tensor.sum == one.name:
                found.append(Leaf("multiply", one, [name for name in inner if name not in state.fragments]))
            else:
                found.append(Leaf("update", one, inner))
            if any(state.part(name).axis in one.over for name in state.threads):
                found += [Leaf("combine", one, loops), Leaf("gather", one, loops)]
            if state.cluster and state.part(state.cluster).axis in one.over:
                found.append(Leaf("exchange", one, loops))
        else:
            found.append(Leaf("let" if isinstance(one, Let) else "store", one, loops))
    return found


def _nest(state: State, leaves: list[Leaf]) -> list[Node]:
    """Nest statements in their loops; neighbours whose outermost loop is the same share it."""
    found: list[Node] = []
    start = 0
    while start < len(leaves):
        first = leaves[start]
        end = start + 1
        if not first.loops:
            found.append(first)
        elif _is_at_once(state, leaves, start):
            end = start + (2 if first.kind == "combine" else 1)
            found += leaves[start:end]  # all iterations at once
        else:
            part = state.part(first.loops[0])
            while part.axis in first.statement.axes and end < len(leaves) and _starts(leaves[end], part):
                end += 1
            group = leaves[start:end]
            for leaf in group:
                leaf.loops = leaf.loops[1:]
            found.append(Loop(part, _nest(state, group)))
        start = end
    return found


def _starts(leaf: Leaf, part: Part) -> bool:
    return bool(leaf.loops) and leaf.loops[0] == part.name and part.axis in leaf.statement.axes


def _is_at_once(state: State, leaves: list[Leaf], start: int) -> bool:
    """Whether all iterations combine their numbers at once: blocks of a cluster always do where these are known."""
    first = leaves[start]
    if first.kind == "exchange" and all(state.count(state.part(name)) is not None for name in first.loops):
        return True
    return first.kind in ("combine", "exchange") and not _shares(state, leaves, start)


def _shares(state: State, leaves: list[Leaf], start: int) -> bool:
    """Whether a statement after all that combines a number starts with the same loop."""
    part, end = state.part(leaves[start].loops[0]), start
    while end < len(leaves) and leaves[end].kind in ("combine", "gather", "exchange"):
        end += 1
    return end < len(leaves) and _starts(leaves[end], part)


def _unrolled(plan: Plan) -> set[str]:
    """The loops that index registers, and those that are to be unrolled."""
    state = plan.state
    found = {part.name for parts in state.parts.values() for part in parts if part.unrolled}
    paths = {id(node): path for node, path in walk(plan.tree)}
    leaves = [node for node, _ in walk(plan.tree) if isinstance(node, Leaf)]
    for one in state.algorithm.statements:
        if not isinstance(one, (Let, Reduce)):
            continue
        uses = [leaf for leaf in leaves if leaf.statement is one or one.name in names(leaf.statement)]
        shared = [loop for loop in paths[id(uses[0])] if all(loop in paths[id(leaf)] for leaf in uses)]
        for name in state.serial(one.axes):
            if not any(loop.part.name == name for loop in shared):
                _check_known(
                    state, name, f"`{one.name}` is kept in a register for each iteration of `{name}`", one.line
                )
                found.add(name)
    for stage in state.stages:
        if stage.space != "registers":
            continue
        for leaf in leaves:
            around = [loop.part.name for loop in paths[id(leaf)]]
            inner = around[around.index(stage.at) + 1 :] if stage.at in around else around if not stage.at else []
            axes = {a for load in reads(leaf) if load.array == stage.array for i in load.index for a in i.names}
            for name in inner:
                if state.part(name).axis in axes:
                    said = f"`{stage.array}` is kept in a register for each iteration of `{name}`"
                    _check_known(state, name, said, leaf.statement.line)
                    found.add(name)
    return found


def _check_known(state: State, name: str, said: str, line: int) -> None:
    if state.count(state.part(name)) is None:
        axis = state.part(name).axis
        said += f", of which there are {state.extent(axis)}"
        state.refuse("unknown-extent", said, f"tile `{axis}`, change the order of loops, or fix the size")


def reads(leaf: Leaf) -> list[Load]:
    """What a leaf reads of arrays."""
    return loads(leaf.statement) if leaf.kind in ("update", "multiply", "let", "store") else []


def _stage(plan: Plan, body: list[Node], path: tuple[Loop, ...]) -> None:
    """Put the copies of stages at the start of the loops that they are for."""
    for node in body:
        if isinstance(node, Loop):
            _stage(plan, node.body, (*path, node))
    at = path[-1].part.name if path else ""
    state = plan.state
    fills: list[Node] = []
    keeps: list[Node] = []
    for stage in state.stages:
        leaves = [n for n, _ in walk(body) if isinstance(n, Leaf) and any(a.array == stage.array for a in reads(n))]
        if stage.at != at or not leaves:
            continue
        if stage.space == "shared":
            fills.append(Fill(_buffer(plan, stage, leaves, path)))
        else:
            keeps.append(Keep(stage, leaves))
    fences = [Fence()] if fills and state.tensor is not None and state.tensor.unit == "wgmma" else []
    body[:0] = [*fills, *fences, *keeps]
    for number, node in reversed(list(enumerate(body))):
        if (
            isinstance(node, Leaf)
            and node.kind == "multiply"
            and state.tensor is not None
            and state.tensor.unit == "wgmma"
        ):
            body.insert(number + 1, Multiplied(0))
    number = 0
    while number < len(body):
        node = body[number]
        if isinstance(node, Loop) and state.pipeline is not None and node.part.name == state.pipeline.at:
            number += _pipeline(plan, body, number, node)
        number += 1


def _pipeline(plan: Plan, body: list[Node], number: int, loop: Loop) -> int:
    """Move the copies of a loop ahead; returns the number of nodes that go before it."""
    assert plan.state.pipeline is not None
    stages = plan.state.pipeline.stages
    fills = [node for node in loop.body if isinstance(node, Fill)]
    if not fills:
        return 0
    rest: list[Node] = [node for node in loop.body if not isinstance(node, Fill)]
    first: list[Node] = []
    for iteration in range(stages - 1):
        first += [*(Fill(fill.buffer, iteration=iteration) for fill in fills), Commit()]
    for fill in fills:
        fill.buffer.slots = stages
        fill.ahead = stages - 1
    if plan.state.pipeline.by == "tma":
        return _transfer(plan, body, number, loop, fills)
    fences = [node for node in rest if isinstance(node, Fence)]
    rest = [node for node in rest if not isinstance(node, Fence)]
    loop.body[:] = [Wait(stages - 2), *fences, *fills, Commit(), *rest]
    if plan.state.prefetch:
        first += _prefetch(plan, loop, fills, rest, stages)
    body[number:number] = first
    return len(first)


def _transfer(plan: Plan, body: list[Node], number: int, loop: Loop, fills: list[Fill]) -> int:
    """Have TMA copy what a loop reads: by one thread of those that compute, or by a warp of its own."""
    state = plan.state
    assert state.pipeline is not None
    stages = state.pipeline.stages
    rest: list[Node] = [n for n in loop.body if not isinstance(n, (Fill, Fence, Multiplied))]
    multiplies = state.tensor is not None and state.tensor.unit == "wgmma"
    if multiplies and not any(isinstance(n, Leaf) and n.kind == "multiply" for n in rest):
        state.refuse("illegal-step", f"`wgmma` is not all that is done in an iteration of `{loop.part.name}`")
    last: list[Node] = [Multiplied(1)] if multiplies else []
    after: list[Node] = [Multiplied(0)] if multiplies else []
    arrival = Arrival([fill.buffer for fill in fills])
    if loop.part.name in plan.unrolled:
        state.refuse("illegal-step", f"`{loop.part.name}` is unrolled, and TMA copies for a loop that runs")
    for fill in fills:
        fill.buffer.slots = stages
    if state.specialized:
        own = [Fill(fill.buffer) for fill in fills]
        plan.producer = [Loop(loop.part, [Vacancy(), Transfer(own)])]
        loop.body[:] = [arrival, *rest, *last, Release()]
        body[number + 1 : number + 1] = [*after, Release(after=True)]
        return len(after) + 1
    for fill in fills:
        fill.ahead = stages - 1
    first: list[Node] = [Transfer([Fill(f.buffer, iteration=n) for f in fills]) for n in range(stages - 1)]
    if multiplies:
        loop.body[:] = [arrival, *rest, *last, Transfer(fills)]
    else:
        loop.body[:] = [arrival, Transfer(fills), *rest]
    body[number + 1 : number + 1] = after
    body[number:number] = first
    return len(first) + len(after)


def _prefetch(plan: Plan, loop: Loop, fills: list[Fill], rest: list[Node], stages: int) -> list[Node]:
    """Have a loop load registers one iteration ahead; returns what goes before it."""
    state = plan.state
    inner = rest[0] if len(rest) == 1 else None
    if not isinstance(inner, Loop) or inner.part.name != state.prefetch:
        said = f"`{state.prefetch}` is not all that is done in an iteration of `{loop.part.name}`"
        state.refuse("illegal-step", said, "stage registers in the loop directly inside")
    keeps = [node for node in inner.body if isinstance(node, Keep)]
    buffers = {fill.buffer.stage.array: fill.buffer for fill in fills}
    for keep in keeps:
        readers = [
            n for n, _ in walk(plan.tree) if isinstance(n, Leaf) and any(a.array == keep.stage.array for a in reads(n))
        ]
        if len(readers) > len(keep.leaves) or keep.stage.array not in buffers:
            state.refuse("illegal-step", f"`{keep.stage.array}` is not read from shared memory in this loop only")
    body: list[Node] = [node for node in inner.body if not isinstance(node, Keep)]
    turn: list[Node] = [Turn(), Wait(stages - 2), *(Keep(keep.stage, keep.leaves) for keep in keeps)]
    loop.body[:] = [*fills, Commit(), Ahead(inner.part, keeps, turn, body)]
    return [Wait(stages - 2), *(Keep(keep.stage, keep.leaves, buffers[keep.stage.array]) for keep in keeps)]


def _buffer(plan: Plan, stage: Stage, leaves: list[Leaf], path: tuple[Loop, ...]) -> Buffer:
    """The box of an array that a block reads in an iteration."""
    state = plan.state
    outside = {loop.part.name for loop in path} | {*state.blocks, state.cluster}
    found = [load for leaf in leaves for load in reads(leaf) if load.array == stage.array]
    boxes = []
    for dimension in range(len(found[0].index)):
        bounds = []
        for load in found:
            index = plan.index(load.index[dimension])
            origin, low, high = index.only(outside | set(state.algorithm.sizes)), index.constant, index.constant
            for name, coefficient in (index - origin).terms:
                count = state.count(state.part(name))
                if count is None:
                    axis = state.part(name).axis
                    state.refuse(
                        "unknown-extent",
                        f"how much of `{stage.array}` is read depends on `{axis}`, which goes to {state.extent(axis)}",
                        f"tile `{axis}`, and stage in its outer part",
                    )
                reach = coefficient * (count - 1)
                low, high = low + min(reach, 0), high + max(reach, 0)
            bounds.append((origin, low, high))
        if len({origin for origin, _, _ in bounds}) > 1:
            state.refuse("illegal-step", f"accesses to `{stage.array}` do not move together, so that no box holds them")
        low = min(bound[1] for bound in bounds)
        boxes.append((bounds[0][0] + low, max(bound[2] for bound in bounds) - low + 1))
    guarded = tuple(
        any(not load.is_inside or any(not plan.is_exact(a) for a in plan.axes_of(load.index[d])) for load in found)
        for d in range(len(boxes))
    )
    element = state.algorithm.arrays[stage.array].element
    buffer = Buffer(stage, element, tuple(b[0] for b in boxes), tuple(b[1] for b in boxes), guarded=guarded)
    if stage.swizzle and buffer.shape[-1] % buffer.columns:
        said = f"`{stage.array}` has rows of {buffer.shape[-1]} elements, and {buffer.columns} are swizzled together"
        state.refuse("illegal-step", said, "use tiles of a multiple of that, or a narrower swizzle")
    if stage.swizzle and any(leaf.kind != "multiply" for leaf in leaves):
        state.refuse("illegal-step", f"`{stage.array}` is swizzled, and not read by tensor cores only", "use `pad`")
    multiplies = any(leaf.kind == "multiply" for leaf in leaves)
    if multiplies and not stage.swizzle and buffer.columns * BYTES[element] % 16:
        said = f"rows of {buffer.columns} elements of `{stage.array}` are not a multiple of 16 bytes"
        state.refuse("illegal-step", said, "choose another `pad`")
    if multiplies and (stage.transposed or any(n > 1 for n in buffer.shape[:-2])):
        state.refuse("illegal-step", f"tensor cores read `{stage.array}` as a matrix, as it is stored")
    plan.buffers.append(buffer)
    return buffer


def _check_sizes(plan: Plan) -> None:
    """Refuse what a block or a thread cannot have."""
    state = plan.state
    most = SHARED_BYTES.get(state.target.rstrip("af"), 227) * 1024
    used = sum(buffer.bytes for buffer in plan.buffers)
    if used > most:
        text = " and ".join(f"`{b.stage.array}` {b.bytes:,} bytes" for b in plan.buffers)
        state.refuse("schedule-limit", f"{text} of shared memory: {used - most:,} more than a block can have")
    for node, path in walk(plan.tree):
        written = [loop.part for loop in path if loop.part.name in plan.unrolled]
        count = prod(state.count(part) or 1 for part in written)
        if count > MOST_UNROLLED:
            text = ", ".join(f"`{part.name}` {state.count(part)}" for part in written)
            state.refuse("schedule-limit", f"{count:,} iterations would be written out ({text})", "use smaller tiles")
        if isinstance(node, Leaf) and isinstance(node.statement, (Let, Reduce)):
            kept = [state.part(n) for n in state.serial(node.statement.axes) if n in plan.unrolled]
            if prod(state.count(part) or 1 for part in kept) > MOST_REGISTERS:
                said = f"a thread would keep {prod(state.count(p) or 1 for p in kept)} of `{node.statement.name}`"
                state.refuse("schedule-limit", said, "use smaller tiles")
