"""A kernel and the functions it can reach, on their way to machine code.

The unit knows what is shared by all of them: where variables are, what the code calls (`calls.py`), what it counts
(`counting.py`) and what the detectors see of it (`tracking.py`). What it makes depends on the program alone, not on a
launch, so it can be kept on disk.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.device.record import Recorded
from ptxlab.emulate.abi import address_spaces
from ptxlab.emulate.abi.network import NETWORK
from ptxlab.emulate.abi.services import SERVICES
from ptxlab.emulate.translate import access
from ptxlab.emulate.translate.arithmetic import Arithmetic, own_arithmetic
from ptxlab.emulate.translate.calls import Calls
from ptxlab.emulate.translate.contraction import ProductSums, contract
from ptxlab.emulate.translate.counting import Counting
from ptxlab.emulate.translate.function import Function
from ptxlab.emulate.translate.passing import Signature, argument_value, receive_value, signature
from ptxlab.emulate.translate.preemption import LOGGED, NEVER
from ptxlab.emulate.translate.provenance import UNKNOWN
from ptxlab.emulate.translate.recording import RecordingPlan
from ptxlab.emulate.translate.sharing import TABLES, sharing_function
from ptxlab.emulate.translate.tracking import Tracking
from ptxlab.emulate.translate.values import LlvmValue
from ptxlab.ir.shapes import match_of
from ptxlab.isa import Match
from ptxlab.isa.types import type_named
from ptxlab.isa.units.tensor_memory import TWO_BLOCKS
from ptxlab.native.apart import OutOfTimeError
from ptxlab.native.text import METADATA
from ptxlab.native.translate import emit

if TYPE_CHECKING:
    from ptxlab.emulate.translate.lanes import LaneFunction

_U64 = type_named("u64")
_ROW = "{ ptr, i32, i32, i32, i32 }"
LARGE = 300_000  # characters of LLVM IR, beyond which LLVM takes a second


class Unit:
    """One kernel as LLVM IR, with the tables that running it needs."""

    def __init__(
        self,
        module: ir.Module,
        entry: ir.Function,
        checks: bool,
        profile: bool = False,
        preemption: int = NEVER,
        *,
        arithmetic: Arithmetic | None = None,
        record: Recorded | None = None,
        together: bool = False,
        flat: bool = False,
        until: float | None = None,
    ) -> None:
        self.preemption = preemption
        self.module = module
        self.arithmetic = arithmetic or own_arithmetic(module)
        self.pairs = self.contracted = 0  # sums that may be contracted with a product, and that are
        self.recording = None if record is None else RecordingPlan(record.lines)
        self.together = together  # whether lanes execute it together where they can; see `lanes`
        self.apart = ""  # why they cannot
        self.group = 1  # how many lanes execute it together
        self.single_counters = 0  # how many counters are of single threads; those after them are of lanes together
        self.flat = flat  # see `registers`
        self.until = until
        self.hurried = False  # whether there would be better machine code if there was more time
        self.entry = entry
        self.calls = Calls()
        self.counting = Counting(profile)
        self.instructions: list[tuple[ir.Function, ir.Instruction]] = []
        self.hints = 0
        self._tables: dict[bytes, str] = {}
        self.uses_stack = False
        self.undefined_sources = 0  # instructions that can give an undefined value
        self._signatures: dict[Signature, int] = {}
        self.numbers = layout.function_numbers(module)
        self.functions = layout.reachable(module, entry)
        self.by_name = layout.functions_of(module)
        self.tracking = Tracking(checks, is_alone=len(self.functions) == 1)
        self.tracking.synchronizes = any(
            (match := match_of(one)) is not None and match.effects.synchronizes
            for f in self.functions
            for one in f.instructions()
        )
        self.variables = layout.Variables(module, self.functions)
        instructions = [one for function in self.functions for one in function.instructions()]
        self.ranked = prod(entry.required_cluster or (1,)) > 1 or any(map(_uses_ranks, instructions))
        self.services = {name for one in instructions for name in _services(one)}  # of the host, that it calls
        self.copies_as_threads = any(map(_copies_as_threads, instructions))
        self.tracking.copies_boxes = any(map(_starts_bulk_copy, instructions))
        self.parameter_size = layout.block_of(entry.parameters).size

    def translate(self) -> tuple[str, str]:
        """The kernel as LLVM IR, and the functions that it calls: one text, or two where it is large.

        A large kernel is not worth much of LLVM's time, but what it calls is: there the work of `mma` is done.
        """
        translated = [Function(self, function, number) for number, function in enumerate(self.functions)]
        lanes = self._lanes_of(translated[0])
        bodies = [function.text() for function in translated]
        self.single_counters = len(self.counting.counters)
        if lanes is not None:
            bodies.append(lanes.text())
            if sum(map(len, bodies)) >= LARGE:
                bodies.pop()
                lanes, self.apart = None, "its size"
        self.blocks = sum(len(function.flow.blocks) for function in translated)
        by_name = {function.function.name: function for function in translated}
        callees = [self._callee(by_name.get(name)) for name in self.numbers]
        self.frame_sizes = [function.frame.size for function in translated]
        self.local_sizes = [function.locals.size for function in translated]
        self.timed_slots = translated[0].frame.timed_slots()
        self.address_slots = [slot for function in translated for slot in function.frame.address_slots().items()]
        calls = self.calls
        tables = [
            "@entry = alias void (ptr), ptr @f0",
            *(["@lanes = alias void (ptr), ptr @f0.lanes"] if lanes is not None else []),
            f"@callees = constant [{len(callees)} x {_ROW}] [ {', '.join(callees)} ]",
            f"@sites = constant [{len(calls.sites)} x {_ROW}] [ {', '.join(calls.sites)} ]",
        ]
        natives = emit(list(calls.natives.values()), linkage="internal") if calls.natives else ""
        rows = {"@callees": f"[{len(callees)} x {_ROW}]", "@sites": f"[{len(calls.sites)} x {_ROW}]"}
        tables += [_byte_table(name, content) for content, name in self._tables.items()]
        kernel = "\n".join([*tables, *bodies])
        runtime = "\n".join([*calls.runtime_functions.values(), *_INTRINSICS])
        if len(kernel) < LARGE and not self.flat:
            inside = [f"define internal {wrapper}" for wrapper in calls.wrappers]
            inside.append(sharing_function(TABLES[0], rows | calls.constant_types, natives))
            together = [kernel, *inside, *calls.constants, natives, runtime, _without_metadata(natives), "!2 = !{}\n"]
            return "\n".join(together), ""
        declared = [f"declare {wrapper.partition(' nounwind')[0]}" for wrapper in calls.wrappers]
        declared.append(sharing_function(TABLES[0], rows))
        outside = [f"define {wrapper}" for wrapper in calls.wrappers]
        outside.append(sharing_function(TABLES[1], calls.constant_types, natives))
        called = [*outside, *calls.constants, natives, runtime, _without_metadata(natives)]
        return "\n".join([kernel, *declared, runtime, METADATA, "!2 = !{}\n"]), "\n".join(called)

    def _lanes_of(self, entry: Function) -> LaneFunction | None:
        """The kernel for several lanes at a time, if that is wanted and possible."""
        if not self.together:
            return None
        from ptxlab.emulate.translate.lane_shapes import NotTogetherError
        from ptxlab.emulate.translate.lanes import LaneFunction

        try:
            lanes = LaneFunction(entry)
        except NotTogetherError as problem:
            self.apart = str(problem)
            return None
        entry.entered, self.group = lanes.entries, lanes.group
        return lanes

    def instructions_of(self, function: ir.Function) -> tuple[list[ir.Instruction], list[Match | None]]:
        """The instructions of a function and their forms; sums that are contracted are other ones."""
        pairs = ProductSums(function)
        chosen = self.arithmetic.choose(function.name, pairs)
        self.pairs += len(pairs.first_of_each())
        self.contracted += len(chosen.sums)
        return contract(pairs, chosen.sums, chosen.folds)

    def check_time(self) -> None:
        """Stop translating when the time for it is over."""
        if self.until is not None and time.perf_counter() >= self.until:
            raise OutOfTimeError

    def number_instructions(self, function: ir.Function) -> int:
        """Number the instructions of a function within the program, and return the first number."""
        first = len(self.instructions)
        self.instructions.extend((function, instruction) for instruction in function.instructions())
        return first

    def hint(self) -> int:
        """The number of the hint of another access."""
        self.hints += 1
        return self.hints - 1

    def table(self, content: bytes) -> str:
        """The name of a table of bytes beside the code of the kernel."""
        return self._tables.setdefault(content, f"@table.{len(self._tables)}")

    def lay_out_locals(self, function: ir.Function) -> layout.MemoryLayout:
        return layout.locals_of(self.module, function)

    def address_of(self, function: Function, variable: ir.Variable) -> LlvmValue:
        """The address of a variable in its state space."""
        offset = function.locals.offsets.get(id(variable))
        if offset is not None:
            base = LlvmValue(function, _U64, "%local_base")
            return base + offset if offset else base
        return LlvmValue(function, _U64, str(self.variables.address(variable)))

    @property
    def talks(self) -> bool:
        """Whether blocks can communicate: by atomic operations, or by loads and stores that are not weak.

        So they do by taking over the work of others.
        """
        return any(_is_loud(instruction) for _, instruction in self.instructions)

    @cached_property
    def counts_changes(self) -> bool:
        """Whether stores count as changes only where memory changes: schedules depend on it, with detectors or not."""
        return self.tracking.checks or self.preemption != NEVER or self.talks

    def call_builtin(
        self,
        function: Function,
        name: str,
        target: ir.Function,
        results: Sequence[ir.Operand],
        arguments: Sequence[ir.Operand],
    ) -> None:
        """Call a function that the host provides, or one of the network between GPUs."""
        numbers: list[LlvmValue | int] = []
        for parameter, argument in zip(target.parameters, arguments, strict=True):
            numbers.append(argument_value(function, parameter, argument))
        self.counting.note_change(function, "global")
        if self.preemption == LOGGED:
            self.calls.runtime_call(function, "log_service", (), None)
        at = function.instruction_number
        if name in NETWORK:
            self.tracking.written |= UNKNOWN
            result = target.returns[0].type.name if results else None
            found = self.calls.runtime_call(function, NETWORK[name][0], (*numbers, at), result)
        else:
            numbers += [0] * (5 - len(numbers))
            found = self.calls.runtime_call(function, "call_host", (list(SERVICES).index(name), at, *numbers), "u64")
        access.stop_if_failed(function)
        if results and found is not None:
            receive_value(function, target.returns[0], results[0], found)

    def space_of(self, function: Function, variable: ir.Variable) -> str:
        """The state space of a variable; a `.param` that a body declares, for a call, is in local memory."""
        return "local" if id(variable) in function.locals.offsets else variable.state_space.partition("::")[0]

    def function_address(self, name: str) -> int:
        """The generic address of a function."""
        return address_spaces.FUNCTION_WINDOW + 16 * self.function_number(name)

    def function_number(self, name: str) -> int:
        return self.numbers[name]

    def signature_number(self, returns: Sequence[ir.Variable], parameters: Sequence[ir.Variable]) -> int:
        """What a function returns and takes as a number, by which calls through addresses are checked; none is 0."""
        return self._signatures.setdefault(signature(returns, parameters), len(self._signatures) + 1)

    def _callee(self, function: Function | None) -> str:
        """An entry of the table of functions; one that this kernel cannot reach has no code, a kernel no signature."""
        code, frame, local, number = "null", 0, 0, 0
        if function is not None:
            code, frame, local = f"@{function.name}", function.frame.size, function.locals.size
            if not function.is_entry:
                number = self.signature_number(function.function.returns, function.function.parameters)
        return f"{{ ptr, i32, i32, i32, i32 }} {{ ptr {code}, i32 {frame}, i32 {local}, i32 {number}, i32 0 }}"


def _uses_ranks(instruction: ir.Instruction) -> bool:
    """Whether an instruction computes with the rank of a block in an address, or is one of two blocks."""
    match = match_of(instruction)
    if match is None or TWO_BLOCKS in instruction.opcode.modifiers:
        return match is not None
    effects = match.effects
    is_remote = "shared::cluster" in instruction.opcode.modifiers and not effects.does("bulk", "start")
    return effects.ranks or (is_remote and bool(effects.accesses))


def _starts_bulk_copy(instruction: ir.Instruction) -> bool:
    match = match_of(instruction)
    return match is not None and match.effects.does("bulk", "start")


def _copies_as_threads(instruction: ir.Instruction) -> bool:
    """Whether an instruction writes shared memory asynchronously, yet by the generic proxy, as threads do."""
    match = match_of(instruction)
    return match is not None and (match.effects.does("bulk", "put") or match.effects.does("async_copy", "start"))


def _services(instruction: ir.Instruction) -> list[str]:
    called = [operand.name for operand in instruction.operands if isinstance(operand, ir.FunctionReference)]
    return [name for name in called if name in SERVICES or name in NETWORK]


def _is_loud(instruction: ir.Instruction) -> bool:
    match = match_of(instruction)
    if match is None:
        return bool(_services(instruction))
    if match.effects.does("bulk", "cancel"):
        return True
    outside = [access for access in match.effects.accesses if not (access.space or "").startswith("shared")]
    return any(access.kind == "update" or access.order not in ("weak", "constant") for access in outside)


def _byte_table(name: str, content: bytes) -> str:
    return f"{name} = internal constant [{len(content)} x i8] [ {', '.join(f'i8 {byte}' for byte in content)} ]"


_INTRINSICS = (
    "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare i64 @llvm.fshr.i64(i64, i64, i64)",
)


def _without_metadata(natives: str) -> str:
    return "" if "!0 = " in natives else METADATA
