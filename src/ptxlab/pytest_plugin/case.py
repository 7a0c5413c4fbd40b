"""A case: a PTX file whose first lines say how to run it and what must come of it.

    // A comment of any length says what the case is about.
    // run: grid=2 block=64 args=u32[64],u32[4]=1,f32=0.5 seeds=20
    // expect: data-race 25 with 23 within 20 seeds
    // expect: warning unordered-collective 14
    // expect: results 3 3
    // says: nothing orders line 23 before line 25
    // check: warning divergent-barrier 30

`run` names the launch: `grid`, `block`, `cluster` (`2` or `2,2`), `shared` (bytes), `entry` (if there are several),
`args` (each as `ptxlab run --arg` takes it, `u32[64]=arange`, `f16[8,8]=random`, `map:f16[8,8],box=8x8`, `u32=5`;
`u32[64]` is an array of zeros, and `same` the array before it again), `detectors=no` to run without detectors of races,
`timeout` (60 seconds unless it says so), and `seeds`, how many schedules to try (3 unless it says so). The same options
may be written as for `ptxlab run`: `--grid 2 --block 64 --arg u32[64]=zeros`. A file without `run` is only checked.

`expect` names what a run finds, one line a finding: its level unless it is an error, its code, the line of its primary
label, the lines of the others after `with`. Which of two accesses is the primary one depends on the schedule, so
either will do. Each seed must find this and nothing else; what only some schedules show says `within N seeds`.
`silent` means no finding. `results` are the first elements of the first array after every run, `results[1]` those of
the second. `says` is text that the report of the first seed contains. `check` is the same as `expect` for what
`ptxlab.check` finds, without running.

A comment after a line of the kernel may give other spellings of that line; all of this must come of each:

    bar.sync 0;
    // or: bar.sync 1, 64;
    // or: barrier.sync 5;

Where several lines have such comments, the first of each go together, then the second of each.

Lines are those of the file, as an editor counts them. `pytest --ptxlab-bless` writes the `expect` and `check` lines
anew from what is found (`git diff` then shows what changed); it leaves the `within` of a finding as it is.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from click import Context, UsageError
from numpy.typing import NDArray

import ptxlab
from ptxlab import ir
from ptxlab.cli.arguments import arguments_for, make_arguments, parse_argument, split_arguments
from ptxlab.cli.plain_arguments import TYPES
from ptxlab.device.result import Result
from ptxlab.device.structures import leaves
from ptxlab.report import Diagnostic, render

SEEDS = 3
WORDS = ("grid", "block", "cluster", "shared", "entry", "args", "detectors", "timeout", "seeds")
_HEADER = re.compile(r"//\s*(run|expect|says|check):\s*(.*?)\s*$")
_RESULTS = re.compile(r"results(?:\[(\d+)\])?\s+(.+)")
_FINDING = re.compile(r"(?:(warning|note) )?([\w-]+)(?: (\d+))?(?: with ([\d, ]+?))?(?: within (\d+) seeds)?$")
_OTHER = re.compile(r"\s*// or:\s*(.*)")


class CaseError(Exception):
    """The first lines of the file do not say how to run it, or what to expect."""


@dataclass(frozen=True)
class ExpectedFinding:
    """What is expected of one diagnostic."""

    level: str
    code: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        level = "" if self.level == "error" else f"{self.level} "
        first = f" {self.lines[0]}" if self.lines else ""
        rest = " with " + ", ".join(map(str, self.lines[1:])) if self.lines[1:] else ""
        return f"{level}{self.code}{first}{rest}"

    @property
    def key(self) -> tuple[str, str, tuple[int, ...]]:
        """What two findings are compared by."""
        return self.level, self.code, tuple(sorted(self.lines))

    def moved(self, lines: int) -> ExpectedFinding:
        return ExpectedFinding(self.level, self.code, tuple(line + lines for line in self.lines))


@dataclass(frozen=True)
class Seen:
    """What one seed gave."""

    findings: list[ExpectedFinding]
    arrays: list[NDArray[Any]]
    report: str
    result: Result | None  # where it ran


@dataclass(frozen=True)
class Case:
    """A file, with the spellings that it has (0) or with the first, second, … of its others."""

    path: Path
    spelling: int = 0

    def __str__(self) -> str:
        return f"{self.path.stem}[or {self.spelling}]" if self.spelling else self.path.stem

    @cached_property
    def text(self) -> str:
        text = self.path.read_text(encoding="utf-8")
        return text if not self.spelling else _respell(text, self.spelling)

    @property
    def others(self) -> int:
        """How many other spellings it has."""
        return max(map(len, _others(self.text.splitlines()).values()), default=0)

    def lines(self, word: str) -> list[str]:
        """What the header says after this word, line by line."""
        return [match[2] for line in self.text.splitlines() if (match := _HEADER.match(line)) and match[1] == word]

    @property
    def how(self) -> dict[str, str]:
        """The words of `run`, but for the arguments."""
        return self._run[0]

    @property
    def arguments(self) -> list[str]:
        """The arguments of `run`, as they are written."""
        return self._run[1]

    @cached_property
    def _run(self) -> tuple[dict[str, str], list[str]]:
        """The words of `run`, and the arguments."""
        line = " ".join(self.lines("run"))
        if line.startswith("-"):
            return _command_line(line)
        words = [word.partition("=") for word in line.split()]
        for name, _, value in words:
            if name not in WORDS or not value:
                raise CaseError(f"`run` has `{name}`, and not one of {', '.join(f'{word}=' for word in WORDS)}")
        found = {name: value for name, _, value in words}
        if found and not {"grid", "block"} <= found.keys():
            raise CaseError("`run` needs `grid=` and `block=`")
        return found, split_arguments(found.pop("args")) if "args" in found else []

    @property
    def seeds(self) -> int:
        return _integer(self.how.get("seeds", str(SEEDS)))

    @property
    def findings(self) -> dict[ExpectedFinding, int]:
        """What a run must find, and within how many seeds (0: in each)."""
        return dict(_expected(line) for line in self.lines("expect") if _is_finding(line))

    @property
    def checked(self) -> list[ExpectedFinding]:
        """What `ptxlab.check` must find."""
        return [_expected(line)[0] for line in self.lines("check") if _is_finding(line)]

    @property
    def results(self) -> dict[int, str]:
        """What arrays must begin with, by their number."""
        matches = [match for line in self.lines("expect") if (match := _RESULTS.match(line))]
        return {int(match[1] or 0): match[2] for match in matches}

    @cached_property
    def module(self) -> ir.Module:
        return ptxlab.parse(self.text, name=self.path.name)

    def check(self) -> list[ExpectedFinding]:
        """What `ptxlab.check` finds."""
        try:
            return [_finding(diagnostic) for diagnostic in ptxlab.check(self.module)]
        except ptxlab.PtxError as problem:
            return [_finding(diagnostic) for diagnostic in problem.diagnostics]

    def launch(self, seed: int = 0, device: str = "cpu") -> Seen:
        """Run it once."""
        how = self.how
        if "entry" in how and how["entry"] not in self.module.entries:
            raise CaseError(f"there is no kernel `{how['entry']}`")
        kernel = self.module[how.get("entry") or self.module.entries[0]]
        args = _arguments(kernel, self.arguments)
        options: dict[str, Any] = {"device": device, "on_error": "collect"}
        if device == "cpu":
            options |= {
                "seed": seed,
                "timeout": _seconds(how.get("timeout", "60")),
                "detectors": how.get("detectors") != "no",
            }
        if "cluster" in how:
            options["cluster"] = _shape(how["cluster"])
        if "shared" in how:
            options["shared"] = _integer(how["shared"])
        result = None
        try:
            result = kernel.launch(_shape(how["grid"]), _shape(how["block"]), args, **options)
            found = result.diagnostics
        except (ptxlab.KernelError, ptxlab.PtxError) as problem:
            found = list(problem.diagnostics)
        parts = [getattr(leaf, "array", leaf) for value in args for leaf in leaves(value)]
        arrays = [part for part in parts if isinstance(part, np.ndarray)]
        return Seen([_finding(diagnostic) for diagnostic in found], arrays, render(found), result)


def cases_of(path: Path) -> list[Case]:
    """A file, followed by its other spellings."""
    return [Case(path, number) for number in range(1 + Case(path).others)]


def differences(case: Case, seen: Sequence[Seen]) -> list[str]:
    """What runs gave that is not expected, and what is expected that they did not give."""
    expected = {finding.key: (finding, within) for finding, within in case.findings.items()}
    found: list[str] = []
    for seed, run in enumerate(seen):
        keys = {finding.key for finding in run.findings}
        found += [f"seed {seed}: found {finding}" for finding in run.findings if finding.key not in expected]
        found += [
            f"seed {seed}: did not find {finding}"
            for key, (finding, within) in expected.items()
            if not within and key not in keys
        ]
        for number, results in case.results.items():
            text = _results(run, number, results)
            if text != " ".join(results.split()):
                found.append(f"seed {seed}: results[{number}] are {text}")
    for key, (finding, within) in expected.items():
        if within and not any(key == other.key for run in seen[:within] for other in run.findings):
            found.append(f"did not find {finding} within {within} seeds")
    return found + [f"does not say {text!r}" for text in case.lines("says") if seen and text not in seen[0].report]


def bless(case: Case, seen: Sequence[Seen], checked: Sequence[ExpectedFinding]) -> None:
    """Write the `expect` and `check` lines anew."""
    lines = case.text.splitlines()
    words = ("expect", "check") if seen else ("check",)
    header = [at for at, line in enumerate(lines) if (match := _HEADER.match(line)) and match[1] in words]
    first = header[0] if header else 1 + next(at for at, line in enumerate(lines) if _HEADER.match(line))
    added = len(_header(case, seen, checked, 0)) - len(header)
    kept = [line for at, line in enumerate(lines) if at not in header]
    kept[first:first] = _header(case, seen, checked, added)
    case.path.write_text("\n".join(kept) + "\n", encoding="utf-8")


def _header(case: Case, seen: Sequence[Seen], checked: Sequence[ExpectedFinding], added: int) -> list[str]:
    """The `expect` and `check` lines for what was found, in a file that then has so many lines more."""
    within = {finding.key: seeds for finding, seeds in case.findings.items()}
    found = {finding.key: finding for run in seen for finding in run.findings}
    made = []
    for key, finding in found.items():
        is_constant = all(key in [other.key for other in run.findings] for run in seen)
        seeds = within.get(key, 0 if is_constant else len(seen))
        made.append(f"// expect: {finding.moved(added)}" + (f" within {seeds} seeds" if seeds else ""))
    if seen and not found:
        made.append("// expect: silent")
    for number, results in case.results.items():
        name = f"results[{number}]" if number else "results"
        made.append(f"// expect: {name} {_results(seen[0], number, results)}")
    if case.lines("check"):
        made += [f"// check: {finding.moved(added)}" for finding in checked] or ["// check: silent"]
    return made


def _results(run: Seen, number: int, like: str) -> str:
    """As many elements of an array as `like` has."""
    if number >= len(run.arrays):
        raise CaseError(f"`results[{number}]`: the arguments have {len(run.arrays)} arrays, counted from 0")
    values = run.arrays[number].flat[: len(like.split())]
    return " ".join(str(value) if value.dtype.kind in "iu" else f"{float(value):g}" for value in values)


def _others(lines: Sequence[str]) -> dict[int, list[str]]:
    """The other spellings of each line that has some."""
    found: dict[int, list[str]] = {}
    last = 0
    for at, line in enumerate(lines):
        if match := _OTHER.match(line):
            found.setdefault(last, []).append(match[1])
        else:
            last = at
    if len({len(others) for others in found.values()}) > 1:
        raise CaseError("lines with other spellings must have as many as each other")
    return found


def _respell(text: str, number: int) -> str:
    """The text with the other spelling of this number for each line that has some."""
    lines = text.splitlines()
    for at, others in _others(lines).items():
        lines[at] = lines[at][: len(lines[at]) - len(lines[at].lstrip())] + others[number - 1]
    return "\n".join(lines) + "\n"


def _is_finding(line: str) -> bool:
    return line != "silent" and not _RESULTS.match(line)


def _expected(line: str) -> tuple[ExpectedFinding, int]:
    """A finding as a header line names it."""
    match = _FINDING.match(line)
    if match is None:
        raise CaseError(f"not a finding, `silent` or `results`: {line}")
    level, code, first, others, within = match.groups()
    lines = [int(first)] if first else []
    lines += [int(number) for number in (others or "").replace(",", " ").split()]
    return ExpectedFinding(level or "error", code, tuple(lines)), int(within or 0)


def _finding(diagnostic: Diagnostic) -> ExpectedFinding:
    lines = [label.span.source.position(label.span.start)[0] for label in diagnostic.labels]
    return ExpectedFinding(diagnostic.level, diagnostic.code, tuple(dict.fromkeys(lines)))


def _command_line(line: str) -> tuple[dict[str, str], list[str]]:
    """The words of `run` where it is written as options of `ptxlab run`."""
    from ptxlab.cli.run import command

    try:
        given, rest, _ = command.make_parser(Context(command)).parse_args(["FILE", *shlex.split(line)])
    except (UsageError, ValueError) as problem:
        raise CaseError(f"`run`: {problem.message if isinstance(problem, UsageError) else problem}") from None
    del given["path"]
    args = given.pop("arguments", [])
    if "detectors" in given:
        given["detectors"] = "yes" if given["detectors"] else "no"
    wrong = [*rest, *(f"--{name}" for name in given if name not in WORDS)]
    if wrong:
        raise CaseError(f"`run` has `{wrong[0]}`, which is not for tests")
    if "block" not in given:
        raise CaseError("`run` needs `--block`")
    return {"grid": "1", **given}, args


def _shape(text: str) -> tuple[int, ...]:
    return tuple(map(_integer, text.split(",")))


def _integer(text: str) -> int:
    if not text.isdecimal():
        raise CaseError(f"`{text}` is not a number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CaseError(f"`{text}` is not a time in seconds") from None


def _arguments(kernel: ir.Function, given: Sequence[str]) -> list[object]:
    """The values of the arguments; a type alone is 0."""
    try:
        parsed = [parse_argument(f"{word}=0" if word in TYPES else word, "args") for word in given]
        return make_arguments(arguments_for(kernel, parsed), ())
    except UsageError as problem:
        raise CaseError(problem.message) from None
