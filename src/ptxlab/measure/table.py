"""A record as text: for a terminal, and as Markdown for the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from ptxlab.measure.record import Record, Sized
from ptxlab.report.times import seconds

_BAR = 20  # characters of the fastest
HEADER = ["", "median", "spread", "TFLOP/s", "GB/s", "of ceiling", "error"]


def as_text(record: Record) -> str:
    """The tables of all sizes, for a terminal."""
    parts = [f"{record.title}, on {_article(record.machine['gpu'])}"]
    for sized in record.sizes:
        rows = rows_of(sized, record.baseline)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        lines = [f"{line}  {bar}".rstrip() for line, bar in zip(lines, ["", *bars(sized)], strict=True)]
        parts += ["", sized.spelled, *lines, *_notes(sized), *_conditions(sized)]
    return "\n".join(parts)


def as_markdown(record: Record) -> str:
    """The tables of all sizes as Markdown, with the hardware and versions."""
    machine = record.machine
    parts = [
        f"Measured on {_article(machine['gpu'])} (driver {machine['driver']}, ptxas {machine['ptxas']}, torch "
        f"{machine['torch']}) on {record.date}, all contenders in turns, {_rounds(record)} rounds; the spread is half "
        "of the interquartile range. Data comes from memory, but where a column says that the L2 cache is hot."
        + _fingerprints(record),
    ]
    for sized in record.sizes:
        header, *rows = rows_of(sized, record.baseline)
        parts += ["", f"**{sized.spelled}**", "", _line(header), "|---" + "|---:" * (len(header) - 1) + "|"]
        parts += [*map(_line, rows), *_notes(sized), *_conditions(sized)]
    return "\n".join(parts)


def rows_of(sized: Sized, baseline: str) -> list[list[str]]:
    """The header and a row per contender: variants first, then libraries, then ceilings."""
    timed = [one for one in sized.contenders if one.samples]
    is_hot = any(one.hot for one in timed)
    rows = [[*HEADER, f"against {baseline}", *(["hot L2", "against"] if is_hot else [])]]
    for one in timed:
        reached = None if one.kind == "ceiling" else sized.of_ceiling(one)
        against = one.kind != "ceiling" and any(other.name == baseline for other in timed)
        rows.append(
            [
                f"({one.name})" if one.kind == "ceiling" else one.name,
                seconds(one.median),
                f"±{one.spread:.1%}",
                f"{one.flops / 1e12:.3g}" if one.work.flops else "",
                f"{one.bandwidth / 1e9:.4g}" if one.work.bytes else "",
                f"{reached:.2f}" if reached is not None else "",
                f"{one.error:.1e}" if one.error is not None else "",
                f"{sized.ratio(one.name, baseline):.2f}×" if against else "",
                *([seconds(one.hot_median) if one.hot_median else ""] if is_hot else []),
                *([f"{sized.ratio(one.name, baseline, hot=True):.2f}×" if against else ""] if is_hot else []),
            ]
        )
    return rows


def bars(sized: Sized) -> list[str]:
    """For each contender that was timed a bar as long as it is fast; an empty one for ceilings, which do other work."""
    timed = [one for one in sized.contenders if one.samples]
    fastest = min((one.median for one in timed if one.kind != "ceiling"), default=0.0)
    return [bar(fastest / one.median) if one.kind != "ceiling" else "" for one in timed]


def bar(part: float) -> str:
    """A fraction of a whole bar, to an eighth of a character.

    >>> bar(1), bar(0.51)
    ('████████████████████', '██████████▎')
    """
    whole, rest = divmod(round(part * 8 * _BAR), 8)
    return "█" * whole + " ▏▎▍▌▋▊▉"[rest].strip()


def _notes(sized: Sized) -> list[str]:
    return [f"{one.name}: {one.note}" for one in sized.contenders if not one.samples and one.note]


def _conditions(sized: Sized) -> list[str]:
    """The median of each, and what it was at least and at most."""
    found = [f"{name}: {middle:g} ({low:g} to {high:g})" for name, (low, middle, high) in sized.conditions.items()]
    return ["", "; ".join(found)] if found else []


def _fingerprints(record: Record) -> str:
    contenders = [one for sized in record.sizes for one in sized.contenders]
    compared, same = (sum(getattr(one, name) for one in contenders) for name in ("compared", "same"))
    return f" Of {compared:,} answers of timed calls, {same:,} had the bits of an earlier call." if compared else ""


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _rounds(record: Record) -> str:
    """`7`, or `7 to 28` where times of some sizes differed much."""
    timed = [one for sized in record.sizes for one in sized.contenders if one.kind != "ceiling" and one.samples]
    counts = sorted({len(one.samples) for one in timed}) or [0]
    return " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))


def _article(name: str) -> str:
    return f"an {name}" if name[:1] in "AEIOUN" else f"a {name}"  # an NVIDIA
