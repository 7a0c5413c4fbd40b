"""Calls of cuBLAS and cuRAND in a whole program."""

import subprocess
from pathlib import Path

import pytest

from ptxlab.programs.building import build
from ptxlab.programs.elf import Elf
from ptxlab.programs.library import compiler, write_driver, write_placeholders
from ptxlab.programs.program import ProgramOptions, run_program
from ptxlab.toolchain.compiler_messages import near
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
    lines = SOURCE.read_text().split("\n")
    assert "dlsym" in lines[(found.line or 0) - 1]
    (note,) = found.notes
    assert "// mistake" in lines[int(note.removeprefix(f"called at {near(SOURCE)}:")) - 1]
    assert capfd.readouterr().out == "13\n"


def test_a_program_is_linked_where_the_library_is_not(tmp_path: Path) -> None:
    """By what its linker says is missing: first the library that it names, then calls that no library has."""
    source = tmp_path / "main.c"
    source.write_text("int cublasUnheardOf(int*); int main() { int v; return cublasUnheardOf(&v); }\n")
    command = [compiler(), str(source), "-o", str(tmp_path / "program"), "-lcublas_unheard_of"]
    for _ in range(3):
        linked = subprocess.run(command, capture_output=True, text=True)
        command += write_placeholders(tmp_path, linked.stderr)
    assert linked.returncode == 0, linked.stderr
    assert "libcuda_calls.so" in Elf((tmp_path / "program").read_bytes()).libraries
    source.write_text("int mine(void); int main() { return mine(); }\n")
    linked = subprocess.run(command, capture_output=True, text=True)
    assert linked.returncode
    assert write_placeholders(tmp_path, linked.stderr) == []


@pytest.mark.parametrize("options", [[], ["-lcuda"]])
def test_calls_of_the_driver_are_linked_at_once(tmp_path: Path, options: list[str]) -> None:
    """Nothing is compiled a second time for them; what a program defines itself stays its own."""
    source, made = tmp_path / "main.c", tmp_path / "program"
    command = [compiler(), str(source), "-o", str(made), *options, *write_driver(tmp_path)]
    for body, needs_it in (
        ("int cuInit(unsigned); int main() { return cuInit(0); }", True),
        ("int cuInit(unsigned flags) { return 3; } int main() { return cuInit(0); }", False),
    ):
        source.write_text(body)
        subprocess.run(command, check=True)
        assert ("libcuda_driver_calls.so" in Elf(made.read_bytes()).libraries) == needs_it
    assert subprocess.run([made]).returncode == 3


@pytest.mark.bulk
def test_a_program_runs_where_the_library_is_not(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "version.cu"
    body = 'int v = 0, s = curandGetVersion(&v); printf("%d %d\\n", s, v > 0);'
    source.write_text(f'#include <cstdio>\nextern "C" int curandGetVersion(int*);\nint main() {{ {body} }}\n')
    assert not build(source, tmp_path / "version", "sm_90", ["-lcurand"])
    assert run_program([str(tmp_path / "version")], ProgramOptions()).findings == []
    assert capfd.readouterr().out == "0 1\n"
