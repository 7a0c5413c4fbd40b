"""Calls of the CUDA runtime in a whole program, by what it prints."""

import subprocess
from pathlib import Path

import pytest

from ptxlab.programs.building import build, has_main
from ptxlab.programs.program import ProgramOptions, run_program
from ptxlab.report import PtxError
from tests.programs.tools import needs_compilers

pytestmark = needs_compilers

SOURCE = Path(__file__).parent / "features.cu"
OUTPUT = {
    "memory": "21 2541 8 1\n",
    "managed": "71\n",
    "output": "before\nthread 0 says hello\nthread 1 says hello\nafter\n",
    "clusters": "0 1 0 1\n",
    "graphs": "8 3\n",
    "textures": "8 15 0 7\n",
    "properties": "1 9.0 132 2 1024 cudaErrorInvalidDevice\n",
    "registered": "6\n",
    "driver": "1 0 42\n",
    "driver_arrays": "0 8 248 80 168 4 1\n",
    "driver_linking": "0 42\n",
    "driver_streams": "1 64 2 1 10 30003 CUDA_ERROR_ILLEGAL_ADDRESS\n",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs") / "features"
    assert not build(SOURCE, made, "sm_90", [])
    return made


@pytest.mark.bulk(one_in=2)
@pytest.mark.parametrize("case", OUTPUT)
def test_feature(program: Path, case: str, capfd: pytest.CaptureFixture[str]) -> None:
    result = run_program([str(program), case, "status"], ProgramOptions(folders=[SOURCE.parent]))
    assert capfd.readouterr().out == OUTPUT[case]
    assert [str(one) for one in result.findings if one.level != "note"] == []
    assert result.status == 7


@pytest.mark.bulk
def test_blocks_of_a_grid_synchronize(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "groups"
    assert not build(SOURCE.with_name("groups.cu"), program, "sm_90", [])
    result = run_program([str(program)], ProgramOptions(folders=[SOURCE.parent]))
    assert capfd.readouterr().out == "128 cudaErrorCooperativeLaunchTooLarge\n"
    assert [str(one) for one in result.findings if one.level != "note"] == []
    assert result.status == 7


def test_unsupported_call_is_named(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    result = run_program([str(program), "unsupported"], ProgramOptions(folders=[SOURCE.parent]))
    (found,) = [one for one in result.findings if one.level != "note"]
    assert found.message == "the program calls `cudaMallocMipmappedArray`, which ptxlab does not have"
    (line,) = [number for number, text in enumerate(SOURCE.read_text().split("\n"), 1) if "MallocMipmapped" in text]
    assert found.line == line
    assert capfd.readouterr().out == ""


def test_stripped_program_is_refused(program: Path, tmp_path: Path) -> None:
    stripped = tmp_path / "features"
    subprocess.run(["strip", "-o", stripped, program], check=True)
    with pytest.raises(PtxError) as wrong:
        run_program([str(stripped), "memory"], ProgramOptions())
    assert [one.code for one in wrong.value.diagnostics] == ["stripped-program"]


def test_main_is_found_in_code_only(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    for text, expected in (
        ("int main() {}", True),
        ("// int main() {}\n", False),
        ('const char* s = "int main()";', False),
        ("int domain(int x);", False),
        ("int\nmain(int argc, char** argv)\n{}", True),
        ("__host__ int CUDARTAPI main() {}", True),
    ):
        file.write_text(text)
        assert has_main(file) == expected, text


def test_the_ptx_of_a_kernel_says_what_it_was_compiled_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """CUB chooses by it among the parameters that its kernels were compiled with."""
    source = tmp_path / "versions.cu"
    source.write_text("""#include <cstdio>
        __global__ void kernel() {}
        int main() {
          cudaFuncAttributes of;
          cudaFuncGetAttributes(&of, kernel);
          printf("%d %d\\n", of.ptxVersion, of.binaryVersion);
        }""")
    assert not build(source, tmp_path / "versions", "sm_80", [])
    assert run_program([str(tmp_path / "versions")], ProgramOptions()).status == 0
    assert capfd.readouterr().out == "80 90\n"
