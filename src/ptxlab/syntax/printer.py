"""From program to text, in one canonical layout."""

from __future__ import annotations

from ptxlab.ir import (
    Alias,
    BlockStatement,
    BranchTargets,
    CallPrototype,
    CallTargets,
    Comment,
    DataLine,
    Declaration,
    Directive,
    File,
    Function,
    Instruction,
    Label,
    Location,
    Module,
    Pragma,
    Section,
    SourceSection,
    Statement,
    SymbolOffset,
    Target,
    Variable,
)
from ptxlab.syntax.print_declarations import print_attributes, print_declaration, print_head, print_variable
from ptxlab.syntax.print_operands import print_operand

_INDENT = "    "


def format(module: Module) -> str:
    """Canonical PTX of a program.

    >>> from ptxlab.syntax import parse
    >>> print(format(parse(".version 8.0 .target sm_80 .entry main{ret;}")), end="")
    .version 8.0
    .target sm_80
    <BLANKLINE>
    .entry main
    {
        ret;
    }
    """
    if not isinstance(module, Module):
        raise TypeError(f"`format` takes what `ptxlab.parse` or `ptxlab.load` gives, not {type(module).__name__}")
    return _Printer().print(module)


def format_instruction(instruction: Instruction) -> str:
    """One instruction as text, with its `;`."""
    guard = instruction.guard
    text = instruction.opcode.text
    if guard is not None:
        text = f"@{'!' if guard.negated else ''}{guard.register.name} {text}"
    if instruction.operands:
        text += " " + ", ".join(map(print_operand, instruction.operands))
    return text + ";"


