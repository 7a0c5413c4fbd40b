"""The schedule of an algorithm: a list of steps, the kernel that they make, and its checks.

```python
s = schedule(matmul, target="sm_90a")
s.tile(i=128, j=128).blocks()
s.tile(i=8, j=8).threads()
print(s)
s.check()
```
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import wraps
from inspect import isfunction, signature
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self

from ptxlab.author import Kernel
from ptxlab.author.lines import SourcePosition
from ptxlab.device.record import Record
from ptxlab.draw.picture import Picture
from ptxlab.draw.timeline import TimelinePicture, timeline
from ptxlab.equal import Verdict
from ptxlab.estimate import Estimate, estimate
from ptxlab.isa.targets import TARGETS
from ptxlab.measure import Launch
from ptxlab.measure.block_scaled import FORMATS
from ptxlab.measure.data import Blank, Host
from ptxlab.report import PtxError
from ptxlab.report.nearest import nearest
from ptxlab.schedule import steps
from ptxlab.schedule.checking import check_function, check_numbers, plain_algorithm
from ptxlab.schedule.drawing import draw, draw_banks
from ptxlab.schedule.emit import write_kernel
from ptxlab.schedule.estimates import Estimates, estimates
from ptxlab.schedule.launching import arguments_of, launch_of, multiples_of, unmapped
from ptxlab.schedule.plan import plan
from ptxlab.schedule.scaled import refuse_scaled
from ptxlab.schedule.search import Judge, Search, search
from ptxlab.schedule.state import State, here, illegal_here, quoted, refuse_here
from ptxlab.schedule.statements import Algorithm
from ptxlab.schedule.synchronize import synchronize
from ptxlab.schedule.tree import Plan
from ptxlab.trace import Trace

Takes = ParamSpec("Takes")
STEPS: dict[str, Callable[..., State]] = {name: one for name, one in vars(steps).items() if isfunction(one)}


@dataclass(frozen=True)
class Step:
    """A step with its arguments, and the line that it was taken on."""

    name: str
    arguments: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...]
    position: SourcePosition | None = None

    def take(self, state: State) -> State:
        """The state after it."""
        state = replace(state, position=self.position)
        if self.name not in STEPS:
            state.illegal(f"there is no step `{self.name}`", f"steps are {', '.join(STEPS)}")
        takes = signature(STEPS[self.name])
        try:
            takes.bind(state, *self.arguments, **dict(self.options))
        except TypeError as problem:
            state.illegal(f"`{self.name}`: {problem}", f"it takes {', '.join([*takes.parameters][1:])}")
        after = STEPS[self.name](state, *self.arguments, **dict(self.options))
        return replace(after, steps=(*state.steps, str(self)))

    def __str__(self) -> str:
        given = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.options)]
        return f"{self.name}({', '.join(given)})".replace("'", '"')

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def _method(step: Callable[Concatenate[State, Takes], State]) -> Callable[Concatenate[Schedule, Takes], Schedule]:
    """A step as a method of a schedule, which returns it: with the text of the step's file."""

    @wraps(step)
    def take(self: Schedule, /, *arguments: Takes.args, **options: Takes.kwargs) -> Schedule:
        return self.take(Step(step.__name__, arguments, tuple(options.items()), here()))

    take.__doc__ = sys.modules[step.__module__].__doc__
    return take


