"""One page of all that was measured: each kernel at each size beside its library, faster or not."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from ptxlab.measure.record import Contender, Record, Sized
from ptxlab.report.times import seconds

HEADER = ["size", "fastest variant", "median", "library", "median", "ratio", "ratio, hot L2", "of ceiling", "error"]
INTRO = """\
# What was measured

Each kernel of the gallery beside the fastest library that computes the same, at every size that its entry names, as
`ptxlab bench --all` measured it. A ratio above 1 means that our kernel is faster; rows where it is not are here like
all others. It is the median of the ratios of the rounds: both run in each round, so that a clock which falls with the
power that is drawn falls for both. Every answer was checked against float64 before it was timed, contenders took turns,
and data was fresh for the cache, but in the last ratio, where each call read what the one before had read. Ceilings are
a copy of 1 GiB, a copy of as many bytes where that is less than 256 MiB, a read of as many bytes for what writes
next to nothing, and the library's product of two large matrices: the fraction is of the nearest one.
"""


def as_page(records: Sequence[Record]) -> str:
    """All records as one page of Markdown."""
    return "\n".join([INTRO, *(_part(record) for record in sorted(records, key=lambda record: record.name))])


def _part(record: Record) -> str:
    machine = record.machine
    ratios = [found[1] for found in map(compared, record.sizes) if found is not None]
    lines = [
        f"## {record.name}\n",
        f"{record.title}. {machine['gpu']}, driver {machine['driver']}, ptxas {machine['ptxas']}, torch "
        f"{machine['torch']}, {record.date}, commit {record.commit[:12] or 'unknown'}."
        + (f" Geometric mean of {len(ratios)} ratios: {geometric_mean(ratios):.2f}." if len(ratios) > 1 else "")
        + _conditions(record),
        "",
        "| " + " | ".join(HEADER) + " |",
        "|---|---" + "|---:|---" + "|---:" * 5 + "|",
        *(_row(sized) for sized in record.sizes),
        "",
    ]
    return "\n".join(lines)


def fastest(sized: Sized, kind: str) -> Contender | None:
    """The fastest variant or library of a size."""
    timed = [one for one in sized.contenders if one.kind == kind and one.samples]
    return min(timed, key=lambda one: one.median, default=None)


def compared(sized: Sized) -> tuple[str, float] | None:
    """The fastest library and how many times as fast the fastest variant is, where both were timed."""
    own, library = fastest(sized, "variant"), fastest(sized, "library")
    return None if own is None or library is None else (library.name, sized.ratio(own.name, library.name))


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean of ratios: that of 2 and 1/2 is 1.

    >>> geometric_mean([2, 0.5])
    1.0
    """
    return math.exp(statistics.fmean(map(math.log, ratios)))


def _row(sized: Sized) -> str:
    own, library = fastest(sized, "variant"), fastest(sized, "library")
    cells = [sized.spelled, *_named(own), *_named(library), "", "", "", ""]
    if own is not None:
        reached = sized.of_ceiling(own)
        cells[7] = "" if reached is None else f"{reached:.2f}"
        cells[8] = "" if own.error is None else f"{own.error:.1e}"
    if own is not None and library is not None:
        cells[5] = f"{sized.ratio(own.name, library.name):.2f}"
        if own.hot and library.hot:
            cells[6] = f"{sized.ratio(own.name, library.name, hot=True):.2f}"
    return "| " + " | ".join(cells) + " |"


def _named(one: Contender | None) -> list[str]:
    return ["", ""] if one is None else [one.name, seconds(one.median)]


def _conditions(record: Record) -> str:
    """The medians of what the GPU reported of itself, over all sizes."""
    names = dict.fromkeys(name for sized in record.sizes for name in sized.conditions)
    spans = {name: [one.conditions[name][1] for one in record.sizes if name in one.conditions] for name in names}
    said = [f"{name}: {min(values):g} to {max(values):g}" for name, values in spans.items()]
    return f" Medians of the sizes: {'; '.join(said)}." if said else ""
