"""Each derived synchronization removed, one at a time: it is found, or it was not needed and is not to be written.

python -m tests.schedule.removed [--only tests,docs,random] [--count 100] [--seed 0] [--seconds 540] [--out FILE]

The schedules of tests and of the page on schedules, and random ones.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from ptxlab.report import KernelError, PtxError
from ptxlab.schedule import Schedule, launching
from tests.doc_pages import run_page
from tests.schedule import (
    random_schedules,
    test_multicast,
    test_online,
    test_pair,
    test_results,
    test_scaled,
    test_schedule,
    test_stream_k,
    test_tcgen05,
    test_tensor,
)
from tests.schedule.removals import missed

NAMED = {
    "tensor": test_tensor.SHORT,
    "tcgen05": test_tcgen05.SCHEDULES,
    "multicast": test_multicast.SCHEDULES,
    "stream_k": test_stream_k.SCHEDULES,
    "online": test_online.SCHEDULES,
    "scaled": test_scaled.SCHEDULES,
    "results": test_results.SCHEDULES,
    "pair": {**test_pair.SCHEDULES, **test_pair.SCALED},
    "f32": {one.__name__: one for one in (test_schedule.tiled, test_schedule.pipelined, test_schedule.prefetched)},
}


def sizes_of(s: Schedule) -> dict[str, int]:
    """Two tiles and a rest in each direction, more turns of a ring than it has slots, and of sets of accumulators."""
    sizes, wanted = s.sizes_for({}), {}
    if s.state.pipeline.at:
        wanted[s.state.pipeline.at] = 2 * s.state.pipeline.stages + 2
    if s.state.persistent:
        wanted[s.state.blocks[-1]] = 2 * s.state.accumulators + 1
    for part, turns in ((s.state.part(name), turns) for name, turns in wanted.items()):
        for name, coefficient in s.algorithm.axes[part.axis].terms:
            if coefficient > 0 and name not in s.sizes:
                sizes[name] = max(sizes[name], part.weight * s.state.together(part.name) * turns)
    return sizes


def schedules(only: list[str], count: int, seed: int) -> Iterator[tuple[str, Schedule]]:
    """Names, and schedules of tests, of the page, and random ones."""
    if "tests" in only:
        for kind, made in NAMED.items():
            yield from ((f"{kind}, {name}", make()) for name, make in made.items())
    if "docs" in only:
        yield from ((f"docs {number}", one) for number, one in enumerate(of_page()))
    if "random" in only:
        for number in range(seed, seed + count):
            one, refused = random_schedules.draw(random.Random(number))
            if random_schedules.is_short(one, refused):
                yield f"random {number}", one


def of_page() -> list[Schedule]:
    """The schedules that the page checks, as they were then, and those that are left."""
    found: list[Schedule] = []

    def noted(self: Schedule, **_: object) -> Schedule:
        found.append(self.copy())
        return self

    silent, folder_of = redirect_stdout(io.StringIO()), tempfile.TemporaryDirectory()
    with mock.patch.object(Schedule, "check", noted), silent, folder_of as folder:
        names, _ = run_page("schedule.md", Path(folder))
    return found + [one for one in names.values() if isinstance(one, Schedule)]


def examine(s: Schedule, sms: int) -> dict[str, Any]:
    """What became of each synchronization of a schedule."""
    sizes = sizes_of(s)
    with mock.patch.object(launching, "SMS", sms):
        try:
            count, left = missed(s, sizes)
        except (KernelError, PtxError) as problem:
            return {"sizes": sizes, "sms": sms, "error": str(problem)[:2000]}
    return {"sizes": sizes, "sms": sms, "count": count, "missed": left}


def fewest(s: Schedule) -> int:
    """SMs on which tiles are computed one after the other."""
    return s.state.together() if not s.state.stream_k else 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", type=lambda text: text.split(","), default=["tests", "docs", "random"])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    end = time.time() + given.seconds
    found: list[Mapping[str, Any]] = []
    for name, s in schedules(given.only, given.count, given.seed):
        if time.time() > end:
            print("out of time before", name)
            break
        start = time.process_time()
        one = {"name": name, "schedule": repr(s), **examine(s, fewest(s)), "seconds": time.process_time() - start}
        found.append(one)
        if one.get("missed") or "error" in one:
            print(
                name,
                one["schedule"],
                one["sizes"],
                one.get("error", ""),
                *one.get("missed", ()),
                sep="\n  ",
                flush=True,
            )
        if given.out:
            given.out.write_text(json.dumps(found, indent=1))
    left = sum(len(one.get("missed", ())) for one in found)
    print(f"{len(found)} schedules, {sum(one.get('count', 0) for one in found)} synchronizations, {left} not found")
    return bool(left)


if __name__ == "__main__":
    sys.exit(main())
