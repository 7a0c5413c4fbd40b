"""What is being written: the program, and in it the function whose Python is running now.

A `Program` becomes one PTX module: its functions and variables in order, the Python files that `.loc` names, and the
lowest version of PTX that knows every instruction used. A `Trace` is one function while it is written: lines of text,
registers, labels, and the blocks that are open. Each line is printed as it is written; nothing is moved or dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from ptxlab import ir
from ptxlab.author.lines import Running, SourcePosition, here, refuse, running_in, texts_of
from ptxlab.ir.inlining import SourceFrame
from ptxlab.ir.mangled import LAMBDA
from ptxlab.isa import Candidate, Type
from ptxlab.isa.targets import TARGETS, VERSIONS, Since, Version, target_named
from ptxlab.syntax import parse
from ptxlab.timelines.layout import Layout

MOST_LINES = 250_000
_OWN_LABEL = re.compile(r"\$[a-z]+_\d+\b")
_LABEL = re.compile(r"[A-Za-z_$%][\w$]*", re.ASCII)
_CALLS = re.compile(r"^\0(\d+)\n", re.MULTILINE)  # a line of an item that is not PTX: the number of `Program.calls`

# Names of registers by what they are declared as, as NVIDIA's compilers write them.
_PREFIXES = {
    "pred": "%p", "b8": "%rb", "b16": "%rs", "b32": "%r", "b64": "%rd", "b128": "%rq", "f32": "%f", "f64": "%fd",
}  # fmt: skip


def declared_as(type: Type) -> str:
    """What a register that holds this type is declared as: bits, but for predicates, singles and doubles."""
    return type.name if type.name in ("pred", "f32", "f64") else f"b{type.width}"


class ConditionalRegion:
    """A stretch of a kernel that may be skipped: what is written only there can't be read after it."""

    __slots__ = ("opened", "reason")

    def __init__(self, reason: str) -> None:
        self.opened = True
        self.reason = reason


@dataclass(eq=False)
class TracedModule:
    """One module while it is written."""

    target: str
    version: Version | None = None
    address_size: int | None = 64
    lines: bool = True
    options: tuple[str, ...] = ()  # words of `.target` beside the architecture
    untyped: bool = False  # whether results are bits
    items: list[str] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    functions: dict[object, str] = field(default_factory=dict)  # device functions that are written already
    names: set[str] = field(default_factory=set)
    dynamic_alignment: int = 0  # of the shared memory whose size the launch says
    needed: Version = (1, 0)
    timelines: dict[str, Layout] = field(default_factory=dict)  # of each kernel that records one
    calls: dict[tuple[SourceFrame, ...], int] = field(default_factory=dict)  # the lines that run at once, with a number
    name: str = "module"
    _known: dict[int, Candidate] = field(default_factory=dict)
    _read: tuple[int, ir.Module] | None = None

    def __post_init__(self) -> None:
        self.chip = target_named(self.target)
        self.needed = max((7, 0), TARGETS[self.target]) if self.version is None else self.version

    def require(self, candidate: Candidate, text: str) -> None:
        """Note what an instruction needs; refuse what the target does not have."""
        if id(candidate) in self._known:
            return
        for part, since in candidate.form.requirements(candidate.chosen):
            if not self.allows(since):
                refuse(
                    "unavailable-instruction",
                    f"{f'`.{part}` of ' if part else ''}`{text}` needs {since}",
                    f"this kernel is for {self._described}",
                    helps=self._raised(since),
                )
        self._known[id(candidate)] = candidate

    def _raised(self, since: Since) -> list[str]:
        """The target, or else the version, to raise."""
        targets = [chip for _, chip in since.alternatives]
        if any(self.chip.has(chip) for chip in targets):
            versions = [version for version, chip in since.alternatives if self.chip.has(chip)]
            return [] if since.removed else ['raise the version: `version="{}.{}"`'.format(*min(versions))]
        return [f'raise the target: `@kernel(target="{targets[0]}")`, or that of its `Module`']

    def allows(self, since: Since) -> bool:
        """Whether the target has it; without a version of its own, the program takes the lowest that does."""
        if self.version is not None:
            return since.holds(self.version, self.chip)
        lowest = next((v for v in VERSIONS if v >= self.needed and since.holds(v, self.chip)), None)
        self.needed = lowest or self.needed
        return lowest is not None

    @property
    def _described(self) -> str:
        version = "" if self.version is None else " and PTX {}.{}".format(*self.version)
        return f"`{self.target}`{version}"

    @property
    def module(self) -> ir.Module:
        """The program as `ptxlab.parse` reads it: one module for all that use it, until an item is added."""
        if self._read is None or self._read[0] != len(self.items):
            text, *marked = _CALLS.split(self._text())
            calls, known = [], list(self.calls)
            for number, following in zip(marked[::2], marked[1::2], strict=True):
                calls.append((len(text), known[int(number)]))
                text += following
            module = parse(text, f"{self.name}.ptx")
            module.calls = calls
            module.origins = {_ascii(file): source for file, source in texts_of(self.files).items()}
            if self._read is not None:
                module.inherit(self._read[1])
            self._read = len(self.items), module
        return self._read[1]

    def file(self, name: str) -> int:
        """The number of a Python file."""
        return self.files.setdefault(name, len(self.files) + 1)

    def unique(self, name: str) -> str:
        """A name that no other thing at the outermost level has."""
        chosen, number = name, 1
        while chosen in self.names:
            number += 1
            chosen = f"{name}_{number}"
        self.names.add(chosen)
        return chosen

    def text(self, lines: bool = True) -> str:
        """The module as PTX; without `lines` it names no Python lines."""
        text = _CALLS.sub("", self._text(lines))
        if lines:
            return text
        return "\n".join(line for line in text.split("\n") if not line.startswith("    .loc "))

    def _text(self, lines: bool = True) -> str:
        head = [".version {}.{}".format(*self.needed), f".target {', '.join([self.target, *self.options])}"]
        if self.address_size is not None:
            head.append(f".address_size {self.address_size}")
        if lines and self.files:
            head.append("")
            head += [f'.file {number} "{_ascii(name)}"' for name, number in self.files.items()]
        return "\n".join(["\n".join(head), *self.items])


