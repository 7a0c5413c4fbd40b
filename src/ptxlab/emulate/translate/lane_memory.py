"""Loads and stores of lanes that execute a kernel together.

Where all lanes have one address, they load as one thread does. Where their addresses follow each other, one check of
the whole range serves all of them. Otherwise each lane is checked and served by itself, in the order of lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.code import GROUP
from ptxlab.emulate.translate import access, lane_tracking
from ptxlab.emulate.translate.hints import FIELDS, register
from ptxlab.emulate.translate.lane_text import Strided, Varying, wide
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue, bits_of
from ptxlab.isa.types import Type, type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.lanes import LaneFunction

_U64 = type_named("u64")


def load(lanes: LaneFunction, address: LlvmAddress, type: Type, count: int, order: str) -> tuple[LlvmValue, ...]:
    """Values side by side in memory, in each lane."""
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

    def read() -> list[str]:
        return [builder.unbuffered(bits, result) for result in results]

    lanes.unit.counting.note_look(lanes, address.space)
    lanes.unit.counting.count_access(lanes, address, size * count, address_spaces.LOAD)
    texts = _access(lanes, address, size * count, address_spaces.LOAD, each, together, read, bits)
    return tuple(LlvmValue(lanes, type, text) for text in texts)


def store(lanes: LaneFunction, address: LlvmAddress, values: Sequence[LlvmValue], order: str) -> None:
    """Values side by side to memory, of each lane."""
    builder, bits, size = lanes.builder, bits_of(values[0].type), max(values[0].type.width // 8, 1)
    texts = [value.text for value in values]
    lane_tracking.note(lanes, address, size * len(values), address_spaces.STORE, order, size)
    if address.value.text not in builder.shapes and not any(text in builder.shapes for text in texts):
        with lanes.reporting():
            access.store(lanes, address, values, None, order)
        return
    vectors = [builder.widened(bits, text) for text in texts]

    def each(pointer: str) -> None:
        for index, vector in enumerate(buffers):
            builder.lines.append(
                f"  store {bits} {builder.element(bits, vector)}, ptr {_offset(lanes, pointer, size * index)}, align 1"
            )

    def together(pointer: str, stride: int) -> list[str]:
        _wide_store(lanes, pointer, bits, vectors, stride // size)
        return []

    buffers: list[str] = []

    def keep() -> None:
        buffers.extend(builder.buffer(bits, vector) for vector in vectors)

    lanes.unit.counting.note_change(lanes, address.space)
    lanes.unit.counting.count_access(lanes, address, size * len(values), address_spaces.STORE)
    _access(lanes, address, size * len(values), address_spaces.STORE, each, together, list, bits, keep)


def _access(
    lanes: LaneFunction,
    address: LlvmAddress,
    bytes: int,
    kind: int,
    each: Callable[[str], None],
    together: Callable[[str, int], list[str]],
    read: Callable[[], list[str]],
    bits: str,
    prepare: Callable[[], None] | None = None,
) -> list[str]:
    """An access `together` if that is possible, else by `each` lane, after which `read` gives what they found."""
    builder = lanes.builder
    shape = builder.shapes.get(address.value.text)
    stride = shape.stride if isinstance(shape, Strided) else 0
    is_even = stride > 0 and stride % bytes == 0 and address.space != "shared::cluster"
    check, slow, done = (builder.new_label(name) for name in ("check", "slow", "done"))
    number = lanes.unit.hints
    if is_even:
        builder.jump(check)
        builder.label(slow)
    if prepare is not None:
        prepare()
    at = address.value.text
    held = builder.buffer("i64", at) if isinstance(shape, Varying) else ""
    with builder.each_lane(lanes.mask()):
        own = builder.element("i64", held) if held else builder.of_lane(at, shape) if isinstance(shape, Strided) else at
        each(access.find(lanes, LlvmAddress(address.space, LlvmValue(lanes, _U64, own)), bytes, kind))
    found = read()
    if not is_even:
        return found
    assert isinstance(shape, Strided)
    last = builder.new_label("last")
    builder.jump(last)
    builder.label(last)
    builder.jump(done)
    builder.label(check)
    pointer, inside = _range(lanes, address, bytes, stride * (GROUP - 1) // bytes, number)
    fast = builder.new_label("fast")
    for condition in (lanes.is_full(), builder.is_evenly_spaced(shape)):
        inside = inside if condition == "true" else builder.plain(f"and i1 {inside}, {condition}")
    builder.branch(inside, fast, slow, likely=True)
    builder.label(fast)
    direct = together(pointer(), stride)
    near = builder.new_label("near")
    builder.jump(near)
    builder.label(near)
    builder.jump(done)
    builder.label(done)
    return [builder.phi(bits, (a, near), (b, last)) for a, b in zip(direct, found, strict=True)]


def _range(
    lanes: LaneFunction, address: LlvmAddress, bytes: int, more: int, number: int
) -> tuple[Callable[[], str], str]:
    """Where the first lane's bytes are, and whether those of all lanes are in memory that the kernel may touch.

    `more` is how many pieces of that size there are from the first lane to the last; `number` is the hint that serves.
    """
    builder, at = lanes.builder, address.value.text
    if address.space == "shared":
        count = lanes.size_in("%shared_size", access.exponent(bytes))
        distance, data = at, ""
    else:
        is_kept, hint = lanes.hints.is_kept(number), access.hint_pointer(lanes, number)
        fields = {name: register(number, name) if is_kept else access.field(lanes, hint, name) for name in FIELDS}
        start = builder.plain(f"load i64, ptr {fields['base']}")
        distance = builder.plain(f"sub i64 {at}, {start}")
        count = builder.plain(f"load i64, ptr {fields['count']}")
        data = fields["data"]
    fewer = builder.plain(f"call i64 @llvm.usub.sat.i64(i64 {count}, i64 {more})")
    rotated = distance
    if bytes > 1:
        shift = access.exponent(bytes)
        rotated = builder.plain(f"call i64 @llvm.fshr.i64(i64 {distance}, i64 {distance}, i64 {shift})")
    inside = builder.plain(f"icmp ult i64 {rotated}, {fewer}")

    def pointer() -> str:
        base = builder.plain(f"load ptr, ptr {data}") if data else "%shared"
        return builder.plain(f"getelementptr i8, ptr {base}, i64 {distance}")

    return pointer, inside


def _wide_load(lanes: LaneFunction, pointer: str, bits: str, count: int, step: int) -> list[str]:
    """`count` values of each lane, that are `step` values after those of the lane before."""
    builder = lanes.builder
    if step == count == 1:
        return [builder.vector(f"load {wide(bits)}, ptr {pointer}, align 1")]
    if step == count:
        whole = f"<{GROUP * count} x {bits}>"
        read = builder.plain(f"load {whole}, ptr {pointer}, align 1")
        return [
            builder.vector(f"shufflevector {whole} {read}, {whole} poison, {_indices(index, count)}")
            for index in range(count)
        ]
    found = []
    for index in range(count):
        vector = "poison"
        for lane in range(GROUP):
            at = builder.plain(f"getelementptr {bits}, ptr {pointer}, i64 {lane * step + index}")
            one = builder.plain(f"load {bits}, ptr {at}, align 1")
            vector = builder.vector(f"insertelement {wide(bits)} {vector}, {bits} {one}, i64 {lane}")
        found.append(vector)
    return found


def _wide_store(lanes: LaneFunction, pointer: str, bits: str, vectors: Sequence[str], step: int) -> None:
    builder = lanes.builder
    if step == len(vectors) == 1:
        builder.lines.append(f"  store {wide(bits)} {vectors[0]}, ptr {pointer}, align 1")
        return
    for lane in range(GROUP):
        for index, vector in enumerate(vectors):
            at = builder.plain(f"getelementptr {bits}, ptr {pointer}, i64 {lane * step + index}")
            one = builder.plain(f"extractelement {wide(bits)} {vector}, i64 {lane}")
            builder.lines.append(f"  store {bits} {one}, ptr {at}, align 1")


def _indices(first: int, step: int) -> str:
    return f"<{GROUP} x i32> <{', '.join(f'i32 {first + step * lane}' for lane in range(GROUP))}>"


def _offset(lanes: LaneFunction, pointer: str, bytes: int) -> str:
    return lanes.builder.plain(f"getelementptr i8, ptr {pointer}, i64 {bytes}") if bytes else pointer
