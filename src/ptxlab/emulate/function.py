"""One PTX function as a function of LLVM that runs a thread until it must wait for others.

Each PTX register is a variable on the stack, which LLVM turns into values. Where the thread waits, the registers that
are read later go to its frame, the function notes where it goes on and returns; called again, it jumps there and
fetches them back. The frame begins with what a return needs: the caller's code, frame, local memory and place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.emulate import saving, state
from ptxlab.emulate.liveness import Liveness
from ptxlab.emulate.loops import Iterations
from ptxlab.emulate.machine import Machine
from ptxlab.emulate.operands import Result, read, write
from ptxlab.emulate.timed import timed_registers
from ptxlab.emulate.values import Value, bits_of
from ptxlab.ir.effects import Effects, registers_in
from ptxlab.ir.flow import END, flow_of
from ptxlab.isa import Match
from ptxlab.native import offset_of
from ptxlab.native.text import Builder

if TYPE_CHECKING:
    from ptxlab.emulate.unit import Unit

FRAME_HEADER = 32


class Function:
    """A PTX function while it is translated."""

    def __init__(self, unit: Unit, function: ir.Function, number: int) -> None:
        self.unit = unit
        self.function = function
        self.number = number
        self.name = f"f{number}"
        self.builder = Builder()
        self.epoch = 0
        self.machine = Machine(self)
        self.instructions = list(function.instructions())
        self.matches = [unit.match(function, instruction) for instruction in self.instructions]
        self.effects = Effects(self.instructions, self.matches)
        self.flow = flow_of(function)
        self.registers: dict[int, ir.Register] = {}
        for register in _registers(self.instructions):
            self.registers[register.index] = register
        self._read_results_at_end()
        self._sums = _sums(self.instructions, self.effects, self.registers)
        self.position = 0
        self.first = unit.number_instructions(function, self.instructions)
        self._slots: dict[object, int] = {}
        self._frame_size = FRAME_HEADER
        self._resumes: list[str] = []
        self._waits: list[tuple[list[str], list[str]]] = []
        self._steps: list[list[saving.Step]] = [[] for _ in self.flow.blocks]
        self._carried: dict[tuple[str, int], str] = {}
        self.live = Liveness(self.instructions, self.effects, self.flow, self.registers)
        self.uses_carry = any(_uses_carry(instruction) for instruction in self.instructions)
        self.locals = unit.lay_out_locals(function)
        self.spilled = 0
        self.iterations = Iterations(self) if unit.profile else None
        self.block_counter = 0
        self.guard_counter = (-1, 0)

    def _read_results_at_end(self) -> None:
        """Results that are registers, as old PTX has them, are read where the function returns."""
        results = tuple(register.index for register, _ in self._formal(self.function.returns))
        for position, instruction in enumerate(self.instructions):
            if results and (instruction.opcode.mnemonic == "ret" or position == len(self.instructions) - 1):
                self.effects.reads[position] += results

    def _formal(self, variables: list[ir.Variable]) -> list[tuple[ir.Register, ir.Variable]]:
        """The registers that are parameters or results of the function."""
        by_variable = {id(register.variable): register for register in self.registers.values()}
        return [(by_variable[id(v)], v) for v in variables if v.state_space == "reg" and id(v) in by_variable]

    # What the rest of the program needs to know.

    @property
    def frame_size(self) -> int:
        """Bytes of its frame, known once it is translated."""
        return -(-self._frame_size // 16) * 16

    @property
    def is_entry(self) -> bool:
        return self.function.kind == "entry"

    @property
    def instruction_number(self) -> int:
        """The number, in the whole program, of the instruction that is being translated."""
        return self.first + self.position

    @property
    def counter(self) -> int:
        """The counter of the unit that counts how often the instruction that is being translated is executed."""
        number, counter = self.guard_counter
        return counter if number == self.instruction_number else self.block_counter

    # Registers.

    def variable(self, register: ir.Register, element: int = 0) -> str:
        """The variable that holds a register, or one element of a vector register."""
        return f"%r{register.index}.{element}" if register.vector > 1 else f"%r{register.index}"

    def get(self, register: ir.Register, element: int = 0) -> Value:
        variable = self.variable(register, element)
        text = self.builder.value(f"load {bits_of(register.type)}, ptr {variable}")
        return Value(self, register.type, text, f"{variable}.raw" if register.index in self._sums else None)

    def put(self, register: ir.Register, text: str, element: int = 0, raw: str | None = None) -> None:
        """Write a register; `raw` is the value as a `float` before its NaNs became canonical."""
        variable = self.variable(register, element)
        self.builder.emit(f"store {bits_of(register.type)} {text}, ptr {variable}")
        if register.index not in self._sums:
            return
        if raw is None:
            raw = self.builder.value(f"bitcast i32 {text} to float")
        elif raw[:2] == "%r":
            raw = self.builder.value(f"load float, ptr {raw}")
        self.builder.emit(f"store float {raw}, ptr {variable}.raw")

    # The fields of the thread.

    def field_pointer(self, name: str) -> str:
        return self.builder.value(f"getelementptr i8, ptr %thread, i64 {offset_of(state.Thread, name)}")

    def load_field(self, name: str, type: str) -> str:
        return self.builder.value(f"load {type}, ptr {self.field_pointer(name)}")

    def store_field(self, name: str, type: str, text: str | int) -> None:
        self.builder.emit(f"store {type} {text}, ptr {self.field_pointer(name)}")

    # Translation.

    def text(self) -> str:
        """The function in LLVM's language."""
        builder = self.builder
        entry = builder.gap()  # filled in below: declarations of registers, the jump to where it goes on
        builder.label("start")
        for register in self.registers.values():
            for element in range(register.vector):
                self.put(register, "false" if register.type.width == 1 else "0", element)
        for register, variable in self._formal(self.function.parameters):
            loaded = builder.value(f"load {bits_of(register.type)}, ptr {self._formal_place(variable)}, align 1")
            self.put(register, loaded)
        builder.emit("store i1 false, ptr %carry")
        if self.iterations is not None:
            self.iterations.begin()
        if not self.flow.blocks:
            self.leave()
        else:
            builder.jump("b0")
        for block in self.flow.blocks:
            self._translate_block(block.number)
        self._fill_waits()
        entry += [f"  %r{index}.raw = alloca float" for index in sorted(self._sums)]
        for register in self.registers.values():
            for element in range(register.vector):
                entry.append(f"  {self.variable(register, element)} = alloca {bits_of(register.type)}")
        entry.append(f"  %own.size = add i64 0, {self.frame_size}")
        entry += ["  %carry = alloca i1", "  %fuel = alloca i32", *self._entry_loads()]
        cases = " ".join(f"i32 {index}, label %{label}" for index, label in enumerate(self._resumes, 1))
        entry.append(f"  switch i32 %resume, label %start [ {cases} ]")
        return f"define internal void @{self.name}(ptr noalias %thread) nounwind {{\n{builder}\n}}\n"

    def _entry_loads(self) -> list[str]:
        loads = []
        for name, type in (
            ("resume", "i32"),
            ("frame", "ptr"),
            ("shared", "ptr"),
            ("shared_size", "i64"),
            ("local", "ptr"),
            ("local_size", "i64"),
            ("local_base", "i64"),
            ("mail", "ptr"),
            ("hints", "ptr"),
            ("counters", "ptr"),
            ("worker", "ptr"),
            ("block", "ptr"),
        ):
            loads.append(f"  %at.{name} = getelementptr i8, ptr %thread, i64 {offset_of(state.Thread, name)}")
            loads.append(f"  %{name} = load {type}, ptr %at.{name}")
        quantum = offset_of(state.Thread, "fuel")
        loads.append(f"  %at.fuel = getelementptr i8, ptr %thread, i64 {quantum}")
        loads.append("  %quantum = load i32, ptr %at.fuel")
        loads.append("  store i32 %quantum, ptr %fuel")
        return loads

    def _translate_block(self, number: int) -> None:
        block = self.flow.blocks[number]
        self.builder.label(f"b{number}")
        self.unit.count_block(self, block.start, block.end)
        for position in range(block.start, block.end):
            self.position = position
            self._steps[number].append(self._step(position))
            self._translate(self.instructions[position], self.matches[position])
            if self.builder.is_closed:
                return
        if block.successors:
            self.go(block.successors[-1])
        else:  # the text ends without `ret`: ptxas returns there
            self.leave()

    def _translate(self, instruction: ir.Instruction, match: Match | None) -> None:
        guard = instruction.guard
        builder = self.builder
        mnemonic = instruction.opcode.mnemonic
        after = None
        if guard is not None:
            assert isinstance(guard.register, ir.Register)
            condition = self.get(guard.register).text
            taken, after = builder.new_label("then"), builder.new_label("after")
            yes, no = (after, taken) if guard.negated else (taken, after)
            builder.branch(condition, yes, no)
            builder.label(taken)
            self.unit.count_guarded(self)
        handler = self.unit.handlers.get(mnemonic)
        if handler is not None:
            handler(self, instruction)
        else:
            assert match is not None
            self._execute(instruction, match)
        if after is not None:
            if not builder.is_closed:
                builder.jump(after)
            builder.label(after)

    def _execute(self, instruction: ir.Instruction, match: Match) -> None:
        """Run the meaning of an instruction on its operands, and write down its results."""
        meaning = match.form.meaning
        assert meaning is not None, instruction.opcode.text
        given: dict[str, Any] = {}
        results: list[Result] = []
        for expected, operand in zip(match.expected, instruction.operands, strict=True):
            read(self, expected, operand, given, results)
        names = meaning.__code__.co_varnames[2 : meaning.__code__.co_argcount]
        self.machine.begin(instruction, match)
        returned = meaning(self.machine, match.candidate.modifiers, *(given.get(name) for name in names))
        write(self, results, returned)

    # Control flow.

    def go(self, target: int) -> None:
        """Jump to a block; a jump backwards costs fuel, and without fuel the thread lets others run first."""
        builder = self.builder
        if target == END:
            self.leave()
            return
        if self.iterations is not None:
            self.iterations.go(self.block_number, target)
        if target > self.block_number:
            builder.jump(f"b{target}")
            return
        left = builder.value("load i32, ptr %fuel")
        less = builder.value(f"sub i32 {left}, 1")
        builder.emit(f"store i32 {less}, ptr %fuel")
        empty = builder.value(f"icmp eq i32 {less}, 0")
        rest = builder.new_label("rest")
        builder.branch(empty, rest, f"b{target}", likely=False)
        builder.label(rest)
        self.wait(state.YIELDED, self.live.at_start[target], target=target)
        builder.jump(f"b{target}")

    @property
    def block_number(self) -> int:
        """The basic block that is being translated."""
        return self.live.block_of[self.position]

    def leave(self) -> None:
        """Return to the caller, or end the thread."""
        if self.is_entry:
            self.exit()
            return
        for register, variable in self._formal(self.function.returns):
            self.builder.emit(f"store {self.get(register).typed}, ptr {self._formal_place(variable)}, align 1")
        self.unit.runtime_call(self, "leave", (), None)
        self.builder.close("ret void")

    def _formal_place(self, variable: ir.Variable) -> str:
        """Where a parameter or result lies in local memory."""
        at = self.builder.value(f"add i64 %local_base, {self.locals.offsets[id(variable)]}")
        return self.builder.value(f"getelementptr i8, ptr %local, i64 {at}")

    def exit(self) -> None:
        """End the thread."""
        self.unit.runtime_call(self, "thread_exit", (), None)
        self.builder.close("ret void")

    def fail(self) -> None:
        """Return after the runtime has noted what went wrong."""
        self.builder.close("ret void")

    @property
    def next_resume(self) -> int:
        """The number of the place where the thread goes on after the next wait."""
        return len(self._resumes) + 1

    def wait(self, status: int | None, live: int, *, calls: bool = False, target: int | None = None) -> None:
        """Give the thread up with these registers saved; it goes on behind this, or with a jump to the block `target`.

        None: the status is set already. With `calls` it is the callee that runs, and the frame knows where to go on.
        """
        builder = self.builder
        saves = builder.gap()
        if self.uses_carry:
            carry = builder.value("load i1, ptr %carry")
            builder.emit(f"store i1 {carry}, ptr {self.slot('carry', 8)}")
        before = builder.gap()
        if not calls:
            self.store_field("resume", "i32", self.next_resume)
            self.store_field("instruction", "i32", self.instruction_number)
        if status is not None:
            self.store_field("status", "i32", status)
        builder.emit("ret void")
        label = builder.new_label("resume")
        self._resumes.append(label)
        builder.label(label)
        fetches = builder.gap()
        if self.uses_carry:
            carry = builder.value(f"load i1, ptr {self.slot('carry', 8)}")
            builder.emit(f"store i1 {carry}, ptr %carry")
        after = builder.gap()
        self._waits.append((before, after))
        certain = target is None and self.instructions[self.position].guard is None
        step = self._steps[self.live.block_of[self.position]][-1]
        step.waits.append(saving.Wait(live, certain, target, saves, fetches))
        self.epoch += 1

    def _step(self, position: int) -> saving.Step:
        """What an instruction reads and writes, before its waits are known."""
        reads = writes = 0
        for index in self.effects.reads[position]:
            reads |= 1 << index
        for index in self.effects.writes[position]:
            writes |= 1 << index
        return saving.Step(reads, writes, self.live.overwrites(position))

    def _fill_waits(self) -> None:
        """Write down what each wait saves and fetches."""
        saving.choose(self.flow, self._steps)
        for steps in self._steps:
            for step in steps:
                for wait in step.waits:
                    for register in self.registers.values():
                        if (wait.saved | wait.fetched) >> register.index & 1:
                            self._save_and_fetch(register, wait)

    def _save_and_fetch(self, register: ir.Register, wait: saving.Wait) -> None:
        type = bits_of(register.type)
        for element in range(register.vector):
            variable = self.variable(register, element)
            offset = self.offset((register.index, element), register.type.width // 8)
            name = self.builder.fresh()
            if wait.saved >> register.index & 1:
                wait.before.append(f"  {name}.s = load {type}, ptr {variable}")
                wait.before.append(f"  {name}.to = getelementptr i8, ptr %frame, i64 {offset}")
                wait.before.append(f"  store {type} {name}.s, ptr {name}.to")
            if wait.fetched >> register.index & 1:
                wait.after.append(f"  {name}.from = getelementptr i8, ptr %frame, i64 {offset}")
                wait.after.append(f"  {name}.f = load {type}, ptr {name}.from")
                wait.after.append(f"  store {type} {name}.f, ptr {variable}")
                if register.index in self._sums:
                    wait.after.append(f"  {name}.r = bitcast i32 {name}.f to float")
                    wait.after.append(f"  store float {name}.r, ptr {variable}.raw")

    def wait_here(self, status: int | None) -> None:
        """Wait in the middle of an instruction: what is read after it, save for its own results, is kept."""
        self.wait(status, self.live.across(self.position))

    def carry(self, text: str, type: str, epoch: int) -> str:
        """Keep a value over all waits since `epoch`, and return its name here."""
        for at in range(epoch, self.epoch):
            key = (text, at)
            if key not in self._carried:
                before, after = self._waits[at]
                bytes = 16 if type == "i128" else 8
                offset = self.offset(("carried", self.spilled), bytes)
                self.spilled += 1
                name = self.builder.fresh()
                slot = f"getelementptr i8, ptr %frame, i64 {offset}"
                before += [f"  {name}.to = {slot}", f"  store {type} {text}, ptr {name}.to"]
                after += [f"  {name}.from = {slot}", f"  {name} = load {type}, ptr {name}.from"]
                self._carried[key] = name
            text = self._carried[key]
        return text

    def slot(self, key: object, bytes: int) -> str:
        """The place in the frame for what `key` names."""
        return self.builder.value(f"getelementptr i8, ptr %frame, i64 {self.offset(key, bytes)}")

    def offset(self, key: object, bytes: int) -> int:
        """Where in the frame `key` has its place."""
        offset = self._slots.get(key)
        if offset is None:
            size = 16 if bytes > 8 else 8
            offset = self._slots[key] = -(-self._frame_size // size) * size
            self._frame_size = offset + size
        return offset

    def timed_slots(self) -> list[int]:
        """Where in the frame there is only what depends on the time or counts iterations, known at the end."""
        timed = timed_registers(self.instructions, self.effects)
        return sorted(
            offset
            for key, offset in self._slots.items()
            if key in ("this call", "next call") or (isinstance(key, tuple) and (key[0] == "loop" or key[0] in timed))
        )

    def iteration(self) -> Value:
        """Which iteration of each loop around it, in which call, an instruction is executed in: a mark of 64 bits."""
        assert self.iterations is not None
        return self.iterations.mark(self.block_number)


def _sums(instructions: list[ir.Instruction], effects: Effects, registers: dict[int, ir.Register]) -> frozenset[int]:
    """The registers that arithmetic on f32 both reads and writes."""
    reads: set[int] = set()
    writes: set[int] = set()
    for position, instruction in enumerate(instructions):
        if instruction.opcode.mnemonic in ("add", "sub", "mul", "fma") and "f32" in instruction.opcode.modifiers:
            reads.update(effects.reads[position])
            writes.update(effects.writes[position])
    return frozenset(
        index for index in reads & writes if registers[index].type.width == 32 and registers[index].vector == 1
    )


def _uses_carry(instruction: ir.Instruction) -> bool:
    return instruction.opcode.mnemonic in ("addc", "subc", "madc") or "cc" in instruction.opcode.modifiers


def _registers(instructions: list[ir.Instruction]) -> list[ir.Register]:
    found: dict[int, ir.Register] = {}
    for instruction in instructions:
        if instruction.guard is not None and isinstance(instruction.guard.register, ir.Register):
            found.setdefault(instruction.guard.register.index, instruction.guard.register)
        for operand in instruction.operands:
            for register in registers_in(operand):
                found.setdefault(register.index, register)
    return list(found.values())
