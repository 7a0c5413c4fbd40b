"""Tracked accesses of lanes that execute a kernel together: the detectors see those of all lanes at once.

What they find ends the function, and the trial: threads run the launch again; see `runtime.order.lane_accesses`.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.runtime.order import shadow
from ptxlab.emulate.translate.lane_shapes import NotTogetherError, Strided
from ptxlab.emulate.translate.tracking import flags_of
from ptxlab.emulate.translate.values import LlvmAddress
from ptxlab.flow.numbers import Threads

if TYPE_CHECKING:
    from ptxlab.emulate.translate.lanes import LaneFunction

_NOTES = {None: "note_lanes_generic", "global": "note_lanes_global", "shared": "note_lanes_shared"}


def note(lanes: LaneFunction, address: LlvmAddress, bytes: int, kind: int, order: str, element: int) -> None:
    """Track accesses of the lanes that execute, to `bytes` bytes each in elements of `element`."""
    tracking, builder, space = lanes.unit.tracking, lanes.builder, address.space
    if not tracking.is_tracked(lanes, space):
        return
    if space not in _NOTES:
        raise NotTogetherError("shared memory of other blocks")
    conditions = tracking.conditions(lanes, space, kind)
    if kind == address_spaces.LOAD and lanes.position in lanes.dead_loads:
        conditions.append(_alive(lanes, lanes.dead_loads[lanes.position]))
    uniform = [condition for condition in conditions if condition not in builder.shapes]
    tracked, fail, on = (builder.new_label(name) for name in ("tracked", "fail", "on"))
    if uniform:
        builder.branch(reduce(lambda a, b: builder.plain(f"and i1 {a}, {b}"), uniform), tracked, on)
        builder.label(tracked)
    mask = lanes.mask()
    for condition in conditions:
        if condition in builder.shapes:
            mask = condition if mask is None else builder.combined("and", mask, condition)
    flags = flags_of(kind, order, element) | shadow.FOLLOWED
    flags |= shadow.FOLLOWS_VALUE if kind == address_spaces.LOAD else 0
    where = _addresses(lanes, address.value.text)
    what = f"i32 {lanes.bits(mask)}, i32 {bytes}, i32 {flags}, i32 {lanes.instruction_number}"
    found = builder.plain(f"call i32 @{lanes.unit.calls.runtime(_NOTES[space])}(ptr %thread, {where}, {what})")
    builder.branch(builder.plain(f"icmp eq i32 {found}, 0"), on, fail, likely=True)
    builder.label(fail)
    builder.close("ret void")
    builder.label(on)


def _alive(lanes: LaneFunction, dead: Threads) -> str:
    """In which lanes what they load makes a difference; see `Tracking.conditions`."""
    builder, (table, is_flat) = lanes.builder, lanes.unit.tracking.dead_threads(lanes, dead)
    at = builder.plain(f"getelementptr i8, ptr {table}, i32 {lanes.load_field('number', 'i32')}")
    marks = builder.vector(f"load {lanes.wide('i8')}, ptr {at}, align 1, !invariant.load !2")
    is_dead = builder.vector(f"trunc {lanes.wide('i8')} {marks} to {builder.conditions}")
    return builder.inverse(builder.combined("and", is_dead, builder.splat("i1", is_flat)))


def _addresses(lanes: LaneFunction, at: str) -> str:
    """The addresses of all lanes: that of the first and the distance to the next, or where each of them is."""
    builder, shape = lanes.builder, lanes.builder.shapes.get(at)
    if shape is None:
        return f"i64 {at}, i64 0, ptr null"
    if not isinstance(shape, Strided):
        builder.lines.append(f"  store {lanes.wide('i64')} {builder.widened('i64', at)}, ptr %addresses")
        return "i64 0, i64 0, ptr %addresses"
    even = builder.is_evenly_spaced(shape)
    if even == "true":
        return f"i64 {at}, i64 {shape.stride}, ptr null"
    near, uneven, known = (builder.new_label(name) for name in ("even", "uneven", "known"))
    builder.jump(near)
    builder.label(near)
    builder.branch(even, known, uneven, likely=True)
    builder.label(uneven)
    builder.lines.append(f"  store {lanes.wide('i64')} {builder.widened('i64', at)}, ptr %addresses")
    builder.jump(known)
    builder.label(known)
    each = builder.plain(f"phi ptr [ null, %{near} ], [ %addresses, %{uneven} ]")
    return f"i64 {at}, i64 {shape.stride}, ptr {each}"
