"""The public surface of the package, and the examples of the README."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import ptxlab
from ptxlab.cli.group import ptxlab as command_line
from ptxlab.cli.samples import SAXPY

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
GEMM = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry gemm()
{



    cp.async.bulk.commit_group;
    ret;
}
"""


def test_every_public_name_is_there() -> None:
    for name in ptxlab.__all__:
        assert getattr(ptxlab, name) is not None
    assert set(ptxlab.__all__) <= set(dir(ptxlab))


def test_a_launch_returns_a_result() -> None:
    kernel = ptxlab.parse(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }")["k"]
    assert isinstance(kernel.launch(1, 1, [], device="cpu"), ptxlab.Result)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ptxlab' has no attribute 'laod'"):
        ptxlab.laod  # noqa: B018


@pytest.mark.parametrize("first", ["import ptxlab.check.program", "from ptxlab import check", "pass"])
def test_check_is_the_function_whatever_was_imported_before(first: str) -> None:
    code = f"{first}\nimport ptxlab\nprint(ptxlab.check(ptxlab.parse('.version 8.0\\n.target sm_80\\n')))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (shown.stdout, shown.stderr) == ("[]\n", "")


def test_wrong_text_raises_with_its_diagnostics() -> None:
    with pytest.raises(ptxlab.PtxError) as raised:
        ptxlab.parse(SAXPY.replace("ret;", "ret"), name="saxpy.ptx")
    (found,) = raised.value.diagnostics
    assert (found.file, found.line) == ("saxpy.ptx", 33)
    assert str(raised.value).startswith("error[")


def test_the_python_of_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("saxpy.ptx").write_text(SAXPY)
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["y"].tolist() == [2.0] * 1024
    instructions = names["result"].counters["instructions"]
    assert instructions > 0
    assert capsys.readouterr().out == f"{ptxlab.format(ptxlab.parse(SAXPY))}\n2.0 {instructions}\n"


def test_the_output_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gemm.ptx").write_text(GEMM)
    (expected,) = re.findall(r"```console\n\$ ptxlab check gemm.ptx\n(.*?)```", README, re.DOTALL)
    assert CliRunner().invoke(command_line, ["check", "gemm.ptx"]).stdout == expected


def test_the_race_in_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (kernel,) = re.findall(r"```ptx\n(.*?)```", README, re.DOTALL)
    ((command, expected),) = re.findall(r"```console\n\$ ptxlab (run reverse.ptx .*?)\n(.*?)```", README, re.DOTALL)
    Path("reverse.ptx").write_text(kernel)
    shown = CliRunner().invoke(command_line, command.split())
    assert shown.exit_code == 1
    assert re.sub(r"in [\d.]+ s$", "in 0.01 s", shown.stdout, flags=re.MULTILINE) == expected
    right = kernel.splitlines(keepends=True)
    right.insert(17, "    bar.sync 0;\n")  # "after line 17"
    Path("reverse.ptx").write_text("".join(right))
    shown = CliRunner().invoke(command_line, command.split())
    assert shown.exit_code == 0
    assert "63 62 61" in shown.stdout


@pytest.mark.parametrize(
    ("call", "problem", "said"),
    [
        (lambda: ptxlab.parse(b".version 8.0"), TypeError, "`parse` takes text, not bytes; `ptxlab.load` takes a path"),
        (lambda: ptxlab.check(SAXPY), TypeError, "`check` takes what `ptxlab.parse` or `ptxlab.load` gives, not str"),
        (lambda: ptxlab.format(SAXPY), TypeError, "`format` takes what `ptxlab.parse` or `ptxlab.load` gives, not str"),
        (lambda: ptxlab.check(ptxlab.parse(SAXPY), "sm_1"), ValueError, "there is no target 'sm_1'"),
    ],
)
def test_a_wrong_call_says_what_belongs_there(call: Callable[[], object], problem: type[Exception], said: str) -> None:
    with pytest.raises(problem) as caught:
        call()
    assert str(caught.value) == said


@pytest.mark.parametrize("name", ["nvshmem", "triton"])
def test_a_module_is_imported_by_its_public_name(name: str) -> None:
    code = (
        f"import ptxlab.{name}\nfrom ptxlab import {name} as other\nprint(ptxlab.{name} is other, other.__spec__.name)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (shown.stdout, shown.stderr) == (f"True ptxlab.frameworks.{name}\n", "")
