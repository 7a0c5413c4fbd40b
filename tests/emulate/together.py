"""Kernels with lanes together and with single threads: what differs, by `python -m tests.emulate.together`.

`--programs 200` says how many random programs, `--workers 14` how many processes, `--detectors` that they are on, and a
word which cases.
"""

import argparse
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ptxlab
from ptxlab.device.result import Result
from ptxlab.emulate import launch as launching
from ptxlab.emulate.abi.code import GROUP
from tests.emulate.defined import STRIDE, Program
from tests.emulate.kernels import CASES, Case, Launch

LEFT_OUT = ("addc", ".cc.", "subc", "call", ".param .b32", "param.b32")


@dataclass(frozen=True)
class Comparison:
    """What came of a kernel run both ways."""

    name: str
    together: int
    """Instructions that lanes executed together, each counted for each lane."""
    apart: tuple[str, ...]
    """Why lanes ran as threads, for each kernel that did."""
    differs: str
    found: int = 0
    """Diagnostics, of either way."""


def launch_all(
    module: ptxlab.ir.Module, launches: Sequence[Launch], together: bool, detectors: bool = False
) -> tuple[list[Result], list[str]]:
    """Run launches; with each result comes why lanes could not be together."""
    before = launching.MANY_THREADS, launching.MANY_INSTRUCTIONS, launching.compile_kernel
    reasons = []

    def noted(*given: Any) -> Any:
        compiled = before[2](*given)
        reasons.append(compiled.facts["apart"])
        return compiled

    launching.MANY_THREADS, launching.MANY_INSTRUCTIONS = (0 if together else 1 << 60), 1 << 60
    launching.compile_kernel = noted
    launching._apart.clear()
    try:
        found = [
            module[one.entry].launch(
                one.grid, one.block, one.args, shared=one.shared, cluster=one.cluster, device="cpu",
                detectors=detectors, on_error="collect", timeout=120, workers=1,
            )
            for one in launches
        ]  # fmt: skip
    finally:
        launching.MANY_THREADS, launching.MANY_INSTRUCTIONS, launching.compile_kernel = before
    return found, reasons


def compare(
    name: str, load: Callable[[], ptxlab.ir.Module], make: Callable[[], Sequence[Launch]], detectors: bool = False
) -> Comparison:
    """Run what `make` makes both ways, each on a module of its own, and compare all that came of it."""
    seen = []
    together, apart = 0, []
    for way in (True, False):
        launches = make()
        results, reasons = launch_all(load(), launches, way, detectors)
        if way:
            together = sum(result.counters.get("together", 0) for result in results)
            apart = [reason for reason in reasons if reason]
        # Without detectors a fault stops lanes at the same instruction, threads one after the other.
        stopped = not detectors and any(result.diagnostics for result in results)
        seen.append(
            {
                "diagnostics": [str(one) for result in results for one in result.diagnostics],
                "output": [result.output for result in results],
                "counters": [{} if stopped else result.counters | {"together": 0} for result in results],
                "memory": [] if stopped else [arg.tobytes() for one in launches for arg in arrays(one.args)],
            }
        )
    differs = " ".join(part for part in seen[0] if seen[0][part] != seen[1][part])
    return Comparison(name, together, tuple(apart), differs, len(seen[0]["diagnostics"]))


def arrays(args: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    return [arg for arg in args if isinstance(arg, np.ndarray)]


def compare_case(case: Case, detectors: bool = False) -> Comparison:
    """A kernel that people write."""

    def make() -> Sequence[Launch]:
        return case.make(np.random.default_rng(0)).launches

    return compare(case.name, lambda: ptxlab.load(case.path), make, detectors)


def compare_random(seed: int, detectors: bool = False) -> Comparison:
    """A random program."""
    text = random_program(seed)
    block = 3 * GROUP
    return compare(
        f"random {seed}",
        lambda: ptxlab.parse(text, name=f"defined{seed}.ptx"),
        lambda: [Launch("k", 1, block, [np.zeros((block, STRIDE), np.uint8)])],
        detectors,
    )


def random_program(seed: int) -> str:
    """A program without calls, warp collectives and the carry flag, which lanes do not execute together."""
    head, _, body = Program(seed).text().partition(".visible .entry")
    lines = [line for line in body.splitlines() if not any(word in line for word in LEFT_OUT)]
    return "\n".join([*head.splitlines()[:3], ".visible .entry" + lines[0], *lines[1:]])


def run(task: tuple[int | str, bool]) -> Comparison:
    which, detectors = task
    if isinstance(which, int):
        return compare_random(which, detectors)
    return compare_case(next(case for case in CASES if case.name == which), detectors)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--programs", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--detectors", action="store_true")
    given = parser.parse_args(arguments)
    names = [case.name for case in CASES if not given.words or any(word in case.name for word in given.words)]
    tasks: list[tuple[int | str, bool]] = [(one, given.detectors) for one in (*names, *range(given.programs))]
    found = []
    with multiprocessing.get_context("spawn").Pool(given.workers, maxtasksperchild=40) as pool:
        for one in pool.imap_unordered(run, tasks):
            found.append(one)
            if one.differs:
                print(f"{one.name}: {one.differs}", flush=True)
    reasons = Counter(reason for one in found for reason in set(one.apart))
    print(f"{len(found)} compared, {sum(one.together > 0 for one in found)} with lanes together,", end=" ")
    print(f"{sum(one.found > 0 for one in found)} with findings, {sum(bool(one.differs) for one in found)} different")
    for reason, count in reasons.most_common():
        print(f"  apart: {reason}: {count}")
    return int(any(one.differs for one in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
