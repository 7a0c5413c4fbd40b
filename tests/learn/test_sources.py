"""Copies of modules with parts of their text replaced: what a page changes is what runs, and the original stays."""

import pytest

import ptxlab
from ptxlab.kernels.wgmma_steps import Shape, ping_pong, specialized
from ptxlab.learn import LearnError, edited


def test_a_change_is_in_the_copy_alone() -> None:
    shape = Shape(128, 16, stages=2, groups=2)
    text = str(specialized.specialize("f16", shape))
    made = edited(specialized, ("reads=4 * shape.groups", "reads=5"))
    assert "[emptied], 8;" in text
    assert "[emptied], 5;" in str(made.specialize("f16", shape))
    assert str(specialized.specialize("f16", shape)) == text
    assert str(edited(specialized).specialize("f16", shape)) == text


def test_a_change_of_a_neighbor_two_imports_away_is_seen() -> None:
    """`ping_pong` imports from `specialized`, which imports `multiply` from `parts`."""
    made = edited(ping_pong, ("    ptx.wgmma.fence.sync.aligned()\n", ""))
    assert "wgmma.fence" not in str(made.specialize("f16", made.Shape(64, 64, stages=2)))


def test_findings_name_lines_of_the_changed_text() -> None:
    made = edited(specialized, ("            complete(sides)\n", "            pass\n"))
    (found,) = ptxlab.check(made.specialize("f16", made.Shape(128, 16, stages=2, groups=2)).module)
    assert "called from specialized.py:38 in `specialized`" in str(found)


def test_a_text_that_is_not_there_is_refused() -> None:
    with pytest.raises(LearnError, match=r"there is no `reads=9` in specialized.py, parts.py"):
        edited(specialized, ("reads=9", "reads=8"))
