"""Loads and stores of lanes that execute a kernel together.

Where all lanes have one address, they load as one thread does. Where their addresses follow each other, one check of
the whole range serves all of them; else all addresses are checked at once. If one of them is not where the last one
was, each lane is checked and served by itself, in the order of lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.translate import access, lane_tracking
from ptxlab.emulate.translate.hints import FIELDS, register
from ptxlab.emulate.translate.lane_functions import Places, gather, scatter
from ptxlab.emulate.translate.lane_masks import NONE
from ptxlab.emulate.translate.lane_shapes import Indexed, Strided
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue, bits_of
from ptxlab.isa.types import Type, type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.lanes import LaneFunction

_U64 = type_named("u64")
AHEAD = 4  # groups of lanes, between one that loads and one for which it is fetched


def load(
    lanes: LaneFunction, address: LlvmAddress, type: Type, count: int, order: str, condition: int = -1
) -> tuple[LlvmValue, ...]:
    """Values side by side in memory, in each lane; the counter `condition` counts them, if not that of the block."""
    builder, bits, size = lanes.builder, bits_of(type), max(type.width // 8, 1)
    lane_tracking.note(lanes, address, size * count, address_spaces.LOAD, order, size)
    if address.value.text not in builder.shapes:
        with lanes.reporting():
            return access.load(lanes, address, type, count, None, order)
    results = [builder.buffer(bits) for _ in range(count)]

    def each(pointer: str) -> None:
        for index, result in enumerate(results):
            found = builder.plain(f"load {bits}, ptr {_offset(lanes, pointer, size * index)}, align 1")
            builder.put_element(bits, result, found)

    def together(pointer: str, stride: int) -> list[str]:
        return _wide_load(lanes, pointer, bits, count, stride // size)

    def scattered(places: Places) -> list[str]:
        return [gather(builder, bits, places.after(builder, size * index)) for index in range(count)]

    def read() -> list[str]:
        return [builder.unbuffered(bits, result) for result in results]

    lanes.unit.counting.note_look(lanes, address.space)
    lanes.unit.counting.count_access(lanes, address, size * count, address_spaces.LOAD, condition)
    texts = _access(lanes, address, size * count, address_spaces.LOAD, _Ways(each, together, scattered, read))
    return tuple(LlvmValue(lanes, type, text) for text in texts(bits))


def store(
    lanes: LaneFunction, address: LlvmAddress, values: Sequence[LlvmValue], order: str, condition: int = -1
) -> None:
    """Values side by side to memory, of each lane."""
    builder, bits, size = lanes.builder, bits_of(values[0].type), max(values[0].type.width // 8, 1)
    texts = [value.text for value in values]
    lane_tracking.note(lanes, address, size * len(values), address_spaces.STORE, order, size)
    if address.value.text not in builder.shapes and not any(text in builder.shapes for text in texts):
        with lanes.reporting():
            access.store(lanes, address, values, None, order)
        return
    vectors = [builder.widened(bits, text) for text in texts]
    buffers: list[str] = []

    def each(pointer: str) -> None:
        for index, vector in enumerate(buffers):
            builder.lines.append(
                f"  store {bits} {builder.element(bits, vector)}, ptr {_offset(lanes, pointer, size * index)}, align 1"
            )

    def together(pointer: str, stride: int) -> list[str]:
        _wide_store(lanes, pointer, bits, vectors, stride // size)
        return []

    def scattered(places: Places) -> list[str]:
        mask, nowhere = lanes.mask(), builder.buffer(bits)
        for index, vector in enumerate(vectors):
            scatter(builder, bits, places.after(builder, size * index), vector, mask, nowhere)
        return []

    def keep() -> list[str]:
        buffers.extend(builder.buffer(bits, vector) for vector in vectors)
        return []

    lanes.unit.counting.note_change(lanes, address.space)
    lanes.unit.counting.count_access(lanes, address, size * len(values), address_spaces.STORE, condition)
    _access(lanes, address, size * len(values), address_spaces.STORE, _Ways(each, together, scattered, list, keep))


@dataclass(frozen=True, slots=True)
class _Ways:
    """The ways in which lanes access memory, each written by a function."""

    each: Callable[[str], None]  # one lane, at its address in the host's memory
    together: Callable[[str, int], list[str]]  # all lanes, from an address on at a distance
    scattered: Callable[[Places], list[str]]  # all lanes, wherever they are
    read: Callable[[], list[str]]  # what each lane found
    prepare: Callable[[], list[str]] = list  # before lanes do so one by one


def _access(
    lanes: LaneFunction, address: LlvmAddress, bytes: int, kind: int, ways: _Ways
) -> Callable[[str], list[str]]:
    """An access of lanes, by a check for all of them if that is possible; a function of a type gives what they found.

    Where addresses follow each other, those of the first and the last are checked, otherwise all of them, at once.
    Lanes that do not pass do it one by one.
    """
    builder = lanes.builder
    if address.space == "shared::cluster":
        found = _access_by_each(lanes, address, bytes, kind, ways)
        return lambda _: found
    shape = builder.shapes.get(address.value.text)
    stride = shape.stride if isinstance(shape, Strided) else 0
    is_even = stride > 0 and stride % bytes == 0
    check, slow, done, fast, near, last = (
        builder.new_label(name) for name in ("check", "slow", "done", "fast", "near", "last")
    )
    number = lanes.unit.hints
    builder.jump(check)
    builder.label(slow)
    found = _access_by_each(lanes, address, bytes, kind, ways)
    builder.jump(last)
    builder.label(last)
    builder.jump(done)
    builder.label(check)
    memory = _memory(lanes, address, bytes, number)
    if is_even:
        assert isinstance(shape, Strided)
        pointer, inside = _range(lanes, memory, address, bytes, stride * (lanes.group - 1) // bytes)
        for condition in (lanes.is_full(), builder.is_evenly_spaced(shape)):
            inside = inside if condition == "true" else builder.plain(f"and i1 {inside}, {condition}")
        builder.branch(inside, fast, slow, likely=True)
        builder.label(fast)
        first = pointer()
        if kind == address_spaces.LOAD and not lanes.is_in_loop:
            _prefetch(lanes, first, stride)
        direct = ways.together(first, stride)
    else:
        is_indexed = isinstance(shape, Indexed) and shape.factor % bytes == 0
        distances, inside = (_indices_in if is_indexed else _distances_in)(lanes, memory, address, bytes)
        builder.branch(inside, fast, slow, likely=True)
        builder.label(fast)
        direct = ways.scattered(distances(_base(lanes, memory)))
    builder.jump(near)
    builder.label(near)
    builder.jump(done)
    builder.label(done)
    return lambda bits: [builder.phi(bits, (a, near), (b, last)) for a, b in zip(direct, found, strict=True)]


def _access_by_each(lanes: LaneFunction, address: LlvmAddress, bytes: int, kind: int, ways: _Ways) -> list[str]:
    """Check and serve each lane by itself, in the order of lanes."""
    builder, at = lanes.builder, address.value.text
    shape = builder.shapes.get(at)
    ways.prepare()
    is_any = shape is not None and not isinstance(shape, Strided)
    held = builder.buffer("i64", builder.widened("i64", at)) if is_any else ""
    with builder.each_lane(lanes.mask()):
        own = builder.element("i64", held) if held else builder.of_lane(at, shape) if isinstance(shape, Strided) else at
        ways.each(access.find(lanes, LlvmAddress(address.space, LlvmValue(lanes, _U64, own)), bytes, kind))
    return ways.read()


@dataclass(frozen=True, slots=True)
class _Memory:
    """The memory that an access is thought to be in: names of values."""

    start: str  # its address; empty: 0
    count: str  # how many pieces of the size of the access it has
    data: str  # where its address in the host's memory is; empty: it is that of shared memory


def _memory(lanes: LaneFunction, address: LlvmAddress, bytes: int, number: int) -> _Memory:
    """Where lanes look first; `number` is the hint that serves."""
    if address.space == "shared":
        return _Memory("", lanes.size_in("%shared_size", access.exponent(bytes)), "")
    builder, is_kept, hint = lanes.builder, lanes.hints.is_kept(number), access.hint_pointer(lanes, number)
    fields = {name: register(number, name) if is_kept else access.field(lanes, hint, name) for name in FIELDS}
    start = builder.plain(f"load i64, ptr {fields['base']}")
    return _Memory(start, builder.plain(f"load i64, ptr {fields['count']}"), fields["data"])


def _base(lanes: LaneFunction, memory: _Memory) -> str:
    return lanes.builder.plain(f"load ptr, ptr {memory.data}") if memory.data else "%shared"


def _range(
    lanes: LaneFunction, memory: _Memory, address: LlvmAddress, bytes: int, more: int
) -> tuple[Callable[[], str], str]:
    """Where the first lane's bytes are, and whether those of all lanes are in memory that the kernel may touch.

    `more` is how many pieces of that size there are from the first lane to the last.
    """
    builder, distance = lanes.builder, address.value.text
    if memory.start:
        distance = builder.plain(f"sub i64 {distance}, {memory.start}")
    fewer = builder.plain(f"call i64 @llvm.usub.sat.i64(i64 {memory.count}, i64 {more})")
    rotated = distance
    if bytes > 1:
        shift = access.exponent(bytes)
        rotated = builder.plain(f"call i64 @llvm.fshr.i64(i64 {distance}, i64 {distance}, i64 {shift})")
    inside = builder.plain(f"icmp ult i64 {rotated}, {fewer}")
    return lambda: builder.plain(f"getelementptr i8, ptr {_base(lanes, memory)}, i64 {distance}"), inside


def _distances_in(
    lanes: LaneFunction, memory: _Memory, address: LlvmAddress, bytes: int
) -> tuple[Callable[[str], Places], str]:
    """Where the bytes of each lane are, and whether all are in memory that the kernel may touch.

    A lane that does not execute is thought to be at the start of that memory.
    """
    builder, all = lanes.builder, lanes.wide("i64")
    distance = builder.widened("i64", address.value.text)
    if memory.start:
        distance = builder.vector(f"sub {all} {distance}, {builder.splat('i64', memory.start)}")
    distance = _of_active(lanes, "i64", distance)
    rotated = distance
    if bytes > 1:
        shift = builder.splat("i64", str(access.exponent(bytes)))
        name = f"@llvm.fshr.v{lanes.group}i64"
        rotated = builder.vector(f"call {all} {name}({all} {distance}, {all} {distance}, {all} {shift})")
    inside = builder.vector(f"icmp ult {all} {rotated}, {builder.splat('i64', memory.count)}")
    return lambda base: Places(base, "i64", distance, 1), builder.all(inside)


def _indices_in(
    lanes: LaneFunction, memory: _Memory, address: LlvmAddress, bytes: int
) -> tuple[Callable[[str], Places], str]:
    """The same where a number of 32 bits says where each lane is; a negative one does not pass."""
    builder, start = lanes.builder, address.value.text
    shape = builder.shapes[start]
    assert isinstance(shape, Indexed)
    if memory.start:
        start = builder.plain(f"sub i64 {start}, {memory.start}")
    first = start
    if bytes > 1:
        first = builder.plain(f"call i64 @llvm.fshr.i64(i64 {start}, i64 {start}, i64 {access.exponent(bytes)})")
    room = builder.plain(f"sub i64 {memory.count}, {first}")
    step = shape.factor // bytes
    if step > 1:
        room = builder.plain(f"udiv i64 {builder.plain(f'add i64 {room}, {step - 1}')}, {step}")
    most = 1 << 31 if shape.cast == "sext" else (1 << 32) - 1
    limit = builder.plain(f"trunc i64 {builder.plain(f'call i64 @llvm.umin.i64(i64 {room}, i64 {most})')} to i32")
    index = _of_active(lanes, "i32", shape.index)
    inside = builder.are_below(index, limit)
    starts = builder.plain(f"icmp ult i64 {first}, {memory.count}")

    def places(base: str) -> Places:
        return Places(builder.plain(f"getelementptr i8, ptr {base}, i64 {start}"), "i32", index, shape.factor)

    return places, builder.plain(f"and i1 {starts}, {inside}")


def _of_active(lanes: LaneFunction, type: str, vector: str) -> str:
    """A vector that is zero for lanes that do not execute."""
    mask = lanes.mask()
    if mask is None:
        return vector
    return lanes.builder.choose(mask, type, vector, NONE)


def _wide_load(lanes: LaneFunction, pointer: str, bits: str, count: int, step: int) -> list[str]:
    """`count` values of each lane, that are `step` values after those of the lane before."""
    builder = lanes.builder
    if step == count == 1:
        return [builder.vector(f"load {lanes.wide(bits)}, ptr {pointer}, align 1")]
    if step == count:
        whole = f"<{lanes.group * count} x {bits}>"
        read = builder.plain(f"load {whole}, ptr {pointer}, align 1")
        return [
            builder.vector(f"shufflevector {whole} {read}, {whole} poison, {_indices(lanes, index, count)}")
            for index in range(count)
        ]
    found = []
    for index in range(count):
        vector = "poison"
        for lane in range(lanes.group):
            at = builder.plain(f"getelementptr {bits}, ptr {pointer}, i64 {lane * step + index}")
            one = builder.plain(f"load {bits}, ptr {at}, align 1")
            vector = builder.vector(f"insertelement {lanes.wide(bits)} {vector}, {bits} {one}, i64 {lane}")
        found.append(vector)
    return found


def _wide_store(lanes: LaneFunction, pointer: str, bits: str, vectors: Sequence[str], step: int) -> None:
    builder = lanes.builder
    if step == len(vectors) == 1:
        builder.lines.append(f"  store {lanes.wide(bits)} {vectors[0]}, ptr {pointer}, align 1")
        return
    for lane in range(lanes.group):
        for index, vector in enumerate(vectors):
            at = builder.plain(f"getelementptr {bits}, ptr {pointer}, i64 {lane * step + index}")
            one = builder.plain(f"extractelement {lanes.wide(bits)} {vector}, i64 {lane}")
            builder.lines.append(f"  store {bits} {one}, ptr {at}, align 1")


def _prefetch(lanes: LaneFunction, pointer: str, stride: int) -> None:
    """Have the processor fetch what lanes load that come a little later: it rarely sees that they follow each other."""
    at = lanes.builder.plain(f"getelementptr i8, ptr {pointer}, i64 {AHEAD * lanes.group * stride}")
    lanes.builder.lines.append(f"  call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 3, i32 1)")


def _indices(lanes: LaneFunction, first: int, step: int) -> str:
    return f"<{lanes.group} x i32> <{', '.join(f'i32 {first + step * lane}' for lane in range(lanes.group))}>"


def _offset(lanes: LaneFunction, pointer: str, bytes: int) -> str:
    return lanes.builder.plain(f"getelementptr i8, ptr {pointer}, i64 {bytes}") if bytes else pointer
