"""The examples of docs/trace.md, and the command line."""

import re
from pathlib import Path

import numpy as np
import pytest

import ptxlab
from tests.cli.running import run

from .recorded import SUMS

PAGE = (Path(__file__).parent.parent.parent / "docs" / "trace.md").read_text(encoding="utf-8")
GIVEN = ("--block", 64, "--arg", "u32[64]=arange", "--arg", "u32[64]=zeros", "--arg", "u32=5")


def test_its_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    exec("\n".join(blocks), {})


def test_run_records_and_compares(tmp_path: Path) -> None:
    kernel, reference, file = tmp_path / "sums.ptx", tmp_path / "ref.npy", tmp_path / "run.ptxtrace"
    kernel.write_text(SUMS)
    np.save(reference, (np.arange(64, dtype=np.uint32) ^ 1) + 35)
    result = run(kernel, *GIVEN, "--record", file, "--expect", f"b={reference}")
    assert result.exit_code == 1
    shown = result.output.splitlines()[5:9]
    assert shown == [
        "b[3] is 137, and 37 was expected; 1 of 64 elements are wrong",
        "where it comes from:",
        "    b[3] = 137  line 33: st.global.u32 [%rd5], %r5",
        "      %r5 of thread 3 = 137  line 32: @%p2 add.u32 %r5, %r5, 100",
    ]
    assert ptxlab.Trace.open(file).steps == 2496
    np.save(reference, (np.arange(64, dtype=np.uint32) ^ 1) + 35 + 100 * (np.arange(64) == 3))
    assert run(kernel, *GIVEN, "--expect", f"b={reference}").exit_code == 0


def test_run_refuses_what_it_cannot_record(tmp_path: Path) -> None:
    kernel = tmp_path / "sums.ptx"
    kernel.write_text(SUMS)
    result = run(kernel, *GIVEN, "--record", tmp_path / "run.ptxtrace", "--seeds", 2)
    assert (result.exit_code, "are for one launch: choose it by `--seed`" in result.output) == (2, True)
    result = run(kernel, *GIVEN, "--record", tmp_path / "nowhere" / "run.ptxtrace")
    assert (result.exit_code, "No such file or directory" in result.output) == (2, True)
    np.save(tmp_path / "ref.npy", np.zeros(3))
    result = run(kernel, *GIVEN, "--expect", tmp_path / "ref.npy")
    assert (result.exit_code, "no array has this shape" in result.output) == (2, True)