def _ascii(name: str) -> str:
    return name.encode("ascii", "replace").decode().replace('"', "'").replace("\\", "/")


def _name(code: CodeType) -> str:
    """A Python function in a text: `wait`, `Ring.wait`."""
    return LAMBDA if code.co_name == "<lambda>" else code.co_qualname.rpartition("<locals>.")[2]


class Trace:
    """One function while it is written."""

    def __init__(self, program: TracedModule, name: str, kind: str, code: CodeType | None = None) -> None:
        self.program = program
        self.code = code  # the Python of the whole function
        self.name = name
        self.kind = kind
        self.lines: list[str] = []
        self.families: dict[str, int] = {}
        self.scopes: list[ConditionalRegion] = [ConditionalRegion("")]
        self.names: set[str] = set()
        self.alignments: dict[str, int] = {}  # of the arrays declared
        self.placed: list[set[str]] = [set()]  # labels, of each block that is open
        self.labels: set[str] = set()
        self.wanted: dict[str, SourcePosition] = {}
        self.opened: list[tuple[str, SourcePosition]] = []  # loops and branches that are open
        self.unopened: dict[Any, SourcePosition] = {}  # blocks that no `with` has opened
        self.left: SourcePosition | None = None  # where Python left a loop that was open
        self.loops: list[
            tuple[str | None, str]
        ] = []  # the labels before (if a jump to it is allowed) and after open loops
        self.repeated = -1  # the number of lines after the last `repeat_when`
        self.last_when: tuple[int, str] | None = None  # the line of the label that ended the last `when`
        self.position: SourcePosition | None = None  # where generated lines come from: those that load parameters
        self._line: tuple[str, int] | None = None
        self._running: Running = ()
        self._own_labels: set[str] = set()

    def register(self, declared: str) -> str:
        """The name of a fresh register."""
        number = self.families.get(declared, 0) + 1
        self.families[declared] = number
        return f"{self._prefix(declared)}{number}"

    def _prefix(self, declared: str) -> str:
        prefix = _PREFIXES[declared]
        return f"{prefix}_" if prefix in self.names else prefix

    def label(self, stem: str) -> str:
        """A fresh name for a label."""
        name = f"${stem}_{len(self._own_labels) + 1}"
        self._own_labels.add(name)
        return name

    def place_label(self, name: str) -> None:
        """Write a label; a second one of a name is refused."""
        if not isinstance(name, str) or not _LABEL.fullmatch(name):
            refuse("illegal-label", f"{name!r:.40} is not a name of a label", helps=['letters and digits: `"again"`'])
        if name in self.placed[-1]:
            refuse("duplicate-name", f"the label `{name}` is in `{self.name}` already", "a second one")
        self.placed[-1].add(name)
        self.labels.add(name)
        self.lines.append(f"{name}:")

    def want(self, name: str) -> None:
        """Note that a branch goes to a label; the end of the function refuses one that is not there."""
        self.wanted.setdefault(name, here())

    def branch_targets(self, names: Sequence[str]) -> str:
        """Write the list of labels that a `brx` chooses from, and return its name."""
        for name in names:
            self.want(name)
        chosen = self.label("targets")
        self.lines.append(f"{chosen}: .branchtargets {', '.join(names)};")
        return chosen

    def write(self, text: str, position: SourcePosition | None = None) -> None:
        """Write one line of the body, after a `.loc` where the Python line has changed."""
        if len(self.lines) > MOST_LINES:
            refuse(
                "endless-kernel",
                f"`{self.name}` has more than {MOST_LINES:,} lines and does not end",
                "written again and again",
                helps=["Python's `while` and `for` write their body each time; `with ptx.loop():` repeats on the GPU"],
            )
        if self.program.lines:
            position = position or self.position
            running = running_in(self.code) if position is None else ((position.code, position.line),)
            if running != self._running:
                self._running = running
                self._write_location()
        self.lines.append(f"    {text}")

    def _write_location(self) -> None:
        """Write the line of Python, and what calls it in a line that is not printed: not every PTX can name that."""
        calls = self.program.calls
        files = [_ascii(code.co_filename) for code, _ in self._running]
        names = [*(_name(code) for code, _ in self._running[:-1]), self.name]
        lines = [line for _, line in self._running]
        self.lines.append(f"\0{calls.setdefault(tuple(map(SourceFrame, files, lines, names)), len(calls))}")
        line = (self._running[0][0].co_filename, lines[0])
        if line != self._line:
            self._line = line
            self.lines.append(f"    .loc {self.program.file(line[0])} {line[1]} 0")

    @property
    def scope(self) -> ConditionalRegion:
        """The innermost stretch that may be skipped."""
        return self.scopes[-1]

    def close(self) -> None:
        """End the function: everything opened must be closed, every label placed."""
        for block, position in self.unopened.items():
            refuse(
                "unopened-block",
                f"`{block.name}` is used without `with`, and does nothing",
                helps=[f"open it: `with {block.name}(...):`"],
                position=position,
            )
        if self.opened:
            what, position = self.opened[-1]
            refuse(
                "open-loop",
                "Python leaves a loop of the GPU here, while it is written: the threads do not leave it"
                if self.left
                else f"the {what} that begins here is never closed",
                "by `break` or `return`" if self.left else "",
                helps=["`ptx.leave_when(condition)` leaves a loop on the GPU"],
                position=self.left or position,
            )
        for name, position in self.wanted.items():
            if name not in self.labels:
                refuse("unknown-name", f"there is no label `{name}` in `{self.name}`", position=position)

    def body(self) -> list[str]:
        """The lines between the braces."""
        registers = [
            f"    .reg .{declared} {self._prefix(declared)}<{count + 1}>;" for declared, count in self.families.items()
        ]
        return [*registers, *([""] if registers else []), *self._with_single_labels()]

    def _with_single_labels(self) -> list[str]:
        """The lines with one label where blocks end together: ptxas may make other code of two."""
        lines: list[str] = []
        renamed: dict[str, str] = {}
        for line in self.lines:
            if lines and line.endswith(":") and lines[-1].endswith(":"):
                first, second = lines[-1][:-1], line[:-1]
                if second in self._own_labels:
                    renamed[second] = first
                    continue
                if first in self._own_labels:
                    renamed[first] = second
                    lines.pop()
            lines.append(line)
        if not renamed:
            return lines

        def kept(found: re.Match[str]) -> str:
            name = found[0]
            while name in renamed:
                name = renamed[name]
            return name

        return [_OWN_LABEL.sub(kept, line) if "$" in line else line for line in lines]


_current: ContextVar[Trace | None] = ContextVar("ptxlab_trace", default=None)


def current(what: str = "an instruction") -> Trace:
    """The function that is being written."""
    trace = _current.get()
    if trace is None:
        refuse(
            "outside-kernel",
            f"{what} is outside of a kernel",
            helps=["write it in a function under `@kernel` or `@function`"],
        )
    return trace


class writing:  # noqa: N801 - read as a verb: `with writing(trace):`
    """Make a trace the current one."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> Trace:
        self.token = _current.set(self.trace)
        return self.trace

    def __exit__(self, *_: object) -> None:
        _current.reset(self.token)
