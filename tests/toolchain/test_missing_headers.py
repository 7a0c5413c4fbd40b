"""A header that a compiler did not find is looked for where projects keep theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlab.toolchain.missing_headers import help_for_missing

NVCC = "mine/sums.cuh: No such file or directory"
NVRTC = 'cannot open source file "mine/sums.cuh"'


@pytest.mark.parametrize("message", [NVCC, NVRTC])
@pytest.mark.parametrize(
    ("header", "near"),
    [
        ("include/mine/sums.cuh", "../../include"),  # of the project
        ("mine/sums.cuh", "../.."),
        ("examples/common/mine/sums.cuh", "../common"),
        ("library/include/mine/sums.cuh", "../../library/include"),
    ],
)
def test_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, message: str, header: str, near: str
) -> None:
    file = _write(tmp_path / "project", header)
    monkeypatch.chdir(file.parent)
    expected = f"`{near}/mine/sums.cuh` exists: give the compiler `-I{near}`"
    assert help_for_missing(message, "main.cu") == expected
    assert help_for_missing(message, str(file)) == expected


def test_quotes_a_folder_with_a_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _write(tmp_path / "project", "my code/mine/sums.cuh")
    monkeypatch.chdir(file.parent)
    found = help_for_missing(NVCC, "main.cu")
    assert found == "`../../my code/mine/sums.cuh` exists: give the compiler `'-I../../my code'`"


def test_looks_no_further_than_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = _write(tmp_path / "project", "other/sums.cuh")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/sums.cuh").touch()
    monkeypatch.chdir(file.parent)
    assert help_for_missing(NVCC, "main.cu") is not None
    (tmp_path / "project/.git").mkdir()
    assert help_for_missing(NVCC, "main.cu") is None


def test_says_nothing_of_other_messages(tmp_path: Path) -> None:
    assert help_for_missing('identifier "x" is undefined', str(tmp_path / "main.cu")) is None


def _write(project: Path, header: str) -> Path:
    """A project with a header and an example; the path of the example."""
    example = project / "examples/sum/main.cu"
    for path in (project / header, example):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return example
