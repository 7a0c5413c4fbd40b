"""What the code of a kernel that is recorded writes down: see `abi.recording`.

A function is cut into segments, which a thread runs through without waiting: each starts where a basic block does, or
where threads continue after a wait. The payload of a segment has a slot for each register that its instructions write,
for addresses and what is stored there, and for guards; which they are is a table beside the code. An instruction counts
as a step in the segment where it is complete; a call where it starts, before the steps of the function that it calls.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue, bits_of, resize
from ptxlab.isa.effects import Effects
from ptxlab.values import dataclass

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

_NARROW = ("shared", "local", "param", "const")


@dataclass(slots=True)
class PayloadSlot:
    """Bytes of a payload: which instruction writes them, what they are, and the guard under which it does."""

    instruction: int
    role: str
    what: str
    offset: int
    bytes: int
    guard: int
    order: int  # steps of the segment before it


@dataclass(slots=True)
class PayloadSegment:
    """A part of a function that threads run through without waiting."""

    function: int
    start: list[str]  # the lines of the function where it starts
    pointer: str
    flags: int = 0
    size: int = 0
    steps: list[tuple[int, int]] = field(default_factory=list)  # instructions, and the offset of their guards or -1
    slots: list[PayloadSlot] = field(default_factory=list)
    guard: int = -1  # the offset of the guard under which the instruction writes that is being translated

    def add(self, instruction: int, role: str, what: str, bytes: int) -> int:
        """A slot; its offset."""
        offset, self.size = self.size, self.size + bytes
        self.slots.append(PayloadSlot(instruction, role, what, offset, bytes, self.guard, len(self.steps)))
        return offset

    @property
    def is_used(self) -> bool:
        return bool(self.steps or self.slots or self.flags)


def is_apart(effects: Effects) -> bool:
    """Whether an instruction is a segment of its own, so that events are known to come from it."""
    return bool(effects.steps or effects.barrier)


class RecordingPlan:
    """What a kernel writes down, by its functions; `lines` of the source, or all."""

    def __init__(self, lines: Collection[int] | None) -> None:
        self.lines = lines
        self.segments: list[PayloadSegment] = []

    def table(self) -> list[dict[str, Any]]:
        """The segments, as the reader of a recording needs them."""
        return [
            {
                "function": segment.function,
                "flags": segment.flags,
                "size": segment.size,
                "steps": segment.steps,
                "slots": [[s.instruction, s.role, s.what, s.offset, s.bytes, s.guard, s.order] for s in segment.slots],
            }
            for segment in self.segments
        ]


class FunctionRecording:
    """The segments of a function while that is translated."""

    def __init__(self, function: Function, recording: RecordingPlan) -> None:
        self.function = function
        self.recording = recording
        self.own: list[PayloadSegment] = []
        self.current: PayloadSegment | None = None

    def begin(self, flags: int = 0) -> None:
        """Here a segment starts."""
        builder = self.function.builder
        self.current = PayloadSegment(self.function.number, builder.gap(), builder.fresh(), flags)
        self.own.append(self.current)

    def finish(self) -> None:
        """Number the segments that are used, and have each announce itself."""
        for segment in self.own:
            if not segment.is_used:
                continue
            number = len(self.recording.segments)
            self.recording.segments.append(segment)
            symbol = self.function.unit.calls.runtime("begin_segment")
            given = f"ptr %thread, i32 {number}, i32 {segment.size}"
            segment.start.append(f"  {segment.pointer} = call ptr @{symbol}({given})")

    @property
    def is_left_out(self) -> bool:
        """Whether the instruction that is being translated is not to be recorded."""
        lines = self.recording.lines
        if lines is None:
            return False
        unit = self.function.unit
        span = unit.module.span(unit.instructions[self.function.instruction_number][1])
        return span is None or span.source.position(span.start)[0] not in lines

    # Steps.

    def begin_guarded(self, condition: str, negated: bool) -> None:
        """An instruction has a guard: whether it holds."""
        assert self.current is not None
        if self.is_left_out:
            return
        offset = self.current.add(self.function.instruction_number, "guard", "", 1)
        if negated:
            condition = self.function.builder.value(f"xor i1 {condition}, true")
        self._store(offset, "i8", self.function.builder.value(f"zext i1 {condition} to i8"))
        self.current.guard = offset

    def end_guarded(self, origin: str, last: str | None) -> None:
        """Here the instruction has been executed, from the label `last`, or not, from `origin`."""
        builder = self.function.builder
        held = builder.value(f"phi i8 [ 0, %{origin} ]" + (f", [ 1, %{last} ]" if last else ""))
        self.begin()
        assert self.current is not None
        if not self.is_left_out:
            offset = self.current.add(self.function.instruction_number, "guard", "", 1)
            self._store(offset, "i8", held)
            self.current.guard = offset

    def end_step(self, segment: PayloadSegment | None = None) -> None:
        """The instruction that is being translated is complete, in the segment where it started or in this one."""
        segment = segment or self.current
        assert segment is not None
        if not self.is_left_out:
            segment.steps.append((self.function.instruction_number, segment.guard))
        segment.guard = -1

    # Slots.

    def note_register(self, register: ir.Register, element: int, text: str) -> None:
        """An instruction writes a register."""
        if self.current is None or self.is_left_out:
            return
        bytes = max(register.type.width // 8, 1)
        name = f"{register.name}.{'xyzwabcd'[element]}" if register.vector > 1 else register.name
        type = bits_of(register.type)
        offset = self.current.add(self.function.instruction_number, "register", name, bytes)
        if type == "i1":
            type, text = "i8", self.function.builder.value(f"zext i1 {text} to i8")
        self._store(offset, type, text)

    def note_condition(self, when: LlvmValue) -> int:
        """An access is made under a condition: the offset of its slot."""
        assert self.current is not None
        if self.is_left_out:
            return -1
        offset = self.current.add(self.function.instruction_number, "guard", "", 1)
        self._store(offset, "i8", self.function.builder.value(f"zext i1 {when.text} to i8"))
        return offset

    def note_access(
        self, address: LlvmAddress, kind: str, values: Sequence[LlvmValue], bytes: int, condition: int = -1
    ) -> None:
        """An instruction accesses memory; stores and atomic operations write these values."""
        assert self.current is not None
        if self.is_left_out:
            return
        outer = self.current.guard
        if condition >= 0:
            self.current.guard = condition
        number, builder = self.function.instruction_number, self.function.builder
        space = (address.space or "generic").partition("::")[0] if address.space != "shared::cluster" else "cluster"
        width = 32 if space in _NARROW else 64
        offset = self.current.add(number, kind, f"{space} {bytes}", width // 8)
        self._store(offset, f"i{width}", resize(address.value, width, signed=False))
        for value in values:
            type, text = bits_of(value.type), value.text
            if type == "i1":
                type, text = "i8", builder.value(f"zext i1 {text} to i8")
            self._store(self.current.add(number, "value", "", max(value.type.width // 8, 1)), type, text)
        self.current.guard = outer

    def _store(self, offset: int, type: str, text: str) -> None:
        assert self.current is not None
        builder = self.function.builder
        at = (
            builder.value(f"getelementptr i8, ptr {self.current.pointer}, i64 {offset}")
            if offset
            else self.current.pointer
        )
        builder.emit(f"store {type} {text}, ptr {at}, align 1")
