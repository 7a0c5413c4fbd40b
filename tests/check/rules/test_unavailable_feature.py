"""What is in a `.section`, and since when."""

import pytest

import ptxlab
from ptxlab.check import check
from tests.tools import header


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (".b8 0, 1", None),
        (".b32 a", None),
        (".b32 a+4", None),
        (".b8 -1", "negative numbers in `.section`"),
        (".b8 0, -1", "negative numbers in `.section`"),
        (".b32 a-a", "differences of labels in `.section`"),
    ],
)
def test_numbers_and_labels_of_sections(line: str, message: str | None) -> None:
    text = header("{}", "sm_80") + f".entry k() {{ ret; }}\n.section .debug_str {{\na: .b8 0\n{line}\n}}\n"
    assert check(ptxlab.parse(text.replace("{}", "7.5"))) == []
    found = check(ptxlab.parse(text.replace("{}", "7.4")))
    assert [one.code for one in found] == ([] if message is None else ["unavailable-feature"])
    assert message is None or message in found[0].message
