"""What a proof says: proved, under which assumptions; a counterexample, replayed; or not proved, where and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ptxlab.ir.origin import line_span
from ptxlab.report import Diagnostic, Help, Label, Source
from ptxlab.values import Json

ORDERED = "no data race, and every barrier is reached by all threads of the block"
PROVED, REFUTED, OPEN = "proved", "counterexample", "not-proved"


@dataclass(frozen=True)
class Gap:
    """Something that was not shown."""

    kind: str
    lines: tuple[int, ...]
    about: str
    reason: str
    help: str = ""

    def __str__(self) -> str:
        lines = [*dict.fromkeys(self.lines)]
        place = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines[:4]))}"
        if len(lines) > 4:
            place += " and others"
        help = f"\n    help: {self.help}" if self.help else ""
        return f"{place}: {self.about}: {self.reason}{help}"


@dataclass(frozen=True)
class Counterexample:
    """A launch that goes wrong on the emulator."""

    finding: Diagnostic
    grid: tuple[int, ...]
    block: tuple[int, ...]
    numbers: dict[str, int]
    lengths: dict[str, int]

    @property
    def launch(self) -> str:
        """The launch in words."""
        numbers = [f"{name} = {value}" for name, value in self.numbers.items()]
        lengths = [f"len({name}) = {value}" for name, value in self.lengths.items()]
        return ", ".join([f"grid {_extent(self.grid)}", f"block {_extent(self.block)}", *numbers, *lengths])


@dataclass(frozen=True)
class Verdict:
    """The answer."""

    level: str
    """`proved`, `counterexample` or `not-proved`."""
    kernel: str
    assumptions: Sequence[str]
    gaps: Sequence[Gap] = ()
    counterexample: Counterexample | None = None
    outline: Sequence[str] = ()
    """The steps of the proof, one a line."""
    counts: dict[str, int] | None = None
    """How many obligations of each kind were discharged."""
    seconds: float = 0.0
    bounds: bool = True
    """Whether accesses were shown to be in bounds; they are assumed to be otherwise."""
    once: Sequence[str] = ()
    """The arrays of which each element is written once."""
    initialized: bool = False
    """Whether shared memory is written before it is read."""

    def __bool__(self) -> bool:
        return self.level == PROVED

    def __str__(self) -> str:
        lines = []
        if self.level == PROVED:
            accesses = "no access out of bounds or misaligned" if self.bounds else "no misaligned access"
            waits = ", and no wait at an mbarrier lasts for ever" if (self.counts or {}).get("mbarrier") else ""
            once = "".join(f", each element of `{name}` is written once" for name in self.once)
            written = ", and shared memory is written before it is read" if self.initialized else ""
            lines.append(f"`{self.kernel}` is proved: {accesses}, {ORDERED}{waits}{once}{written}")
        elif self.level == REFUTED:
            assert self.counterexample is not None
            lines.append(f"`{self.kernel}` is refuted by a run: {self.counterexample.launch}")
            lines.append(str(self.counterexample.finding))
        else:
            lines.append(f"`{self.kernel}` is not proved")
            lines += [f"  {gap}" for gap in self.gaps]
        if self.level != REFUTED:
            lines += ["assuming that", *(f"  - {one}" for one in self.assumptions)]
        return "\n".join(lines)

    def explained(self) -> str:
        """The answer with the outline of the proof."""
        return "\n".join([str(self), "outline", *(f"  {one}" for one in self.outline)])

    def diagnostics(self, source: Source | None) -> list[Diagnostic]:
        """What is in the way of a proof, as findings in a source: a warning at the line of each gap."""
        if self.counterexample is not None:
            return [self.counterexample.finding]
        return [_warning(gap, source) for gap in self.gaps]

    def as_dict(self) -> Json:
        """The answer for programs."""
        found: Json = {
            "version": 1,
            "level": self.level,
            "kernel": self.kernel,
            "assumptions": list(self.assumptions),
            "seconds": round(self.seconds, 3),
            "proved": self.counts or {},
            "gaps": [
                {"kind": one.kind, "lines": list(one.lines), "about": one.about, "reason": one.reason, "help": one.help}
                for one in self.gaps
            ],
            "outline": list(self.outline),
        }
        if self.counterexample is not None:
            example = self.counterexample
            found["counterexample"] = {
                "code": example.finding.code,
                "message": example.finding.message,
                "line": example.finding.line,
                "grid": list(example.grid),
                "block": list(example.block),
                "numbers": example.numbers,
                "lengths": example.lengths,
            }
        return found


def _warning(gap: Gap, source: Source | None) -> Diagnostic:
    lines = [] if source is None else [line for line in dict.fromkeys(gap.lines) if line <= source.text.count("\n") + 1]
    labels = [Label(line_span(source, line)) for line in lines] if source is not None else []
    helps = (Help(gap.help),) if gap.help else ()
    return Diagnostic("warning", OPEN, f"{gap.about}: {gap.reason}", tuple(labels), helps=helps)


def count(kinds: Sequence[str]) -> dict[str, int]:
    """How many there are of each kind."""
    return dict(sorted(Counter(kinds).items()))


def _extent(extents: Sequence[int]) -> str:
    kept = list(extents)
    while len(kept) > 1 and kept[-1] == 1:
        kept.pop()
    return " x ".join(map(str, kept))
