"""Random programs on the emulator and in the model: `python -m tests.litmus.differential --count 10000`.

Each program runs under a few seeds, and under some or all schedules that differ, in a few placements. The final state
of a run says what each read has read; the model is asked whether such an execution is allowed and whether it has a data
race, and the emulator must have found just that.

Two classes of differences are known and counted apart. To the model two `fence.sc` synchronize in the order that they
happen to have (PTX ISA 8.9.4, point 1); the emulator reports what is ordered by nothing but that, because the next run
may have the other order. And what follows an observed write in causality order follows that write alone (8.9.5, point
2); to the emulator it follows earlier accesses of the same thread to the same location, too.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from ptxlab.litmus import read
from ptxlab.litmus.budget import TooManyError
from ptxlab.litmus.executions import Allowed, Final, judge
from ptxlab.litmus.placements import Placement, placements, why_not
from ptxlab.litmus.program import Litmus
from ptxlab.litmus.run import ENDLESS, RACE, Observed, emulate, explore_all
from tests.litmus.programs import program

SEEDS = 6  # of each program, half of them in one placement and half in the next
LIMIT = 12  # executions of each program that differ, in a third placement


@dataclass(frozen=True)
class Difference:
    """A run in which emulator and model differ."""

    kind: str
    test: Litmus
    placement: Placement
    how: str
    final: Final | None

    def __str__(self) -> str:
        head = f"{self.kind}: {self.test.name}, {self.how}, {self.placement}"
        return f"{head}\n{self.test.source.text}{self.final}\n"


def compare(
    number: int, counts: Counter[str], seeds: int = SEEDS, limit: int = LIMIT, gpus: int = 0
) -> Iterator[Difference]:
    """Run one random program and yield how the runs differ from the model; with `gpus`, on so many GPUs of a node."""
    text = program(number)
    test = read(spread(text, number, gpus) if gpus else text, f"random-{number}.litmus")
    if gpus and len({thread.position.gpu for thread in test.threads}) < 2:
        counts["programs not run"] += 1
        return
    if why_not(test) is not None:
        counts["programs not run"] += 1
        return
    known: dict[Final, str] = {}
    for placement, how, seen in _runs(test, number, seeds, limit, bool(gpus)):
        counts["executions"] += seen.runs
        if wrong := {*seen.found} - {RACE}:
            yield Difference("endless" if wrong & {*ENDLESS} else f"found {wrong}", test, placement, how, None)
        for final, runs in seen.finals.items():
            if final not in known:
                known[final] = "too many" if "too many" in known.values() else _verdict(test, final)
            verdict, races = known[final], seen.races[final]
            counts[verdict] += runs
            if verdict == "forbidden":
                yield Difference("forbidden", test, placement, how, final)
            elif verdict == "racy" and races < runs:
                yield Difference("missed race", test, placement, how, final)
            elif verdict == "race-free" and races:
                yield Difference("false race", test, placement, how, final)


def spread(text: str, number: int, gpus: int) -> str:
    """A program with its blocks, or its clusters, on several GPUs."""
    random = Random(number)
    chosen: dict[str, int] = {}

    def place(found: re.Match[str]) -> str:
        group = found["cluster"] or found["cta"]
        return f"{found['cta']}{found['cluster'] or ''},gpu {chosen.setdefault(group, random.randrange(gpus))}"

    return re.sub(r"(?P<cta>cta \d+)(?P<cluster>,cluster \d+)?,gpu \d+", place, text)


def _runs(
    test: Litmus, number: int, seeds: int, limit: int, on_node: bool
) -> Iterator[tuple[Placement, str, Observed]]:
    places = [placement for placement in placements(test) if placement.gpus or not on_node]
    for seed in range(seeds):
        placement = places[(number + seed * 2 // seeds) % len(places)]
        yield placement, f"seed {seed + number}", emulate(test, placement, [seed + number])
    if limit:
        placement = places[(number + 2) % len(places)]
        yield placement, "explored", explore_all(test, placement, limit)


def _verdict(test: Litmus, final: Final) -> str:
    """What the model says of a final state; `too many` if there are too many executions for it."""
    try:
        about = judge(test, observed=final).finals.get(final)
    except TooManyError:
        return "too many"
    return "forbidden" if about is None else _race(about)


def _race(about: Allowed) -> str:
    """Whether executions with this final state have a race: all, none, or it depends on what can't be observed."""
    if about.racy_but_for_fence_sc == 0:
        return "race-free"
    if about.clearly_racy == about.executions:
        return "racy"
    if about.racy == about.executions:
        return "after an observed write"
    return "ordered by fence.sc" if about.racy == 0 else "undecided"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="executions")
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each program, in two placements")
    parser.add_argument("--limit", type=int, default=LIMIT, help="executions of each program that differ, in a third")
    parser.add_argument("--show", type=int, default=5, help="differences to show")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of a node that all programs run on; 0: one GPU")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    number, start = given.first, time.monotonic()
    while counts["executions"] < given.count:
        for one in {one.kind: one for one in compare(number, counts, given.seeds, given.limit, given.gpus)}.values():
            kinds[one.kind] += 1
            if kinds.total() <= given.show:
                print(one, flush=True)
        number += 1
        if number % 50 == 0:
            print(f"{number - given.first} programs, {counts['executions']} executions", file=sys.stderr, flush=True)
    took = time.monotonic() - start
    print(f"{dict(counts)} of {number - given.first} programs, {took:.0f} s")
    print(f"programs that differ: {dict(kinds) or 'none'}")
    return 1 if kinds else 0


if __name__ == "__main__":
    raise SystemExit(main())
