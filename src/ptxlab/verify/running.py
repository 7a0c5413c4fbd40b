"""Calls of a submission on the emulator: what it left in memory, what the detectors found, how far it is off."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ptxlab.report import Diagnostic, KernelError, PtxError
from ptxlab.verify.submission import LaunchPlan, Submission, SubmissionError
from ptxlab.verify.task import Array, Data, Sizes, Task, Values
from ptxlab.verify.values import Difference

LAUNCH_SECONDS = 60.0


class OutOfTimeError(Exception):
    """The time for a verdict is over."""


@dataclass
class TimeLeft:
    """How much time is left, and how many launches there were."""

    seconds: float
    start: float = field(default_factory=time.monotonic)
    launches: int = 0

    @property
    def spent(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def left(self, most: float = LAUNCH_SECONDS) -> float:
        """Seconds that something may take."""
        rest = self.seconds - self.spent
        if rest <= 0.05:
            raise OutOfTimeError
        return min(rest, most)


@dataclass(frozen=True)
class Called:
    """One call: its arguments before and after it, and what was found."""

    before: Data
    after: Data
    kind: str
    seed: int
    diagnostics: Sequence[Diagnostic]
    instructions: int = 0

    def unwritten(self, name: str) -> npt.NDArray[np.bool_]:
        """Which elements of an output have the bytes from before."""
        held, after = (_bytes(data.arrays[name].view) for data in (self.before, self.after))
        return np.asarray((held == after).all(-1))

    def touched(self, array: Array) -> npt.NDArray[np.bool_]:
        """Which bytes were changed that are not to be: all of an input, and what is between and before elements."""
        before, after = self.before.arrays[array.name], self.after.arrays[array.name]
        changed = before.memory != after.memory
        return np.asarray(changed if array.role == "in" else changed & ~before.elements())


def _bytes(values: Values) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, values.itemsize)


class Caller:
    """Calls a submission, again and again."""

    def __init__(self, task: Task, submission: Submission, clock: TimeLeft, seed: int) -> None:
        self.task, self.submission, self.clock, self.seed = task, submission, clock, seed
        self.plans: dict[tuple[tuple[str, int], ...], LaunchPlan] = {}
        self._drawn = 0

    def plan(self, sizes: Sizes) -> LaunchPlan:
        """What is launched at these sizes."""
        key = tuple(sizes.items())
        if key not in self.plans:
            self.clock.left()
            self.plans[key] = self.submission.plan(sizes)
        return self.plans[key]

    def draw(self, sizes: Sizes, kind: str = "normal", number: int = 0) -> Data:
        """Arguments that no one has seen; `number` makes others, and fills outputs with other bytes."""
        data = self.task.draw(sizes, [self.seed, *sizes.values(), number], kind)
        if number % 2:
            random = np.random.default_rng([self.seed, number])
            for array in self.task.arrays:
                if array.role == "out":
                    memory = data.arrays[array.name].memory
                    memory[:] = random.integers(0, 256, memory.shape, np.uint8)
        return data

    def call(self, before: Data, kind: str = "normal", seed: int = 0) -> Called:
        """One call with a copy of these arguments; arrays are at the same addresses in every call."""
        after = self.task.draw(before.sizes, [0])
        for name, buffer in before.arrays.items():
            after.arrays[name].memory[:] = buffer.memory
        plan = self.plan(before.sizes)
        found: list[Diagnostic] = []
        instructions = 0
        launches, finish = plan.bound(after)
        for call, launch in zip(plan.calls, launches, strict=True):
            self.clock.launches += 1
            try:
                result = launch.run(
                    device="cpu", seed=seed, on_error="collect", timeout=self.clock.left(), cooperative=call.cooperative
                )
            except (KernelError, PtxError) as wrong:
                found += wrong.diagnostics
                break
            except (ValueError, TypeError, OverflowError) as wrong:  # of what a submission in Python sent
                raise SubmissionError("no-launch", f"`{call.entry}` cannot be launched so: {wrong}") from None
            found += result.diagnostics
            instructions += int(result.counters.get("instructions", 0))
            if any(one.level == "error" for one in result.diagnostics):
                break
        finish()
        return Called(before, after, kind, seed, found, instructions)

    def off(self, called: Called, expected: Mapping[str, Values]) -> dict[str, Difference]:
        """Which outputs are wrong."""
        found = {}
        single: Mapping[str, Values] | None = None
        for array in self.task.outputs:
            wanted, tolerance = expected[array.name], self.task.allowed(array)
            got = called.after.arrays[array.name].view
            scale = _size(wanted)
            if tolerance and called.kind != "normal":
                # What the reference itself loses in f32 is allowed several times where inputs are adversarial.
                single = single or self.task.expected(called.before, np.float32)
                with np.errstate(all="ignore"):
                    lost = np.abs(np.asarray(single[array.name], np.float64) - wanted)
                lost = lost[np.isfinite(lost)]
                tolerance = max(tolerance, 16 * float(lost.max(initial=0.0)) / scale)
            wrong = _wrong(got, wanted, scale, tolerance)
            if wrong.any():
                found[array.name] = Difference.between(got, wanted, wrong, called.unwritten(array.name))
        return found


def _wrong(got: Values, wanted: Values, scale: float, tolerance: float) -> npt.NDArray[np.bool_]:
    """Which elements are wrong."""
    if wanted.dtype.kind in "iub" and got.dtype.kind in "iu" and not tolerance:
        return np.asarray(got != wanted)
    with np.errstate(all="ignore"):
        x, y = got.astype(np.float64), _limit(got, wanted)
        near = np.abs(x - y) <= tolerance * (scale + np.abs(y))
    return np.asarray(~(near | (x == y) | (np.isnan(x) & np.isnan(y))))


def _limit(got: Values, wanted: Values) -> Values:
    """What is expected, where that is beyond the range of the outputs' type: infinity."""
    with np.errstate(all="ignore"):
        rounded = np.asarray(wanted, np.float64).astype(got.dtype).astype(np.float64)
    return np.where(np.isinf(rounded), rounded, wanted)


def _size(wanted: Values) -> float:
    """The root mean square of an output."""
    values = np.asarray(wanted, np.float64)
    known = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(known**2))) or 1.0 if known.size else 1.0


def error_of(called: Called, expected: Mapping[str, Values], outputs: Sequence[Array]) -> float:
    """The largest error of an output, relative to its size as `Task.tolerance` has it."""
    worst = 0.0
    for array in outputs:
        got, wanted = called.after.arrays[array.name].view.astype(np.float64), expected[array.name]
        with np.errstate(all="ignore"):
            error = np.abs(got - wanted) / (_size(wanted) + np.abs(wanted))
        worst = max(worst, float(error[np.isfinite(error)].max(initial=0.0)))
    return worst
