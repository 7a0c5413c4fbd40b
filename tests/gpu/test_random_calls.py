"""Random calls of every function on a GPU: prepared, prepared before, and in a graph; beside float64."""

import pytest

from tests.ops.drawing import Draw
from tests.ops.random_calls import FUNCTIONS, on_gpu

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]  # other packages have their own
EACH, PARTS = 8, 5


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_calls(name: str, part: int) -> None:
    pytest.importorskip("torch")
    for number in range(part * EACH, (part + 1) * EACH):
        drawn = FUNCTIONS[name](Draw(number))
        try:
            problems = [*on_gpu(drawn)]
        except ValueError as refused:
            assert "`" in str(refused)  # noqa: PT017 - it names the argument
        else:
            assert problems == [], (number, str(drawn))
