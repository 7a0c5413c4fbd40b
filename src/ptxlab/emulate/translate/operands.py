"""The operands of an instruction as values, and results back into registers."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.translate import ranked_addresses
from ptxlab.emulate.translate.special import special_register
from ptxlab.emulate.translate.values import LlvmAddress, LlvmValue, constant_text, resize
from ptxlab.isa.operand import Expected
from ptxlab.isa.types import Type, type_named
from ptxlab.numbers import F64, FORMATS, decode, encode

if TYPE_CHECKING:
    from ptxlab.emulate.translate.function import Function

Result = tuple[Expected | None, ir.Operand | None]
_U64 = type_named("u64")
_ZERO = ir.Immediate(0)


def read(
    function: Function,
    expected: Expected,
    operand: ir.Operand,
    given: dict[str, object],
    results: list[Result],
    *,
    is_read: bool = True,
) -> None:
    """Put what an instruction reads under its name into `given`, and what it writes at the end of `results`.

    What is updated and not read is zero: nothing may have written its register, or have kept it over a wait.
    """
    first, second = (operand.first, operand.second) if isinstance(operand, ir.Pair) else (operand, None)
    if expected.role != "read":
        results.append((expected, first))
        if expected.second is not None:
            results.append((expected.second, second))
    elif expected.second is not None and second is not None:
        given[expected.second.name] = value_of(function, expected.second, second)
    if expected.role != "write":
        given[expected.name] = value_of(function, expected, first if is_read else _ZERO)
    if isinstance(operand, ir.Address):
        for inner, part in zip(expected.inner, operand.arguments, strict=True):
            given[inner.name] = value_of(function, inner, part)


def value_of(function: Function, expected: Expected, operand: ir.Operand) -> Any:
    """The value of an operand: a tuple for a vector, an `AddressValue` for an address."""
    if expected.kind == "address":
        return address_of(function, _space_of(function, expected), operand)
    if expected.kind in ("label", "function", "targets", "prototype", "arguments"):
        return operand
    if isinstance(operand, ir.Sink):
        return None
    if expected.kind == "immediate" and isinstance(operand, ir.Immediate):
        return operand.value
    assert expected.type is not None or isinstance(operand, ir.Immediate)
    type = expected.type or type_named("u32")
    if expected.count:
        return tuple(scalar(function, type, part) for part in parts_of(operand, expected.count))
    if isinstance(operand, ir.Vector) and (len(operand.elements) == 1 or expected.padded or expected.vectors):
        return scalar(function, type, operand.elements[0])
    if expected.vectors:
        operand = parts_of(operand, 1)[0]
    return scalar(function, type, operand)


def parts_of(operand: ir.Operand, count: int) -> list[ir.Operand]:
    """The elements of an operand that is a vector: written out, or a vector register, or one for all."""
    match operand:
        case ir.Vector():
            return list(operand.elements)
        case ir.Register() if operand.vector > 1:
            return [ir.VectorElement(operand, "xyzw"[index]) for index in range(operand.vector)]
        case ir.SpecialRegister() if operand.component is None:
            return [ir.SpecialRegister(operand.name, "xyzw"[index]) for index in range(count)]
    return [operand] * count


def scalar(function: Function, type: Type, operand: ir.Operand) -> LlvmValue:
    """One value of `type`."""
    match operand:
        case ir.Register():
            return _followed(function, _fit(function, function.registers.get(operand), type), operand)
        case ir.VectorElement():
            assert isinstance(operand.register, ir.Register)
            assert operand.position is not None
            value = _fit(function, function.registers.get(operand.register, operand.position), type)
            return _followed(function, value, operand.register, operand.position)
        case ir.Selection():
            assert isinstance(operand.register, ir.Register)
            return _fit(function, function.registers.get(operand.register), type)
        case ir.Immediate():
            return LlvmValue(function, type, constant_text(immediate_bits(operand, type), type))
        case ir.SpecialRegister():
            return _fit(function, special_register(function, operand), type)
        case ir.Negated():
            return ~scalar(function, type, operand.operand)
        case ir.Minus():
            return scalar(function, type, operand.operand)  # the semantics asks for the sign itself
        case ir.Sink():
            return LlvmValue(function, type, constant_text(0, type))
        case ir.Sum():
            return scalar(function, type, operand.base) + operand.offset
        case ir.VariableReference():
            address = function.unit.address_of(function, operand.variable) + operand.offset
            return _fit(function, _as_value(function, operand.variable, address), type)
        case ir.FunctionReference():
            number = function.unit.function_address(operand.name)
            return _fit(function, LlvmValue(function, _U64, str(number)), type)
        case ir.Element():
            address = _element_address(function, operand)
            if isinstance(operand.base, ir.VariableReference):
                address = _as_value(function, operand.base.variable, address)
            return _fit(function, address, type)
    raise AssertionError(f"{operand!r} as a value")


def _followed(function: Function, value: LlvmValue, register: ir.Register, element: int = 0) -> LlvmValue:
    """The value of a register, with its shadow where lanes hand values to each other."""
    match = function.matches[function.position]
    if match is not None and match.effects.follows:
        value.undefined = function.undefined.of(register, element)
    return value


def _as_value(function: Function, variable: ir.Variable, address: LlvmValue) -> LlvmValue:
    """The address of a variable as the kernel computes with it."""
    if function.unit.ranked and function.unit.space_of(function, variable) == "shared":
        return ranked_addresses.named(function, address)
    return address


def _fit(function: Function, value: LlvmValue, type: Type) -> LlvmValue:
    """A register read as `type`: cut if it is wider."""
    return LlvmValue(function, type, resize(value, type.width, signed=value.is_signed), value.known_raw)


def _element_address(function: Function, element: ir.Element) -> LlvmValue:
    if isinstance(element.base, ir.Register):
        return function.registers.get(element.base)
    assert isinstance(element.base, ir.VariableReference)
    variable = element.base.variable
    bytes = variable.type.width * variable.vector // 8
    address = function.unit.address_of(function, variable) + (element.base.offset + element.index * bytes)
    if isinstance(element.register, ir.Register):
        index = function.registers.get(element.register)
        address = address + LlvmValue(function, _U64, resize(index, 64, signed=index.is_signed)) * bytes
    return address


def _space_of(function: Function, expected: Expected) -> str | None:
    """The state space of an address; one in shared memory is generic where the opcode does not say `.shared`."""
    if expected.space != "shared":
        return expected.space
    words = [word for word in function.instructions[function.position].opcode.modifiers if word.startswith("shared")]
    if (
        "shared::cluster" in words
    ):  # also where another operand is in `.shared::cta`: an own address is the same in both
        return "shared::cluster"
    return "shared" if words else None


def address_of(function: Function, space: str | None, operand: ir.Operand) -> LlvmAddress:
    """An address in brackets, or one without them."""
    base: ir.Operand = operand
    offset = 0
    if isinstance(operand, ir.Address):
        base, offset = operand.base, operand.offset
    if space is not None and space != "shared::cluster":
        space = space.partition("::")[0]
    if space == "generic":
        space = None
    if isinstance(base, ir.Sum):
        offset += base.offset
        base = base.base
    match base:
        case ir.Register():
            register = function.registers.get(base)
            if register.type.width == 32 and offset:
                register = register + offset
                offset = 0
            value = LlvmValue(function, _U64, resize(register, 64, signed=False)) + offset
            if space == "const" and register.type.width == 32:  # as `mov.u32` has it of a variable
                value = value + layout.CONSTANTS
        case ir.VariableReference():
            value = function.unit.address_of(function, base.variable) + (base.offset + offset)
            space = function.unit.space_of(function, base.variable)
        case ir.Element():
            value = _element_address(function, base) + offset
            if isinstance(base.base, ir.VariableReference):
                space = function.unit.space_of(function, base.base.variable)
        case ir.Immediate():
            value = LlvmValue(function, _U64, constant_text(base.value + offset, _U64))
        case ir.SpecialRegister():
            value = LlvmValue(function, _U64, resize(special_register(function, base), 64, signed=False)) + offset
        case _:
            raise AssertionError(f"{operand!r} as an address")
    if function.unit.ranked and not _is_of_variable(base):
        value = ranked_addresses.resolved(function, space, value)
    if space == "param" and not function.is_entry:
        space = "local"
    return LlvmAddress(space, value)


def _is_of_variable(base: ir.Operand) -> bool:
    """Whether an address is that of a variable, and none that the kernel has computed."""
    return isinstance(base, ir.VariableReference) or (
        isinstance(base, ir.Element) and isinstance(base.base, ir.VariableReference)
    )


def write(function: Function, results: list[Result], returned: Any) -> None:
    """Put what the semantics returned into the registers of the instruction."""
    values = (returned,) if len(results) == 1 else returned
    if not results:
        return
    assert len(values) == len(results), f"{len(values)} results for {len(results)}"
    for (expected, operand), value in zip(results, values, strict=True):
        if operand is None or isinstance(operand, ir.Sink) or value is None:
            continue
        if expected is not None and expected.vectors:  # ptxas gives each element of a vector the whole result
            value = (value,) * len(parts_of(operand, 1))
        if isinstance(value, tuple):
            for part, element in zip(parts_of(operand, len(value)), value, strict=False):
                _store(function, part, element)
        else:
            _store(function, operand, value)


def _store(function: Function, operand: ir.Operand, value: LlvmValue) -> None:
    match operand:
        case ir.Sink():
            return
        case ir.Vector() if len(operand.elements) == 1:
            _store(function, operand.elements[0], value)
        case ir.Vector() | ir.Register(vector=2 | 4):
            elements = parts_of(operand, 1)
            width = value.type.width // len(elements)
            for part, element in zip(function.machine.unpack(value, f"b{width}"), elements, strict=True):
                _store(function, element, part)
        case ir.Register():
            text = resize(value, operand.type.width, signed=value.is_signed)
            undefined = function.undefined.of_result(value)
            function.registers.put(operand, text, raw=value.known_raw, undefined=undefined)
        case ir.VectorElement():
            assert isinstance(operand.register, ir.Register)
            assert operand.position is not None
            text = resize(value, operand.register.type.width, signed=value.is_signed)
            undefined = function.undefined.of_result(value)
            function.registers.put(operand.register, text, operand.position, undefined=undefined)
        case ir.Selection():
            assert isinstance(operand.register, ir.Register)
            text = resize(value, operand.register.type.width, signed=False)
            function.registers.put(operand.register, text, undefined=function.undefined.of_result(value))
        case _:
            raise AssertionError(f"{operand!r} as a result")


def immediate_bits(immediate: ir.Immediate, type: Type) -> int:
    """A constant as the bits of `type`."""
    if not immediate.is_float:
        return immediate.value
    if type.kind != "f" or immediate.kind == type.name:
        return immediate.value
    number = immediate.number
    if type.name == "f32":
        return int.from_bytes(bytes(ctypes.c_float(number)), "little")
    if type.name == "f64":
        return int.from_bytes(bytes(ctypes.c_double(number)), "little")
    exact = decode(F64, int.from_bytes(bytes(ctypes.c_double(number)), "little"))
    return encode(FORMATS[type.name], exact, "rn")
