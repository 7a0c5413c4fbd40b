"""What results depend on beside the arguments of a kernel: the schedule, the order of atomic operations, memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ptxlab.report import Diagnostic
from ptxlab.values import dataclass

# What findings say of results, by their codes; each is a cause of its own.
_CAUSES = {
    "race": "data-race unordered-collective missing-proxy-fence missing-tensor-fence stale-tensor-map stale-phase "
    "one-sided-synchronization use-after-free",
    "lockstep": "lockstep-dependence",
    "uninitialized memory": "uninitialized-read",
}
_KINDS = {code: kind for kind, codes in _CAUSES.items() for code in codes.split()}


@dataclass(frozen=True)
class ScheduleDifference:
    """An array, or a variable of the module, that other schedules leave with other values than the first one does."""

    name: str
    elements: int
    """Those that differ between the first seed and `seed`."""
    total: int
    first: int
    seed: int
    """The first of those that differ."""
    seeds: tuple[int, ...]
    """All that differ."""

    def __str__(self) -> str:
        more = f", and with {len(self.seeds) - 1:,} other seeds" if len(self.seeds) > 1 else ""
        return (
            f"`{self.name}`: {self.elements:,} of {self.total:,} elements differ between seeds {self.first} and "
            f"{self.seed}{more}"
        )


@dataclass(frozen=True)
class Cause:
    """What results depend on, and the lines of the PTX that it is about.

    `race`, `lockstep` and `uninitialized memory` are findings; `atomics` the order of atomic operations, where these
    return values or add floats; `schedule` whatever else makes results differ.
    """

    kind: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        lines = f" (line{'s' * (len(self.lines) > 1)} {', '.join(map(str, self.lines))})" if self.lines else ""
        names = {"atomics": "the order of atomic operations", "schedule": "the schedule", "race": "a race"}
        return f"{names.get(self.kind, self.kind)}{lines}"


@dataclass(frozen=True)
class Dependence:
    """What the results of a launch depend on, as far as its schedules show; false if that is nothing."""

    schedules: int
    causes: tuple[Cause, ...]
    outputs: tuple[ScheduleDifference, ...]

    def __bool__(self) -> bool:
        return bool(self.causes)

    def as_object(self) -> dict[str, Any]:
        """All of it, for programs."""
        return {
            "causes": [{"kind": cause.kind, "lines": list(cause.lines)} for cause in self.causes],
            "outputs": [vars(output) | {"seeds": list(output.seeds)} for output in self.outputs],
        }

    def __str__(self) -> str:
        if self.causes:
            return "; ".join([" and ".join(map(str, self.causes)), *map(str, self.outputs)])
        return f"nothing that {self.schedules:,} schedules show" if self.schedules > 1 else "not known: use `seeds=`"


def dependence_of(
    schedules: int, diagnostics: Sequence[Diagnostic], outputs: tuple[ScheduleDifference, ...], otherwise: Cause | None
) -> Dependence:
    """What results depend on: on what was found or, if they differ all the same, on something else."""
    lines: dict[str, list[int]] = {}
    for found in diagnostics:
        if found.code in _KINDS:
            lines.setdefault(_KINDS[found.code], []).extend([] if found.line is None else [found.line])
    causes = [Cause(kind, tuple(dict.fromkeys(numbers))) for kind, numbers in lines.items()]
    if outputs and not causes:
        causes = [otherwise or Cause("schedule", ())]
    return Dependence(schedules, tuple(causes), outputs)
