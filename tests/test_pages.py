"""Every page of the documentation with examples in Python is run: those of `RUN` here, the others elsewhere."""

import re
from pathlib import Path

import pytest

from tests.doc_pages import DOCS, run_page

RUN = ["cuda.md", "draw.md", "equal.md", "functions.md", "node.md", "own-kernel.md", "verify.md"]
SLOW = {"cuda.md": pytest.mark.slow, "equal.md": pytest.mark.slow, "own-kernel.md": pytest.mark.bulk}
ELSEWHERE = {
    "add-an-instruction.md": "isa/test_add_an_instruction.py",
    "author.md": "author/test_docs.py",
    "emulator.md": "test_docs.py",
    "frameworks.md": "frameworks/test_operators.py",
    "native.md": "native/test_page.py",
    "pytest.md": "pytest_plugin/test_plugin.py",
    "schedule.md": "schedule/test_docs.py",
    "textures.md": "emulate/texture_lookups.py",
    "three-ways.md": "gpu/test_three_ways.py",
    "timelines.md": "launch/test_timelines.py",
    "trace.md": "trace/test_page.py",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SLOW[name]) if name in SLOW else name for name in RUN]
)  # fmt: skip
def test_examples_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They assert what they compute; files that they write are their own."""
    monkeypatch.chdir(tmp_path)
    names, _ = run_page(name, tmp_path)
    assert len(names) > 1


def test_every_page_with_examples_is_run() -> None:
    with_python = {
        page.name for page in DOCS.glob("*.md") if re.search(r"^```python", page.read_text("utf-8"), re.MULTILINE)
    }
    assert {*RUN, *ELSEWHERE} == with_python
    for page, test in ELSEWHERE.items():
        assert page in (Path(__file__).parent / test).read_text(encoding="utf-8")
