"""The lessons: their examples run, and print what the page shows. `BLESS=1` writes what they print into the pages."""

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs" / "lessons").glob("[0-9]*.md"))
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_print_what_is_shown(page: Path) -> None:
    names: dict[str, Any] = {"__name__": "lesson"}
    printed = io.StringIO()
    given = page.read_text(encoding="utf-8")

    def run(block: re.Match[str]) -> str:
        kind, text = block[1], block[2]
        if kind == "text":
            shown, printed_now = text, printed.getvalue()
            printed.seek(0)
            printed.truncate()
            assert printed_now, f"nothing was printed before:\n{shown}"
            return f"```text\n{printed_now}```"
        with contextlib.redirect_stdout(printed):
            exec(compile(text, page.name, "exec"), names)
        return block[0]

    made = BLOCK.sub(run, given)
    assert not printed.getvalue(), "the page does not show what was printed last"
    if os.environ.get("BLESS"):
        page.write_text(made, encoding="utf-8")
    assert made == page.read_text(encoding="utf-8")


def test_every_page_shows_a_wrong_kernel_and_a_right_one() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert "## Wrong" in text
        assert "## Right" in text
        assert text.index("## Wrong") < text.index("## Right")
