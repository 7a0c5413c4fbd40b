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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptxlab.cli.debug import Session
from ptxlab.debug import Debugger, UnknownError
from ptxlab.debug.declarations import Variable
from ptxlab.debug.objects import Object, load
from ptxlab.debug.types import CudaType
from ptxlab.debug.values import Scope
from ptxlab.report import PtxError

STATEMENT = re.compile(
    r"\s*(?!(?:for|if|while|else|switch|case|default|break|continue|return|do|goto)\b)[A-Za-z_*(].*;\s*(//.*)?$"
)
LOCAL = 2  # above the other bits of an address of local memory
SEEDS = (0, 3)  # of the schedule: what other threads write depends on it
MOST_VISITS = 200
MOST = 6  # elements of an array that are compared


@dataclass
class Tried:
    """A line, the thread that is watched there, and what the debugger says at each of its visits."""

    line: int
    thread: int
    visits: list[dict[str, Any]] = field(default_factory=list)


def parts(scope: Scope, name: str, type: CudaType) -> Iterator[tuple[str, CudaType]]:
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


def values(scope: Scope, line: int) -> dict[str, tuple[Any, CudaType]]:
    """What the debugger says of all variables that are declared above a line."""
    found: dict[str, tuple[Any, CudaType]] = {}
    for variable in scope.variables():
        declared = _declared_at(scope, variable)
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


def _declared_at(scope: Scope, variable: Variable) -> int:
    """The line of a declaration; of an inlined function, that of the function itself."""
    entry = variable.entry
    while "line" not in entry.attributes and entry.number("origin"):
        entry = scope.declarations.entry(entry.number("origin") or 0)
    return entry.number("line") or 0


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
    while debugger.run().reason == "breakpoint" and len(tried.visits) < MOST_VISITS:
        tried.visits.append(values(debugger.scope, line))
    return tried


def instrumented(text: str, tried: list[Tried], debugger: Debugger, hidden: set[str]) -> str:
    """The source with a `printf` of variables before each line, but for names that code there cannot use."""
    lines = text.split("\n")
    for one in sorted(tried, key=lambda one: -one.line):
        scope = debugger.scope_of(one.thread)
        known = {name: type for visited in one.visits for name, (_, type) in visited.items()}
        at = [f"{vector}.{axis} == {index}"
              for vector, indices in (("threadIdx", scope.index), ("blockIdx", scope.block_index))
              for axis, index in zip("xyz", indices, strict=True)]  # fmt: skip
        printed = "".join(
            f' printf("@{name}={_format(type)}\\n", {_cast(type)}({name}));'
            for name, type in known.items()
            if hidden.isdisjoint(re.findall(r"\w+", name))
        )
        lines.insert(one.line - 1, f'if ({" && ".join(at)}) {{ printf("@@{one.line}\\n");{printed} }}')
    return "#include <cstdio>\n" + "\n".join(lines)


def _format(type: CudaType) -> str:
    return "%.17g" if type.dtype is not None and not type.is_integer else "%lld"


def _cast(type: CudaType) -> str:
    if type.dtype is not None and not type.is_integer and type.dtype.itemsize == 2:
        return "(double)(float)"
    return "(double)" if type.dtype is not None and not type.is_integer else "(long long)"


Said = dict[int, list[dict[str, float]]]


def read(tried: list[Tried], output: str) -> Said:
    """What was printed at each visit of a line."""
    printed: Said = {one.line: [] for one in tried}
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
    return printed


def _is_alike(said: Sequence[dict[str, float]], name: str) -> bool:
    """Whether a value is printed, and does not depend on the schedule, as of memory that other threads write."""
    values = [one.get(name) for one in said]
    return None not in values and (len(set(values)) == 1 or all(value != value for value in values))


