"""System scope against host memory, streams, events and graphs: a program prints the same on a GPU as without one."""

import subprocess
from pathlib import Path

import pytest

from ptxlab.programs.building import build
from ptxlab.programs.program import ProgramOptions, run_program
from tests.programs.tools import needs_compilers

pytestmark = needs_compilers

SOURCE = Path(__file__).with_name("system.cu")
# Each of five rounds makes 3x + round + 1 of x; 256 and 64 threads count; the graph runs three times.
EXPECTED = "messages 300 5 5\natomics 1320 255 640 7\nevents 5 51\ngraphs 7 16843009 300\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs") / "system"
    # Machine code, too: a driver does not compile the PTX of a later toolkit.
    assert not build(SOURCE, made, "sm_90", ["-gencode=arch=compute_90,code=[compute_90,sm_90]"])
    return made


@pytest.mark.bulk
@pytest.mark.parametrize("seed", range(4))
def test_without_a_gpu(program: Path, seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    result = run_program([str(program)], ProgramOptions(folders=[SOURCE.parent], launch={"seed": seed}))
    assert capfd.readouterr().out == EXPECTED
    assert result.findings == []


@pytest.mark.gpu
def test_on_a_gpu(program: Path) -> None:
    for _ in range(20):
        ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=60, check=True)
        assert ran.stdout == EXPECTED