class Schedule:
    """An algorithm and the steps taken so far. Each step is checked when it is taken."""

    def __init__(self, algorithm: Algorithm, target: str, sizes: Mapping[str, int], position: SourcePosition) -> None:
        self.algorithm = algorithm
        self.target = target
        self.sizes = checked_sizes(algorithm, sizes)
        self.steps: tuple[Step, ...] = ()
        self._states = [State.start(algorithm, target, sizes, position)]
        self._kernels: dict[Any, tuple[Plan, Kernel]] = {}
        self._plans: list[Plan] = []
        self.verdict: Verdict | None = None
        """What `equal` said in the last `check`."""

    def take(self, *steps: Step) -> Self:
        """Take steps that are values, as those of another schedule."""
        states = list(self._states)
        for one in steps:
            state = one.take(states[-1])
            if one.name != "tile":  # a tile is for a step that follows
                plan(replace(state, position=one.position), {})
            states.append(state)
        self._states, self.steps = states, (*self.steps, *steps)
        self._kernels, self._plans = {}, []
        return self

    tile = _method(steps.tile)
    blocks = _method(steps.blocks)
    threads = _method(steps.threads)
    cluster = _method(steps.cluster)
    reorder = _method(steps.reorder)
    online = _method(steps.online)
    tensorize = _method(steps.tensorize)
    stage = _method(steps.stage)
    vectorize = _method(steps.vectorize)
    pipeline = _method(steps.pipeline)
    specialize = _method(steps.specialize)
    multicast = _method(steps.multicast)
    pair = _method(steps.pair)
    persistent = _method(steps.persistent)
    stream_k = _method(steps.stream_k)
    prefetch = _method(steps.prefetch)
    unroll = _method(steps.unroll)
    raster = _method(steps.raster)
    resident = _method(steps.resident)
    evict_first = _method(steps.evict_first)
    evict_last = _method(steps.evict_last)

    def undo(self, steps: int = 1) -> Self:
        """Take back the last steps."""
        if not isinstance(steps, int) or not 0 <= steps <= len(self.steps):
            illegal_here(f"{steps!r:.40} of {len(self.steps)} steps are to be undone")
        count = len(self.steps) - steps
        self.steps, self._states = self.steps[:count], self._states[: count + 1]
        self._kernels, self._plans = {}, []
        return self

    def history(self) -> list[str]:
        """The steps as they were written."""
        return [str(step) for step in self.steps]

    def copy(self, **sizes: int) -> Schedule:
        """The same steps for the same algorithm, with other sizes fixed."""
        made = Schedule(self.algorithm, self.target, sizes or self.sizes, here())
        return made.take(*self.steps)

    def save(self) -> str:
        """The steps as JSON."""
        listed = [{"step": s.name, "arguments": list(s.arguments), "options": dict(s.options)} for s in self.steps]
        return json.dumps(
            {"algorithm": self.algorithm.name, "target": self.target, "sizes": self.sizes, "steps": listed}
        )

    def apply(self, saved: str) -> Self:
        """Take the steps that `save` wrote."""
        try:
            steps = json.loads(saved)["steps"]
            found = [(s["step"], tuple(s["arguments"]), tuple(s["options"].items())) for s in steps]
        except (ValueError, TypeError, KeyError, AttributeError):
            illegal_here("this is not what `save` wrote", "`schedule(matmul).apply(s.save())`")
        return self.take(*(Step(*one, here()) for one in found))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        mine, others = ((s.algorithm, s.target, s.sizes, s.steps) for s in (self, other))
        return mine == others

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        steps = [(one.name, one.arguments, one.options) for one in self.steps]
        return _restored, (self.algorithm, self.target, self.sizes, steps)

    def __str__(self) -> str:
        return str(self.kernel())

    def __repr__(self) -> str:
        return f"<schedule of {self.algorithm.name}: {', '.join(self.history()) or 'no steps'}>"

    @property
    def state(self) -> State:
        """What the steps have decided."""
        return self._states[-1]

    @property
    def plan(self) -> Plan:
        """The tree of loops and copies that follows, for sizes of which nothing is known."""
        if not self._plans:
            self._plans.append(plan(self.state, {}))
        return self._plans[0]

    def kernel(self, **multiples: int) -> Kernel:
        """The kernel for all sizes, or for sizes that are multiples of these: `kernel(m=128, n=128)` masks less."""
        return self.written(checked_sizes(self.algorithm, multiples, 1))[1]

    def written(
        self, multiples: Mapping[str, int], aligned: bool = True, mapped: bool = True, stored: bool = True
    ) -> tuple[Plan, Kernel]:
        """The plan and the kernel, for arrays at multiples of 16 bytes or for others, by tensor maps or without.

        Operands are `mapped`, results `stored` by them.
        """
        key = (aligned, mapped, stored, *sorted(multiples.items()))
        if key not in self._kernels:
            state = self.state if mapped else unmapped(self.state)
            state = state if aligned else replace(state, vectors={})
            state = state if stored else replace(state, results=())
            if 0 in multiples.values() or state.is_empty({}):
                state = replace(state, group=0)
            made = plan(state, multiples)
            refuse_scaled(self.algorithm, made.mapped)
            synchronize(made)
            self._kernels[key] = made, write_kernel(made)
        return self._kernels[key]

    def launch_of(self, *arguments: object) -> Launch:
        """The launch for arrays and numbers, in the order of the algorithm's parameters."""
        return launch_of(self, arguments)

    def launch(self, *arguments: object, **how: object) -> Any:
        """Run it on arrays; `how` is what `kernel.launch` takes besides."""
        return self.launch_of(*arguments).run(**how)

    def arguments(self, sizes: Mapping[str, int], seed: int = 0) -> list[Any]:
        """Random arguments of these sizes."""
        return arguments_of(self.algorithm, sizes, Host(seed))

    def check(self, *, seeds: int = 3, symbolic: bool = True, **sizes: int) -> Schedule:
        """Run it on the emulator: the outputs are those of the algorithm, no thread races, all accesses are in bounds.

        Sizes are two tiles and a rest, or as given. With `symbolic` the kernel is also compared with the plain kernel
        of the algorithm by `ptxlab.equal`, for all values of the arrays that take the same branches; `verdict` is then
        its answer, which must be one of `ACCEPTED`. It returns the schedule.
        """
        if not isinstance(seeds, int) or seeds < 0:
            illegal_here(f"{seeds!r:.40} runs with several seeds, expected a number of them")
        if symbolic:
            refuse_scaled(self.algorithm, (), ": no plain kernel is compared with, use `check(symbolic=False)`")
        for seed in range(seeds):
            check_numbers(self, self.sizes_for(sizes), seed)
        if symbolic:
            known = self.sizes_for(sizes, 1)
            try:
                plain = plain_schedule(self.algorithm, self.target, known)
            except PtxError as problem:
                said = f"there is no plain kernel to compare with: {problem.diagnostics[0].message}"
                illegal_here(said, "take smaller sizes, or `check(symbolic=False)`")
            self.verdict = check_function(self, plain, known)
        return self

    def sizes_for(self, sizes: Mapping[str, int], tiles: int = 2) -> dict[str, int]:
        """These sizes; others are of so many tiles and a rest in each direction, of one tile where it is large."""
        found = dict.fromkeys(self.algorithm.sizes, 1)
        for axis, parts in self.state.parts.items():
            tile = parts[0].weight
            wanted = tile * (tiles if tile <= 64 else 1) + max(1, tile // 3)
            for name, coefficient in self.algorithm.axes[axis].terms:
                if coefficient > 0:
                    found[name] = max(found[name], wanted)
        for array in self.algorithm.arrays.values():
            if array.element in FORMATS:
                found |= {name: -(-found[name] // 32) * 32 for name in array.extents[-1].names}
        return {**found, **checked_sizes(self.algorithm, sizes), **self.sizes}

    def estimate(self, *arguments: object, **sizes: int) -> Estimate:
        """How long a launch takes on an H200, of arrays or of sizes, and what limits it."""
        given = arguments or arguments_of(self.algorithm, self.sizes_for(sizes), Blank())
        launch = self.launch_of(*given)
        if self.state.stream_k and hasattr(launch.args[-1], "shape"):
            launch.args[-1][:] = 1  # all flags are set: some blocks are counted, and do not wait for the others
        return estimate(
            launch.kernel, launch.grid, launch.block, launch.args, shared=launch.shared, cluster=launch.cluster
        )

    def draw(self, **sizes: int) -> Picture:
        """A picture: the order of blocks over the result, the elements of each thread, who copies what and when."""
        return draw(self.written(self._tile)[0], self.sizes_for(sizes, 8))

    def banks(self, **sizes: int) -> Picture:
        """Bank conflicts in a launch of one tile: the costliest requests by which warps write and read each stage."""
        launch = self.launch_of(*self.arguments({**self._tile, **self.sizes, **checked_sizes(self.algorithm, sizes)}))
        made = next(plan for plan, kernel in self._kernels.values() if kernel is launch.kernel)
        return draw_banks(made, launch, repr(self).strip("<>"))

    @property
    def _tile(self) -> dict[str, int]:
        """Sizes that are not fixed, of a tile."""
        return {name: max(multiples_of(self, name)) for name in self.algorithm.sizes if name not in self.sizes}

    def record(self, path: str | Path | None = None, /, **sizes: int) -> Trace:
        """A launch on the emulator, recorded in a file: of one tile and a rest in each direction, or of these sizes."""
        launch = self.launch_of(*self.arguments(self.sizes_for(sizes, 1)))
        trace = launch.run(device="cpu", record=Record(path)).trace
        assert isinstance(trace, Trace)
        return trace

    def lab(self, height: int = 720, **sizes: int) -> Any:
        """The same as a page to look around in, in a notebook; needs `ptxlab[notebook]`."""
        return self.record(**sizes).lab(height)

    def timeline(self, **sizes: int) -> TimelinePicture:
        """The same as a picture: what the warps of a block, copies and tensor cores did when, in steps."""
        return timeline(self.record(**sizes).timeline(), repr(self).strip("<>"))

    def estimates(self, **sizes: int) -> Estimates:
        """What each step changes, by the estimate: the time of the kernel after it, and what limits that."""
        return estimates(self, self.sizes_for(sizes))

    def search(
        self,
        by: str | Judge = "estimate",
        *,
        progress: Callable[[str], None] | None = None,
        executor: Executor | None = None,
        **sizes: int,
    ) -> Search:
        """Try all combinations of the `free` numbers in its steps: by the estimate, on a GPU, or by a function.

        `progress` takes a line for each, such as `print`. `executor` is any of `concurrent.futures`, or that of a Dask
        cluster: it estimates, or for a GPU assembles.
        """
        return search(self, by, checked_sizes(self.algorithm, sizes), progress or (lambda _: None), executor)


def schedule(algorithm: Algorithm, target: str = "sm_90a", **sizes: int) -> Schedule:
    """Start a schedule: one thread does all of it. `sizes` are those that are known already."""
    if not isinstance(algorithm, Algorithm):
        said = f"`schedule` is given a {type(algorithm).__name__}, expected an algorithm"
        refuse_here("not-an-algorithm", said, "put `@algorithm` above the function")
    if target not in TARGETS or not target.startswith("sm_") or int("".join(filter(str.isdigit, target))) < 80:
        meant = nearest(str(target), TARGETS)
        help = f"did you mean `{meant}`?" if target not in TARGETS and meant else "`sm_80`, `sm_90a` and so on"
        refuse_here("unknown-target", f"there is no schedule for `{target}`", help)
    return Schedule(algorithm, target, sizes, here())


def _restored(
    algorithm: Algorithm,
    target: str,
    sizes: Mapping[str, int],
    steps: Sequence[tuple[str, tuple[object, ...], tuple[tuple[str, object], ...]]],
) -> Schedule:
    """A schedule that was pickled."""
    return Schedule(algorithm, target, sizes, here()).take(*(Step(*one, here()) for one in steps))


def checked_sizes(algorithm: Algorithm, sizes: Mapping[str, int], least: int = 0) -> dict[str, int]:
    """Sizes by name; refuse others than there are."""
    for name, size in sizes.items():
        if name not in algorithm.sizes:
            said = f"`{algorithm.name}` has no size `{name}`"
            illegal_here(said, f"it has {quoted(algorithm.sizes)}")
        if not isinstance(size, int) or size < least:
            illegal_here(f"`{name}` is {size!r:.40}, expected a whole number from {least} on")
    return dict(sizes)


def plain_schedule(algorithm: Algorithm, target: str, sizes: Mapping[str, int]) -> Schedule:
    """A thread for each iteration of the outermost loops: the kernel that one writes first."""
    made = schedule(plain_algorithm(algorithm), target, **sizes)
    axes = [axis for axis in algorithm.statements[0].axes if axis not in algorithm.reduced][-2:]
    size = 256 if len(axes) == 1 else 16
    return made.tile(**dict.fromkeys(axes, size)).blocks().threads(*axes)
