"""A measurement on a GPU, from data to record.

Each contender gets the same sets of fresh random data, as many as are needed to leave the L2 cache cold, and answers
one of them correctly before any is timed. A short one is captured in a graph and its replays are timed, so that what
the Python costs is left out. Contenders take turns, for more rounds where their times differ much; after each sample,
the fingerprints of all answers are taken. Then they take turns again, each on one set of data, so that the L2 cache is
hot. Ceilings take theirs afterwards: a copy fills the L2 cache with what is still to be written, and on an H200 kernels
that only read are up to 3 % slower for many milliseconds after it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any

from ptxlab.gpu.driver import call
from ptxlab.launch.launches import Arrays, Launch, UnsuitedError
from ptxlab.measure.ceilings import ceilings
from ptxlab.measure.checking import check, expect
from ptxlab.measure.clocks import ClockLog
from ptxlab.measure.data import Device
from ptxlab.measure.entry import Entry, Size
from ptxlab.measure.fingerprints import Answers
from ptxlab.measure.interleaving import Timer, take_turns, until_steady
from ptxlab.measure.machine import commit, describe, require_torch
from ptxlab.measure.record import Contender, Record, Sized
from ptxlab.syntax import format

Action = Callable[[], Any]
Samples = Mapping[str, list[float]]
_SHORT = 100e-6  # seconds: below it a run is captured in a graph
_SAMPLE = 1e-3  # seconds that a sample lasts at least
HEAD_START = 4_000_000  # cycles of the GPU, about 2 ms: more than Python needs to ask for all runs of a sample
_SETS = 64  # sets of data at most
_MEMORY = 16 << 30  # bytes that sets of data may take together


def measure(
    name: str,
    entry: Entry,
    sizes: Sequence[Size] | None = None,
    *,
    rounds: int = 21,
    seed: int = 0,
    only: Iterable[str] | None = None,
    keep: Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Record:
    """Check and time all contenders of an entry, at its own sizes or others; `only` names the variants to time.

    `keep` is a file that has all sizes measured so far, also if it is interrupted.
    """
    torch = require_torch()
    report = progress or (lambda _: None)
    record = Record(name, entry.title, entry.measured_against, date.today().isoformat(), commit(), describe(torch))
    with ClockLog() as log:
        for size in sizes or entry.sizes:
            report(", ".join(f"{key} = {value}" for key, value in size.items()))
            record.sizes.append(
                _measure_size(torch, entry, size, rounds, seed, set(only or entry.variants), report, log)
            )
            if keep is not None:
                record.write(keep)
            gc.collect()
            torch.cuda.empty_cache()
    return record


def _measure_size(
    torch: ModuleType,
    entry: Entry,
    size: Size,
    rounds: int,
    seed: int,
    only: set[str],
    report: Callable[[str], None],
    log: ClockLog,
) -> Sized:
    work = entry.work(**size)
    sets = draw_sets(torch, entry, size, seed)
    expected = expect(torch, entry, sets[0])
    torch.cuda.synchronize()  # contenders run on a stream of their own, which does not wait for the data
    contenders: list[Contender] = []
    timers: dict[str, Timer] = {}
    hot: dict[str, Timer] = {}
    written: dict[str, list[Answers]] = {}
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    evict = torch.ones(2 * cache // 8, device="cuda", dtype=torch.int64)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for kind, name, make in _contestants(torch, entry, only, stream):
            try:
                actions = [make(arrays) for arrays in sets]
            except UnsuitedError as reason:
                contenders += [Contender(name, kind, [], work, note=str(reason))] if str(reason) else []
                continue
            found = [Answers(torch, name, some, [*expected], evict) for some in (sets, sets[:1])]
            for answers, into in zip(found, (timers, hot), strict=True):
                kept = [answers.keep(number, action) for number, action in enumerate(actions[: len(answers.sets)])]
                answers.spoil(1)
                kept[0]()
                torch.cuda.synchronize()
                error = check(torch, entry, size, {**sets[0], **answers.of(0)}, expected, name)
                answers.keep_checked()
                into[name] = timer(torch, kept, stream, answers)
            contenders.append(Contender(name, kind, [], work, error.relative, error.mean))
            written[name] = found
        del expected
        for warm in (*timers.values(), *hot.values()):
            warm()
        started = time.monotonic()
        samples = until_steady(timers, rounds, lambda done: report(f"round {done} of {rounds}"))
        fewer = max(3, rounds // 3)
        hot_samples = take_turns(hot, fewer)
        conditions = log.since(started)
        above = ceilings(torch, work)
        contenders += [Contender(ceiling.name, "ceiling", [], ceiling.work) for ceiling in above]
        samples |= take_turns({one.name: timer(torch, one.actions, stream) for one in above}, fewer)
    finished = [_finished(one, entry.allowed(size), samples, hot_samples, written) for one in contenders]
    return Sized(dict(size), work, finished, conditions)


def _finished(
    one: Contender, allowed: float, samples: Samples, hot: Samples, written: Mapping[str, Sequence[Answers]]
) -> Contender:
    """A contender with its times, and whether its answers were those that had been checked."""
    compared = [answers.compare(allowed) for answers in written.get(one.name, [])]
    counts = [sum(each) for each in zip(*compared, strict=True)] or [0, 0]
    return replace(
        one, samples=samples.get(one.name, []), hot=hot.get(one.name, []), compared=counts[0], same=counts[1]
    )


def _contestants(
    torch: ModuleType, entry: Entry, only: set[str], stream: object
) -> Iterable[tuple[str, str, Callable[[Arrays], Action]]]:
    """Every variant and library: its kind, its name, and what turns arrays into a run."""

    def variant(name: str) -> Callable[[Arrays], Action]:
        return lambda arrays: together(entry.launches(name, arrays), stream)

    def library(name: str) -> Callable[[Arrays], Action]:
        return lambda arrays: entry.libraries[name](torch, **arrays)

    yield from (("variant", name, variant(name)) for name in entry.variants if name in only)
    yield from (("library", name, library(name)) for name in entry.libraries)


def together(launches: Sequence[Launch], stream: object, cubins: Mapping[str, Path] | None = None) -> Action:
    """One call for all launches of a variant; `cubins` has what was compiled already, by the text of the program."""
    known = cubins or {}
    prepared = [launch.prepare(stream, known.get(format(launch.module))).launch for launch in launches]
    if len(prepared) == 1:
        return prepared[0]

    def run() -> None:
        for launch in prepared:
            launch()

    return run


def draw_sets(torch: ModuleType, entry: Entry, size: Size, seed: int) -> list[Arrays]:
    """Sets of data that together are twice the L2 cache, so that a run finds nothing of its own in it."""
    first = entry.arrays(Device(torch, seed), **size)
    length = sum(value.nbytes for value in first.values() if hasattr(value, "nbytes"))
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    count = min(-(-2 * cache // max(length, 1)) + 1, _SETS, max(_MEMORY // max(length, 1), 1))
    return [first, *(entry.arrays(Device(torch, seed + number), **size) for number in range(1, count))]


def timer(torch: ModuleType, actions: Sequence[Action], stream: object, answers: Answers | None = None) -> Timer:
    """What times one run, as the mean over as many in a row as a sample needs, each on the next set of data.

    Outside of what is timed, `answers` are overwritten before a sample, and their fingerprints taken after it.
    """
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def elapsed(run: Action, count: int) -> float:
        used = min(count, len(actions))
        if answers is not None:
            answers.spoil(used)
        call("cuCtxResetPersistingL2Cache")  # what another contender made the L2 cache keep must not slow this one
        torch.cuda._sleep(HEAD_START)  # the GPU is busy while Python asks for the runs
        actions[-1]()  # untimed: what the cache has still to write back is then this contender's own
        start.record(stream)
        run()
        end.record(stream)
        end.synchronize()
        if answers is not None:
            answers.take(used)
        return float(start.elapsed_time(end)) / 1e3 / count

    def several(count: int) -> Action:
        def run() -> None:
            for number in range(count):
                actions[number % len(actions)]()

        return run

    actions[0]()
    once = elapsed(several(len(actions)), len(actions))
    count = max(1, min(round(_SAMPLE / max(once, 1e-7)), 1000))
    if once > _SHORT:
        run = several(count)
        return lambda: elapsed(run, count)
    count = max(count, len(actions))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        several(count)()
    return lambda: elapsed(graph.replay, count)
