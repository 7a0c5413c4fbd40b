"""Numbers of a schedule that are left open, and the search for the best of them.

```python
s.tile(i=free(64, 128), j=free(64, 128, 256)).blocks()
found = s.search(by="estimate", m=1024, n=1024, k=1024)
found.best, print(found), found.plot("search.svg")
```

`by` is how a schedule is judged: the estimate, which needs no GPU; measurement on one, by `ptxlab.measure.tune`; or
a function of a schedule and the sizes, such as a count of waves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptxlab import gpu
from ptxlab.device.array_types import DTYPES, TORCH_NAMES
from ptxlab.measure.plots import draw_trials
from ptxlab.report import KernelError, PtxError
from ptxlab.schedule.launching import arguments_of
from ptxlab.schedule.scaled import refuse_scaled
from ptxlab.schedule.state import illegal_here, quoted

if TYPE_CHECKING:
    from ptxlab.schedule.scheduling import Schedule, Step

Judge = Callable[["Schedule", Mapping[str, int]], float]
Report = Callable[[str], None]


class free(int):  # noqa: N801 - used as a number in steps
    """A number that a search chooses; until then it is the first. One object in two places is one choice."""

    options: tuple[int, ...]

    def __new__(cls, *options: int) -> free:
        """One of these numbers."""
        if not options or not all(isinstance(one, int) for one in options):
            illegal_here(f"`free` takes numbers, not {options!r:.60}")
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
    def fastest(self) -> Tried | None:
        """The combination that takes least, where one is a schedule."""
        right = [one for one in self.tried if one.seconds is not None]
        return min(right, key=lambda one: one.seconds or 0.0, default=None)

    @property
    def best(self) -> Schedule:
        """The fastest."""
        found = self.fastest
        if found is None or found.schedule is None:
            reasons = "; ".join(sorted({one.problem for one in self.tried}))
            illegal_here(f"no combination is a schedule: {reasons:.300}")
        return found.schedule

    def __str__(self) -> str:
        order = sorted(self.tried, key=lambda one: (one.seconds is None, one.seconds or 0.0))
        return "\n".join(map(spell, order))

    def plot(self, path: str | Path) -> None:
        """Draw what each combination takes, in the order in which they were tried, and the best so far."""
        best = "none" if self.fastest is None else spell(self.fastest)
        draw_trials([one.seconds for one in self.tried], best, path)


def spell(one: Tried) -> str:
    """A combination, and what it takes."""
    took = one.problem if one.seconds is None else f"{one.seconds * 1e6:.2f} us"
    return f"{', '.join(map(str, one.values))}: {took}"


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


def search(
    schedule: Schedule, by: str | Judge, sizes: Mapping[str, int], report: Report, executor: Executor | None
) -> Search:
    """Try all combinations of the free numbers of a schedule."""
    sizes = {**sizes, **schedule.sizes}
    if missing := [name for name in schedule.algorithm.sizes if name not in sizes]:
        illegal_here(f"how large is {quoted(missing)}?", "`s.search(m=512, n=512, k=512)`")
    known = list(candidates(schedule))
    if by == "gpu":
        absent = gpu.absence()
        if absent is not None:
            illegal_here(f"a search on a GPU, and {absent.message}", '`by="estimate"` needs none')
        return measured(schedule, known, sizes, report, executor)
    if not callable(by) and by != "estimate":
        illegal_here(f"a search by {by!r:.40}", '`by="estimate"`, `by="gpu"`, or a function')
    judge = by if callable(by) else _estimated
    found: list[Tried] = []
    best = ""
    for number, one in enumerate(_judged(known, judge, sizes, executor), 1):
        found.append(one)
        if one.seconds is not None and one is Search(tuple(found)).fastest:
            best = f", at best {spell(one)}"
        report(f"{number} of {len(known)}{best}")
    return Search(tuple(found))


def _judged(
    known: Sequence[Tried], judge: Judge, sizes: Mapping[str, int], executor: Executor | None
) -> Iterator[Tried]:
    """What each takes, in their order; an executor is given all of them at once."""
    started = [executor.submit(_judge, one, judge, sizes) if executor else None for one in known]
    for one, future in zip(known, started, strict=True):
        seconds, problem = _judge(one, judge, sizes) if future is None else future.result()
        yield replace(one, seconds=seconds, problem=problem)


def _judge(one: Tried, judge: Judge, sizes: Mapping[str, int]) -> tuple[float | None, str]:
    """What one takes, or why it is not a schedule; an executor calls this on another machine."""
    if one.schedule is None:
        return None, one.problem
    try:
        return judge(one.schedule, sizes), ""
    except (PtxError, KernelError) as refused:
        return None, refused.diagnostics[0].message


def _estimated(schedule: Schedule, sizes: Mapping[str, int]) -> float:
    return schedule.estimate(**sizes).seconds


def measured(
    schedule: Schedule, known: list[Tried], sizes: Mapping[str, int], report: Report, executor: Executor | None = None
) -> Search:
    """Time all combinations on a GPU, or have `tune` estimate them; answers are compared with the plain kernel's."""
    from ptxlab.measure import Entry, Work, tune
    from ptxlab.schedule.scheduling import plain_schedule

    algorithm = schedule.algorithm
    refuse_scaled(algorithm, (), ': no plain kernel is compared with, use `by="estimate"`')
    right = {number: one for number, one in enumerate(known) if one.schedule is not None}
    scalars = {name: 1.0 for name in algorithm.parameters if name not in algorithm.arrays}

    def arrays(draw: Any, **size: int) -> dict[str, Any]:
        made = zip(algorithm.parameters, arguments_of(algorithm, size, draw), strict=True)
        return {name: one for name, one in made if name in algorithm.arrays}

    def arguments(given: Mapping[str, object]) -> list[Any]:
        return [given.get(name, scalars.get(name)) for name in algorithm.parameters]

    def reference(xp: Any, **given: Any) -> dict[str, Any]:
        types = {name: getattr(xp, TORCH_NAMES[a.element], DTYPES[a.element]) for name, a in algorithm.arrays.items()}
        narrow = {name: cast(value, types[name]) for name, value in given.items()}  # as they were before
        plain_schedule(algorithm, schedule.target, sizes).launch(*arguments(narrow))
        return {name: cast(narrow[name], xp.float64) for name in algorithm.outputs}

    def make(number: int) -> Any:
        one = right[number].schedule
        assert one is not None
        return lambda **given: one.launch_of(*arguments(given))

    size = dict(sizes)
    entry = Entry(algorithm.name, arrays, reference, lambda **_: Work(0.0, 1.0, "f32"), {}, [size], [size], 1e-2)
    tuned = tune(make, {"number": list(right)}, entry, size, executor=executor, progress=report)
    for trial in tuned.trials:
        number = trial.parameters["number"]
        seconds = (trial.seconds or trial.estimated) if trial.is_right else None
        known[number] = replace(known[number], seconds=seconds, problem=trial.problem)
    return Search(tuple(known))


def cast(array: Any, type: Any) -> Any:
    """An array of NumPy or torch with elements of another type."""
    return array.astype(type) if hasattr(array, "astype") else array.to(type)
