"""What functions take and return, on the emulator."""

import numpy as np
import pytest

import ptxlab
from ptxlab.toolchain import accepted, judge
from tests.emulate import calling, calling_mixed
from tests.emulate.calling import THREADS, Program
from tests.tools import needs_ptxas

every = pytest.mark.parametrize(
    "program", [*calling.PROGRAMS, *calling_mixed.PROGRAMS], ids=lambda program: program.name
)


@pytest.mark.bulk(one_in=3)
@needs_ptxas
@every
def test_program_is_legal(program: Program) -> None:
    assert accepted(judge(program.text)), program.text


@pytest.mark.bulk(one_in=3)
@every
def test_values_arrive_whole(program: Program) -> None:
    module = ptxlab.parse(program.text)
    assert {finding.code for finding in ptxlab.check(module)} <= {"lossy-call"}  # of hardware; here all bits arrive
    found = np.zeros_like(program.expected)
    module["k"].launch(1, THREADS, [program.given, found], device="cpu")
    np.testing.assert_array_equal(found, program.expected)
