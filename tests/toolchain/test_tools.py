"""Finding tools: order, versions, and what a missing one says."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxlab.report import PtxError
from ptxlab.toolchain import Tool, find, find_assembler
from ptxlab.toolchain import tools as tools_module


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with an empty PATH and no wheel."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PTXLAB_PTXAS", raising=False)
    monkeypatch.setattr(tools_module.importlib.util, "find_spec", lambda name: None)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("name", ["ptxas", "nvdisasm", "nvrtc", "nvcc"])
def test_a_missing_tool_says_what_to_do(name: tools_module.Name) -> None:
    with pytest.raises(PtxError) as caught:
        find(name)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "missing-tool"
    assert diagnostic.message == f"`{name}` was not found"
    assert "pip install 'ptxlab[toolchain]'" in diagnostic.helps[0].text


def test_a_path_that_does_not_exist_is_named() -> None:
    with pytest.raises(PtxError, match="the option names `/nowhere/ptxas`, which is not a file"):
        find("ptxas", "/nowhere/ptxas")


def test_the_option_wins_and_has_its_version(fake_ptxas: Callable[[str], Tool]) -> None:
    tool = fake_ptxas("exit 0")
    assert (tool.version, tool.origin) == ("1.2.3", "the option")
    assert str(tool) == f"ptxas 1.2.3 from the option ({tool.path})"


def test_the_variable_wins_over_path(fake_ptxas: Callable[[str], Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXLAB_PTXAS", str(fake_ptxas("exit 0").path))
    assert find("ptxas").origin == "`PTXLAB_PTXAS`"


def test_path_wins_over_the_wheel(fake_ptxas: Callable[[str], Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PTXLAB_PTXAS", raising=False)
    monkeypatch.setenv("PATH", str(fake_ptxas("exit 0").path.parent) + ":/usr/bin:/bin")
    assert find("ptxas").origin == "PATH"


def test_a_newer_module_gets_a_newer_ptxas(fake_ptxas: Callable[[str], Tool], monkeypatch: pytest.MonkeyPatch) -> None:
    if tools_module._in_wheel("ptxas") is None:
        pytest.skip("the wheel nvidia-cuda-nvcc is not installed")
    monkeypatch.delenv("PTXLAB_PTXAS", raising=False)
    monkeypatch.setenv("PATH", str(fake_ptxas("exit 0").path.parent) + ":/usr/bin:/bin")
    assert find_assembler((8, 0)).origin == "PATH"
    newer = find_assembler((9, 0))
    assert newer.origin == "the wheel nvidia-cuda-nvcc"
    assert newer.reason == "ptxas 1.2.3 from PATH accepts PTX up to 8.0, not 9.0"


def test_wheels_before_cuda_13_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder = tmp_path / "site" / "nvidia" / "cuda_nvcc" / "bin"
    folder.mkdir(parents=True)
    true = shutil.which("true")
    assert true
    shutil.copy(true, folder / "ptxas")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path / "site" / "nvidia")]})
    monkeypatch.setattr(tools_module.importlib.util, "find_spec", lambda name: spec)
    assert tools_module._in_wheel("ptxas") == folder / "ptxas"
