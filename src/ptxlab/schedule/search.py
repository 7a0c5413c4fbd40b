"""Numbers of a schedule that are left open, and the search for the best of them.

```python
s.tile(i=free(64, 128), j=free(64, 128, 256)).blocks()
found = s.search(by="estimate", m=1024, n=1024, k=1024)
found.best, print(found)
```

`by` is how a schedule is judged: the estimate, which needs no GPU; measurement on one, by `ptxlab.measure.tune`; or
a function of a schedule and the sizes, such as a count of waves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from ptxlab.report import KernelError, PtxError
from ptxlab.schedule.scaled import refuse_scaled
from ptxlab.schedule.state import refuse_here

if TYPE_CHECKING:
    from ptxlab.schedule.scheduling import Schedule, Step

Judge = Callable[["Schedule", Mapping[str, int]], float]


class free(int):  # noqa: N801 - used as a number in steps
    """A number that a search chooses; until then it is the first. One object in two places is one choice."""

    options: tuple[int, ...]

    def __new__(cls, *options: int) -> free:
        """One of these numbers."""
        if not options or not all(isinstance(one, int) for one in options):
            refuse_here("illegal-step", f"`free` takes numbers, not {options!r:.60}")
        made = super().__new__(cls, options[0])
        made.options = options
        return made


@dataclass(frozen=True)
class Tried:
    """One combination: its schedule and what it takes, in seconds, or why it is not a schedule."""

    values: tuple[int, ...]
    schedule: Schedule | None
    seconds: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class Search:
    """All combinations, in the order in which they were tried."""

    tried: tuple[Tried, ...]

    @property
    def best(self) -> Schedule:
        """The fastest."""
        right = [one for one in self.tried if one.seconds is not None]
        if not right:
            reasons = "; ".join(sorted({one.problem for one in self.tried}))
            refuse_here("illegal-step", f"no combination is a schedule: {reasons:.300}")
        found = min(right, key=lambda one: one.seconds or 0.0).schedule
        assert found is not None
        return found

    def __str__(self) -> str:
        order = sorted(self.tried, key=lambda one: (one.seconds is None, one.seconds or 0.0))
        return "\n".join(
            f"{', '.join(map(str, one.values)):24} "
            + (one.problem if one.seconds is None else f"{one.seconds * 1e6:10.2f} us")
            for one in order
        )


def candidates(schedule: Schedule) -> Iterator[Tried]:
    """The schedule with each combination of its free numbers."""
    steps = schedule.steps
    numbers: dict[int, free] = {id(n): n for step in steps for n in _values(step) if isinstance(n, free)}
    for chosen in product(*(one.options for one in numbers.values())):
        known = dict(zip(numbers, chosen, strict=True))
        fresh = schedule.copy().undo(len(steps))
        try:
            yield Tried(chosen, fresh.take(*(_replaced(step, known) for step in steps)))
        except PtxError as refused:
            yield Tried(chosen, None, problem=refused.diagnostics[0].message)


def _values(step: Step) -> list[Any]:
    return [*step.arguments, *(value for _, value in step.options)]


def _replaced(step: Step, known: Mapping[int, int]) -> Step:
    arguments = tuple(known.get(id(value), value) for value in step.arguments)
    return replace(step, arguments=arguments, options=tuple((n, known.get(id(v), v)) for n, v in step.options))


def search(schedule: Schedule, by: str | Judge, sizes: Mapping[str, int]) -> Search:
    """Try all combinations of the free numbers of a schedule."""
    if by == "gpu":
        return _measured(schedule, sizes)
    if not callable(by) and by != "estimate":
        refuse_here("illegal-step", f"a search by {by!r:.40}", '`by="estimate"`, `by="gpu"`, or a function')
    judge: Judge = by if callable(by) else lambda one, sizes: one.estimate(**sizes).seconds
    found = []
    for one in candidates(schedule):
        if one.schedule is not None:
            try:
                one = replace(one, seconds=judge(one.schedule, sizes))
            except (PtxError, KernelError) as refused:
                one = replace(one, problem=refused.diagnostics[0].message)
        found.append(one)
    return Search(tuple(found))


def _measured(schedule: Schedule, sizes: Mapping[str, int]) -> Search:
    """Time all combinations on a GPU; answers are compared with those of the plain kernel."""
    from ptxlab.measure import Entry, Work, tune
    from ptxlab.schedule.scheduling import plain_schedule

    algorithm = schedule.algorithm
    refuse_scaled(algorithm, (), ': no plain kernel is compared with, use `by="estimate"`')
    known = list(candidates(schedule))
    right = {number: one for number, one in enumerate(known) if one.schedule is not None}
    scalars = {name: 1.0 for name in algorithm.parameters if name not in algorithm.arrays}

    def arrays(draw: Any, **size: int) -> dict[str, Any]:
        return {
            name: draw.normal(tuple(extent.value(size) for extent in array.extents), array.element)
            for name, array in algorithm.arrays.items()
        }

    def arguments(given: Mapping[str, Any]) -> list[Any]:
        return [given.get(name, scalars.get(name)) for name in algorithm.parameters]

    def reference(xp: Any, **given: Any) -> dict[str, Any]:
        copies = {name: xp.clone(value) if hasattr(xp, "clone") else value.copy() for name, value in given.items()}
        plain_schedule(algorithm, schedule.target, schedule.sizes).launch(*arguments(copies))
        return {name: copies[name] for name in algorithm.outputs}

    def make(number: int) -> Any:
        one = right[number].schedule
        assert one is not None
        return lambda **given: one.launch_of(*arguments(given))

    size = {**schedule.sizes, **sizes}
    entry = Entry(algorithm.name, arrays, reference, lambda **_: Work(0.0, 1.0, "f32"), {}, [size], [size], 1e-2)
    tuned = tune(make, {"number": list(right)}, entry, size)
    for trial in tuned.trials:
        number = trial.parameters["number"]
        known[number] = replace(known[number], seconds=trial.seconds, problem=trial.problem)
    return Search(tuple(known))
