"""Instructions that the loop over a body does not take: new opcodes, calls, unusual spellings, and wrong ones."""

from __future__ import annotations

import re
from typing import Any, Final

from ptxlab.ir import Arguments, Instruction
from ptxlab.ir.node import draft
from ptxlab.isa import Jump, Opcode, opcode
from ptxlab.isa.table import heads
from ptxlab.syntax.cursor import END, Cursor
from ptxlab.syntax.errors import ParseError
from ptxlab.syntax.operands import operand_of_text, read_call_operands, read_operands
from ptxlab.syntax.scope import Complicated, Scope

_Instruction = draft(Instruction)

# Opcodes that are spelled well, by their text. Whether they exist is for the checker to say.
OPCODES: Final[dict[str, Opcode]] = {}

_OPCODE = re.compile(r"[a-z]\w*+(?:\.\w++(?:::\w++)*+(?:(?<=::\d):\d++)?+)*+", re.ASCII)  # `.sp::2:4` too
PARTS: Final = re.compile(r"(?:[^,()\[\]{}]|\[[^\[\]]*+\]|\{[^{}]*+\})++")
_CALL = re.compile(r"(?:\(([^()]*)\)\s*,\s*)?([\w$%]+)\s*(?:,\s*\(([^()]*)\)\s*)?(?:,\s*([\w$%]+)\s*)?", re.ASCII)
_NO_MODIFIERS = frozenset((".reg", ".loc", ".pragma", ".entry", ".func", ".file", ".section", ".visible", ".extern"))


def instruction_of_match(match: re.Match[str], scope: Scope) -> Instruction | None:
    """The instruction of a guard, an opcode and a text of operands; None where only the careful reader can decide."""
    guard, word, text = match.groups()
    code = OPCODES.get(word)
    if code is None:
        if _OPCODE.fullmatch(word) is None:
            return None
        code = OPCODES[word] = opcode(word)
    try:
        values: tuple[Any, ...] = ()
        if text and code.jump is Jump.CALL:
            found = _call_operands(text, scope)
            if found is None:
                return None
            values = found
        elif text:
            parts = PARTS.findall(text)
            if ",".join(parts) != text:
                return None
            values = tuple([_operand(part.strip(), scope) for part in parts])
        if guard is None:
            return _Instruction(None, code, values, match.start(2), match.end())
        return _Instruction(scope[guard.strip()], code, values, match.start(1), match.end())
    except Complicated:
        return None


def _operand(text: str, scope: Scope) -> Any:
    try:
        return scope[text]
    except Complicated:
        if "(" in text:
            # In a call it would be a list of arguments, elsewhere an expression: not for the table of texts.
            return operand_of_text(text, scope)
        operand = scope[text] = operand_of_text(text, scope)
        return operand


def _call_operands(text: str, scope: Scope) -> tuple[object, ...] | None:
    match = _CALL.fullmatch(text)
    if match is None or "+" in text:
        return None
    returns, name, arguments, targets = match.groups()
    values: list[Any] = [] if returns is None else [_arguments(returns, scope)]
    values.append(scope[name])
    if arguments is not None:
        values.append(_arguments(arguments, scope))
    if targets is not None:
        values.append(scope[targets])
    return tuple(values)


def _arguments(text: str, scope: Scope) -> Arguments:
    if not text.strip():
        return Arguments(())
    return Arguments(tuple([_operand(part.strip(), scope) for part in text.split(",")]))


# What CUDA C++ calls, and the instruction of PTX.
_OF_CUDA = {
    "__syncthreads": "bar.sync 0;",
    "__syncwarp": "bar.warp.sync 0xffffffff;",
    "__threadfence": "fence.acq_rel.gpu;",
    "__threadfence_block": "fence.acq_rel.cta;",
    "__threadfence_system": "fence.acq_rel.sys;",
    "__trap": "trap;",
}


def _refuse_foreign(cursor: Cursor, word: str, span: tuple[int, int], is_first: bool) -> None:
    """Refuse a call as C++ writes it, and a label without its colon, where the next token shows that it is one."""
    if word in heads():
        return
    if cursor.at("("):
        meant = _OF_CUDA.get(word)
        help = f"write `{meant}`" if meant else "`call` calls a function: `call f, (a, b);`"
        raise ParseError("unexpected-token", f"`{word}(...)` is not PTX", *span, "a call as C++ writes it", help=help)
    begins_line = "\n" in cursor.text[span[1] : cursor.start]
    if is_first and begins_line and cursor.kind == "name" and cursor.value in heads():
        raise ParseError(
            "missing-colon",
            f"expected `:` after the label `{word}`, found {cursor.found}",
            *span,
            "a label has a colon",
            help=f"write `{word}:`",
            repair=(span[1], span[1], ":"),
        )


def read_instruction(cursor: Cursor, scope: Scope) -> Instruction | None:
    """Read an instruction token by token; returns None, with the cursor at the `:`, where it is a label."""
    start = cursor.start
    guard = None
    if cursor.accept("@"):
        negated = cursor.accept("!")
        guard = scope.guard(cursor.name("a predicate register after `@`"), negated)
    if cursor.kind != "name":
        what = "an instruction after the guard" if guard else "an instruction, a directive, a label or `}`"
        cursor.expected(what, help="remove it" if cursor.at(";") else "")
    first = cursor.start, cursor.end
    word = cursor.advance()
    if guard is None and cursor.at(":"):
        return None
    _refuse_foreign(cursor, word, first, guard is None)
    while cursor.value[:1] == "." and cursor.value not in _NO_MODIFIERS and cursor.modifier():
        word += cursor.advance()
    if cursor.kind in (END, "dotted") or cursor.at("}"):
        cursor.expect_semicolon(f"`{word}`")
    code = opcode(word)
    operands = read_call_operands(cursor, scope) if code.jump is Jump.CALL else read_operands(cursor, scope)
    cursor.expect_semicolon(f"`{word}`")
    return _Instruction(guard, code, operands, start, cursor.previous_end)
