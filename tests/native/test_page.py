"""The examples of docs/native.md run, and what it says of the language is so."""

import re
import runpy
from pathlib import Path

import pytest

from ptxlab import native

PAGE = (Path(__file__).parents[2] / "docs" / "native.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path) -> None:
    assert "\nassert " in EXAMPLES[number], "an example says what it computes"
    file = tmp_path / f"example_{number}.py"
    file.write_text(EXAMPLES[number])
    runpy.run_path(str(file), run_name="__main__")


def test_the_page_names_the_whole_language() -> None:
    named = set(re.findall(r"\w+", PAGE))
    assert [name for name in native.__all__ if name not in named] == []
