"""CUDA C++ where PTX is expected: compiled first, and findings shown on its lines."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ptxlab.cli.group import ptxlab
from ptxlab.report import PtxError
from ptxlab.toolchain import find

RIGHT = """\
extern "C" __global__ void twice(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float r;
    if (i < n) {
        asm("add.f32 %0, %1, %1;" : "=f"(r) : "f"(x[i]));
        x[i] = r;
    }
}
"""
LAUNCH = ["--block", "32", "--arg", "f32[32]=arange"]


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    try:
        find("nvrtc")
    except PtxError as missing:
        pytest.skip(f"no NVRTC: {missing.diagnostics[0].message}")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("right.cu").write_text(RIGHT)
    Path("asm.cu").write_text(RIGHT.replace("add.f32 ", "add.f23 "))
    Path("wrong.cu").write_text(RIGHT.replace("x[i] = r", "x[i] = s"))


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(ptxlab, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_kernel_runs() -> None:
    result = run("run", "right.cu", *LAUNCH, "--arg", "s32=32")
    assert result.exit_code == 0
    assert "0 2 4 6 8 10 12 14 ..." in result.stdout
    assert run("run", "right.cu", "--target", "sm_90a", *LAUNCH, "--arg", "s32=32").exit_code == 0


def test_a_finding_is_on_the_line_of_the_source() -> None:
    result = run("run", "right.cu", "--block", "64", *LAUNCH[2:], "--arg", "s32=64", "--format", "concise")
    assert result.exit_code == 1
    assert "right.cu:6:9: error[out-of-bounds]" in result.stdout
    for command in (["check"], ["run", *LAUNCH, "--arg", "s32=32"]):
        result = run(*command, "asm.cu", "--format", "concise")
        assert result.exit_code == 1
        assert "asm.cu:6:9: error[" in result.output
        assert ".f23" in result.output


def test_what_nvrtc_refuses_is_reported() -> None:
    result = run("check", "wrong.cu")
    assert result.exit_code == 1
    assert "error[cuda-error]: identifier `s` is undefined\n --> wrong.cu:7:16" in result.stdout
    assert result.stdout.endswith("1 warning in wrong.cu\n")


def test_warnings_of_the_compiler_are_findings() -> None:
    Path("unused.cu").write_text(RIGHT.replace("float r;", "float r; int unused;"))
    for command in (["check"], ["run", *LAUNCH, "--arg", "s32=32"]):
        result = run(*command, "unused.cu")
        assert (result.exit_code, result.stderr) == (1, "")
        assert "warning[cuda-warning]: variable `unused` was declared but never referenced" in result.stdout
        assert result.stdout.endswith("\n1 warning in unused.cu\n")


def test_warnings_of_the_headers_of_the_toolkit_are_not() -> None:
    Path("header.cu").write_text("#include <cuda_fp8.h>\n" + RIGHT)
    result = run("check", "header.cu")
    if "could not open source file" in result.stdout:
        pytest.skip("the headers of the toolkit are not installed")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "no errors or warnings in header.cu\n"


def test_warnings_of_other_headers_are_findings() -> None:
    Path("own.h").write_text("static __device__ int own(int n) { int unused; return n; }\n")
    Path("own.cu").write_text('#include "own.h"\n' + RIGHT.replace("int n)", "int n)").replace("i < n", "i < own(n)"))
    result = run("check", "own.cu")
    assert result.exit_code == 1
    assert "variable `unused` was declared" in result.stdout
    assert "= note: in `own.h`, line 1" in result.stdout


def test_a_target_that_lacks_an_instruction_is_an_option() -> None:
    Path("bulk.cu").write_text(RIGHT.replace("float r;", 'float r; asm("cp.async.bulk.commit_group;");'))
    result = run("check", "bulk.cu")
    assert result.exit_code == 1
    assert (
        "`cp.async.bulk.commit_group` needs `.target sm_90`, and this module is compiled for `sm_80`" in result.stdout
    )
    assert "= help: compile it for `sm_90`: `--target sm_90`" in result.stdout
    assert run("check", "bulk.cu", "--target", "sm_90").exit_code == 0


def test_a_profile_is_of_the_lines_of_the_source() -> None:
    result = run("run", "right.cu", *LAUNCH, "--arg", "s32=32", "--profile")
    assert result.exit_code == 0
    (head,) = [line for line in result.stdout.splitlines() if line.startswith("line ")]
    assert head.endswith("CUDA C++")
    assert re.search(r"^ *7 .* x\[i\] = r;$", result.stdout, re.MULTILINE)
    result = run("run", "right.cu", *LAUNCH, "--arg", "s32=32", "--format", "json", "--profile")
    assert {int(line) for line in json.loads(result.stdout)["counters"]["lines"]} <= set(range(1, 10))


def test_a_line_of_the_source_is_drawn() -> None:
    result = run("run", "right.cu", *LAUNCH, "--arg", "s32=32", "--draw", "7")
    assert result.exit_code == 0
    assert "line 7: 4 bytes a lane, global memory" in result.stdout


def test_a_kernel_has_its_name_in_the_source() -> None:
    Path("plain.cu").write_text(
        "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }\n__global__ void thrice(float *x) { *x *= 3; }\n"
    )
    result = run("run", "plain.cu", "--entry", "twice", *LAUNCH)
    assert result.exit_code == 0
    assert "0 2 4 6 8 10 12 14 ..." in result.stdout
    assert "there is no kernel `twic`" in run("run", "plain.cu", "--entry", "twic", *LAUNCH).output


def test_other_commands_take_it_too() -> None:
    assert "no errors or warnings in right.cu" in run("check", "right.cu").stdout
    assert "def twice(" in run("python", "right.cu").stdout


def test_what_is_for_one_of_them_is_refused_for_the_other() -> None:
    fix = run("check", "--fix", "asm.cu")
    assert fix.exit_code == 2
    assert "`--fix` mends PTX" in fix.output
    assert Path("asm.cu").read_text() == RIGHT.replace("add.f32 ", "add.f23 ")
    Path("kernel.ptx").write_text(".version 8.0\n.target sm_80\n.entry k() { ret; }\n")
    result = run("run", "kernel.ptx", "--block", "1", "--target", "sm_90")
    assert result.exit_code == 2
    assert "`--target` is for CUDA C++: PTX names its own" in result.output
