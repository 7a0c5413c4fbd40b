"""What an opcode is, and which words may continue it."""

from __future__ import annotations

from itertools import groupby

from ptxlab.author.spelling import following
from ptxlab.editor.document import Document
from ptxlab.isa import opcode
from ptxlab.isa.form import Form
from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.isa.table import forms_of, heads

_STARTS = (";", "{", "}", ":", ")")
_SHOWN = 6  # forms in a hover


def opcode_at(document: Document, number: int) -> tuple[int, int] | None:
    """The first and the last word of the opcode that a word is in, if it is in one."""
    words, first = document.words, number
    while first > 0 and words[first].kind == "modifier" and words[first - 1].end == words[first].start:
        first -= 1
    if words[first].text not in heads() or not _starts_statement(document, first):
        return None
    last = first
    while last + 1 < len(words) and words[last + 1].kind == "modifier" and words[last + 1].start == words[last].end:
        last += 1
    return first, last


def _starts_statement(document: Document, number: int) -> bool:
    """Whether a word follows the end of a statement, a label or a guard, `@!%p`."""
    words, at = document.words, number - 1
    if at >= 0 and words[at].kind == "name" and at > 0 and words[at - 1].text in ("@", "!"):
        at -= 2 if words[at - 1].text == "@" else 3
    return at < 0 or words[at].text in _STARTS


def describe_opcode(text: str) -> str | None:
    """What the instruction does and how it is spelled, as Markdown; that of the forms which the words can still be."""
    complete = [candidate.form for candidate in opcode(text).candidates]
    forms = complete or forms_within(text) or forms_within(text.partition(".")[0])
    parts, count = [], 0
    for purpose, group in groupby(forms, key=lambda form: form.text):
        shown = list(group)[: _SHOWN - count]
        if not shown:
            break
        count += len(shown)
        syntax = "\n".join(f"{form.syntax};  // since {form.since}" for form in shown)
        parts.append(f"{purpose}\n\n```ptx\n{syntax}\n```")
    return "\n\n".join(parts) or None


def forms_within(text: str) -> list[Form]:
    """The forms that have all the words of an unfinished opcode."""
    head, *words = text.split(".")
    if head not in heads():
        return []
    return [form for form in forms_of(head) if all(word in _words(form) for word in words)]


def _words(form: Form) -> set[str]:
    return {*form.name, *(value for slot in form.slots for value in slot.values)}


def continuations(text: str) -> list[str]:
    """The modifiers that may follow the start of an opcode, `ld.global`."""
    return following(text, tuple(forms_within(text)))


def describe_special(name: str) -> str | None:
    """What a special register is, as Markdown."""
    found = SPECIAL_REGISTERS.get(name)
    if found is None:
        return None
    parts = f", {found.vector} components" if found.vector else ""
    return f"```ptx\n{name}  // .{found.type.name}{parts}, since {found.since}\n```\n{found.text}"
