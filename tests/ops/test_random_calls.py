"""Random calls of every function on the emulator, with all detectors; `random_calls.py` draws more of them."""

import pytest

from tests.ops.drawing import Draw
from tests.ops.random_calls import FUNCTIONS, on_emulator


@pytest.mark.bulk(one_in=20)
@pytest.mark.parametrize(("number", "name"), [(number, name) for number in range(10) for name in FUNCTIONS])
def test_random_calls(number: int, name: str) -> None:
    drawn = FUNCTIONS[name](Draw(1000 + number))
    try:
        problems = [*on_emulator(drawn)]
    except ValueError as refused:
        assert "`" in str(refused)  # noqa: PT017 - it names the argument
    else:
        assert problems == [], drawn
