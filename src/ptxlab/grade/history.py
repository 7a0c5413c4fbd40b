"""Grades that were given: a line of JSON each, and the best of them as a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True)
class GradeRecord:
    """A grade as it is kept."""

    at: str
    problem: str
    submission: str
    status: str
    score: float
    time: str
    codes: Sequence[str]
    seed: int

    @classmethod
    def now(cls, *values: object) -> GradeRecord:
        """One that is given now."""
        return cls(datetime.now(UTC).isoformat(timespec="seconds"), *values)  # type: ignore[arg-type]


def append(path: Path, record: GradeRecord) -> None:
    """Keep a grade."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(record)) + "\n")


def read(path: Path) -> list[GradeRecord]:
    """All that were kept, in order; `ValueError` names a line that is not one."""
    names = {field.name for field in fields(GradeRecord)}
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            given = json.loads(line)
        except json.JSONDecodeError:
            given = None
        if not isinstance(given, dict) or given.keys() != names:
            raise ValueError(f"{path}:{number} is not a grade")
        found.append(GradeRecord(**given))
    return found


def best(records: Iterable[GradeRecord]) -> list[GradeRecord]:
    """The best of each submission for each problem; of equal ones the first."""
    chosen: dict[tuple[str, str], GradeRecord] = {}
    for one in records:
        key = one.problem, one.submission
        if key not in chosen or one.score > chosen[key].score:
            chosen[key] = one
    return sorted(chosen.values(), key=lambda one: (one.problem, -one.score, one.at))


def markdown(records: Sequence[GradeRecord]) -> str:
    """A table, the best of each problem first."""
    lines = ["| problem | submission | verdict | score | time | at |", "|---|---|---|---:|---|---|"]
    for one in records:
        codes = f" ({', '.join(one.codes)})" if one.codes else ""
        cells = (one.problem, one.submission, f"{one.status}{codes}", f"{one.score:.1f}", one.time, one.at)
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)
