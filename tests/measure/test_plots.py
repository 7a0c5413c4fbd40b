"""Pictures of what was measured: every word of them can be read, and a kernel without operations has no roofline."""

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from ptxlab.measure import Record
from ptxlab.measure.plots import bars, draw_bars, draw_roofline, is_memory_bound, roofline
from ptxlab.report import KernelError

EVIDENCE = Path(__file__).parents[2] / "evidence" / "bench"


def measured(name: str) -> Record:
    return Record.read(EVIDENCE / f"{name}.json")


def texts(figure: Any) -> list[tuple[str, Any]]:
    """Each text of a figure but the numbers of its scales, and its box."""
    from matplotlib.text import Text

    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    numbers = {label for axis in figure.axes for label in axis.get_xticklabels(which="both")}
    shown = [one for one in figure.findobj(Text) if one.get_text() and one.get_visible() and one not in numbers]
    return [(one.get_text(), one.get_window_extent(renderer)) for one in shown]


@pytest.mark.bulk(one_in=4)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["mma_attention", "copy", "mma_variants", "sgemm"])
def test_no_text_overlaps_another_or_the_edge(name: str) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = bars(measured(name))
    FigureCanvasAgg(figure)
    found = [(text, box) for text, box in texts(figure) if box.width]
    hidden = [text for text, box in found if box.x0 < 0 or box.y0 < 0 or box.x1 > figure.bbox.x1]
    assert hidden == []
    crossed = [(one, other) for (one, first), (other, second) in combinations(found, 2) if first.overlaps(second)]
    assert crossed == []


def test_bars_are_labelled_with_the_unit_of_their_ceiling() -> None:
    assert {axis.get_xlabel() for axis in bars(measured("copy")).axes} == {"GB/s"}
    assert {axis.get_xlabel() for axis in bars(measured("sgemm")).axes} == {"TFLOP/s"}
    assert is_memory_bound(measured("copy").sizes[0])
    assert not is_memory_bound(measured("sgemm").sizes[0])


def test_each_contender_of_a_roofline_has_its_own_mark() -> None:
    (axis,) = roofline(measured("prefetch")).axes
    drawn = [
        (tuple(points.get_facecolor()[0]), points.get_paths()[0].vertices.tobytes()) for points in axis.collections
    ]
    assert len(set(drawn)) == len(drawn) == len(axis.get_legend().get_texts())


def test_what_counts_no_operations_has_no_roofline(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match="`y = x for f32 vectors` has no operations to count, and so no roofline"):
        draw_roofline(measured("copy"), tmp_path / "roofline.png")
    assert not (tmp_path / "roofline.png").exists()


@pytest.mark.slow
def test_plots_are_pictures(tmp_path: Path) -> None:
    draw_bars(measured("sgemm"), tmp_path / "bars.png")
    draw_roofline(measured("sgemm"), tmp_path / "roofline.svg")
    assert (tmp_path / "bars.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "roofline.svg").read_text().count("<use") > 2