class _Printer:
    """Collects lines; a trailing comment goes onto the last of them."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.closed = False  # whether the last line ends in a comment that runs to its end

    def print(self, module: Module) -> str:
        for comment in module.comments:
            self._comment(comment, "")
        self._line(".version {}.{}".format(*module.version))
        self._line(".target " + ", ".join(module.targets))
        if module.address_size is not None:
            self._line(f".address_size {module.address_size}")
        previous: object = None
        for item in module.items:
            if not (isinstance(item, Comment) and item.trailing) and self._apart(previous, item):
                self._line("")
            self._item(item)
            previous = item
        return "\n".join(self.lines) + "\n"

    def _apart(self, previous: object, item: object) -> bool:
        if isinstance(previous, Comment) and not previous.trailing:
            return False
        simple = (Declaration, File, Alias, Pragma, Target)
        return not (isinstance(item, simple) and type(previous) is type(item)) or isinstance(item, Comment)

    def _line(self, text: str) -> None:
        self.lines.append(text)
        self.closed = False

    def _comment(self, comment: Comment, indent: str) -> None:
        if comment.trailing and self.lines and not self.closed:
            self.lines[-1] += " " + comment.text
        else:
            self.lines.append(indent + comment.text)
        self.closed = comment.text.startswith("//")

    def _item(self, item: object) -> None:
        if isinstance(item, Function):
            self._function(item)
        elif isinstance(item, Section):
            self._section(item)
        elif isinstance(item, SourceSection):
            self._source_section(item)
        elif isinstance(item, File):
            extra = "".join(f", {number}" for number in (item.timestamp, item.size) if number is not None)
            self._line(f'.file {item.index} "{item.name}"{extra}')
        elif isinstance(item, Alias):
            self._line(f".alias {item.name}, {item.aliasee};")
        else:
            self._statement(item, "")  # type: ignore[arg-type]

    def _function(self, function: Function) -> None:
        linkage = f".{function.linkage} " if function.linkage else ""
        attributes = print_attributes(function.attributes)
        returns = _inline_parameters(function.returns) + " " if function.returns else ""
        head = f"{linkage}.{function.kind} {attributes}{returns}{function.name}"
        if function.parameters:
            self._line(head + "(")
            self._parameters(function.parameters)
            self._line(")")
        else:
            self._line(head)
        for directive in function.directives:
            self._line(_directive(directive))
        if function.body is None:
            self.lines[-1] += ";"
            return
        self._line("{")
        self._body(function.body, _INDENT)
        self._line("}")

    def _parameters(self, parameters: list[Variable]) -> None:
        for number, parameter in enumerate(parameters, 1):
            for comment in parameter.comments:
                if not comment.trailing:
                    self._comment(comment, _INDENT)
            comma = "," if number < len(parameters) else ""
            self._line(f"{_INDENT}{_parameter(parameter)}{comma}")
            for comment in parameter.comments:
                if comment.trailing:
                    self._comment(comment, _INDENT)

    def _body(self, body: list[Statement], indent: str) -> None:
        previous: object = None
        for statement in body:
            if isinstance(statement, Label):
                if previous is not None and not isinstance(previous, (Label, Comment)):
                    self._line("")
                self._line(f"{indent[:-4]}{statement.name}:")
            else:
                if isinstance(previous, Declaration) and not isinstance(statement, (Declaration, Comment)):
                    self._line("")
                self._statement(statement, indent)
            previous = statement

    def _statement(self, statement: Statement, indent: str) -> None:
        if isinstance(statement, Instruction):
            self._line(indent + format_instruction(statement))
        elif isinstance(statement, Comment):
            self._comment(statement, indent)
        elif isinstance(statement, Location):
            self._line(indent + _location(statement))
            if statement.intermediate is not None:
                self._line(indent + ".loc_intermediate {} {} {}".format(*statement.intermediate))
        elif isinstance(statement, BlockStatement):
            self._line(indent + "{")
            self._body(statement.body, indent + _INDENT)
            self._line(indent + "}")
        elif isinstance(statement, Declaration):
            self._line(indent + print_declaration(statement, indent))
        elif isinstance(statement, Pragma):
            strings = ", ".join(f'"{string}"' for string in statement.strings)
            self._line(f"{indent}.pragma {strings};")
        elif isinstance(statement, BranchTargets):
            self._line(f"{indent}{statement.name}: .branchtargets {', '.join(statement.targets)};")
        elif isinstance(statement, CallTargets):
            names = ", ".join(target.name for target in statement.targets)
            self._line(f"{indent}{statement.name}: .calltargets {names};")
        elif isinstance(statement, CallPrototype):
            self._line(f"{indent}{statement.name}: {_prototype(statement)};")
        elif isinstance(statement, Label):
            self._line(f"{indent}{statement.name}:")
        else:
            self._line(f"{indent}.target {', '.join(statement.names)}")

    def _source_section(self, section: SourceSection) -> None:
        self._line(".nv_intermediate_source_section {")
        for block in section.blocks:
            head = f'.code_block {{\n{_INDENT}.ir_name: "{block.language}"\n{_INDENT}.sourceFileName: {block.file}'
            self._line(f"{head}\n{_INDENT}.source_begin\n{block.text}{_INDENT}.source_end\n}}")
        self._line("}")

    def _section(self, section: Section) -> None:
        self._line(f".section {section.name}")
        self._line("{")
        for line in section.lines:
            if isinstance(line, DataLine):
                self._line(f"{_INDENT}.{line.type} {', '.join(map(_value, line.values))}")
            elif isinstance(line, Comment):
                self._comment(line, _INDENT)
            else:
                self._line(f"{line.name}:")
        self._line("}")


def _directive(directive: Directive) -> str:
    arguments = ", ".join(f'"{one}"' if isinstance(one, str) else str(one) for one in directive.arguments)
    end = ";" if directive.name == "pragma" else ""
    return f".{directive.name} {arguments}".rstrip() + end


def _prototype(prototype: CallPrototype) -> str:
    returns = _inline_parameters(prototype.returns) + " " if prototype.returns else ""
    parameters = " " + _inline_parameters(prototype.parameters) if prototype.parameters else ""
    directives = "".join(" " + _directive(directive) for directive in prototype.directives)
    return f".callprototype {returns}_{parameters}{directives}"


def _inline_parameters(parameters: list[Variable]) -> str:
    return f"({', '.join(map(_parameter, parameters))})"


def _parameter(parameter: Variable) -> str:
    hidden = ".hidden " if parameter.linkage == "hidden" else ""
    return f"{hidden}{print_head(parameter)} {print_variable(parameter)}"


def _location(location: Location) -> str:
    text = f".loc {location.file} {location.line} {location.column}"
    if location.function_name is not None:
        name, offset = location.function_name
        text += f", function_name {name}+{offset}" if offset else f", function_name {name}"
    if location.inlined_at is not None:
        text += ", inlined_at {} {} {}".format(*location.inlined_at)
    return text


def _value(value: int | SymbolOffset) -> str:
    if isinstance(value, int):
        return str(value)
    if value.minus is not None:
        return f"{value.name}-{value.minus}"
    return f"{value.name}+{value.offset}" if value.offset else value.name
