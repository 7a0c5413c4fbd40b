"""The frames of lanes: at a wait they save their registers as threads do, so that either form of a kernel continues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.abi import state
from ptxlab.emulate.translate import lane_functions
from ptxlab.emulate.translate.frame import Frame
from ptxlab.emulate.translate.lane_shapes import NotTogetherError, Varying
from ptxlab.emulate.translate.registers import variable
from ptxlab.emulate.translate.saving import members
from ptxlab.emulate.translate.values import bits_of
from ptxlab.native import offset_of

if TYPE_CHECKING:
    from ptxlab.emulate.translate.lanes import LaneFunction


class LaneFrame(Frame):
    """The frame of lanes: that of threads, in which there are only registers."""

    def carry(self, text: str, type: str, epoch: int) -> str:
        raise NotTogetherError("a value that lanes keep over a wait")


def save(lanes: LaneFunction, mask: str | None, live: int) -> None:
    """Save registers of lanes in their frames, as threads do before the wait of this instruction."""
    if mask is not None:
        save_each(lanes, mask, live)
        return
    builder, size = lanes.builder, _frame_size(lanes)
    for type, vector, offset in _slots(lanes, live):
        at = builder.plain(f"getelementptr i8, ptr %frame, i64 {offset}")
        lane_functions.save(builder, type, at, size, vector)


def save_each(lanes: LaneFunction, mask: str, live: int) -> None:
    """Save registers of some lanes, one after the other."""
    builder = lanes.builder
    kept = [(type, builder.buffer(type, vector), offset) for type, vector, offset in _slots(lanes, live)]
    with builder.each_lane(mask):
        frame = lanes.load_field("memory.frame", "ptr")
        for type, buffer, offset in kept:
            slot = builder.plain(f"getelementptr i8, ptr {frame}, i64 {offset}")
            builder.lines.append(f"  store {type} {builder.element(type, buffer)}, ptr {slot}")


def resume_point(lanes: LaneFunction) -> int:
    """Where threads continue after the wait of this instruction, once it is translated for them."""
    return lanes.single.frame.last_resume.get(lanes.position, 0)


def _slots(lanes: LaneFunction, live: int) -> Iterator[tuple[str, str, int]]:
    """The types of registers, their values as vectors, and their slots."""
    builder = lanes.builder
    for index in members(live):
        register = lanes.registers.by_index[index]
        type = bits_of(register.type)
        for element in range(register.vector):
            text = builder.value(f"load {type}, ptr {variable(register, element)}")
            offset = lanes.single.frame.offset((index, element), register.type.width // 8)
            yield type, builder.widened(type, text), offset


def _frame_size(lanes: LaneFunction) -> str:
    """The distance from the frame of a lane to that of the next."""
    builder = lanes.builder
    at = builder.plain(f"getelementptr i8, ptr %worker, i64 {offset_of(state.Worker, 'code.frame_size')}")
    return builder.plain(f"zext i32 {builder.plain(f'load i32, ptr {at}')} to i64")


def resume(lanes: LaneFunction, live: int) -> None:
    """Continue after a wait, with all lanes: they may have waited as threads."""
    builder = lanes.builder
    label, on = builder.new_label("resume"), builder.new_label("on")
    lanes.resumes.append((resume_point(lanes), label))
    builder.label(label)
    size = _frame_size(lanes)
    is_even = "true"
    for index in members(live):
        register = lanes.registers.by_index[index]
        for element in range(register.vector):
            even = _fetch(lanes, register, element, size)
            is_even = even if is_even == "true" else builder.plain(f"and i1 {is_even}, {even}")
    apart = builder.new_label("apart")
    builder.branch(is_even, on, apart, likely=True)
    builder.label(apart)
    builder.close("ret void")
    builder.label(on)
    lanes.hints.resume(lanes.block_number)
    lanes.registers.forget()
    lanes.registers.begin_instruction()


def _fetch(lanes: LaneFunction, register: ir.Register, element: int, size: str) -> str:
    """Fetch a register back from the frames; whether lanes are as evenly spaced as it is thought to be."""
    builder, type, held = lanes.builder, bits_of(register.type), variable(register, element)
    offset = lanes.single.frame.offset((register.index, element), register.type.width // 8)
    shape = builder.variables.get(held)
    at = builder.plain(f"getelementptr i8, ptr %frame, i64 {offset}")
    if shape is None:
        one = builder.plain(f"load {type}, ptr {at}")
        builder.lines.append(f"  store {type} {one}, ptr {held}")
        lanes.registers.keep_raw(register, one, type)
        return "true"
    vector = lane_functions.fetch(builder, type, at, size)
    if isinstance(shape, Varying):
        builder.lines.append(f"  store {lanes.wide(type)} {builder.widened(type, vector)}, ptr {held}")
        lanes.registers.keep_raw(register, vector, lanes.wide(type))
        return "true"
    one = builder.plain(f"extractelement {lanes.wide(type)} {vector}, i64 0")
    builder.lines.append(f"  store {type} {one}, ptr {held}")
    if shape.extension is not None:  # that it does not wrap around is known, not what it was
        builder.lines.append(f"  store i32 {1 << 30}, ptr {held}.start")
    expected = builder.widened(type, builder.linear(builder.plain(f"freeze {type} {one}"), shape.stride))
    return builder.all(builder.plain(f"icmp eq {lanes.wide(type)} {vector}, {expected}"))
