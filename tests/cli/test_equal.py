"""`ptxlab equal`: its answers, its exit status, and what it says about mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.equal.kernels import ONLINE, PLAIN, changed

from ptxlab.cli.group import ptxlab

ARGUMENTS = ["--block", "2", "--arg", "f32[2,3]", "--arg", "f32[2,3]", "--arg", "3"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "plain.ptx"
    path.write_text(PLAIN)
    return path


def test_exit_status(file: Path) -> None:
    other = file.with_name("other.ptx")
    other.write_text(ONLINE)
    found = CliRunner().invoke(ptxlab, ["equal", str(file), str(other), *ARGUMENTS])
    assert (found.exit_code, found.output.splitlines()[0].split(":")[0]) == (0, "same function up to rounding")
    other.write_text(changed(ONLINE, ("fma.rn.f32 %f2, %f2, %f6, %f7;", "add.f32 %f2, %f2, %f7;")))
    found = CliRunner().invoke(ptxlab, ["equal", str(file), str(other), *ARGUMENTS, "--format", "json"])
    said = json.loads(found.output)
    assert (found.exit_code, said["level"], said["version"]) == (1, "different", 1)
    assert said["witness"]["element"].startswith("y[")
    other.write_text(changed(PLAIN, ("max.f32 %f1, %f1, %f3;", "setp.lt.f32 %p2, %f1, %f3;\n@%p2 bra sum;")))
    found = CliRunner().invoke(ptxlab, ["equal", str(file), str(other), *ARGUMENTS])
    assert found.exit_code == 2
    assert "it branches on the value of an input" in found.output


def test_mistakes(file: Path) -> None:
    found = CliRunner().invoke(ptxlab, ["equal", str(file), str(file), *ARGUMENTS, "--output", "z"])
    assert found.exit_code == 2
    assert "there is no output `z` that both sides have; there are x, y" in found.output
    found = CliRunner().invoke(ptxlab, ["equal", str(file), "missing.ptx"])
    assert found.exit_code == 2
    assert "does not exist" in found.output
    found = CliRunner().invoke(ptxlab, ["equal", str(file), str(file), *ARGUMENTS, "--entry", "column"])
    assert found.exit_code == 2
    assert "column" in found.output
    wrong = file.with_name("wrong.ptx")
    wrong.write_text(PLAIN.replace("max.f32", "max.f33"))
    found = CliRunner().invoke(ptxlab, ["equal", str(file), str(wrong), *ARGUMENTS])
    assert found.exit_code == 2


def test_both_runs_are_shown_where_they_part(file: Path, tmp_path: Path) -> None:
    other = file.with_name("other.ptx")
    other.write_text(changed(ONLINE, ("fma.rn.f32 %f2, %f2, %f6, %f7;", "add.f32 %f2, %f2, %f7;")))
    lab = tmp_path / "lab"
    command = ["equal", str(file), str(other), *ARGUMENTS, "--lab", str(lab), "--format", "json"]
    found = CliRunner().invoke(ptxlab, command)
    assert json.loads(found.stdout)["level"] == "different"
    page = (lab / "index.html").read_text()
    assert [page.count(f'src="{name}.html#at=') for name in "ab"] == [1, 1]
    assert (lab / "a.html").stat().st_size > 1000


def test_a_reference_in_python(file: Path) -> None:
    reference = file.with_name("reference.py")
    reference.write_text("import numpy as np\n\ndef softmax(x):\n    return x.softmax(dim=-1)\n")
    found = CliRunner().invoke(ptxlab, ["equal", str(file), str(reference), *ARGUMENTS])
    assert (found.exit_code, found.output.splitlines()[0]) == (0, "same function up to rounding: a = rows, b = softmax")
    reference.write_text(reference.read_text() + "\ndef other(x):\n    return x\n")
    found = CliRunner().invoke(ptxlab, ["equal", str(file), str(reference), *ARGUMENTS])
    assert found.exit_code == 2
    assert "by `--entry-b`; it defines softmax, other" in found.output
    found = CliRunner().invoke(ptxlab, ["equal", str(file), str(reference), *ARGUMENTS, "--entry-b", "other"])
    assert found.exit_code == 1
