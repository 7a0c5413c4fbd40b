"""The frames of lanes: at a wait they save their registers as threads do, so that either form of a kernel continues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.abi import state
from ptxlab.emulate.abi.code import GROUP
from ptxlab.emulate.translate.lane_text import Varying, wide
from ptxlab.emulate.translate.registers import variable
from ptxlab.emulate.translate.saving import members
from ptxlab.emulate.translate.values import bits_of
from ptxlab.native import offset_of, size_of

if TYPE_CHECKING:
    from ptxlab.emulate.translate.lanes import LaneFunction


def save(lanes: LaneFunction, mask: str | None, live: int) -> None:
    """Save registers of lanes in their frames, as threads do before the wait of this instruction."""
    resume = lanes.single.frame.last_resume.get(lanes.position, 0)
    if mask is not None:
        save_each(lanes, mask, live, resume)
        return
    builder, frames = lanes.builder, _frames(lanes)
    for type, vector, scalar, offset in _slots(lanes, live):
        for lane, frame in enumerate(frames):
            at = builder.plain(f"getelementptr i8, ptr {frame}, i64 {offset}")
            one = scalar or builder.plain(f"extractelement {wide(type)} {vector}, i64 {lane}")
            builder.lines.append(f"  store {type} {one}, ptr {at}")
    for lane in range(GROUP):
        offset = lane * size_of(state.Thread) + offset_of(state.Thread, "resume")
        at = builder.plain(f"getelementptr i8, ptr %thread, i64 {offset}")
        builder.lines.append(f"  store i32 {resume}, ptr {at}")


def save_each(lanes: LaneFunction, mask: str, live: int, resume: int) -> None:
    """Save registers of some lanes, one after the other; each continues at the point `resume`."""
    builder = lanes.builder
    kept = [(type, builder.buffer(type, vector), offset) for type, vector, _, offset in _slots(lanes, live, True)]
    with builder.each_lane(mask):
        frame = lanes.load_field("memory.frame", "ptr")
        for type, buffer, offset in kept:
            slot = builder.plain(f"getelementptr i8, ptr {frame}, i64 {offset}")
            builder.lines.append(f"  store {type} {builder.element(type, buffer)}, ptr {slot}")
        lanes.store_field("resume", "i32", resume)


def _slots(lanes: LaneFunction, live: int, widens: bool = False) -> Iterator[tuple[str, str, str, int]]:
    """The types of registers, their values as vectors or, if they are uniform, scalars, and their slots."""
    builder = lanes.builder
    for index in members(live):
        register = lanes.registers.by_index[index]
        type = bits_of(register.type)
        for element in range(register.vector):
            text = builder.value(f"load {type}, ptr {variable(register, element)}")
            offset = lanes.single.frame.offset((index, element), register.type.width // 8)
            is_scalar = text not in builder.shapes and not widens
            yield type, "" if is_scalar else builder.widened(type, text), text if is_scalar else "", offset


def _frames(lanes: LaneFunction) -> list[str]:
    """The frames of all lanes, which are neighbors."""
    builder = lanes.builder
    at = builder.plain(f"getelementptr i8, ptr %worker, i64 {offset_of(state.Worker, 'code.frame_size')}")
    size = builder.plain(f"zext i32 {builder.plain(f'load i32, ptr {at}')} to i64")
    offsets = [builder.plain(f"mul i64 {size}, {lane}") for lane in range(GROUP)]
    return [builder.plain(f"getelementptr i8, ptr %frame, i64 {offset}") for offset in offsets]


def resume(lanes: LaneFunction, live: int) -> None:
    """Continue after a wait, with all lanes: they may have waited as threads."""
    builder = lanes.builder
    label, on = builder.new_label("resume"), builder.new_label("on")
    lanes.resumes.append((lanes.single.frame.last_resume.get(lanes.position, 0), label))
    builder.label(label)
    frames = _frames(lanes)
    is_even = "true"
    for index in members(live):
        register = lanes.registers.by_index[index]
        for element in range(register.vector):
            even = _fetch(lanes, register, element, frames)
            is_even = even if is_even == "true" else builder.plain(f"and i1 {is_even}, {even}")
    apart = builder.new_label("apart")
    builder.branch(is_even, on, apart, likely=True)
    builder.label(apart)
    builder.close("ret void")
    builder.label(on)
    lanes.hints.resume(lanes.block_number)
    lanes.registers.forget()
    lanes.registers.begin_instruction()


def _fetch(lanes: LaneFunction, register: ir.Register, element: int, frames: Sequence[str]) -> str:
    """Fetch a register back from the frames; whether lanes are as evenly spaced as it is thought to be."""
    builder, type, held = lanes.builder, bits_of(register.type), variable(register, element)
    offset = lanes.single.frame.offset((register.index, element), register.type.width // 8)
    shape = builder.variables.get(held)
    count = GROUP if shape is not None else 1
    ones = []
    for frame in frames[:count]:
        at = builder.plain(f"getelementptr i8, ptr {frame}, i64 {offset}")
        ones.append(builder.plain(f"load {type}, ptr {at}"))
    if shape is None:
        builder.lines.append(f"  store {type} {ones[0]}, ptr {held}")
        lanes.registers.keep_raw(register, ones[0], type)
        return "true"
    vector = "poison"
    for lane, one in enumerate(ones):
        vector = builder.vector(f"insertelement {wide(type)} {vector}, {type} {one}, i64 {lane}")
    if isinstance(shape, Varying):
        builder.lines.append(f"  store {wide(type)} {vector}, ptr {held}")
        lanes.registers.keep_raw(register, vector, wide(type))
        return "true"
    builder.lines.append(f"  store {type} {ones[0]}, ptr {held}")
    if shape.extension is not None:  # that it does not wrap around is known, not what it was
        builder.lines.append(f"  store i32 {1 << 30}, ptr {held}.start")
    expected = builder.widened(type, builder.linear(builder.plain(f"freeze {type} {ones[0]}"), shape.stride))
    same = builder.plain(f"icmp eq {wide(type)} {vector}, {expected}")
    return builder.plain(f"call i1 @llvm.vector.reduce.and.v{GROUP}i1({wide('i1')} {same})")
