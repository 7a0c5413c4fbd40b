"""A plan as a kernel of `author`: the tree, written from top to bottom, with the step that made each part beside it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from math import prod
from typing import Any

from ptxlab.author import Kernel, b32, f32, pointer, ptx, s32, u32
from ptxlab.author.emit import emit
from ptxlab.author.lines import SourcePosition
from ptxlab.author.trace import current
from ptxlab.schedule.address import FILL, READ, Addresses, Below, Place, Value, advance
from ptxlab.schedule.elements import ELEMENTS, load_bits, load_numbers, shared_address, store_bits, store_numbers
from ptxlab.schedule.expressions import is_zero, register, write_expression
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.plan import (
    BYTES,
    Ahead,
    Barrier,
    Buffer,
    Commit,
    Fill,
    Keep,
    Leaf,
    Loop,
    Node,
    Plan,
    Turn,
    Wait,
    reads,
    walk,
)
from ptxlab.schedule.reference import NEUTRAL
from ptxlab.schedule.statements import Let, Load, Reduce, Statement, Store
from ptxlab.schedule.walk import WARP, chunks, combination

STATIC_BYTES = 48 * 1024  # of shared memory that a kernel can declare; more is dynamic
BATCH = 16  # registers that are loaded before the first of them is stored
_COMBINE = {"add": "add.rn.f32", "max": "max.f32", "min": "min.f32"}


def write_kernel(plan: Plan) -> Kernel:
    """The kernel: pointers and numbers in the order of the algorithm's parameters, then the sizes."""
    algorithm = plan.state.algorithm
    types: dict[str, Any] = {
        name: pointer[ELEMENTS[algorithm.arrays[name].element]]  # type: ignore[misc]
        if name in algorithm.arrays
        else f32
        for name in algorithm.parameters
    }
    types |= {name: s32 for name in algorithm.sizes if name not in plan.state.fixed}

    def body(*values: Any) -> None:
        _Writer(plan, dict(zip(types, values, strict=True))).write()

    # A finding about an argument then shows the algorithm.
    known = algorithm.function.__code__
    body.__code__ = body.__code__.replace(
        co_filename=known.co_filename, co_name=known.co_name, co_firstlineno=known.co_firstlineno
    )
    body.__name__ = algorithm.name
    body.__doc__ = algorithm.function.__doc__
    body.__annotations__ = types
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    body.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in types])  # type: ignore[attr-defined]
    directives: dict[str, tuple[int, ...]] = {"maxntid": (plan.state.thread_count,)}
    if plan.state.resident:
        directives["minnctapersm"] = (plan.state.resident,)
    position = SourcePosition(known, known.co_firstlineno, 0)
    return Kernel(body, plan.state.target, None, directives, position)


def shared_bytes(plan: Plan) -> int:
    """The dynamic shared memory of a launch."""
    total = sum(size for _, size in _memory(plan))
    return total if total > STATIC_BYTES else 0


def _memory(plan: Plan) -> list[tuple[str, int]]:
    """Arrays in shared memory by name: copies of one stage in several loops are one after the other."""
    found = [(f"{buffer.stage.array}_{number}", buffer.bytes) for number, buffer in enumerate(plan.buffers)]
    for node, _ in walk(plan.tree):
        if isinstance(node, Leaf) and node.kind == "combine" and combination(plan.state, node.statement).scratch:
            assert isinstance(node.statement, Reduce)
            count = prod(plan.state.count(plan.state.part(name)) or 1 for name in node.loops)
            found.append((f"{node.statement.name}_of_threads", count * plan.state.thread_count * 4))
    return found