def compare(tried: list[Tried], outputs: Sequence[Said], *, is_optimized: bool) -> tuple[int, int, list[str]]:
    """At how many lines values were compared, how many values, and what differs between the debugger and the prints."""
    wrong: list[str] = []
    compared = lines = 0
    for one in tried:
        counts = {len(output[one.line]) for output in outputs}
        same = len(outputs[0][one.line])  # by the schedule that was debugged; a fault may end another one earlier
        if same != len(one.visits) < MOST_VISITS and not is_optimized:
            wrong.append(f"line {one.line}: stops {len(one.visits)} times, and is executed {same} times")
        printed = [output[one.line] for output in outputs]
        if is_optimized and counts != {len(one.visits)}:  # it is entered in another way: what is always the same counts
            printed = [[said] * len(one.visits) for output in printed for said in output]
        before = compared
        for number, (visited, *all_said) in enumerate(zip(one.visits, *printed, strict=False)):
            said = all_said[0] if all_said else {}
            for name, (value, type) in visited.items():
                is_local = type.kind == "pointer" and int(value) >> 56 == LOCAL  # the copy has other variables there
                if is_local or not all_said or not _is_alike(all_said, name):
                    continue
                compared += 1
                is_same = int(value) % 2**64 == int(said[name]) % 2**64 if type.kind == "pointer" else (
                    value == said[name] or (value != value and said[name] != said[name]))  # fmt: skip
                if not is_same:
                    wrong.append(f"line {one.line}, visit {number + 1}: {name} is {value}, prints {said[name]}")
        lines += compared > before
    return lines, compared, wrong


def _row_above(code: list[str], line: int) -> str:
    """The nearest row above a line that is not blank, or a comment."""
    rows = (row.strip() for row in reversed(code[: line - 1]))
    return next((row for row in rows if row and not row.startswith("//")), "")


def agree(
    given: dict[str, Any], chooser: random.Random, count: int, *, is_optimized: bool = False
) -> tuple[int, int, list[str]]:
    """At how many lines of a kernel values were compared, how many values, and what differs."""
    path = Path(given["program"])
    session = Session().with_request({**given, "deviceDebug": not is_optimized}).open()
    debugger = session.debugger
    text = path.read_text(errors="replace")
    code = text.split("\n")
    own = {place.line for places in debugger.lines.sources for place in places if Path(place.file).name == path.name}
    before = {number: _row_above(code, number) for number in own}
    fitting = [number for number in sorted(own) if STATEMENT.match(code[number - 1]) and before[number][-1:] in ";{}"]
    chosen = chooser.sample(fitting, min(count, len(fitting)))
    tried = [found for line in chosen if (found := visit(debugger, str(path), line, chooser)) is not None]
    copy = path.with_name(f"printed_{path.name}")
    hidden: set[str] = set()
    try:
        for _ in range(4):
            copy.write_text(instrumented(text, tried, debugger, hidden))
            try:
                outputs = [_output({**given, "program": str(copy), "seed": seed}) for seed in SEEDS]
                break
            except PtxError as wrong:  # private members, and names of the compiler's
                hidden |= {re.findall(r"\w+", one)[-1] for each in wrong.diagnostics
                           for one in re.findall(r"`([^`]+)`", each.message)[:1]}  # fmt: skip
        else:
            raise AssertionError(f"{path}: the copy that prints does not compile, without {hidden}")
    finally:
        copy.unlink()
    return compare(tried, [read(tried, output) for output in outputs], is_optimized=is_optimized)


def _output(given: dict[str, Any]) -> str:
    return Session().with_request({**given, "deviceDebug": True}).open().output


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--stops", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--optimized", action="store_true", help="debug code without -G: what it shows must be right")
    parser.add_argument("--name", default="", help="what the cases are called there")
    parser.add_argument("--json", type=Path, help="add what was counted to this file")
    given = parser.parse_args()
    chooser, cases = random.Random(given.seed), json.loads(given.cases.read_text())
    total = compared = wrong = 0
    for number, case in enumerate(cases):
        left = -(-(given.stops - total) // (len(cases) - number))
        program = (given.cases.parent / case["program"]).resolve()
        tried, count, found = agree({**case, "program": str(program)}, chooser, left, is_optimized=given.optimized)
        total, compared, wrong = total + tried, compared + count, wrong + len(found)
        print(f"{program.name}: {tried} lines, {count} values, {len(found)} wrong", *found[:8], sep="\n  ", flush=True)
    print(f"{total} lines, {compared} values, {wrong} wrong")
    if given.json is not None:
        kept = json.loads(given.json.read_text()) if given.json.is_file() else {}
        kept[f"values{', optimized' * given.optimized}, {given.name or given.cases.stem}, seed {given.seed}"] = {
            "kernels": len(cases), "stops": total, "values": compared, "wrong": wrong,
        }  # fmt: skip
        given.json.write_text(json.dumps(kept, indent=1) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
