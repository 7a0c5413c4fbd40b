"""Where variables are: parameters, local and shared memory, globals and constants."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from ptxlab import ir
from ptxlab.device.textures import HANDLE_BYTES, HANDLES
from ptxlab.isa import Jump
from ptxlab.isa.special_registers import SpecialKind
from ptxlab.values import dataclass

# Where variables of the module start in the generic address space; arguments of launches are above.
GLOBALS = 0x10_0000_0000
CONSTANTS = 0x08_0000_0000
SPANS = {"const": (CONSTANTS, GLOBALS), "global": (GLOBALS, 1 << 56)}
RESERVED = 1024  # bytes at the start of shared memory that the system keeps, of kernels that ask for them
GAP = 4096  # between variables, so that a step too far is found out

VariableKey = tuple[str, str | int]
"""What a variable is known by: no function and its name, or its function and its position there, since names repeat."""


@dataclass
class MemoryLayout:
    """Offsets and sizes of variables in a stretch of memory, by the identity of the variable."""

    offsets: dict[int, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    size: int = 0
    alignment: int = 1

    def add(self, variable: ir.Variable) -> int:
        """Put a variable after the others."""
        alignment = alignment_of(variable)
        offset = -(-self.size // alignment) * alignment
        size = size_of_variable(variable)
        self.offsets[id(variable)], self.sizes[id(variable)] = offset, size
        self.size = offset + size
        self.alignment = max(self.alignment, alignment)
        return offset


def size_of_variable(variable: ir.Variable) -> int:
    """Bytes of a variable; an array of open extent has none."""
    elements = variable.elements
    return 0 if elements is None else max(elements * variable.type.width // 8, elements and 1)


def is_opaque(variable: ir.Variable) -> bool:
    """Whether a variable of the module refers to a texture, a surface or a sampler."""
    space = variable.state_space.partition("::")[0]
    return space == "tex" or (space == "global" and variable.type.kind == "o")


def alignment_of(variable: ir.Variable) -> int:
    natural = max(variable.type.width * (variable.vector if variable.vector != 3 else 4) // 8, 1)
    return max(variable.align or 1, natural) if not variable.dimensions else variable.align or natural


def block_of(variables: Iterable[ir.Variable]) -> MemoryLayout:
    """Variables one after the other, as parameters of a kernel are passed."""
    found = MemoryLayout()
    for variable in variables:
        found.add(variable)
    return found


def locals_of(module: ir.Module, function: ir.Function) -> MemoryLayout:
    """The local memory of a function: results and parameters first, so that any caller knows where they are.

    A kernel's starts with the local variables of the module, which old PTX may have: there, all functions find them.
    """
    found = MemoryLayout()
    if function.kind == "entry":
        for variable in module.variables:
            if variable.state_space == "local":
                found.add(variable)
    else:
        for variable in (*function.returns, *function.parameters):
            found.add(variable)
    for variable in _declared(function):
        if variable.state_space in ("local", "param"):
            found.add(variable)
    found.size = -(-found.size // 16) * 16
    return found


def _declared(function: ir.Function) -> Iterator[ir.Variable]:
    for statement in function.statements():
        if isinstance(statement, ir.Declaration):
            yield from statement.variables


def function_numbers(module: ir.Module) -> dict[str, int]:
    """The functions of a module that have code, numbered; the number is a function's address, whichever kernel runs."""
    names = dict.fromkeys(function.name for function in module.functions if function.body is not None)
    return {name: number for number, name in enumerate(names)}


def functions_of(module: ir.Module) -> dict[str, ir.Function]:
    """The functions of a module by name, as `module[name]` finds them one at a time."""
    found: dict[str, ir.Function] = {}
    for function in module.functions:
        if function.name not in found or (found[function.name].body is None and function.body is not None):
            found[function.name] = function
            function.module = module
    return found


def reachable(module: ir.Module, entry: ir.Function) -> list[ir.Function]:
    """The kernel and every function that it can call, by name or by address; not kernels that it launches."""
    found: dict[str, ir.Function] = {entry.name: entry}
    pending = [entry]
    variables = {variable.name: variable for variable in module.variables}
    functions = functions_of(module)
    seen: set[str] = set()
    while pending:
        function = pending.pop()
        names = list(_names(module, function, variables, seen))
        for name in names:
            if name not in found and name in functions and functions[name].kind != "entry":
                found[name] = functions[name]
                if found[name].body is not None:
                    pending.append(found[name])
    return [function for function in found.values() if function.body is not None]