class _Writer:
    def __init__(self, plan: Plan, values: dict[str, Any]) -> None:
        self.plan, self.state = plan, plan.state
        self.algorithm = plan.state.algorithm
        self.values = values
        self.kept: dict[str, dict[tuple[Linear, ...], Value]] = {}
        self.held: dict[str, tuple[Buffer, int]] = {}
        self.made: dict[tuple[str, tuple[int, ...]], Value] = {}  # numbers of `Let` and `Reduce`
        self.loaded: dict[Load, Value] = {}  # by the statement that is being written
        self.collected: list[tuple[Store, tuple[Linear, ...], Value, list[Below]]] | None = None
        self.scratch: dict[str, Value] = {}
        self.outs: dict[str, dict[tuple[Linear, ...], Value]] = {}  # registers that loads are to write
        self.ring: tuple[Value, Value] | None = None
        self.first: list[Below] = []  # which of the threads with the same number stores it

    # What comes before the tree.

    def write(self) -> None:
        self.trace = current()
        self._at(self.algorithm.statements[0])
        self.comment(f"{self.algorithm.name}: " + (", ".join(self.state.steps) or "one thread does all of it"))
        sizes = {name: self.values[name] for name in self.algorithm.sizes if name in self.values}
        pointers = {name: self.values[name] for name in self.algorithm.arrays}
        self.addresses = Addresses(self.plan, pointers, sizes)
        self._write_blocks()
        self._write_threads()
        self._write_memory()
        self.fills = [self._coordinates(number, buffer) for number, buffer in enumerate(self.plan.buffers)]
        self._body(self.plan.tree)

    def comment(self, text: str, step: int | None = None) -> None:
        """A line of text, with the step that it is from."""
        made = f"{self.state.steps[step]}: " if step is not None and step < len(self.state.steps) else ""
        self.trace.lines.append(f"    // {made}{text}".encode("ascii", "replace").decode())

    def _at(self, statement: Statement) -> None:
        """What is written now is from the line of a statement."""
        self.trace.position = SourcePosition(self.algorithm.function.__code__, statement.line, 0)

    def _write_blocks(self) -> None:
        names = self.state.blocks
        if not names:
            return
        self.comment(f"the number of a block is that of {', '.join(names)}", self.state.part(names[0]).step)
        known = self.addresses.registers
        if not self.state.group:
            for name, axis in zip(reversed(names), "xyz", strict=False):
                known[name] = getattr(ptx.ctaid, axis).view(s32)
            return
        down, across = (self._count(name).view(u32) for name in names)
        number = ptx.ctaid.x
        size = across * self.state.group
        first = number // size * self.state.group
        rows = ptx.min.u32(down - first, self.state.group)
        within = number % size
        known[names[0]] = (first + within % rows).view(s32)
        known[names[1]] = (within // rows).view(s32)

    def _count(self, name: str) -> Value:
        """How many iterations a part has, in a register."""
        part = self.state.part(name)
        count = self.state.count(part)
        if count is not None:
            return s32(count)
        extent = self.addresses.value(self.state.extent(part.axis))
        if part.weight == 1:
            return extent
        more = emit("add.s32", [extent, part.weight - 1], out=s32())
        return (more.view(u32) // part.weight).view(s32)

    def _write_threads(self) -> None:
        self.thread: Value = 0
        if self.state.thread_count == 1:
            self.addresses.numbers.update(dict.fromkeys(self.state.threads, 0))
            self.plan.unrolled.update(self.state.threads)
            return
        names = ", ".join(self.state.threads)
        self.comment(f"the number of a thread is that of {names}", self.state.part(self.state.threads[0]).step)
        self.thread = rest = ptx.tid.x
        for place, name in reversed(list(enumerate(self.state.threads))):
            count = self.state.count(self.state.part(name)) or 1
            self.addresses.registers[name] = (rest % count if place else rest).view(s32)
            if place:
                rest = rest // count

    def _write_memory(self) -> None:
        memory = _memory(self.plan)
        starts: list[Value] = []
        if shared_bytes(self.plan):
            start, total = ptx.dynamic_shared(b32, align=16).address, 0
            for _, size in memory:
                starts.append(start + total if total else start)
                total += size
        else:
            starts = [ptx.shared(b32, -(-size // 4), align=16, name=name).address for name, size in memory]
        for number in range(len(self.plan.buffers)):
            self.addresses.memory[number] = starts[number]
        self.scratch = {name: start for (name, _), start in zip(memory, starts, strict=True)}

    def _coordinates(self, number: int, buffer: Buffer) -> list[tuple[list[Linear], Linear | None]]:
        """For each turn of a copy: where in the box the chunk is, and its number where some threads have none."""
        found = chunks(self.plan, buffer)
        threads, registers = self.state.thread_count, self.addresses.registers
        turns = -(-found.count // threads)
        if threads == 1:
            return [(_digits(turn, found.extents), None) for turn in range(turns)]
        rest, apart = threads, 1  # threads that have no digit yet, and how far apart those of a digit are
        fixed: list[tuple[Linear, int, int]] = []
        regular = True
        for extent in reversed(found.extents):
            regular = regular and (rest % extent == 0 or extent % rest == 0)
            if rest % extent == 0:
                fixed.append((self._digit(f"{number}.{len(fixed)}", apart, extent if rest > extent else 0), extent, 1))
                apart, rest = apart * extent, rest // extent
            else:
                fixed.append(
                    (self._digit(f"{number}.{len(fixed)}", apart, 0) if rest > 1 else Linear(), rest, extent // rest)
                )
                apart, rest = apart * rest, 1
        registers["thread"] = self.thread.view(s32)
        if not regular:
            return [self._irregular(number, turn, found.extents, found.count) for turn in range(turns)]
        result: list[tuple[list[Linear], Linear | None]] = []
        for turn in range(turns):
            left, digits = turn, []
            for first, count, times in fixed:
                digits.append(first + left % times * count)
                left //= times
            result.append((digits[::-1], Linear.of("thread") if rest > 1 else None))
        return result

    def _digit(self, name: str, apart: int, count: int) -> Linear:
        """A digit of the thread's number, by name."""
        value = self.thread // apart if apart > 1 else self.thread
        self.addresses.registers[f"chunk.{name}"] = (value % count if count else value).view(s32)
        return Linear.of(f"chunk.{name}")

    def _irregular(
        self, number: int, turn: int, extents: Sequence[int], count: int
    ) -> tuple[list[Linear], Linear | None]:
        threads, names = self.state.thread_count, []
        value = rest = self.thread + turn * threads if turn else self.thread
        for place, extent in reversed(list(enumerate(extents))):
            names.append(f"chunk.{number}.{turn}.{place}")
            self.addresses.registers[names[-1]] = (rest % extent).view(s32)
            rest = rest // extent
        self.addresses.registers[f"chunk.{number}.{turn}"] = value.view(s32)
        some = (turn + 1) * threads > count
        return [Linear.of(name) for name in reversed(names)], Linear.of(f"chunk.{number}.{turn}") if some else None

    # The tree.

    def _body(self, body: Sequence[Node]) -> None:
        held, kept = dict(self.held), dict(self.kept)
        for node in body:
            self._node(node)
        self.held, self.kept = held, kept

    def _node(self, node: Node) -> None:
        match node:
            case Loop():
                self._loop(node)
            case Leaf():
                self._leaf(node)
            case Fill():
                self._fill(node)
                if node.iteration is None:
                    self.held[node.buffer.stage.array] = node.buffer, self.plan.buffers.index(node.buffer)
            case Keep(buffer=None):
                self._keep(node)
            case Keep(buffer=buffer):
                assert buffer is not None
                held, self.held = self.held, {node.stage.array: (buffer, self.plan.buffers.index(buffer))}
                self.addresses.numbers[self.state.prefetch] = 0
                self._keep(node)
                del self.addresses.numbers[self.state.prefetch]
                self.held = held
            case Ahead():
                self._ahead(node)
            case Turn():
                self._advance_ring(True)
                for place in [p for p in self.addresses.known if isinstance(p, Place) and p.slot == READ]:
                    self._slot(place)
            case Commit():
                emit("cp.async.commit_group", [])
            case Wait():
                assert self.state.pipeline is not None
                self.comment("until the copies of this iteration have arrived", self.state.pipeline[2])
                emit("cp.async.wait_group", [node.pending])
            case Barrier():
                self.comment(f"derived: {node.reason}")
                self._barrier(node.level)

    def _barrier(self, level: int) -> None:
        if level > 1:
            emit("bar.sync", [0])
        else:
            emit("bar.warp.sync", [self._mask])

    @property
    def _mask(self) -> int:
        return -1 if self.state.thread_count >= WARP else (1 << self.state.thread_count) - 1

    def _loop(self, loop: Loop) -> None:
        name = loop.part.name
        if name in self.plan.unrolled:
            self._unrolled(loop)
            return
        self.comment(f"loop {name}")
        addresses = self.addresses
        places = list(dict.fromkeys(self._places(loop.body, dict(self.held), frozenset(self.kept))))
        rings = self.state.pipeline is not None and self.state.pipeline[0] == name
        slotted = [place for place in places if place.slot and rings]
        for place in places:
            addresses.pointer(Place(place.array, place.index, place.buffer) if rings else place)
        count = self._count(name)
        with self._ring(bool(slotted)):
            counter = s32(0)
            moving = []
            outside = addresses.known
            addresses.known = outside.new_child()
            for place in places:
                if name in place.names:
                    own = type(addresses.pointer(place))()
                    emit(f"mov.{own.type.name}", [addresses.pointer(place)], out=own)
                    addresses.known[place] = own
                    moving.append((own, addresses.step(place, name)))
            again, end = self.trace.label("loop"), self.trace.label("end")
            if self.state.count(loop.part) is None:
                emit("bra", [end], when=emit("setp.ge.s32", [counter, count]))
            self.trace.place_label(again)
            addresses.registers[name] = counter
            for place in slotted:
                self._slot(place)
            self._body(loop.body)
            for own, step in moving:
                advance(own, step)
            self._advance_ring(bool(slotted) and not self.state.prefetch)
            emit("add.s32", [counter, 1], out=counter)
            emit("bra", [again], when=emit("setp.lt.s32", [counter, count]))
            self.trace.place_label(end)
            del addresses.registers[name]
            addresses.known = outside

    @contextmanager
    def _ring(self, needed: bool) -> Iterator[None]:
        """The numbers of the slots that a pipelined loop reads and fills."""
        outer = self.ring
        if needed:
            assert self.state.pipeline is not None
            self.ring = u32(0), u32(self.state.pipeline[1] - 1)
        yield
        self.ring = outer

    def _slot(self, place: Place) -> None:
        """An address in the slot that is read, or filled, in this iteration."""
        assert self.ring is not None
        assert place.buffer is not None
        buffer = self.plan.buffers[place.buffer]
        start = self.addresses.pointer(Place(place.array, place.index, place.buffer))
        number = self.ring[0 if place.slot == READ else 1]
        size = buffer.size * BYTES[buffer.element]
        self.addresses.known[place] = emit("mad.lo.u32", [number, size, start], out=u32())

    def _advance_ring(self, needed: bool) -> None:
        if not needed:
            return
        assert self.ring is not None
        assert self.state.pipeline is not None
        for number in self.ring:
            emit("add.u32", [number, 1], out=number)
            emit("mov.u32", [0], out=number, when=emit("setp.eq.u32", [number, self.state.pipeline[1]]))

    def _ahead(self, node: Ahead) -> None:
        """Write an unrolled loop in which each iteration starts with the loads of the next one."""
        name, count, numbers = node.part.name, self.state.count(node.part), self.addresses.numbers
        assert count is not None
        arrays = [keep.stage.array for keep in node.keeps]
        first = {array: self.kept[array] for array in arrays}
        for number in range(count):
            current = {array: self.kept[array] for array in arrays}
            if number + 1 < count:
                numbers[name] = number + 1
                for keep in node.keeps:
                    self._keep(keep)
            else:
                numbers[name] = 0
                self.kept = {**self.kept, **first}
                self.outs = first
                held = dict(self.held)
                for one in node.turn:
                    self._node(one)
                self.held, self.outs = held, {}
            following = {array: self.kept[array] for array in arrays}
            self.kept = {**self.kept, **current}
            numbers[name] = number
            self._body(node.body)
            self.kept = {**self.kept, **following}
        del numbers[name]

    def _unrolled(self, loop: Loop) -> None:
        name, count = loop.part.name, self.state.count(loop.part)
        assert count is not None
        stores = [node for node, _ in walk(loop.body) if isinstance(node, Leaf) and node.kind == "store"]
        collects = self.collected is None and any(s.statement.array in self.state.vectors for s in stores)  # type: ignore[attr-defined]
        if collects:
            self.collected = []
        updates = all(isinstance(node, Leaf) and node.kind == "update" for node in loop.body)
        outer = sum(self.addresses.numbers.values()) % 2
        numbers = range(count)
        # Back and forth: each instruction then shares an operand with the one before.
        back = updates and bool(outer) and loop.part.axis in loop.body[0].statement.axes  # type: ignore[union-attr]
        for number in reversed(numbers) if back else numbers:
            self.addresses.numbers[name] = number
            self._body(loop.body)
        del self.addresses.numbers[name]
        if collects:
            self._flush()

    def _places(
        self, body: Sequence[Node], held: dict[str, tuple[Buffer, int]], kept: frozenset[str]
    ) -> Iterator[Place]:
        """The addresses that a body needs."""
        place = self.addresses.place
        for node in body:
            if isinstance(node, Loop):
                yield from self._places(node.body, held, kept)
            elif isinstance(node, Ahead):
                yield from self._places([*node.keeps, *node.turn, *node.body], held, kept)
            elif isinstance(node, Fill):
                number = self.plan.buffers.index(node.buffer)
                if node.iteration is None:
                    held = {**held, node.buffer.stage.array: (node.buffer, number)}
                for digits, _ in self.fills[number]:
                    source, inside = self._chunk(node, digits)
                    yield place(node.buffer.stage.array, source)
                    slot = FILL if node.buffer.slots > 1 and node.iteration is None else ""
                    yield place(node.buffer.stage.array, [inside], number, slot)
            elif isinstance(node, (Keep, Leaf)):
                leaves = node.leaves if isinstance(node, Keep) else [node]
                wanted = [
                    load
                    for leaf in leaves
                    for load in reads(leaf)
                    if isinstance(node, Leaf) or load.array == node.stage.array
                ]
                for load in wanted:
                    if isinstance(node, Leaf) and load.array in kept:
                        continue
                    if load.array in held:
                        buffer, number = held[load.array]
                        slot = READ if buffer.slots > 1 else ""
                        yield place(
                            load.array,
                            [self._position(buffer, [self.plan.index(one) for one in load.index])],
                            number,
                            slot,
                        )
                    else:
                        yield place(load.array, [self.plan.index(one) for one in load.index])
                if isinstance(node, Keep):
                    kept |= {node.stage.array}
                elif node.kind == "store":
                    assert isinstance(node.statement, Store)
                    yield place(node.statement.array, [self.plan.index(one) for one in node.statement.index])

    # Copies.

    def _chunk(self, fill: Fill, digits: Sequence[Linear]) -> tuple[list[Linear], Linear]:
        """Where a chunk is in the array, and in the buffer."""
        buffer = fill.buffer
        index, inside = list(buffer.origin), Linear()
        for digit, (dimension, step) in zip(digits, chunks(self.plan, buffer).steps, strict=True):
            index[dimension] = index[dimension] + digit * step
            inside = inside + digit * (step * buffer.strides[dimension])
        if self.state.pipeline is not None and buffer.slots > 1:
            name = self.state.pipeline[0]
            moved = Linear.of(fill.iteration) if fill.iteration is not None else Linear.of(name) + fill.ahead
            index = [one.replaced({name: moved}) for one in index]
        return index, inside

    def _fill(self, fill: Fill) -> None:
        buffer, number = fill.buffer, self.plan.buffers.index(fill.buffer)
        array, vector = buffer.stage.array, chunks(self.plan, buffer).vector
        size = vector * BYTES[buffer.element]
        statement = next(
            s for s in self.algorithm.statements if any(load.array == array for load in reads(Leaf("let", s)))
        )
        self._at(statement)
        box = " x ".join(map(str, buffer.shape))
        self.comment(f"{box} of {array} to shared memory", buffer.stage.step)
        runs = buffer.slots > 1 and size >= 4
        slot = FILL if buffer.slots > 1 and fill.iteration is None else ""
        waiting: list[tuple[Any, list[Value], Value]] = []
        during = self._during(fill)
        for digits, chunk in self.fills[number]:
            index, inside = self._chunk(fill, digits)
            limits = [
                Below(one, extent)
                for one, extent, g in zip(index, self.plan.extents(array), buffer.guarded, strict=True)
                if g
            ]
            limits += [
                Below(one) for one, g in zip(index, buffer.guarded, strict=True) if g and not _starts_inside(one)
            ]
            some = list(during)
            if chunk is not None:
                some.append(Below(chunk, Linear.of(chunks(self.plan, buffer).count)))
            source = self.addresses.element(array, index)
            target = self.addresses.shared(number, inside, slot, fill.iteration or 0)
            when = self.addresses.predicate(some)
            if runs:
                ignored = self.addresses.predicate(limits, negated=True)
                operands = [target, source, size, *([ignored] if ignored is not None else [])]
                emit(f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global", operands, when=when)
                continue
            inside_of = self.addresses.predicate([*limits, *some])
            values = load_bits(source, "global", size, inside_of)
            waiting.append((target, values, when))
            if sum(len(one[1]) for one in waiting) >= BATCH:
                self._store_raw(buffer, waiting)
        self._store_raw(buffer, waiting)

    def _during(self, fill: Fill) -> list[Below]:
        """The condition that there is an iteration that a copy is for."""
        if self.state.pipeline is None or fill.buffer.slots == 1:
            return []
        part = self.state.part(self.state.pipeline[0])
        number = Linear.of(part.name) + fill.ahead if fill.iteration is None else Linear.of(fill.iteration)
        outermost = Linear(((part.name, part.weight),)).replaced({part.name: number})
        if part.extent is not None:
            return [Below(number, Linear.of(part.extent))]
        return [Below(outermost, self.state.extent(part.axis))]

    def _store_raw(self, buffer: Buffer, waiting: list[tuple[Any, list[Value], Value]]) -> None:
        stride = buffer.strides[-1]
        for target, values, when in waiting:
            if stride == 1 or len(values) == 1:
                store_bits(target, values, when)
                continue
            for place, value in enumerate(values):
                moved = target.part(target.element, place * stride * BYTES[buffer.element])
                store_bits(moved, [value], when)
        waiting.clear()

    def _keep(self, keep: Keep) -> None:
        """Load what a thread reads in this iteration to registers, neighbours at once where they are aligned."""
        array, addresses = keep.stage.array, self.addresses
        self._at(keep.leaves[0].statement)
        self.comment(f"{array} to registers", keep.stage.step)
        wanted: dict[tuple[Linear, ...], Load] = {}
        for load in (load for leaf in keep.leaves for load in reads(leaf) if load.array == array):
            box = [self.plan.index(one).replaced(addresses.numbers) for one in load.index]
            inner = sorted({name for one in box for name in one.names if name in self.plan.unrolled})
            for numbers in product(*(range(self.state.count(self.state.part(name)) or 1) for name in inner)):
                chosen = dict(zip(inner, numbers, strict=True))
                wanted.setdefault(tuple(one.replaced(chosen) for one in box), load)
        found: dict[tuple[Linear, ...], Value] = {}
        contiguous = -1
        if array in self.held:
            contiguous = self.held[array][0].strides.index(1)
        for index in sorted(wanted, key=lambda one: [(part.terms, part.constant) for part in one]):
            if index in found:
                continue
            width = self.state.vectors.get(array, 1)
            group = [
                (*index[: contiguous % len(index)], index[contiguous] + place, *index[contiguous % len(index) + 1 :])
                for place in range(width)
            ]
            if (
                width == 1
                or not all(one in wanted and one not in found for one in group)
                or not self._is_aligned(array, index, width)
            ):
                group = [index]
            outs = [self.outs[array][one] for one in group] if array in self.outs else None
            values = self._load(array, index, len(group), self._bounds(wanted[index], index), outs)
            found.update(zip(group, values, strict=True))
        self.kept[array] = found

    def _is_aligned(self, array: str, index: Sequence[Linear], width: int) -> bool:
        """Whether so many elements from this one on are at an aligned address, and masked together."""
        if array in self.held:
            return self._position(self.held[array][0], index).is_multiple(width, {})
        if not self.plan.extents(array)[-1].is_multiple(width, self.plan.multiples):
            return False
        return index[-1].is_multiple(width, self.plan.multiples)

    def _masks_together(self, index: Sequence[Linear], width: int) -> bool:
        """Whether the limits of the axes in an index are multiples of the width, where they are masked."""
        return all(
            self.plan.is_exact(axis) or self.state.extent(axis).is_multiple(width, self.plan.multiples)
            for axis in self.plan.axes_of(index[-1])
        )

    def _load(
        self, array: str, index: Sequence[Linear], width: int, limits: Sequence[Below], outs: list[Value] | None = None
    ) -> list[Value]:
        """Elements from a buffer, or from global memory where they are in bounds, as f32."""
        element = self.algorithm.arrays[array].element
        if array in self.held:
            buffer, number = self.held[array]
            source = self.addresses.shared(number, self._position(buffer, index), READ if buffer.slots > 1 else "")
            return load_numbers(source, "shared", element, width, None, outs)
        source = self.addresses.element(array, index)
        return load_numbers(source, "global", element, width, self.addresses.predicate(limits))

    def _position(self, buffer: Buffer, index: Sequence[Linear]) -> Linear:
        """Where in a buffer an element is."""
        found = Linear()
        for one, origin, stride in zip(index, buffer.origin, buffer.strides, strict=True):
            found = found + (one - origin.replaced(self.addresses.numbers)) * stride
        return found

    def _bounds(self, load: Load, index: Sequence[Linear]) -> list[Below]:
        """The conditions that an element is one of the array, where that is not so for all iterations."""
        found = []
        for one, extent, at in zip(load.index, self.plan.extents(load.array), index, strict=True):
            if not load.is_inside or not all(self.plan.is_exact(axis) for axis in self.plan.axes_of(one)):
                found += [Below(at, extent), *([] if _starts_inside(at) else [Below(at)])]
        return found

    # Statements.

    def _leaf(self, leaf: Leaf) -> None:
        one = leaf.statement
        self._at(one)
        self.loaded = {}
        if isinstance(one, Store):
            self._store(one)
        elif isinstance(one, Let):
            self.made[self._key(one)] = self._expression(one.value)
        elif isinstance(one, Reduce):
            if leaf.kind == "init":
                self._init(one)
            elif leaf.kind == "update":
                self._update(one)
            else:
                self._combine(leaf, one)

    def _key(self, one: Let | Reduce) -> tuple[str, tuple[int, ...]]:
        names = [name for name in self.state.serial(one.axes) if name in self.plan.unrolled]
        return one.name, tuple(self.addresses.numbers[name] for name in names)

    def _init(self, one: Reduce) -> None:
        key = self._key(one)
        if key in self.made:
            emit("mov.f32", [NEUTRAL[one.operation]], out=self.made[key])
        else:
            self.made[key] = f32(NEUTRAL[one.operation])

    def _update(self, one: Reduce) -> None:
        total = self.made[self._key(one)]
        limits = [] if self._is_neutral(one) else self._outside(one.over)
        when = self.addresses.predicate(limits)
        if one.condition is not None:
            holds = self._expression(one.condition)
            when = holds if when is None else emit("and.pred", [when, holds])
        value = one.value
        if one.operation == "add" and getattr(value, "name", "") == "mul" and hasattr(value, "operands"):
            left, right = (self._expression(part) for part in value.operands)
            emit("fma.rn.f32", [register(left), register(right), total], out=total, when=when)
            return
        emit(_COMBINE[one.operation], [total, self._expression(value)], out=total, when=when)

    def _outside(self, axes: Sequence[str]) -> list[Below]:
        """The conditions that iterations of tiles are ones of the axis."""
        return [Below(self.plan.axis(a), self.state.extent(a)) for a in axes if not self.plan.is_exact(a)]

    def _is_neutral(self, one: Reduce) -> bool:
        """Whether what is masked adds zero, because all that it reads is masked to zero."""
        if one.operation != "add":
            return False
        return all(
            self.plan.is_exact(axis) or is_zero(one.value, lambda load, axis=axis: self._is_masked(load, axis))  # type: ignore[misc]
            for axis in one.over
        )

    def _is_masked(self, load: Load, axis: str) -> bool:
        """Whether a load is zero where an axis is out of bounds: an index is that axis, and as long as the array."""
        if load.array not in self.held and load.array not in self.kept:
            return any(axis in self.plan.axes_of(index) for index in load.index)
        extents = self.plan.extents(load.array)
        return any(
            i == Linear.of(axis) and e == self.state.extent(axis) for i, e in zip(load.index, extents, strict=True)
        )

    def _expression(self, value: Any) -> Value:
        return write_expression(value, self.addresses, self._number, self._element)

    def _number(self, name: str) -> Value:
        if name in self.values:
            return self.values[name]
        one = next(s for s in self.algorithm.statements if isinstance(s, (Let, Reduce)) and s.name == name)
        return self.made[self._key(one)]

    def _element(self, load: Load) -> Value:
        index = tuple(self.plan.index(one).replaced(self.addresses.numbers) for one in load.index)
        if load.array in self.kept:
            return self.kept[load.array][index]
        if load not in self.loaded:
            limits = self._bounds(load, index) if not load.is_inside else []
            if load.array in self.algorithm.outputs:  # only the thread that writes an element reads it
                limits += self.first
            axes = {axis for one in load.index for axis in self.plan.axes_of(one)}
            self.loaded[load] = self._load(load.array, index, 1, [*limits, *self._outside(sorted(axes))])[0]
        return self.loaded[load]

    def _store(self, one: Store) -> None:
        index = tuple(self.plan.index(part).replaced(self.addresses.numbers) for part in one.index)
        limits = [Below(b.value.replaced(self.addresses.numbers), b.limit) for b in self._outside(one.axes)]
        # Where several threads or blocks have the same number, the first of them stores it.
        others = [n for n in (*self.state.blocks, *self.state.threads) if self.state.part(n).axis not in one.axes]
        self.first = [Below(Linear.of(name), Linear.of(1)) for name in others]
        limits += self.first
        value = self._expression(one.value)
        if self.collected is not None and one.condition is None and one.array in self.state.vectors:
            self.collected.append((one, index, value, limits))
            return
        when = self.addresses.predicate(limits)
        if one.condition is not None:
            holds = self._expression(one.condition)
            when = holds if when is None else emit("and.pred", [when, holds])
        element = self.algorithm.arrays[one.array].element
        store_numbers(self.addresses.element(one.array, index), element, [value], when)

    def _flush(self) -> None:
        """Store what was collected, several neighbours at once where they are aligned."""
        assert self.collected is not None
        found = {(one.array, index): (one, value, limits) for one, index, value, limits in self.collected}
        self.collected = None
        while found:
            array, index = next(iter(found))
            one, _, _ = found[array, index]
            width = self.state.vectors[array]
            first = index[-1] - index[-1].constant % width
            group = [(array, (*index[:-1], first + place)) for place in range(width)]
            if not self._is_stored_aligned(one, first, width) or not all(key in found for key in group):
                group = [(array, index)]
            limits = found[group[0]][2]
            place = self.addresses.element(array, group[0][1])
            values = [found.pop(key)[1] for key in group]
            store_numbers(place, self.algorithm.arrays[array].element, values, self.addresses.predicate(limits))

    def _is_stored_aligned(self, one: Store, first: Linear, width: int) -> bool:
        pitch = self.plan.extents(one.array)[-1]
        return (
            pitch.is_multiple(width, self.plan.multiples)
            and first.is_multiple(width, self.plan.multiples)
            and self._masks_together(one.index, width)
        )

    def _combine(self, leaf: Leaf, one: Reduce) -> None:
        """Combine a reduction among threads: by shuffles in a warp, by shared memory among warps."""
        how = combination(self.state, one)
        name = f"{one.name}_of_threads"
        inner = [loop for loop in leaf.loops if loop not in self.addresses.numbers and loop in self.plan.unrolled]
        counts = [range(self.state.count(self.state.part(loop)) or 1) for loop in inner]
        part = next(n for n in self.state.threads if self.state.part(n).axis in one.over)
        self.comment(f"{one.name} of all threads that share it", self.state.part(part).step)
        threads = self.state.thread_count
        for number, numbers in enumerate(product(*counts)):
            self.addresses.numbers.update(zip(inner, numbers, strict=True))
            total = self.made[self._key(one)]
            if leaf.kind == "combine":
                for distance in how.shuffles:
                    other = emit("shfl.sync.bfly.b32", [total, distance, WARP - 1, self._mask], out=f32())
                    emit(_COMBINE[one.operation], [total, other], out=total)
                if how.scratch:
                    address = emit("mad.lo.u32", [self.thread, 4, self.scratch[name]], out=u32())
                    store_bits(shared_address(address, 4 * threads * number), [total], None)
            elif how.scratch:
                first = self.thread
                for apart, count in how.scratch:
                    digit = (self.thread // apart) % count
                    first = first - digit * apart
                address = emit("mad.lo.u32", [first, 4, self.scratch[name]], out=u32())
                offsets = [
                    sum(n * apart for n, (apart, _) in zip(ns, how.scratch, strict=True))
                    for ns in product(*(range(c) for _, c in how.scratch))
                ]
                for place, offset in enumerate(sorted(offsets)):
                    source = shared_address(address, 4 * (offset + threads * number))
                    value = emit("ld.shared.f32", [source], out=f32() if place else total)
                    if place:
                        emit(_COMBINE[one.operation], [total, value], out=total)
            for loop in inner:
                del self.addresses.numbers[loop]


def _digits(number: int, extents: Sequence[int]) -> list[Linear]:
    found = []
    for extent in reversed(extents):
        found.append(Linear.of(number % extent))
        number //= extent
    return found[::-1]


def _starts_inside(index: Linear) -> bool:
    return index.constant >= 0 and all(coefficient > 0 for _, coefficient in index.terms)
