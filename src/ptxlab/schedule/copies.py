"""Copies to shared memory: which chunk of a box each thread takes, and the instructions for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.author import s32, u32
from ptxlab.author.emit import emit
from ptxlab.schedule.address import FILL, Below, Value
from ptxlab.schedule.elements import load_bits, split_bits, store_bits
from ptxlab.schedule.linear import Linear
from ptxlab.schedule.tree import BYTES, Buffer, Fill, Leaf, reads
from ptxlab.schedule.walk import chunks, runs_ahead
from ptxlab.schedule.writing import Portion, Writing

BATCH = 16  # registers that are loaded before the first of them is stored


def portions(w: Writing, number: int, buffer: Buffer) -> list[Portion]:
    """What a thread copies of a box, for each turn of a copy."""
    found = []
    swizzled: dict[tuple[Linear, Linear], Linear] = {}
    for digits, chunk in _coordinates(w, number, buffer):
        box = [Linear() for _ in buffer.shape]
        for digit, (dimension, step) in zip(digits, chunks(w.plan, buffer).steps, strict=True):
            box[dimension] = box[dimension] + digit * step
        inside = Linear()
        for one, stride in zip(box, buffer.strides, strict=True):
            inside = inside + one * stride
        if buffer.swizzle is not None:
            row = Linear()
            for one, extent in zip(box[:-1], buffer.shape[:-1], strict=True):
                row = row * extent + one
            every = buffer.swizzle.period // (buffer.columns * BYTES[buffer.element])
            above = row.constant // every * every
            key = row - above, box[-1]
            if key not in swizzled:
                name = f"swizzled.{number}.{len(swizzled)}"
                w.addresses.registers[name] = _swizzled(w, buffer, *key)
                swizzled[key] = Linear.of(name)
            inside = swizzled[key] + above * buffer.columns
        found.append(Portion(tuple(box), inside, chunk))
    return found


def _swizzled(w: Writing, buffer: Buffer, row: Linear, column: Linear) -> Value:
    """Where in a swizzled box an element is, in elements."""
    down, right = (u32(v) if isinstance(v, int) else v.view(u32) for v in map(w.addresses.value, (row, column)))
    return (offset_in(buffer, down, right) // BYTES[buffer.element]).view(s32)


def offset_in(buffer: Buffer, row: Value, column: Value) -> Value:
    """Bytes from the start of a box to an element."""
    size = BYTES[buffer.element]
    if buffer.swizzle is None:
        return row * (buffer.columns * size) + column * size
    within = column % buffer.columns if buffer.panels > 1 else column
    offset = row * (buffer.columns * size) + within * size
    offset = offset ^ (offset >> buffer.swizzle.shift & buffer.swizzle.mask)
    if buffer.panels > 1:
        offset = offset + column // buffer.columns * (buffer.size // buffer.panels * size)
    return offset


def _coordinates(w: Writing, number: int, buffer: Buffer) -> list[tuple[list[Linear], Linear | None]]:
    """For each turn of a copy: the digits of the chunk's number, and that number where some threads have none."""
    found = chunks(w.plan, buffer)
    threads, registers = w.state.thread_count, w.addresses.registers
    turns = -(-found.count // threads)
    if threads == 1:
        return [(_digits(turn, found.extents), None) for turn in range(turns)]
    rest, apart = threads, 1  # threads that have no digit yet, and how far apart those of a digit are
    fixed: list[tuple[Linear, int, int]] = []
    regular = True
    for extent in reversed(found.extents):
        regular = regular and (rest % extent == 0 or extent % rest == 0)
        if rest % extent == 0:
            fixed.append((_digit(w, f"{number}.{len(fixed)}", apart, extent if rest > extent else 0), extent, 1))
            apart, rest = apart * extent, rest // extent
        else:
            fixed.append(
                (_digit(w, f"{number}.{len(fixed)}", apart, 0) if rest > 1 else Linear(), rest, extent // rest)
            )
            apart, rest = apart * rest, 1
    registers[".thread"] = w.thread.view(s32)
    if not regular:
        return [_irregular(w, number, turn, found.extents, found.count) for turn in range(turns)]
    result: list[tuple[list[Linear], Linear | None]] = []
    for turn in range(turns):
        left, digits = turn, []
        for first, count, times in fixed:
            digits.append(first + left % times * count)
            left //= times
        result.append((digits[::-1], Linear.of(".thread") if rest > 1 else None))
    return result


def _digit(w: Writing, name: str, apart: int, count: int) -> Linear:
    """A digit of the thread's number, by name."""
    value = w.thread // apart if apart > 1 else w.thread
    w.addresses.registers[f"chunk.{name}"] = (value % count if count else value).view(s32)
    return Linear.of(f"chunk.{name}")


def _irregular(
    w: Writing, number: int, turn: int, extents: Sequence[int], count: int
) -> tuple[list[Linear], Linear | None]:
    threads, names = w.state.thread_count, []
    value = rest = w.thread + turn * threads if turn else w.thread
    for place, extent in reversed(list(enumerate(extents))):
        names.append(f"chunk.{number}.{turn}.{place}")
        w.addresses.registers[names[-1]] = (rest % extent).view(s32)
        rest = rest // extent
    w.addresses.registers[f"chunk.{number}.{turn}"] = value.view(s32)
    some = (turn + 1) * threads > count
    return [Linear.of(name) for name in reversed(names)], Linear.of(f"chunk.{number}.{turn}") if some else None


def source_of(w: Writing, fill: Fill, box: Sequence[Linear]) -> list[Linear]:
    """Where in the array an element of a box is."""
    buffer = fill.buffer
    index = [origin + one for origin, one in zip(buffer.origin, box, strict=True)]
    if buffer.slots > 1:
        name = w.state.pipeline.at
        moved = Linear.of(fill.iteration) if fill.iteration is not None else Linear.of(name) + fill.ahead
        index = [one.replaced({name: moved}) for one in index]
    return index


def write_fill(w: Writing, fill: Fill) -> None:
    """Copy a box to shared memory, by all threads."""
    buffer, number = fill.buffer, w.plan.buffers.index(fill.buffer)
    array, vector = buffer.stage.array, chunks(w.plan, buffer).vector
    size = vector * BYTES[buffer.element]
    statement = next(s for s in w.algorithm.statements if any(load.array == array for load in reads(Leaf("let", s))))
    w.at(statement)
    box = " x ".join(map(str, buffer.shape))
    w.comment(f"{box} of {array} to shared memory", buffer.stage.step)
    runs = runs_ahead(w.plan, buffer)
    slot = FILL if buffer.slots > 1 and fill.iteration is None else ""
    waiting: list[tuple[Any, list[Value], Value]] = []
    some_iteration, hint = during(w, fill), w.hint(array)
    for one in w.fills[number]:
        index = source_of(w, fill, one.box)
        limits = [
            Below(at, extent) for at, extent, g in zip(index, w.plan.extents(array), buffer.guarded, strict=True) if g
        ]
        limits += [Below(at) for at, g in zip(index, buffer.guarded, strict=True) if g and not starts_inside(at)]
        some = list(some_iteration)
        if one.number is not None:
            some.append(Below(one.number, Linear.of(chunks(w.plan, buffer).count)))
        source = w.addresses.element(array, index, follows=runs)
        target = w.addresses.shared(number, one.inside, slot, fill.iteration or 0)
        when = w.addresses.predicate(some)
        if runs:
            ignored = w.addresses.predicate(limits, negated=True)
            operands = [target, source, size, *([ignored] if ignored is not None else []), *hint[1]]
            emit(f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global{hint[0]}", operands, when=when)
            continue
        inside_of = w.addresses.predicate([*limits, *some])
        values = load_bits(source, "global", size, inside_of, hint)
        waiting.append((target, values, when))
        if sum(len(one[1]) for one in waiting) >= BATCH:
            _store_raw(w, buffer, waiting)
    _store_raw(w, buffer, waiting)


def during(w: Writing, fill: Fill) -> list[Below]:
    """The condition that there is an iteration that a copy is for."""
    if fill.buffer.slots == 1:
        return []
    part = w.state.part(w.state.pipeline.at)
    number = Linear.of(part.name) + fill.ahead if fill.iteration is None else Linear.of(fill.iteration)
    outermost = Linear(((part.name, part.weight),)).replaced({part.name: number})
    if part.extent is not None:
        return [Below(number, Linear.of(part.extent))]
    return [Below(outermost, w.state.extent(part.axis))]


def _store_raw(w: Writing, buffer: Buffer, waiting: list[tuple[Any, list[Value], Value]]) -> None:
    size, walk = BYTES[buffer.element], chunks(w.plan, buffer)
    width, apart = walk.stored * size, walk.stored * buffer.strides[-1] * size
    for target, values, when in waiting:
        if walk.stored == walk.vector:
            store_bits(target, values, when, 8 if width == 1 else 0)
            continue
        parts, each = (split_bits(values, width), 1) if width < 4 else (values, width // 4)
        for place in range(len(parts) // each):
            part = target.part(target.element, place * apart)
            store_bits(part, parts[place * each : (place + 1) * each], when, min(8 * width, 32))
    waiting.clear()


def _digits(number: int, extents: Sequence[int]) -> list[Linear]:
    found = []
    for extent in reversed(extents):
        found.append(Linear.of(number % extent))
        number //= extent
    return found[::-1]


def starts_inside(index: Linear) -> bool:
    """Whether an index is never negative."""
    return index.constant >= 0 and all(coefficient > 0 for _, coefficient in index.terms)
