"""Copies in the tree of a plan: of stages at the start of their loops, of a pipeline ahead of them, and what waits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ptxlab.measure.block_scaled import FORMATS
from ptxlab.schedule.scaled import factors_box, packed, packed_box
from ptxlab.schedule.state import Stage
from ptxlab.schedule.statements import Gathered
from ptxlab.schedule.tree import (
    BYTES,
    Ahead,
    Arrival,
    Buffer,
    Fill,
    Keep,
    Leaf,
    Loop,
    Node,
    Plan,
    Sync,
    Transfer,
    readers,
    reads,
    walk,
)

MOST_ROWS = 256  # of a box that TMA copies
EIGHT = 8


def put_copies(plan: Plan, body: list[Node], path: tuple[Loop, ...]) -> None:
    """Put the copies of stages at the start of the loops that they are for."""
    for node in body:
        if isinstance(node, Loop):
            put_copies(plan, node.body, (*path, node))
    at = path[-1].part.name if path else ""
    state = plan.state
    fills: list[Node] = []
    keeps: list[Node] = []
    for stage in state.stages:
        leaves = readers(body, stage.array)
        if stage.at != at or not leaves:
            continue
        if stage.space == "shared":
            box = whole = _buffer(plan, stage, leaves, path)
            if state.pair > 1 and plan.sharing(box) > 1:  # of numbers; each block needs all of their factors
                box = replace(box, shape=(*box.shape[:-2], box.shape[-2] // state.pair, box.shape[-1]))
            plan.buffers += (boxes := [box] if box.element not in FORMATS else [packed_box(box), factors_box(whole)])
            fills += map(Fill, boxes)
        else:
            keeps.append(Keep(stage, leaves))
    by_tma = state.pipeline.by == "tma"
    inside = not by_tma and any(Sync.of(node) == "fence" for node, _ in walk(body))  # after these copies, too
    fences = [Sync("fence")] if fills and state.multiplies_later and not inside else []
    body[:0] = [*fills, *fences, *keeps]
    for number, node in reversed(list(enumerate(body))):
        if isinstance(node, Leaf) and node.kind == "multiply" and state.multiplies_later:
            body.insert(number + 1, Sync("multiplied"))
    multiplied = [_has(node, "multiply") for node in body]
    for number, node in reversed(list(enumerate(body))):
        if _has(node, "load") and not multiplied[number] and any(multiplied):
            body.insert(number, Sync("fence waited"))
            break
    number = 0
    while number < len(body):
        node = body[number]
        if isinstance(node, Loop) and node.part.name == state.pipeline.at:
            number += _pipeline(plan, body, number, node, path)
        number += 1


def _has(node: Node, kind: str) -> bool:
    return any(isinstance(inner, Leaf) and inner.kind == kind for inner, _ in walk([node]))


def _pipeline(plan: Plan, body: list[Node], number: int, loop: Loop, path: tuple[Loop, ...]) -> int:
    """Move the copies of a loop ahead; returns the number of nodes that go before it."""
    stages = plan.state.pipeline.stages
    fills = [node for node in loop.body if isinstance(node, Fill)]
    if not fills:
        return 0
    if loop.part.name in plan.unrolled:
        said = f"`{loop.part.name}` is unrolled, and copies are ahead of a loop that runs"
        plan.state.illegal(said, "stage in another loop: `at`")
    rest: list[Node] = [node for node in loop.body if not isinstance(node, Fill)]
    first: list[Node] = []
    for iteration in range(stages - 1):
        first += [*(Fill(fill.buffer, iteration=iteration) for fill in fills), Sync("commit")]
    for fill in fills:
        fill.buffer.slots = stages
        fill.ahead = stages - 1
    if plan.state.pipeline.by == "tma":
        if path:
            said = f"copies by TMA run ahead of one loop, and `{path[-1].part.name}` runs around `{loop.part.name}`"
            axis = path[-1].part.axis
            reduced = axis in plan.state.algorithm.reduced
            help = f"`tile` `{axis}` once" if reduced else f'`blocks("{axis}")` before `stage`'
            plan.state.illegal(said, help)
        for fill in fills:
            blocks, rows = plan.sharing(fill.buffer) // plan.state.pair, fill.buffer.shape[-2]
            if blocks > 1 and rows % (EIGHT * blocks):
                said = f"{rows} rows of `{fill.buffer.stage.array}` are not {blocks} times a multiple of {EIGHT}"
                plan.state.illegal(f"{said}, in which the swizzle repeats", "use another tile")
            if max(fill.buffer.shape[:-1]) > MOST_ROWS:
                said = f"{max(fill.buffer.shape[:-1])} rows of `{fill.buffer.stage.array}` are staged"
                plan.state.refuse("schedule-limit", f"{said}, and TMA copies {MOST_ROWS} at most", "use smaller tiles")
        return _transfer(plan, body, number, loop, fills)
    fences = [node for node in rest if Sync.of(node).startswith("fence")]
    rest = [node for node in rest if not Sync.of(node).startswith("fence")]
    loop.body[:] = [Sync("wait", stages - 2), *fences, *fills, Sync("commit"), *rest]
    if plan.state.prefetch:
        first += _prefetch(plan, loop, fills, rest, stages)
    body[number:number] = first
    return len(first)


def _transfer(plan: Plan, body: list[Node], number: int, loop: Loop, fills: list[Fill]) -> int:
    """Have TMA copy what a loop reads: by one thread of those that compute, or by a warp of its own."""
    state = plan.state
    stages = state.pipeline.stages
    once = loop.part.name == state.once  # multiplications are then waited for where they are read
    gone = ("fence", "fence waited", *(() if once else ("multiplied",)))
    rest: list[Node] = [n for n in loop.body if not isinstance(n, Fill) and Sync.of(n) not in gone]
    multiplies = state.multiplies_later and not once
    if multiplies and not any(isinstance(n, Leaf) and n.kind == "multiply" for n in rest):
        state.illegal(f"`{state.unit}` is not all that is done in an iteration of `{loop.part.name}`")
    last: list[Node] = [Sync("multiplied", 1)] if multiplies else []
    after: list[Node] = [Sync("multiplied")] if multiplies else []
    arrival = Arrival([fill.buffer for fill in fills])
    for fill in fills:
        fill.buffer.slots = stages
    if state.specialized:
        own = [Fill(fill.buffer) for fill in fills]
        plan.producer = [Loop(loop.part, [Sync("vacancy"), Transfer(own)])]
        if state.unit == "tcgen05":
            loop.body[:] = [arrival, *rest, Sync("release multiplied")]
            plan.multiplier = [loop, Sync("complete")]
            body[number] = Sync("multiplied")
            if state.persistent:
                plan.multiplier.insert(0, Sync("free"))
                body.insert(max(n for n, node in enumerate(body) if _has(node, "load")) + 1, Sync("read"))
            return 0
        loop.body[:] = [arrival, *rest, *last, Sync("release now" if once else "release before")]
        if once:
            return 0
        if state.persistent or state.multicast:  # otherwise no thread waits for the last slot
            after.append(Sync("release last"))
        body[number + 1 : number + 1] = after
        return len(after)
    for fill in fills:
        fill.ahead = stages - 1
    first: list[Node] = [Transfer([Fill(f.buffer, iteration=n) for f in fills]) for n in range(stages - 1)]
    if multiplies or once:
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
        state.illegal(said, "stage registers in the loop directly inside")
    keeps = [node for node in inner.body if isinstance(node, Keep)]
    buffers = {fill.buffer.stage.array: fill.buffer for fill in fills}
    for keep in keeps:
        if len(readers(plan.tree, keep.stage.array)) > len(keep.leaves) or keep.stage.array not in buffers:
            state.illegal(f"`{keep.stage.array}` is not read from shared memory in this loop only")
    body: list[Node] = [node for node in inner.body if not isinstance(node, Keep)]
    turn: list[Node] = [Sync("turn"), Sync("wait", stages - 2), *(Keep(keep.stage, keep.leaves) for keep in keeps)]
    loop.body[:] = [*fills, Sync("commit"), Ahead(inner.part, keeps, turn, body)]
    return [Sync("wait", stages - 2), *(Keep(keep.stage, keep.leaves, buffers[keep.stage.array]) for keep in keeps)]


def _check_read(plan: Plan, stage: Stage, inner: Iterable[str]) -> None:
    """Refuse a stage that tensor cores would read a part of in each iteration: they read all of it at once."""
    state = plan.state
    for tensor in state.tensors:
        for name in inner if stage.array in tensor.arrays else ():
            if state.part(name).role == "serial" and name not in state.fragments(tensor):
                said = f"a multiplication reads one iteration of `{name}` of `{stage.array}`, and more is staged"
                state.illegal(said, f'`stage("{stage.array}", ..., at="{name}")`')


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
            names = {name for name in index.names if isinstance(name, Gathered)}
            axes = plan.axes_of(index.only(names))
            if inner := [part.name for axis in axes for part in state.parts[axis] if part.name not in state.blocks]:
                said = (
                    f"`{stage.array}` is read at indices that depend on `{inner[0]}`: no box holds what a block reads"
                )
                state.illegal(said, f'`blocks("{axes[0]}")`, or stage it in registers')
            origin = index.only(outside | names | set(state.algorithm.sizes))
            low = high = index.constant
            _check_read(plan, stage, (index - origin).names)
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
            said = f"accesses to `{stage.array}` do not move together, so that no box holds them"
            state.illegal(said, "give the array a second time, by another name")
        low = min(bound[1] for bound in bounds)
        boxes.append((bounds[0][0] + low, max(bound[2] for bound in bounds) - low + 1))
    guarded = tuple(
        any(not load.is_inside or any(not plan.is_exact(a) for a in plan.axes_of(load.index[d])) for load in found)
        for d in range(len(boxes))
    )
    element = state.algorithm.arrays[stage.array].element
    buffer = Buffer(stage, element, tuple(b[0] for b in boxes), tuple(b[1] for b in boxes), guarded=guarded)
    together = buffer.columns * packed(element)
    if stage.swizzle and buffer.shape[-1] % together:
        said = f"`{stage.array}` has rows of {buffer.shape[-1]} elements, and {together} are swizzled together"
        state.illegal(said, "use tiles of a multiple of that, or a narrower swizzle")
    if stage.swizzle and (others := [leaf.statement for leaf in leaves if leaf.kind != "multiply"]):
        what = getattr(others[0], "name", "") or getattr(others[0], "array", "")
        said = f"`{stage.array}` is swizzled, and `{what}` is not computed by tensor cores"
        state.illegal(said, "`pad`; tensor cores compute one sum, and with `online` two")
    multiplies = any(leaf.kind == "multiply" for leaf in leaves)
    if multiplies and not stage.swizzle and buffer.columns * BYTES[element] % 16:
        said = f"rows of {buffer.columns} elements of `{stage.array}` are not a multiple of 16 bytes"
        state.illegal(said, "choose another `pad`")
    if multiplies and (stage.transposed or any(n > 1 for n in buffer.shape[:-2])):
        state.illegal(f"tensor cores read `{stage.array}` as a matrix, as it is stored")
    if element in FORMATS and not multiplies:
        state.illegal(f"`{stage.array}` is of {element}, which `tcgen05` reads", "`tensorize` first")
    return buffer
