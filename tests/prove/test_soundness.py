"""What is proved is run: no run may find what the proof rules out. Random kernels, and mutants of right ones.

`python -m tests.prove.test_soundness 0 2000` has as many as one likes.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import ptxlab
from ptxlab.prove import solver
from ptxlab.prove.replay import WRONG
from tests.prove.programs import make

needs_solver = pytest.mark.skipif(solver.z3 is None, reason="Z3 is not installed: `pip install 'ptxlab[prove]'`")
LAUNCHES = ((1, 0), (1, 3), (1, 8), (2, 13), (2, 16), (3, 24), (3, 17))
SEEDS = (2, 5, 9, 14, 20, 33)


def wrong_run(kernel: Any, schedules: int = 2) -> str | None:
    """What goes wrong in some launch, by whatever schedule of a few."""
    for grid, n in LAUNCHES:
        for seed in range(schedules):
            args = [np.arange(n, dtype=np.uint32) + 5, np.arange(n, dtype=np.uint32) * 3 + 100, n]
            found = kernel.launch(grid, 8, args, device="cpu", on_error="collect", timeout=60, seed=seed)
            codes = [one.code for one in found.diagnostics if one.level == "error" and one.code in WRONG]
            if codes:
                return f"{codes[0]} with grid {grid}, n {n}, seed {seed}"
    return None


def judge(seed: int) -> tuple[str, str | None]:
    """The verdict on a random kernel, and what goes wrong in its runs, if it is proved."""
    kernel = ptxlab.parse(make(seed))["kernel"]
    found = ptxlab.prove(kernel, assume=["len(x) == n", "len(y) == n"], replays=False, timeout=60)
    return found.level, wrong_run(kernel) if found.level == "proved" else None


@needs_solver
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.bulk
def test_random_kernels(seed: int) -> None:
    assert judge(seed)[1] is None


if __name__ == "__main__":
    counts: Counter[str] = Counter()
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        level, wrong = judge(seed)
        counts[level] += 1
        if wrong is not None:
            counts["contradiction"] += 1
            print(f"seed {seed}: proved, but {wrong}", flush=True)
    print(dict(counts))
