"""`tune`: which variants of a function are the fastest on this GPU, measured with the arrays of a call.

A call asks for variants while it is prepared (`Choice`). Each that may be the fastest is chosen in turn, the call
prepared again with results of its own, and its launches timed with a cold L2 cache, in turns with the others. The
answers are kept in the cache folder. `PTXLAB_TUNE=1` does the same in the first call with arrays of some forms.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ptxlab.gpu.driver import absence, call
from ptxlab.gpu.waiting import run
from ptxlab.kernels.parts.choices import Answer, Choice, answers, brief, keep, trying
from ptxlab.launch.launches import UnsuitedError
from ptxlab.measure.interleaving import take_turns
from ptxlab.ops.matrices import address_of, memory
from ptxlab.report import KernelError, PtxError

if TYPE_CHECKING:
    from ptxlab.device.arrays import Array

VARIABLE = "PTXLAB_TUNE"
FLUSHED = 256 << 20  # bytes that are written before each sample, more than L2 has
FIRST, MORE = 3, 8  # rounds for all, and for those that are close to the fastest
CLOSE = 1.1  # times the fastest
CLEARLY = 0.99  # of the time without: what is slower does not replace what is chosen anyway

Start = Callable[[], Any]
Stopwatch = Callable[[Start], float]
"""Starts the work and returns the seconds that it takes."""
Asked = Sequence[tuple[Choice, tuple[Any, ...]]]

forget: list[Callable[[], None]] = []
"""What makes each function prepare its calls anew."""
_callers: list[str] = []  # functions that are being tuned


def tune(function: Callable[..., object], *arrays: Array, **options: object) -> list[Answer]:
    """Find the fastest variants for this call, and use them from now on: `tune(matmul, a, b)`.

    The arrays must be a GPU's. They are only read: results are arrays of their own, until the last run, which is that
    of the call. What was found is returned, and kept in the cache folder with the GPU, its driver and ptxlab's version.
    It is nothing where there is one variant only. A call that was tuned before is measured again.
    """
    problem = absence()
    if problem is not None:
        raise KernelError([problem])
    before = dict(answers())
    _callers.append(getattr(function, "__name__", str(function)))
    try:
        _forget_all()
        function(*arrays, **options)
    finally:
        _callers.pop()
    return [one for key, one in answers().items() if before.get(key) is not one]


def _forget_all() -> None:
    for one in forget:
        one()


def refuse_host() -> None:
    """Say what `tune` needs, if it was called with arrays of the host."""
    if _callers:
        raise ValueError(f"`tune` measures `{_callers[-1]}` on a GPU, and these arrays are in the host's memory: "
                         "pass arrays of torch, CuPy or JAX on a GPU")  # fmt: skip


def is_wanted(asked: Asked) -> bool:
    """Whether what a call asks for is measured now: in `tune`, or where the variable says so and it never was."""
    if _callers:
        return bool(asked)
    is_on = os.environ.get(VARIABLE, "0") not in ("", "0")
    return is_on and any((choice.name, str(given)) not in answers() for choice, given in asked)


def on_stream(like: Any, stream: int) -> Stopwatch:
    """A stopwatch that begins with a cold L2 cache: of the same framework and device as an array."""
    other = memory(like, FLUSHED)

    def time(start: Start) -> float:
        call("cuMemsetD8Async", address_of(other), 0, FLUSHED, stream)
        return run(start, stream, None)

    return time


def measure(asked: Asked, make: Callable[[], Start], stopwatch: Stopwatch) -> None:
    """Find the fastest variant of each thing that is asked for; `make` prepares the work with what is chosen now."""
    for choice, given in asked:
        keep([_fastest(choice, given, make, stopwatch)])
    _forget_all()


def _fastest(choice: Choice, given: tuple[int, ...], make: Callable[[], Start], stopwatch: Stopwatch) -> Answer:
    variants = [*dict.fromkeys([choice.choose(*given), *choice.candidates(*given)])]
    starts: dict[str, Start] = {}
    for number, variant in enumerate(variants):
        _show(choice, f"{number} of {len(variants)} variants are ready")
        with trying(choice, given, variant):
            try:
                start = make()
                start()
            except (UnsuitedError, KernelError, PtxError):
                if not number:  # what is chosen without measuring must run
                    raise
                continue
        starts[str(number)] = start
    samples = take_turns({name: partial(stopwatch, start) for name, start in starts.items()}, FIRST)
    limit = CLOSE * min(map(statistics.median, samples.values()))
    close = {name: starts[name] for name, times in samples.items() if name == "0" or statistics.median(times) <= limit}
    take_turns({name: partial(stopwatch, start) for name, start in close.items()}, MORE, into=samples)
    times = {name: statistics.median(samples[name]) for name in close}
    best = min(times, key=lambda name: times[name])
    if times[best] > CLEARLY * times["0"]:
        best = "0"
    found, before = (round(1e6 * times[name], 2) for name in (best, "0"))
    _show(choice, f"the fastest of {len(starts)} variants takes {found} us, what is chosen otherwise {before} us", True)
    return Answer(choice.name, str(given), brief(variants[int(best)]), found, before)


def _show(choice: Choice, text: str, is_last: bool = False) -> None:
    """Progress: one line that changes on a terminal, only the last one elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\033[Kptxlab tune: {choice.name}: {text}", end="\n" if is_last else "", file=sys.stderr, flush=True)
    elif is_last:
        print(f"ptxlab tune: {choice.name}: {text}", file=sys.stderr)
