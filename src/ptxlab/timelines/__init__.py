"""What the warps of a kernel, and the asynchronous operations beside them, did when: spans, and files of them.

`launch(timeline=True)` has any kernel record them, `ptx.timeline` of `ptxlab.author` those that an author writes, and a
recorded launch has them; `ptxlab.draw.timeline` draws them. `layout` is how a kernel leaves them in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ptxlab.values import Json

WARP = "warp"


@dataclass(frozen=True, slots=True)
class Span:
    """What a warp, or an asynchronous operation of it, did from `start` to `end`, in the unit of its timeline."""

    block: int
    warp: int
    role: str
    label: str
    start: int
    end: int
    track: str = WARP
    """`warp`, or where asynchronous operations are: `cp.async`, `bulk copies`, `tensor cores`."""
    line: int = 0
    """The line of the PTX, if it is known."""
    count: int = 1
    """How many operations it is."""
    observed: tuple[int, int, int] | None = None
    """The block, the warp and the time of the wait that first saw the operation complete, if any did."""

    @property
    def duration(self) -> int:
        """How long it took."""
        return self.end - self.start


@dataclass(frozen=True)
class Timeline:
    """The spans of a launch, by block and warp, each in the order in which they ended.

    Times count from the first warp to start: of the launch where all SMs share the clock, otherwise of each block.
    """

    spans: tuple[Span, ...]
    unit: str
    lost: int = 0
    """Spans for which there was no space."""
    shared_clock: bool = False
    """Whether times of blocks on different SMs can be compared."""
    more: str = "give `ptx.timeline` more `spans`"
    """What records more."""
    places: tuple[str, str] = ("block", "warp")
    """What `block` and `warp` of its spans are: of a node, a rank and a stream."""

    def __str__(self) -> str:
        return self.table()

    def table(self) -> str:
        """For each role and label: how many spans there are, how long they take, and their part of the role's time."""
        longest = {role: last - first for role, (first, last) in self._extents().items()}
        rows = [("role", "span", "count", "mean", f"of {self.unit}")]
        for (role, label), found in self._by_label().items():
            total = sum(span.duration for span in found)
            share = total / max(longest[role] * self._warps(role), 1)
            rows.append((role, label, str(len(found)), f"{total / len(found):.0f}", f"{share:.0%}"))
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        lines = [
            "  ".join([*(row[n].ljust(widths[n]) for n in (0, 1)), *(row[n].rjust(widths[n]) for n in (2, 3, 4))])
            for row in rows
        ]
        if self.lost:
            lines.append(f"{self.lost} spans more were not recorded: {self.more}")
        return "\n".join(lines)

    def _by_label(self) -> dict[tuple[str, str], list[Span]]:
        found: dict[tuple[str, str], list[Span]] = {}
        for span in self._of_warps():
            found.setdefault((span.role, span.label), []).append(span)
        return found

    def _extents(self) -> dict[str, tuple[int, int]]:
        """Of each role, the first start and the last end."""
        found: dict[str, tuple[int, int]] = {}
        for span in self._of_warps():
            first, last = found.get(span.role, (span.start, span.end))
            found[span.role] = min(first, span.start), max(last, span.end)
        return found

    def _warps(self, role: str) -> int:
        return len({(span.block, span.warp) for span in self._of_warps() if span.role == role})

    def _of_warps(self) -> list[Span]:
        return [span for span in self.spans if span.track == WARP]

    def events(self) -> Json:
        """As the trace event format of Chrome: a process for each block, a thread for each warp."""
        named = Counter((span.block, span.warp, span.role) for span in self._of_warps())
        roles: dict[tuple[int, int], str] = {}
        for (block, warp, role), _ in reversed(named.most_common()):
            roles[block, warp] = role
        events: list[Json] = []
        for (block, warp), role in sorted(roles.items()):
            name = f"{self.places[1]} {warp} {role}".rstrip()
            events.append({"ph": "M", "name": "thread_name", "pid": block, "tid": warp, "args": {"name": name}})
        events += [
            {"ph": "M", "name": "process_name", "pid": block, "args": {"name": f"{self.places[0]} {block}"}}
            for block in sorted({block for block, _ in roles})
        ]
        events += [
            {"ph": "X", "name": s.label, "cat": s.role, "pid": s.block, "tid": s.warp, "ts": s.start, "dur": s.duration}
            for s in self._of_warps()
        ]
        return {"traceEvents": events, "otherData": {"unit": self.unit, "lost": self.lost}}

    def save(self, path: str | Path) -> None:
        """Write a file of trace events, which https://ui.perfetto.dev opens; its microseconds are our unit."""
        if Path(path).suffix != ".json":
            raise ValueError(f"`{path}`: a timeline is saved as `.json`; `ptxlab.draw.timeline` draws `.svg`")
        Path(path).write_text(json.dumps(self.events()), encoding="utf-8")

    def perfetto(self, path: str | Path) -> None:
        """Write a `.pftrace`, which https://ui.perfetto.dev opens: warps, and asynchronous operations beside them."""
        from ptxlab.timelines.perfetto import encode

        if Path(path).suffix not in (".pftrace", ".perfetto-trace"):
            raise ValueError(f"`{path}`: a timeline for Perfetto is saved as `.pftrace`")
        Path(path).write_bytes(encode(self))


def rows_of(spans: Iterable[Span]) -> Iterator[tuple[Span, int]]:
    """Each span, by starts, and the row of its track: of a warp its number, of others one that is free by then."""
    ends: dict[tuple[int, str], list[int]] = {}
    for span in sorted(spans, key=lambda one: (one.start, one.end)):
        if span.track == WARP:
            yield span, span.warp
            continue
        rows = ends.setdefault((span.block, span.track), [])
        free = next((row for row, end in enumerate(rows) if end <= span.start), len(rows))
        rows[free : free + 1] = [span.end]
        yield span, free
