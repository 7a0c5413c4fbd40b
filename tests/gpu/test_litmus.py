"""Litmus tests on a GPU: whatever is observed there, the model allows."""

from pathlib import Path

import pytest

from ptxlab.litmus import load
from ptxlab.litmus.report import report

SET = sorted((Path(__file__).parent.parent / "litmus").glob("*.litmus"))


@pytest.mark.gpu
@pytest.mark.parametrize("path", SET, ids=lambda path: path.stem)
def test_the_model_allows_what_is_observed(path: Path) -> None:
    made = report(load(path), device="cuda", launches=4, every=True)
    assert list(made.problems()) == []
    if made.not_run is None:
        assert made.observed.finals.total() == made.observed.runs
