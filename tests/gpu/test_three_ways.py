"""The page on three ways to run PTX: each of its examples runs, those for a GPU where there is one."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from ptxlab.cli.group import ptxlab as command_line
from ptxlab.gpu import absence, gpu
from tests.gpu.programs import SAXPY
from tests.tools import is_there, needs_ptxas

PAGE = (Path(__file__).parents[2] / "docs" / "three-ways.md").read_text(encoding="utf-8")
WAYS, _, MANY = PAGE.partition("## Many launches")
EXAMPLE = re.compile(r"(<!-- needs a GPU -->\n)?```python\n(.*?)```", re.DOTALL)
BLOCKS, MORE = EXAMPLE.findall(WAYS), EXAMPLE.findall(MANY)
COMMAND = re.findall(r"```console\n\$ ptxlab (.*?)\n```", PAGE, re.DOTALL)


def run(code: str) -> None:
    names: dict[str, np.ndarray] = {}
    exec(BLOCKS[0][1], names)
    exec(code, names)
    if "saxpy" in code:
        np.testing.assert_array_equal(names["y"], 2 * names["x"] + 1)


def test_the_page_has_its_examples() -> None:
    assert [bool(marked) for marked, _ in BLOCKS] == [False, False, True, True, True, False]
    assert [bool(marked) for marked, _ in MORE] == [True, True]
    assert len(COMMAND) == 1


@pytest.mark.skipif(not is_there("nvrtc"), reason="no NVRTC: install `ptxlab[toolchain]`")
@pytest.mark.parametrize("code", [code for marked, code in BLOCKS if not marked], ids=["arrays", "inline", "variables"])
def test_examples(code: str) -> None:
    run(code.replace("1000])", '1000], device="cpu")'))


@pytest.mark.gpu
@pytest.mark.parametrize("code", [code for marked, code in BLOCKS if marked], ids=["driver", "ahead", "both"])
def test_examples_on_a_gpu(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("saxpy.ptx").write_text(SAXPY)
    assert CliRunner().invoke(command_line, COMMAND[0].replace("sm_90", gpu().target).split()).exit_code == 0
    run(code)


@pytest.mark.gpu
def test_many_launches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    Path("saxpy.ptx").write_text(SAXPY)
    names: dict[str, Any] = {}
    for code in (BLOCKS[0][1], MORE[0][1], MORE[1][1]):
        exec(code, names)
    torch.cuda.synchronize()
    assert names["y"].eq(401).all()


@needs_ptxas
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("saxpy.ptx").write_text(SAXPY)
    assert CliRunner().invoke(command_line, COMMAND[0].split()).exit_code == 0
    assert Path("saxpy.cubin").read_bytes()[:4] == b"\x7fELF"


@pytest.mark.skipif(absence() is None or not is_there("nvrtc"), reason="there is a GPU, or no NVRTC")
def test_the_inline_example_needs_no_gpu() -> None:
    run(BLOCKS[1][1])
