"""What functions take and return, on a GPU."""

import numpy as np
import pytest

import ptxlab
from tests.emulate import calling, calling_mixed
from tests.emulate.calling import THREADS, Program

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("program", [*calling.PROGRAMS, *calling_mixed.PROGRAMS], ids=lambda program: program.name)
def test_values_arrive_whole(program: Program) -> None:
    found = np.zeros_like(program.expected)
    ptxlab.parse(program.text)["k"].launch(1, THREADS, [program.given, found], device="cuda")
    np.testing.assert_array_equal(found, program.expected)
