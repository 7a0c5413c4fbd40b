"""A name is used that nothing in scope declares.

Registers, variables, parameters and functions are declared before they are used. A label may come later, but must be
in the same block or in one around it: a branch can leave blocks, never enter one. ptxas says `Unknown symbol` beside
`Arguments mismatch`.

Wrong:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<3>;
    mov.u32 %r1, 1;
    add.u32 %r2, %r1, %r3;
    ret;
}
```

Right:

```ptx
.version 8.0
.target sm_80
.entry k() {
    .reg .u32 %r<4>;
    mov.u32 %r1, 1;
    mov.u32 %r3, 2;
    add.u32 %r2, %r1, %r3;
    ret;
}
```
"""

import re
from collections.abc import Iterator, Mapping

from ptxlab import ir
from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.report import Diagnostic, Edit, Help, Span, error
from ptxlab.report.nearest import distance, nearest

from ..program import Program
from ..spans import span_of_name


def check(program: Program) -> Iterator[Diagnostic]:
    reported: set[tuple[int, str]] = set()
    declared: dict[int, dict[str, ir.Variable | None]] = {}  # by function, collected once
    for failure in program.failures["unknown-name"]:
        is_known = failure.instruction.opcode.is_known  # of another instruction, this may be a label, or a function
        elsewhere = (
            {} if is_known else {**failure.function.labels(), **{one.name: one for one in program.module.functions}}
        )
        for name in names_missing(failure.instruction):
            if (id(failure.function), name) in reported or name in elsewhere:
                continue  # one cause, one diagnostic
            reported.add((id(failure.function), name))
            span = span_of_name(program, failure.instruction, name)
            jump = failure.instruction.opcode.jump
            if jump is not None and jump.branches:
                yield _explain_label(failure.function, name, span)
            else:
                function = failure.function
                if id(function) not in declared:
                    declared[id(function)] = _declared(program, function)
                yield _explain(program, declared[id(function)], name, span)
    yield from _missing_function_names(program)
    yield from _missing_labels(program)
    for facts in program.functions:
        yield from _missing_targets(program, facts.function, facts.others)


def _missing_labels(program: Program) -> Iterator[Diagnostic]:
    """Labels whose distance a debug section asks for; ptxas checks them when the target says `debug`."""
    module = program.module
    if "debug" not in module.targets:
        return
    sections = [item for item in module.items if isinstance(item, ir.Section)]
    labels = {line.name for section in sections for line in section.lines if isinstance(line, ir.Label)}
    for facts in program.functions:
        labels |= set(facts.function.labels())
    for section in sections:
        for line in section.lines:
            for value in line.values if isinstance(line, ir.DataLine) else ():
                names = (value.name, value.minus) if isinstance(value, ir.SymbolOffset) and value.minus else ()
                for name in names:
                    if name not in labels:
                        message = f"no debug section and no function has the label `{name}`"
                        yield error("unknown-name", message, module.span(section), "this section names it")


def _missing_function_names(program: Program) -> Iterator[Diagnostic]:
    """Labels of debug sections that `.loc` names and no section has."""
    sections = [item for item in program.module.items if isinstance(item, ir.Section)]
    labels = {line.name for section in sections for line in section.lines if isinstance(line, ir.Label)}
    reported = set()
    for facts in program.functions:
        for statement in facts.others:
            if isinstance(statement, ir.Location) and statement.function_name is not None:
                name = statement.function_name[0]
                # ptxas takes the name of the section of strings for a label too
                if name not in labels and name != ".debug_str" and name not in reported:
                    reported.add(name)
                    message = f"no debug section has the label `{name}`"
                    yield error("unknown-name", message, program.module.span(statement), "names a missing label")


def _missing_targets(program: Program, function: ir.Function, statements: list[ir.Statement]) -> Iterator[Diagnostic]:
    """Labels in a list of `.branchtargets`, and functions in one of `.calltargets`, that are not there."""
    labels = None
    for statement in statements:
        if isinstance(statement, ir.BranchTargets):
            labels = function.labels() if labels is None else labels
            for name in statement.targets:
                if name not in labels:
                    yield _explain_label(function, name, program.module.span(statement))
        elif isinstance(statement, ir.CallTargets):
            for target in statement.targets:
                if isinstance(target, ir.Unresolved):
                    yield _explain(program, _declared(program, function), target.name, program.module.span(statement))


