"""Words that are neither codes of diagnostics nor instructions: special registers, directives, glossary."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlab.explain.instructions import spell_since


def explain_word(word: str) -> str | None:
    """What a special register, a directive or a term of the glossary is; None for another word."""
    return _register(word) or _directive(word) or _term(word)


def known_words() -> Iterator[str]:
    """All of them, for what the user may have meant."""
    from ptxlab import guides
    from ptxlab.isa.directives import DIRECTIVES
    from ptxlab.isa.special_registers import SPECIAL_REGISTERS

    yield from SPECIAL_REGISTERS
    yield from (f".{name}" for name in DIRECTIVES)
    yield from guides.terms()


def _register(word: str) -> str | None:
    from ptxlab.isa.special_registers import COMPONENTS, special_register

    name, _, component = word.partition(".")
    found = special_register(name)
    if found is None or (component and (not found.vector or component not in COMPONENTS)):
        return None
    names = f"{name}.x, {name}.y, {name}.z" if found.vector else name
    text = f"{found.text[0].upper()}{found.text[1:]}. A special register: threads read it and cannot write it."
    example = f"mov.{found.type.name} d, {name}{'.x' if found.vector else ''};  // {names}"
    return f"{text}\n\n```\n{example}\n```\n\nsince {spell_since(found.since)}"


def _directive(word: str) -> str | None:
    from ptxlab.isa.directives import DIRECTIVES

    found = DIRECTIVES.get(word.removeprefix(".")) if word.startswith(".") else None
    if found is None:
        return None
    whose = {"entry": "a kernel", "func": "a device function", "both": "a kernel or a device function"}[found.owner]
    text = f"{found.text} A directive of {whose}, before its body."
    return f"{text}\n\n```\n.{found.name}\n```\n\nsince {spell_since(found.since)}"


def _term(word: str) -> str | None:
    from ptxlab import guides

    known = guides.terms()
    asked = " ".join(word.lower().split())
    names = (asked, asked.removesuffix("s"), asked.removesuffix("es"), f".{asked}", asked.lstrip(".@%"))
    return next((known[name] for name in names if name in known), None)
