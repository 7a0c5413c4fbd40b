"""The loops of a function, to identify in which iteration of each of them an instruction is executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab.emulate.translate.values import LlvmValue
from ptxlab.ir.flow import Flow
from ptxlab.isa.types import type_named
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

_SPREAD = 0x5851F42D4C957F2D
_CALLER = 8  # in a frame: where the caller's frame is noted


@dataclass(frozen=True, slots=True)
class Loop:
    """A block that a later one, or itself, jumps back to, and all blocks from which that jump can be reached."""

    header: int
    body: frozenset[int]


def loops_of(flow: Flow) -> list[Loop]:
    """The loops of a function, outer ones before inner ones where one header comes before the other."""
    ends: dict[int, list[int]] = {}
    for block in flow.blocks:
        for successor in block.successors:
            if successor <= block.number:
                ends.setdefault(successor, []).append(block.number)
    return [Loop(header, _body(flow, header, ends[header])) for header in sorted(ends)]


def _body(flow: Flow, header: int, ends: list[int]) -> frozenset[int]:
    found = {header}
    pending = list(ends)
    while pending:
        number = pending.pop()
        if number not in found:
            found.add(number)
            pending.extend(flow.blocks[number].predecessors)
    return frozenset(found)


class Iterations:
    """Counters in the frame of a function: one for each loop, set back when the loop is entered from outside.

    The frame starts with two marks: that of the call this is, and that of the call it makes.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.loops = loops_of(function.flow)
        self.own = function.frame.offset("this call", 8)
        self.next = function.frame.offset("next call", 8)

    def begin(self) -> None:
        """Note which call this is, as the caller's frame says."""
        builder = self.function.builder
        mark = "0"
        if not self.function.is_entry:
            at = builder.value(f"getelementptr i8, ptr %frame, i64 {_CALLER}")
            caller = builder.value(f"load ptr, ptr {at}")
            at = builder.value(f"getelementptr i8, ptr {caller}, i64 {self.next}")
            mark = builder.value(f"load i64, ptr {at}")
        builder.emit(f"store i64 {mark}, ptr {self.function.frame.slot('this call', 8)}")
        self.go(-1, 0)

    def go(self, source: int, target: int) -> None:
        """Count an iteration, or start with the first, where a jump leads to a loop."""
        builder = self.function.builder
        for loop in self.loops:
            if loop.header == target:
                at = self.function.frame.slot(("loop", loop.header), 8)
                count = "0"
                if source in loop.body:
                    count = builder.value(f"add i64 {builder.value(f'load i64, ptr {at}')}, 1")
                builder.emit(f"store i64 {count}, ptr {at}")

    def mark(self, block: int) -> LlvmValue:
        """A mark of the call and of the iterations of all loops around a block."""
        builder = self.function.builder
        mark = builder.value(f"load i64, ptr {self.function.frame.slot('this call', 8)}")
        for loop in self.loops:
            if block in loop.body:
                count = builder.value(f"load i64, ptr {self.function.frame.slot(('loop', loop.header), 8)}")
                spread = builder.value(f"mul i64 {mark}, {_SPREAD}")
                mark = builder.value(f"add i64 {spread}, {count}")
        return LlvmValue(self.function, type_named("u64"), mark)

    def call(self, block: int, number: int) -> None:
        """Leave a mark for the function that is called by the instruction of that number."""
        builder = self.function.builder
        spread = builder.value(f"mul i64 {self.mark(block).text}, {_SPREAD}")
        mark = builder.value(f"add i64 {spread}, {number + 1}")
        builder.emit(f"store i64 {mark}, ptr {self.function.frame.slot('next call', 8)}")