def _with_address(module: ir.Module, variables: dict[str, ir.Variable]) -> Iterator[str]:
    """The functions whose address any kernel may have stored, in a table or an object, before another one calls it."""
    seen: set[str] = set()
    for variable in variables:
        yield from _initial_names(variable, variables, seen)
    for function in module.functions:
        for instruction in function.instructions():
            if instruction.opcode.jump is not Jump.CALL:
                yield from (one.name for one in instruction.operands if isinstance(one, ir.FunctionReference))


def _names(
    module: ir.Module, function: ir.Function, variables: dict[str, ir.Variable], seen: set[str]
) -> Iterator[str]:
    has_prototypes = False
    for statement in function.statements():
        if statement.__class__ is ir.Instruction:
            for operand in statement.operands:
                base = operand.base if operand.__class__ is ir.Address or operand.__class__ is ir.Sum else operand
                if base.__class__ is ir.FunctionReference:
                    yield base.name
                elif base.__class__ is ir.VariableReference:
                    yield from _initial_names(base.name, variables, seen)
        elif isinstance(statement, ir.CallTargets):
            yield from (target.name for target in statement.targets)
        elif isinstance(statement, ir.CallPrototype):
            has_prototypes = True
    if has_prototypes:
        yield from _with_address(module, variables)


def _initial_names(name: str, variables: dict[str, ir.Variable], seen: set[str]) -> Iterator[str]:
    """The functions whose address an initial value holds, or that of a variable it points to."""
    if name in seen or name not in variables:
        return
    seen.add(name)
    pending = [variables[name].initializer]
    while pending:
        initial = pending.pop()
        if isinstance(initial, ir.InitializerList):
            pending.extend(initial.elements)
        elif isinstance(initial, ir.SymbolAddress):
            yield initial.name
            yield from _initial_names(initial.name, variables, seen)


