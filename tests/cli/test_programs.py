"""Whole programs on the command line."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.programs.tools import needs_compilers

from ptxlab.cli.group import ptxlab
from ptxlab.programs import building
from ptxlab.programs.building import build
from ptxlab.programs.elf import Elf
from ptxlab.report import Diagnostic
from ptxlab.trace import Trace

pytestmark = needs_compilers

PROGRAM = """\
#include <cstdio>
#include <cstdlib>
__global__ void count(int* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] = threadIdx.x;
}
__global__ void take_long(volatile long* x) {
  for (long i = 0; i < 1L << 40; ++i) *x = i;
}
__device__ int runs;
__global__ void run_once_more(int* x) { x[31] = ++runs; }
int main(int argc, char** argv) {
  int *x, back[32];
  cudaMalloc(&x, 128);
  int n = atoi(argv[1]);
  cudaMemset(x, 0, 128);
  if (n == 0) {
    printf("started\\n");
    fflush(stdout);
    take_long<<<1, 1>>>((long*)x);
  }
  if (n < 0) run_once_more<<<1, 1>>>(x);
  else count<<<1, 64>>>(x, n);
  cudaMemcpy(back, x, 128, cudaMemcpyDeviceToHost);
  printf("%d\\n", back[31]);
  if (n >= 0) cudaFree(x);  // otherwise there is a note, which ends no search
  return n == 33 || n < 0 ? 0 : 5;
}
"""


built: dict[tuple[str, ...], bytes] = {}


def build_once(path: Path, program: Path, target: str | None, options: Sequence[str]) -> list[Diagnostic]:
    """`build`, which takes seconds, once for all tests that run the same program."""
    key = (path.read_text(), path.name, target or "", *options)
    if key not in built:
        assert build(path, program, target, options) == []
        built[key] = program.read_bytes()
    program.write_bytes(built[key])
    program.chmod(0o700)
    return []


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(building, "build", build_once)
    Path("program.cu").write_text(PROGRAM)


def run(*args: str) -> Result:
    return CliRunner().invoke(ptxlab, args)


def test_a_program_runs_with_each_seed_until_one_finds_something(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("run", "program.cu", "--seeds", "3", "--", "-1").exit_code == 0
    assert capfd.readouterr().out == "1\n" * 3  # variables of the module start again
    wrong = run("run", "program.cu", "--seeds", "3", "--seed", "4", "--", "33")
    assert wrong.exit_code == 1
    assert "replay with `--seed 4`" in wrong.stdout
    assert capfd.readouterr().out == "0\n"  # of one run


def test_launches_of_a_program_are_recorded_to_a_folder() -> None:
    for _ in range(2):  # the second replaces what the first has recorded
        result = run("run", "program.cu", "--record", "run", "--", "-1")
        assert "recorded a launch: ptxlab lab run/000.ptxtrace" in result.stdout
        (Path("run") / "notes.txt").touch()
        assert "notes" not in result.stdout
    assert sorted(path.name for path in Path("run").iterdir()) == ["000.ptxtrace", "notes.txt"]
    assert Trace.open("run/000.ptxtrace").steps > 0
    (Path("other") / "001").mkdir(parents=True)
    assert "`other/001` is not of ptxlab" in run("run", "program.cu", "--record", "other", "--", "-1").stderr
    Path("file").touch()
    assert "there is a file of that name" in run("run", "program.cu", "--record", "file", "--", "-1").stderr
    assert "choose it by `--seed`" in run("run", "program.cu", "--record", "run", "--seeds", "2", "--", "-1").stderr


def test_a_program_runs_with_its_arguments(capfd: pytest.CaptureFixture[str]) -> None:
    result = run("run", "program.cu", "--", "32")
    assert (result.exit_code, capfd.readouterr().out) == (5, "31\n")
    empty, first, *_, last = result.stdout.splitlines()
    assert empty == ""  # which ends the line that the program has printed last
    assert first.startswith("the program ended with status 5: 1 launch in ")
    assert first.endswith("as H200")
    assert last == "no errors or warnings in program.cu"
    kernel = run("run", "program.cu", "--entry", "count", "--block", "4", "--arg", "s32[4]=zeros", "--arg", "s32=4")
    assert (kernel.exit_code, "0 1 2 3" in kernel.stdout) == (0, True), kernel.stdout


def test_a_program_of_the_host_alone_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    temporary = tmp_path / "a folder: of no use to the loader"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    Path("host.c").write_text("#include <cuda.h>\n#include <stdio.h>\nint main(void) {"
                              ' int n; cuInit(0); cuDeviceGetCount(&n); printf("%d", n); return 0; }\n')  # fmt: skip
    assert (run("run", "host.c").exit_code, capfd.readouterr().out) == (0, "1")
    refused = run("check", "host.c")
    assert (refused.exit_code, "`host.c` is C++ by its name" in refused.stderr) == (2, True)
    Path("kernel.cpp").write_text(PROGRAM)
    assert "help: nvcc compiles kernels in files that end in `.cu`" in run("run", "kernel.cpp", "--", "32").stdout
    Path("two\nlines.cu").write_text(PROGRAM)
    assert "nvcc does not compile a file with a line break in its name" in run("run", "two\nlines.cu").stdout


def test_files_that_define_what_is_missing_are_named() -> None:
    Path("main.cu").write_text("int twice(int x);\nint more();\nint main() {\n  return twice(2) + more();\n}\n")
    Path("other.cpp").write_text("int twice(int x) {\n  return 2 * x;\n}\n")
    Path("unrelated.cpp").write_text("int twice(int x);\nint main() { return twice(1); }\n")
    result = run("run", "main.cu", "--format", "json")
    found = json.loads(result.stdout)["diagnostics"]
    assert [(one["message"], one["line"]) for one in found] == [
        ("`twice(int)` is not defined in this file", 4), ("`more()` is not defined in this file", 4),
    ]  # fmt: skip
    assert found[0]["helps"][0]["text"] == "name what defines it: `ptxlab run main.cu --nvcc other.cpp`"


@pytest.mark.slow
def test_a_built_program_runs(capfd: pytest.CaptureFixture[str]) -> None:
    build = "nvcc -arch=sm_80 -cudart shared program.cu -o program"
    result = run("exec", "--build", build, "--format", "json", "./program", "33")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["status"]) == (1, 0)
    assert [(one["code"], one["line"]) for one in found["diagnostics"]] == [("out-of-bounds", 4)]
    assert found["kernels"]["count"]["launches"] == 1
    assert capfd.readouterr().err.endswith("\n")  # what it printed
    assert run("exec", "./program", "32").exit_code == 5


def test_what_cannot_be_run_is_a_usage_error() -> None:
    Path("kernel.cu").write_text("__global__ void k() {}\n")
    assert "is for one kernel" in run("run", "program.cu", "--profile").stderr
    assert "is for one kernel" in run("run", "program.cu", "--device", "cuda").stderr
    Path("wrong.cu").write_text("int main() { return missing; }\n")
    result = run("run", "wrong.cu", "--format", "concise")
    assert result.exit_code == 1
    assert result.stdout == "wrong.cu:1:21: error[cuda-error]: identifier `missing` is undefined\n"


def test_what_is_not_a_program_is_refused(tmp_path: Path) -> None:
    Path("text").write_text("not a program\n")
    assert "`text` is not executable" in run("exec", "./text").stderr
    whole = Path(sys.executable).read_bytes()
    for size in (50, 3000, len(whole) - 100):
        with pytest.raises(ValueError, match="cut off"):
            Elf(whole[:size])


@pytest.mark.parametrize(("kind", "flag"), [("RLIMIT_AS", "-v"), ("RLIMIT_FSIZE", "-f")])
def test_a_limit_that_is_too_low_for_programs_is_named(kind: str, flag: str) -> None:
    limited = (
        f"import resource; resource.setrlimit(resource.{kind}, (1 << 36, 1 << 36));"
        " from ptxlab.programs.program import *; run_program(['/bin/true'], ProgramOptions())"
    )
    ended = subprocess.run([sys.executable, "-c", limited], capture_output=True, text=True, check=False)
    assert f"error[low-limit]: `ulimit {flag}` limits the" in ended.stderr


@pytest.mark.parametrize("command", ["run", "debug", "assemble", "format", "prove"])
def test_a_file_of_python_is_not_taken_for_ptx(command: str) -> None:
    Path("kernel.py").write_text("import ptxlab\n")
    result = run(command, "kernel.py")
    assert (result.exit_code, "`kernel.py` is Python: `ptxlab ptx kernel.py` writes" in result.stderr) == (2, True)


# ptxlab where the program has been compiled before.
BUILT = """\
import shutil
from ptxlab.programs import building
building.build = lambda path, program, target, options: shutil.copy("built", program) and []
from ptxlab.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_interrupting_ends_the_program(number: signal.Signals, status: int, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    assert build_once(Path("program.cu"), Path("built"), None, ()) == []
    command = [sys.executable, "-P", "-c", BUILT, "run", "program.cu", "--", "0"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                             env=os.environ | {"TMPDIR": str(temporary)})  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == b"started\n"
    time.sleep(0.5)
    os.killpg(child.pid, number)
    said, _ = child.communicate(timeout=60)
    assert child.returncode == status, said.decode()
    assert "the program was ended by" in said.decode()
    assert not [*temporary.iterdir()]
