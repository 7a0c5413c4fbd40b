"""The page of schedules: its examples run, and its errors are the ones that are shown."""

from pathlib import Path

import pytest

from tests.doc_pages import run_page


def test_examples_run_and_errors_are_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, shown = run_page("schedule.md", tmp_path)
    printed = capsys.readouterr().out
    assert any(text in printed for text in shown)
