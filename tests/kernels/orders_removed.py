"""Collectives with one order removed at a time: `python -m tests.kernels.orders_removed OUT.json SEEDS PROCESSES`.

What is found is counted by seed; a wrong result counts, too. An order whose removal is not found on every seed is
listed, with the reason:

- `arrived`: it is found on other seeds. On this one, a later signal in the same word had arrived already when the first
  one was read: its release comes after all that the first one is for. The same holds for a signal that is read once in
  place of being waited for, and for two signals to one word that no barrier keeps in order and that were sent in order.
- `end of the kernel`: the acquire of the last barrier. The end of a kernel orders what its threads have read before
  what follows on the stream, and nothing of the kernel comes after.
- `unknown`: none of these. The program fails then.
"""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from ptxlab.launch import module_of
from tests.kernels.test_collectives import COLLECTIVES, FUSED, mutated, run, run_fused

RANKS = 3


@cache
def _mutants(name: str) -> dict[str, Any]:
    return dict(mutated(name))


def judge(task: tuple[str, str, int]) -> list[Any]:
    """The codes that are found of one mutant, by seed, and why some seeds have none."""
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
    return [name, what, found, "" if all(found) else _reason(what, kernel, found)]


def _reason(what: str, kernel: Any, found: list[list[str]]) -> str:
    if any(found):
        return "arrived"
    text = module_of(kernel).source.text
    kind, _, line = what.rpartition(" ")
    last = max(at.start() for at in re.finditer(r"ld\.(acquire|relaxed)\.sys", text))
    is_last = text[:last].count("\n") == int(line)
    return "end of the kernel" if kind == "relaxed load" and is_last else "unknown"


def main(out: Path, seeds: int, processes: int) -> None:
    tasks = [(name, what, seeds) for name in (*COLLECTIVES, *FUSED) for what in _mutants(name)]
    with ProcessPoolExecutor(processes) as pool:
        judged = list(pool.map(judge, tasks))
    missed = [one for one in judged if one[3]]
    reasons = {why: sum(one[3] == why for one in missed) for why in ("arrived", "end of the kernel", "unknown")}
    found = {"mutants": len(judged), "seeds": seeds, "not on every seed": reasons, "missed": missed}
    out.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(judged)} mutants, {seeds} seeds, not found on every seed: {reasons}")
    sys.exit(reasons["unknown"] > 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
