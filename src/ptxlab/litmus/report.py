"""What there is to say of a litmus test: what the model allows, what was observed, and where the two differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ptxlab.litmus.budget import MOST, TooManyError
from ptxlab.litmus.executions import Final, Judgement, judge
from ptxlab.litmus.placements import Placement, placements, why_not
from ptxlab.litmus.program import Condition, Litmus
from ptxlab.litmus.run import ENDLESS, RACE, TIMEOUT, Observed, emulate, explore_all, run_on_gpu
from ptxlab.litmus.verdict import Verdict, verdict

Name = str | tuple[int, str]
STALE = "one-sided-synchronization"  # of a read that may return an older value


@dataclass(frozen=True)
class Outcome:
    """Final states that agree in what the condition names."""

    values: tuple[int, ...]
    allowed: bool
    race: str  # "always", "sometimes", "never": in the executions that the model allows
    observed: int
    reported: int  # runs in which a race was found


@dataclass
class Report:
    """A test, what the model says of it, and its runs in each placement."""

    test: Litmus
    judgement: Judgement | None
    runs: list[tuple[Placement, Observed]] = field(default_factory=list)
    not_run: str | None = None
    detects: bool = True  # whether the device finds races

    @property
    def verdict(self) -> Verdict | None:
        """What the model says of the condition; none where there are too many executions."""
        return None if self.judgement is None else verdict(self.test, self.judgement)

    @property
    def observed(self) -> Observed:
        """All runs together."""
        total = Observed()
        for _, seen in self.runs:
            total.add(seen)
        return total

    @property
    def names(self) -> list[Name]:
        """What an outcome shows: what the condition names, or else all registers and locations."""
        named = list(dict.fromkeys(_names(self.test, self.test.condition)))
        if named:
            return named
        registers = [(number, name) for number, one in enumerate(self.test.threads) for name in one.registers]
        return [*registers, *(name for name in self.test.locations if self.test.variables[name].expected is None)]

    def outcomes(self) -> list[Outcome]:
        """All outcomes that are allowed, forbidden by the axioms, or observed."""
        seen = self.observed
        finals = {} if self.judgement is None else self.judgement.finals
        forbidden: set[Final] = set() if self.judgement is None else self.judgement.forbidden
        rows: dict[tuple[int, ...], list[Final]] = {}
        for final in dict.fromkeys((*finals, *forbidden, *seen.finals)):
            rows.setdefault(tuple(_value(final, name) for name in self.names), []).append(final)
        return [
            Outcome(
                values,
                any(final in finals for final in group),
                self._race(group),
                sum(seen.finals[final] for final in group),
                sum(seen.races[final] for final in group),
            )
            for values, group in sorted(rows.items())
        ]

    def _race(self, group: Iterable[Final]) -> str:
        assert self.judgement is not None
        about = [self.judgement.finals[final] for final in group if final in self.judgement.finals]
        racy, executions = sum(one.racy for one in about), sum(one.executions for one in about)
        return "never" if racy == 0 else "always" if racy == executions else "sometimes"

    def problems(self) -> Iterator[str]:
        """Where what was observed differs from the model."""
        for placement, seen in self.runs:
            yield from (f"{placement}: {problem}" for problem in dict.fromkeys(self._problems(seen)))

    def _problems(self, seen: Observed) -> Iterator[str]:
        for code in seen.found:
            if code not in (RACE, *ENDLESS) and not (code == STALE and self._has_more_outcomes(seen)):
                yield f"`{code}`: {seen.found[code].message}"
        if self.judgement is None:
            return
        if seen.endless and not self.judgement.hangs and not self.judgement.cut:
            yield f"{seen.endless} of {seen.runs} runs did not end"
        for final, count in seen.finals.items():
            about = self.judgement.finals.get(final)
            if about is None:
                if not self.judgement.cut:
                    yield f"an outcome that the model forbids: {self.spell(final)}"
            elif self.detects and about.racy_but_for_fence_sc == 0 and seen.races[final]:
                yield f"a data race that the model does not have: {self.spell(final)}"
            elif self.detects and about.clearly_racy == about.executions and seen.races[final] < count:
                yield f"a data race was not found: {self.spell(final)}"

    def _has_more_outcomes(self, seen: Observed) -> bool:
        """Whether the model allows a final state that no run had, as a read of an older value has."""
        return self.judgement is not None and bool(self.judgement.finals.keys() - seen.finals.keys())

    def spell(self, final: Final) -> str:
        """A final state as text."""
        names: list[Name] = [
            (number, name) for number, registers in enumerate(final.registers) for name, _ in registers
        ]
        names += [name for name, _ in final.memory]
        return " ".join(f"{spell_name(name)}={_value(final, name)}" for name in names)

    @property
    def failed(self) -> bool:
        """Whether the condition does not hold, or a run differs from the model."""
        holds = self.verdict
        return (holds is not None and not holds.holds) or any(self.problems())

    def as_object(self) -> dict[str, object]:
        """All of it, for JSON."""
        names = [spell_name(name) for name in self.names]
        holds = self.verdict
        return {
            "file": self.test.source.name,
            "name": self.test.name,
            "condition": condition_text(self.test),
            "holds": None if holds is None else holds.holds,
            "racy": None if holds is None else holds.racy,
            "loops_cut": self.judgement is not None and self.judgement.cut,
            "may_hang": self.judgement is not None and self.judgement.hangs,
            "outcomes": []
            if self.judgement is None
            else [
                {
                    "values": dict(zip(names, one.values, strict=True)),
                    "allowed": one.allowed,
                    "race": one.race if one.allowed else None,
                    "observed": one.observed,
                    "reported_races": one.reported if self.detects else None,
                }
                for one in self.outcomes()
            ],
            "placements": [
                {
                    "placement": str(placement),
                    "runs": seen.runs,
                    "racy": seen.racy,
                    "did_not_end": seen.endless,
                    "explored_all": seen.explored,
                }
                for placement, seen in self.runs
            ],
            "not_run": self.not_run,
            "problems": list(self.problems()),
        }


def report(
    test: Litmus,
    *,
    device: str = "cpu",
    seeds: int | None = 20,
    launches: int = 10,
    every: bool = False,
    bound: int = 1,
    timeout: float = TIMEOUT,
) -> Report:
    """Judge a test, and run it: in one placement or in every one, on the emulator (`cpu`), on a GPU, or not at all.

    On the emulator it runs under all schedules that differ if `seeds` is `None`, or else with each seed, for at most
    `timeout` seconds each.
    """
    try:
        judgement: Judgement | None = judge(test, bound)
    except TooManyError:
        judgement = None
    made = Report(test, judgement, detects=device == "cpu")
    if device == "none":
        return made
    made.not_run = why_not(test)
    if device != "cpu" and judgement is not None and judgement.hangs:
        made.not_run = "it may wait at a barrier for ever"
    if made.not_run is None:
        places = [one for one in placements(test) if device == "cpu" or not one.gpus]
        if not places:
            made.not_run = "no placement on one GPU is as it says"
        for placement in places if every else places[:1]:
            if device != "cpu":
                seen = run_on_gpu(test, placement, launches)
            else:
                seen = (
                    explore_all(test, placement) if seeds is None else emulate(test, placement, range(seeds), timeout)
                )
            made.runs.append((placement, seen))
    return made


TOO_MANY = f"not judged: it has more than {MOST:,} candidate executions, whole or in part"


def condition_text(test: Litmus) -> str:
    """The condition, as the test has it."""
    return f"{test.quantifier} {_spell(test.condition)}"


def spell_name(name: Name) -> str:
    """A register as `P0:r1`, a variable by its name."""
    return name if isinstance(name, str) else f"P{name[0]}:{name[1]}"


def _spell(condition: Condition, inner: bool = False) -> str:
    if condition.operation == "true":
        return "(true)"
    if condition.operation == "not":
        return "~" + "".join(_spell(part, True) for part in condition.parts if isinstance(part, Condition))
    if condition.operation in ("and", "or"):
        sign = " /\\ " if condition.operation == "and" else " \\/ "
        return f"({sign.join(_spell(part, True) for part in condition.parts if isinstance(part, Condition))})"
    left, right = (str(part) if isinstance(part, int) else spell_name(part) for part in condition.parts)  # type: ignore[arg-type]
    text = f"{left} {condition.operation} {right}"
    return text if inner else f"({text})"


def _names(test: Litmus, condition: Condition) -> Iterator[Name]:
    for part in condition.parts:
        if isinstance(part, Condition):
            yield from _names(test, part)
        elif isinstance(part, tuple):
            yield part
        elif isinstance(part, str):
            yield test.variables[part].location


def _value(final: Final, name: Name) -> int:
    if isinstance(name, str):
        return dict(final.memory)[name]
    return dict(final.registers[name[0]]).get(name[1], 0)
