"""Positions in source text."""

from hypothesis import given
from hypothesis import strategies as st

from ptxlab.report import Source, Span


def test_position_counts_lines_and_columns_from_one() -> None:
    source = Source("a.ptx", "ret;\n\nexit;\n")
    assert [source.position(at) for at in (0, 4, 5, 6, 12)] == [(1, 1), (1, 5), (2, 1), (3, 1), (4, 1)]
    assert source.line_count == 4


def test_line_leaves_out_either_kind_of_line_break() -> None:
    source = Source("a.ptx", "one\r\ntwo\n\rthree")
    assert [source.line(number) for number in (1, 2, 3)] == ["one", "two", "\rthree"]


def test_empty_text_has_one_empty_line() -> None:
    source = Source("a.ptx", "")
    assert (source.position(0), source.line(1), source.line_count) == ((1, 1), "", 1)


def test_span_knows_its_text_and_keeps_the_file_out_of_its_repr() -> None:
    span = Span(Source("a.ptx", "add.u32 secret"), 0, 7)
    assert span.text == "add.u32"
    assert "secret" not in repr(span)


@given(st.text(alphabet="ab\r\n", max_size=40))
def test_positions_agree_with_counting(text: str) -> None:
    source = Source("a.ptx", text)
    for offset in range(len(text) + 1):
        before = text[:offset]
        assert source.position(offset) == (before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1)
