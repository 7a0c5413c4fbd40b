"""Damage to any line of a file: comments, quotes, numbers, vectors, guards, the header, lines that are there twice.

Each kind takes the lines of a file and the number of one, and returns that line changed, or None where it has nothing
to change. `KINDS` lists them, for `damage.py`.
"""

import random
import re
from collections.abc import Callable

Damage = Callable[[list[str], int, random.Random], str | None]

NUMBER = re.compile(r"(?<![\w.%$])(?:0[xXfFdD][0-9a-fA-F]+|\d+)(?![\w.])")


def code(line: str) -> str:
    return line.partition("//")[0]


def replace(line: str, found: re.Match[str] | None, text: str, group: int | str = 0) -> str | None:
    return None if found is None else line[: found.start(group)] + text + line[found.end(group) :]


def any_match(pattern: re.Pattern[str], line: str, generator: random.Random) -> re.Match[str] | None:
    found = list(pattern.finditer(code(line)))
    return generator.choice(found) if found else None


def _comment(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    if not line.strip():
        return None
    at = generator.randrange(len(line) + 1)
    mark = generator.choice(
        ["/*", "//", "/* a comment */", "*/", "/", "/**/", "/* // */", "# a comment", "/* /* */", "/*/"]
    )
    return line[:at] + mark + line[at:]


def _quote(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    quotes = [at for at, character in enumerate(line) if character == '"']
    if not quotes:
        if not line.strip() or generator.random() < 0.8:
            return None
        at = generator.randrange(len(line) + 1)
        return line[:at] + '"' + line[at:]
    at = generator.choice(quotes)
    return line[:at] + generator.choice(["", "'", '""', '\\"', '" "', '"\n']) + line[at + 1 :]


def _number(lines: list[str], at: int, generator: random.Random) -> str | None:
    found = any_match(NUMBER, lines[at], generator)
    values = (
        "0 1 -1 08 0x 0xFG 12ab 1e5 1. .5 1.5.2 4294967296 18446744073709551616 0f3F80 0f3F800000 0d3FF 1U 1u 1L 0b12 "
        "0b101 +1 --1 1+1 (1) (1 ~0 !1 1<<3 1/0 1? 1?2:3 WARP_SZ 1_000 017 0X1F 1.0f 'a' $ -0"
    ).split()
    return replace(lines[at], found, generator.choice(values))


def _element(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    found = any_match(re.compile(r"\{([^{};]+)\}"), line, generator)
    if found is None or "=" in line:
        return None
    inside = [part.strip() for part in found[1].split(",")]
    spot = generator.randrange(len(inside))
    nearby = re.findall(r"%[A-Za-z_]+\d+", " ".join(generator.sample(lines, min(60, len(lines))))) or ["%r1"]
    others = [
        *(generator.choice(nearby) for _ in range(8)),
        "0",
        "_",
        "1.0",
        "%tid.x",
        "nowhere",
        "{%r1, %r2}",
        "[%r1]",
        "",
    ]
    inside[spot] = generator.choice(others)
    return replace(line, found, ", ".join(inside), 1)


def _guard(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    found = re.match(r"^(\s*)(@!?\s*[\w%$]+)?\s*(?=[a-z][\w.:]*[\s;])", line)
    if found is None or ";" not in line:
        return None
    guards = [
        "",
        "@%p1 ",
        "@!%p1 ",
        "@%r1 ",
        "@1 ",
        "@ ",
        "@!! ",
        "@%p99999 ",
        "@p ",
        "@!%p2 @%p1 ",
        "@%p1, ",
        "@(%p1) ",
        "%p1 ",
        "@-%p1 ",
        "@_ ",
    ]
    return f"{found[1]}{generator.choice(guards)}{line[found.end() :]}"


def _header(lines: list[str], at: int, generator: random.Random) -> str | None:
    line = lines[at]
    found = re.match(r"^\s*\.(version|target|address_size)\s+(.*)$", code(line))
    if found is None:
        return None
    values = {
        "version": ["9", "9.0.1", "99.0", "7", "1.0", "x", "", "8,0", "08.0", "8.00", "-8.0", "8 . 0", "3.0", "6.5;"],
        "target": [
            "",
            "sm_",
            "sm_1000",
            "compute_80",
            "sm_80, debug",
            "sm_80, sm_90",
            "debug",
            "sm_90, texmode_unified",
            "SM_80",
            "sm_80;",
            "sm_90, texmode_independent",
            "sm_80 debug",
            "sm_80, map_f64_to_f32",
            "sm_52, sm_53",
            "80",
        ],
        "address_size": ["32", "64;", "16", "", "x", "0x40", "64 64", "64.0", "-64", "32+32"],
    }
    return f".{found[1]} {generator.choice(values[found[1]])}"


def _copy_line(lines: list[str], at: int, generator: random.Random) -> str | None:
    other = generator.choice(lines)
    return f"{lines[at]}\n{other}" if other.strip() else None


KINDS: dict[str, Damage] = {
    "comment": _comment,
    "quote": _quote,
    "number": _number,
    "vector element": _element,
    "guard": _guard,
    "header": _header,
    "copy line": _copy_line,
}
