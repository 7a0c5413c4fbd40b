"""The page of schedules: its examples run, and its errors are the ones that are shown."""

import re
from pathlib import Path
from typing import Any

import pytest

from ptxlab.report import PtxError

PAGE = Path(__file__).parents[2] / "docs" / "schedule.md"
BLOCKS = re.findall(r"^```(\S[^\n]*)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_examples_run_and_errors_are_as_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "page"}
    shown = [text for kind, text in BLOCKS if kind == "text"]
    for number, (kind, text) in enumerate(BLOCKS):
        if not kind.startswith("python"):
            continue
        file = tmp_path / f"block_{number}.py"
        file.write_text(text)
        code = compile(text, str(file), "exec")
        if kind == "python error":
            with pytest.raises(PtxError) as raised:
                exec(code, names)
            assert str(raised.value).replace(str(file), "schedule.md") + "\n" in shown
        else:
            exec(code, names)
    printed = capsys.readouterr().out
    assert any(text in printed for text in shown)
