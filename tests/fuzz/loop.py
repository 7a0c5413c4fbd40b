"""What both fuzzers do: processes examine what seeds give until the time is over; findings are printed and kept."""

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tests.fuzz.examine import Finding
from tests.fuzz.workers import AnyWorker, ready

Keep = Callable[[AnyWorker, str, str, str, Finding], bytes]
"""Of a worker, a kind, a seed, a text and a finding: what is kept of it."""


def options_of(arguments: Sequence[str], about: str, kinds: Iterable[str]) -> argparse.Namespace:
    """The options of a fuzzer."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--keep", type=Path, help="folder for what shows something")
    parser.add_argument("--kinds", default=",".join(kinds), help="comma-separated")
    return parser.parse_args(arguments)


def fuzz(
    options: argparse.Namespace,
    questions: Iterator[tuple[str, ...]],
    workers: list[AnyWorker],
    keep: Keep[AnyWorker],
    suffix: str = "",
) -> int:
    """Ask until the time is over; 1 if something is found."""
    until = time.perf_counter() + 60 * options.minutes
    done: Counter[str] = Counter()
    found: Counter[str] = Counter()
    while True:
        if time.perf_counter() < until:
            for worker in workers:
                if not worker.question:
                    worker.ask(*next(questions))
        if not any(worker.question for worker in workers):
            break
        for worker in ready(workers):
            kind, seed = worker.question[:2]
            text, finding = worker.answer()
            worker.question = ()
            done[kind] += 1
            if finding is None:
                continue
            found[f"{kind}: {finding.what}"] += 1
            print(f"{finding.what}: {kind} {seed}\n{finding.text[-1500:]}\n", flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                name = re.sub(r"[^\w.]+", "-", f"{finding.what} {kind} {seed}") + suffix
                (options.keep / name).write_bytes(keep(worker, kind, seed, text, finding))
    for worker in workers:
        worker.stop()
    print(f"seed {options.seed}: {done.total()} examined {dict(done)}, {found.total()} findings {dict(found)}")
    return bool(found)
