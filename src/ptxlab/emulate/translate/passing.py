"""How arguments and results travel: as bytes in the local memory of the function that is called.

A vector register is there element after element. To ptxas it fits a scalar, or another vector, of as many bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.translate.operands import immediate_bits, scalar
from ptxlab.emulate.translate.values import LlvmValue, bits_of, constant_text, resize
from ptxlab.isa.types import Type, type_named

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

Signature = tuple[int, tuple[tuple[int, int], ...]]


def signature(returns: Sequence[ir.Variable], parameters: Sequence[ir.Variable]) -> Signature:
    """What caller and callee must agree on: how many results there are, and where and how wide each value is."""
    variables = (*returns, *parameters)
    area = layout.block_of(variables)
    return len(returns), tuple(
        (area.offsets[id(variable)], (variable.elements or 0) * variable.type.width) for variable in variables
    )


def pass_argument(function: Function, formal: ir.Variable, argument: ir.Operand, pointer: str) -> None:
    """Copy an argument to `pointer`."""
    if isinstance(argument, ir.VariableReference):
        _copy(function, pointer, local_pointer(function, argument), formal)
    elif isinstance(argument, ir.Register):
        store_register(function, argument, pointer)
    else:
        assert isinstance(argument, ir.Immediate)
        type = _whole(formal)
        function.builder.emit(
            f"store {bits_of(type)} {constant_text(_constant(argument, type), type)}, ptr {pointer}, align 1"
        )


def receive_result(function: Function, formal: ir.Variable, result: ir.Operand, pointer: str) -> None:
    """Copy a result from `pointer` to where the call wants it."""
    if isinstance(result, ir.VariableReference):
        _copy(function, local_pointer(function, result), pointer, formal)
    elif isinstance(result, ir.Register):
        load_register(function, result, pointer)
    else:
        assert isinstance(result, ir.Sink)


def store_register(function: Function, register: ir.Register, pointer: str) -> None:
    """Write a register to memory."""
    for element, at in _elements(function, register, pointer):
        function.builder.emit(f"store {function.registers.get(register, element).typed}, ptr {at}, align 1")


def load_register(function: Function, register: ir.Register, pointer: str) -> None:
    """Read a register from memory."""
    for element, at in _elements(function, register, pointer):
        loaded = function.builder.value(f"load {bits_of(register.type)}, ptr {at}, align 1")
        function.registers.put(register, loaded, element)


def _elements(function: Function, register: ir.Register, pointer: str) -> Iterator[tuple[int, str]]:
    bytes = max(register.type.width // 8, 1)
    for element in range(register.vector):
        offset = element * bytes
        yield element, function.builder.value(f"getelementptr i8, ptr {pointer}, i64 {offset}") if offset else pointer


def argument_value(function: Function, formal: ir.Variable, argument: ir.Operand) -> LlvmValue:
    """An argument of a function that the host provides: what its variable holds, or the operand itself."""
    if isinstance(argument, ir.Register) and argument.vector > 1:
        parts = [function.registers.get(argument, element) for element in range(argument.vector)]
        return function.machine.pack(parts, _whole(formal).name)
    if not isinstance(argument, ir.VariableReference):
        return scalar(function, formal.type, argument)
    pointer = local_pointer(function, argument)
    return LlvmValue(
        function, formal.type, function.builder.value(f"load {bits_of(formal.type)}, ptr {pointer}, align 1")
    )


def receive_value(function: Function, formal: ir.Variable, result: ir.Operand, value: LlvmValue) -> None:
    """Put what the host returned into the variable or register of the call's result."""
    text = resize(value, formal.type.width, signed=False)
    if isinstance(result, ir.VariableReference):
        function.builder.emit(f"store {bits_of(formal.type)} {text}, ptr {local_pointer(function, result)}, align 1")
    elif isinstance(result, ir.Register):
        parts = function.machine.unpack(LlvmValue(function, formal.type, text), result.type.name)
        for element, part in enumerate(parts):
            function.registers.put(result, part.text, element)


def local_pointer(function: Function, reference: ir.VariableReference) -> str:
    """Where a variable of the function is in the host's memory."""
    address = function.unit.address_of(function, reference.variable)
    return function.builder.value(f"getelementptr i8, ptr %local, i64 {address.text}")


def _copy(function: Function, to: str, source: str, formal: ir.Variable) -> None:
    size = layout.size_of_variable(formal)
    function.builder.emit(f"call void @llvm.memmove.p0.p0.i64(ptr {to}, ptr {source}, i64 {size}, i1 false)")


def _whole(formal: ir.Variable) -> Type:
    """The type of a parameter; that of a vector is as many bits."""
    return formal.type if formal.vector == 1 else type_named(f"b{formal.type.width * formal.vector}")


def _constant(constant: ir.Immediate, type: Type) -> int:
    """A constant as the bits of a parameter: ptxas converts to `.f32` only, and else passes the bits that it has."""
    return immediate_bits(constant, type) if type.name == "f32" else constant.value
