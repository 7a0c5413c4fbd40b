"""Where breakpoints on random lines stop, compared with where cuda-gdb would, and with what threads execute.

    python -m tests.debug.agreement CASES.json --lines 200 --seed 7

`CASES.json` is a list of launch requests of the debug adapter; `program` is relative to it. A name without a suffix is
a kernel of the gallery, in Python. A wrong stop is printed, and the command exits 1.

With `deviceDebug`, which is `-G`, lines are those of the cubin that ptxas makes (`cuda_gdb.py`). Optimized code and
kernels in Python have no cubin in the order of their PTX: there, a line is entered where a thread comes to its
instructions, or to those inlined there, from others, by the line table that `.loc` is.
"""

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import ptxlab
from ptxlab.trace import Trace
from ptxlab.trace.thread_steps import steps_of

from .client import Client, client_in_thread
from .cuda_gdb import Cubin, Found

MOST_STOPS = 10  # that are compared for one line
LOCATION = re.compile(r"\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
IGNORED = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|^[ \t]*#(?:[^\n\\]|\\.)*", re.DOTALL | re.MULTILINE)


@dataclass
class Table:
    """The lines of each instruction of a recorded launch, with those that call it, as `.loc` has them."""

    trace: Trace
    files: dict[int, str] = field(default_factory=dict)
    lines: list[set[tuple[str, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        program = self.trace.program
        text = self.trace.description["text"].split("\n")
        self.files = {int(number): name for number, name in re.findall(r'\.file\s+(\d+)\s+"([^"]+)"', "\n".join(text))}
        if program.module.calls:  # a kernel in Python says it by itself
            calls = sorted(program.module.calls, key=lambda one: one[0])
            starts = [offset for offset, _ in calls]
            for function, instruction in program.instructions:
                number = int(np.searchsorted(starts, instruction.start or 0, "right")) - 1
                frames = calls[number][1] if number >= 0 and starts[number] >= (function.start or 0) else ()
                self.lines.append({(frame.file, frame.line) for frame in frames})
            return
        function = None
        for number, (own, _) in enumerate(program.instructions):
            found = set(self._chain(text, program.line(number)))
            if not found and own is function:
                found = self.lines[-1]  # code of line 0 is of the line above
            function = own
            self.lines.append(found)

    def _chain(self, text: list[str], line: int) -> Iterator[tuple[str, int]]:
        """The line of an instruction, and those of the calls: the latest `.loc` above that has their place."""
        wanted: tuple[int, ...] | None = None
        for row in reversed(text[: line - 1]):
            found = LOCATION.match(row)
            if found is None:
                if re.match(r"\s*(\.visible|\.weak|\.entry|\.func)", row):
                    return
                continue
            file, at, column, *caller = (int(one) if one else 0 for one in found.groups())
            if wanted is not None and (file, at, column) != wanted:
                continue
            if at:
                yield self.files[file], at
            if not caller[0]:
                return
            wanted = tuple(caller)

    def of_file(self, file: str) -> set[int]:
        """The lines of a file that have code."""
        return {line for lines in self.lines for name, line in lines if name == file}

    def target(self, file: str, line: int) -> int | None:
        """The line that a breakpoint is at: the next of its function with code; None if it is refused."""
        below = min((one for one in self.of_file(file) if one >= line), default=None)
        return below if below in (line, None) or not leaves_function(Path(file), line, below or 0) else None

    def stops(self, file: str, line: int) -> list[int]:
        """The positions at which warps enter a line, in order."""
        inside = np.array([(file, line) in lines for lines in self.lines])
        size = self.trace.accesses.threads_in_block
        found: dict[tuple[int, int, int], int] = {}
        for thread in self.trace.columns.threads:
            steps = steps_of(self.trace.columns, thread)
            times: dict[int, int] = {}
            before: dict[int, bool] = {}  # by how deep in calls
            for number, instruction, depth in zip(steps.numbers, steps.instructions, steps.depths, strict=True):
                is_in = bool(inside[instruction])
                if is_in and not before.get(int(depth), False):
                    times[int(instruction)] = times.get(int(instruction), 0) + 1
                    warp = thread // size * 1000 + thread % size // 32
                    key = warp, int(instruction), times[int(instruction)]
                    found[key] = min(found.get(key, int(number)), int(number))
                before[int(depth)] = is_in
                for deeper in [one for one in before if one > depth]:
                    del before[deeper]
        return sorted(number for number in found.values() if number)  # where it is at the start, it does not stop again


class DebugTable(Table):
    """The same by cuda-gdb's rule, of code that is not optimized."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cubin = Cubin(self.trace.description["text"])

    def of_file(self, file: str) -> set[int]:
        return {row.line for row in self.cubin.rows if row.file == file}

    def target(self, file: str, line: int) -> int | None:
        found = self.cubin.stops(file, line)
        if found.ptx_lines and not self._known(found):
            return None  # another kernel of the module has it
        if found.ptx_lines or not found.line:
            return found.line if found.ptx_lines else None
        # cuda-gdb refuses a line of the head of a function before its name, such as `template <...>`.
        return None if leaves_function(Path(file), line, found.line) else found.line

    def _known(self, found: Found) -> list[int]:
        """The instructions of the recorded functions at the lines of the PTX that cuda-gdb stops at."""
        program = self.trace.program
        first: dict[int, int] = {}
        for number in range(len(program.instructions)):
            first.setdefault(program.line(number), number)
        return [first[line] for line in found.ptx_lines if line in first]

    def stops(self, file: str, line: int) -> list[int]:
        program = self.trace.program
        wanted: set[int] = set()
        for at in self._known(self.cubin.stops(file, line)):
            # Its first instruction may have become no SASS.
            while (
                at
                and self.lines[at - 1] == self.lines[at]
                and (program.instructions[at - 1][0] is program.instructions[at][0])
            ):
                at -= 1
            wanted.add(at)
        size = self.trace.accesses.threads_in_block
        found: dict[tuple[int, int, int], int] = {}
        for thread in self.trace.columns.threads:
            steps = steps_of(self.trace.columns, thread)
            for instruction in wanted:
                for time, number in enumerate(steps.numbers[steps.instructions == instruction].tolist()):
                    key = thread // size * 1000 + thread % size // 32, instruction, time
                    found[key] = min(found.get(key, number), number)
        return sorted(number for number in found.values() if number)


def leaves_function(path: Path, line: int, below: int) -> bool:
    """Whether a line is not of the function that has a line below, by counting braces, or by indentation."""
    rows = path.read_text(errors="replace").split("\n")
    if path.suffix == ".py":
        spaces = [len(row) - len(row.lstrip()) for row in rows]
        start = below
        while start and not re.match(r"\s*@", rows[start - 1]):
            if re.match(r"\s*def ", rows[start - 1]) and (start == below or spaces[start - 1] < spaces[below - 1]):
                break
            start -= 1
        while re.match(r"\s*@", rows[start - 2]):
            start -= 1
        return line < start
    rows = IGNORED.sub(_blank, path.read_text(errors="replace")).split("\n")
    depth = "".join(rows[: line - 1]).count("{") - "".join(rows[: line - 1]).count("}")
    for row in rows[line - 1 : below - 1]:
        for letter in row:
            depth += (letter == "{") - (letter == "}")
            if depth <= 0 and letter in ";}":
                return True
    before = "".join(rows[: line - 1])
    return not rows[line - 1].strip() and before.count("{") == before.count("}")


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found[0])


def check(client: Client, table: Table, file: str, line: int, counts: Counter[str]) -> str:
    """What is wrong with a breakpoint on a line; nothing if it stops where it must."""
    assert client.adapter is not None
    debugger = client.adapter.debugger
    debugger.go_to(0, int(debugger.trace.columns.thread[0]))
    answer = client.body("setBreakpoints", source={"path": file}, breakpoints=[{"line": line}])["breakpoints"][0]
    below = table.target(file, line)
    if not answer["verified"]:
        counts["refused"] += 1
        return "" if below is None and answer.get("message") else f"refused, {below} is right: {answer}"
    if below is None:
        return f"is at line {answer['line']}, and must be refused"
    if answer["line"] != below and not (isinstance(table, DebugTable) and "prologue" in answer.get("message", "")):
        return f"is at line {answer['line']} instead of {below}"
    if answer["line"] != line and not answer.get("message"):
        return "has moved without a word"
    expected = table.stops(file, below)
    counts["moved"] += answer["line"] != line
    counts["never reached"] += not expected
    client.thread = 1
    for number, position in enumerate([*expected, -1][:MOST_STOPS]):
        client.body("continue", threadId=client.thread)
        stopped = client.event("stopped")
        client.thread = stopped["threadId"]
        if position < 0:
            return (
                ""
                if stopped["reason"] in ("pause", "exception")
                else f"stops {number + 1} times, {len(expected)} are right"
            )
        if stopped["reason"] != "breakpoint" or debugger.position != position:
            return (
                f"stop {number + 1} of {len(expected)} is at step {debugger.position}, {position} is right: {stopped}"
            )
        counts["stops"] += 1
        top = client.body("stackTrace", threadId=stopped["threadId"])["stackFrames"][0]
        if top["line"] != answer["line"]:
            return f"stop {number + 1} shows line {top['line']}"
    return ""


def draw(chooser: random.Random, table: Table, count: int) -> list[tuple[str, int]]:
    """Random lines of the kernel's own files: most with code, some anywhere."""
    own = sorted(
        {name for lines in table.lines for name, _ in lines if "/include/" not in name and Path(name).is_file()}
    )
    found: list[tuple[str, int]] = []
    while own and len(found) < count:
        file = chooser.choice(own)
        lines = sorted(table.of_file(file))
        length = len(Path(file).read_text(errors="replace").splitlines())
        found.append((file, chooser.choice(lines) if chooser.random() < 0.7 else chooser.randint(1, length)))
    return found


def record(name: str, folder: Path) -> Path:
    """A kernel of the gallery, recorded at its smallest size."""
    from ptxlab import kernels
    from ptxlab.measure import Host

    entry = kernels.entry(name)
    launches = list(entry.launches(next(iter(entry.variants)), entry.arrays(Host(0), **entry.small[0])))
    for launch in launches[:-1]:
        launch.run(device="cpu", detectors=False)
    path = folder / f"{name}.ptxtrace"
    launches[-1].run(device="cpu", on_error="collect", record=ptxlab.Record(path, limit=300_000))
    return path


def agree(
    given: dict[str, Any], chooser: random.Random, count: int, counts: Counter[str] | None = None
) -> tuple[int, list[str]]:
    """How many lines of a kernel were tried, and what was wrong."""
    with client_in_thread() as client:
        client.body("initialize")
        client.body("launch", **given)
        client.event("initialized")
        client.body("setExceptionBreakpoints", filters=[])
        client.body("configurationDone")
        client.event("stopped")
        assert client.adapter is not None
        make = DebugTable if given.get("deviceDebug") else Table
        table = make(client.adapter.debugger.trace)
        drawn = draw(chooser, table, count)
        wrong: list[str] = []
        for file, line in drawn:
            why = check(client, table, file, line, Counter() if counts is None else counts)
            wrong += [f"{file}:{line}: {why}"] if why else []
            client.body("setBreakpoints", source={"path": file}, breakpoints=[])
    return len(drawn), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--lines", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="", help="what the cases are called there")
    parser.add_argument("--json", type=Path, help="add what was counted to this file")
    given = parser.parse_args()
    chooser, cases = random.Random(given.seed), json.loads(given.cases.read_text())
    total, wrong = 0, 0
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases):
            left = (given.lines - total) // (len(cases) - number)
            program = case["program"]
            path = record(program, Path(folder)) if not Path(program).suffix else given.cases.parent / program
            tried, found = agree({**case, "program": str(path.resolve())}, chooser, left, counts)
            total, wrong = total + tried, wrong + len(found)
            print(f"{program}: {tried} lines, {len(found)} wrong", *found, sep="\n  ", flush=True)
    print(f"{total} lines, {wrong} wrong; {dict(counts)}")
    if given.json is not None:
        kept = json.loads(given.json.read_text()) if given.json.is_file() else {}
        kept[f"breakpoints, {given.name or given.cases.stem}, seed {given.seed}"] = {
            "kernels": len(cases), "lines": total, **dict(sorted(counts.items())), "wrong": wrong,
        }  # fmt: skip
        given.json.write_text(json.dumps(kept, indent=1) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
