"""What the parameters of a kernel consist of, read off its accesses: numbers, pointers and tensor maps at offsets.

PTX declares a structure as bytes, `.param .align 64 .b8 p[144]`. What the kernel does with them shows what they are:
`ld.param.b64 [p+128]` reads eight bytes, a pointer if they are used as an address; an address `p+0` that is given to
a tensor copy is that of a tensor map. An array that is indexed by a register is taken to reach up to the next field or
array.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.ir.effects import registers_in
from ptxlab.ir.node import latest_edit
from ptxlab.ir.shapes import match_of
from ptxlab.isa import Match, Operation
from ptxlab.isa.extent import TENSOR_MAP
from ptxlab.isa.operand import Expected
from ptxlab.isa.types import Type, type_named
from ptxlab.values import dataclass

MAP = "tensor map"
POINTER = "pointer"
_MAP_BYTES = int(TENSOR_MAP.bytes)
_KEEPS = (Operation.COPY, Operation.ADDRESS, Operation.SELECTION)
_ADDS = (Operation.SUM, Operation.DIFFERENCE, Operation.PRODUCT_SUM)


@dataclass(frozen=True)
class ParameterField:
    """Bytes of a parameter that the kernel reads as one value; `kind` is `MAP`, `POINTER` or a type of PTX."""

    offset: int
    size: int
    kind: str

    @property
    def type(self) -> Type:
        """The type that a number for this field has; a pointer is a number of 64 bits."""
        return type_named(self.kind) if self.kind not in (MAP, POINTER) else type_named("b64")

    def __str__(self) -> str:
        return f"+{self.offset} {self.kind}"


class _Location(NamedTuple):
    """An address in a parameter: `offset` bytes from its start, or, if not `exact`, at least as many."""

    parameter: int
    offset: int
    exact: bool = True


@dataclass
class _Load:
    """A value that is loaded from a parameter."""

    location: _Location
    type: Type
    kind: str = ""  # what its uses show, of more weight than the type it is loaded as


_known: dict[
    int, tuple[object, dict[str, list[list[ParameterField]]]]
] = {}  # by the identity of the module, until an edit


def fields_of(module: ir.Module, kernel: ir.Function) -> list[list[ParameterField]]:
    """The fields of each parameter of a kernel, in the order of their offsets."""
    if id(module) not in _known:
        weakref.finalize(module, _known.pop, id(module), None).atexit = False
    edit, found = _known.get(id(module), (None, {}))
    if edit is not latest_edit():
        _known[id(module)] = latest_edit(), (found := {})
    if kernel.name not in found:
        found[kernel.name] = _Reader(kernel).fields()
    return found[kernel.name]


class _Reader:
    """Follows addresses of parameters, and values loaded from there, through the registers of a kernel."""

    def __init__(self, kernel: ir.Function) -> None:
        self.kernel = kernel
        self.numbers = {id(parameter): number for number, parameter in enumerate(kernel.parameters)}
        self.steps = [(one, match) for one in kernel.instructions() if (match := match_of(one)) is not None]
        self.locations: dict[int, _Location] = {}
        self.loads: dict[int, list[_Load]] = {}  # by register
        self.every: list[_Load] = []
        self.maps: list[_Location] = []

    def fields(self) -> list[list[ParameterField]]:
        """The fields of each parameter."""
        self._follow_addresses()
        for instruction, match in self.steps:
            self._read(instruction, match)
        self._follow_values()
        found: list[list[tuple[ParameterField, bool]]] = [[] for _ in self.kernel.parameters]
        for location in self.maps:
            found[location.parameter].append((ParameterField(location.offset, _MAP_BYTES, MAP), location.exact))
        for load in self.every:
            kind = load.kind or load.type.name
            field = ParameterField(load.location.offset, load.type.width // 8, kind)
            found[load.location.parameter].append((field, load.location.exact))
        sizes = [layout.size_of_variable(parameter) for parameter in self.kernel.parameters]
        return [_disjoint(some, size) for some, size in zip(found, sizes, strict=True)]

    def _follow_addresses(self) -> None:
        """Find the registers that hold addresses of parameters."""
        changed = True
        while changed:
            changed = False
            for instruction, match in self.steps:
                location = self._computed(instruction, match)
                if location is None or not isinstance(result := instruction.operands[0], ir.Register):
                    continue
                before = self.locations.get(result.index)
                joined = location if before is None or before == location else _join(before, location)
                if joined != before:
                    self.locations[result.index] = joined
                    changed = True

    def _computed(self, instruction: ir.Instruction, match: Match) -> _Location | None:
        """The address of a parameter that an instruction computes."""
        operands, operation = instruction.operands[1:], match.effects.computes
        if operation in _KEEPS:
            return next(filter(None, map(self._locate, operands)), None)
        if operation not in _ADDS:
            return None
        at = next((at for at, operand in enumerate(operands) if self._locate(operand) is not None), None)
        if at is None:
            return None
        location = self._locate(operands[at])
        other = operands[1 - at] if len(operands) == 2 else None
        assert location is not None
        if not isinstance(other, ir.Immediate) or other.is_float or not location.exact:
            return location._replace(exact=False)
        distance = other.value - (1 << 64) * (other.value >> 63)
        return location._replace(
            offset=location.offset + (-distance if operation is Operation.DIFFERENCE else distance)
        )

    def _locate(self, operand: ir.Operand) -> _Location | None:
        """The address of a parameter that an operand is."""
        match operand:
            case ir.VariableReference():
                number = self.numbers.get(id(operand.variable))
                return None if number is None else _Location(number, operand.offset)
            case ir.Register():
                return self.locations.get(operand.index)
            case ir.Address() | ir.Sum():
                location = self._locate(operand.base)
                moves = location is not None and location.exact
                return location._replace(offset=location.offset + operand.offset) if location and moves else location
            case ir.Element():
                location = self._locate(operand.base)
                if location is None or not isinstance(operand.base, ir.VariableReference):
                    return None
                step = operand.base.variable.type.width // 8
                return location._replace(offset=location.offset + operand.index * step, exact=operand.register is None)
        return None

    def _read(self, instruction: ir.Instruction, match: Match) -> None:
        """Note what an instruction reads of parameters: values into registers, tensor maps."""
        for operand, expected in zip(instruction.operands, match.expected, strict=True):
            if expected.kind != "address" or (location := self._locate(operand)) is None:
                continue
            if match.effects.extents.get(expected.name) == TENSOR_MAP:
                self.maps.append(location)
            elif any(one.operand == expected.name and one.kind == "load" for one in match.effects.accesses):
                self._note_load(instruction.operands[0], match, location)

    def _note_load(self, result: ir.Operand, match: Match, location: _Location) -> None:
        """Note the values that are loaded at an address, into one register or several."""
        type = match.expected[0].type
        if type is None or type.width < 8:
            return
        elements = result.elements if isinstance(result, ir.Vector) else (result,)
        for at, element in enumerate(elements):
            load = _Load(location._replace(offset=location.offset + at * type.width // 8), type)
            self.every.append(load)
            if isinstance(element, ir.Register):
                self.loads.setdefault(element.index, []).append(load)

    def _follow_values(self) -> None:
        """Find out from their uses which values are pointers, and which are floats."""
        carried = {register: list(loads) for register, loads in self.loads.items()}
        changed = True
        while changed:
            changed = False
            for instruction, match in self.steps:
                if match.effects.computes in _KEEPS + _ADDS and _is_address_wide(match):
                    changed |= _carry(carried, instruction)
        for instruction, match in self.steps:
            self._note_uses(instruction, match, carried)

    def _note_uses(self, instruction: ir.Instruction, match: Match, carried: dict[int, list[_Load]]) -> None:
        """Note what an instruction shows of the values that it uses."""
        is_conversion = match.effects.computes is Operation.ADDRESS
        for operand, expected in zip(instruction.operands, match.expected, strict=True):
            if expected.role == "write":
                continue
            for register in registers_in(operand):
                if expected.kind == "address" or is_conversion:
                    for load in carried.get(register.index, ()):
                        load.kind = POINTER if load.type.width == 64 else load.kind
            type = _shown_type(instruction, match, expected)
            if isinstance(operand, ir.Register) and type is not None and type.kind == "f" and type.lanes == 1:
                for load in self.loads.get(operand.index, ()):
                    load.kind = load.kind or (type.name if type.width == load.type.width else "")


def _shown_type(instruction: ir.Instruction, match: Match, expected: Expected) -> Type | None:
    """The type that an operand is of by its use: that of the instruction, or of the register it is copied to."""
    result = instruction.operands[0]
    if match.effects.computes is Operation.COPY and isinstance(result, ir.Register):
        return result.type
    return expected.type


def _is_address_wide(match: Match) -> bool:
    type = match.expected[0].type
    return type is not None and type.width == 64 and type.kind != "f"


def _carry(carried: dict[int, list[_Load]], instruction: ir.Instruction) -> bool:
    """Let a result carry what the operands carry; of a sum of two loaded values, neither is taken for the address."""
    result, *operands = instruction.operands
    if not isinstance(result, ir.Register):
        return False
    sources = [carried[one.index] for one in operands if isinstance(one, ir.Register) and one.index in carried]
    if len(sources) != 1:
        return False
    mine = carried.setdefault(result.index, [])
    new = [load for load in sources[0] if load not in mine]
    mine += new
    return bool(new)


def _join(one: _Location, other: _Location) -> _Location:
    """Both addresses; those of two parameters are that of the first, somewhere."""
    offset = min(one.offset, other.offset) if one.parameter == other.parameter else one.offset
    return _Location(one.parameter, offset, False)


def _disjoint(found: Sequence[tuple[ParameterField, bool]], size: int) -> list[ParameterField]:
    """Fields that do not overlap: the larger of two, or the bytes that both cover; arrays up to the next field."""
    exact = sorted((field for field, is_exact in found if is_exact), key=_rank)
    fields: list[ParameterField] = []
    for field in exact:
        if not 0 <= field.offset <= field.offset + field.size <= size:
            continue
        last = fields[-1] if fields else None
        if last is None or field.offset >= last.offset + last.size:
            fields.append(field)
        elif field.offset + field.size > last.offset + last.size:
            end = field.offset + field.size
            fields[-1:] = [ParameterField(at, 1, "b8") for at in range(last.offset, end)]
    arrays = sorted({(field.offset, field.size, field.kind) for field, is_exact in found if not is_exact})
    for number, (offset, width, kind) in enumerate(arrays):
        end = next((other for other, *_ in arrays[number + 1 :] if other >= offset + width), size)
        fields = sorted([*fields, *_elements(fields, offset, width, kind, end)], key=_rank)
    return fields


def _rank(field: ParameterField) -> tuple[int, int, bool]:
    """Of several fields at an offset, the widest first; of these, one of which a use shows the kind."""
    return field.offset, -field.size, field.kind not in (MAP, POINTER) and field.type.kind != "f"


def _elements(
    fields: Sequence[ParameterField], offset: int, width: int, kind: str, end: int
) -> Iterator[ParameterField]:
    """The elements of an array from an offset on, up to `end` or a field that is there."""
    taken = {at: field for field in fields for at in range(field.offset, field.offset + field.size)}
    for at in range(max(offset, 0), end - width + 1, width):
        there = [taken[byte] for byte in range(at, at + width) if byte in taken]
        if any((field.offset, field.size) != (at, width) for field in there):
            return
        if not there:
            yield ParameterField(at, width, kind)
