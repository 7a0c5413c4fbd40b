"""`python -m ptxlab.author.stubs`: types for editors, so that `ptx.fma.` completes and shows the manual's form.

The words that may follow depend only on which forms are still possible and how far each has been read. Spellings that
agree in this share one class, so that all of PTX takes some thousand classes, where each spelling of its own would take
millions. The file is made from the table and written beside the module that it describes; it is not kept in the
repository, so that an instruction is still declared in one place.

What an instruction returns is `Any`: without `out=` a register of the type it names, with it that register, of any type
that fits. Two signatures for each would be exact, but a wrong call would no longer name the operand that is missing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import get_annotations, signature
from itertools import pairwise
from pathlib import Path
from typing import Any

from ptxlab.author.instructions import Ptx
from ptxlab.author.spelling import name_of
from ptxlab.isa.form import Form
from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.isa.table import forms_of, heads

# How far each form of an instruction has been read: its number, and the words of its name and the slots gone by.
State = frozenset[tuple[int, int]]

HEAD = '''"""Types of `ptxlab.author.ptx` for editors, made by `python -m ptxlab.author.stubs`."""

from contextlib import AbstractContextManager
from typing import Any, Literal, overload

from ptxlab.author.values import {registers}
{tools}

class Components:
    """A special register of several components."""

    x: u32
    y: u32
    z: u32
'''


def stubs() -> str:
    """The whole file."""
    registers = sorted({register.type.name for register in SPECIAL_REGISTERS.values()})
    tools = {tool.__name__: tool.__module__ for tool in map(_class, vars(Ptx).values()) if tool is not None}
    imports = [f"from {tools[name]} import {name}" for name in sorted(tools)]
    parts = [HEAD.format(registers=", ".join(registers), tools="\n".join(imports))]
    first: dict[str, str] = {}
    for head in sorted(heads()):
        classes, start = _classes(head)
        parts += classes
        first[head] = start
    parts.append("class Ptx:")
    parts += [f"    {line}" for line in _tools()]
    for name, register in SPECIAL_REGISTERS.items():
        parts.append(f"    {name[1:]}: {'Components' if register.vector else register.type.name}")
        parts.append(f'    """{register.text}"""')
    parts += [f"    {name_of(head)}: {start}" for head, start in first.items()]
    parts.append("    def __getitem__(self, words: str) -> Any: ...")
    parts += ["", "ptx: Ptx", ""]
    return "\n".join(parts)


def _tools() -> Iterator[str]:
    for name, tool in vars(Ptx).items():
        if isinstance(tool, staticmethod):
            parameters = ", ".join(_parameter(parameter) for parameter in signature(tool.__func__).parameters.values())
            returned = (
                "AbstractContextManager[None]" if name in ("when", "otherwise", "loop", "block") else _returned(tool)
            )
            yield "@staticmethod"
            yield f"def {name}({_starred(parameters, tool)}) -> {returned}:"
            yield f'    """{(tool.__doc__ or "").strip().splitlines()[0]}"""'


def _returned(tool: Any) -> str:
    """What a tool returns: nothing, an object of ours, or what only the call determines."""
    found = _class(tool)
    if found is not None:
        return found.__name__
    return "None" if signature(tool.__func__).return_annotation == "None" else "Any"


def _class(tool: object) -> type | None:
    """The class of what a tool returns, where it is one of ours."""
    if not isinstance(tool, staticmethod):
        return None
    found = get_annotations(tool.__func__, eval_str=True)["return"]
    return found if isinstance(found, type) and found.__module__.startswith("ptxlab.author.") else None


def _parameter(parameter: Any) -> str:
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else " = ..."
    return f"{star}{parameter.name}: Any{default}"


def _starred(parameters: str, tool: Any) -> str:
    """The parameters with a `*` before those that only keywords give."""
    given = list(signature(tool.__func__).parameters.values())
    if any(p.kind is p.VAR_POSITIONAL for p in given) or all(p.kind is not p.KEYWORD_ONLY for p in given):
        return parameters
    at = next(number for number, p in enumerate(given) if p.kind is p.KEYWORD_ONLY)
    words = parameters.split(", ")
    return ", ".join([*words[:at], "*", *words[at:]])


def _classes(head: str) -> tuple[list[str], str]:
    """The classes of one instruction, and the name of the one that its first word has."""
    forms = forms_of(head)
    start: State = frozenset((number, 1) for number in range(len(forms)))
    names: dict[State, str] = {}
    pending = [start]
    lines: list[str] = []
    while pending:
        state = pending.pop()
        if state in names:
            continue
        names[state] = f"_{head}_{len(names)}"
        pending += _edges(forms, state).values()
    for state, name in names.items():
        edges = _edges(forms, state)
        lines.append(f"class {name}:")
        lines += [f"    {name_of(word)}: {names[target]}" for word, target in edges.items() if _is_name(word)]
        lines += _call(forms, state)
        lines += _indexed({word: names[target] for word, target in edges.items() if name_of(word) != word})
    return lines, names[start]


def _indexed(edges: dict[str, str]) -> Iterator[str]:
    """`ptx.ld["global"]`: the words that are not names of Python each have a type, any other text is `Any`."""
    overload = "    @overload" if edges else ""
    for word, target in edges.items():
        yield overload
        yield f'    def __getitem__(self, words: Literal["{word}"]) -> {target}: ...'
    yield from filter(None, [overload])
    yield "    def __getitem__(self, words: str) -> Any: ..."


def _is_name(word: str) -> bool:
    return name_of(word).isidentifier()


def _edges(forms: tuple[Form, ...], state: State) -> dict[str, State]:
    """The words that may follow, each with where it leads."""
    edges: dict[str, set[tuple[int, int]]] = {}
    for number, read in state:
        form = forms[number]
        length = len(form.name)
        if read < length:
            edges.setdefault(form.name[read], set()).add((number, read + 1))
            continue
        for slot_number, slot in enumerate(form.slots[read - length :], read - length):
            for word in slot.values:
                edges.setdefault(word, set()).add((number, length + slot_number + 1))
            if not slot.optional:
                break
    return {word: frozenset(edges[word]) for word in sorted(edges)}


def _call(forms: tuple[Form, ...], state: State) -> list[str]:
    """The call, for the forms that are complete: their syntax is its documentation."""
    complete = [
        forms[number]
        for number, read in sorted(state)
        if read >= len(forms[number].name)
        and all(slot.optional for slot in forms[number].slots[read - len(forms[number].name) :])
    ]
    if not complete:
        return []
    operands = {_operands(form) for form in complete}
    given = operands.pop() if len(operands) == 1 else "*operands: Any"
    star = "" if "*" in given else "*, "
    given = f"{given}, " if given else ""
    text = "\n        ".join(dict.fromkeys(f"{form.syntax}: {form.text.partition(chr(10))[0]}" for form in complete))
    return [
        f"    def __call__(self, {given}{star}out: Any = ..., when: Any = ..., pair: bool = ...) -> Any:",
        f'        """{text}"""',
    ]


def _operands(form: Form) -> str:
    """The operands that are read, by their names; those that may be left out have a default."""
    names = [
        (f"{operand.name}_" if operand.name in ("in", "is", "self") else operand.name, operand.optional)
        for operand in form.operands
        if operand.is_address or operand.name not in form.writes
    ]
    if any(optional and not later for (_, optional), (_, later) in pairwise(names)):
        return "*operands: Any"  # an optional operand precedes a required one
    return ", ".join(f"{name}: Any{' = ...' if optional else ''}" for name, optional in names)


def main() -> None:
    """Write the file beside the module, or to the path given."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("instructions.pyi")
    path.write_text(stubs(), encoding="utf-8")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
