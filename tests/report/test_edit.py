"""Edits applied to text."""

import pytest

from ptxlab.report import Edit, Help, Source, Span, apply_edits, certain_edits, error

SOURCE = Source("a.ptx", "add.u32 a, b")


def edit(start: int, end: int, replacement: str) -> Edit:
    return Edit(Span(SOURCE, start, end), replacement)


def test_edits_are_applied_in_order_of_place() -> None:
    edits = [edit(12, 12, ";"), edit(4, 7, "s32"), edit(0, 3, "sub")]
    assert apply_edits(SOURCE.text, edits) == "sub.s32 a, b;"


def test_an_edit_given_twice_counts_once() -> None:
    assert apply_edits(SOURCE.text, [edit(12, 12, ";"), edit(12, 12, ";")]) == "add.u32 a, b;"


def test_overlapping_edits_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap at offset 2"):
        apply_edits(SOURCE.text, [edit(0, 3, "x"), edit(2, 4, "y")])


def test_certain_edits_leave_out_what_overlaps_an_earlier_finding() -> None:
    found = [
        error("code", "message", None, helps=["not certain", Help("certain", (edit(4, 7, "s32"),))]),
        error("code", "message", None, helps=[Help("overlaps", (edit(5, 6, "x"), edit(12, 12, "!")))]),
        error("code", "message", None, helps=[Help("the same", (edit(4, 7, "s32"),))]),
        error("code", "message", None, helps=[Help("other", (edit(4, 7, "b32"),))]),
        error("code", "message", None, helps=[Help("free", (edit(12, 12, ";"),))]),
    ]
    assert apply_edits(SOURCE.text, certain_edits(found)) == "add.s32 a, b;"
