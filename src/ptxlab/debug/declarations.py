"""What a program in C++ declares, by the debug information of `nvcc -G`: variables, where they are, and their types.

Debug information of a program that was compiled for this purpose only describes an optimized one, too: parameters,
shared and global variables are the same there. Local variables are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from ptxlab import ir
from ptxlab.debug.local_writes import changes_local, changes_register
from ptxlab.debug.types import CudaType, Types
from ptxlab.device import layout
from ptxlab.ir.dwarf import Attribute, Data, DwarfError, DwarfReader, DwarfSymbol, Entry, entries, section
from ptxlab.trace.program import RecordedProgram

_SPACES = {4: "const", 5: "global", 6: "local", 7: "param", 8: "shared", 12: "generic"}  # of DW_AT_address_class
_ADDRESS, _DEREFERENCE, _PLUS, _REGISTER, _VALUE = 0x03, 0x06, 0x23, 0x90, 0x9F


@dataclass(frozen=True)
class VariableLocation:
    """Where a variable is: in a register, in memory after a symbol, or nowhere, as a constant."""

    register: str = ""
    symbol: str = ""
    offset: int = 0
    is_pointer: bool = False
    """Whether the register holds the address of the variable."""
    constant: int | None = None


@dataclass(frozen=True, eq=False)
class Variable:
    """A variable or a parameter."""

    name: str
    type: CudaType
    space: str
    entry: Entry
    is_parameter: bool = False
    is_hidden: bool = False
    """Whether it is the compiler's."""

    @property
    def is_static(self) -> bool:
        """Whether it is where it is all the time."""
        return self.space in ("shared", "global", "const", "param")

    @property
    def symbol(self) -> str:
        """What PTX calls it, if it is a variable there."""
        return self.entry.text("linkage_name") or self.name


