"""The files of `tests/cases` that say what they compute, on a GPU: it must give the same."""

from pathlib import Path

import pytest

from ptxlab.gpu import gpu
from ptxlab.pytest_plugin.case import Case, cases_of, differences

FOLDER = Path(__file__).parents[1] / "cases"
CASES = [case for path in sorted(FOLDER.rglob("*.ptx")) for case in cases_of(path)]


@pytest.mark.gpu
@pytest.mark.parametrize("case", [case for case in CASES if case.results and not case.findings], ids=str)
def test_results_of_a_case(case: Case) -> None:
    if gpu().architecture_for(case.module.target) is None:
        pytest.skip(f"{gpu().name} does not run {case.module.target}")
    run = case.launch(device="cuda")
    assert run.findings == []
    assert [found for found in differences(case, [run]) if "results" in found] == []
