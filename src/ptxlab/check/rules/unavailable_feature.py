"""A directive, a type, a special register or another part of the language needs a later PTX version or another target.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .b128 %q;
    ret;
}
```

Right:

```ptx
.version 8.3
.target sm_80
.entry k() {
    .reg .b128 %q;
    ret;
}
```
"""

from collections.abc import Iterator
from functools import cache

from ptxlab import ir
from ptxlab.isa import Opcode
from ptxlab.isa.features import FEATURES
from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.isa.targets import Since, Target, Version
from ptxlab.report import Diagnostic, Span

from ..availability import explain
from ..program import Program
from ..storage import parameter_bytes

_TYPES = "f16x2", "b128"
_LARGE = 4352  # bytes of parameters that every kernel may have
Use = tuple[str, Span | None]


def check(program: Program) -> Iterator[Diagnostic]:
    missing, absent = _unavailable(program.version, program.target)
    if missing:
        for name, span in _uses(program):
            if name in missing:
                yield explain(program, FEATURES[name].text, FEATURES[name].since, span, "unavailable-feature")
    if absent:
        for name, span in _special_registers(program):
            if name in absent:
                yield explain(program, f"`{name}`", absent[name], span, "unavailable-feature")


@cache
def _unavailable(version: Version, target: Target) -> tuple[set[str], dict[str, Since]]:
    """The features and the special registers that modules of a version and target do not have."""
    registers = {name: one.since for name, one in SPECIAL_REGISTERS.items() if not one.since.holds(version, target)}
    return {name for name, feature in FEATURES.items() if not feature.since.holds(version, target)}, registers


def _special_registers(program: Program) -> Iterator[tuple[str, Span | None]]:
    """The special registers that are read, by the few instructions that can."""
    can_read: dict[Opcode, bool] = {}
    for facts in program.functions:
        for instruction in facts.instructions:
            opcode = instruction.opcode
            if opcode not in can_read:
                can_read[opcode] = any(e.special for c in opcode.candidates for e in c.expected)
            if not can_read[opcode]:
                continue
            for index, operand in enumerate(instruction.operands):
                inner = operand.operand if isinstance(operand, ir.Negated) else operand
                for part in inner.elements if isinstance(inner, ir.Vector) else (inner,):
                    if isinstance(part, ir.SpecialRegister):
                        yield part.name, program.module.operand_span(instruction, index)


def _uses(program: Program) -> Iterator[Use]:
    module = program.module
    if module.address_size is not None:
        yield "address_size", module.span_of(module.header_spans.get("address_size"))
    for item in module.items:
        span = None if isinstance(item, ir.Function) else module.span(item)
        match item:
            case ir.Function():
                yield from _of_function(program, item)
            case ir.Declaration():
                for variable in item.variables:
                    yield from _of_variable(program, variable)
            case ir.Alias():
                yield "alias", span
            case ir.Section():
                yield from _of_section(item, span)
            case ir.SourceSection():
                yield "source_section", span
            case ir.File() if item.timestamp is not None:
                yield "file_times", span
    for facts in program.functions:
        for statement in facts.others:
            if statement.__class__ is not ir.Declaration:
                yield from _of_statement(program, statement)
                continue
            for variable in statement.variables:
                if variable.state_space != "reg" or variable.type.name in _TYPES:  # other registers were always there
                    yield from _of_variable(program, variable)


def _of_function(program: Program, function: ir.Function) -> Iterator[Use]:
    span = program.module.name_span(function)
    if function.linkage in ("weak", "common"):
        yield function.linkage, span
    if function.kind == "entry":
        if function.parameters:
            yield "kernel_parameters", span
        if parameter_bytes(function.parameters) > _LARGE:
            yield "large_parameters", span
    elif any(variable.state_space == "param" for variable in (*function.returns, *function.parameters)):
        yield "param_in_functions", span
    for parameter in function.parameters:
        yield from _of_variable(program, parameter)
    for attribute in function.attributes:
        yield attribute.name, span


def _of_variable(program: Program, variable: ir.Variable) -> Iterator[Use]:
    span = program.module.span(variable)
    if variable.type.name in _TYPES and not (variable.type.width == 128 and variable.dimensions):
        yield variable.type.name, span  # ptxas takes arrays of .b128 in every version
    if variable.type.kind == "o":
        yield "opaque", span
    if variable.linkage in ("weak", "common"):
        yield variable.linkage, span
    if variable.pointer is not None:
        yield "ptr", span
    for attribute in variable.attributes:
        yield attribute.name, span
    pending = [variable.initializer] if variable.initializer is not None else []
    while pending:
        value = pending.pop()
        if isinstance(value, ir.InitializerList):
            pending.extend(value.elements)
        elif isinstance(value, ir.SymbolAddress):
            function = any(function.name == value.name for function in program.module.functions)
            yield "function_initializer" if function else "address_initializer", span
            if value.generic:
                yield "generic", span
            if value.mask is not None:
                yield "mask", span


def _of_section(section: ir.Section, span: Span | None) -> Iterator[Use]:
    yield "section", span
    for line in section.lines:
        if isinstance(line, ir.Label):
            yield "section_label", span
        elif isinstance(line, ir.DataLine):
            for value in line.values:
                if isinstance(value, ir.SymbolOffset):
                    if value.minus is not None:
                        yield "section_difference", span
                elif value < 0:
                    yield "section_negative", span


def _of_statement(program: Program, statement: ir.Statement) -> Iterator[Use]:
    span = program.module.span(statement)
    match statement:
        case ir.BranchTargets():
            yield "branchtargets", span
        case ir.CallPrototype():
            yield "callprototype", span
        case ir.CallTargets():
            yield "calltargets", span
        case ir.Location():
            if statement.inlined_at is not None:
                yield "inlined_at", span
            if statement.intermediate is not None:
                yield "loc_intermediate", span
        case ir.Pragma():
            yield "pragma", span
            for text in statement.strings:
                yield text.split(" ")[0], span
