"""Single instructions of real files, each in a module of its own with what it names: small texts to damage.

`excerpts(texts)` returns one module for every spelling of an opcode with every kind of operands that the texts have.
Registers have the names that `damage.py` puts into operands: `%r1` has 32 bits, `%rd1` 64, `%p1` is a predicate.
"""

import re
from collections.abc import Iterable, Iterator

import ptxlab
from ptxlab import ir
from ptxlab.ir.node import Node
from ptxlab.isa.types import Type
from ptxlab.syntax.print_declarations import print_head, print_variable
from ptxlab.syntax.printer import format_instruction

NAMES = {
    "pred": "%p", "b8": "%rc", "b16": "%rs", "b32": "%r", "b64": "%rd", "b128": "%rq", "u16": "%u", "s16": "%s",
    "u32": "%ru", "s32": "%ri", "u64": "%ul", "s64": "%sl", "f16": "%h", "f16x2": "%hh", "f32": "%f", "f64": "%fd",
    "u8": "%uc", "s8": "%sc",
}  # fmt: skip
_WORD = re.compile(r"(?<![.\w%$])[A-Za-z_$%][\w$]*")


def excerpts(texts: Iterable[tuple[str, str]], header: str | None = None) -> list[tuple[str, str]]:
    """A named module for each kind of instruction in named texts; under the file's own header, or under this one."""
    found: dict[str, tuple[str, str]] = {}
    for name, text in texts:
        try:
            module = ptxlab.parse(text, name=name)
        except ptxlab.PtxError:
            continue
        version = "{}.{}".format(*module.version)
        size = f"\n.address_size {module.address_size}" if module.address_size else ""
        own = f".version {version}\n.target {', '.join(module.targets)}{size}"
        for function in module.functions:
            for instruction in instructions(function.body or []):
                key = kind(instruction)
                if key not in found and (made := excerpt(instruction)) is not None:
                    found[key] = (f"{name}: {instruction.opcode.text}", f"{header or own}\n{made}")
    return list(found.values())


def instructions(body: Iterable[ir.Statement]) -> Iterator[ir.Instruction]:
    """The instructions of a body and of the blocks in it."""
    for statement in body:
        if isinstance(statement, ir.Instruction):
            yield statement
        elif isinstance(statement, ir.BlockStatement):
            yield from instructions(statement.body)


def kind(instruction: ir.Instruction) -> str:
    """What two instructions have in common that differ in names and values only."""
    text = format_instruction(instruction)
    for named in parts(instruction):
        if isinstance(named, ir.Register):
            text = _replaced(text, named.name, named.type.name)
        elif isinstance(named, ir.VariableReference):
            text = _replaced(text, named.name, named.variable.state_space)
        elif isinstance(named, ir.LabelReference):
            text = _replaced(text, named.name, "label")
    return re.sub(r"(?<![\w.])-?\d\w*", "1", text)


def _replaced(text: str, name: str, word: str) -> str:
    return re.sub(rf"(?<![\w%$]){re.escape(name)}(?![\w$])", word, text)


def parts(part: object) -> Iterator[Node]:
    """The operands of an instruction, and what they consist of."""
    if isinstance(part, ir.Instruction):
        yield from parts(part.guard.register if part.guard else None)
        yield from parts(tuple(part.operands))
    elif isinstance(part, tuple):
        for one in part:
            yield from parts(one)
    elif isinstance(part, Node):
        yield part
        yield from parts(tuple(getattr(part, field) for field in part.fields if field != "type"))


def excerpt(instruction: ir.Instruction) -> str | None:
    """A kernel around one instruction, on a line of its own; None if it calls a function."""
    registers: dict[str, str] = {}
    counts: dict[str, int] = {}
    outside: dict[str, str] = {}
    inside: dict[str, str] = {}
    variables: dict[str, str] = {}
    labels: dict[str, str] = {}
    for named in parts(instruction):
        if isinstance(named, ir.Register):
            if named.vector > 1 or named.type.name not in NAMES:
                return None
            registers.setdefault(named.name, _next(named.type, counts))
        elif isinstance(named, ir.VariableReference):
            place = outside if named.variable.state_space in ("global", "const", "shared", "tex") else inside
            new = variables.setdefault(named.name, f"v{len(variables)}")
            place[named.name] = _declared(named.variable, new)
        elif isinstance(named, ir.LabelReference):
            labels[named.name] = f"L{len(labels)}"
        elif isinstance(named, (ir.FunctionReference, ir.Unresolved, ir.Arguments)):
            return None
    renamed = registers | labels | variables
    line = _WORD.sub(lambda word: renamed.get(word[0], word[0]), format_instruction(instruction))
    parameters = ", ".join(text for text in inside.values() if text.startswith(".param"))
    local = [f"{text};" for text in inside.values() if not text.startswith(".param")]
    declared = [
        f".reg .{type} {name}<{counts.get(type, 0) + 3}>;" for type, name in NAMES.items() if _common(type, counts)
    ]
    lines = [*(f"{text};" for text in outside.values()), f".entry k({parameters})", "{", *declared, *local]
    return "\n".join([*lines, line, *(f"{label}:" for label in labels.values()), "ret;", "}", ""])


def _common(type: str, counts: dict[str, int]) -> bool:
    return type in ("pred", "b16", "b32", "b64", "f32", "f64") or type in counts


def _next(type: Type, counts: dict[str, int]) -> str:
    counts[type.name] = counts.get(type.name, 0) + 1
    return f"{NAMES[type.name]}{counts[type.name]}"


def _declared(variable: ir.Variable, name: str) -> str:
    plain = ir.Variable(
        variable.state_space, variable.type, name, vector=variable.vector, align=variable.align,
        dimensions=tuple(extent or 16 for extent in variable.dimensions),
    )  # fmt: skip
    return f"{print_head(plain)} {print_variable(plain)}"
