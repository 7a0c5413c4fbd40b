"""The page that teaches: its examples run, and its errors are the ones that are shown."""

from pathlib import Path

import pytest

from tests.doc_pages import run_page
from tests.tools import needs_ptxas


@needs_ptxas  # `tune` assembles what it measures
def test_examples_run_and_errors_are_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names, shown = run_page("author.md", tmp_path)
    assert "def saxpy(" in capsys.readouterr().out
    assert shown[0] in str(names["saxpy"])
