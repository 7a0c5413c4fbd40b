"""Random programs with all detectors: reports, counters and memory are what they were, whole."""

from pathlib import Path

import pytest

from tests.emulate.random_programs import MAKERS, chosen, shown
from tests.golden import compare_one

GROUP = 10
GROUPS = [(name, first) for name in MAKERS for first in range(0, len(chosen(name)), GROUP)]


@pytest.mark.parametrize(("name", "first"), GROUPS)
def test_what_random_programs_show(name: str, first: int) -> None:
    """`python -m tests.emulate.random_programs show NAME NUMBER` prints one."""
    numbers = chosen(name)[first : first + GROUP]
    found = [(number, shown(MAKERS[name](number))) for number in numbers]
    compare_one(Path(__file__).with_suffix(".txt"), f"{name} {first}: {numbers}", found)
