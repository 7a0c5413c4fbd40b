"""One PTX function as a function of LLVM that runs a thread until it must wait for others.

Where the thread waits, the registers that are read later go to its frame, the function notes where it continues and
returns; called again, it jumps there and fetches them back; see `frame`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.check.program import FunctionFacts
from ptxlab.device.trace_format import ENTERS, LEAVES
from ptxlab.emulate.abi import state, thread_parts
from ptxlab.emulate.translate import ranked_addresses
from ptxlab.emulate.translate.control import HANDLERS
from ptxlab.emulate.translate.dead_loads import branches_of_loads, dead_loads
from ptxlab.emulate.translate.frame import Frame
from ptxlab.emulate.translate.hints import LoopHints
from ptxlab.emulate.translate.liveness import AlwaysLive, Liveness
from ptxlab.emulate.translate.loops import Iterations
from ptxlab.emulate.translate.machine import LlvmMachine
from ptxlab.emulate.translate.operands import Result, read, write
from ptxlab.emulate.translate.passing import load_register, store_register
from ptxlab.emulate.translate.preemption import CHANGE, TURN, points_of
from ptxlab.emulate.translate.recording import FunctionRecording, PayloadSegment, is_apart
from ptxlab.emulate.translate.registers import Registers
from ptxlab.emulate.translate.saving import members
from ptxlab.emulate.translate.sharing import sharing
from ptxlab.emulate.translate.undefined import DEFINED, Undefined
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue
from ptxlab.flow.numbers import Threads
from ptxlab.ir.effects import RegisterEffects, reads_sum
from ptxlab.ir.flow import END, flow_of
from ptxlab.isa import Jump, Match
from ptxlab.native import offset_of
from ptxlab.native.apart import GaveUpError
from ptxlab.native.text import Builder

if TYPE_CHECKING:
    from ptxlab.emulate.translate.unit import Unit

MOST_BITS = 50_000_000  # of all sets of registers at the instructions of a function
FAILED = "failed"  # the label of what returns where something went wrong


class Function:
    """A PTX function while it is translated."""

    is_repeated = False  # whether what it moves is known already, from another translation of the same instructions

    def __init__(self, unit: Unit, function: ir.Function, number: int) -> None:
        self.unit = unit
        self.function = function
        self.number = number
        self.name = f"f{number}"
        self.builder = Builder()
        self.recording = FunctionRecording(self, unit.recording) if unit.recording is not None else None
        self.machine = LlvmMachine(self)
        self.instructions, self.matches = unit.instructions_of(function)
        self.effects = RegisterEffects(self.instructions, self.matches)
        self.flow = flow_of(function)
        self.frame = Frame(self)
        self.hints = LoopHints(self)
        self.registers = Registers(self, self.instructions, self.effects)
        self._read_results_at_end()
        self.undefined = Undefined(self, unit.tracking.checks)
        self.position = 0
        self.first = unit.number_instructions(function)
        self.live = self._find_live()
        self.points = points_of(self.matches, self.live, unit.preemption)
        self.uses_carry = any(match.effects.carry for match in self.matches if match is not None)
        self.locals = unit.lay_out_locals(function)
        self.iterations = Iterations(self) if unit.counting.profile else None
        self.is_read: LlvmValue | None = None  # what is loaded, where that is known before the load
        self.block_counter = 0
        self.guard_counter = (-1, 0)
        self._sizes: dict[str, str] = {}
        self.entered: set[int] = set()  # blocks at whose start a thread continues that was one of several lanes
        self.sites: dict[int, tuple[int, bool]] = {}  # of warp collectives, and if undefined values are followed there
        self.fails = False  # whether something branches to `failed`
        self.record_size = 0  # bytes of the largest that it passes to the runtime, see `records`

    def _find_live(self) -> Liveness:
        registers = self.registers.by_index
        if len(self.instructions) * max(registers, default=0) <= MOST_BITS:
            return Liveness(self.instructions, self.effects, self.flow, registers)
        if self.unit.flat:
            return AlwaysLive(self.flow, registers)
        raise GaveUpError

    def _read_results_at_end(self) -> None:
        """Results that are registers, as old PTX has them, are read where the function returns."""
        results = tuple(register.index for register, _ in self._formal(self.function.returns))
        for position, instruction in enumerate(self.instructions):
            if results and (instruction.opcode.jump is Jump.RETURN or position == len(self.instructions) - 1):
                self.effects.reads[position] += results

    def _formal(self, variables: list[ir.Variable]) -> list[tuple[ir.Register, ir.Variable]]:
        """The registers that are parameters or results of the function."""
        by_variable = {id(register.variable): register for register in self.registers.by_index.values()}
        return [(by_variable[id(v)], v) for v in variables if v.state_space == "reg" and id(v) in by_variable]

    # What the rest of the program needs to know.

    @cached_property
    def labels(self) -> Mapping[str, ir.Statement]:
        """Its labels and lists of them by name."""
        return self.function.labels()

    @cached_property
    def dead_loads(self) -> dict[int, Threads]:
        """The loads whose value makes no difference in some threads, and which those are."""
        return dead_loads(self._facts)

    @cached_property
    def _branches_of_loads(self) -> dict[int, tuple[int, bool]]:
        return branches_of_loads(self._facts) if self.unit.tracking.checks else {}

    @cached_property
    def _facts(self) -> FunctionFacts:
        return FunctionFacts(self.function, self.instructions, self.matches)

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

    @property
    def counts_changes(self) -> bool:
        """Whether a store counts as a change only where memory changes."""
        return self.unit.counts_changes

    def note_access(
        self,
        address: LlvmAddress,
        bytes: int,
        kind: int,
        order: str,
        element: int,
        unchanged: str = "false",
        undefined: str = DEFINED,
    ) -> str:
        """Have the detectors see an access; see `tracking`."""
        return self.unit.tracking.note_access(self, address, bytes, kind, order, element, unchanged, undefined)

    def times(self, amount: str) -> str:
        """How much is counted where each thread counts this."""
        return amount

    # The fields of the thread.

    def field_pointer(self, name: str) -> str:
        return self.builder.value(f"getelementptr i8, ptr %thread, i64 {offset_of(state.Thread, name)}")

    def load_field(self, name: str, type: str) -> str:
        return self.builder.value(f"load {type}, ptr {self.field_pointer(name)}")

    def store_field(self, name: str, type: str, text: str | int) -> None:
        self.builder.emit(f"store {type} {text}, ptr {self.field_pointer(name)}")

    def size_in(self, size: str, exponent: int) -> str:
        """The size of a window, a value known from the start, in pieces of two to the power of `exponent` bytes."""
        if not exponent:
            return size
        name = f"{size}.{exponent}"
        self._sizes.setdefault(name, f"  {name} = lshr i64 {size}, {exponent}")
        return name

    # Translation.

    def text(self) -> str:
        """The function as LLVM IR."""
        builder = self.builder
        entry = builder.gap()  # filled in below: declarations of registers, the jump to where it continues
        builder.label("start")
        # Others are written before they are read: LLVM need not find where a zero could get to.
        for index in members(self.live.at_start[0] if self.flow.blocks else 0):
            register = self.registers.by_index[index]
            for element in range(register.vector):
                self.registers.put(register, "false" if register.type.width == 1 else "0", element)
        if self.recording is not None:
            self.recording.begin(0 if self.is_entry else ENTERS)
        for register, variable in self._formal(self.function.parameters):
            load_register(self, register, self._formal_pointer(variable))
        builder.emit("store i1 false, ptr %carry")
        if self.iterations is not None:
            self.iterations.begin()
        if not self.flow.blocks:
            self.leave()
        else:
            self.hints.go(-1, 0)
            builder.jump("b0")
        for block in self.flow.blocks:
            self._translate_block(block.number)
        if self.recording is not None:
            self.recording.finish()
        if self.fails:
            builder.label(FAILED)
            self.fail()
        for number in sorted(self.entered):
            self.frame.enter(number)
        self.frame.fill_waits()
        entry += self.hints.fill()
        entry += self.registers.declarations()
        entry.append(f"  %own.size = add i64 0, {self.frame.size}")
        entry += ["  %carry = alloca i1", "  %fuel = alloca i32", *self._entry_loads(), *self._sizes.values()]
        if self.record_size:
            entry.append(f"  %record = alloca [{self.record_size} x i8], align 16")
            entry += sharing("%record", f"[{self.record_size} x i8]")
        entry += self._beginning()
        return f"define internal void @{self.name}(ptr noalias %thread) nounwind {{\n{builder}\n}}\n"

    def _beginning(self) -> list[str]:
        """What ends the first block: a jump to where the thread continues."""
        if not self.frame.resumes:
            return ["  br label %start"]
        # In a block of its own: where LLVM does not optimize, it selects the other instructions of a block with a
        # `switch` as slowly as that.
        cases = " ".join(f"i32 {index}, label %{label}" for index, label in enumerate(self.frame.resumes, 1))
        return ["  br label %entered", "entered:", f"  switch i32 %resume, label %start [ {cases} ]"]

    def _entry_loads(self) -> list[str]:
        loads = []
        for path, type in (
            ("resume", "i32"),
            ("memory.frame", "ptr"),
            ("memory.shared", "ptr"),
            ("memory.shared_size", "i64"),
            ("memory.local", "ptr"),
            ("memory.local_size", "i64"),
            ("memory.local_base", "i64"),
            ("memory.exchange", "ptr"),
            ("hints", "ptr"),
            ("counters", "ptr"),
            ("worker", "ptr"),
            ("block", "ptr"),
        ):
            name = path.rpartition(".")[2]
            loads.append(f"  %at.{name} = getelementptr i8, ptr %thread, i64 {offset_of(state.Thread, path)}")
            loads.append(f"  %{name} = load {type}, ptr %at.{name}")
        quantum = offset_of(state.Thread, "fuel")
        loads.append(f"  %at.fuel = getelementptr i8, ptr %thread, i64 {quantum}")
        loads.append("  %quantum = load i32, ptr %at.fuel")
        loads.append("  store i32 %quantum, ptr %fuel")
        if self.unit.ranked:
            loads += ranked_addresses.entry_loads()
        return loads

    def _translate_block(self, number: int) -> None:
        block = self.flow.blocks[number]
        self.builder.label(f"b{number}")
        self.unit.counting.count_block(self, block.start, block.end)
        self.registers.forget()
        if self.recording is not None:
            self.recording.begin()
        for position in range(block.start, block.end):
            self.position = position
            self.unit.check_time()
            self.frame.step(position)
            if position == block.end - 1 and position not in self.points:
                self.registers.drop(self.live.after(position))
            self.registers.begin_instruction()
            self._translate(self.instructions[position], self.matches[position])
            if self.builder.is_closed:
                return
        if block.successors:
            self.go(block.successors[-1])
        else:  # the text ends without `ret`: ptxas returns there
            self.leave()

    def _translate(self, instruction: ir.Instruction, match: Match | None) -> None:
        if instruction.guard is None:
            started = None if self.recording is None else self.recording.current
            self._translate_unguarded(instruction, match)
            if self.recording is not None:
                is_early = self.builder.is_closed or instruction.opcode.jump is Jump.CALL
                self.recording.end_step(started if is_early else None)
                if not self.builder.is_closed and match is not None and is_apart(match.effects):
                    self.recording.begin()
            return
        self._translate_guarded(instruction, instruction.guard, match)

    def _translate_guarded(self, instruction: ir.Instruction, guard: ir.Guard, match: Match | None) -> None:
        builder = self.builder
        assert isinstance(guard.register, ir.Register)
        self.undefined.use_guard(guard.register)
        condition = self.registers.get(guard.register).text
        taken, after = builder.new_label("then"), builder.new_label("after")
        started, origin = None, ""
        if self.recording is not None:
            started, origin = self.recording.current, builder.new_label("guard")
            self.recording.begin_guarded(condition, guard.negated)
            builder.jump(origin)
            builder.label(origin)
        yes, no = (after, taken) if guard.negated else (taken, after)
        builder.branch(condition, yes, no)
        builder.label(taken)
        self.registers.begin_guarded()
        self.unit.counting.count_guarded(self)
        self._translate_unguarded(instruction, match)
        last = None
        if not builder.is_closed:
            if self.recording is not None:
                last = builder.new_label("last")
                builder.jump(last)
                builder.label(last)
            builder.jump(after)
        builder.label(after)
        if self.recording is not None:
            self._end_guarded_step(started, origin, last, instruction.opcode.jump is Jump.CALL)
        self.registers.end_guarded()

    def _end_guarded_step(self, started: PayloadSegment | None, origin: str, last: str | None, is_call: bool) -> None:
        """Record an instruction with a guard, from where it has been executed, at the label `last`, or not."""
        assert self.recording is not None
        has_moved = last is not None and self.recording.current is not started
        if has_moved and is_call:
            self.recording.end_step(started)
            self.recording.begin()
        elif has_moved and last is not None:
            self.recording.end_guarded(origin, last)
            self.recording.end_step()
        else:
            self.recording.end_step(started)
            self.recording.current = started

    def _translate_unguarded(self, instruction: ir.Instruction, match: Match | None) -> None:
        """Translate an instruction whose guard holds, or that has none."""
        if self.position in self.points:
            self._pass_point(self.points[self.position])
        if instruction.opcode.jump is not None:
            self.undefined.use_operands(instruction)
            HANDLERS[instruction.opcode.jump](self, instruction)
        else:
            assert match is not None
            if self.recording is not None and is_apart(match.effects):
                self.recording.begin()
            self._execute(instruction, match)

    def _execute(self, instruction: ir.Instruction, match: Match) -> None:
        """Run the semantics of an instruction on its operands, and write down its results."""
        comparison, result = self._branches_of_loads.get(self.position, (-1, True))
        compares, self.is_read = self.matches[comparison], None
        if comparison >= 0 and compares is not None:
            _, (compared, *_) = self._run(self.instructions[comparison], compares)
            self.is_read = compared if result else ~compared
        results, returned = self._run(instruction, match)
        write(self, results, returned)

    def _run(self, instruction: ir.Instruction, match: Match) -> tuple[list[Result], Any]:
        semantics = match.form.semantics
        assert semantics is not None, instruction.opcode.text
        given: dict[str, Any] = {}
        results: list[Result] = []
        for expected, operand in zip(match.expected, instruction.operands, strict=True):
            is_read = expected.role != "update" or reads_sum(instruction, match)
            read(self, expected, operand, given, results, is_read=is_read)
        names = semantics.__code__.co_varnames[2 : semantics.__code__.co_argcount]
        self.undefined.begin(instruction, match, given)
        self.machine.begin(instruction, match)
        return results, semantics(self.machine, match.candidate.modifiers, *(given.get(name) for name in names))

    # Control flow.

    def go(self, target: int) -> None:
        """Jump to a block; a jump backwards costs fuel, and without fuel the thread lets others run first."""
        builder = self.builder
        if target == END:
            self.leave()
            return
        if self.iterations is not None:
            self.iterations.go(self.block_number, target)
        self.hints.go(self.block_number, target)
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
        self.frame.wait(thread_parts.YIELDED, self.live.at_start[target], target=target)
        builder.jump(f"b{target}")

    def _pass_point(self, kind: int) -> None:
        """Let others run first if the thread has passed as many preemption points as it may; see `preemption`."""
        builder = self.builder
        if kind == TURN:
            self._take_turn()
            return
        left = self.load_field("preemption.points_left", "i32")
        pause, on, go = builder.new_label("pause"), builder.new_label("on"), builder.new_label("go")
        builder.branch(builder.value(f"icmp eq i32 {left}, 0"), pause, on, likely=False)
        builder.label(on)
        cost = "1" if kind == CHANGE else self.load_field("preemption.read_cost", "i32")
        self.store_field("preemption.points_left", "i32", builder.value(f"sub i32 {left}, {cost}"))
        builder.jump(go)
        builder.label(pause)
        self.store_field("preemption.at_point", "i32", 1)
        self.frame.pause()
        builder.jump(go)
        self._pass(go)

    def _take_turn(self) -> None:
        """Let other lanes of the warp come to a volatile access, too."""
        go = self.builder.new_label("go")
        self.frame.pause(thread_parts.AT_TURN)
        self.builder.jump(go)
        self._pass(go)

    def _pass(self, go: str) -> None:
        """Continue with an instruction at a label, after a wait before it or without."""
        self.builder.label(go)
        if self.recording is not None:
            self.recording.begin()
        self.registers.begin_instruction()

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
            store_register(self, register, self._formal_pointer(variable))
        if self.recording is not None:
            self.recording.begin(LEAVES)
        self.unit.calls.runtime_call(self, "leave", (), None)
        self.builder.close("ret void")

    def _formal_pointer(self, variable: ir.Variable) -> str:
        """Where a parameter or result is in local memory."""
        at = self.builder.value(f"add i64 %local_base, {self.locals.offsets[id(variable)]}")
        return self.builder.value(f"getelementptr i8, ptr %local, i64 {at}")

    def exit(self) -> None:
        """End the thread."""
        self.unit.calls.runtime_call(self, "thread_exit", (), None)
        self.builder.close("ret void")

    def fail(self) -> None:
        """Return after the runtime has noted what went wrong."""
        self.builder.close("ret void")

    @property
    def failed(self) -> str:
        """The label of a block that does so, where there is nothing else to do."""
        self.fails = True
        return FAILED

    def iteration(self) -> LlvmValue:
        """Which iteration of each loop around it, in which call, an instruction is executed in: a mark of 64 bits."""
        assert self.iterations is not None
        return self.iterations.mark(self.block_number)
