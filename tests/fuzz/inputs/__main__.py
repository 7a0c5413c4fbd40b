"""Command line of the fuzzer of inputs; exits 1 if it finds something."""

import argparse
import re
import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path

from tests.fuzz.inputs import KINDS
from tests.fuzz.inputs.workers import InputWorker, lacking
from tests.fuzz.workers import ready


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.inputs", description="Damaged inputs through ptxlab.")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--keep", type=Path, help="folder for the inputs that show something")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated")
    options = parser.parse_args(arguments)
    kinds = []
    for kind in options.kinds.split(","):
        absent = lacking(kind)
        if absent:
            print(f"{kind}: skipped, since there is no {absent} here", flush=True)
        else:
            kinds.append(kind)
    questions = ((kind, f"{options.seed}.{number}") for number in count() for kind in kinds)
    workers = [InputWorker() for _ in range(options.jobs if kinds else 0)]
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
            if finding is not None:
                found[f"{kind}: {finding.what}"] += 1
                print(f"{finding.what}: {kind} {seed}\n{finding.text[-1500:]}\n", flush=True)
                _keep(options.keep, f"{kind} {finding.what} {seed}", text)
    for worker in workers:
        worker.stop()
    print(
        f"seed {options.seed}: {sum(done.values())} inputs {dict(done)}, {sum(found.values())} findings {dict(found)}"
    )
    return bool(found)


def _keep(folder: Path | None, name: str, text: str) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / re.sub(r"[^\w.]+", "-", name)).write_bytes(text.encode("latin-1"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
