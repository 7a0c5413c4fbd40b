"""Values of variables in C++ at random stops, compared with what the kernel prints there itself.

    python -m tests.debug.printed CASES.json --stops 100 --seed 7

`CASES.json` is as for `tests.debug.agreement`. Each kernel is debugged as it is, with `-G`; a copy of it in which some
lines are preceded by `printf` of all variables that are visible there says what is right.
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptxlab.cli.debug import Session
from ptxlab.debug import Debugger, UnknownError
from ptxlab.debug.objects import Object, load
from ptxlab.debug.types import Type
from ptxlab.debug.values import Scope

STATEMENT = re.compile(
    r"\s*(?!(?:for|if|while|else|switch|case|default|break|continue|return|do|goto)\b)[A-Za-z_*(].*;\s*(//.*)?$"
)
LOCAL = 2  # above the other bits of an address of local memory
MOST = 6  # elements of an array that are compared


@dataclass
class Tried:
    """A line, the thread that is watched there, and what the debugger says at each of its visits."""

    line: int
    thread: int
    visits: list[dict[str, Any]] = field(default_factory=list)


def parts(scope: Scope, name: str, type: Type) -> Iterator[tuple[str, Type]]:
    """The numbers and pointers in a variable, as expressions."""
    if type.kind == "reference":
        type = type.element
    if type.kind in ("number", "pointer", "enumeration"):
        yield name, type
    elif type.kind == "array":
        count = type.count or 0
        for index in sorted({*range(min(count, MOST)), *range(count - 1, count)}):
            yield from parts(scope, f"{name}[{index}]", type.element)
    elif type.kind == "structure":
        for one in type.members:
            if one.name and not one.name.startswith("__"):
                yield from parts(scope, f"{name}.{one.name}", one.type)


def values(scope: Scope, line: int) -> dict[str, tuple[Any, Type]]:
    """What the debugger says of all variables that are declared above a line."""
    found: dict[str, tuple[Any, Type]] = {}
    for variable in scope.variables():
        declared = variable.entry.number("line") or 0
        if variable.is_hidden or (not variable.is_parameter and declared >= line) or variable.name == "this":
            continue
        try:
            for expression, type in parts(scope, variable.name, variable.type):
                operand = scope.operand(expression)
                assert isinstance(operand, Object)
                found[expression] = load(operand, scope).value, type
        except UnknownError:
            continue
    return found


def visit(debugger: Debugger, file: str, line: int, chooser: random.Random) -> Tried | None:
    """Stop at a line with a random thread, at all its visits."""
    debugger.stops.clear()
    made = debugger.break_at(file, line)
    if not len(made.hits.threads):
        return None
    debugger.stops.clear()
    debugger.go_to(0)
    tried = Tried(line, int(chooser.choice(made.hits.threads.tolist())))
    debugger.break_at(file, line, thread=tried.thread)
    while debugger.run().reason == "breakpoint" and len(tried.visits) < 200:
        tried.visits.append(values(debugger.scope, line))
    return tried


def instrumented(text: str, tried: list[Tried], debugger: Debugger) -> str:
    """The source with a `printf` of variables before each line."""
    lines = text.split("\n")
    for one in sorted(tried, key=lambda one: -one.line):
        scope = debugger.scope_of(one.thread)
        known = {name: type for visited in one.visits for name, (_, type) in visited.items()}
        at = [f"{vector}.{axis} == {index}"
              for vector, indices in (("threadIdx", scope.index), ("blockIdx", scope.block_index))
              for axis, index in zip("xyz", indices, strict=True)]  # fmt: skip
        printed = "".join(
            f' printf("@{name}={_format(type)}\\n", {_cast(type)}({name}));' for name, type in known.items()
        )
        lines.insert(one.line - 1, f'if ({" && ".join(at)}) {{ printf("@@{one.line}\\n");{printed} }}')
    return "#include <cstdio>\n" + "\n".join(lines)


def _format(type: Type) -> str:
    return "%.17g" if type.dtype is not None and not type.is_integer else "%lld"


def _cast(type: Type) -> str:
    return "(double)" if type.dtype is not None and not type.is_integer else "(long long)"


def compare(tried: list[Tried], output: str) -> list[str]:
    """What differs between the debugger and the prints."""
    printed: dict[int, list[dict[str, float]]] = {one.line: [] for one in tried}
    now: dict[str, float] = {}
    for row in output.splitlines():
        if row.startswith("@@"):
            now = {}
            printed[int(row[2:])].append(now)
        elif row.startswith("@"):
            name, _, value = row[1:].rpartition("=")
            if not value:
                continue  # of memory that is not written
            now[name] = float(value) if re.search(r"[.en]", value) else int(value)
    wrong: list[str] = []
    for one in tried:
        right = printed[one.line]
        if len(right) != len(one.visits) and len(one.visits) < 200:
            wrong.append(f"line {one.line}: stops {len(one.visits)} times, and is executed {len(right)} times")
        for number, (visited, said) in enumerate(zip(one.visits, right, strict=False)):
            for name, (value, type) in visited.items():
                is_local = type.kind == "pointer" and int(value) >> 56 == LOCAL  # the copy has other variables there
                if name not in said or is_local:
                    continue
                is_same = int(value) % 2**64 == int(said[name]) % 2**64 if type.kind == "pointer" else (
                    value == said[name] or (value != value and said[name] != said[name]))  # fmt: skip
                if not is_same:
                    wrong.append(f"line {one.line}, visit {number + 1}: {name} is {value}, prints {said[name]}")
    return wrong


def _row_above(code: list[str], line: int) -> str:
    """The nearest row above a line that is not blank, or a comment."""
    rows = (row.strip() for row in reversed(code[: line - 1]))
    return next((row for row in rows if row and not row.startswith("//")), "")


def agree(given: dict[str, Any], chooser: random.Random, count: int) -> tuple[int, int, list[str]]:
    """How many lines of a kernel were stopped at, how many values were compared, and what differs."""
    path = Path(given["program"])
    session = Session().with_request({**given, "deviceDebug": True}).open()
    debugger = session.debugger
    text = path.read_text(errors="replace")
    code = text.split("\n")
    own = {place.line for places in debugger.lines.sources for place in places if Path(place.file).name == path.name}
    before = {number: _row_above(code, number) for number in own}
    fitting = [number for number in sorted(own) if STATEMENT.match(code[number - 1]) and before[number][-1:] in ";{}"]
    chosen = chooser.sample(fitting, min(count, len(fitting)))
    tried = [found for line in chosen if (found := visit(debugger, str(path), line, chooser)) is not None]
    copy = path.with_name(f"printed_{path.name}")
    try:
        copy.write_text(instrumented(text, tried, debugger))
        output = Session().with_request({**given, "program": str(copy), "deviceDebug": True}).open().output
    finally:
        copy.unlink()
    return len(tried), sum(len(visited) for one in tried for visited in one.visits), compare(tried, output)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--stops", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chooser, cases = random.Random(given.seed), json.loads(given.cases.read_text())
    total = compared = wrong = 0
    for number, case in enumerate(cases):
        left = -(-(given.stops - total) // (len(cases) - number))
        program = (given.cases.parent / case["program"]).resolve()
        tried, count, found = agree({**case, "program": str(program)}, chooser, left)
        total, compared, wrong = total + tried, compared + count, wrong + len(found)
        print(f"{program.name}: {tried} lines, {count} values, {len(found)} wrong", *found[:8], sep="\n  ", flush=True)
    print(f"{total} lines, {compared} values, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
