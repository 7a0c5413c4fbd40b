"""What functions take and return, on a GPU: it arrives whole wherever `check` does not warn that a part is lost."""

import numpy as np
import pytest

import ptxlab
from tests.emulate import calling, calling_mixed
from tests.emulate.calling import THREADS, Program

PROGRAMS = [*calling.PROGRAMS, *calling_mixed.PROGRAMS]
LOSSY = {  # those that an H200 with ptxas 13.0 computes otherwise
    "param.b128", "reg.b128", "v2.u32 for b64", "v4.u16 for v2.b32", "v4.u8 for f16x2", "v4.f32 for b128",
    "v2.s32 for a .param", "constants",
}  # fmt: skip


def test_check_warns_of_what_a_gpu_loses() -> None:
    warned = {program.name for program in PROGRAMS if _codes(program)}
    assert warned == LOSSY


@pytest.mark.gpu
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.name not in LOSSY], ids=lambda program: program.name)
def test_values_arrive_whole(program: Program) -> None:
    np.testing.assert_array_equal(_run(program), program.expected)


@pytest.mark.gpu
@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.name in LOSSY], ids=lambda program: program.name)
def test_a_part_is_lost(program: Program) -> None:
    assert not np.array_equal(_run(program), program.expected)


def _codes(program: Program) -> list[str]:
    found = ptxlab.check(ptxlab.parse(program.text))
    assert {diagnostic.code for diagnostic in found} <= {"lossy-call"}
    return [diagnostic.code for diagnostic in found]


def _run(program: Program) -> np.ndarray:
    found = np.zeros_like(program.expected)
    ptxlab.parse(program.text)["k"].launch(1, THREADS, [program.given, found], device="cuda")
    return found
