"""A kernel and the functions it can reach, on their way to machine code.

The unit knows what is shared by all of them: where variables lie, which instructions are meeting points, which native
functions the code calls. What it makes depends on the program alone, not on a launch, so it can be kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ptxlab import ir
from ptxlab.emulate import access, layout, state
from ptxlab.emulate.control import HANDLERS, argument_value, receive_value
from ptxlab.emulate.counters import is_counted_apart
from ptxlab.emulate.function import Function
from ptxlab.emulate.roots import UNKNOWN, WINDOW, Roots
from ptxlab.emulate.runtime import RUNTIME, shadow
from ptxlab.emulate.services import SERVICES
from ptxlab.emulate.values import Address, Value, resize
from ptxlab.isa.types import type_named
from ptxlab.native import offset_of
from ptxlab.native.functions import Signature, signature
from ptxlab.native.text import METADATA
from ptxlab.native.translate import declaration_text, emit

_U64 = type_named("u64")
LARGE = 300_000  # characters of LLVM's language, beyond which LLVM takes a second
_SEEN_BY_OTHERS = (None, "global", "shared")


class Unit:
    """One kernel as LLVM's text, with the tables that running it needs."""

    handlers = HANDLERS

    def __init__(self, module: ir.Module, entry: ir.Function, checks: bool, profile: bool = False) -> None:
        self.module = module
        self.entry = entry
        self.checks = checks
        self.profile = profile
        self.natives: dict[str, Callable[..., Any]] = {}
        self.runtime_functions: dict[str, str] = {}
        self.places: list[tuple[ir.Function, ir.Instruction]] = []
        self.sites: list[str] = []
        self.site_instructions: list[int] = []
        self.wrappers: list[str] = []
        self.statics: dict[tuple[int, ...], str] = {}
        self._specials: dict[object, str] = {}
        self._written: set[str] = set()
        self.mail_words = 1
        self.hints = 0
        self.uses_stack = False
        self.counters: list[tuple[int, int]] = []
        self.traffic: list[tuple[int, str, int, int, int]] = []
        self.profile_sites: list[int] = []
        self.changes: set[int] = set()
        self.looks: dict[int, bool] = {}
        self.written = 0
        self._roots: dict[int, Roots] = {}
        self._keys: dict[object, int] = {}
        self._meetings: dict[object, str] = {}
        self.numbers = layout.function_numbers(module)
        self.functions = layout.reachable(module, entry)
        self.variables = layout.Variables(module, self.functions)
        self.parameter_size = layout.block_of(entry.parameters).size

    def translate(self) -> tuple[str, str]:
        """The kernel as LLVM's text, and the functions that it calls: one text, or two where it is large.

        A large kernel is not worth much of LLVM's time, but what it calls is: there the work of `mma` is done.
        """
        translated = [Function(self, function, number) for number, function in enumerate(self.functions)]
        bodies = [function.text() for function in translated]
        by_name = {function.function.name: function for function in translated}
        callees = [_callee(by_name.get(name)) for name in self.numbers]
        self.frame_sizes = [function.frame.size for function in translated]
        self.local_sizes = [function.locals.size for function in translated]
        self.timed_slots = translated[0].frame.timed_slots()
        self.address_slots = [slot for function in translated for slot in function.frame.address_slots().items()]
        tables = [
            "@entry = alias void (ptr), ptr @f0",
            f"@callees = constant [{len(callees)} x {{ ptr, i32, i32 }}] [ {', '.join(callees)} ]",
            f"@sites = constant [{len(self.sites)} x {{ ptr, i32, i32, i32, i32 }}] [ {', '.join(self.sites)} ]",
        ]
        statics = [
            f"{name} = internal constant [{len(words)} x i32] [ {', '.join(f'i32 {word}' for word in words)} ]"
            for words, name in self.statics.items()
        ]
        natives = emit(list(self.natives.values())) if self.natives else ""
        kernel = "\n".join([*tables, *bodies])
        runtime = "\n".join([*self.runtime_functions.values(), *_INTRINSICS])
        if len(kernel) < LARGE:
            inside = [f"define internal {wrapper}" for wrapper in self.wrappers]
            together = [kernel, *inside, *statics, natives, runtime, _without_metadata(natives), "!2 = !{}\n"]
            return "\n".join(together), ""
        declared = [f"declare {wrapper.partition(' nounwind')[0]}" for wrapper in self.wrappers]
        declared += [declaration_text(native) for native in self.natives.values()]
        outside = [f"define {wrapper}" for wrapper in self.wrappers]
        called = [*outside, *statics, natives, runtime, _without_metadata(natives)]
        return "\n".join([kernel, *declared, runtime, METADATA, "!2 = !{}\n"]), "\n".join(called)

    # Instructions.

    def number_instructions(self, function: ir.Function, instructions: Sequence[ir.Instruction]) -> int:
        """Number the instructions of a function within the program, and return the first number."""
        first = len(self.places)
        self.places.extend((function, instruction) for instruction in instructions)
        return first

    def count_block(self, function: Function, start: int, end: int) -> None:
        """Count how often a basic block runs."""
        function.block_counter = self._count(function, (function.first + start, function.first + end))

    def count_guarded(self, function: Function) -> None:
        """Count how often the guard of an instruction holds."""
        if is_counted_apart(function.instructions[function.position]):
            number = function.instruction_number
            function.guard_counter = number, self._count(function, (number, number))

    def count_here(self, function: Function, amount: str = "1") -> int:
        """Count how often, or how much, this part of an instruction does; the number of the counter."""
        return self._count(function, (-1, -1), amount)

    def note_change(self, function: Function, space: str | None, condition: str | None = None) -> None:
        """Have it counted how often this instruction changes memory that other threads see: always, or if told so."""
        if space not in _SEEN_BY_OTHERS:
            return
        if condition is None:
            self.changes.add(function.counter)
        else:
            amount = function.builder.value(f"zext i1 {condition} to i64")
            self.changes.add(self.count_here(function, amount))

    def note_look(self, function: Function, space: str | None) -> None:
        """Have it counted how often this instruction looks at what other threads, or even other blocks, may change."""
        if space in _SEEN_BY_OTHERS:
            self.looks[function.counter] = self.looks.get(function.counter, False) or space != "shared"

    def _count(self, function: Function, what: tuple[int, int], amount: str = "1") -> int:
        builder = function.builder
        index = len(self.counters)
        self.counters.append(what)
        at = builder.value(f"getelementptr i64, ptr %counters, i64 {index}")
        count = builder.value(f"load i64, ptr {at}")
        builder.emit(f"store i64 {builder.value(f'add i64 {count}, {amount}')}, ptr {at}")
        return index

    def count_access(
        self, function: Function, address: Address, size: Value | int, kind: int, condition: int = -1
    ) -> None:
        """Count the bytes of an access, as often as its instruction is executed, or as the counter `condition` says."""
        bytes, counter = (size, condition) if isinstance(size, int) else (1, 0)
        if not isinstance(size, int):
            counter = self.count_here(function, resize(size, 64, signed=False))
        self.traffic.append((function.instruction_number, address.space or "generic", kind, bytes, counter))
        if self.profile and address.space in (None, "global", "shared"):
            site = len(self.profile_sites)
            self.profile_sites.append(function.instruction_number)
            given = (site, function.iteration(), address.value, size, access.SPACES[address.space])
            self.runtime_call(function, "note_request", given, None)

    # Memory.

    def hint(self, function: Function) -> str:
        self.hints += 1
        return access.hint_pointer(function, self.hints - 1)

    def search(self, space: str | None, bytes: int, kind: int) -> str:
        """The symbol of a function that finds memory: it takes the thread, the address, the instruction and a hint."""
        symbol = f"search.{access.SPACES[space]}.{bytes}.{kind}"
        if symbol not in self._written:
            self._written.add(symbol)
            about = f"i32 {bytes}, i32 {bytes}, i32 {access.SPACES[space]}, i32 {kind}"
            self.wrappers.append(
                f"ptr @{symbol}(ptr %thread, i64 %address, i32 %instruction, ptr %hint) nounwind "
                f"cold noinline {{\n  %found = call ptr @{self.runtime('find_memory')}"
                f"(ptr %thread, i64 %address, {about}, i32 %instruction, ptr %hint)\n  ret ptr %found\n}}\n"
            )
        return symbol

    def lay_out_locals(self, function: ir.Function) -> layout.Layout:
        return layout.locals_of(self.module, function)

    def address_of(self, function: Function, variable: ir.Variable) -> Value:
        """The address of a variable in its state space."""
        offset = function.locals.offsets.get(id(variable))
        if offset is not None:
            base = Value(function, _U64, "%local_base")
            return base + offset if offset else base
        return Value(function, _U64, str(self.variables.address(function.function, variable)))

    @property
    def talks(self) -> bool:
        """Whether blocks can talk to each other: by atomic operations, or by loads and stores that are not weak."""
        return any(_is_loud(instruction) for _, instruction in self.places)

    def call_builtin(
        self,
        function: Function,
        name: str,
        target: ir.Function,
        results: Sequence[ir.Operand],
        arguments: Sequence[ir.Operand],
    ) -> None:
        """Call a function that the host provides."""
        numbers: list[Value | int] = []
        for parameter, argument in zip(target.parameters, arguments, strict=True):
            numbers.append(argument_value(function, parameter, argument))
        numbers += [0] * (5 - len(numbers))
        number = list(SERVICES).index(name)
        self.note_change(function, "global")
        found = self.runtime_call(function, "call_host", (number, function.instruction_number, *numbers), "u64")
        access.stop_if_failed(function)
        if results and found is not None:
            receive_value(function, target.returns[0], results[0], found)

    def space_of(self, function: Function, variable: ir.Variable) -> str:
        """The state space of a variable; a `.param` that a body declares, for a call, lies in local memory."""
        return "local" if id(variable) in function.locals.offsets else variable.state_space.partition("::")[0]

    def function_address(self, name: str) -> int:
        """The generic address of a function."""
        return state.FUNCTION_WINDOW + 16 * self.function_number(name)

    def function_number(self, name: str) -> int:
        return self.numbers[name]

    def note_access(
        self,
        function: Function,
        address: Address,
        bytes: int,
        kind: int,
        order: str,
        element: int,
        unchanged: str = "false",
    ) -> None:
        """Tell the detectors of an access to `bytes` bytes in elements of `element`, which may change nothing."""
        instruction = function.instructions[function.position]
        space = address.space
        if not self.checks or space in ("const", "param"):
            return
        if space == "local" and (len(self.functions) > 1 or _names_parameter(instruction)):
            return
        builder = function.builder
        roots = UNKNOWN
        after = None
        if space in (None, "global"):
            roots = self.roots_of(function).of_addresses(instruction)
            if kind != state.LOAD:
                self.written |= roots
            elif not roots & (UNKNOWN | WINDOW):
                watched, after = builder.new_label("watched"), builder.new_label("noted")
                builder.branch(self._is_watched(function, roots), watched, after)
                builder.label(watched)
        name = {None: "note_generic", "global": "note_global", "shared": "note_shared", "local": "note_local"}[space]
        number = about_of(kind, order, element) | (shadow.FOLLOWED if len(self.functions) == 1 else 0)
        what = str(number)
        if unchanged != "false":
            what = builder.value(f"select i1 {unchanged}, i32 {number | shadow.UNCHANGED}, i32 {number}")
        about = f"i32 {bytes}, i32 {what}, i32 {function.instruction_number}"
        builder.emit(f"call void @{self.runtime(name)}(ptr %thread, i64 {address.value.text}, {about})")
        if after is not None:
            builder.jump(after)
            builder.label(after)

    def watches(self, function: Function) -> Value | int:
        """Whether the detectors are to be told of the memory that a copy reads."""
        if not self.checks:
            return 0
        copied = function.instructions[function.position].operands[1]
        roots = self.roots_of(function).of_address(copied)
        if roots & UNKNOWN:
            return 1
        text = function.builder.value(f"zext i1 {self._is_watched(function, roots)} to i32")
        return Value(function, type_named("u32"), text)

    def roots_of(self, function: Function) -> Roots:
        found = self._roots.get(function.number)
        if found is None:
            found = self._roots[function.number] = Roots(function)
        return found

    def _is_watched(self, function: Function, roots: int) -> str:
        builder = function.builder
        place = builder.value(f"getelementptr i8, ptr %worker, i64 {offset_of(state.Worker, 'watched')}")
        watched = builder.value(f"load i64, ptr {place}, !invariant.load !2")
        return builder.value(f"icmp ne i64 {builder.value(f'and i64 {watched}, {roots}')}, 0")

    # Meetings.

    def site(
        self,
        function: Function,
        action: Callable[..., Any],
        statics: Sequence[int | tuple[int, ...]],
        words: int,
        aligned: bool,
    ) -> int:
        """A meeting point: what its lanes do together, as a function without the constants."""
        self.mail_words = max(self.mail_words, words)
        known = signature(action)
        self.natives.setdefault(known.symbol, action)
        arguments = ["ptr %mail", "i32 %members"]
        for static, (_, type) in zip(statics, known.parameters[2:], strict=True):
            if isinstance(static, tuple):
                name = self.statics.setdefault(static, f"@static.{len(self.statics)}")
                arguments.append(f"ptr {name}")
            else:
                arguments.append(f"{type.llvm} {static}")
        number = len(self.sites)
        what = (known.symbol, tuple(statics))
        if what not in self._meetings:
            self._meetings[what] = f"@meeting.{len(self._meetings)}"
            self.wrappers.append(
                f"void {self._meetings[what]}(ptr %mail, i32 %members) nounwind {{\n"
                f'  call void @"{known.symbol}"({", ".join(arguments)})\n  ret void\n}}\n'
            )
        key = (*what, number if aligned else None)  # who is aligned meets at the same instruction
        self.sites.append(
            f"{{ ptr, i32, i32, i32, i32 }} {{ ptr {self._meetings[what]}, "
            f"i32 {self._keys.setdefault(key, len(self._keys))}, "
            f"i32 {function.instruction_number}, i32 {int(aligned)}, i32 0 }}"
        )
        return number

    # Calls of native functions.

    def runtime(self, name: str) -> str:
        """The symbol of a function of the runtime, which is declared."""
        function = RUNTIME[name]
        symbol = f'"{signature(function).symbol}"'
        self.runtime_functions.setdefault(name, declaration_text(function))
        return symbol

    def runtime_call(
        self, function: Function, name: str, arguments: Sequence[Value | int], result: str | None
    ) -> Value | None:
        """Call a function of the runtime: the thread, then these arguments."""
        known = signature(RUNTIME[name])
        texts = ["ptr %thread"]
        for argument, (_, wanted) in zip(arguments, known.parameters[1:], strict=True):
            if isinstance(argument, int):
                texts.append(f"{wanted.llvm} {argument}")
            else:
                texts.append(f"{wanted.llvm} {resize(argument, int(wanted.llvm[1:]), argument.is_signed)}")
        call = f"@{self.runtime(name)}({', '.join(texts)})"
        if known.result is None:
            function.builder.emit(f"call void {call}")
            return None
        text = function.builder.value(f"call {known.result.llvm} {call}")
        assert result is not None
        found = Value(function, type_named(f"u{known.result.llvm[1:]}"), text)
        return Value(function, type_named(result), resize(found, type_named(result).width, signed=False))

    def native_call(self, native: Callable[..., Any], arguments: Sequence[str | int]) -> str:
        """The text of a call of a native function, whose code becomes part of the unit.

        For each choice of numbers among the arguments there is one function that knows them: LLVM makes it simple once,
        and not again at every call.
        """
        known = signature(native)
        self.natives.setdefault(known.symbol, native)
        assert known.result is not None
        numbers = tuple(argument if isinstance(argument, int) else None for argument in arguments)
        passed = [
            f"{type.llvm} {argument}"
            for argument, (_, type) in zip(arguments, known.parameters, strict=True)
            if not isinstance(argument, int)
        ]
        symbol = f'"{known.symbol}"'
        if len(passed) < len(arguments):
            symbol = self._specials.setdefault((known.symbol, numbers), f"special.{len(self._specials)}")
            if symbol not in self._written:
                self._written.add(symbol)
                self.wrappers.append(_special(symbol, known, numbers))
        return f"call {known.result.llvm} @{symbol}({', '.join(passed)})"


