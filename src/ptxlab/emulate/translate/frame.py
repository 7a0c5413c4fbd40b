"""What a thread keeps while it waits: the slots of registers and other values in the frame of a function.

A frame starts with what a return needs: the caller's code, frame, local memory and point of return. What each wait
saves and fetches is known only when the whole function is translated; until then there are gaps in its text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.emulate.abi import thread_parts
from ptxlab.emulate.translate import saving
from ptxlab.emulate.translate.clock_dependence import timed_registers
from ptxlab.emulate.translate.polled import polled_address
from ptxlab.emulate.translate.registers import variable
from ptxlab.emulate.translate.values import bits_of
from ptxlab.native.apart import GaveUpError

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

HEADER = 32
MOST_SAVED = 100_000  # registers, at all waits of a function together


class Frame:
    """The frame of a function while that is translated, and the waits over which it lasts."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.epoch = 0  # waits so far: a value is known by its name until the next one
        self.resumes: list[str] = []
        self._slots: dict[object, int] = {}
        self._size = HEADER
        self.last_resume: dict[int, int] = {}  # by the position of an instruction: the point after its last wait
        self.entries: dict[int, int] = {}  # where a thread continues that starts with a block, its frame being filled
        self._entered: list[saving.Wait] = []
        self._waits: list[tuple[list[str], list[str]]] = []
        self._steps: list[list[saving.RegisterUse]] = [[] for _ in function.flow.blocks]
        self._carried: dict[tuple[str, int], str] = {}
        self._spilled = 0
        self._awaited = 0  # registers that are read after some wait

    # Slots.

    @property
    def size(self) -> int:
        """Its bytes, known once the function is translated."""
        return -(-self._size // 16) * 16

    def slot(self, key: object, bytes: int) -> str:
        """The slot in the frame for what `key` names."""
        return self.function.builder.value(f"getelementptr i8, ptr %frame, i64 {self.offset(key, bytes)}")

    def offset(self, key: object, bytes: int) -> int:
        """The offset in the frame of the slot of `key`."""
        offset = self._slots.get(key)
        if offset is None:
            size = 16 if bytes > 8 else 8
            offset = self._slots[key] = -(-self._size // size) * size
            self._size = offset + size
        return offset

    def timed_slots(self) -> list[int]:
        """Where in the frame there is only what depends on the time or counts iterations, known at the end."""
        timed = timed_registers(self.function.instructions, self.function.effects)
        if self.function.unit.flat:  # the slot of a register, even if it is never read after a wait
            timed |= {index for index in self.function.registers.by_index if not self._awaited >> index & 1}
        return sorted(
            offset
            for key, offset in self._slots.items()
            if key in ("this call", "next call") or (isinstance(key, tuple) and (key[0] == "loop" or key[0] in timed))
        )

    def address_slots(self) -> dict[int, int]:
        """Where in the frame the address of a load or an atomic operation is, by the instruction, known at the end."""
        found = {}
        instructions = zip(self.function.instructions, self.function.matches, strict=True)
        for position, (instruction, match) in enumerate(instructions):
            address = polled_address(instruction, match)
            if address is not None and isinstance(address.base, ir.Register):
                offset = self._slots.get((address.base.index, 0))
                if offset is not None:
                    found[self.function.first + position] = offset
        return found

    # Waits.

    @property
    def next_resume(self) -> int:
        """The number of the point at which the thread continues after the next wait."""
        return len(self.resumes) + 1

    def step(self, position: int) -> None:
        """Start with an instruction: what it reads and writes, before its waits are known."""
        live = self.function.live
        step = saving.RegisterUse(live.reads[position], live.writes[position], live.overwrites[position])
        self._steps[self.function.block_number].append(step)

    def wait(
        self,
        status: int | None,
        live: int,
        *,
        calls: bool = False,
        target: int | None = None,
        step: saving.RegisterUse | None = None,
    ) -> None:
        """Give the thread up with these registers saved; it continues after this, or with a jump to the block `target`.

        None: the status is set already. With `calls` it is the callee that runs, and the frame knows where to continue.
        `step` is that of a wait which may be passed by; otherwise it is part of the instruction.
        """
        function, builder = self.function, self.function.builder
        function.registers.forget()
        saves = builder.gap()
        if function.uses_carry:
            carry = builder.value("load i1, ptr %carry")
            builder.emit(f"store i1 {carry}, ptr {self.slot('carry', 8)}")
        before = builder.gap()
        if not calls:
            function.store_field("resume", "i32", self.next_resume)
            function.store_field("waiting.instruction", "i32", function.instruction_number)
        if status is not None:
            function.store_field("status", "i32", status)
        builder.emit("ret void")
        label = builder.new_label("resume")
        self.resumes.append(label)
        self.last_resume[function.position] = len(self.resumes)
        builder.label(label)
        fetches = builder.gap()
        if function.uses_carry:
            carry = builder.value(f"load i1, ptr {self.slot('carry', 8)}")
            builder.emit(f"store i1 {carry}, ptr %carry")
        after = builder.gap()
        function.hints.resume(function.block_number if target is None else target)
        self._waits.append((before, after))
        certain = step is None and target is None and function.instructions[function.position].guard is None
        step = step or self._steps[function.block_number][-1]
        step.waits.append(saving.Wait(live, certain, target, saves, fetches))
        self._awaited |= live
        self.epoch += 1
        if function.recording is not None:
            function.recording.begin()

    def enter(self, target: int) -> None:
        """Have a thread be able to start with a block, after others have saved all its registers."""
        builder, live = self.function.builder, self.function.live.at_start[target]
        label = builder.new_label("resume")
        self.resumes.append(label)
        self.entries[target] = len(self.resumes)
        builder.label(label)
        self._entered.append(saving.Wait(live, False, target, [], builder.gap(), fetched=live))
        self.function.hints.resume(target)
        builder.jump(f"b{target}")

    def pause(self, status: int = thread_parts.YIELDED) -> None:
        """Let others run before this instruction starts."""
        step = saving.RegisterUse(0, 0, 0)
        self._steps[self.function.block_number].insert(-1, step)
        self.wait(status, self.function.live.before(self.function.position), step=step)

    def wait_here(self, status: int | None) -> None:
        """Wait in the middle of an instruction: what is read after it, save for its own results, is kept."""
        self.wait(status, self.function.live.across(self.function.position))

    def carry(self, text: str, type: str, epoch: int) -> str:
        """Keep a value over all waits since `epoch`, and return its name here."""
        for at in range(epoch, self.epoch):
            key = (text, at)
            if key not in self._carried:
                before, after = self._waits[at]
                bytes = 16 if type == "i128" else 8
                offset = self.offset(("carried", self._spilled), bytes)
                self._spilled += 1
                name = self.function.builder.fresh()
                slot = f"getelementptr i8, ptr %frame, i64 {offset}"
                before += [f"  {name}.to = {slot}", f"  store {type} {text}, ptr {name}.to"]
                after += [f"  {name}.from = {slot}", f"  {name} = load {type}, ptr {name}.from"]
                self._carried[key] = name
            text = self._carried[key]
        return text

    def fill_waits(self) -> None:
        """Write down what each wait saves and fetches."""
        if self.function.unit.flat:
            return
        saving.choose(self.function.flow, self._steps)
        waits = [wait for steps in self._steps for step in steps for wait in step.waits]
        if sum(wait.saved.bit_count() + wait.fetched.bit_count() for wait in waits) > MOST_SAVED:
            raise GaveUpError
        for wait in (*waits, *self._entered):
            for index in saving.members(wait.saved | wait.fetched):
                self._save_and_fetch(self.function.registers.by_index[index], wait)

    def _save_and_fetch(self, register: ir.Register, wait: saving.Wait) -> None:
        function, type = self.function, bits_of(register.type)
        for element in range(register.vector):
            held = variable(register, element)
            offset = self.offset((register.index, element), register.type.width // 8)
            name = function.builder.fresh()
            if wait.saved >> register.index & 1:
                wait.before.append(f"  {name}.s = load {type}, ptr {held}")
                wait.before.append(f"  {name}.to = getelementptr i8, ptr %frame, i64 {offset}")
                wait.before.append(f"  store {type} {name}.s, ptr {name}.to")
            if wait.fetched >> register.index & 1:
                wait.after.append(f"  {name}.from = getelementptr i8, ptr %frame, i64 {offset}")
                wait.after.append(f"  {name}.f = load {type}, ptr {name}.from")
                wait.after.append(f"  store {type} {name}.f, ptr {held}")
                wait.after += function.registers.raw_stores(register, f"{name}.f")
