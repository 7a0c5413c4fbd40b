"""What is proved is run: no run may find what the proof rules out. `soundness` has as many kernels as one likes."""

from __future__ import annotations

import pytest

from ptxlab.prove.theories import solver
from tests.prove import expressions
from tests.prove.soundness import judge

needs_solver = pytest.mark.skipif(solver.z3 is None, reason="Z3 is not installed: `pip install 'ptxlab[prove]'`")


@needs_solver
@pytest.mark.parametrize("seed", [2, 5, 9, 13, 14, 20, 29, 33])
@pytest.mark.bulk
def test_random_kernels(seed: int) -> None:
    assert [row for row in judge((seed, 2)) if row.get("wrong")] == []


@needs_solver
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.bulk
def test_values_that_are_seen(seed: int) -> None:
    assert [row for row in expressions.judge(seed) if row["wrong"]] == []