def _special(symbol: str, known: Signature, numbers: Sequence[int | None]) -> str:
    assert known.result is not None
    types = [type.llvm for _, type in known.parameters]
    taken = [f"{type} %a{at}" for at, (type, number) in enumerate(zip(types, numbers, strict=True)) if number is None]
    given = [
        f"{type} {f'%a{at}' if number is None else number}"
        for at, (type, number) in enumerate(zip(types, numbers, strict=True))
    ]
    result = known.result.llvm
    return (
        f"{result} @{symbol}({', '.join(taken)}) nounwind {{\n"
        f'  %result = call {result} @"{known.symbol}"({", ".join(given)})\n  ret {result} %result\n}}\n'
    )


def about_of(kind: int, order: str, element: int) -> int:
    """How the detectors are told what an access is; see `runtime.shadow`."""
    semantics, _, scope = order.partition(".")
    about = kind | (element.bit_length() - 1) << shadow.SIZE_SHIFT
    if semantics == "barrier":
        return about | shadow.OBJECT | (0 if kind == state.STORE else shadow.STRONG)
    if semantics in ("", "weak", "constant"):
        return about | (shadow.STALE if semantics == "constant" else 0)
    about |= shadow.STRONG
    if scope in ("gpu", "sys"):
        about |= shadow.WIDE
    if semantics in ("acquire", "acq_rel"):
        about |= shadow.ACQUIRE
    if semantics in ("release", "acq_rel"):
        about |= shadow.RELEASE
    return about


