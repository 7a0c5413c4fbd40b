"""How the registers of a function are made in Python: by themselves, or as families that loops count through."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ptxlab import ir
from ptxlab.author.convert.comments import TRAILING

IN_A_LINE = 12  # registers that are made together

_NUMBERED = re.compile(r"[%$]?([A-Za-z_]\w*?)(0|[1-9]\d*)")


def bits_of(register: ir.Register) -> str:
    """The class that a register is made as: bits of its width."""
    return "pred" if register.type.kind == "p" else f"b{register.type.width}"


def numbered(registers: Mapping[str, ir.Register]) -> dict[str, tuple[str, int]]:
    """The family and number of each register that has them, by its name in Python: `sum` and 3 of `%sum3`."""
    found: dict[tuple[str, int], str] = {}
    types: dict[str, str] = {}
    for name, register in registers.items():
        match = _NUMBERED.fullmatch(register.name)
        if match is not None and types.setdefault(match[1], bits_of(register)) == bits_of(register):
            found.setdefault((match[1], int(match[2])), name)
    return {name: key for key, name in found.items()}


def declarations(made: dict[str, list[str]], kept: dict[str, tuple[str, int]]) -> Iterator[str]:
    """The registers that are made at the start, those that are kept by numbers as one family."""
    counted: dict[str, list[int]] = {}
    for family, number in kept.values():
        counted.setdefault(family, []).append(number)
    for cls, names in made.items():
        alone = [name for name in names if name not in kept]
        for start in range(0, len(alone), IN_A_LINE):
            chosen = alone[start : start + IN_A_LINE]
            yield f"{', '.join(chosen)} = {f'{cls}.several({len(chosen)})' if len(chosen) > 1 else f'{cls}()'}"
        families: dict[str, list[int]] = {}
        for family, number in (kept[name] for name in names if name in kept):
            families.setdefault(family, []).append(number)
        for family, numbers in families.items():
            if sorted(counted.pop(family)) == list(range(len(numbers))):
                yield f"{family} = {cls}.several({len(numbers)})"
            else:
                yield f"{family} = {{n: {cls}() for n in {_ranges(sorted(numbers))}}}"
    if counted:
        empty = f"{', '.join(sorted(counted))} = {', '.join(['{}'] * len(counted))}"
        yield f"{empty}{TRAILING}# registers by their numbers"


def _ranges(numbers: list[int]) -> str:
    """`range(1, 9)`, `(*range(1, 9), 12)`"""
    parts: list[str] = []
    start = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            stretch = f"range({numbers[start]}, {numbers[end - 1] + 1})"
            parts += [stretch] if end - start > 2 else map(str, numbers[start:end])
            start = end
    if len(parts) == 1 and parts[0].startswith("range"):
        return parts[0]
    shown = [f"*{part}" if part.startswith("range") else part for part in parts]
    return f"({', '.join(shown)}{',' * (len(shown) == 1)})"
