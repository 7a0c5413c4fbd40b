"""Every code of the parser has a page, and the example on the page is refused with that code."""

import re
from pathlib import Path

import pytest

import ptxlab.syntax
from ptxlab.syntax import read
from ptxlab.syntax.pages import PAGES

SOURCES = sorted(Path(ptxlab.syntax.__file__).parent.glob("*.py"))


def test_every_code_has_a_page() -> None:
    calls = re.compile(r"(?:Fault|fault|_refuse|error)\(\s*(?:self, )?\"([a-z0-9]+(?:-[a-z0-9]+)+)\"")
    codes = {code for path in SOURCES for code in calls.findall(path.read_text())}
    assert len(codes) >= 15
    assert codes <= set(PAGES)


@pytest.mark.parametrize("code", [code for code, page in PAGES.items() if "```ptx" in page])
def test_the_example_is_refused_with_its_code(code: str) -> None:
    example = PAGES[code].partition("```ptx\n")[2].partition("```")[0]
    if code in ("unclosed-brace", "unterminated-comment"):
        example = example.rstrip("\n")
    assert code in [diagnostic.code for diagnostic in read(example)[1]]