def _names_parameter(instruction: ir.Instruction) -> bool:
    return any(word.startswith("param") for word in instruction.opcode.modifiers)


def _callee(function: Function | None) -> str:
    """An entry of the table of functions; one that this kernel cannot reach has no code."""
    found = (f"@{function.name}", function.frame.size, function.locals.size) if function else ("null", 0, 0)
    return f"{{ ptr, i32, i32 }} {{ ptr {found[0]}, i32 {found[1]}, i32 {found[2]} }}"


def _is_loud(instruction: ir.Instruction) -> bool:
    words = instruction.opcode.modifiers
    if instruction.opcode.mnemonic in ("ld", "st", "atom", "red"):
        plain = instruction.opcode.mnemonic in ("ld", "st")
        ordered = any(word in words for word in ("volatile", "relaxed", "acquire", "release", "mmio"))
        return (ordered or not plain) and not any(word.startswith("shared") for word in words)
    return instruction.opcode.mnemonic == "call" and any(
        isinstance(operand, ir.FunctionReference) and operand.name in SERVICES for operand in instruction.operands
    )


_INTRINSICS = (
    "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
    "declare i64 @llvm.fshr.i64(i64, i64, i64)",
)


def _without_metadata(natives: str) -> str:
    return "" if "!0 = " in natives else METADATA
