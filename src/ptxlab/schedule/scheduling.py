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
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ptxlab.author import Kernel
from ptxlab.author.lines import SourcePosition, refuse
from ptxlab.device.tensor_maps import tensor_map
from ptxlab.equal import Verdict, equal
from ptxlab.estimate import Estimate, estimate
from ptxlab.isa.targets import TARGETS
from ptxlab.measure import Launch
from ptxlab.report.nearest import nearest
from ptxlab.schedule.emit import shared_bytes, write_kernel
from ptxlab.schedule.plan import BYTES, Plan, plan
from ptxlab.schedule.reference import compute
from ptxlab.schedule.search import Judge, Search, search
from ptxlab.schedule.state import State
from ptxlab.schedule.statements import Algorithm, Array
from ptxlab.schedule.steps.blocks import blocks
from ptxlab.schedule.steps.cluster import cluster
from ptxlab.schedule.steps.persistent import persistent
from ptxlab.schedule.steps.pipeline import pipeline
from ptxlab.schedule.steps.prefetch import prefetch
from ptxlab.schedule.steps.raster import raster
from ptxlab.schedule.steps.reorder import reorder
from ptxlab.schedule.steps.resident import resident
from ptxlab.schedule.steps.specialize import specialize
from ptxlab.schedule.steps.stage import stage
from ptxlab.schedule.steps.tensorize import tensorize
from ptxlab.schedule.steps.threads import threads
from ptxlab.schedule.steps.tile import tile
from ptxlab.schedule.steps.unroll import unroll
from ptxlab.schedule.steps.vectorize import vectorize
from ptxlab.schedule.synchronize import synchronize

STEPS: dict[str, Callable[..., State]] = {
    one.__name__: one
    for one in (
        tile,
        blocks,
        threads,
        cluster,
        reorder,
        tensorize,
        stage,
        vectorize,
        pipeline,
        specialize,
        persistent,
        prefetch,
        unroll,
        raster,
        resident,
    )
}
MOST_BLOCKS = {"x": 2**31 - 1, "y": 65535, "z": 65535}
ACCEPTED = ("same-bits", "same-function", "near")  # verdicts of `equal` on a kernel and the plain one
TOLERANCE = 1e-4  # of the largest element of an output
_GRID = "xyz"
SMS = 132  # of an H200


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
        after = STEPS[self.name](state, *self.arguments, **dict(self.options))
        return replace(after, steps=(*state.steps, str(self)))

    def __str__(self) -> str:
        given = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.options)]
        return f"{self.name}({', '.join(given)})".replace("'", '"')

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Step) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


