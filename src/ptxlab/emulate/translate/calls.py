"""What the code of a kernel calls: the runtime, native functions that become part of it, and what lanes do together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ptxlab.emulate.translate.declarations import is_in_runtime, runtime_function
from ptxlab.emulate.translate.records import OperationRecord, constant_record, fill
from ptxlab.emulate.translate.values import LlvmValue, resize
from ptxlab.isa.types import type_named
from ptxlab.isa.undefined import has_undefined
from ptxlab.native.functions import Signature, signature

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function
    from ptxlab.isa.machine import Statics
    from ptxlab.isa.undefined import Following


class Calls:
    """The functions that one kernel calls, as LLVM IR, and its warp collectives."""

    def __init__(self) -> None:
        self.natives: dict[str, Callable[..., Any]] = {}
        self.runtime_functions: dict[str, str] = {}
        self.sites: list[str] = []
        self.wrappers: list[str] = []
        self.constants: list[str] = []
        self.constant_types: dict[str, str] = {}
        self.exchange_words = 1
        self._constant_names: dict[object, str] = {}
        self._specials: dict[object, str] = {}
        self._written: set[str] = set()
        self._keys: dict[object, int] = {}
        self._collectives: dict[object, str] = {}

    def site(
        self,
        function: Function,
        action: Callable[..., object],
        statics: Statics,
        words: tuple[int, int],
        aligned: bool,
        reads_shared: bool = False,
        orders: bool = False,
        following: Following | None = None,
    ) -> int:
        """A warp collective: what its lanes do together, as a function without the constants.

        `words` are those of inputs, and all. If undefined values are followed through it, that is done on as many words
        after those of the values, and a word that says whether there are any.
        """
        name = self.collective(action, statics, words, reads_shared, following)
        number = len(self.sites)
        # Aligned lanes converge at the same instruction.
        key = (signature(action).symbol, tuple(statics), number if aligned else None)
        self.sites.append(
            f"{{ ptr, i32, i32, i32, i32 }} {{ ptr {name}, i32 {self._keys.setdefault(key, len(self._keys))}, "
            f"i32 {function.instruction_number}, i32 {int(aligned)}, i32 {int(orders)} }}"
        )
        return number

    def collective(
        self,
        action: Callable[..., object],
        statics: Statics,
        words: tuple[int, int],
        reads_shared: bool,
        following: Following | None,
    ) -> str:
        """The name of a function that does what lanes do together; see `site`."""
        inputs, total = words
        lines = [self._collective_call(action, statics, "%exchange", reads_shared)]
        if following is not None:
            given = f"i32 {total}, i32 {inputs}, i32 {min(following.inputs, inputs)}"
            lines += [
                f"%found = call i32 @{self._native(has_undefined)}(ptr %exchange, i32 %members, {given})",
                "%is_found = icmp ne i32 %found, 0",
                "br i1 %is_found, label %follow, label %end",
                "follow:",
                f"%shadows = getelementptr i8, ptr %exchange, i64 {128 * (total + 1)}",
                self._collective_call(following.function, following.statics, "%shadows", False),
                "br label %end",
                "end:",
            ]
            total = 2 * total + 1
        self.exchange_words = max(self.exchange_words, total)
        wrapper = (signature(action).symbol, tuple(statics), following is not None)
        if wrapper not in self._collectives:
            name = self._collectives[wrapper] = f"@collective.{len(self._collectives)}"
            body = "".join(f"  {line}\n" for line in [*lines, "ret void"])
            self.wrappers.append(f"void {name}(ptr %exchange, i32 %members, ptr %shared) nounwind {{\n{body}}}\n")
        return self._collectives[wrapper]

    def _collective_call(self, action: Callable[..., object], statics: Statics, buffer: str, reads_shared: bool) -> str:
        """A call of what lanes do together."""
        known = signature(action)
        arguments = [f"ptr {buffer}", "i32 %members", *["ptr %shared"] * reads_shared]
        for static, (_, type) in zip(statics, known.parameters[len(arguments) :], strict=True):
            arguments.append(f"{type.llvm} {static if isinstance(static, int) else self._constant(static)}")
        return f"call void @{self._native(action)}({', '.join(arguments)})"

    def _native(self, native: Callable[..., object]) -> str:
        """The symbol of a native function, whose code becomes part of the unit, unless the runtime has it."""
        symbol = signature(native).symbol
        if is_in_runtime(symbol):
            self.runtime_functions.setdefault(symbol, runtime_function(symbol).text)
        else:
            self.natives.setdefault(symbol, native)
        return f'"{symbol}"'

    def _constant(self, static: tuple[int, ...] | object) -> str:
        """The name of a table of words, or of a record of constants, beside the code."""
        if static not in self._constant_names:
            if isinstance(static, tuple):
                type = f"[{len(static)} x i32]"
                value = f"[ {', '.join(f'i32 {word}' for word in static)} ]"
            else:
                type, value = constant_record(static, self._constant)
            name = self._constant_names[static] = f"@constant.{len(self._constant_names)}"
            self.constants.append(f"{name} = internal constant {type} {value}, align 16")
            self.constant_types[name] = type
        return self._constant_names[static]

    def runtime(self, name: str) -> str:
        """The symbol of a function of the runtime, which is declared."""
        known = runtime_function(name)
        self.runtime_functions.setdefault(name, known.text)
        return f'"{known.symbol}"'

    def runtime_call(
        self,
        function: Function,
        name: str,
        arguments: Sequence[LlvmValue | int | str | OperationRecord],
        result: str | None,
    ) -> LlvmValue | None:
        """Call a function of the runtime: the thread, then these arguments; a text is the name of a pointer.

        A record is filled on the stack, and its address passed.
        """
        known = runtime_function(name)
        texts = ["ptr %thread"]
        for argument, wanted in zip(arguments, known.parameters[1:], strict=True):
            if isinstance(argument, OperationRecord):
                texts.append(f"ptr {fill(function, argument)}")
            elif isinstance(argument, int | str):
                texts.append(f"{wanted} {argument}")
            else:
                texts.append(f"{wanted} {resize(argument, int(wanted[1:]), argument.is_signed)}")
        call = f"@{self.runtime(name)}({', '.join(texts)})"
        if known.result is None:
            function.builder.emit(f"call void {call}")
            return None
        text = function.builder.value(f"call {known.result} {call}")
        assert result is not None
        found = LlvmValue(function, type_named(f"u{known.result[1:]}"), text)
        return LlvmValue(function, type_named(result), resize(found, type_named(result).width, signed=False))

    def native_call(self, native: Callable[..., object], arguments: Sequence[str | int]) -> str:
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
