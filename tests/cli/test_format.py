"""`ptxlab format` to standard output, to files, and as a check."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import ptxlab as package
from ptxlab.cli.group import ptxlab

UGLY = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry nothing ( ) {
.reg   .b32 %r< 2 > ;
      mov.b32   %r1,0 ;
  ret ; }
"""
CANONICAL = package.format(package.parse(UGLY, name="ugly.ptx"))


def run(*arguments: object, input: str | None = None) -> Result:
    result = CliRunner().invoke(ptxlab, ["format", *(str(argument) for argument in arguments)], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def ugly(tmp_path: Path) -> Path:
    file = tmp_path / "ugly.ptx"
    file.write_text(UGLY)
    return file


def test_prints(ugly: Path) -> None:
    result = run(ugly)
    assert (result.exit_code, result.stdout, ugly.read_text()) == (0, CANONICAL, UGLY)


def test_standard_input() -> None:
    result = run("-", input=UGLY)
    assert (result.exit_code, result.stdout) == (0, CANONICAL)


def test_standard_input_is_checked_too() -> None:
    result = run("--check", "-", input=UGLY)
    assert (result.exit_code, result.stdout) == (1, "<stdin> is not in canonical form\n")
    result = run("--check", "-", input=CANONICAL)
    assert (result.exit_code, result.stdout) == (0, "")


def test_lines_that_end_as_on_windows_are_not_canonical(tmp_path: Path) -> None:
    file = tmp_path / "windows.ptx"
    file.write_bytes(CANONICAL.replace("\n", "\r\n").encode())
    assert run("--check", file).exit_code == 1
    assert run("--write", file).exit_code == 0
    assert file.read_bytes() == CANONICAL.encode()


def test_write(ugly: Path) -> None:
    assert run("--check", ugly).exit_code == 1
    result = run("--write", ugly)
    assert (result.exit_code, result.stdout, ugly.read_text()) == (0, "", CANONICAL)
    assert result.stderr == f"formatted {ugly}\n"
    assert run("--check", ugly).exit_code == 0
    assert run("--write", ugly).stderr == ""


def test_check_names_the_file_and_leaves_it_alone(ugly: Path) -> None:
    result = run("--check", ugly)
    assert (result.exit_code, result.stdout) == (1, f"{ugly} is not in canonical form\n")
    assert ugly.read_text() == UGLY


def test_syntax_errors_go_to_stderr(tmp_path: Path) -> None:
    file = tmp_path / "wrong.ptx"
    file.write_text(UGLY.replace("ret ;", "ret"))
    result = run("--write", file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error[")


@pytest.mark.parametrize("arguments", [["--write", "--check"], ["--write", "-"]])
def test_options_that_exclude_each_other(ugly: Path, arguments: list[str]) -> None:
    assert run(*arguments, ugly).exit_code == 2


def test_several_files_need_a_decision(ugly: Path) -> None:
    (ugly.parent / "other.ptx").write_text(UGLY)
    result = run(ugly.parent)
    assert result.exit_code == 2
    assert "give `--write` or `--check`" in result.stderr
    assert run("--write", ugly.parent).exit_code == 0


def test_cuda_is_not_formatted(tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("__global__ void k() {}\n")
    result = run(file)
    assert result.exit_code == 2
    assert f"`format` is for PTX: `{file}` is CUDA C++" in result.stderr
