"""Barriers, derived from who writes and who reads which element of shared memory.

Each copy and each read is followed around loops; a barrier is put before an access that conflicts with one of another
thread since the last barrier: of the whole block, or only of the warp where no other thread is concerned, or none
where each thread reads what it wrote itself. Who accesses what is enumerated, all of it being known. A barrier that
turns out to be needless, since a later one is for the same, is taken out again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ptxlab.schedule.linear import Linear
from ptxlab.schedule.tree import (
    Ahead,
    Arrival,
    Barrier,
    Buffer,
    Fill,
    Keep,
    Leaf,
    Loop,
    Node,
    Plan,
    Sync,
    Transfer,
    reads,
)
from ptxlab.schedule.walk import chunks, combination, places

OWN, WARP, BLOCK = 0, 1, 2  # whose accesses conflict: one thread's, those of a warp, those of a block
FLYING = -1  # of a copy that its thread has not waited for: no barrier is for it
ANY = -1  # some slot of a ring
TENSOR = "accumulators"  # in tensor memory

Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class Touch:
    """An access to shared memory by all threads: `slot` counts from that of the current iteration."""

    memory: str
    writes: bool
    slot: int
    slots: int
    node: Node
    buffer: Buffer | None


Pending = dict[Touch, int]  # and which barrier there was since
Conflict = tuple[int, Touch, Touch]  # whose accesses these are, the one before, the one after


def synchronize(plan: Plan) -> None:
    """Put barriers into the tree of a plan, as few as its accesses need."""
    if plan.state.thread_count > 1:
        _Derivation(plan).derive()


class _Derivation:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.touches: dict[Node, list[Touch]] = {}
        self.levels: dict[tuple[Node, Node, str], int] = {}
        self.pairs: dict[tuple[Node, str], Pairs] = {}
        self.placed: list[tuple[list[Node], Barrier]] = []
        self.settled: dict[Node, Pending] = {}
        self.entries: dict[Node, Pending] = {}
        self.missing: list[Conflict] = []

    def derive(self) -> None:
        """Put in barriers where something is missing, then take out each that nothing is missing without."""
        tree = self.plan.tree
        self._find(tree, {})
        self._insert(tree, {})
        for body, barrier in self.placed:
            place = body.index(barrier)
            del body[place]
            if self._flow(tree, {})[1]:
                body.insert(place, barrier)
        for _, barrier in self.placed:
            barrier.tensor = False
        self._flow(tree, {})  # which barriers are for tensor memory, with all that are left

    def _find(self, body: list[Node], held: dict[str, Buffer]) -> None:
        """Find what each node accesses; `held` are the stages that reads are from."""
        for node in body:
            self.touches[node] = self._accesses(node, held)
            if isinstance(node, Loop):
                self._find(node.body, held)
            elif isinstance(node, Ahead):
                self.touches |= {keep: self._accesses(keep, held) for keep in node.keeps}
                self._find(node.turn, held)
                self._find(node.body, {a: b for a, b in held.items() if a not in {k.stage.array for k in node.keeps}})
            elif isinstance(node, Arrival):
                held = {**held, **{buffer.stage.array: buffer for buffer in node.buffers}}
            elif isinstance(node, Fill) and node.iteration is None:
                held = {**held, node.buffer.stage.array: node.buffer}
            elif isinstance(node, Keep) and node.buffer is None:
                held = {array: buffer for array, buffer in held.items() if array != node.stage.array}

    def _insert(self, body: list[Node], pending: Pending) -> Pending:
        """Put barriers into a body, before each node that conflicts with what is pending; what is after it.

        Of a loop, that is what conflicts when all barriers are in it that are to be in it.
        """
        number = 0
        while number < len(body):
            node = body[number]
            if isinstance(node, Ahead):
                pending = self._insert(node.body, self._through(node.keeps, pending))
                pending = self._insert(node.turn, pending)
                number += 1
                continue
            if isinstance(node, Loop):
                self._settle(node, {touch: level for touch, level in pending.items() if level == FLYING})
            after, missing = self._flow([node], pending)
            if not missing:
                pending, number = after, number + 1
                continue
            for other in body[number + 1 :]:  # one barrier is for copies that follow one another
                if not isinstance(other, Fill):
                    break
                missing += self._flow([other], pending)[1]
            level, old, touch = max(missing, key=lambda one: one[0])
            barrier = Barrier(level, _reason(level, old, touch))
            body.insert(number, barrier)
            self.placed.append((body, barrier))
        return pending

    def _settle(self, loop: Loop, flying: Pending) -> None:
        """Put in the barriers that a loop needs by itself, and for copies before it that it waits for."""
        if loop in self.settled and flying.items() <= self.settled[loop].items():
            return
        self.settled[loop] = entry = flying | self.settled.get(loop, {})
        while True:
            inserted = len(self.placed)
            back = _joined(entry, self._back(loop, self._insert(loop.body, entry)))
            if (back == entry and inserted == len(self.placed)) or self.plan.state.count(loop.part) == 1:
                break
            entry = back

    def _flow(self, body: list[Node], pending: Pending) -> tuple[Pending, list[Conflict]]:
        """What is pending after a body, and the conflicts that no barrier is for."""
        self.entries, self.missing = {}, []
        return self._through(body, pending), self.missing

    def _through(self, body: Sequence[Node], pending: Pending) -> Pending:
        for node in body:
            match node:
                case Ahead():  # the loads are of this tile, and after a turn of the next
                    pending = self._through([*node.keeps, *node.body, *node.turn], pending)
                case Loop():
                    pending = self._around(node, pending)
                case Barrier() | Sync() | Arrival():
                    if isinstance(node, Barrier):
                        node.tensor |= any(touch.memory == TENSOR for touch in pending)
                    pending = _shifted(pending) if Sync.of(node) == "turn" else self._after(node, pending)
                case _:
                    touches = self.touches[node]
                    self.missing += [
                        (self._level(one, old), old, one)
                        for one in touches
                        for old, was in pending.items()
                        if self._conflicts(one, old, was)
                    ]
                    later = _is_multiplication(node) and self.plan.state.multiplies_later
                    flying = {one: FLYING if later or (one.writes and one.slots > 1) else OWN for one in touches}
                    pending = {**pending, **flying}
        return pending

    def _around(self, loop: Loop, pending: Pending) -> Pending:
        """Follow a loop until no iteration starts with more: with what it started with when it was followed before."""
        entry = _joined(pending, self.entries.get(loop, {}))
        while True:
            self.entries[loop] = entry
            after = self._through(loop.body, entry)
            back = _joined(entry, self._back(loop, after))
            if back == entry or self.plan.state.count(loop.part) == 1:
                break
            entry = back
        if self.plan.state.pipeline.at == loop.part.name:
            # Each copy that was started was waited for in its iteration.
            ended: Pending = {}
            for touch, level in after.items():
                ended = _joined(ended, {replace(touch, slot=ANY if touch.slots > 1 else touch.slot): max(level, OWN)})
            after = ended
        return _joined(entry, after)  # the loop may run no times

    def _back(self, loop: Loop, after: Pending) -> Pending:
        """What is pending when an iteration follows."""
        state = self.plan.state
        return _shifted(after) if state.pipeline.at == loop.part.name and not state.prefetch else after

    def _after(self, node: Barrier | Sync | Arrival, pending: Pending) -> Pending:
        """What is still pending after a wait."""
        match node:
            case Barrier(level=level):
                return {t: n if n == FLYING else level for t, n in pending.items() if n == FLYING or level < BLOCK}
            case Arrival(buffers):  # what an mbarrier counted is visible to all that wait there
                arrived = {*map(id, buffers)}
                return {t: n for t, n in pending.items() if not (t.writes and t.slot == 0 and id(t.buffer) in arrived)}
            case Sync("wait"):
                here = {t for t, n in pending.items() if n == FLYING and t.slot == 0 and not _is_multiplication(t.node)}
                return {t: OWN if t in here else n for t, n in pending.items()}
            case Sync("multiplied", some) if self.plan.state.waits_for_all:
                complete = {t for t in pending if not some or (t.slot > 0 and t.memory != TENSOR)}
                return {t: n for t, n in pending.items() if not (_is_multiplication(t.node) and t in complete)}
            case Sync("multiplied", some):
                return {t: OWN if _is_multiplying(t, n) and (t.slot or not some) else n for t, n in pending.items()}
        return pending

    def _accesses(self, node: Node, held: dict[str, Buffer]) -> list[Touch]:
        if isinstance(node, Fill):
            buffer = node.buffer
            slot = node.iteration if node.iteration is not None else node.ahead
            return [Touch(buffer.stage.array, True, slot % buffer.slots, buffer.slots, node, buffer)]
        if isinstance(node, Transfer):
            return [replace(touch, node=node) for fill in node.fills for touch in self._accesses(fill, held)]
        if isinstance(node, Leaf) and node.kind in ("combine", "gather"):
            if combination(self.plan.state, node.statement).scratch:
                return [Touch(f"{node.statement.name} of threads", node.kind == "combine", 0, 1, node, None)]  # type: ignore[attr-defined]
            return []
        if isinstance(node, Leaf) and node.kind == "load":
            return [Touch(TENSOR, False, 0, 1, node, None)]
        if isinstance(node, Keep):
            held = held if node.buffer is None else {node.stage.array: node.buffer}
            arrays = {node.stage.array}
        elif isinstance(node, Leaf):
            arrays = {load.array for load in reads(node)}
        else:
            return []
        found = [
            Touch(array, False, 0, held[array].slots, node, held[array]) for array in sorted(arrays) if array in held
        ]
        if _is_multiplication(node) and self.plan.state.unit == "tcgen05":
            found.append(Touch(TENSOR, True, 0, 1, node, None))
        return found

    def _conflicts(self, one: Touch, old: Touch, was: int) -> bool:
        if one.memory != old.memory or one.buffer is not old.buffer or not (one.writes or old.writes):
            return False
        if one.memory == TENSOR and _is_multiplication(one.node) and _is_multiplication(old.node):
            return False  # one thread issues these, and they are executed in their order
        if ANY not in (one.slot, old.slot) and one.slot != old.slot:
            return False
        return was < self._level(one, old) > OWN

    def _level(self, one: Touch, old: Touch) -> int:
        """Whose accesses two touches of one buffer are."""
        key = (one.node, old.node, one.memory)
        if key not in self.levels:
            threads = self.plan.state.thread_count
            widest = WARP if threads <= 32 else BLOCK
            if one.memory == TENSOR:
                level = widest
            elif one.buffer is None or old.buffer is None:
                statement = one.node.statement  # type: ignore[union-attr]
                within = combination(self.plan.state, statement).within
                level = WARP if 32 % within == 0 and threads % 32 == 0 else widest
            elif any(self._is_of_all(touch.node) for touch in (one, old)):
                level = widest
            else:
                level = self._crossing(self._accessed(one), self._accessed(old))
                if any(_is_multiplication(t.node) for t in (one, old)):
                    level = max(level, WARP)  # lanes load what others of the warp multiply
                if level == WARP and threads > 32 and threads % 32:
                    level = BLOCK  # a warp barrier names lanes, and the last warp lacks some
            self.levels[key] = level
        return self.levels[key]

    def _is_of_all(self, node: Node) -> bool:
        """Whether all threads take part in an access together."""
        return isinstance(node, Transfer) or (_is_multiplication(node) and self.plan.state.multiplies_later)

    def _crossing(self, first: Pairs, second: Pairs) -> int:
        """Whether an element is accessed by one thread only, by one warp only, or by several."""
        both = np.unique(np.concatenate([first, second], axis=1), axis=1)
        element, thread = both
        same = element[1:] == element[:-1]
        if not same.any():
            return OWN
        return WARP if (thread[1:] // 32 == thread[:-1] // 32)[same].all() else BLOCK

    def _accessed(self, touch: Touch) -> Pairs:
        """Elements of a buffer, and threads that access them."""
        key = (touch.node, touch.memory)
        if key not in self.pairs:
            assert touch.buffer is not None
            found = copied(self.plan, touch.buffer) if touch.writes else self._read(touch.node, touch.buffer)
            self.pairs[key] = np.unique(found, axis=1)
        return self.pairs[key]

    def _read(self, node: Node, buffer: Buffer) -> Pairs:
        leaves = node.leaves if isinstance(node, Keep) else [node]
        found = []
        for load in (load for leaf in leaves for load in reads(leaf) if load.array == buffer.stage.array):  # type: ignore[arg-type]
            inside = Linear()
            for index, origin, stride in zip(load.index, buffer.origin, buffer.strides, strict=True):
                inside += (self.plan.index(index) - origin) * stride
            element = places(self.plan.state, inside)
            threads = np.arange(len(element)).reshape(-1, 1)
            found.append(np.stack([element.ravel(), np.broadcast_to(threads, element.shape).ravel()]))
        return np.concatenate(found, axis=1)


def copied(plan: Plan, buffer: Buffer) -> Pairs:
    """Elements of a buffer, and the threads that copy them."""
    walk = chunks(plan, buffer)
    number = np.arange(walk.count)
    thread = number % plan.state.thread_count
    element = np.zeros_like(number)
    for extent, (dimension, step) in zip(reversed(walk.extents), reversed(walk.steps), strict=True):
        element += number % extent * step * buffer.strides[dimension]
        number = number // extent
    across = np.arange(walk.vector) * buffer.strides[-1]
    return np.stack([(element[:, None] + across).ravel(), np.repeat(thread, walk.vector)])


def _is_multiplication(node: Node) -> bool:
    return isinstance(node, Leaf) and node.kind == "multiply"


def _is_multiplying(touch: Touch, level: int) -> bool:
    """Whether tensor cores may still do it."""
    return level == FLYING and _is_multiplication(touch.node)


def _joined(first: Pending, second: Pending) -> Pending:
    return {one: min(first.get(one, BLOCK), second.get(one, BLOCK)) for one in {**first, **second}}


def _shifted(pending: Pending) -> Pending:
    """What is pending at the next iteration: slots are then one less."""
    return {
        replace(t, slot=(t.slot - 1) % t.slots) if t.slots > 1 and t.slot != ANY else t: level
        for t, level in pending.items()
    }


def _reason(level: int, old: Touch, new: Touch) -> str:
    whose = "other threads of the warp" if level == WARP else "other threads"
    if not old.writes:
        return f"{whose} have read `{old.memory}` before it is overwritten"
    return f"{whose} have written `{old.memory}`" + (" before it is overwritten" if new.writes else "")
