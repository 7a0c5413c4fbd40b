"""Calls of cuBLAS and cuRAND in a whole program."""

from pathlib import Path

import pytest

from ptxlab.programs.building import build
from ptxlab.programs.program import ProgramOptions, run_program
from tests.programs.tools import needs_compilers

pytestmark = needs_compilers

SOURCE = Path(__file__).parent / "libraries.cu"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs") / "libraries"
    assert not build(SOURCE, made, "sm_90", [])
    return made


@pytest.mark.parametrize(
    ("case", "output"),
    [
        ("products", "cublasSgemm_v2 0 0\ncublasDgemm_v2 0 0\n0 -20 9.5394 0 0\n0 -20 9.5394 0 0\n"),
        ("random", "0.5 0.3 1\n5.0 2.0 0\n105\n"),
    ],
)
def test_call(program: Path, case: str, output: str, capfd: pytest.CaptureFixture[str]) -> None:
    result = run_program([str(program), case], ProgramOptions(folders=[SOURCE.parent]))
    assert capfd.readouterr().out == output
    assert [str(one) for one in result.findings if one.level != "note"] == []


def test_memory_that_is_too_small_is_found(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = run_program([str(program), "too_small"], ProgramOptions(folders=[SOURCE.parent]))
    (found,) = [one for one in result.findings if one.level != "note"]
    assert (found.code, found.message) == (
        "bad-library-call",
        "`cublasSgemm`: 64 bytes are accessed where allocation 2 has 32",
    )
    assert "// mistake" in SOURCE.read_text().split("\n")[(found.line or 0) - 1]
    assert capfd.readouterr().out == "13\n"
