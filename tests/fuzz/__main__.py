"""Command line of the fuzzer; exits 1 if it finds something."""

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.minimise import minimise
from tests.fuzz.programs import KINDS, every
from tests.fuzz.workers import Worker, ready


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random programs through ptxlab.")
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the programs that show something")
    parser.add_argument("--kinds", default=",".join(KINDS), help="comma-separated")
    options = parser.parse_args(arguments)
    kinds = options.kinds.split(",")
    questions = (one for one in every(options.seed) if one[0] in kinds)
    workers = [Worker() for _ in range(options.workers)]
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
            found[finding.what] += 1
            print(f"{finding.what}: {kind} {seed}\n{finding.text[-1500:]}\n", flush=True)
            if options.keep:
                text = minimise(kind, seed, text, finding.what, worker)
                worker.question = ()
                _keep(options.keep, f"{finding.what} {kind} {seed}", finding.text, text)
    for worker in workers:
        worker.stop()
    print(
        f"seed {options.seed}: {sum(done.values())} programs {dict(done)}, {sum(found.values())} findings {dict(found)}"
    )
    return bool(found)


def _keep(folder: Path, name: str, finding: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    head = "".join(f"// {line}\n" for line in finding.strip().splitlines()[-12:])
    (folder / (re.sub(r"[^\w.]+", "-", name) + ".ptx")).write_text(head + text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
