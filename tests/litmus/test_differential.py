"""Random programs: the emulator does what the model allows, and finds the data races that it has; the short version."""

from collections import Counter

import pytest

from tests.litmus.differential import compare

PROGRAMS = 60
GROUPS = 6


def test_the_emulator_agrees_with_the_model_on_several_gpus() -> None:
    counts: Counter[str] = Counter()
    found = [str(one) for number in range(14) for one in compare(number, counts, seeds=3, limit=0, gpus=3)]
    assert found == []
    assert counts["race-free"] >= 3
    assert counts["racy"] >= 3


@pytest.mark.bulk(one_in=6)
@pytest.mark.slow
@pytest.mark.parametrize("group", [0, 1, *(pytest.param(group, marks=pytest.mark.bulk) for group in range(2, GROUPS))])
def test_the_emulator_agrees_with_the_model(group: int) -> None:
    counts: Counter[str] = Counter()
    found = [str(one) for number in range(group, PROGRAMS, GROUPS) for one in compare(number, counts)]
    assert found == []
    assert counts["executions"] >= 40
    assert counts["race-free"] >= 5
    assert counts["racy"] >= 5