class Variables:
    """The addresses of a kernel's shared, global and constant variables."""

    def __init__(self, module: ir.Module, functions: Sequence[ir.Function]) -> None:
        self.module = module
        self.functions = functions
        self.parameters = block_of(functions[0].parameters if functions else ())
        self.by_name: dict[str, ir.Variable] = {}
        for variable in module.variables:
            known = self.by_name.get(variable.name)
            if known is None or (known.linkage == "extern" and variable.linkage != "extern"):
                self.by_name[variable.name] = variable
        self.global_addresses: dict[int, int] = {}
        self.handles: dict[int, int] = {}
        """Handles of textures, surfaces and samplers, by the identity of the variable that refers to them."""
        self.keys: dict[int, VariableKey] = {}
        self.allocated: list[tuple[int, ir.Variable]] = []
        self._place_globals()
        self.shared: dict[int, int] = {}
        self.reserved_size = RESERVED if _asks_for_reserved(functions) else 0
        self.dynamic_offset = 0
        self._place_shared()

    def address(self, variable: ir.Variable) -> int:
        """The address of a variable in its state space."""
        space = variable.state_space.partition("::")[0]
        if space == "param":
            return self.parameters.offsets[id(variable)]
        if is_opaque(variable):
            return self.handles[id(self.by_name.get(variable.name, variable))]
        if space == "local":
            return locals_of(self.module, self.functions[0]).offsets[id(variable)]
        if id(variable) not in self.shared and id(variable) not in self.global_addresses:
            variable = self.by_name.get(variable.name, variable)  # declared more than once
        if space == "shared":
            return self.shared[id(variable)]
        return self.global_addresses[id(variable)]

    def _place_globals(self) -> None:
        at, handle = {"global": GLOBALS, "const": CONSTANTS}, HANDLES
        for variable in self.by_name.values():
            self.keys[id(variable)] = "", variable.name
        for function in self.functions:
            for position, variable in enumerate(_declared(function)):
                self.keys[id(variable)] = function.name, position
        local = [variable for function in self.functions for variable in _declared(function)]
        for variable in (*self.by_name.values(), *local):
            space = variable.state_space.partition("::")[0]
            if is_opaque(variable):
                self.handles[id(variable)] = handle
                handle += HANDLE_BYTES * (variable.elements or 1)
            if space not in at or variable.type.kind == "o":
                continue
            size = size_of_variable(variable)
            alignment = max(alignment_of(variable), 256)
            address = -(-at[space] // alignment) * alignment
            at[space] = address + size + GAP
            self.global_addresses[id(variable)] = address
            self.allocated.append((address, variable))

    def _place_shared(self) -> None:
        local = [v for function in self.functions for v in _declared(function) if v.state_space.startswith("shared")]
        outer = [v for v in self.by_name.values() if v.state_space.startswith("shared")]
        used = _shared_names(self.functions) if outer else set()
        outer = [v for v in outer if v.name in used]
        layout = MemoryLayout(size=self.reserved_size)
        dynamic = []
        for variable in (*outer, *local):
            if variable.linkage == "extern" and variable.elements is None:
                dynamic.append(variable)
            else:
                self.shared[id(variable)] = layout.add(variable)
        alignment = max([16, *(alignment_of(variable) for variable in dynamic)])
        self.dynamic_offset = -(-layout.size // alignment) * alignment if dynamic else layout.size
        for variable in dynamic:
            self.shared[id(variable)] = self.dynamic_offset

    def initial_bytes(self, variable: ir.Variable, function_address: dict[str, int]) -> bytearray:
        """What a variable holds before the first launch."""
        size = max(variable.type.width // 8, 1)
        data = bytearray(size_of_variable(variable))
        if variable.initializer is not None:
            self._fill(data, 0, variable.initializer, list(variable.dimensions), variable, size, function_address)
        return data

    def _fill(
        self,
        data: bytearray,
        at: int,
        initial: ir.Initializer,
        extents: list[int | None],
        variable: ir.Variable,
        size: int,
        functions: dict[str, int],
    ) -> None:
        if isinstance(initial, ir.InitializerList):
            stride = size * (variable.vector if not extents[1:] and extents else 1)
            for extent in extents[1:]:
                stride *= extent or 1
            if len(extents) > 1:
                stride *= variable.vector
            for index, element in enumerate(initial.elements):
                self._fill(data, at + index * stride, element, extents[1:], variable, size, functions)
            return
        value = self._initial_value(initial, variable, functions)
        data[at : at + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def _initial_value(self, initial: ir.Initializer, variable: ir.Variable, functions: dict[str, int]) -> int:
        match initial:
            case ir.Immediate() if initial.is_float:
                if variable.type.name == "f32":
                    return int.from_bytes(bytes(ctypes.c_float(initial.number)), "little")
                if variable.type.name == "f64":
                    return int.from_bytes(struct.pack("<d", initial.number), "little")
                return initial.value
            case ir.Immediate():
                return initial.value
            case ir.MaskedConstant():
                return _masked(initial.value.value, initial.mask)
            case ir.SymbolAddress():
                address = functions.get(initial.name)
                if address is None:
                    address = self.address(self.by_name[initial.name])
                address += initial.offset
                return address if initial.mask is None else _masked(address, initial.mask)
        raise AssertionError(f"{initial!r} as an initial value")


def has_addresses(variable: ir.Variable) -> bool:
    """Whether a variable starts with an address, which is another one on every device."""
    pending = [variable.initializer]
    while pending:
        initial = pending.pop()
        if isinstance(initial, ir.SymbolAddress):
            return True
        if isinstance(initial, ir.InitializerList):
            pending.extend(initial.elements)
    return False


def shared_variables(variables: Variables) -> list[tuple[ir.Variable, int]]:
    """The shared variables of a kernel with their offsets."""
    declared = [variable for function in variables.functions for variable in _declared(function)]
    every = (*variables.by_name.values(), *declared)
    return [(variable, variables.shared[id(variable)]) for variable in every if id(variable) in variables.shared]


def shared_variable_at(variables: Variables, offset: int) -> tuple[str, int]:
    """The shared variable at an offset, its name marked as code, and where it starts; empty if there is none."""
    for variable, start in shared_variables(variables):
        size = size_of_variable(variable)
        if start <= offset and (offset < start + size or (size == 0 and variable.linkage == "extern")):
            return f"`{variable.title}`", start
    return "", 0


def _masked(value: int, mask: int) -> int:
    """One byte of a value, the one that `mask` names."""
    shift = (mask & -mask).bit_length() - 1
    return (value & mask) >> shift


def _asks_for_reserved(functions: Sequence[ir.Function]) -> bool:
    """Whether a kernel asks for the shared memory that the system keeps, as groups of several warps do in CUDA."""
    return any(
        isinstance(operand, ir.SpecialRegister) and operand.kind is SpecialKind.RESERVED
        for function in functions
        for instruction in function.instructions()
        for operand in instruction.operands
    )


def _shared_names(functions: Sequence[ir.Function]) -> set[str]:
    found: set[str] = set()
    for function in functions:
        for instruction in function.instructions():
            pending: list[object] = list(instruction.operands)
            while pending:
                operand = pending.pop()
                match operand:
                    case ir.VariableReference():
                        found.add(operand.name)
                    case ir.Address() | ir.Sum() | ir.Element():
                        pending.append(operand.base)
                        pending.extend(getattr(operand, "arguments", ()))
                    case ir.Vector() | ir.Arguments():
                        pending.extend(operand.elements)
    return found
