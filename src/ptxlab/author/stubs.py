"""`python -m ptxlab.author.stubs`: types for editors, so that `ptx.fma.` completes and shows the manual's form.

The words that may follow depend only on which forms are still possible and how far each has been read. Spellings that
agree in this share one class, so that all of PTX takes some thousand classes, where each spelling of its own would take
millions. The file is made from the table and written beside the module that it describes; it is not kept in the
repository, so that an instruction is still declared in one place.

An instruction returns a register of the type that it names, or with `out=` what is given there: one signature, whose
type variable is that of `out` and has the register as its default.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from inspect import get_annotations, signature
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from ptxlab.author import values
from ptxlab.author.emit import result_type
from ptxlab.author.instructions import Ptx
from ptxlab.author.spelling import name_of
from ptxlab.isa.form import Form
from ptxlab.isa.operand import Expected, expect_results
from ptxlab.isa.special_registers import SPECIAL_REGISTERS
from ptxlab.isa.table import forms_of, heads


class Reading(NamedTuple):
    """How far a form of an instruction has been read."""

    number: int  # of the form
    read: int  # the words of its name and the slots gone by
    chosen: frozenset[tuple[str, str]]  # the words of those slots that say what the result is


State = frozenset[Reading]
# What a form returns, for each choice of the words that say it.
Results = dict[frozenset[tuple[str, str]], str]
PAIR = " or a pair"  # after the type of a result that `pair=True` asks a second one with
# Among so many spellings of a form, each slot that says what the result is makes a difference.
SPELLINGS = 300
REGISTERS = frozenset(name for name, one in vars(values).items() if isinstance(one, type) and hasattr(one, "type"))

HEAD = '''"""Types of `ptxlab.author.ptx` for editors, made by `python -m ptxlab.author.stubs`."""

from contextlib import AbstractContextManager
from typing import Any, Literal, overload

from typing_extensions import TypeVar

from ptxlab.author.values import {registers}
{tools}

{variables}

class Components:
    """A special register of several components."""

    x: u32
    y: u32
    z: u32
'''


def stubs() -> str:
    """The whole file."""
    tools = {tool.__name__: tool.__module__ for tool in map(_class, vars(Ptx).values()) if tool is not None}
    tools["Scalar"] = values.__name__
    imports = [f"from {tools[name]} import {name}" for name in sorted(tools)]
    parts = []
    first: dict[str, str] = {}
    variables: dict[str, str] = {}
    for head in sorted(heads()):
        classes, start = _classes(head, variables)
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
    declared = [f'{variable} = TypeVar("{variable}", default={type})' for type, variable in variables.items()]
    registers = ", ".join(sorted(REGISTERS))
    head = HEAD.format(registers=registers, tools="\n".join(imports), variables="\n".join(declared))
    return "\n".join([head, *parts])


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


def _classes(head: str, variables: dict[str, str]) -> tuple[list[str], str]:
    """The classes of one instruction, and the name of the one that its first word has."""
    forms = forms_of(head)
    deciding, results = _results(forms)
    start: State = frozenset(Reading(number, 1, frozenset()) for number in range(len(forms)))
    names: dict[State, str] = {}
    pending = [start]
    lines: list[str] = []
    while pending:
        state = pending.pop()
        if state in names:
            continue
        names[state] = f"_{head}_{len(names)}"
        pending += _edges(forms, deciding, state).values()
    for state, name in names.items():
        edges = _edges(forms, deciding, state)
        lines.append(f"class {name}:")
        lines += [f"    {name_of(word)}: {names[target]}" for word, target in edges.items() if _is_name(word)]
        lines += _call(forms, results, state, variables)
        lines += _indexed({word: names[target] for word, target in edges.items() if name_of(word) != word})
    return lines, names[start]


def _results(forms: tuple[Form, ...]) -> tuple[frozenset[str], list[Results]]:
    """The slots of an instruction that say what it returns, and what each form returns for each of their words."""
    found = [[(chosen, _returns(form, chosen)) for chosen in islice(form.spellings(), SPELLINGS)] for form in forms]
    deciding: set[str] = set()
    for form, returned in zip(forms, found, strict=True):
        kept = [slot.name for slot in form.slots]
        for slot in form.slots:
            rest = [name for name in kept if name != slot.name]
            seen: dict[frozenset[tuple[str, str]], str] = {}
            if all(seen.setdefault(_words(chosen, rest), type) == type for chosen, type in returned):
                kept = rest
        deciding.update(kept)
    slots = sorted(deciding)
    return frozenset(slots), [{_words(chosen, slots): type for chosen, type in returned} for returned in found]


def _words(chosen: Mapping[str, str | None], slots: list[str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, word) for name in slots if (word := chosen.get(name)) is not None)


def _returns(form: Form, chosen: Mapping[str, str | None]) -> str:
    """The type of what a form with these modifiers returns."""
    written = [e for e in expect_results(form, form.modifiers(chosen)) if e.kind != "sink"]
    if any(e.optional for e in written):
        return "Any"
    seconds = [e.second for e in written if e.second is not None and not e.second_optional]
    types = [_register(e) for e in (*written, *seconds)]
    if any(e.second_optional for e in written):
        return f"{types[0]}{PAIR}" if len(types) == 1 else "Any"
    return "None" if not types else types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"


def _register(expected: Expected) -> str:
    """The type of the registers for one result."""
    if expected.type is None:
        return "Any"
    name = result_type(expected).name
    name = name if name in REGISTERS else "Scalar"
    return f"tuple[{', '.join([name] * expected.count)}]" if expected.count else name


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


def _edges(forms: tuple[Form, ...], deciding: frozenset[str], state: State) -> dict[str, State]:
    """The words that may follow, each with where it leads."""
    edges: dict[str, set[Reading]] = {}
    for number, read, chosen in state:
        form = forms[number]
        length = len(form.name)
        if read < length:
            edges.setdefault(form.name[read], set()).add(Reading(number, read + 1, chosen))
            continue
        for slot_number, slot in enumerate(form.slots[read - length :], read - length):
            for word in slot.values:
                known = chosen | {(slot.name, word)} if slot.name in deciding else chosen
                edges.setdefault(word, set()).add(Reading(number, length + slot_number + 1, known))
            if not slot.optional:
                break
    return {word: frozenset(edges[word]) for word in sorted(edges)}


def _complete(forms: tuple[Form, ...], state: State) -> list[Reading]:
    """The forms that may end here."""
    return [
        reading
        for reading in sorted(state, key=lambda reading: (reading.number, reading.read))
        if reading.read >= len(forms[reading.number].name)
        and all(slot.optional for slot in forms[reading.number].slots[reading.read - len(forms[reading.number].name) :])
    ]


def _call(forms: tuple[Form, ...], results: list[Results], state: State, variables: dict[str, str]) -> list[str]:
    """The call, for the forms that are complete: their syntax is its documentation."""
    readings = _complete(forms, state)
    if not readings:
        return []
    complete = [forms[reading.number] for reading in readings]
    operands = {_operands(form) for form in complete}
    given = operands.pop() if len(operands) == 1 else "*operands: Any"
    star = "" if "*" in given else "*, "
    given = f"{given}, " if given else ""
    text = "\n        ".join(dict.fromkeys(f"{form.syntax}: {form.text.partition(chr(10))[0]}" for form in complete))
    types = {type for number, _, chosen in readings if (type := results[number].get(chosen)) is not None}
    # As `emit.plan` does: the form that writes the fewest registers is meant.
    fewest = [type for type in types if type.count(",") == min(other.count(",") for other in types)]
    type = fewest[0] if len(fewest) == 1 else "Any"
    single = type.removesuffix(PAIR)
    out = type if type in ("Any", "None") else variables.setdefault(single, f"_T{len(variables)}")
    start = f"    def __call__(self, {given}{star}out: {out} = ..., when: Any = ..., pair: "
    if type == single:
        return [f"{start}bool = ...) -> {out}:", f'        """{text}"""']
    pair = start.replace(f"out: {out}", "out: Any")
    return [
        "    @overload",
        f"{start}Literal[False] = ...) -> {out}:",
        f'        """{text}"""',
        "    @overload",
        f"{pair}Literal[True]) -> Any: ...",
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
