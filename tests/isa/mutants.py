"""Damaged instructions: one change to the operands or modifiers of a good one, judged by the table and by ptxas."""

import random
import re
from collections.abc import Iterator
from functools import cache

from ptxlab.isa.form import Form
from ptxlab.isa.opcode import Match, opcode
from ptxlab.isa.operand import Expected, Shape
from ptxlab.isa.table import forms
from ptxlab.isa.targets import Version, target_named
from ptxlab.isa.types import TYPES

from .sample import instructions, sample_choices

REGISTERS = "pred b8 b16 u16 s16 f16 b32 u32 s32 f32 f16x2 b64 u64 s64 f64 b128".split()
OTHERS = [
    "5",
    "-1",
    "1.5",
    "0f3f800000",
    "%tid.x",
    "_",
    "cst",
    "!%pred_0",
    "{%b32_0, %b32_1}",
    "[%b64_0]",
    "%f32_1|%pred_1",
    "%b32_0.b0",
    "%u32_0.h10",
    "%u32_0.b3210",
    "-%s32_0",
]
BASES = [
    "%b32_0",
    "%u64_0",
    "%f32_0",
    "%pred_0",
    "cst",
    "16",
    "%b64_0+4",
    "%s64_0+-8",
    "%b128_0",
]  # no 16 bits: ptxas then takes 32 bits too


def split_operands(text: str) -> list[str]:
    """The operands of an instruction, at commas outside brackets."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += character in "{[("
        depth -= character in "}])"
        if character == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if parts or last else []


def shape_of(text: str) -> Shape:
    """The shape of an operand as these tests write it (see ptxlab/isa/operand.py)."""
    if text.startswith("["):
        base, *rest = split_operands(text[1:-1])
        first = shape_of(base.partition("+")[0].strip())
        if "+" in base and rest:  # a syntax error to ptxas
            first = ("+", first)
        return ("[", first, *(shape_of(part) for part in rest))
    if text.startswith("{") and text.endswith("}"):
        return ("{", *(shape_of(part) for part in split_operands(text[1:-1])))
    if text.startswith("("):
        return ("(", *(shape_of(part) for part in split_operands(text[1:-1])))
    if text.startswith("!"):
        return ("!", shape_of(text[1:]))
    if "|" in text:
        first, second = text.split("|")
        return ("|", shape_of(first), shape_of(second))
    if found := re.fullmatch(r"%(\w+)_\d+", text):
        return found[1]
    if found := re.fullmatch(r"(%\w+_\d+)\.([bh]\d+)", text):
        return (".", shape_of(found[1]), found[2])
    if text.startswith("-%"):
        return ("-", shape_of(text[1:]))
    if re.fullmatch(r"-?\d+", text):
        return "#int"
    if re.fullmatch(r"-?\d+\.\d+|0[fd]\w+", text):
        return "#f32" if text.startswith("0f") else "#float"
    return _NAMES.get(text, text)


_NAMES = {
    "%tid.x": "%u16|u32",
    "texture": "&texref",
    "sampler": "&samplerref",
    "surface": "&surfref",
    "cst": "&const",
    "prm": "&param",
    "out": "&param",
    "L": "@label",
    "ts": "@targets",
    "fn": "@function",
    "pt": "@prototype",
}


def is_legal(line: str, version: Version, target: str) -> bool:
    """What the table says of an instruction."""
    spelled, _, rest = line.rstrip(";").partition(" ")
    found = opcode(spelled)
    if not found.candidates or found.candidates[0].violation is not None:
        return False
    operands = split_operands(rest)
    match = found.match(tuple(shape_of(operand) for operand in operands))
    if not isinstance(match, Match) or match.candidate.unavailable(version, target_named(target)):
        return False
    return not match.limited or all(_allowed(e, o) for e, o in zip(match.expected, operands, strict=True))


def _allowed(expected: Expected, operand: str) -> bool:
    if expected.inner:
        inside = split_operands(operand[1:-1])[operand.startswith("[") :]
        return all(_allowed(e, o) for e, o in zip(expected.inner, inside, strict=True))
    return expected.allowed is None or shape_of(operand) != "#int" or int(operand) in expected.allowed


def mutants(form: Form, most: int, seed: int = 0) -> Iterator[str]:
    """Changed instructions of a form."""
    generator = random.Random(f"{form.syntax} {seed}")
    choices = sample_choices(form, 12, seed)
    for _ in range(most):
        line = generator.choice(list(instructions(form, generator.choice(choices))))
        spelled, _, rest = line.rstrip(";").partition(" ")
        operands = split_operands(rest)
        parts = spelled.split(".")
        if operands and generator.random() < 0.7:
            operands = _damage_operands(operands, generator)
        else:
            parts = _damage_modifiers(parts, generator)
        yield f"{'.'.join(parts)} {', '.join(operands)}".strip() + ";"


def _damage_operands(operands: list[str], generator: random.Random) -> list[str]:
    at = generator.randrange(len(operands))
    operand = operands[at]
    kind = generator.random()
    if kind < 0.08:
        return operands[:at] + operands[at + 1 :]
    if kind < 0.16:
        return [*operands[: at + 1], operand, *operands[at + 1 :]]
    if operand.startswith("["):
        inside = split_operands(operand[1:-1])
        if len(inside) > 1 and generator.random() < 0.5:
            inside = _damage_operands(inside, generator)
        else:
            inside[0] = generator.choice(BASES)
        changed = f"[{', '.join(inside)}]"
    elif operand.startswith("{"):
        inside = split_operands(operand[1:-1])
        change = generator.random()
        if change < 0.3:
            inside = inside[:-1] or inside
        elif change < 0.6:
            inside.append(inside[0])
        elif change < 0.9:
            inside[generator.randrange(len(inside))] = _other_scalar(generator)
        changed = "{" + ", ".join(inside) + "}" if change < 0.9 else inside[0]
    else:
        changed = _other_scalar(generator) if generator.random() < 0.7 else generator.choice(OTHERS)
    return [*operands[:at], changed, *operands[at + 1 :]]


def _other_scalar(generator: random.Random) -> str:
    return f"%{generator.choice(REGISTERS)}_{generator.randrange(3)}"


def _damage_modifiers(parts: list[str], generator: random.Random) -> list[str]:
    at = generator.randrange(1, len(parts) + 1)
    match generator.randrange(4):
        case 0 if at < len(parts):
            return parts[:at] + parts[at + 1 :]
        case 1 if at < len(parts):
            return [*parts[:at], parts[at], *parts[at:]]
        case 2 if at < len(parts):
            return [*parts[:at], generator.choice(akin(parts[at])), *parts[at + 1 :]]
    return [*parts[:at], generator.choice(words()), *parts[at:]]


def akin(part: str) -> list[str]:
    """Words that could be in the same place in some instruction."""
    if part in TYPES:
        return list(TYPES)
    found = sorted({v for form in forms() for slot in form.slots if part in slot.values for v in slot.values} - {part})
    return found or words()


@cache
def words() -> list[str]:
    """Every modifier of the table."""
    return sorted({value for form in forms() for slot in form.slots for value in slot.values})


@cache
def strays() -> list[str]:
    """Every modifier of the table, those that a form always has, too."""
    return sorted({*words(), *(word for form in forms() for word in form.name[1:])})
