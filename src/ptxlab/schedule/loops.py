"""The tree of a plan from top to bottom: loops, rings of slots, barriers; each with the step that made it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ptxlab.author import ptx, s32, u32
from ptxlab.author.emit import emit
from ptxlab.schedule import tree
from ptxlab.schedule.address import FILL, READ, Place, advance
from ptxlab.schedule.asynchronous import write_asynchronous
from ptxlab.schedule.computing import flush, write_leaf
from ptxlab.schedule.copies import source_of, write_fill
from ptxlab.schedule.operands import position, write_keep
from ptxlab.schedule.pieces import write_collect, write_deposit
from ptxlab.schedule.results import write_results
from ptxlab.schedule.statements import Store
from ptxlab.schedule.walk import runs_ahead
from ptxlab.schedule.writing import Writing


def write_body(w: Writing, body: Sequence[tree.Node]) -> None:
    """Write nodes one after the other; what is staged in them is forgotten after."""
    held, kept = dict(w.held), dict(w.kept)
    for node in body:
        _node(w, node)
    w.held, w.kept = held, kept


def _node(w: Writing, node: tree.Node) -> None:
    match node:
        case tree.Loop():
            _loop(w, node)
        case tree.Leaf():
            write_leaf(w, node)
        case tree.Fill():
            write_fill(w, node)
            if node.iteration is None:
                w.held[node.buffer.stage.array] = node.buffer, w.plan.buffers.index(node.buffer)
        case tree.Keep(buffer=None):
            write_keep(w, node)
        case tree.Keep(buffer=buffer):
            assert buffer is not None
            held, w.held = w.held, {node.stage.array: (buffer, w.plan.buffers.index(buffer))}
            w.addresses.numbers[w.state.prefetch] = 0
            write_keep(w, node)
            del w.addresses.numbers[w.state.prefetch]
            w.held = held
        case tree.Ahead():
            _ahead(w, node)
        case tree.Sync("turn"):
            _advance_ring(w, True)
            for place in [p for p in w.addresses.known if isinstance(p, Place) and p.slot == READ]:
                _slot(w, place)
        case tree.Sync("commit" | "wait") if not any(runs_ahead(w.plan, buffer) for buffer in w.plan.buffers):
            pass
        case tree.Sync("commit"):
            emit("cp.async.commit_group", [])
        case tree.Sync("wait"):
            w.comment("until the copies of this iteration have arrived", w.state.pipeline.step)
            emit("cp.async.wait_group", [node.pending])
        case tree.Shared():
            w.comment("derived: the block with the end of the sum has all of it")
            with ptx.when(w.pieces.end < w.pieces.count):
                write_deposit(w)
            with ptx.otherwise():
                with ptx.when(w.pieces.first > 0):
                    write_collect(w)
                write_body(w, node.body)
        case tree.Barrier():
            w.comment(f"derived: {node.reason}")
            w.barrier(node.level)
            if node.tensor:
                emit("tcgen05.fence::after_thread_sync", [])
        case _:
            write_asynchronous(w, node)
            for buffer in node.buffers if isinstance(node, tree.Arrival) else ():
                w.held[buffer.stage.array] = buffer, w.plan.buffers.index(buffer)


def _loop(w: Writing, loop: tree.Loop) -> None:
    name = loop.part.name
    if name in w.plan.unrolled:
        _unrolled(w, loop)
        return
    if w.state.count(loop.part) == 0:
        return
    w.comment(f"loop {name}")
    addresses = w.addresses
    places = list(dict.fromkeys(_places(w, loop.body, dict(w.held), frozenset(w.kept))))
    rings = w.state.pipeline.at == name
    slotted = [place for place in places if place.slot and rings]
    for place in places:
        addresses.pointer(Place(place.array, place.index, place.buffer) if rings else place)
    count = w.count(name)
    turns = bool(slotted) or (rings and bool(w.plan.mapped) and not w.state.specialized)
    with _ring(w, turns):
        counter = s32(0)
        if w.pieces is not None and rings:
            emit("mov.s32", [w.pieces.first], out=counter)
            count = w.pieces.end
        moving = []
        outside = addresses.known
        addresses.known = outside.new_child()
        for place in places:
            if name in place.names:
                own = type(addresses.pointer(place))()
                emit(f"mov.{own.type.name}", [addresses.pointer(place)], out=own)
                addresses.known[place] = own
                moving.append((own, addresses.step(place, name)))
        again, end = w.trace.label("loop"), w.trace.label("end")
        if w.state.count(loop.part) is None:
            emit("bra", [end], when=emit("setp.ge.s32", [counter, count]))
        w.trace.place_label(again)
        addresses.registers[name] = counter
        for place in slotted:
            _slot(w, place)
        collected, w.collected = w.collected, None  # what a loop that runs stores is not known after it
        write_body(w, loop.body)
        w.collected = collected
        for own, step in moving:
            advance(own, step)
        _advance_ring(w, turns and not w.state.prefetch)
        emit("add.s32", [counter, 1], out=counter)
        emit("bra", [again], when=emit("setp.lt.s32", [counter, count]))
        w.trace.place_label(end)
        del addresses.registers[name]
        addresses.known = outside


@contextmanager
def _ring(w: Writing, needed: bool) -> Iterator[None]:
    """The numbers of the slots that a pipelined loop reads and fills."""
    outer = w.ring
    if needed:
        w.ring = u32(0), u32(w.state.pipeline.stages - 1)
        w.parity = u32(0) if w.plan.mapped else None
        w.vacant = u32(1) if w.multiplied is not None else None
    yield
    w.ring = outer


def _slot(w: Writing, place: Place) -> None:
    """An address in the slot that is read, or filled, in this iteration."""
    assert w.ring is not None
    assert place.buffer is not None
    buffer = w.plan.buffers[place.buffer]
    start = w.addresses.pointer(Place(place.array, place.index, place.buffer))
    number = w.ring[0 if place.slot == READ else 1]
    size = buffer.size * tree.BYTES[buffer.element]
    w.addresses.known[place] = emit("mad.lo.u32", [number, size, start], out=u32())


def _advance_ring(w: Writing, needed: bool) -> None:
    if not needed:
        return
    assert w.ring is not None
    for number in w.ring:
        emit("add.u32", [number, 1], out=number)
        over = emit("setp.eq.u32", [number, w.state.pipeline.stages])
        emit("mov.u32", [0], out=number, when=over)
        parity = w.parity if number is w.ring[0] else w.vacant
        if parity is not None:
            emit("xor.b32", [parity, 1], out=parity, when=over)


def _ahead(w: Writing, node: tree.Ahead) -> None:
    """Write an unrolled loop in which each iteration starts with the loads of the next one."""
    name, count, numbers = node.part.name, w.state.count(node.part), w.addresses.numbers
    assert count is not None
    arrays = [keep.stage.array for keep in node.keeps]
    first = {array: w.kept[array] for array in arrays}
    for number in range(count):
        current = {array: w.kept[array] for array in arrays}
        if number + 1 < count:
            numbers[name] = number + 1
            for keep in node.keeps:
                write_keep(w, keep)
        else:
            numbers[name] = 0
            w.kept = {**w.kept, **first}
            w.outs = first
            held = dict(w.held)
            for one in node.turn:
                _node(w, one)
            w.held, w.outs = held, {}
        following = {array: w.kept[array] for array in arrays}
        w.kept = {**w.kept, **current}
        numbers[name] = number
        write_body(w, node.body)
        w.kept = {**w.kept, **following}
    del numbers[name]


def _unrolled(w: Writing, loop: tree.Loop) -> None:
    name, count = loop.part.name, w.state.count(loop.part)
    assert count is not None
    stores = [node for node, _ in tree.walk(loop.body) if isinstance(node, tree.Leaf) and node.kind == "store"]
    known = w.state.vectors.keys() | w.plan.results
    collects = w.collected is None and any(s.statement.array in known for s in stores)  # type: ignore[attr-defined]
    if collects:
        w.collected = {}
    updates = all(isinstance(node, tree.Leaf) and node.kind == "update" for node in loop.body)
    outer = sum(w.addresses.numbers.values()) % 2
    numbers = range(count)
    # Back and forth: each instruction then shares an operand with the one before.
    back = updates and bool(outer) and loop.part.axis in loop.body[0].statement.axes  # type: ignore[union-attr]
    for number in reversed(numbers) if back else numbers:
        w.addresses.numbers[name] = number
        write_body(w, loop.body)
    del w.addresses.numbers[name]
    if collects:
        flush(w)
        write_results(w)


def _places(
    w: Writing, body: Sequence[tree.Node], held: dict[str, tuple[tree.Buffer, int]], kept: frozenset[str]
) -> Iterator[Place]:
    """The addresses that a body needs."""
    place = w.addresses.place
    for node in body:
        if isinstance(node, tree.Loop):
            yield from _places(w, node.body, held, kept)
        elif isinstance(node, tree.Ahead):
            yield from _places(w, [*node.keeps, *node.turn, *node.body], held, kept)
        elif isinstance(node, tree.Fill):
            number = w.plan.buffers.index(node.buffer)
            if node.iteration is None:
                held = {**held, node.buffer.stage.array: (node.buffer, number)}
            slot = FILL if node.buffer.slots > 1 and node.iteration is None else ""
            for one in w.fills[number]:
                yield place(node.buffer.stage.array, source_of(w, node, one.box))
                yield place(node.buffer.stage.array, [one.inside], number, slot)
        elif isinstance(node, tree.Transfer):
            for fill in node.fills:
                place(fill.buffer.stage.array, fill.buffer.origin)  # indices that are read are, before the loop
        elif isinstance(node, tree.Leaf) and node.kind == "multiply":
            continue  # it has addresses of its own
        elif isinstance(node, (tree.Keep, tree.Leaf)):
            leaves = node.leaves if isinstance(node, tree.Keep) else [node]
            wanted = [
                load
                for leaf in leaves
                for load in tree.reads(leaf)
                if isinstance(node, tree.Leaf) or load.array == node.stage.array
            ]
            for load in wanted:
                if load.parts and load.array not in held:
                    continue  # its address is known when its indices are
                if isinstance(node, tree.Leaf) and load.array in kept:
                    continue
                if load.array in held:
                    buffer, number = held[load.array]
                    slot = READ if buffer.slots > 1 else ""
                    yield place(
                        load.array, [position(w, buffer, [w.plan.index(one) for one in load.index])], number, slot
                    )
                else:
                    yield place(load.array, [w.plan.index(one) for one in load.index])
            if isinstance(node, tree.Keep):
                kept |= {node.stage.array}
            elif node.kind == "store":
                assert isinstance(node.statement, Store)
                if node.statement.array in w.plan.results:
                    continue
                yield place(node.statement.array, [w.plan.index(one) for one in node.statement.index])
