"""Timelines as pictures."""

from dataclasses import replace
from pathlib import Path

import pytest

from ptxlab import draw
from ptxlab.timelines import Span, Timeline

TIMELINE = Timeline(
    (
        Span(0, 0, "producer", "wait", 0, 500),
        Span(0, 0, "producer", "copy", 500, 1000),
        Span(0, 1, "consumer", "wait", 0, 1000),
        Span(1, 0, "producer", "copy", 100, 200),
    ),
    "cycles",
    shared_clock=True,
)


def test_text_has_a_line_for_each_warp() -> None:
    drawn = str(draw.timeline(TIMELINE, "a copy")).split("\n")
    half = ("A" * 54, "B" * 55)
    assert drawn == [
        "a copy",
        f"warp 0 producer {half[0]}{half[1]}·",
        f"warp 1 consumer {'A' * 109}·",
        "                0 to 1000 cycles",
        "A wait",
        "B copy",
    ]


def test_bars_are_as_long_as_their_spans() -> None:
    shown = draw.timeline(TIMELINE, block=None, start=0, end=1000)
    text = shown.svg()
    assert text.count("<title>") == 4
    assert "x='622.0' y='50' width='450.0'" in text
    assert "<title>copy: 100 cycles</title>" in text
    assert "block 1 warp 0 producer" in text
    assert shown._repr_svg_() == text


def test_what_is_outside_is_not_drawn() -> None:
    assert draw.timeline(TIMELINE, start=600).svg().count("<title>") == 2


def test_files(tmp_path: Path) -> None:
    for name in ("times.svg", "times.txt"):
        draw.timeline(TIMELINE).save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 100
    with pytest.raises(ValueError, match=r"saved as `\.svg` or `\.txt`"):
        draw.timeline(TIMELINE).save(tmp_path / "times.png")


def test_nothing_to_draw_is_said() -> None:
    with pytest.raises(ValueError, match="there are no spans of block 7"):
        draw.timeline(TIMELINE, block=7)
    with pytest.raises(ValueError, match="there are no spans from 2000 to 3000 cycles"):
        draw.timeline(TIMELINE, start=2000, end=3000)
    with pytest.raises(ValueError, match="each SM has its own clock: draw one block"):
        draw.timeline(replace(TIMELINE, shared_clock=False), block=None)
    many = Timeline(tuple(Span(0, warp, "", "x", 0, 1) for warp in range(65)), "cycles")
    with pytest.raises(ValueError, match="65 warps have spans"):
        draw.timeline(many)
