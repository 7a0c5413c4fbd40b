"""The example on the page of a syntax error is refused with its code."""

import pytest

from ptxlab.syntax import read
from ptxlab.syntax.pages import PAGES


@pytest.mark.parametrize("code", [code for code, page in PAGES.items() if "```ptx" in page])
def test_the_example_is_refused_with_its_code(code: str) -> None:
    example = PAGES[code].partition("```ptx\n")[2].partition("```")[0]
    if code in ("unclosed-brace", "unterminated-comment"):
        example = example.rstrip("\n")
    assert code in [diagnostic.code for diagnostic in read(example)[1]]
