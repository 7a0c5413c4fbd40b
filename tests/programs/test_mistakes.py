"""Mistakes of host and device in a whole program: each is found on its line, and its right twin is silent."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ptxlab.device.limits import available
from ptxlab.programs.building import build
from ptxlab.programs.device_memory import VIEW_SIZE
from ptxlab.programs.program import ProgramOptions, ProgramResult, run_program
from ptxlab.toolchain import find
from tests.programs.tools import needs_compilers

pytestmark = needs_compilers

SOURCE = Path(__file__).parent / "mistakes.cu"
TEXT = SOURCE.read_text()
CASES = re.findall(r"CASE\((\w+)\)", TEXT)[1:]
OUTPUT = {
    "symbol_right": "2 3\n",
    "managed_right": f"3 {256 + 1}\n",
    "event_right": "3\n",
    "file_right": "10001 10001\n",
    "pinned_right": "3\n",
    "there_and_back_right": "3\n",
    "checked_errors": "9 9 cudaErrorInvalidValue 1 0 0 0\n",
    "out_of_bounds_kernel": "0 700 700\n",
    "misaligned_pair": "716\n",
    "kernels_right": "0 512\n",
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("programs") / "mistakes"
    assert not build(SOURCE, made, "sm_80", [])
    return made


def _run(program: Path, case: str) -> ProgramResult:
    return run_program([str(program), case], ProgramOptions(folders=[SOURCE.parent]))


def _expected(case: str) -> set[tuple[str, int]]:
    lines = enumerate(TEXT.split("\n"), 1)
    return {(found[1], number) for number, line in lines for found in re.finditer(rf"// expect {case}: ([\w-]+)", line)}


@pytest.mark.bulk(one_in=3)
@pytest.mark.parametrize("case", CASES)
def test_mistake(program: Path, case: str, capfd: pytest.CaptureFixture[str]) -> None:
    result = _run(program, case)
    found = [(one.code, one.line) for one in result.findings if one.level != "note"]
    assert set(found) == _expected(case)
    assert len(found) == len(_expected(case))
    printed = capfd.readouterr().out
    assert printed == OUTPUT.get(case, printed)


def test_its_address_space_is_given_back(program: Path) -> None:
    before = _views()
    _run(program, "race")
    assert _views() <= before


def _views() -> set[str]:
    """The parts of the address space of this process that are as large as what a program maps."""
    parts = [line.split()[0] for line in Path("/proc/self/maps").read_text().splitlines()]
    return {part for part in parts if int(part.partition("-")[2], 16) - int(part.partition("-")[0], 16) >= VIEW_SIZE}


def test_what_a_copy_writes_is_not_said_of_the_kernel_before_it(program: Path) -> None:
    (found,) = [one for one in _run(program, "there_and_back").findings if one.level != "note"]
    assert found.message == "the host reads memory that `cudaMemcpyAsync` writes, without waiting for it"


def test_a_pointer_of_the_host_is_called_one(program: Path) -> None:
    (found,) = [one for one in _run(program, "host_pointer").findings if one.level != "note"]
    launch = 1 + TEXT.split("\n").index("    fill_twice<<<1, n>>>(d, local, 1);")
    assert found.notes[-1].endswith(f"mistakes.cu:{launch}")  # not where the kernel is, whose head has five lines
    (help,) = found.helps
    assert help.text.startswith("the address is one of the host's memory: give the kernel memory of `cudaMalloc`")
    (found,) = [one for one in _run(program, "out_of_bounds_kernel").findings if one.level != "note"]
    assert not any("host" in one.text for one in found.helps)
    assert sum("bytes" in note for note in found.notes) == 1  # the size is said once, then where it was made
    assert any(re.fullmatch(r"allocation \d+ was made at .*mistakes\.cu:\d+", note) for note in found.notes)


def test_leak_is_a_note(program: Path) -> None:
    (found,) = _run(program, "leak").findings
    assert (found.level, found.code) == ("note", "leak")
    assert found.message == "1 allocation, 1024 bytes in all, not freed when the program ended"


def test_a_launch_that_the_call_refuses_is_a_note(program: Path) -> None:
    (found,) = _run(program, "too_many_blocks").findings
    assert (found.level, found.code) == ("note", "failed-launch")
    assert (
        found.message
        == "the launch of `fill` fails with cudaErrorCooperativeLaunchTooLarge (720), which the call returns"
    )


def test_where_memory_was_freed_that_a_kernel_accesses(program: Path) -> None:
    (found,) = [one for one in _run(program, "freed_in_kernel").findings if one.level != "note"]
    line = TEXT[: TEXT.index("fill_unchecked<<<1, n>>>(d, 1);", TEXT.index("void freed_in_kernel"))].count("\n")
    assert re.fullmatch(r"write of 4 bytes in allocation \d+, which is freed", found.message)
    assert any(re.fullmatch(rf"allocation \d+ was freed at .*mistakes\.cu:{line}", note) for note in found.notes)


@pytest.mark.skipif(available() > 250 << 30, reason="this machine has the memory")
def test_want_of_memory_of_this_machine_is_a_note(program: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (found,) = _run(program, "too_large").findings
    assert (found.level, found.code) == ("note", "out-of-memory")
    assert found.message.startswith(f"an allocation of {130 << 30} bytes fails")
    assert capfd.readouterr().out == "2 2\n"


def test_program_ends_with_its_session(program: Path) -> None:
    """Whatever ends ptxlab, no process is left."""
    command = [sys.executable, "-m", "ptxlab", "exec", str(program), "sleeping"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        number = int(session.stdout.readline())
        session.kill()
        session.wait()
    for _ in range(100):
        if not Path(f"/proc/{number}").exists():
            return
        time.sleep(0.05)
    raise AssertionError("the program still runs")


def test_machine_code_is_one_finding(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source, made = tmp_path / "one.cu", tmp_path / "one"
    source.write_text("__global__ void k() {}\nint main() { k<<<1, 32>>>(); return cudaDeviceSynchronize(); }\n")
    subprocess.run([find("nvcc").path, "-gencode=arch=compute_90,code=sm_90", source, "-o", made], check=True)
    (found,) = [one for one in _run(made, "race").findings if one.level != "note"]
    assert found.code == "no-ptx"
