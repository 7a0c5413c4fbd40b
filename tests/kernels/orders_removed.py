"""Collectives with one order removed at a time: `python -m tests.kernels.orders_removed OUT.json [SEEDS] [PROCESSES]`.

What is found is counted by seed; a wrong result counts, too. An order whose removal is not found on every seed is
listed with its line. There are reasons for some:

- `no wait`: a signal that has arrived when it is read once is as good as one that was waited for. If one of a later
  step has arrived, all accesses are ordered, and only the result is wrong.
- a signal of a ring or a tree, on some seeds: a later one in the same word has arrived, whose release comes after all
  that the first one is for.
- `relaxed load` in the last barrier: the end of a kernel orders what its threads have read before what follows on the
  stream, and nothing of the kernel comes after.
- `no barrier` of a `send` with nothing before it in the kernel, or right after another one.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from tests.kernels.test_collectives import COLLECTIVES, FUSED, mutated, run, run_fused

RANKS = 3


@cache
def _mutants(name: str) -> dict[str, Any]:
    return dict(mutated(name))


def judge(task: tuple[str, str, int]) -> list[Any]:
    """The codes that are found of one mutant, by seed."""
    name, what, seeds = task
    kernel = _mutants(name)[what]
    found = []
    for seed in range(seeds):
        try:
            if name in FUSED:
                result = run_fused(name, RANKS, lambda _: kernel, seed=seed, timeout=60)
            else:
                result = run(name, RANKS, 32 * RANKS, lambda _: kernel, seed=seed, timeout=60)
            found.append(sorted({one.code for one in result.diagnostics}))
        except AssertionError:
            found.append(["wrong-result"])
    return [name, what, found]


def main(out: Path, seeds: int, processes: int) -> None:
    tasks = [(name, what, seeds) for name in (*COLLECTIVES, *FUSED) for what in _mutants(name)]
    with ProcessPoolExecutor(processes) as pool:
        judged = list(pool.map(judge, tasks))
    missed = [one for one in judged if not all(one[2])]
    out.write_text(json.dumps({"mutants": len(judged), "seeds": seeds, "missed": missed}, indent=1) + "\n")
    print(f"{len(judged)} mutants, {seeds} seeds, {len(missed)} not found on every seed")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
