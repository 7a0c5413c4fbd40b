"""`ptxlab assemble` and `ptxlab sass`, with the ptxas there is."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ptxlab.author import f32, kernel, pointer, ptx
from ptxlab.cli.group import ptxlab
from ptxlab.cli.samples import SAXPY
from ptxlab.report import PtxError
from ptxlab.toolchain import find


def has_tools() -> bool:
    try:
        return bool(find("ptxas") and find("nvdisasm"))
    except PtxError:
        return False


needs_tools = pytest.mark.skipif(not has_tools(), reason="no ptxas and nvdisasm: `pip install 'ptxlab[toolchain]'`")


def run(*arguments: object, input: str | None = None) -> Result:
    result = CliRunner().invoke(ptxlab, [str(argument) for argument in arguments], input=input)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(autouse=True)
def saxpy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("saxpy.ptx").write_text(SAXPY)
    return Path("saxpy.ptx")


@needs_tools
def test_assemble_reports_what_a_kernel_needs_and_leaves_nothing() -> None:
    result = run("assemble", "--threads", 128, "saxpy.ptx")
    assert result.exit_code == 0
    assert [path.name for path in Path().iterdir()] == ["saxpy.ptx"]
    said, _, header, row = result.stdout.splitlines()
    assert said.startswith("ptxas ")
    assert said.endswith(" for sm_80")
    assert header.split() == ["function", "registers", "spilled", "shared", "stack", "barriers", "occupancy"]
    assert row.startswith("saxpy ")
    assert row.endswith("100%: 16 blocks of 128 threads, limited by warps")


@needs_tools
def test_assemble_for_another_target_to_another_place() -> None:
    result = run("assemble", "--target", "sm_90a", "-o", "other.o", "saxpy.ptx", "--", "-O1")
    assert result.exit_code == 0
    assert " for sm_90a\n" in result.stdout
    assert result.stdout.endswith("wrote other.o\n")
    assert not Path("saxpy.cubin").exists()


@needs_tools
def test_assemble_json() -> None:
    result = run("assemble", "--format", "json", "saxpy.ptx")
    shown = json.loads(result.stdout)
    assert (shown["assembled"], shown["target"], shown["diagnostics"]) == (True, "sm_80", [])
    (function,) = shown["functions"]
    assert (function["function"], function["shared"], function["occupancy"]["threads"]) == ("saxpy", 0, 256)


@needs_tools
def test_assemble_shows_what_ptxas_refuses() -> None:
    Path("wrong.ptx").write_text(SAXPY.replace("fma.rn.f32 %f4", "fma.rn.f32 %f9"))
    result = run("assemble", "wrong.ptx")
    assert result.exit_code == 1
    assert " --> wrong.ptx:29:" in result.stdout
    assert result.stdout.splitlines()[-1].endswith(" in wrong.ptx")
    assert not Path("wrong.cubin").exists()


@needs_tools
def test_assemble_standard_input_writes_only_the_named_file() -> None:
    result = run("assemble", "-", input=SAXPY)
    assert result.exit_code == 0
    assert os.listdir() == ["saxpy.ptx"]  # noqa: PTH208


@needs_tools
def test_a_place_that_cannot_be_written_is_a_usage_error() -> None:
    result = run("assemble", "-o", "missing/object", "saxpy.ptx")
    assert result.exit_code == 2
    assert "`missing/object` can't be written: no such file or directory" in result.stderr


def test_a_ptxas_that_does_not_exist_is_a_diagnostic() -> None:
    result = run("assemble", "--ptxas", "no-such-ptxas", "saxpy.ptx")
    assert (result.exit_code, result.stdout) == (
        2,
        "error[missing-tool]: the option names `no-such-ptxas`, which is not a file\n",
    )


def test_json_is_an_object_whatever_happens() -> None:
    Path("binary.ptx").write_bytes(b"\x7fELF\0\0")
    result = run("assemble", "--format", "json", "binary.ptx")
    assert result.exit_code == 2
    assert [found["code"] for found in json.loads(result.stdout)["diagnostics"]] == ["binary-file"]


@needs_tools
@pytest.mark.parametrize("command", ["check", "assemble", "sass"])
def test_a_byte_order_mark_can_be_removed(command: str) -> None:
    Path("marked.ptx").write_text(f"\ufeff{SAXPY}", encoding="utf-8")
    result = run(command, "marked.ptx")
    assert "error[non-ascii-character]: PTX is ASCII, and this is '\\ufeff'\n --> marked.ptx:1:1\n" in result.output
    assert "= help: remove the byte order mark\n" in result.output


@pytest.mark.parametrize("command", ["assemble", "sass"])
def test_a_tool_that_is_missing_is_not_a_fault_of_the_file(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_PTXAS", "no-such-ptxas")
    result = run(command, "saxpy.ptx")
    assert result.exit_code == 2
    assert result.output == "error[missing-tool]: `PTXLAB_PTXAS` names `no-such-ptxas`, which is not a file\n"


@needs_tools
def test_ptxas_reads_a_file_of_our_own_that_messages_do_not_name() -> None:
    Path("empty.ptx").touch()
    result = run("assemble", "empty.ptx")
    assert result.exit_code == 1
    assert result.stdout.startswith("error[ptxas-error]: missing .version directive at start of file `empty.ptx`\n")


def test_a_ptxas_that_writes_no_object_is_a_diagnostic(tmp_path: Path) -> None:
    idle = tmp_path / "ptxas"
    idle.write_text("#!/bin/sh\n")
    idle.chmod(0o755)
    result = run("assemble", "--ptxas", str(idle), "saxpy.ptx", "--", "--dryrun")
    assert (result.exit_code, result.stdout) == (
        1,
        f"error[ptxas-error]: `{idle}` ended without an error and wrote no object\n"
        "  = help: leave out `--dryrun`\n"
        "\n1 error in saxpy.ptx\n",
    )


@needs_tools
def test_sass_is_beside_its_line() -> None:
    result = run("sass", "saxpy.ptx")
    assert result.exit_code == 0
    (row,) = (line for line in result.stdout.splitlines() if "fma.rn.f32" in line)
    line, ptx, sass = row.split(" | ")
    assert (line, ptx.strip(), sass.split()[0]) == ("29", "fma.rn.f32 %f4, %f1, %f2, %f3;", "FFMA")


@needs_tools
def test_sass_shows_the_line_of_python() -> None:
    @kernel
    def double(x: pointer[f32]) -> None:
        x[ptx.tid.x] = x[ptx.tid.x] * 2.0

    Path("double.ptx").write_text(double.ptx)
    shown = run("sass", "double.ptx").stdout
    assert "  // x[ptx.tid.x] = x[ptx.tid.x] * 2.0\n" in shown
    Path("double.ptx").write_text(double.ptx.replace(__file__, "not_there.py"))
    assert "//" not in run("sass", "double.ptx").stdout


@pytest.mark.slow
@needs_tools
def test_sass_of_several_targets_in_turn() -> None:
    result = run("sass", "--targets", "sm_80,sm_90a", "saxpy.ptx")
    heads = [line.split()[0] for line in result.stdout.splitlines() if " by ptxas " in line]
    assert heads == ["sm_80", "sm_90a"]


@pytest.mark.slow
@needs_tools
def test_what_an_instruction_becomes_on_each_target() -> None:
    result = run("sass", "--targets", "sm_80,sm_90a", "--instructions", "saxpy.ptx")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    at = lines.index("29 | fma.rn.f32 %f4, %f1, %f2, %f3;")
    assert lines[at + 1].startswith("   |     sm_80   FFMA ")
    end = next(number for number, line in enumerate(lines) if number > at and line.startswith("30 | "))
    assert lines[at + 2].startswith("   |     sm_90a  ")
    assert any(" FFMA " in line for line in lines[at + 2 : end])


@needs_tools
def test_a_target_that_refuses_says_why() -> None:
    text = SAXPY.replace("done:", "    redux.sync.add.u32 %r1, %r1, -1;\ndone:")
    Path("late.ptx").write_text(text)
    result = run("sass", "--targets", "sm_75,sm_80", "--instructions", "late.ptx")
    assert result.exit_code == 1
    assert "sm_75  refused" in result.stdout
    assert " --> late.ptx:31:" in result.stderr


def test_an_unknown_target_among_several_is_a_usage_error() -> None:
    result = run("sass", "--targets", "sm_80,sm_81", "saxpy.ptx")
    assert result.exit_code == 2
    assert "there is no target `sm_81`" in result.stderr
