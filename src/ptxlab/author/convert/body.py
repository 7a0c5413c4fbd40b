"""The body of a function as Python: see `__init__.py`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from ctypes import c_float
from keyword import iskeyword

from ptxlab import ir
from ptxlab.author.convert.calls import CallResult, InstructionCall, call_of, returns_the_same
from ptxlab.author.convert.chunks import INDENT, folded
from ptxlab.author.convert.comments import comment_lines, trailing_comment
from ptxlab.author.convert.registers import bits_of, declarations, numbered
from ptxlab.author.convert.runs import shorten
from ptxlab.author.convert.structure import Structures, registers_of
from ptxlab.ir.operands import Operand
from ptxlab.isa.operand import Expected
from ptxlab.syntax.print_declarations import print_declaration
from ptxlab.syntax.print_operands import print_immediate
from ptxlab.syntax.printer import format_instruction

DEEPEST = 15  # Python allows 20 blocks inside each other


class Body:
    """Writes the statements of one function."""

    def __init__(
        self,
        function: ir.Function,
        python_name: Callable[[str], str],
        globals: dict[str, str],
        keeps_lines: bool,
    ) -> None:
        self.function = function
        self.python_name = python_name
        self.names = dict(globals)  # of variables and parameters
        self.keeps_lines = keeps_lines
        # A program for the debugger has code for each register and block as it is declared.
        self.keeps_registers = keeps_lines
        self.classes: set[str] = set()
        self.registers: dict[int, str] = {}  # Python names, by the index of the register
        self.calls: dict[int, InstructionCall] = {}  # by the identity of the instruction
        self.named: dict[int, ir.Register] = {}  # registers that appear in text, and so keep their names
        self.once: set[int] = set()  # registers that one call returns
        self.all: dict[int, ir.Register] = {}
        self.structures: Structures | None = None
        self.read_until: list[int] = []  # for each instruction, the position of the last that reads what it returns
        self.families: dict[int, str] = {}  # Python names of `%r<100>`, by the identity of the variable

    def parameter(self, variable: ir.Variable) -> str:
        """The Python name of a parameter."""
        name = self.names[variable.name] = self.python_name(variable.name)
        return name

    def write(self) -> list[str]:
        """The lines, indented."""
        self._look()
        if not self.keeps_registers:
            self.structures = Structures(self.function, self._is_contained)
        lines = list(self._named())
        made = self._made()
        statements = list(self._statements(self.function.body or [], INDENT))
        if self.keeps_registers:
            return [*lines, *(piece for line in statements for piece in folded(line))]
        free = {name: self.all[index] for index, name in self.registers.items() if index not in self.named}
        shortened = shorten(statements, numbered(free), self.registers.values())
        for line in declarations(made, shortened.kept):
            lines += folded(INDENT + line)
        return [*lines, *shortened.lines]

    # What each instruction writes and reads.

    def _look(self) -> None:
        heads = {id(variable) for variable in (*self.function.returns, *self.function.parameters)}
        writes: Counter[int] = Counter()
        first_read: dict[int, int] = {}
        last_read: dict[int, int] = {}
        written_at: dict[int, int] = {}
        barred: set[int] = set()
        for position, instruction in enumerate(self.function.instructions()):
            self.read_until.append(0)
            call = call_of(instruction, self.keeps_registers)
            registers = list(registers_of(instruction))
            self.all.update((register.index, register) for register in registers)
            self.named.update(
                (register.index, register)
                for register in registers
                if self.keeps_registers or id(register.variable) in heads
            )
            if call is None:
                self.named.update((register.index, register) for register in registers)
                continue
            self.calls[id(instruction)] = call
            written = [part for result in call.results for part in result.parts]
            targets = call.registers_written
            for index in targets:
                writes[index] += 1
                written_at[index] = position
            for index in call.registers_read:
                first_read.setdefault(index, position)
                last_read[index] = position
            if instruction.guard is not None or len(targets) != len(written) or not returns_the_same(call):
                barred.update(targets)
        for index, count in writes.items():
            early = first_read.get(index, math.inf) <= written_at[index]
            if count > 1 or early or index in self.named:
                barred.add(index)
        for call in self.calls.values():  # a call returns all its results or none
            targets = call.registers_written
            if targets and not barred.intersection(targets):
                self.once.update(targets)
        for index in self.once:
            writer = written_at[index]
            self.read_until[writer] = max(self.read_until[writer], last_read.get(index, 0))

    def _named(self) -> Iterator[str]:
        """Registers by their names, where these appear in text."""
        heads = {id(variable) for variable in (*self.function.returns, *self.function.parameters)}
        for _, register in sorted(self.named.items()):
            if id(register.variable) in heads:
                name, cls = self._register(register), self._class(register)
                yield f"{INDENT}{name} = ptx.register({register.name!r}, {cls}, declare=False)"
            elif self.keeps_registers:
                continue
            elif register.vector == 1:
                yield f"{INDENT}{self._register(register)} = ptx.register({register.name!r}, {self._class(register)})"
            else:
                yield f"{INDENT}ptx.text('.reg .v{register.vector} .{register.type.name} {register.name};')"

    def _made(self) -> dict[str, list[str]]:
        """Registers that no call returns, by what they are made as."""
        made: dict[str, list[str]] = {}
        for index, register in sorted(self.all.items()):
            if index not in self.named and index not in self.once:
                made.setdefault(self._bits(register), []).append(self._register(register))
        return made

    def _class(self, register: ir.Register) -> str:
        self.classes.add(register.type.name)
        return register.type.name

    def _bits(self, register: ir.Register) -> str:
        name = bits_of(register)
        self.classes.add(name)
        return name

    def _register(self, register: ir.Register) -> str:
        name = self.registers.get(register.index)
        if name is None:
            name = self.registers[register.index] = self._chosen(register)
        return name

    def _chosen(self, register: ir.Register) -> str:
        variable = register.variable
        if not self.keeps_registers or variable is None or variable.count is None:
            return self.python_name(register.name)
        family = self.families.get(id(variable))
        if family is None:
            family = self.families[id(variable)] = self.python_name(variable.name)
        return f"{family}[{register.name[len(variable.name) :]}]"

    def _is_contained(self, start: int, end: int) -> bool:
        """Whether what the calls from the position `start` up to `end` return is read before `end` only."""
        return max(self.read_until[start:end], default=0) < end

    def _statements(self, body: list[ir.Statement], indent: str) -> Iterator[str]:
        at = 0
        while at < len(body):
            found = None
            if self.structures is not None and len(indent) <= DEEPEST * len(INDENT):
                found = self.structures.at(body, at)
            if found is None:
                lines = list(self._statement(body[at], indent))
                at += 1
                follower = body[at] if at < len(body) else None
                if isinstance(follower, ir.Comment) and follower.trailing and len(lines) == 1:
                    lines[0] += trailing_comment(follower)
                    at += 1
                yield from lines
                continue
            guard = found.guard
            condition = "" if guard is None else f"{'~' * guard.negated}{self._register(guard.register)}"  # type: ignore[arg-type]
            opposite = condition[1:] if condition.startswith("~") else f"~{condition}"
            yield f"{indent}with ptx.{'loop()' if found.is_loop else f'when({opposite})'}:"
            lines = list(self._statements(found.region, indent + INDENT))
            if found.is_loop and guard is not None:
                lines.append(f"{indent}{INDENT}ptx.repeat_when({condition})")
            yield from _filled(lines, indent)
            if found.otherwise is not None:
                yield f"{indent}with ptx.otherwise():"
                yield from _filled(list(self._statements(found.otherwise, indent + INDENT)), indent)
            at = found.end

    def _statement(self, statement: ir.Statement, indent: str) -> Iterator[str]:
        match statement:
            case ir.Instruction():
                yield indent + self._instruction(statement)
            case ir.Label():  # also one that only debug data names: ptxas orders code by it
                yield f"{indent}ptx.label({statement.name!r})"
            case ir.BlockStatement():
                yield from self._block(statement, indent)
            case ir.Declaration():
                yield from self._declaration(statement, indent)
            case ir.Comment():
                yield from (f"{indent}{line}" for line in comment_lines(statement))
            case ir.Location():
                if self.keeps_lines:
                    yield f"{indent}ptx.text({_statement_text(statement)!r})"
            case _:
                yield f"{indent}ptx.text({_statement_text(statement)!r})"

    def _block(self, block: ir.BlockStatement, indent: str) -> Iterator[str]:
        """A block; one that only scopes registers needs no braces, as each has a name of its own in Python."""
        plain = all(
            isinstance(s, (ir.Instruction, ir.Comment, ir.Location))
            or (isinstance(s, ir.Declaration) and all(v.state_space == "reg" for v in s.variables))
            for s in block.body
        )
        plain = plain and not self.keeps_registers
        if plain:
            yield from self._statements(block.body, indent)
            return
        if len(indent) > DEEPEST * len(INDENT):
            yield f"{indent}ptx.text('{{')"
            yield from self._statements(block.body, indent)
            yield f"{indent}ptx.text('}}')"
            return
        yield f"{indent}with ptx.block():"
        lines = list(self._statements(block.body, indent + INDENT))
        yield from _filled(lines, indent)

    def _declaration(self, declaration: ir.Declaration, indent: str) -> Iterator[str]:
        for variable in declaration.variables:
            if variable.state_space == "reg":
                if self.keeps_registers:
                    yield indent + self._declared(variable)
            else:
                text = print_declaration(ir.Declaration([variable]), "")
                known = self.names.get(variable.name)
                name = known or self.python_name(variable.name)
                self.names[variable.name] = name
                yield f"{indent}{name} = ptx.declare({text!r})"

    def _declared(self, variable: ir.Variable) -> str:
        """The declaration of a register or a family of them, where it is in the original."""
        cls = variable.type.name
        if variable.vector != 1:
            return f"ptx.text({print_declaration(ir.Declaration([variable]), '')!r})"
        self.classes.add(cls)
        used = [register for register in self.all.values() if register.variable is variable]
        if variable.count is None:
            if not used:
                return f"ptx.register({variable.name!r}, {cls})"
            return f"{self._register(used[0])} = ptx.register({variable.name!r}, {cls})"
        family = self._register(used[0]).partition("[")[0] + " = " if used else ""
        return f"{family}ptx.registers({variable.name!r}, {cls}, {variable.count})"

    def _instruction(self, instruction: ir.Instruction) -> str:
        call = self.calls.get(id(instruction))
        if call is None:
            return f"ptx.text({format_instruction(instruction)!r})"
        arguments = [self._operand(operand, expected) for operand, expected in call.reads]
        returned = call.registers_written
        before = ""
        if returned and self.once.issuperset(returned):
            before = f"{', '.join(self._result(result, top=len(call.results) == 1) for result in call.results)} = "
            arguments += ["pair=True"] if call.pair else []
        elif call.results:
            outs = [self._operand(result.operand, result.expected) for result in call.results]
            sole = outs[0] if outs[0] != "None" else "(None,)"
            arguments.append(f"out={sole if len(outs) == 1 else f'({chr(44).join(outs)})'.replace(',', ', ')}")
        guard = instruction.guard
        if guard is not None:
            assert isinstance(guard.register, ir.Register)
            arguments.append(f"when={'~' if guard.negated else ''}{self._register(guard.register)}")
        return f"{before}{_path(instruction.opcode.text)}({', '.join(arguments)})"

    def _result(self, result: CallResult, top: bool) -> str:
        names = [self._register(part) for part in result.parts if isinstance(part, ir.Register)]
        if not isinstance(result.operand, ir.Vector):
            return names[0]
        joined = ", ".join(names) + ("," if len(names) == 1 else "")
        return joined if top else f"({joined})"

    def _operand(self, operand: Operand, expected: Expected) -> str:
        match operand:
            case ir.Register():
                return self._register(operand)
            case ir.Immediate():
                return _constant(operand, expected)
            case ir.Sink():
                return "None"
            case ir.Vector():
                parts = [self._operand(part, expected) for part in operand.elements]
                return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
            case ir.Negated(operand=ir.Register() as inner):
                return f"~{self._register(inner)}"
            case ir.SpecialRegister(name=name, component=component):
                return repr(name if component is None else f"{name}.{component}")
            case ir.LabelReference(name=name):
                return repr(name)
            case ir.Selection(register=ir.Register() as register, selector=selector):
                return f"ptx.part({self._register(register)}, {selector!r})"
            case ir.VariableReference(name=name, offset=offset):
                return f"{self.names[name]} + {offset}" if offset else self.names[name]
            case ir.Address():
                return self._address(operand, expected)
        raise AssertionError(operand)

    def _address(self, address: ir.Address, expected: Expected) -> str:
        base = self._operand(address.base, expected)
        if address.arguments:
            inner = [self._operand(a, e) for a, e in zip(address.arguments, expected.inner, strict=True)]
            return f"({', '.join([base, *inner])})"
        if isinstance(address.base, ir.VariableReference) and not address.plus_zero:
            return f"{base} + {address.offset}" if address.offset else base
        return f"ptx.at({base}, {address.offset})" if address.offset or address.plus_zero else base


def _filled(lines: list[str], indent: str) -> list[str]:
    """The lines of a block, which needs one that is not a comment."""
    return lines if any(not line.lstrip().startswith("#") for line in lines) else [*lines, f"{indent}{INDENT}pass"]


def _constant(value: ir.Immediate, expected: Expected) -> str:
    if not value.is_float:
        return f"{value.value:#x}" if value.base == 16 else str(value.value)
    number = float(value.number)
    if not math.isfinite(number):
        return f"ptx.literal({print_immediate(value)!r})"
    if value.kind == "f64" or (expected.type is not None and expected.type.width == 64):
        return repr(number)
    candidates = (float(f"{number:.{digits}g}") for digits in range(1, 10))  # nine digits are enough
    return repr(next(c for c in candidates if c_float(c).value == number))


def _path(text: str) -> str:
    """`ptx.ld["global"].f32`"""
    head, *words = text.split(".")
    path = f"ptx.{head}_" if iskeyword(head) else f"ptx.{head}"
    for word in words:
        path += f".{word}" if word.isidentifier() and not iskeyword(word) else f'["{word}"]'
    return path


def _statement_text(statement: ir.Statement) -> str:
    from ptxlab.syntax.printer import format

    function = ir.Function("func", "f", body=[statement])
    text = format(ir.Module((1, 0), ["sm_10"], items=[function]))
    return text[text.index("{\n") + 2 : text.rindex("}")].strip()
