"""Instructions made from the table: each form's spellings, with operands that fit, in kernels that ptxas can judge."""

import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from math import prod

from ptxlab.isa.form import Form
from ptxlab.isa.operand import Expected, expect
from ptxlab.isa.selectors import SELECTORS
from ptxlab.isa.types import TYPES, Type

Choice = dict[str, str | None]


def sample_choices(form: Form, most: int = 64, seed: int = 0) -> list[Choice]:
    """All choices of modifiers if there are few, else a sample with each value of each modifier."""
    return list(_sampled(form, most, seed))


@cache
def _sampled(form: Form, most: int, seed: int) -> list[Choice]:
    if prod(len(slot.values) + slot.optional for slot in form.slots) <= 4 * most:
        every = list(form.spellings())
        if len(every) <= most:
            return every
    generator = random.Random(f"{form.syntax}{seed}")
    slots = [(slot.name, slot.optional, list(slot.values)) for slot in form.slots]
    is_legal = _legality(form)
    chosen: dict[str, Choice] = {}
    for slot in form.slots:
        for value in [*slot.values, *([None] if slot.optional else [])]:
            if any(choice[slot.name] == value for choice in chosen.values()):
                continue
            for _ in range(400):
                choice = _random_choice(slots, generator) | {slot.name: value}
                if is_legal(choice):
                    chosen[form.spell(choice)] = choice
                    break
    for _ in range(20 * most):
        if len(chosen) >= most:
            break
        choice = _random_choice(slots, generator)
        if is_legal(choice):
            chosen[form.spell(choice)] = choice
    return list(chosen.values())


def _random_choice(slots: list[tuple[str, bool, list[str]]], generator: random.Random) -> Choice:
    return {
        name: None if optional and generator.random() < 0.5 else generator.choice(values)
        for name, optional, values in slots
    }


def _legality(form: Form) -> Callable[[Choice], bool]:
    """Whether a choice is legal; where few are, the same one is met again and again."""
    known: dict[tuple[str | None, ...], bool] = {}

    def is_legal(choice: Choice) -> bool:
        key = tuple(choice.values())
        if key not in known:
            known[key] = form.where is None or form.where(form.modifiers(choice)) is None
        return known[key]

    return is_legal


def instructions(form: Form, choice: Choice) -> Iterator[str]:
    """The instruction with this choice of modifiers: without and with its optional operands."""
    expected = expect(form, form.modifiers(choice))
    opcode = form.spell(choice)
    counts = sorted({sum(not e.optional for e in expected), len(expected)})
    for count in counts:
        spare = count - sum(not e.optional for e in expected)
        taken = []
        for e in expected:
            if e.optional and spare <= 0:
                continue
            spare -= e.optional
            taken.append(e)
        for pairs in {False, any(e.select or (e.second is not None and e.second_optional) for e in taken)}:
            operands = ", ".join(_example(e, pairs, first) for e, first in zip(taken, _numbers(taken), strict=True))
            if form.name[0] == "st":  # a kernel's own parameters cannot be written
                operands = operands.replace("[prm]", "[out]")
            yield f"{opcode} {operands};" if operands else f"{opcode};"


def _numbers(expected: list[Expected]) -> Iterator[int]:
    """The first register of each operand: results overlap with no vector, because ptxas minds that in a few cases."""
    taken = 0
    for e in expected:
        yield taken if e.role == "write" or e.count else 0
        taken += max(1, e.count) if e.role == "write" else 0


def _register(type: Type, number: int = 0) -> str:
    name = type.name if type.declarable else f"b{max(8, type.width)}"
    return f"%{name}_{number}"


def _example(expected: Expected, pairs: bool, first: int = 0) -> str:
    match expected.kind:
        case "address":
            inside = [_base(expected), *(_example(e, False) for e in expected.inner)]
            return f"[{', '.join(inside)}]"
        case "immediate":
            return str(expected.allowed[0] if expected.allowed is not None else 1)
        case "sink":
            return "_"
        case "label":
            return "L"
        case "targets":
            return "ts"
        case "opaque":
            return "sampler"
        case "function":
            return "fn"
        case "arguments":
            return "()"
        case "prototype":
            return "pt"
    assert expected.type is not None
    if expected.count:
        vector = "{" + ", ".join(_register(expected.type, first + number) for number in range(expected.count)) + "}"
        return f"{vector}|%pred_1" if expected.second is not None else vector
    if expected.second is not None and (pairs or not expected.second_optional):
        assert expected.second.type is not None
        return f"{_register(expected.type)}|{_register(expected.second.type, 1)}"
    if expected.select and pairs:
        return f"{_register(expected.type)}.{max(SELECTORS[expected.select])}"
    return _register(expected.type, first)


def _base(expected: Expected) -> str:
    if expected.type is not None and expected.type.kind == "o":
        return {"texref": "texture", "surfref": "surface"}.get(expected.type.name, "sampler")
    match (expected.space or "").partition("::")[0]:
        case "param":
            return "prm"
        case "const":
            return "cst"
    return "%b32_0" if expected.type and expected.type.width == 32 else "%b64_0"


def module(
    lines: list[str], version: tuple[int, int], target: str, together: bool = False
) -> tuple[str, dict[int, int]]:
    """A file with one kernel an instruction, or all in one, and which line holds which instruction.

    Only what an instruction uses is declared, because old versions of PTX lack many a type and directive.
    """
    used = " ".join(lines)
    mode = ", texmode_independent" if re.search(r"\bsampler\b", used) else ""
    text = [f".version {version[0]}.{version[1]}", f".target {target}{mode}"]
    if version >= (2, 3):
        text.append(".address_size 64")
    for name, kind in (("texture", "texref"), ("sampler", "samplerref"), ("surface", "surfref")):
        if re.search(rf"\b{name}\b", used):
            text.append(f".tex .u32 {name};" if version < (1, 5) else f".global .{kind} {name};")
    if re.search(r"\bcst\b", used):
        text.append(".const .align 16 .b8 cst[64];")
    if re.search(r"\bfn\b", used):
        text.append(".func fn() { ret; }")
    where = {}
    for first, kernel in enumerate([lines] if together else [[line] for line in lines]):
        body = " ".join(kernel)
        parameter = ".param .align 16 .b8 prm[64]" if re.search(r"\bprm\b", body) else ""
        opening = f"({parameter}) {{" if version >= (1, 4) else f"{{ {parameter and parameter + ';'}"
        text.append(f".entry k{first}{opening} {_declarations(body)}")
        for number, line in enumerate(kernel, first):
            text.append(line)
            where[len(text)] = number
        text.append("L: ret; }")
    return "\n".join(text) + "\n", where


def _declarations(line: str) -> str:
    highest: dict[str, int] = {}
    for name, number in re.findall(rf"%({'|'.join(TYPES)})_(\d+)\b", line):
        highest[name] = max(highest.get(name, 0), int(number))
    found = [f".reg .{name} %{name}_<{number + 1}>;" for name, number in highest.items()]
    if re.search(r"\bts\b", line):
        found.append("ts: .branchtargets L;")
    if re.search(r"\bpt\b", line):
        found.append("pt: .callprototype _ ();")
    if re.search(r"\bout\b", line):
        found.append(".param .align 16 .b8 out[64];")
    return " ".join(found)