def names_missing(instruction: ir.Instruction) -> Iterator[str]:
    """The names in an instruction that are not declared, from left to right."""
    if instruction.guard is not None and isinstance(instruction.guard.register, ir.Unresolved):
        yield instruction.guard.register.name
    pending = list(reversed(instruction.operands))
    while pending:
        operand = pending.pop()
        match operand:
            case ir.Unresolved():
                yield operand.name
            case ir.Vector() | ir.Arguments():
                pending.extend(reversed(operand.elements))
            case ir.Address():
                pending.extend(reversed(operand.arguments))
                pending.append(operand.base)
            case ir.Element():
                pending.extend(part for part in (operand.register, operand.base) if part is not None)
            case ir.Pair():
                pending.extend((operand.second, operand.first))
            case ir.Sum():
                pending.append(operand.base)
            case ir.Negated() | ir.Minus():
                pending.append(operand.operand)
            case ir.VectorElement() | ir.Selection():
                pending.append(operand.register)


def _explain_label(function: ir.Function, name: str, span: Span | None) -> Diagnostic:
    labels = function.labels()
    if name in labels:
        message = f"label `{name}` is in a block that this branch is not in"
        return error("unknown-name", message, span, "a branch cannot enter a block")
    meant = nearest(name, labels)
    helps = [_rename(name, meant, span)] if meant else []
    return error(
        "unknown-name", f"there is no label `{name}` in `{function.title}`", span, "no label here", helps=helps
    )


def _rename(name: str, meant: str, span: Span | None) -> Help:
    """Another name; it is safe to write it if only one letter, or the order of two, is wrong."""
    is_safe = span is not None and span.text == name and len(name) > 3 and distance(name, meant) == 1
    return Help(f"did you mean `{meant}`?", (Edit(span, meant),) if is_safe and span is not None else ())


def _explain(program: Program, declared: Mapping[str, ir.Variable | None], name: str, span: Span | None) -> Diagnostic:
    helps: list[Help] = []
    numbered = re.fullmatch(r"(.*?)(\d{1,9})", name)
    variable = declared.get(numbered[1]) if numbered else None
    if numbered and variable is not None and variable.count is not None:
        helps = [_raise(program, variable, int(numbered[2]))]
    elif name in _OF_CUDA:
        helps = [Help(f"did you mean `{_OF_CUDA[name]}`?")]
    else:
        meant = _nearest_name(name, declared)
        helps = [_rename(name, meant, span)] if meant else []
    return error("unknown-name", f"`{name}` is not declared", span, "nothing in scope has this name", helps=helps)


def _raise(program: Program, variable: ir.Variable, number: int) -> Help:
    """Declare more registers of a name: as many as the missing number needs."""
    name, count = variable.name, variable.count
    assert count is not None
    text = f"`{name}<{count}>` declares `{name}0` to `{name}{count - 1}`: write `{name}<{number + 1}>`"
    span = program.module.span(variable)
    written = f"<{count}>"
    if span is None or number >= _MOST_REGISTERS:
        return Help(text)
    start = span.source.text.find(written, span.start)
    if start < 0 or start > span.end:
        return Help(text)
    return Help(text, (Edit(Span(span.source, start, start + len(written)), f"<{number + 1}>"),))


def _nearest_name(name: str, declared: Mapping[str, ir.Variable | None]) -> str | None:
    """What was meant by a name: with its `%`, a special register, or something that is declared."""
    if not name.startswith("%"):
        several = declared.get(f"%{name.rstrip('0123456789')}")
        is_numbered = name[-1:].isdigit() and several is not None and several.count is not None
        if f"%{name}" in declared or f"%{name}" in SPECIAL_REGISTERS or is_numbered:
            return f"%{name}"
    return nearest(name, [*declared, *(SPECIAL_REGISTERS if name.startswith("%") else ())])


_MOST_REGISTERS = 1 << 16  # that a help declares without asking
_OF_CUDA = {"threadIdx": "%tid", "blockIdx": "%ctaid", "blockDim": "%ntid", "gridDim": "%nctaid", "warpSize": "WARP_SZ"}


def _declared(program: Program, function: ir.Function) -> dict[str, ir.Variable | None]:
    """The names in scope; registers with a count have their declaration."""
    names: dict[str, ir.Variable | None] = {variable.name: None for variable in program.module.variables}
    names |= {other.name: None for other in program.module.functions}
    names |= {parameter.name: None for parameter in (*function.parameters, *function.returns)}
    for statement in function.statements():
        if isinstance(statement, ir.Declaration):
            names |= {variable.name: variable for variable in statement.variables}
        elif isinstance(statement, ir.Label):
            names[statement.name] = None
    return names
