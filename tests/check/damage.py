"""Damaged files: one small change to a PTX file that ptxas accepts, of the kinds that people make.

`mutants(texts, count, seed)` yields them; each says what was done, on which line.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

from ptxlab.isa.targets import TARGETS
from ptxlab.isa.types import TYPES

from ..isa.mutants import akin, words
from . import damage_declarations, damage_text

Line = str
_INSTRUCTION = re.compile(r"^(\s*(?:@!?[\w%$]+\s+)?)([a-z][\w.:]*)(\s+[^;]*)?;(.*)$")
_REGISTER = re.compile(r"%[A-Za-z_]+\d+")


@dataclass(frozen=True)
class Mutant:
    """A damaged file: what was done to which line of which file."""

    name: str
    text: str
    kind: str
    line: int
    before: str
    after: str


def mutants(files: Sequence[tuple[str, str]], count: int, seed: int = 0, only: Sequence[str] = ()) -> Iterator[Mutant]:
    """`count` files with one change each; the kinds of change, or `only` these, take turns."""
    made = tried = 0
    for kind in cycle(only or KINDS):
        for _ in range(100):  # most files have nothing to damage in some ways
            # Each has dice of its own, so that a change of the table changes few mutants.
            mutant = _damage(files, kind, random.Random(f"{seed} {tried}"))
            tried += 1
            if mutant is not None:
                made += 1
                yield mutant
                break
        if made == count:
            return


def _damage(files: Sequence[tuple[str, str]], kind: str, generator: random.Random) -> Mutant | None:
    name, text = generator.choice(files)
    lines = text.split("\n")
    for at in generator.sample(range(len(lines)), min(200, len(lines))):
        changed = KINDS[kind](lines, at, generator)
        if changed is not None and changed != lines[at]:
            after = [*lines[:at], changed, *lines[at + 1 :]]
            return Mutant(name, "\n".join(after), kind, at + 1, lines[at], changed)
    return None


def _opcode_change(change: Callable[[list[str], random.Random], list[str] | None]) -> Callable[..., str | None]:
    def mutate(lines: list[str], at: int, generator: random.Random) -> str | None:
        found = _INSTRUCTION.match(lines[at])
        if not found:
            return None
        parts = change(found[2].split("."), generator)
        return None if parts is None else f"{found[1]}{'.'.join(parts)}{found[3] or ''};{found[4]}"

    return mutate


def _operand_change(
    change: Callable[[list[str], random.Random, list[str]], list[str] | None],
) -> Callable[..., str | None]:
    def mutate(lines: list[str], at: int, generator: random.Random) -> str | None:
        found = _INSTRUCTION.match(lines[at])
        if not found or not found[3]:
            return None
        operands = change(split(found[3]), generator, lines)
        return None if operands is None else f"{found[1]}{found[2]} {', '.join(operands)};{found[4]}"

    return mutate


def split(text: str) -> list[str]:
    """Operands at commas outside of brackets."""
    return [part.strip() for part in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|\([^)]*\)|[^,{\[(])+", text)]


def _drop_modifier(parts: list[str], generator: random.Random) -> list[str] | None:
    if len(parts) < 2:
        return None
    at = generator.randrange(1, len(parts))
    return parts[:at] + parts[at + 1 :]


def _swap_modifiers(parts: list[str], generator: random.Random) -> list[str] | None:
    if len(parts) < 3:
        return None
    at = generator.randrange(1, len(parts) - 1)
    return [*parts[:at], parts[at + 1], parts[at], *parts[at + 2 :]]


def _change_modifier(parts: list[str], generator: random.Random) -> list[str] | None:
    if len(parts) < 2:
        return None
    at = generator.randrange(1, len(parts))
    return [*parts[:at], generator.choice(akin(parts[at])), *parts[at + 1 :]]


def _change_type(parts: list[str], generator: random.Random) -> list[str] | None:
    typed = [at for at, part in enumerate(parts) if part in TYPES]
    if not typed:
        return None
    at = generator.choice(typed)
    common = "u8 u16 u32 u64 s16 s32 s64 f16 f32 f64 b8 b16 b32 b64 b128 pred f16x2 bf16 bf16x2".split()
    return [*parts[:at], generator.choice(common), *parts[at + 1 :]]


def _add_modifier(parts: list[str], generator: random.Random) -> list[str]:
    at = generator.randrange(1, len(parts) + 1)
    return [*parts[:at], generator.choice(words()), *parts[at:]]


def _misspell(parts: list[str], generator: random.Random) -> list[str]:
    at = generator.randrange(len(parts))
    word = parts[at]
    where = generator.randrange(len(word))
    return [*parts[:at], word[:where] + generator.choice("aeioxyz123") + word[where + 1 :], *parts[at + 1 :]]


def _drop_operand(operands: list[str], generator: random.Random, _: list[str]) -> list[str]:
    at = generator.randrange(len(operands))
    return operands[:at] + operands[at + 1 :]


def _double_operand(operands: list[str], generator: random.Random, _: list[str]) -> list[str]:
    at = generator.randrange(len(operands))
    return [*operands[: at + 1], operands[at], *operands[at + 1 :]]


def _swap_operands(operands: list[str], generator: random.Random, _: list[str]) -> list[str] | None:
    if len(operands) < 2:
        return None
    first, second = generator.sample(range(len(operands)), 2)
    changed = list(operands)
    changed[first], changed[second] = changed[second], changed[first]
    return changed


def _change_register(operands: list[str], generator: random.Random, lines: list[str]) -> list[str] | None:
    others = _REGISTER.findall(" ".join(generator.sample(lines, min(40, len(lines)))))
    at = generator.randrange(len(operands))
    found = _REGISTER.search(operands[at])
    if not found or not others:
        return None
    changed = operands[at][: found.start()] + generator.choice(others) + operands[at][found.end() :]
    return [*operands[:at], changed, *operands[at + 1 :]]


def _unknown_register(operands: list[str], generator: random.Random, _: list[str]) -> list[str] | None:
    at = generator.randrange(len(operands))
    found = _REGISTER.search(operands[at])
    if not found:
        return None
    changed = operands[at][: found.start()] + found[0] + "99999" + operands[at][found.end() :]
    return [*operands[:at], changed, *operands[at + 1 :]]


def _constant(operands: list[str], generator: random.Random, _: list[str]) -> list[str]:
    at = generator.randrange(len(operands))
    value = generator.choice(
        ["0", "7", "-1", "1.0", "0f3F800000", "0d3FF0000000000000", "%tid.x", "_", "4096", "nowhere"]
    )
    return [*operands[:at], value, *operands[at + 1 :]]


def _unbracket(operands: list[str], generator: random.Random, _: list[str]) -> list[str] | None:
    bracketed = [at for at, operand in enumerate(operands) if operand.startswith("[")]
    if not bracketed:
        at = generator.randrange(len(operands))
        return [*operands[:at], f"[{operands[at]}]", *operands[at + 1 :]]
    at = generator.choice(bracketed)
    return [*operands[:at], operands[at][1:-1], *operands[at + 1 :]]


def _change_vector(operands: list[str], generator: random.Random, _: list[str]) -> list[str] | None:
    vectors = [at for at, operand in enumerate(operands) if operand.startswith("{")]
    if not vectors:
        return None
    at = generator.choice(vectors)
    inside = [part.strip() for part in operands[at][1:-1].split(",")]
    inside = inside[:-1] if generator.random() < 0.5 else [*inside, inside[0]]
    return [*operands[:at], "{" + ", ".join(inside) + "}", *operands[at + 1 :]]


def _register_width(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = re.search(r"\.reg\s+\.(\w+)", lines[at])
    if not found:
        return None
    other = generator.choice("pred b16 b32 b64 f32 f64 u32 s16 s64 u64 f16".split())
    return lines[at][: found.start(1)] + other + lines[at][found.end(1) :]


def _register_count(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = re.search(r"<(\d+)>", lines[at])
    return None if not found else lines[at].replace(found[0], f"<{max(1, int(found[1]) // 2)}>")


def _change_target(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = re.search(r"\.target\s+(sm_\w+)", lines[at])
    return None if not found else lines[at].replace(found[1], generator.choice(list(TARGETS)))


def _change_version(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = re.match(r"\.version\s+(\S+)", lines[at])
    return (
        None if not found else lines[at].replace(found[1], generator.choice(["7.0", "7.8", "8.0", "6.0", "8.5", "4.2"]))
    )


def _rename_label(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = re.match(r"^\s*([$\w]+):", lines[at]) or re.search(r"\bbra\S*\s+([$\w]+);", lines[at])
    return None if not found else lines[at].replace(found[1], found[1] + "x")


def _drop_character(characters: str) -> Callable[..., str | None]:
    def mutate(lines: list[str], at: int, generator: random.Random) -> str | None:
        places = [place for place, character in enumerate(lines[at]) if character in characters]
        if not places or lines[at].lstrip().startswith("//"):
            return None
        place = generator.choice(places)
        return lines[at][:place] + lines[at][place + 1 :]

    return mutate


def _insert_token(lines: list[str], at: int, generator: random.Random) -> str:
    tokens = re.split(r"(\s+)", lines[at])
    place = generator.randrange(len(tokens) + 1)
    token = generator.choice(
        ["{", "}", ";", ",", "[", "]", "(", ")", "%r1", "1", ".u32", ":", "+", "@", "ret", "|", "!"]
    )
    return "".join([*tokens[:place], f" {token} ", *tokens[place:]])


def _drop_token(lines: list[str], at: int, generator: random.Random) -> str | None:
    tokens = re.findall(r"\s+|[\w.%$:]+|.", lines[at])
    places = [place for place, token in enumerate(tokens) if token.strip()]
    if not places:
        return None
    place = generator.choice(places)
    return "".join([*tokens[:place], *tokens[place + 1 :]])


KINDS: dict[str, Callable[[list[str], int, random.Random], str | None]] = {
    "drop modifier": _opcode_change(_drop_modifier),
    "swap modifiers": _opcode_change(_swap_modifiers),
    "change modifier": _opcode_change(_change_modifier),
    "change type": _opcode_change(_change_type),
    "add modifier": _opcode_change(_add_modifier),
    "misspell": _opcode_change(_misspell),
    "drop operand": _operand_change(_drop_operand),
    "double operand": _operand_change(_double_operand),
    "swap operands": _operand_change(_swap_operands),
    "change register": _operand_change(_change_register),
    "unknown register": _operand_change(_unknown_register),
    "constant": _operand_change(_constant),
    "brackets": _operand_change(_unbracket),
    "vector": _operand_change(_change_vector),
    "register width": _register_width,
    "register count": _register_count,
    "target": _change_target,
    "version": _change_version,
    "label": _rename_label,
    "drop brace": _drop_character("{}"),
    "drop semicolon": _drop_character(";"),
    "drop comma": _drop_character(","),
    "drop line": lambda lines, at, generator: "" if lines[at].strip() else None,
    "double line": lambda lines, at, generator: f"{lines[at]} {lines[at]}" if lines[at].strip() else None,
    "insert token": _insert_token,
    "drop token": _drop_token,
    **damage_declarations.KINDS,
    **damage_text.KINDS,
}
