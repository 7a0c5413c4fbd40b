"""Functions that code of lanes calls: what each lane does by itself with a vector, an element after the other.

They are written once for a type, and inlined where LLVM finds that worth it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ptxlab.emulate.translate.lane_text import LaneBuilder


@dataclass(frozen=True, slots=True)
class Places:
    """Where in the host's memory lanes are: from `base` on, each at its own number of steps."""

    base: str
    type: str  # of a number of steps
    index: str  # a vector of them
    factor: int  # bytes of a step

    def after(self, builder: LaneBuilder, bytes: int) -> Places:
        """The same, some bytes later."""
        base = builder.plain(f"getelementptr i8, ptr {self.base}, i64 {bytes}") if bytes else self.base
        return Places(base, self.type, self.index, self.factor)

    def pointer(self, group: int, lane: int, name: str = "at") -> Iterator[str]:
        """The pointer of a lane in a function of so many lanes that has `%base` and `%index`, which is a vector."""
        index, all = f"%index.{lane}", f"<{group} x {self.type}>"
        if self.type == "i32":  # two at once: to take a number out of a vector takes longer than to cut it in two
            pair = f"%pair.{lane // 2}"
            if lane == 0:
                yield f"  %pairs = bitcast {all} %index to <{group // 2} x i64>"
            if lane % 2 == 0:
                yield f"  {pair} = extractelement <{group // 2} x i64> %pairs, i64 {lane // 2}"
            yield f"  {index} = {f'lshr i64 {pair}, 32' if lane % 2 else f'and i64 {pair}, {(1 << 32) - 1}'}"
        else:
            yield f"  {index} = extractelement {all} %index, i64 {lane}"
        yield f"  %{name}.{lane} = getelementptr [{self.factor} x i8], ptr %base, i64 {index}"


def gather(builder: LaneBuilder, type: str, places: Places) -> str:
    """Load an element for each lane."""
    name, indices = f"lanes.gather.{type}.{places.type}.{places.factor}", builder.wide(places.type)

    def lines() -> Iterator[str]:
        yield f"{builder.wide(type)} @{name}(ptr %base, {indices} %index)"
        yield from _loads(builder, type, lambda lane: places.pointer(builder.group, lane), align=1)

    builder.function(name, lines)
    return builder.vector(f"call {builder.wide(type)} @{name}(ptr {places.base}, {indices} {places.index})")


def scatter(builder: LaneBuilder, type: str, places: Places, values: str, mask: str | None, nowhere: str) -> None:
    """Store an element of each lane of a mask, in their order; others store it `nowhere`, where nothing reads it."""
    name = f"lanes.scatter.{'all' if mask is None else 'some'}.{type}.{places.type}.{places.factor}"
    indices, all, masks = builder.wide(places.type), builder.wide(type), builder.wide("i1")

    def pointer(lane: int) -> Iterator[str]:
        yield from places.pointer(builder.group, lane, "at" if mask is None else "own")
        if mask is not None:
            yield f"  %word.{lane} = extractelement {masks} %mask, i64 {lane}"
            yield f"  %is.{lane} = icmp ne {'i32' if builder.has_words else 'i1'} %word.{lane}, 0"
            yield f"  %at.{lane} = select i1 %is.{lane}, ptr %own.{lane}, ptr %nowhere"

    def lines() -> Iterator[str]:
        some = "" if mask is None else f", {masks} %mask, ptr %nowhere"
        yield f"void @{name}(ptr %base, {indices} %index, {all} %all{some})"
        yield from _stores(builder, type, pointer, align=1)

    builder.function(name, lines)
    some = "" if mask is None else f", {masks} {mask}, ptr {nowhere}"
    builder.lines.append(f"  call void @{name}(ptr {places.base}, {indices} {places.index}, {all} {values}{some})")


def save(builder: LaneBuilder, type: str, first: str, distance: str, values: str) -> None:
    """Store an element of each lane, the first at an address, others at a distance from each to the next."""
    name, all = f"lanes.save.{type}", builder.elements(type)

    def lines() -> Iterator[str]:
        yield f"void @{name}(ptr %at, i64 %distance, {all} %all)"
        yield from _stores(builder, type, _at_distance, align=8)

    builder.function(name, lines)
    kept = builder.condition(values) if type == "i1" else values
    builder.lines.append(f"  call void @{name}(ptr {first}, i64 {distance}, {all} {kept})")


def fetch(builder: LaneBuilder, type: str, first: str, distance: str) -> str:
    """Load elements that are stored so."""
    name, all = f"lanes.fetch.{type}", builder.elements(type)

    def lines() -> Iterator[str]:
        yield f"{all} @{name}(ptr %at, i64 %distance)"
        yield from _loads(builder, type, _at_distance, align=8)

    builder.function(name, lines)
    return builder.vector(f"call {all} @{name}(ptr {first}, i64 {distance})")


def _at_distance(lane: int) -> Iterator[str]:
    yield f"  %at.{lane} = getelementptr i8, ptr {f'%at.{lane - 1}, i64 %distance' if lane else '%at, i64 0'}"


def _loads(builder: LaneBuilder, type: str, pointer: Callable[[int], Iterable[str]], align: int) -> Iterator[str]:
    vector, all = builder.elements(type), "poison"
    for lane in range(builder.group):
        yield from pointer(lane)
        yield f"  %one.{lane} = load {type}, ptr %at.{lane}, align {align}"
        yield f"  %all.{lane} = insertelement {vector} {all}, {type} %one.{lane}, i64 {lane}"
        all = f"%all.{lane}"
    yield f"  ret {vector} {all}"


def _stores(builder: LaneBuilder, type: str, pointer: Callable[[int], Iterable[str]], align: int) -> Iterator[str]:
    for lane in range(builder.group):
        yield from pointer(lane)
        yield f"  %one.{lane} = extractelement {builder.elements(type)} %all, i64 {lane}"
        yield f"  store {type} %one.{lane}, ptr %at.{lane}, align {align}"
    yield "  ret void"
