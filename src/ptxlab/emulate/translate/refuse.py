"""What the emulator cannot run is refused by name, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlab import ir
from ptxlab.device import layout
from ptxlab.emulate.abi.network import NETWORK
from ptxlab.emulate.abi.services import SERVICES
from ptxlab.emulate.translate.special import NAMES
from ptxlab.ir.node import Node
from ptxlab.ir.shapes import shape_of
from ptxlab.isa import Candidate, Jump, Match
from ptxlab.isa.form import Form
from ptxlab.report import Diagnostic, KernelError, Span, error
from ptxlab.values import dataclass

_BUILT_IN = SERVICES | {name: count for name, (_, count) in NETWORK.items()}
WAYS = 200_000  # from all `brx.idx` of a function together: each is a piece of machine code


@dataclass(frozen=True)
class _Names:
    """What a module defines: its functions by name, and the names of variables that are not `.extern`."""

    functions: dict[str, ir.Function]
    variables: frozenset[str]


def refuse(module: ir.Module, kernel: ir.Function) -> None:
    """Raise `KernelError` if the kernel, or a function it can reach, needs something that is not emulated."""
    found: dict[str, Diagnostic] = {}
    names = _Names(
        layout.functions_of(module),
        frozenset(variable.name for variable in module.variables if variable.linkage != "extern"),
    )
    for function in layout.reachable(module, kernel):
        for message, span, reason in _missing(module, names, function):
            # Once is enough for each, however often it is in the program.
            found.setdefault(message, error("not-emulated", message, span, reason))
        ways = sum(_ways(function))
        if ways > WAYS:
            message = (
                f"`{function.title}`: its `brx.idx` instructions can go {ways} ways, at most {WAYS} are possible here"
            )
            found[message] = error("too-large", message, module.name_span(function), "this function")
    if found:
        raise KernelError(found.values())


def _ways(function: ir.Function) -> Iterator[int]:
    """To how many labels each `brx.idx` of a function can go."""
    lists = {s.name: len(s.targets) for s in function.statements() if isinstance(s, ir.BranchTargets)}
    if not lists:
        return
    for instruction in function.instructions():
        if instruction.opcode.jump is Jump.INDEXED_BRANCH:
            yield sum(lists.get(o.name, 0) for o in instruction.operands if isinstance(o, ir.LabelReference))


def is_emulated(form: Form) -> bool:
    """Whether the emulator knows the instruction."""
    return form.jump is not None or form.semantics is not None


# First words of modifiers that are not emulated, of instructions that are emulated without them.
_WORDS = {
    "mbarrier::report::validity": "barriers have nothing to report on the values that are copied",
    "sync_restrict::shared::read": "it reports the end of reads, which is not distinguished here",
    "exclusive": "what it excludes is not known",
    "kind::ti16": "how its values are computed is not known",
}


def reason_of(candidate: Candidate) -> str | None:
    """Why an instruction is not emulated, if it is not."""
    if not is_emulated(candidate.form):
        return candidate.form.unknown
    words = [word for word in candidate.chosen.values() if word is not None]
    return next((why for word in words if (why := reason_of_word(word))), None)


def reason_of_word(word: str) -> str | None:
    """Why a modifier is not emulated, if it is not."""
    return next((why for start, why in _WORDS.items() if word.startswith(start)), None)


Missing = tuple[str, Span | None, str]


def _missing(module: ir.Module, names: _Names, function: ir.Function) -> Iterator[Missing]:
    """What a function needs that is not there: what to say of it, where it is, and why."""
    if module.address_size == 32:
        yield (
            "addresses of 32 bits are not emulated",
            module.span_of(module.header_spans.get("address_size")),
            "asked for here",
        )
    for parameter in function.parameters:
        if parameter.elements is None:
            message = f"`{parameter.title}`, a parameter of open size, is not emulated"
            yield message, module.span(parameter), "functions take as much as they declare"
    for instruction in function.instructions():
        yield from _missing_instruction(module, instruction)
        for operand in _parts(instruction.operands):
            yield from _missing_operand(module, names, instruction, operand)
        if instruction.opcode.jump is Jump.CALL:
            yield from _missing_callee(module, names, instruction)


def _missing_instruction(module: ir.Module, instruction: ir.Instruction) -> Iterator[Missing]:
    opcode = instruction.opcode
    if opcode.jump is not None:
        return
    match = opcode.match(tuple(shape_of(operand) for operand in instruction.operands))
    known = isinstance(match, Match)
    if reason := reason_of(match.candidate) if known else "the emulator does not know this instruction":
        yield f"`{opcode.text}` is not emulated", module.opcode_span(instruction), reason


def _missing_operand(module: ir.Module, names: _Names, instruction: ir.Instruction, operand: Node) -> Iterator[Missing]:
    match operand:
        case ir.SpecialRegister() if operand.name not in NAMES:
            message = f"`{operand.name}` is not emulated"
            yield message, module.span(instruction), "a special register that the emulator does not have"
        case ir.VariableReference() if _is_missing(names, operand):
            message = f"`{operand.name}` is declared `.extern`, and no variable of the file is it"
            yield message, module.span(instruction), "used here"
        case ir.FunctionReference() if (
            instruction.opcode.jump is not Jump.CALL and names.functions[operand.name].body is None
        ):
            message = f"the address of `{operand.name}`, which has no body, is not emulated"
            yield message, module.span(instruction), "taken here"


def _is_missing(names: _Names, reference: ir.VariableReference) -> bool:
    variable = reference.variable
    if variable.linkage != "extern" or variable.state_space.startswith("shared"):
        return False
    return reference.name not in names.variables


def _missing_callee(module: ir.Module, names: _Names, instruction: ir.Instruction) -> Iterator[Missing]:
    for operand in instruction.operands:
        if not isinstance(operand, ir.FunctionReference):
            continue
        target = names.functions[operand.name]
        if target.body is not None or _BUILT_IN.get(operand.name) == len(target.parameters):
            continue
        there = ", ".join(f"`{name}`" for name in SERVICES)
        reason = f"without a body there are only {there}"
        yield f"`{operand.name}` has no body, so it can't be called", module.span(instruction), reason


def _parts(operands: tuple[Node, ...]) -> Iterator[Node]:
    """Every operand, and what it consists of, but for registers: nothing can be missing of those."""
    pending: list[object] = list(operands)
    while pending:
        part = pending.pop()
        if isinstance(part, tuple):
            pending.extend(part)
        elif isinstance(part, Node) and not isinstance(part, ir.Register):
            yield part
            pending.extend(getattr(part, name) for name in part.fields)