class Declarations:
    """What debug information declares, for a program: its own, or that of the same one compiled without optimization.

    `compile` makes the other module when a name is first asked for; without it, or without debug information in what it
    makes, nothing is declared.
    """

    def __init__(self, program: RecordedProgram, compile: Callable[[], ir.Module | None] = lambda: None) -> None:
        self._program = program
        self._compile = compile

    @cached_property
    def _module(self) -> ir.Module:
        own = self._program.module
        has_own = any(isinstance(item, ir.Section) and item.name == ".debug_info" for item in own.items)
        return own if has_own else self._compile() or own

    @cached_property
    def _units(self) -> list[Entry]:
        try:
            return entries(self._module)
        except DwarfError:  # of another compiler, or damaged: then no names are known
            return []

    @cached_property
    def _entries(self) -> dict[int, Entry]:
        return {entry.offset: entry for unit in self._units for entry in unit.walk()}

    def entry(self, offset: int) -> Entry:
        """An entry of the debug information."""
        return self._entries[offset]

    @cached_property
    def types(self) -> Types:
        """The types that are declared."""
        return Types(self._entries)

    def type(self, name: str) -> CudaType | None:
        """A type by its name."""
        return self.types.named(name)

    @property
    def is_known(self) -> bool:
        """Whether there is any debug information about functions."""
        return bool(self._functions)

    @property
    def are_locals_known(self) -> bool:
        """Whether it is of the very code that was recorded."""
        return self._module is self._program.module

    @cached_property
    def _locations(self) -> Data:
        return section(self._module, ".debug_loc")

    @cached_property
    def _labels(self) -> dict[str, int]:
        return _labels(self._program) if self.are_locals_known else {}

    @cached_property
    def _functions(self) -> dict[str, Entry]:
        """The functions with code, by the name that they have in PTX."""
        found = {}
        for entry in self._entries.values():
            if entry.tag == "function" and "low_pc" in entry.attributes:
                found[self._text(entry, "linkage_name") or self._text(entry, "name")] = entry
        return found

    @cached_property
    def globals(self) -> dict[str, Variable]:
        """Variables outside of functions, by name, also with their namespaces; of functions those that are static."""
        found: dict[str, Variable] = {}

        def visit(entry: Entry, prefix: str) -> None:
            for child in entry.children:
                if child.tag == "variable" and (variable := self._variable(child)).is_static:
                    found.setdefault(variable.name, variable)
                    found.setdefault(prefix + variable.name, variable)
                elif child.tag == "namespace":
                    visit(child, f"{prefix}{child.text('name')}::")

        for unit in self._units:
            visit(unit, "")
        return found

    @cached_property
    def statics(self) -> dict[str, Variable]:
        """Variables that PTX has, too, by the names that they have there; those of functions among them."""
        entries = [
            entry for entry in self._entries.values() if entry.tag == "variable" and "location" in entry.attributes
        ]
        found = [variable for variable in map(self._variable, entries) if variable.is_static]
        return {variable.symbol: variable for variable in found}

    def is_name(self, name: str) -> bool:
        """Whether a variable of some function has a name."""
        return any(entry.tag in ("variable", "parameter") and entry.text("name") == name
                   for entry in self._entries.values())  # fmt: skip

    @cached_property
    def enumerators(self) -> dict[str, tuple[CudaType, int]]:
        """The constants of enumerations, by name, also with the name of their type."""
        found: dict[str, tuple[CudaType, int]] = {}
        for entry in self._entries.values():
            for one in entry.children if entry.tag == "enumeration" else ():
                value = self.types.at(entry.offset), one.number("const_value") or 0
                found[one.text("name")] = found[f"{entry.text('name')}::{one.text('name')}"] = value
        return found

    def variables(self, function: str, instruction: int, level: int, depth: int) -> list[Variable]:
        """What a frame sees of its own, the innermost scope last: of a function, or of code inlined there.

        `level` counts from the innermost of `depth` frames of one function.
        """
        entry = self._functions.get(function)
        if entry is None:
            return []
        if not self.are_locals_known:
            return list(self._inside(entry)) if level == depth - 1 else []
        frames = self._frames(entry, instruction)
        number = depth - 1 - level  # from the function inwards
        found = frames[number] if number < len(frames) else []
        return list({one.name: one for one in found}.values())

    def _inside(self, entry: Entry) -> Iterator[Variable]:
        """All variables of a function, whatever scope they are in."""
        for child in entry.children:
            if child.tag in ("parameter", "variable"):
                yield self._variable(child)
            elif child.tag == "block":
                yield from self._inside(child)

    def _frames(self, entry: Entry, instruction: int) -> list[list[Variable]]:
        """The variables of the scopes around an instruction, outermost first, of each function that is inlined."""
        found: list[list[Variable]] = [[]]
        scope: Entry | None = entry
        while scope is not None:
            found[-1] += [self._variable(one) for one in scope.children if one.tag in ("parameter", "variable")]
            inner = [one for one in scope.children if one.tag in ("block", "inlined") and self._has(one, instruction)]
            scope = inner[0] if inner else None
            if scope is not None and scope.tag == "inlined":
                found.append([])
        return found

    def innermost(self, function: str, instruction: int) -> int | None:
        """Which scope an instruction is in: of the function, a block of it, or a function that is inlined there."""
        scope = self._functions.get(function)
        found = None
        while scope is not None:
            found = scope.offset
            inner = [one for one in scope.children if one.tag in ("block", "inlined") and self._has(one, instruction)]
            scope = inner[0] if inner else None
        return found

    def _has(self, entry: Entry, instruction: int) -> bool:
        low, high = (self._number(entry.attributes.get(name)) for name in ("low_pc", "high_pc"))
        return low is None or high is None or low <= instruction < high

    def _number(self, address: Attribute | None) -> int | None:
        """The instruction after a label."""
        return self._labels.get(address.name) if isinstance(address, DwarfSymbol) else None

    def _text(self, entry: Entry, name: str) -> str:
        """What an entry says, or the one that it completes."""
        found = entry.text(name)
        other = self._entries.get(entry.number("origin") or entry.number("specification") or -1)
        return found or ("" if other is None or other is entry else self._text(other, name))

    def _variable(self, entry: Entry) -> Variable:
        declared = entry
        while "type" not in declared.attributes:
            other = self._entries.get(declared.number("origin") or declared.number("specification") or -1)
            if other is None or other.offset >= declared.offset:
                break
            declared = other
        space = _SPACES.get(entry.number("address_class") or 0, "")
        name = self._text(entry, "name")
        is_hidden = not name or name.startswith("__")
        return Variable(name, self.types.of(declared), space, entry, entry.tag == "parameter", is_hidden)

    def location(self, variable: Variable, instruction: int) -> VariableLocation | None:
        """Where a variable is before an instruction; None if it has no place there."""
        constant = variable.entry.number("const_value")
        if constant is not None:
            return VariableLocation(constant=constant)
        if not self.are_locals_known and not variable.is_static:
            return self._as_launched(variable) if variable.is_parameter else None
        given = variable.entry.attributes.get("location")
        if isinstance(given, Data):
            return _place(given)
        return self._in_list(given, instruction) if isinstance(given, int) else None

    def _as_launched(self, variable: Variable) -> VariableLocation | None:
        """Where a parameter of the kernel is, of which the other program has a copy in local memory."""
        kernel = self._program.kernel
        function = self._functions.get(kernel.name)
        parameters = [one for one in function.children if one.tag == "parameter"] if function is not None else []
        if variable.entry not in parameters or len(parameters) != len(kernel.parameters):
            return None
        number = parameters.index(variable.entry)
        if self._is_changed(variable, layout.size_of_variable(kernel.parameters[number])):
            return None
        return VariableLocation(symbol=kernel.parameters[number].name)

    def _is_changed(self, variable: Variable, size: int) -> bool:
        """Whether the kernel may change a parameter: code that is not optimized then has it elsewhere, too."""
        given = variable.entry.attributes.get("location")
        place = _place(given) if isinstance(given, Data) else None
        if place is None:
            return True  # in registers, another one after each assignment
        own, source = self._module[self._program.kernel.name], self._module.source
        if source is None:
            return True
        text = source.text[own.start or 0 : own.end or 0]
        return changes_local(text, place.offset, size) if place.symbol else changes_register(text, place.register)

    def _in_list(self, start: int, instruction: int) -> VariableLocation | None:
        reader = DwarfReader(self._locations, start)
        while not reader.is_done:
            ends = reader.address(), reader.address()
            if ends == (0, 0):
                break
            place = reader.block(reader.number(2))
            low, high = (self._number(end) for end in ends)
            if low is not None and high is not None and low <= instruction < high:
                return _place(place)
        return None


def _place(data: Data) -> VariableLocation | None:
    """What a location expression says; None of one that compilers do not write for PTX."""
    reader = DwarfReader(data)
    register, symbol, offset, is_pointer = "", "", 0, False
    while not reader.is_done:
        operation = reader.number(1)
        if operation == _ADDRESS:
            address = reader.address()
            if not isinstance(address, DwarfSymbol):
                return None
            symbol, offset = address.name, address.offset
        elif operation == _REGISTER:
            number = reader.leb()  # the characters of its name
            register = number.to_bytes(-(-number.bit_length() // 8), "big").decode("ascii", "replace")
        elif operation == _PLUS:
            offset += reader.leb()
        elif operation == _DEREFERENCE and register:
            is_pointer = True
        elif operation != _VALUE:
            return None
    return VariableLocation(register, symbol, offset, is_pointer) if register or symbol else None


def _labels(program: RecordedProgram) -> dict[str, int]:
    """For each label of a program the number of the instruction after it."""
    found: dict[str, int] = {}
    number = 0
    for function in program.functions:
        for statement in function.statements():
            if isinstance(statement, ir.Label):
                found[statement.name] = number
            elif isinstance(statement, ir.Instruction):
                number += 1
    return found