class Schedule:
    """An algorithm and the steps taken so far. Each step is checked when it is taken."""

    def __init__(self, algorithm: Algorithm, target: str, sizes: Mapping[str, int], position: SourcePosition) -> None:
        self.algorithm = algorithm
        self.target = target
        self.sizes = dict(sizes)
        self.steps: tuple[Step, ...] = ()
        self._states = [State.start(algorithm, target, sizes, position)]
        self._kernels: dict[Any, tuple[Plan, Kernel]] = {}
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
        self._kernels = {}
        return self

    def _take(self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Self:
        return self.take(Step(name, arguments, tuple(options.items()), here()))

    def tile(self, **sizes: int) -> Self:
        """Cut loops into tiles of so many iterations."""
        return self._take("tile", (), sizes)

    def blocks(self, *loops: str) -> Self:
        """Run loops by blocks: those named, or those that `tile` has just cut."""
        return self._take("blocks", loops, {})

    def threads(self, *loops: str) -> Self:
        """Run loops by threads: those named, or those that `tile` has just cut."""
        return self._take("threads", loops, {})

    def cluster(self, *loops: str) -> Self:
        """Share a loop that is reduced over among the blocks of a cluster."""
        return self._take("cluster", loops, {})

    def reorder(self, *loops: str) -> Self:
        """Nest loops in this order."""
        return self._take("reorder", loops, {})

    def stage(self, *arrays: str, **options: Any) -> Self:
        """Copy what a loop reads to shared memory or registers: `in_`, `at`, `transposed`, `pad`, `swizzle`."""
        return self._take("stage", arrays, options)

    def tensorize(self, unit: str) -> Self:
        """Have tensor cores compute a sum of products: by `mma.sync` or `wgmma`."""
        return self._take("tensorize", (unit,), {})

    def vectorize(self, *arguments: str | int) -> Self:
        """Access several neighbouring elements of arrays at once: `vectorize("a", "b", 4)`."""
        return self._take("vectorize", arguments, {})

    def pipeline(self, **options: Any) -> Self:
        """Copy to shared memory ahead of time: `stages`, `by`."""
        return self._take("pipeline", (), options)

    def specialize(self) -> Self:
        """Have one more warp copy by TMA, while the others compute."""
        return self._take("specialize", (), {})

    def persistent(self) -> Self:
        """Have a block compute tile after tile."""
        return self._take("persistent", (), {})

    def prefetch(self) -> Self:
        """Load what is staged in registers one iteration before it is read."""
        return self._take("prefetch", (), {})

    def unroll(self, *loops: str) -> Self:
        """Write the iterations of loops one after the other."""
        return self._take("unroll", loops, {})

    def raster(self, rows: int) -> Self:
        """Order blocks in groups of so many rows of tiles."""
        return self._take("raster", (rows,), {})

    def resident(self, blocks: int) -> Self:
        """Have so many blocks on an SM."""
        return self._take("resident", (blocks,), {})

    def undo(self, steps: int = 1) -> Self:
        """Take back the last steps."""
        if not 0 <= steps <= len(self.steps):
            refuse("illegal-step", f"{steps} of {len(self.steps)} steps are to be undone", position=here())
        count = len(self.steps) - steps
        self.steps, self._states, self._kernels = self.steps[:count], self._states[: count + 1], {}
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
        position = here()
        found = json.loads(saved)
        return self.take(
            *(Step(s["step"], tuple(s["arguments"]), tuple(s["options"].items()), position) for s in found["steps"])
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        mine, others = ((s.algorithm, s.target, s.sizes, s.steps) for s in (self, other))
        return mine == others

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(self.kernel())

    def __repr__(self) -> str:
        return f"<schedule of {self.algorithm.name}: {', '.join(self.history()) or 'no steps'}>"

    @property
    def state(self) -> State:
        """What the steps have decided."""
        return self._states[-1]

    def kernel(self, **multiples: int) -> Kernel:
        """The kernel for all sizes, or for sizes that are multiples of these: `kernel(m=128, n=128)` masks less."""
        return self._written(multiples)[1]

    def _written(self, multiples: Mapping[str, int], aligned: bool = True) -> tuple[Plan, Kernel]:
        key = (aligned, *sorted(multiples.items()))
        if key not in self._kernels:
            made = plan(self.state if aligned else _unaligned(self.state), multiples)
            synchronize(made)
            self._kernels[key] = made, write_kernel(made)
        return self._kernels[key]

    def _multiples(self, size: str) -> set[int]:
        """What it matters that a size is a multiple of: the tiles of loops, and vectors of rows, that it is in."""
        axes = [axis for axis, extent in self.algorithm.axes.items() if size in extent.names]
        rows = [name for name, array in self.algorithm.arrays.items() if size in array.extents[-1].names]
        vectors = [self.state.vectors[name] for name in rows if name in self.state.vectors]
        return {1, *(self.state.parts[axis][0].weight for axis in axes), *vectors}

    def launch_of(self, *arguments: Any) -> Launch:
        """The launch for arrays and numbers, in the order of the algorithm's parameters."""
        sizes = self.sizes_of(arguments)
        aligned = all(_alignment(a) % 16 == 0 for a in arguments if hasattr(a, "shape"))
        free = {name: size for name, size in sizes.items() if name not in self.sizes}
        multiples = {name: max(n for n in self._multiples(name) if size % n == 0) for name, size in free.items()}
        if self.state.pipeline is not None and self.state.pipeline.by == "tma":
            staged = [one.array for one in self.state.stages if one.at == self.state.pipeline.at]
            given = dict(zip(self.algorithm.parameters, arguments, strict=True))
            aligned = aligned and all(_is_mappable(self.algorithm.arrays[name], given[name]) for name in staged)
        made, kernel = self._written(multiples, aligned)
        counts = [
            -(-self.state.extent(p.axis).value(sizes) // p.weight) if p.extent is None else p.extent
            for p in map(self.state.part, self.state.blocks)
        ]
        grid = [math.prod(counts)] if self.state.group else counts[::-1] or [1]
        if made.state.persistent:
            grid = [min(grid[0], SMS)]
        blocks = self.state.cluster_blocks
        if blocks > 1:
            grid = [*[*grid, 1, 1][:2], blocks]
        for count, axis in zip(grid, _GRID, strict=False):
            if count > MOST_BLOCKS[axis]:
                said = f"{count:,} blocks in dimension {axis} of the grid, which has {MOST_BLOCKS[axis]:,} at most"
                refuse(
                    "schedule-limit", said, helps=["use larger tiles, or another order in `blocks`"], position=here()
                )
        maps = {
            name: tensor_map(
                arguments[self.algorithm.parameters.index(name)],
                (*buffer.shape[:-1], buffer.columns),
                swizzle=buffer.stage.swizzle,
            )
            for name, buffer in made.mapped.items()
        }
        args = [*(maps.get(n, a) for n, a in zip(self.algorithm.parameters, arguments, strict=True)), *free.values()]
        return Launch(
            kernel,
            tuple(max(count, 1) for count in grid),
            made.state.launched,
            args,
            shared=shared_bytes(made),
            cluster=(1, 1, blocks) if blocks > 1 else None,
        )

    def launch(self, *arguments: Any, **how: Any) -> Any:
        """Run it on arrays; `how` is what `kernel.launch` takes besides."""
        return self.launch_of(*arguments).run(**how)

    def sizes_of(self, arguments: Sequence[Any]) -> dict[str, int]:
        """The sizes that arrays have."""
        algorithm = self.algorithm
        if len(arguments) != len(algorithm.parameters):
            wanted = ", ".join(algorithm.parameters)
            refuse(
                "bad-argument",
                f"`{algorithm.name}` takes {wanted}: {len(arguments)} arguments are given",
                position=here(),
            )
        sizes: dict[str, int] = dict(self.sizes)
        given = dict(zip(algorithm.parameters, arguments, strict=True))
        for name, array in algorithm.arrays.items():
            shape = tuple(getattr(given[name], "shape", ()))
            if len(shape) != len(array.extents):
                said = f"`{name}` has {len(shape)} dimensions, expected {len(array.extents)}"
                refuse("bad-argument", said, position=here())
            for extent, count in zip(array.extents, shape, strict=True):
                if len(extent.terms) == 1 and extent.terms[0][0] not in sizes:
                    size, coefficient = extent.terms[0]
                    sizes[size] = (count - extent.constant) // coefficient
        for name, array in algorithm.arrays.items():
            shape = tuple(given[name].shape)
            expected = tuple(extent.value(sizes) for extent in array.extents)
            if shape != expected:
                text = ", ".join(f"{key} = {value}" for key, value in sizes.items())
                refuse("bad-argument", f"`{name}` has shape {shape}, expected {expected} for {text}", position=here())
            if not _is_contiguous(given[name]):
                refuse("bad-argument", f"the rows of `{name}` are not one after the other in memory", position=here())
        return {name: sizes[name] for name in algorithm.sizes}

    def draw(self, sizes: Mapping[str, int], seed: int = 0) -> list[Any]:
        """Random arguments of these sizes."""
        chance = np.random.default_rng(seed)
        found: list[Any] = []
        for name in self.algorithm.parameters:
            array = self.algorithm.arrays.get(name)
            if array is None:
                found.append(float(chance.uniform(0.5, 2.0)))
                continue
            values = chance.standard_normal([extent.value(sizes) for extent in array.extents])
            found.append(values.astype(_dtype(array.element)))
        return found

    def check(self, *, seeds: int = 3, symbolic: bool = True, **sizes: int) -> Schedule:
        """Run it on the emulator: the outputs are those of the algorithm, no thread races, all accesses are in bounds.

        Sizes are two tiles and a rest, or as given. With `symbolic` the kernel is also compared with the plain kernel
        of the algorithm by `ptxlab.equal`, for all values of the arrays that take the same branches; `verdict` is then
        its answer, which must be one of `ACCEPTED`. It returns the schedule.
        """
        given = {**sizes, **self.sizes}
        for seed in range(seeds):
            self._check_numbers({**self.some_sizes(), **given}, seed)
        if symbolic:
            self._check_function({**self.some_sizes(1), **given})
        return self

    def _check_numbers(self, sizes: Mapping[str, int], seed: int) -> None:
        arguments = self.draw(sizes, seed)
        names = self.algorithm.parameters
        for name, value in zip(names, arguments, strict=True):
            if name in self.algorithm.outputs and not _is_read(self.algorithm, name):
                value.fill(np.nan)
        expected = compute(self.algorithm, sizes, dict(zip(names, arguments, strict=True)))
        self.launch_of(*arguments).run(device="cpu", seed=seed)
        for name, wanted in expected.items():
            found = np.asarray(arguments[names.index(name)], np.float64)
            half = self.algorithm.arrays[name].element != "f32"
            room = (TOLERANCE if not half else 2e-2) * max(1.0, float(np.nanmax(np.abs(wanted), initial=0.0)))
            bad = ~((np.abs(found - wanted) <= room) | (np.isnan(found) & np.isnan(wanted)))
            if bad.any():
                place = tuple(int(n) for n in np.argwhere(bad)[0])
                self._refuse_wrong(f"`{name}{list(place)}` is {found[place]:g}, expected {wanted[place]:g}", sizes)

    def _check_function(self, sizes: Mapping[str, int]) -> None:
        arguments = self.draw(sizes)
        plain = plain_schedule(self.algorithm, self.target, self.sizes)
        found = equal(self.launch_of(*arguments), plain.launch_of(*arguments), assume_paths=True)
        self.verdict = found
        if found.level not in ACCEPTED:
            self._refuse_wrong(f"it is not the algorithm: {found}", sizes)

    def _refuse_wrong(self, what: str, sizes: Mapping[str, int]) -> None:
        text = ", ".join(f"{name} = {value}" for name, value in sizes.items())
        refuse("wrong-schedule", f"{self!r} is wrong for {text}: {what}", position=here())

    def some_sizes(self, tiles: int = 2) -> dict[str, int]:
        """Sizes of so many tiles and a rest in each direction, of one tile where it is large."""
        found = dict.fromkeys(self.algorithm.sizes, 1)
        for axis, parts in self.state.parts.items():
            tile = parts[0].weight
            wanted = tile * (tiles if tile <= 64 else 1) + max(1, tile // 3)
            for name, coefficient in self.algorithm.axes[axis].terms:
                if coefficient > 0:
                    found[name] = max(found[name], wanted)
        return {**found, **self.sizes}

    def estimate(self, *arguments: Any, **sizes: int) -> Estimate:
        """How long a launch takes on an H200, of arrays or of sizes, and what limits it."""
        given = arguments or self.draw({**self.some_sizes(), **self.sizes, **sizes})
        launch = self.launch_of(*given)
        return estimate(
            launch.kernel, launch.grid, launch.block, launch.args, shared=launch.shared, cluster=launch.cluster
        )

    def search(self, by: str | Judge = "estimate", **sizes: int) -> Search:
        """Try all combinations of the `free` numbers in its steps: by the estimate, on a GPU, or by a function."""
        return search(self, by, sizes)

    def barriers(self) -> Iterator[str]:
        """Why each barrier of the kernel is there."""
        from ptxlab.schedule.plan import Barrier, walk

        yield from (node.reason for node, _ in walk(self._written({})[0].tree) if isinstance(node, Barrier))


def schedule(algorithm: Algorithm, target: str = "sm_90a", **sizes: int) -> Schedule:
    """Start a schedule: one thread does all of it. `sizes` are those that are known already."""
    position = here()
    if not isinstance(algorithm, Algorithm):
        said = f"`schedule` is given a {type(algorithm).__name__}, expected an algorithm"
        refuse("not-an-algorithm", said, helps=["put `@algorithm` above the function"], position=position)
    if target not in TARGETS or not target.startswith("sm_") or int("".join(filter(str.isdigit, target))) < 80:
        meant = nearest(str(target), TARGETS)
        helps = [f"did you mean `{meant}`?"] if target not in TARGETS and meant else ["`sm_80`, `sm_90a` and so on"]
        refuse("unknown-target", f"there is no schedule for `{target}`", helps=helps, position=position)
    for name in sizes:
        if name not in algorithm.sizes:
            known = ", ".join(f"`{size}`" for size in algorithm.sizes)
            refuse(
                "illegal-step",
                f"`{algorithm.name}` has no size `{name}`",
                helps=[f"it has {known}"],
                position=position,
            )
    return Schedule(algorithm, target, sizes, position)


def plain_schedule(algorithm: Algorithm, target: str, sizes: Mapping[str, int]) -> Schedule:
    """A thread for each iteration of the outermost loops: the kernel that one writes first."""
    made = schedule(algorithm, target, **sizes)
    axes = algorithm.statements[0].axes[-2:]
    size = 256 if len(axes) == 1 else 16
    return made.tile(**dict.fromkeys(axes, size)).blocks().threads(*axes)


def here() -> SourcePosition:
    """The innermost line outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(__package__):
        frame = frame.f_back
    return SourcePosition(frame.f_code, frame.f_lineno, frame.f_lasti)


def _alignment(array: Any) -> int:
    """The address of an array on a GPU; arrays of the host are copied to where they are aligned."""
    if hasattr(array, "data_ptr"):
        return int(array.data_ptr())
    interface = getattr(array, "__cuda_array_interface__", None)
    return int(interface["data"][0]) if interface is not None else 0


def _is_mappable(array: Array, given: Any) -> bool:
    """Whether a tensor map can describe an array: its rows are a multiple of 16 bytes."""
    return int(given.shape[-1]) * BYTES[array.element] % 16 == 0


def _unaligned(state: State) -> State:
    """The same for arrays that neither vectors nor tensor maps are for: elements are copied by all threads."""
    plain = None if state.pipeline is None else replace(state.pipeline, by="cp.async")
    return replace(state, vectors={}, pipeline=plain, specialized=False, persistent=False)


def _is_contiguous(array: Any) -> bool:
    """Whether the elements of an array are in memory as the algorithm counts them."""
    if hasattr(array, "is_contiguous"):
        return bool(array.is_contiguous())
    flags = getattr(array, "flags", None)
    return flags is None or bool(flags.c_contiguous)


def _is_read(algorithm: Algorithm, name: str) -> bool:
    from ptxlab.schedule.statements import loads

    return any(load.array == name for one in algorithm.statements for load in loads(one))


def _dtype(element: str) -> Any:
    import ml_dtypes

    return {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[element]


__all__ = ["BYTES", "STEPS", "Schedule", "Step", "schedule"]
