"""Every file of this folder is a test; `case` says how one is written."""

import pytest

from tests.cases.case import Case, bless, cases, differences
from tests.tools import BLESS


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=() if case.spelling else pytest.mark.core, id=str(case)) for case in cases()]
)
def test_case(case: Case) -> None:
    seen = [case.launch(seed) for seed in range(case.seeds)] if case.how else []
    checked = case.check() if case.lines("check") else []
    if BLESS and not case.spelling:
        bless(case, seen, checked)
        return
    assert differences(case, seen) == []
    assert [finding.key for finding in checked] == [finding.key for finding in case.checked]
